"""Hybrid search: lexical and vector candidates, scored for the gate and ranked. No policy about evidence.

Three numbers with three duties. The *score* is in 0..1 and comparable between questions, and says what may be shown: word
coverage is the idf-weighted share of the question's terms, similarity is calibrated; lexical-only hits keep their full score and
a fused score is never below the lexical one. The *rank* orders the candidates of one question (`memory.recall.ranking`). The
*share* is the chance, by rank, that a candidate rather than any other passage of the pool is what is looked for: it tells
whether what is shown is enough. Source: design 4.4 "RAG", seed items K8–K10.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from memory.config import RagMode, RecallConfig
from memory.recall.cohort import Cohort
from memory.recall.ranking import Asked, Passage, group_of, shares, spread
from memory.recall.ranking import ranks as rank_all
from memory.recall.standing import Standing
from memory.storage.lexical import LexicalHit
from memory.storage.selection import EVERYTHING, admits
from memory.storage.stores import Stores
from memory.storage.vector_index import Outage
from memory.storage.vectors import Scored, Vector
from memory.text import content_terms, coverage, inverse_frequency, is_pair, overlap
from memory.values import Node, NodeKind, Selection

_COMMON_FROM_NODES = 50  # in a smaller store every term is common, and that says nothing


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """A node with its signals: `score` is for what may be shown, `rank` for the order, `share` for when to stop."""

    node: Node
    score: float
    similarity: float | None
    lexical: float | None
    own: frozenset[str]
    reason: str = "gate"
    rank: float = 0.0
    share: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """The question, its terms with their idf, and those that no node has."""

    text: str
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
        self._ranking = stores.config.ranking
        self._cohort = Cohort(stores.vectors, stores.lexical, stores.config.ranking)
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
            text=text,
            nodes=nodes,
            weights=weights,
            searched=self._affordable(rare or known, frequencies),
            unseen=frozenset(t for t in rarest if not frequencies[t]),
        )

    def _weight(self, term: str, nodes: int, frequency: int) -> float:
        weight = inverse_frequency(nodes, frequency)
        unseen_pair = frequency == 0 and is_pair(term)
        return weight * self._config.unseen_pair_weight if unseen_pair else weight

    def _affordable(self, rarest: Sequence[str], frequencies: Mapping[str, int]) -> tuple[str, ...]:
        """The rarest terms whose entries together can be read in time; the first always."""
        left, chosen = self._config.postings_max, list(rarest[:1])
        for term in rarest[1:]:
            left -= frequencies[term]
            if left < 0:
                break
            chosen.append(term)
        return tuple(chosen)

    def search(
        self,
        terms: Terms,
        vector: Vector | None,
        limit: int,
        found: list[Candidate],
        selection: Selection = EVERYTHING,
    ) -> Iterator[None]:
        """Fills `found` with the candidates of the selected nodes, best rank first; yields between slices.

        At least `limit` of them, where the store has so many that words or vectors find.
        """
        self.vectors_out = False
        pool = max(self._ranking.pool, limit)
        near_weight = self._config.near_weight
        hits = self._stores.lexical.search(terms.searched, pool, near_weight, selection)
        nearest: list[Scored] = []
        if vector is not None:
            yield from self._nearest(vector, pool, nearest, selection)
        yield
        wanted = list(dict.fromkeys([*(h.seq for h in hits), *(seq for seq, _ in nearest)]))
        passages = self._passages(wanted, hits, neighbours=self._beside(hits, nearest))
        yield
        ranks = self._ranks(terms, vector, passages)
        shown = [p for p in passages if admits(selection, p.node)]
        groups = {p.node.seq: _spread_over(p.node) for p in shown}
        ranked = {p.node.seq: ranks[p.node.seq] for p in shown}
        order = spread(ranked, groups, self._ranking.spread, limit)
        yield
        first = {seq for seq, _ in order[:limit]}
        first |= {h.seq for h in hits[:limit]} | {seq for seq, _ in nearest[:limit]}
        scored = [p for p in shown if p.node.seq in first]
        chances = shares(ranked, self._config.certainty_scale)
        chosen = self._chosen(scored, dict(order), terms, vector)
        found.extend(replace(c, share=chances[c.node.seq]) for c in chosen)

    def _beside(self, hits: Sequence[LexicalHit], nearest: Sequence[Scored]) -> list[int]:
        """Places next to the best hits: an answer often has no word of its question."""
        few = self._ranking.neighbours_of // 2
        best = [*(h.seq for h in hits[:few]), *(seq for seq, _ in nearest[:few])]
        return [seq + step for seq in best for step in (-2, -1, 1, 2)]

    def _passages(
        self, seqs: Sequence[int], hits: Sequence[LexicalHit], *, neighbours: Sequence[int]
    ) -> list[Passage]:
        """The pool: what was found, and those neighbours that are of the same conversation or document."""
        stores = self._stores
        known = set(seqs)
        nodes = stores.timeline.recallable([*seqs, *(s for s in set(neighbours) - known)])
        groups = {group_of(nodes[seq]) for seq in seqs if seq in nodes}
        kept = {s: n for s, n in nodes.items() if s in known or group_of(n) in groups}
        keys = {hit.seq: hit for hit in hits}
        keys |= stores.lexical.keys([s for s in kept if s not in keys])
        vectors = stores.vectors.of(list(kept))
        return [
            Passage(node=node, key=keys.get(seq), vector=vectors.get(seq))
            for seq, node in sorted(kept.items())
        ]

    def _ranks(
        self, terms: Terms, vector: Vector | None, pool: Sequence[Passage]
    ) -> dict[int, float]:
        self._cohort.refresh()
        reading = None
        if vector is not None:
            reading = self._cohort.reading(vector, self._known_background(), terms.text)
        asked = Asked(
            text=terms.text,
            weights=terms.weights,
            reading=reading,
            length=self._cohort.length,
            now_ms=self._stores.clock.now_ms(),
        )
        return rank_all(asked, pool, self._ranking)

    def _chosen(
        self,
        passages: Sequence[Passage],
        ranks: Mapping[int, float],
        terms: Terms,
        vector: Vector | None,
    ) -> list[Candidate]:
        """The best by rank, by words and by meaning, scored for the gate."""
        standing = None if vector is None else self._standing(vector)
        found = [
            replace(
                self._candidate(p, terms, vector, standing),
                rank=ranks[p.node.seq],
                own=p.key.own if p.key else frozenset(),
            )
            for p in passages
        ]
        return sorted(found, key=by_rank)

    def _nearest(
        self, vector: Vector, limit: int, found: list[Scored], selection: Selection
    ) -> Iterator[None]:
        """By Chroma, or by the exact scan: for a selection, and when Chroma is out."""
        stores = self._stores
        if selection == EVERYTHING and wants_ann(stores):
            try:
                found.extend(stores.index.query(vector, limit))
            except Outage:
                self.vectors_out = True
            else:
                return
        yield from stores.scan.search(vector, limit, found, selection)

    def _known_background(self) -> NDArray[np.float32] | None:
        if self._background is None:
            self._background = self._stores.vectors.background()
        return self._background

    def _standing(self, vector: Vector) -> Standing:
        return Standing(
            self._known_background(),
            vector,
            nodes=self._stores.vectors.count(),
            epoch=self._stores.epoch,
            config=self._config,
        )

    def _candidate(
        self, passage: Passage, terms: Terms, vector: Vector | None, standing: Standing | None
    ) -> Candidate:
        similarity = None
        if standing is not None and vector is not None and passage.vector is not None:
            cosine = float(passage.vector @ vector)
            similarity = standing.similarity(cosine, passage.node.content)
        lexical = None if passage.key is None else self._words(passage.key, terms)
        return Candidate(
            node=passage.node,
            score=fuse(lexical, similarity, self._config),
            similarity=similarity,
            lexical=lexical,
            own=frozenset(),
        )

    def _words(self, key: LexicalHit, terms: Terms) -> float:
        """Coverage, less where what was found is common everywhere ("thanks")."""
        own = frozenset(t for t in terms.weights if key.times(t))
        near = frozenset(t for t in terms.weights if key.is_near(t))
        share = coverage(terms.weights, own, near, self._config.near_weight)
        if terms.nodes < _COMMON_FROM_NODES:
            return share
        carried = share * sum(terms.weights.values())
        needed = self._config.informative_share * math.log1p(terms.nodes)
        return share * min(1.0, carried / needed)


def _spread_over(node: Node) -> str:
    """Messages are spread over conversations; the passages of one document may all be wanted."""
    return group_of(node) if node.kind is NodeKind.MESSAGE else node.id


def by_score(candidate: Candidate) -> tuple[float, int]:
    """Sort key: best first, newest first among equals."""
    return (-candidate.score, -candidate.node.seq)


def by_rank(candidate: Candidate) -> tuple[float, int]:
    """Sort key: best rank first, newest first among equals."""
    return (-candidate.rank, -candidate.node.seq)


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
