"""Dream: pays a debt of the ledger, one bounded visit at a time.

What is left of the fragment is cut into spans, the span with the best candidate is read first, at most `dream_nodes` nodes per visit.
Reading and learning are those of a search of the past (`Court`): relevant → edge from the entry, only answered nodes are stained,
one event per batch. The event carries the debt's progress and moves it to the end of the queue, so that a kill loses at most the
batch in flight and nothing is paid twice. A judge who is out changes nothing.

An unknown verdict stains nothing and refuses nothing. When all of the debt was read, the nodes that got one are looked at once more,
among their neighbours. What is unknown then has no answer from this judge, who would say the same for ever: the debt is put aside
with an event of its own. Searches read those nodes as before; another judge (`reopen`) or the user opens the debt again.
Source: design 4.6, G27 without the defects 1.12-3b, -4 and -5.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from typing import Final

from memory.config import RagMode
from memory.events import RestProgress
from memory.recall.evidence import Evidence
from memory.recall.exact_run import Court, Debt, Lead, Run, Teacher
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
from memory.values import DebtId, ExactQuery, Node, Way, debt_id

_UNLIMITED: Final = 1 << 30  # the visit counts for itself
Name = tuple[int, int]


@dataclass(slots=True, kw_only=True)
class _Looks:
    """Of which nodes of a debt a judge was unsure, at the first look and at the second."""

    judge: str = ""
    once: set[int] = field(default_factory=set)
    twice: set[int] = field(default_factory=set)


@dataclass(slots=True, kw_only=True)
class _Visit:
    """One visit while it goes on. `complete` says that the spans hold all that can be read of the debt."""

    fragment: Fragment
    run: Run
    before: int
    looks: _Looks = field(default_factory=_Looks)
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
        self._looks: dict[Name, _Looks] = {}
        self._stuck: dict[Name, int] = {}  # what was left of a debt when a visit changed nothing

    # --- the queue

    def next(self) -> Fragment | None:
        """The first debt of the queue that is not known to be stuck."""
        for fragment in self._stores.pointers.ledger().fragments:
            if not self._is_stuck(fragment):
                return fragment
        return None

    def new_round(self) -> None:
        """What was stuck – a pointer store that could not be written – may be tried again."""
        self._stuck.clear()

    def _is_stuck(self, fragment: Fragment) -> bool:
        stuck = self._stuck.get(fragment.name)
        return stuck is not None and stuck == intervals.size(self._left(fragment))

    def _covered(self, fragment: Fragment) -> Intervals:
        books = answered(self._stores.pointers.cluster(fragment.query))
        return intervals.united(books, fragment.read)

    def _left(self, fragment: Fragment) -> Intervals:
        return intervals.remaining(fragment.gap, self._covered(fragment))

    def _open(self, name: Name) -> Fragment | None:
        """A debt as it is now, also one that was put aside."""
        ledger = self._stores.pointers.ledger()
        return next((f for f in (*ledger.fragments, *ledger.unclear) if f.name == name), None)

    def _wanted(self, debt: DebtId | None) -> Fragment | None:
        if debt is None:
            return self.next()
        ledger = self._stores.pointers.ledger()
        every = (*ledger.fragments, *ledger.unclear)
        return next((f for f in every if debt_id(*f.name) == debt), None)

    def reopen(self) -> Operation[int]:
        """Debts that were put aside, and that the judge of their question has not read, are owed again; how many."""
        opened = 0
        for fragment in self._stores.pointers.ledger().unclear:
            run = self._begin(fragment).run
            yield from self._court.convene(run)
            now = self._open(fragment.name)
            if run.trusted and now is not None and now.judges and run.judge not in now.judges:
                self._court.reopen(run)
                opened += 1
        return opened

    # --- a visit

    def visit(self, debt: DebtId | None = None) -> Operation[DreamReport]:
        """Pays on one debt; None: on the next one of the queue."""
        fragment = self._wanted(debt)
        if fragment is None:
            return DreamReport(outcome=RestOutcome.EMPTY, debt_id=debt)
        visit = self._begin(fragment)
        yield from self._court.convene(visit.run)
        self._remember(visit)
        yield from self._survey(visit)
        if visit.spans or self._unsure(visit):
            if not visit.run.trusted:
                absent = not visit.run.judge
                return self._report(
                    visit, RestOutcome.JUDGE_OUT if absent else RestOutcome.SUGGESTS
                )
            yield from self._order(visit)
            yield from self._read(visit)
            yield from self._look_again(visit)
        return self._finish(visit)

    def _remember(self, visit: _Visit) -> None:
        """Whom this judge was unsure of; what another one has said of them is nothing to it."""
        known = self._looks.get(visit.fragment.name)
        if known is not None and visit.run.judge in ("", known.judge):
            visit.looks = known
        elif visit.run.judge:
            visit.looks = self._looks[visit.fragment.name] = _Looks(judge=visit.run.judge)
        visit.run.seen |= visit.looks.once

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

    def _unread(self, visit: _Visit, left: Intervals) -> bool:
        """Whether there is more of it than was read: beyond the spans, or in them."""
        return not visit.complete or any(
            lead.node.seq not in visit.run.seen
            and intervals.holding(left, lead.node.seq) is not None
            for span in visit.spans
            for lead in span.leads
        )

    def _unsure(self, visit: _Visit) -> list[Node]:
        """Newest first, what is left of it unknown after one look; what can be no answer any more is none of them."""
        fragment = self._open(visit.fragment.name)
        left = () if fragment is None else self._left(fragment)
        seqs = [s for s in visit.run.seen if intervals.holding(left, s) is not None]
        visit.looks.once = set(seqs)
        nodes = self._stores.timeline.recallable(seqs) if seqs else {}
        return [nodes[s] for s in sorted(nodes, reverse=True) if s not in visit.looks.twice]

    def _look_again(self, visit: _Visit) -> Operation[None]:
        """When all was read once: what is unknown is read once more, among its neighbours."""
        run, most = visit.run, self._config.dream_nodes
        while run.trusted and run.judged < most:
            fragment = self._open(visit.fragment.name)
            if fragment is None or self._unread(visit, self._left(fragment)):
                return
            nodes = self._unsure(visit)[: min(self._config.dream_batch, most - run.judged)]
            if not nodes:
                return
            leads = [Lead(node=node, around=self._around(visit, node)) for node in nodes]
            yield from self._court.judge(run, leads, way=Way.SCAN, reason="dream")
            if run.judge:
                visit.looks.twice |= {node.seq for node in nodes}
            self._tell(visit)

    def _around(self, visit: _Visit, node: Node) -> tuple[Node | None, Node | None]:
        """Its neighbours. One that answers by itself would answer for this node too, and is left out; so is the question."""
        books = self._stores.pointers.cluster(visit.fragment.query).books.values()
        answers = {seq for book in books for seq, _ in book.yes}
        before, after = (
            None if n is None or n.seq in answers or n.id == visit.run.query.question_id else n
            for n in self._stores.timeline.neighbours(node)
        )
        return before, after

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
        unsure = self._unsure(visit)
        fragment = self._open(name)
        left = () if fragment is None else self._left(fragment)
        if fragment is not None and left and not unsure and not self._unread(visit, left):
            return self._settle(visit, fragment, left)
        self._stuck.pop(name, None)
        if not left:
            self._looks.pop(name, None)
            return self._report(visit, RestOutcome.DONE)
        if run.judge and not run.judged:
            self._stuck[name] = intervals.size(left)
        fewer = run.answered and intervals.size(left) < visit.before
        heard = run.judge or fewer
        return self._report(visit, RestOutcome.PARTLY if heard else RestOutcome.JUDGE_OUT)

    def _settle(self, visit: _Visit, fragment: Fragment, left: Intervals) -> DreamReport:
        """All was read: it is paid, or put aside for what is unclear. A debt that this judge has put aside already stays as it is."""
        pointers, name = self._stores.pointers, fragment.name
        nodes = self._stores.timeline.recallable(sorted(visit.looks.twice))
        unclear = intervals.of(s for s in nodes if intervals.holding(left, s) is not None)
        if unclear and not visit.run.trusted:
            return self._report(visit, RestOutcome.JUDGE_OUT)
        passed = tuple(p for part in left for p in intervals.remaining(part, unclear))
        aside = fragment in pointers.ledger().unclear and visit.run.judge in fragment.judges
        if passed or not aside:
            self._court.settle(visit.run, passed, unclear)
        self._looks.pop(name, None)
        self._stuck.pop(name, None)
        if any(f.name == name for f in pointers.ledger().fragments):
            self._stuck[name] = intervals.size(left)  # the event is durable, and not folded
        outcome = RestOutcome.UNSURE if unclear else RestOutcome.DONE
        return replace(self._report(visit, outcome), unclear=intervals.size(unclear))

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
