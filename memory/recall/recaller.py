"""Recall: one question in, pages out, as a generator of requests.

Order: normalise → one embedding → hybrid search → evidence → vetoes → gate → learned pointers → (nothing yet) substring scan.
Deterministic: the same stores and question give the same pages in the same order. Reads only; learning is told apart. Between
slices it yields `Yield`, so that a journal write never waits for a scan. Source: design 4.4.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from memory.errors import require
from memory.recall.evidence import Evidence
from memory.recall.hybrid import Candidate, HybridSearch, Terms, by_score, distinct
from memory.recall.neighbour_cache import NeighbourCache
from memory.recall.pointer_walk import PointerWalk, Question
from memory.recall.recent_queries import RecentQueries, RecentQuery
from memory.recall.substring_scan import ScanOutcome, needles, scan
from memory.requests import EmbedKind, NeedEmbeddings, Operation, Yield
from memory.storage.stores import Stores
from memory.storage.vectors import Vector
from memory.text import any_terms, asks, normalise
from memory.values import NodeId, Page, RecallQuery, RecallResult, Role, Way


@dataclass(slots=True)
class _Run:
    """What one recall has seen so far."""

    query: RecallQuery
    started_s: float
    candidates: int = 0
    scanned: int = 0
    best: float = 0.0
    degraded: list[str] = field(default_factory=list)


class Recaller:
    """Answers recall queries over open stores."""

    def __init__(self, stores: Stores) -> None:
        config = stores.config
        self._stores = stores
        self._config = config.recall
        self.cache = NeighbourCache(
            stores.pointers.edges,
            entries_max=config.learning.cache_entries,
            window=config.rest.fatigue_window,
        )
        self.recent = RecentQueries(self._config.query_cache)
        self._search = HybridSearch(stores)
        self._walk = PointerWalk(stores, self.cache)

    def recall(self, query: RecallQuery) -> Operation[RecallResult]:
        """Finds pages for a question; empty for an empty one, never "something recent"."""
        run = _Run(query, self._stores.clock.monotonic_s())
        text = normalise(query.text)[: self._config.query_characters_max].strip()
        if not text or query.pages_max < 1:
            return self._result(run, [])
        excluded = [n.seq for n in self._stores.timeline.nodes(sorted(query.exclude)).values()]
        terms = self._search.terms(text, excluded)
        vector = (yield from self._embed(text, run)) if any_terms(text) else None
        question = Question(text=text, vector=vector)
        raw = yield from self._candidates(terms, vector, run, len(excluded))
        evidence = Evidence(self._stores.timeline, text, query.exclude)
        pages = self._passing(raw, evidence, question, run)
        pages = _merged(pages, self._pointer_pages(raw, evidence, question))
        if not pages:
            pages = yield from self._scan(text, terms, evidence, question, run)
        self._remember(text, vector, raw, query.exclude)
        return self._result(run, pages)

    # --- steps

    def _embed(self, text: str, run: _Run) -> Operation[Vector | None]:
        known = self.recent.find(text)
        if known is not None and known.vector is not None:
            return known.vector
        reply = yield NeedEmbeddings(texts=(text,), kind=EmbedKind.QUERY)
        if reply is None:
            run.degraded.append("embedder")
            return None
        require(isinstance(reply, np.ndarray), "an embedding request was answered otherwise")
        assert isinstance(reply, np.ndarray)
        require(reply.shape == (1, self._stores.epoch.dimension), "a vector of a wrong shape")
        vector: Vector = reply[0].astype(np.float32)
        return vector

    def _candidates(
        self, terms: Terms, vector: Vector | None, run: _Run, excluded: int
    ) -> Operation[list[Candidate]]:
        limit = self._config.candidates_per_page * run.query.pages_max + excluded
        found: list[Candidate] = []
        for _ in self._search.search(terms, vector, limit, found):
            yield Yield()
        if self._search.vectors_out:
            run.degraded.append("vectors")
        found = [c for c in found if c.node.id not in run.query.exclude]
        run.candidates = len(found)
        return found

    def _passing(
        self, raw: Sequence[Candidate], evidence: Evidence, question: Question, run: _Run
    ) -> list[Page]:
        """The gate: on the raw score, before any boost."""
        found = evidence.resolve(raw)
        vetoed = self._walk.vetoed([c.node.id for c in found], question)
        found = [c for c in found if c.node.id not in vetoed]
        run.best = found[0].score if found else 0.0
        stated = max((self._weight(c) * c.score for c in found), default=0.0)
        bar = max(self._config.gate, self._config.keep_ratio * stated)
        kept = distinct([c for c in found if c.score >= bar], self._config.duplicate_overlap)
        ranked = sorted(kept, key=lambda c: (-self._boosted(c, run.query), -c.node.seq))
        return [
            Page(
                node=c.node,
                way=Way.RAG,
                score=c.score,
                similarity=c.similarity,
                lexical=c.lexical,
                reason=c.reason,
            )
            for c in ranked
        ]

    def _weight(self, candidate: Candidate) -> float:
        """The user's plain statements weigh most: evidence, not echoes."""
        if candidate.node.role is Role.ASSISTANT:
            return self._config.assistant_weight
        return self._config.asking_weight if asks(candidate.node.content) else 1.0

    def _boosted(self, candidate: Candidate, query: RecallQuery) -> float:
        """Only re-ranks what has passed. Source: design 4.4 (source weights; access boost from cited results; project)."""
        score = (self._weight(candidate) * candidate.score) * (
            1 + self._config.access_boost * math.log1p(candidate.node.hits)
        )
        same = query.project_id is not None and candidate.node.project_id == query.project_id
        return score * self._config.project_boost if same else score

    def _pointer_pages(
        self, raw: Sequence[Candidate], evidence: Evidence, question: Question
    ) -> list[Page]:
        entries = [c.node.id for c in raw[: self._config.entries]]
        targets = self._walk.follow(entries, question)
        return self._pages(targets, evidence, question, way=Way.POINTER, reason="edge")

    def _pages(
        self,
        scores: Mapping[NodeId, float],
        evidence: Evidence,
        question: Question,
        *,
        way: Way,
        reason: str,
    ) -> list[Page]:
        """Pages for nodes that a way other than rag has found; the rules of evidence hold here too."""
        found = self._stores.timeline.nodes(sorted(scores))
        recallable = self._stores.timeline.recallable([n.seq for n in found.values()])
        candidates = [
            Candidate(
                node=node,
                score=scores[node.id],
                similarity=None,
                lexical=None,
                own=frozenset(),
                reason=reason,
            )
            for node in recallable.values()
        ]
        resolved = evidence.resolve(sorted(candidates, key=by_score))
        vetoed = self._walk.vetoed([c.node.id for c in resolved], question)
        return [
            Page(node=c.node, way=way, score=c.score, reason=c.reason)
            for c in distinct(resolved, self._config.duplicate_overlap)
            if c.node.id not in vetoed
        ]

    def _scan(
        self, text: str, terms: Terms, evidence: Evidence, question: Question, run: _Run
    ) -> Operation[list[Page]]:
        config = self._config
        unseen = None if terms.searched else terms.unseen
        whole, parts = needles(text, unseen, config.scan_needle_min)
        wanted = config.candidates_per_page * run.query.pages_max
        limits = (wanted, config.scan_rows_max, config.scan_slice_rows)
        outcome = ScanOutcome()
        for _ in scan(self._stores.timeline, whole, parts, outcome, limits=limits):
            yield Yield()
        run.scanned = outcome.read
        nodes = self._stores.timeline.recallable(outcome.seqs)
        scores = {node.id: 1.0 for node in nodes.values() if node.id not in run.query.exclude}
        return self._pages(scores, evidence, question, way=Way.SCAN, reason="substring")

    def _remember(
        self,
        text: str,
        vector: Vector | None,
        raw: Sequence[Candidate],
        exclude: Iterable[NodeId],
    ) -> None:
        entries = tuple(c.node.id for c in raw if c.node.id not in set(exclude))
        self.recent.remember(
            text, RecentQuery(vector=vector, entries=entries[: self._config.entries_learned])
        )

    def _result(self, run: _Run, pages: Sequence[Page]) -> RecallResult:
        resident = run.query.resident
        shown = [
            replace(page, resident=page.node.id in resident)
            for page in pages[: run.query.pages_max]
        ]
        elapsed_s = self._stores.clock.monotonic_s() - run.started_s
        return RecallResult(
            pages=tuple(shown),
            passed_gate=run.best >= self._config.gate,
            best_score=run.best,
            candidates_seen=run.candidates,
            scanned=run.scanned,
            elapsed_ms=elapsed_s * 1000,
            degraded=tuple(run.degraded),
        )


def _merged(first: Sequence[Page], second: Sequence[Page]) -> list[Page]:
    """Pages of both ways; a node found twice keeps its first way. Rag pages keep their order, pointers follow by score."""
    seen = {page.node.id for page in first}
    return [*first, *(page for page in second if page.node.id not in seen)]
