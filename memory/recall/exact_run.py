"""One search of the past while it runs: what it may still spend, whom it has asked, what it has found.

Verdicts are three-valued: an unknown one, and a judge who is out, change nothing. What was answered is handed on as one
`Reading` per batch, and only when the judge is trusted.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final, Protocol

from memory.errors import require
from memory.recall.evidence import Evidence
from memory.recall.heading import HEADING_VERSION, headed, in_context
from memory.recall.hybrid import Candidate
from memory.recall.pointer_walk import Question
from memory.requests import Judgement, NeedVerdicts, Operation, Verdict
from memory.rest_values import Cause
from memory.storage.intervals import Intervals, of, remaining, united
from memory.storage.learning_log import Pulled, Reading
from memory.storage.pointer_records import Book
from memory.storage.stores import Stores
from memory.text import TERMS_VERSION
from memory.values import ExactQuery, ExactResult, Node, NodeId, Page, Way

JUDGE: Final = "judge"  # the name of one that does not answer


class Teacher(Protocol):
    """Takes what a search has learned."""

    def read(
        self,
        question: Question,
        *,
        cluster: int | None,
        sources: Sequence[NodeId],
        found: Sequence[NodeId],
        reading: Reading,
        cause: Cause,
    ) -> int:
        """One batch: durable when it returns. Without a cluster the question begins one; returns the cluster."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Lead:
    """A node to be judged or returned, and the nodes whose pointers led to it. `around` (before, after) is for a second look."""

    node: Node
    sources: tuple[NodeId, ...] = ()
    similarity: float | None = None
    lexical: float | None = None
    around: tuple[Node | None, Node | None] | None = None

    def text(self, question: str) -> str:
        """What the judge reads of it."""
        if self.around is None:
            return headed(self.node, question)
        return in_context(self.node, *self.around, question)


@dataclass(frozen=True, slots=True, kw_only=True)
class Debt:
    """The fragment that a search pays on."""

    entry: int
    target: int

    def left(self, covered: Intervals) -> Intervals:
        """What is unread of it."""
        low, high = sorted((self.entry, self.target))
        return remaining((low + 1, high - 1), covered)


@dataclass(slots=True, kw_only=True)
class Run:
    """The state of one search. `cursor` is where the scan stands (0: it did not begin).

    `same` is false while the wording is only near those of its cluster, and was never judged itself.
    """

    query: ExactQuery
    question: Question
    evidence: Evidence
    started_s: float
    newest: int
    entries: Sequence[Candidate] = ()
    cluster: int | None = None
    wording: int | None = None
    same: bool = True
    book: Book = field(default_factory=Book)
    judge: str = ""
    trusted: bool = False
    seen: set[int] = field(default_factory=set)
    pages: list[Page] = field(default_factory=list)
    judged: int = 0
    answered: int = 0
    pause_noted: bool = False
    cached: int = 0
    notes_read: int = 0
    cursor: int = 0
    complete: bool = False
    degraded: list[str] = field(default_factory=list)
    cause: Cause = Cause.SEARCH
    debt: Debt | None = None

    @property
    def waits(self) -> bool:
        """True when an earlier search used up its budget, and nobody has asked for more."""
        query = self.query
        return query.before_seq is None and not query.forced and self.book.cursor > 0

    @property
    def scan_begun(self) -> bool:
        """False while the entries are still to be judged, also when an earlier slice of this search was used up by them."""
        at, book = self.query.before_seq, self.book
        return at is not None and not at == book.cursor == book.newest + 1

    @property
    def sources(self) -> tuple[NodeId, ...]:
        """Where learned edges start: the question, then the entries, best first."""
        own = () if self.query.question_id is None else (self.query.question_id,)
        return (*own, *(c.node.id for c in self.entries))


