"""The pointer way: follow learned edges from the entry nodes, and respect what was called not relevant.

An edge is followed when one of its positive K samples is near enough to the question, and blocked when a negative one is.
Source: seed item 1.2-6, design 4.4 "Exact".
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from memory.recall.neighbour_cache import NeighbourCache
from memory.storage.pointer_records import Edge, Sample
from memory.storage.stores import Stores
from memory.storage.vectors import Vector
from memory.values import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is asked, with its vector when the embedder answered."""

    text: str
    vector: Vector | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Path:
    """An edge that no negative sample blocks, and how near its best positive one is to the question."""

    source: NodeId
    target: NodeId
    similarity: float
    forced: bool


class PointerWalk:
    """Edges and vetoes for one question at a time."""

    def __init__(self, stores: Stores, cache: NeighbourCache) -> None:
        self._stores = stores
        self._config = stores.config.recall
        self._cache = cache

    def follow(self, entries: Iterable[NodeId], question: Question) -> dict[NodeId, float]:
        """Targets that a matching edge leads to, with the best K similarity."""
        found: dict[NodeId, float] = {}
        for path in self.paths(entries, question):
            if path.similarity >= self._config.edge_follow:
                found[path.target] = max(path.similarity, found.get(path.target, 0.0))
        return found

    def paths(self, entries: Iterable[NodeId], question: Question) -> list[Path]:
        """All edges that leave the entries and are not blocked for this question."""
        edges: list[tuple[NodeId, NodeId, Edge]] = []
        for entry in entries:
            record = self._cache.edges(entry)
            edges.extend((entry, NodeId(target), edge) for target, edge in record.edges.items())
        known = self._known((edge for _, _, edge in edges), question)
        return [
            Path(
                source=source,
                target=target,
                similarity=_nearest(edge.positive, known),
                forced=edge.forced,
            )
            for source, target, edge in edges
            if _nearest(edge.negative, known) < self._config.edge_veto
        ]

    def vetoed(self, targets: Sequence[NodeId], question: Question) -> frozenset[NodeId]:
        """Those of the nodes that were called not relevant for a question like this one."""
        records = {t: self._stores.pointers.vetoes(t) for t in targets}
        edges = {t: r.edges[t] for t, r in records.items() if t in r.edges}
        if not edges:
            return frozenset()
        known = self._known(edges.values(), question)
        return frozenset(
            t for t, e in edges.items() if _nearest(e.negative, known) >= self._config.edge_veto
        )

    def _known(self, edges: Iterable[Edge], question: Question) -> Mapping[int, float]:
        queries = [s.query for edge in edges for s in (*edge.positive, *edge.negative)]
        if not queries:
            return {}
        return self._stores.log.similarities(queries, question.text, question.vector)


def _nearest(samples: Sequence[Sample], known: Mapping[int, float]) -> float:
    """0 where nothing is known: an outage neither follows nor vetoes."""
    return max((known.get(s.query, 0.0) for s in samples), default=0.0)
