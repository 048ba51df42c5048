"""Hybrid search: lexical and vector candidates, fused to one score each. No policy about evidence.

Scores are in 0..1 and comparable between questions: word coverage is the idf-weighted share of the question's terms, similarity
is calibrated. Lexical-only hits keep their full score and a fused score is never below the lexical one. Source: design 4.4
"RAG", seed items K8–K10.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from memory.config import RagMode, RecallConfig
from memory.recall.standing import Standing
from memory.storage.lexical import LexicalHit
from memory.storage.stores import Stores
from memory.storage.vector_index import Outage
from memory.storage.vectors import Scored, Vector
from memory.text import content_terms, coverage, inverse_frequency, is_pair, overlap
from memory.values import Node

_COMMON_FROM_NODES = 50  # in a smaller store every term is common, and that says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node with its signals."""

    node: Node
    score: float
    similarity: float | None
    lexical: float | None
    own: frozenset[str]
    reason: str = "gate"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The question's terms with their idf, and those that no node has."""

    nodes: int
    weights: Mapping[str, float]
    searched: tuple[str, ...]
    unseen: frozenset[str]


def fuse(lexical: float | None, similarity: float | None, config: RecallConfig) -> float:
    """One score from both signals.

    Source: seed item K9, `max(lexical, 0.3·lexical + 0.7·similarity)`, which was made for raw cosines of one language. Here
    both signals have the same meaning – 0.5 is the bar – so either passes alone and two near misses pass together; K9's
    promise holds: a fused score is never below the lexical one.
    """
    words, meaning = lexical or 0.0, similarity or 0.0
    return min(1.0, max(words, meaning, config.agreement * (words + meaning)))


def wants_ann(stores: Stores) -> bool:
    """True when Chroma is to be asked; `auto` asks it where the exact scan would be felt."""
    mode = stores.config.vectors.rag_mode
    if mode is RagMode.AUTO:
        return stores.vectors.count() >= stores.config.vectors.ann_rows_min
    return mode is RagMode.ANN and stores.vectors.count() > 0


class HybridSearch:
    """Finds and scores candidates."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._config = stores.config.recall
        self.vectors_out = False
        self._background: NDArray[np.float32] | None = None

    def terms(self, text: str, excluded: Iterable[int]) -> Terms:
        """Looks up the question's terms; the question itself, already journalled, does not count as a node."""
        config = self._config
        wanted = content_terms(text)
        own = [hit.own for hit in self._stores.lexical.keys(list(excluded)).values()]
        nodes = max(0, self._stores.lexical.count() - len(own))
        found = self._stores.lexical.frequencies(wanted)
        frequencies = {t: max(0, n - sum(t in o for o in own)) for t, n in found.items()}
        rarest = sorted(wanted, key=lambda t: frequencies[t])[: config.query_terms_max]
        weights = {t: self._weight(t, nodes, min(nodes, frequencies[t])) for t in rarest}
        known = [t for t in rarest if frequencies[t]]
        common = nodes * config.common_share if nodes >= _COMMON_FROM_NODES else nodes
        rare = [t for t in known if frequencies[t] <= common]
        return Terms(
            nodes=nodes,
            weights=weights,
            searched=tuple(rare or known),
            unseen=frozenset(t for t in rarest if not frequencies[t]),
        )

    def _weight(self, term: str, nodes: int, frequency: int) -> float:
        weight = inverse_frequency(nodes, frequency)
        unseen_pair = frequency == 0 and is_pair(term)
        return weight * self._config.unseen_pair_weight if unseen_pair else weight

    def search(
        self, terms: Terms, vector: Vector | None, limit: int, found: list[Candidate]
    ) -> Iterator[None]:
        """Fills `found` with scored candidates, best first; yields between slices."""
        self.vectors_out = False
        config = self._config
        hits = self._stores.lexical.search(terms.searched, limit, config.near_weight)
        cosines: dict[int, float] = {}
        if vector is not None:
            nearest: list[Scored] = []
            yield from self._nearest(vector, limit, nearest)
            cosines = dict(nearest)
        keys = {hit.seq: hit for hit in hits}
        seqs = list(keys.keys() | cosines.keys())
        keys |= self._stores.lexical.keys([s for s in seqs if s not in keys])
        if vector is not None:
            blobs = self._stores.vectors.of([s for s in seqs if s not in cosines])
            cosines |= {seq: float(blob @ vector) for seq, blob in blobs.items()}
        standing = None if vector is None else self._standing(vector)
        for seq, node in self._stores.timeline.recallable(seqs).items():
            similarity = None
            if standing is not None and seq in cosines:
                similarity = standing.similarity(cosines[seq], node.content)
            found.append(self._candidate(node, keys.get(seq), similarity, terms))
        found.sort(key=by_score)

    def _nearest(self, vector: Vector, limit: int, found: list[Scored]) -> Iterator[None]:
        """By Chroma or by the exact scan; an outage of the first is answered by the second."""
        stores = self._stores
        if wants_ann(stores):
            try:
                found.extend(stores.index.query(vector, limit))
            except Outage:
                self.vectors_out = True
            else:
                return
        yield from stores.scan.search(vector, limit, found)

    def _standing(self, vector: Vector) -> Standing:
        if self._background is None:
            self._background = self._stores.vectors.background()
        return Standing(
            self._background,
            vector,
            nodes=self._stores.vectors.count(),
            epoch=self._stores.epoch,
            config=self._config,
        )

    def _candidate(
        self, node: Node, key: LexicalHit | None, similarity: float | None, terms: Terms
    ) -> Candidate:
        lexical = None if key is None else self._words(key, terms)
        return Candidate(
            node=node,
            score=fuse(lexical, similarity, self._config),
            similarity=similarity,
            lexical=lexical,
            own=frozenset() if key is None else key.own,
        )

    def _words(self, key: LexicalHit, terms: Terms) -> float:
        """Coverage, less where what was found is common everywhere ("thanks")."""
        share = coverage(terms.weights, key.own, key.near, self._config.near_weight)
        if terms.nodes < _COMMON_FROM_NODES:
            return share
        carried = share * sum(terms.weights.values())
        needed = self._config.informative_share * math.log1p(terms.nodes)
        return share * min(1.0, carried / needed)


def by_score(candidate: Candidate) -> tuple[float, int]:
    """Sort key: best first, newest first among equals."""
    return (-candidate.score, -candidate.node.seq)


def distinct(candidates: Sequence[Candidate], overlap_max: float) -> list[Candidate]:
    """Drops near-duplicates of better candidates."""
    kept: list[Candidate] = []
    for candidate in candidates:
        if all(
            candidate.node.content != k.node.content and overlap(candidate.own, k.own) < overlap_max
            for k in kept
        ):
            kept.append(candidate)
    return kept