class Court:
    """Puts nodes before the judge, and hands on what is learned."""

    def __init__(self, stores: Stores, teacher: Teacher) -> None:
        self._stores = stores
        self._teacher = teacher

    def convene(self, run: Run) -> Operation[None]:
        """Asks who judges: remembered verdicts hold for one judge."""
        reply = yield NeedVerdicts(query=run.question.text, candidates=())
        self._hear(run, reply)

    def exhausted(self, run: Run) -> bool:
        """True when the budget is used up."""
        if run.judged >= run.query.judgements_max:
            return True
        return run.query.budget_s is not None and self.elapsed_s(run) >= run.query.budget_s

    def elapsed_s(self, run: Run) -> float:
        """Since the search began."""
        return self._stores.clock.monotonic_s() - run.started_s

    def try_leads(
        self, run: Run, leads: Sequence[Lead], way: Way, reason: str, *, size: int
    ) -> Operation[None]:
        """Judges in batches of `size` until one is answered yes, the budget is used up or the judge goes out."""
        at = 0
        while at < len(leads) and run.judge and not run.pages and not self.exhausted(run):
            batch = leads[at : at + min(size, run.query.judgements_max - run.judged)]
            at += len(batch)
            yield from self.judge(run, batch, way=way, reason=reason)

    def judge(
        self, run: Run, batch: Sequence[Lead], *, way: Way, reason: str, dead: Sequence[int] = ()
    ) -> Operation[None]:
        """One batch. `dead` are nodes beside it that can never be an answer: a stain may span them."""
        judgement = yield from self.ask(run, batch)
        if judgement is None:
            return
        run.judged += len(batch)
        run.seen.update(lead.node.seq for lead in batch)
        answers = list(zip(batch, judgement.verdicts, strict=True))
        yes = [lead for lead, verdict in answers if verdict is Verdict.YES]
        no = [lead for lead, verdict in answers if verdict is Verdict.NO]
        run.pages.extend(page_of(lead, way, reason) for lead in yes)
        if run.trusted and (yes or no):
            run.answered += len(yes) + len(no)
            self._learn(run, yes, no, dead=dead, jumped=way in (Way.POINTER, Way.ANCHOR))

    def ask(self, run: Run, batch: Sequence[Lead]) -> Operation[Judgement | None]:
        """What the judge says of a batch; teaches nothing."""
        text = run.question.text
        reply = yield NeedVerdicts(
            query=text,
            candidates=tuple((lead.node.id, lead.text(text)) for lead in batch),
        )
        judgement = self._hear(run, reply)
        if judgement is not None:
            require(len(judgement.verdicts) == len(batch), "one verdict per candidate is needed")
        return judgement

    def jumped(self, run: Run, leads: Sequence[Lead]) -> None:
        """Found without a judge. A search whose judge is out, or only suggests, leaves no trace of it either."""
        if run.trusted and leads:
            reading = Reading(
                light=tuple(lead.node.seq for lead in leads),
                fragments=self._fragments(leads),
                anchors=self._pulled(run, leads),
            )
            self._tell(run, reading)

    def note_pause(self, run: Run) -> None:
        """A search that was answered, but whose last batch was not: the same question goes on from here, not from the start."""
        told = run.pause_noted or not (run.answered and run.trusted)
        if told or run.pages or run.complete or not self.exhausted(run):
            return
        reading = Reading(
            judge=run.judge,
            paused_at=run.cursor or run.query.before_seq or run.newest + 1,
            newest=run.newest if run.query.before_seq is None else 0,
        )
        self._tell(run, reading)

    def settle(self, run: Run, passed: Intervals, unclear: Intervals) -> None:
        """A debt is read to its end: what `passed` can be no answer now; with anything `unclear` it is put aside, else it is paid."""
        if run.debt is not None:
            judge = run.judge if unclear else ""
            debt = (run.debt.entry, run.debt.target)
            paid = not unclear
            self._tell(
                run, Reading(judge=judge, debt=debt, passed=passed, paid=paid, unclear=unclear)
            )

    def reopen(self, run: Run) -> None:
        """A debt that was put aside is owed again: another judge reads now."""
        if run.debt is not None:
            debt = (run.debt.entry, run.debt.target)
            self._tell(run, Reading(debt=debt, reopened=True))

    def _tell(self, run: Run, reading: Reading) -> None:
        """Nothing was found by this, but there is something to remember."""
        run.cluster = self._teacher.read(
            run.question,
            cluster=run.cluster,
            sources=(),
            found=(),
            reading=reading,
            cause=run.cause,
        )

    # --- what is learned

    def _hear(self, run: Run, reply: object) -> Judgement | None:
        if reply is None:
            run.judge, run.trusted = "", False
            if JUDGE not in run.degraded:
                run.degraded.append(JUDGE)
            return None
        require(isinstance(reply, Judgement), "a verdict request was answered otherwise")
        assert isinstance(reply, Judgement)
        # What can be an answer at all is decided by the words of this version, and what was read of it by the heading's.
        epoch = f"{reply.judge} t{TERMS_VERSION} h{HEADING_VERSION}"
        run.judge, run.trusted = epoch, reply.trusted
        return reply

    def _learn(
        self,
        run: Run,
        yes: Sequence[Lead],
        no: Sequence[Lead],
        *,
        dead: Sequence[int],
        jumped: bool,
    ) -> None:
        paused = self.exhausted(run) and not run.pages
        run.pause_noted = paused
        ways_in = tuple(s for lead in yes for s in lead.sources)
        spans = _spans([lead.node.seq for lead in no], dead)
        found = tuple(lead.node.seq for lead in yes)
        debt = run.debt
        reading = Reading(
            judge=run.judge,
            no=spans,
            yes=found,
            debt=None if debt is None else (debt.entry, debt.target),
            paid=debt is not None and not debt.left(united(run.book.answered, spans, of(found))),
            fragments=self._fragments(yes) if jumped else (),
            anchors=self._pulled(run, yes),
            refuted=tuple((s, lead.node.id) for lead in no for s in lead.sources) if jumped else (),
            paused_at=(run.cursor or run.query.before_seq or run.newest + 1) if paused else 0,
            newest=run.newest if paused and run.query.before_seq is None else 0,
        )
        run.cluster = self._teacher.read(
            run.question,
            cluster=run.cluster,
            sources=tuple(dict.fromkeys((*ways_in, *run.sources))),
            found=tuple(lead.node.id for lead in yes),
            reading=reading,
            cause=run.cause,
        )

    def _fragments(self, leads: Sequence[Lead]) -> tuple[tuple[int, int], ...]:
        """A jump skips what lies between where it starts and where it lands."""
        sources = self._stores.timeline.nodes(sorted({s for lead in leads for s in lead.sources}))
        return tuple(
            (sources[s].seq, lead.node.seq)
            for lead in leads
            for s in lead.sources
            if s in sources and abs(sources[s].seq - lead.node.seq) > 1
        )

    def _pulled(self, run: Run, leads: Sequence[Lead]) -> tuple[Pulled, ...]:
        window = self._stores.config.learning.anchor_window
        return tuple(
            Pulled(target=lead.node.id, windows=max(0, run.newest - lead.node.seq) // window)
            for lead in leads
        )


def _spans(no: Sequence[int], dead: Sequence[int]) -> Intervals:
    """Runs of answered nodes and dead ones between them, without runs in which nothing was answered."""
    answered = set(no)
    return tuple(
        (first, last)
        for first, last in of((*no, *dead))
        if any(first <= seq <= last for seq in answered)
    )


def page_of(lead: Lead, way: Way, reason: str) -> Page:
    """A find."""
    return Page(
        node=lead.node,
        way=way,
        score=1.0,
        similarity=lead.similarity,
        lexical=lead.lexical,
        reason=reason,
    )


def result_of(run: Run, *, finds_max: int, elapsed_s: float, back_to_ms: int | None) -> ExactResult:
    """The result; pages of the asking project come first."""
    project = run.query.project_id
    pages: dict[NodeId, Page] = {}
    for page in run.pages:
        pages.setdefault(page.node.id, page)
    ordered = sorted(pages.values(), key=lambda p: project is None or p.node.project_id != project)
    return ExactResult(
        pages=tuple(ordered[:finds_max]),
        judged=run.judged,
        cached=run.cached,
        notes_read=run.notes_read,
        back_to_seq=run.cursor or None,
        back_to_ms=back_to_ms,
        complete=run.complete,
        trusted=run.trusted or not run.judge,
        elapsed_ms=elapsed_s * 1000,
        degraded=tuple(run.degraded),
    )
