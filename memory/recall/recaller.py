"""Recall: one question in, pages out, as a generator of requests.

Order: normalise → one embedding → hybrid search, inside its filters → evidence → vetoes → gate → learned pointers → (nothing yet)
the same with fewer filters → (nothing yet) substring scan.
Deterministic: the same stores and question give the same pages in the same order. Reads only; learning is told apart. Between
slices it yields `Yield`, so that a journal write never waits for a scan. Source: design 4.4.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from memory.recall.dates import Period, period
from memory.recall.evidence import Evidence
from memory.recall.gate import certainty
from memory.recall.hybrid import Candidate, HybridSearch, Terms, by_score, distinct
from memory.recall.neighbour_cache import NeighbourCache
from memory.recall.pointer_walk import PointerWalk, Question
from memory.recall.recent_queries import RecentQueries, RecentQuery, embedded
from memory.recall.substring_scan import ScanOutcome, needles, scan
from memory.requests import Operation, Yield
from memory.storage.selection import admits
from memory.storage.stores import Stores
from memory.storage.vectors import Vector
from memory.text import any_terms, asks, normalise
from memory.values import (
    NodeId,
    NodeKind,
    Page,
    RecallQuery,
    RecallResult,
    Role,
    Scope,
    Selection,
    Way,
)

_DRAWN = frozenset({NodeKind.KNOWLEDGE, NodeKind.SKILL})  # conclusions come after what they rest on


@dataclass(slots=True)
class _Run:
    """What one recall has seen so far. `answered`: a learned pointer of this very question leads to a page."""

    query: RecallQuery
    started_s: float
    candidates: int = 0
    scanned: int = 0
    best: float = 0.0
    beyond: float = 0.0
    certainty: float = 0.0
    answered: bool = False
    degraded: list[str] = field(default_factory=list)
    excluded: list[int] = field(default_factory=list)
    widened: tuple[str, ...] = ()


class Recaller:
    """Answers recall queries over open stores."""

    def __init__(self, stores: Stores) -> None:
        config = stores.config
        self._stores = stores
        self._config = config.recall
        self._merge = config.learning.merge
        self.cache = NeighbourCache(
            stores.pointers.edges,
            entries_max=config.learning.cache_entries,
            window=config.rest.fatigue_window,
        )
        self.recent = RecentQueries(self._config.query_cache)
        self._search = HybridSearch(stores)
        self._walk = PointerWalk(stores, self.cache)

    def forget(self) -> None:
        """Drops what is remembered of earlier questions: some of it may be of what was forgotten."""
        self.recent.clear()
        self.cache.clear()

    def recall(self, query: RecallQuery) -> Operation[RecallResult]:
        """Finds pages for a question; empty for an empty one, never "something recent"."""
        run = _Run(query, self._stores.clock.monotonic_s())
        text = self._normalised(query)
        if not text or query.pages_max < 1:
            return self._result(run, [])
        terms, vector = yield from self._asked(text, run)
        question = Question(text=text, vector=vector)
        evidence = Evidence(self._stores.timeline, text, query.exclude)
        limit = self._config.candidates_per_page * query.pages_max
        pages: list[Page] = []
        raw: list[Candidate] = []
        spoken = period(text, self._stores.clock.now_ms())
        for selection, run.widened in _selections(query, spoken):
            looked_up = terms
            if spoken is not None and selection.since_ms == spoken.since_ms:
                looked_up = self._search.terms(_without(text, spoken.words), run.excluded)
            raw = yield from self._candidates(looked_up, vector, run, limit, selection)
            pages = self._passing(raw, evidence, question, run)
            pointed = self._pointer_pages(raw, evidence, question)
            pointed = [p for p in pointed if admits(selection, p.node)]
            run.answered = any(p.score >= self._merge for p in pointed)
            pages = _merged(pages, pointed)
            if pages:
                break
        else:
            found = yield from self._scan(text, terms, evidence, question, run)
            pages = [p for p in found if admits(selection, p.node)]
        self._remember(text, vector, raw, query.exclude)
        return self._result(run, pages)

    def search(self, query: RecallQuery, limit: int) -> Operation[tuple[Page, ...]]:
        """The best `limit` nodes for a question, ranked, without gate, evidence or learned pointers; teaches nothing.

        Its filters are those that the query names; a date in the text is none. Where no index finds anything, what has the
        text as it stands.
        """
        run = _Run(query, self._stores.clock.monotonic_s())
        text = self._normalised(query)
        if not text or limit < 1:
            return ()
        terms, vector = yield from self._asked(text, run)
        selection = _selection(query)
        raw = yield from self._candidates(terms, vector, run, limit, selection)
        pages = [_page(c) for c in raw[:limit]]
        if not pages:
            seqs = yield from self._containing(text, terms, run, limit)
            nodes = self._stores.timeline.recallable(seqs)
            pages = [
                Page(node=nodes[s], way=Way.SCAN, score=1.0, reason="substring")
                for s in seqs
                if s in nodes and admits(selection, nodes[s]) and nodes[s].id not in query.exclude
            ]
        return tuple(pages)

    def _normalised(self, query: RecallQuery) -> str:
        return normalise(query.text)[: self._config.query_characters_max].strip()

    # --- steps

    def _asked(self, text: str, run: _Run) -> Operation[tuple[Terms, Vector | None]]:
        """The question's terms and its vector, which a text of symbols only has none of."""
        run.excluded = [
            n.seq for n in self._stores.timeline.nodes(sorted(run.query.exclude)).values()
        ]
        terms = self._search.terms(text, run.excluded)
        vector: Vector | None = None
        if any_terms(text):
            vector = yield from embedded(text, self.recent, self._stores.epoch.dimension)
            if vector is None:
                run.degraded.append("embedder")
        return terms, vector

    def _candidates(
        self, terms: Terms, vector: Vector | None, run: _Run, limit: int, selection: Selection
    ) -> Operation[list[Candidate]]:
        found: list[Candidate] = []
        for _ in self._search.search(terms, vector, limit + len(run.excluded), found, selection):
            yield Yield()
        if self._search.vectors_out and "vectors" not in run.degraded:
            run.degraded.append("vectors")
        run.beyond = max(0.0, 1.0 - sum(c.share for c in found))
        found = [c for c in found if c.node.id not in run.query.exclude]
        run.candidates = len(found)
        return found

    def _passing(
        self, raw: Sequence[Candidate], evidence: Evidence, question: Question, run: _Run
    ) -> list[Page]:
        """What may be shown, on the raw score, before any boost; and whether that is enough."""
        found = evidence.resolve(raw)
        vetoed = self._walk.vetoed([c.node.id for c in found], question)
        found = [c for c in found if c.node.id not in vetoed]
        run.best = max((c.score for c in found), default=0.0)
        stated = max((self._weight(c) * c.score for c in found), default=0.0)
        bar = max(self._config.gate, self._config.keep_ratio * stated)
        fit = [c for c in found if c.score >= bar]
        kept = distinct(fit, self._config.duplicate_overlap)
        ranked = sorted(kept, key=lambda c: (-self._boosted(c, run.query), -c.node.seq))
        shown = ranked[: run.query.pages_max]
        weak = [c for c in found if c.score < bar]
        others = [*ranked[len(shown) :], *weak]
        run.certainty = certainty(shown, others, beyond=run.beyond)
        return [_page(c) for c in ranked]

    def _weight(self, candidate: Candidate) -> float:
        """The user's plain statements weigh most: evidence, not echoes."""
        if candidate.node.role is Role.ASSISTANT or candidate.node.kind in _DRAWN:
            return self._config.assistant_weight
        return self._config.asking_weight if asks(candidate.node.content) else 1.0

    def _boosted(self, candidate: Candidate, query: RecallQuery) -> float:
        """Only re-ranks what has passed. Source: design 4.4 (source weights; access boost from cited results; project)."""
        factor = self._weight(candidate) * (
            1 + self._config.access_boost * math.log1p(candidate.node.hits)
        )
        if query.project_id is not None and candidate.node.project_id == query.project_id:
            factor *= self._config.project_boost
        return candidate.rank + self._config.boost_scale * math.log(factor)

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
        wanted = self._config.candidates_per_page * run.query.pages_max
        seqs = yield from self._containing(text, terms, run, wanted)
        nodes = self._stores.timeline.recallable(seqs)
        scores = {node.id: 1.0 for node in nodes.values() if node.id not in run.query.exclude}
        return self._pages(scores, evidence, question, way=Way.SCAN, reason="substring")

    def _containing(self, text: str, terms: Terms, run: _Run, wanted: int) -> Operation[list[int]]:
        """Sequence numbers of nodes that contain the text, newest first."""
        config = self._config
        unseen = None if terms.searched else terms.unseen
        whole, parts = needles(text, unseen, config.scan_needle_min)
        limits = (wanted, config.scan_rows_max, config.scan_slice_rows)
        outcome = ScanOutcome()
        for _ in scan(self._stores.timeline, whole, parts, outcome, limits=limits):
            yield Yield()
        run.scanned = outcome.read
        return outcome.seqs

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
            passed_gate=run.answered or run.certainty >= self._config.sure,
            best_score=run.best,
            certainty=run.certainty,
            candidates_seen=run.candidates,
            scanned=run.scanned,
            elapsed_ms=elapsed_s * 1000,
            degraded=tuple(run.degraded),
            widened=run.widened,
        )


