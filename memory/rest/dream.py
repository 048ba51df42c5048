"""Dream: pays a debt of the ledger, one bounded visit at a time.

What is left of the fragment is cut into spans, the span with the best candidate is read first, at most `dream_nodes` nodes per visit.
Reading and learning are those of a search of the past (`Court`): relevant → edge from the entry, only answered nodes are stained,
one event per batch. The event carries the debt's progress and moves it to the end of the queue, so that a kill loses at most the
batch in flight and nothing is paid twice. An unknown verdict and a judge who is out change nothing; what the judge was unsure of
is not asked again before `new_round`. Source: design 4.6, G27 without the defects 1.12-3b, -4 and -5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from memory.config import RagMode
from memory.events import RestProgress
from memory.recall.evidence import Evidence
from memory.recall.exact_run import Court, Debt, Run, Teacher
from memory.recall.hybrid import Candidate, HybridSearch
from memory.recall.neighbour_cache import NeighbourCache
from memory.recall.past_scan import Batch, PastScan
from memory.recall.pointer_walk import PointerWalk, Question
from memory.recall.recent_queries import RecentQueries, embedded
from memory.requests import Operation, Yield
from memory.rest_values import Cause, DreamReport, RestOutcome
from memory.storage import intervals
from memory.storage.intervals import Intervals
from memory.storage.pointer_records import Book, Fragment
from memory.storage.reading_fold import answered
from memory.storage.stores import Stores
from memory.text import any_terms
from memory.values import DebtId, DebtState, ExactQuery, Way, debt_id

_UNLIMITED: Final = 1 << 30  # the visit counts for itself
Name = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class _Visit:
    """One visit while it goes on. `complete` says that the spans hold all that can be read of the debt."""

    fragment: Fragment
    run: Run
    before: int
    spans: list[Batch] = field(default_factory=list)
    complete: bool = False


class Dreamer:
    """Pays debts. What it keeps in memory – whom the judge was unsure of – may be lost: it costs a few judgements."""

    def __init__(
        self, stores: Stores, cache: NeighbourCache, recent: RecentQueries, teacher: Teacher
    ) -> None:
        config = stores.config
        self._stores = stores
        self._config = config.rest
        self._recent = recent
        self._walk = PointerWalk(stores, cache)
        self._court = Court(stores, teacher)
        linear = replace(config, vectors=replace(config.vectors, rag_mode=RagMode.LINEAR))
        self._search = HybridSearch(replace(stores, config=linear))
        self._unsure: dict[Name, set[int]] = {}
        self._stuck: dict[
            Name, int
        ] = {}  # what was left of a debt when no answer came to any of it

    # --- the queue

    def next(self) -> Fragment | None:
        """The first debt of the queue that is not known to be stuck."""
        for fragment in self._stores.pointers.ledger().fragments:
            if not self._is_stuck(fragment):
                return fragment
        return None

    def new_round(self) -> None:
        """What the judge was unsure of may be asked again."""
        self._unsure.clear()
        self._stuck.clear()

    def state(self, fragment: Fragment, left: int) -> DebtState:
        """For showing the ledger; `left` places of it are unread."""
        if self._stuck.get(fragment.name) == left:
            return DebtState.UNSURE
        low, high = fragment.gap
        return DebtState.WAITING if left == high - low + 1 else DebtState.STARTED

    def _is_stuck(self, fragment: Fragment) -> bool:
        stuck = self._stuck.get(fragment.name)
        return stuck is not None and stuck == intervals.size(self._left(fragment))

    def _covered(self, fragment: Fragment) -> Intervals:
        books = answered(self._stores.pointers.cluster(fragment.query))
        return intervals.united(books, fragment.read)

    def _left(self, fragment: Fragment) -> Intervals:
        return intervals.remaining(fragment.gap, self._covered(fragment))

    def _open(self, name: Name) -> Fragment | None:
        fragments = self._stores.pointers.ledger().fragments
        return next((f for f in fragments if f.name == name), None)

    def _wanted(self, debt: DebtId | None) -> Fragment | None:
        if debt is None:
            return self.next()
        fragments = self._stores.pointers.ledger().fragments
        return next((f for f in fragments if debt_id(*f.name) == debt), None)

    # --- a visit

    def visit(self, debt: DebtId | None = None) -> Operation[DreamReport]:
        """Pays on one debt; None: on the next one of the queue."""
        fragment = self._wanted(debt)
        if fragment is None:
            return DreamReport(outcome=RestOutcome.EMPTY, debt_id=debt)
        visit = self._begin(fragment)
        yield from self._survey(visit)
        if visit.spans:
            yield from self._court.convene(visit.run)
            if not visit.run.trusted:
                absent = not visit.run.judge
                return self._report(
                    visit, RestOutcome.JUDGE_OUT if absent else RestOutcome.SUGGESTS
                )
            yield from self._order(visit)
            yield from self._read(visit)
        return self._finish(visit)

    def _begin(self, fragment: Fragment) -> _Visit:
        stores = self._stores
        text = stores.log.texts([fragment.query]).get(fragment.query, "")
        entry = stores.timeline.node_at(fragment.entry)
        run = Run(
            query=ExactQuery(
                text=text,
                question_id=None if entry is None else entry.id,
                rejected=stores.log.taken_back(fragment.query),
                judgements_max=_UNLIMITED,
            ),
            question=Question(text=text, vector=stores.log.vector(fragment.query)),
            evidence=Evidence(stores.timeline, text, frozenset()),
            started_s=stores.clock.monotonic_s(),
            newest=stores.timeline.last_seq(),
            cluster=fragment.query,
            book=Book(no=self._covered(fragment)),
            seen=set(self._unsure.get(fragment.name, ())),
            cause=Cause.DREAM,
            debt=Debt(entry=fragment.entry, target=fragment.target),
        )
        return _Visit(fragment=fragment, run=run, before=intervals.size(self._left(fragment)))

    def _survey(self, visit: _Visit) -> Operation[None]:
        """Cuts what is left into spans, newest first."""
        first, last = visit.fragment.gap
        scan = PastScan(self._stores, self._walk, visit.run, first - 1)
        cursor = last + 1
        while len(visit.spans) < self._config.dream_spans and not visit.complete:
            span = Batch(cursor=cursor)
            for _ in scan.fill(span, self._config.dream_batch):
                yield Yield()
            cursor = span.cursor
            visit.complete = span.ended
            if span.leads:
                visit.spans.append(span)

    def _order(self, visit: _Visit) -> Operation[None]:
        """Spans by their best candidate; those without one keep their order."""
        run = visit.run
        text, vector = run.question.text, run.question.vector
        if vector is None and any_terms(text):
            vector = yield from embedded(text, self._recent, self._stores.epoch.dimension)
            run.question = Question(text=text, vector=vector)
        found: list[Candidate] = []
        limit = self._stores.config.ranking.pool
        for _ in self._search.search(self._search.terms(text, ()), vector, limit, found):
            yield Yield()
        ranks = {candidate.node.seq: candidate.rank for candidate in found}
        visit.spans.sort(
            key=lambda span: max(ranks.get(lead.node.seq, -math.inf) for lead in span.leads),
            reverse=True,
        )

    def _read(self, visit: _Visit) -> Operation[None]:
        run, most = visit.run, self._config.dream_nodes
        for span in self._unpaid(visit):
            leads = span.leads[: most - run.judged]
            yield from self._court.judge(run, leads, way=Way.SCAN, reason="dream", dead=span.dead)
            self._tell(visit)
            if run.judged >= most or not run.trusted:
                return

    def _unpaid(self, visit: _Visit) -> Iterator[Batch]:
        """Spans as they are when their turn comes: a search of the user's may have read there meanwhile, or an undo undone it."""
        for span in visit.spans:
            fragment = self._open(visit.fragment.name)
            if fragment is None:
                return
            covered = self._covered(fragment)
            visit.run.book = Book(no=covered)
            leads = [n for n in span.leads if intervals.holding(covered, n.node.seq) is None]
            if leads:
                yield replace(span, leads=leads)

    def _tell(self, visit: _Visit) -> None:
        fragment = self._open(visit.fragment.name)
        self._stores.sink.emit(
            RestProgress(
                activity=Cause.DREAM,
                debt_id=debt_id(*visit.fragment.name),
                judged=visit.run.judged,
                discoveries=len(visit.run.pages),
                remaining=0 if fragment is None else intervals.size(self._left(fragment)),
                debts_open=len(self._stores.pointers.ledger().fragments),
            )
        )

    # --- its end

    def _finish(self, visit: _Visit) -> DreamReport:
        run, name = visit.run, visit.fragment.name
        fragment = self._open(name)
        left = () if fragment is None else self._left(fragment)
        unsure = {seq for seq in run.seen if intervals.holding(left, seq) is not None}
        unread = any(
            intervals.holding(left, lead.node.seq) is not None
            for span in visit.spans
            for lead in span.leads
        )
        if left and visit.complete and not unread and not unsure:
            self._court.pass_over(run, left)
            left = ()
        self._note(name, left, unsure)
        if not left:
            return self._report(visit, RestOutcome.DONE)
        if run.answered and intervals.size(left) < visit.before:
            return self._report(visit, RestOutcome.PARTLY)
        if not run.judge and visit.spans:
            return self._report(visit, RestOutcome.JUDGE_OUT)
        self._stuck[name] = intervals.size(left)
        return self._report(visit, RestOutcome.UNSURE)

    def _note(self, name: Name, left: Intervals, unsure: set[int]) -> None:
        self._stuck.pop(name, None)
        self._unsure.pop(name, None)
        if left and unsure:
            self._unsure[name] = unsure

    def _report(self, visit: _Visit, outcome: RestOutcome) -> DreamReport:
        fragment = self._open(visit.fragment.name)
        return DreamReport(
            outcome=outcome,
            debt_id=debt_id(*visit.fragment.name),
            judged=visit.run.judged,
            answered=visit.run.answered,
            discoveries=tuple(page.node.id for page in visit.run.pages),
            remaining=0 if fragment is None else intervals.size(self._left(fragment)),
        )