def _selection(query: RecallQuery) -> Selection:
    """The filters that a query names."""
    return Selection(
        kinds=query.kinds,
        project_id=query.project_id if query.scope is Scope.PROJECT else None,
        since_ms=query.since_ms,
        until_ms=query.until_ms,
    )


def _selections(
    query: RecallQuery, spoken: Period | None
) -> Iterator[tuple[Selection, tuple[str, ...]]]:
    """What to search, narrow first, and which filters were lifted for it: those that nobody set by hand."""
    asked = dated = _selection(query)
    if spoken is not None and query.since_ms is None and query.until_ms is None:
        dated = replace(asked, since_ms=spoken.since_ms, until_ms=spoken.until_ms)
    yield dated, ()
    lifted: tuple[str, ...] = ()
    if dated != asked:
        lifted = ("dates",)
        yield asked, lifted
    if asked.project_id is not None:
        yield replace(asked, project_id=None), (*lifted, "project")


def _without(text: str, words: str) -> str:
    """A question without the words that name its date: they bound the search, and stand in few answers."""
    return re.sub(re.escape(words), " ", text, flags=re.IGNORECASE)


def _page(candidate: Candidate) -> Page:
    return Page(
        node=candidate.node,
        way=Way.RAG,
        score=candidate.score,
        similarity=candidate.similarity,
        lexical=candidate.lexical,
        reason=candidate.reason,
    )


def _merged(first: Sequence[Page], second: Sequence[Page]) -> list[Page]:
    """Pages of both ways; a node found twice keeps its first way. Rag pages keep their order, pointers follow by score."""
    seen = {page.node.id for page in first}
    return [*first, *(page for page in second if page.node.id not in seen)]
