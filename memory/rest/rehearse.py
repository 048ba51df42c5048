"""Rehearse: poses likely questions ahead of time, and indexes them as K samples.

It walks over what came new, once: a question of the user's that the search could not answer is searched exactly; a new note is
offered to the past questions it may answer, and to one that a model words for it. Where the search finds the note anyhow nothing
is done; where the judge says yes, pointers lead from what that question finds to the note. A no, an unknown and an outage
change nothing; an outage is tried again. Only pointers are made, no stain: a pointer adds a page after those of the search and
takes none away, so that no question finds less than before. Source: design 4.6, G28.
"""

from __future__ import annotations

from typing import Final, Protocol

from memory.recall.evidence import Evidence
from memory.recall.exact import ExactSearch
from memory.recall.exact_run import JUDGE, Court, Lead, Run, Teacher
from memory.recall.pointer_walk import Question
from memory.recall.recaller import Recaller
from memory.requests import NeedText, Operation, TextField, TextPurpose, Verdict, Written
from memory.rest_values import Cause, RehearsalReport, RestOutcome
from memory.storage.intervals import holding
from memory.storage.learning_log import query_key
from memory.storage.reading_fold import answered
from memory.storage.stores import Stores
from memory.storage.vectors import calibrated
from memory.text import is_question, normalise
from memory.values import ExactQuery, Node, NodeId, NodeKind, RecallQuery, Role

_MARK: Final = "rehearsed"  # the last node looked at
_OFFERS_MAX: Final = 2  # past questions that one new note is offered to
_NOTHING: Final = RehearsalReport(outcome=RestOutcome.EMPTY)
_LEARNABLE: Final = frozenset({NodeKind.MESSAGE, NodeKind.NOTE, NodeKind.CHUNK, NodeKind.DOCUMENT})


class RehearsalTeacher(Teacher, Protocol):
    """Takes what a rehearsal has learned."""

    def rehearsed(
        self, question: Question, *, sources: tuple[NodeId, ...], target: Node, judge: str
    ) -> None:
        """Durable when it returns."""
        ...


class Rehearser:
    """Goes through what is new. How far it has come is durable."""

    def __init__(
        self, stores: Stores, recaller: Recaller, exact: ExactSearch, teacher: RehearsalTeacher
    ) -> None:
        self._stores = stores
        self._config = stores.config.rest
        self._recaller = recaller
        self._exact = exact
        self._teacher = teacher
        self._court = Court(stores, teacher)

    def once(self) -> Operation[RehearsalReport]:
        """One question; EMPTY when nothing new is left, PARTLY when what was looked at needed none."""
        for _ in range(self._config.rehearsal_looks):
            node = self._next()
            if node is None:
                return _NOTHING
            report = yield from self._rehearse(node)
            if report.outcome in (RestOutcome.JUDGE_OUT, RestOutcome.SUGGESTS):
                return report
            self._stores.database.set_meta(_MARK, str(node.seq))
            if report.outcome is not RestOutcome.EMPTY:
                return report
        return RehearsalReport(outcome=RestOutcome.PARTLY)

    def _next(self) -> Node | None:
        reach = self._stores.timeline.last_seq() - self._config.rehearsal_reach
        at = max(int(self._stores.database.meta(_MARK) or 0), reach)
        return self._stores.timeline.next_recallable(at)

    def _rehearse(self, node: Node) -> Operation[RehearsalReport]:
        if node.kind is NodeKind.MESSAGE and node.role is Role.USER and is_question(node.content):
            return (yield from self.pose(node.content, Cause.REHEARSAL, question_id=node.id))
        evidence = Evidence(self._stores.timeline, "", frozenset())
        if node.kind in _LEARNABLE and evidence.admits(node):
            return (yield from self._offer(node))
        return _NOTHING

    # --- a question that was asked

    def pose(
        self, text: str, cause: Cause, *, question_id: NodeId | None = None
    ) -> Operation[RehearsalReport]:
        """Searches the past for a question that the search alone does not answer; goes on where the last search stopped."""
        exclude = frozenset() if question_id is None else frozenset({question_id})
        recalled = yield from self._recaller.recall(RecallQuery(text=text, exclude=exclude))
        if recalled.pages:
            return _NOTHING
        query = self._stores.log.known(text)
        result = yield from self._exact.search(
            ExactQuery(
                text=text,
                question_id=question_id,
                exclude=exclude,
                rejected=frozenset() if query is None else self._stores.log.taken_back(query),
                judgements_max=self._config.rehearsal_judged,
                before_seq=None if query is None else self._cursor(query),
            ),
            cause,
        )
        if JUDGE in result.degraded:
            return RehearsalReport(outcome=RestOutcome.JUDGE_OUT, question=text)
        if not result.trusted:
            return RehearsalReport(outcome=RestOutcome.SUGGESTS, question=text)
        if not result.judged:
            return _NOTHING
        return RehearsalReport(
            outcome=RestOutcome.DONE,
            question=text,
            judged=result.judged,
            found=tuple(page.node.id for page in result.pages),
        )

    def _cursor(self, query: int) -> int | None:
        """Where a search for this wording has stopped."""
        books = self._stores.pointers.cluster(query).books.values()
        return max((book.cursor for book in books), default=0) or None

    # --- a note that came new

    def _offer(self, node: Node) -> Operation[RehearsalReport]:
        for text in self._near(node):
            report = yield from self._try(text, node, written=False)
            if report.outcome is not RestOutcome.EMPTY:
                return report
        text = yield from self._worded(node)
        return (yield from self._try(text, node, written=True)) if text else _NOTHING

    def _near(self, node: Node) -> list[str]:
        """Past questions that are near a note which nobody has judged for them."""
        stores = self._stores
        vector = stores.vectors.of([node.seq]).get(node.seq)
        if vector is None:
            return []
        unread = [
            cluster
            for cluster in stores.pointers.clusters()
            if holding(answered(stores.pointers.cluster(cluster)), node.seq) is None
        ]
        near = {
            query: calibrated(float(asked @ vector), stores.epoch)
            for query, asked in stores.log.vectors(unread).items()
        }
        best = sorted(near, key=lambda query: (-near[query], query))[:_OFFERS_MAX]
        wanted = [query for query in best if near[query] >= self._config.rehearsal_near]
        texts = stores.log.texts(wanted)
        return [texts[query] for query in wanted if query in texts]

    def _worded(self, node: Node) -> Operation[str]:
        """A question that a model words for the note; "" without a model."""
        limit = self._config.question_characters_max
        reply = yield NeedText(
            purpose=TextPurpose.QUESTION,
            passages=(node.content[: self._config.chunk_characters],),
            fields=(TextField(name="question", characters_max=limit),),
        )
        return normalise(reply.values[0])[:limit].strip() if isinstance(reply, Written) else ""

    def _try(self, text: str, node: Node, *, written: bool) -> Operation[RehearsalReport]:
        """Lets the question lead to the note, if the judge says that it is answered there."""
        recalled = yield from self._recaller.recall(RecallQuery(text=text))
        recent = self._recaller.recent.find(text)
        sources = () if recent is None else tuple(i for i in recent.entries if i != node.id)
        if not sources or node.id in {page.node.id for page in recalled.pages}:
            return _NOTHING
        if self._is_unwanted(text, node):
            return _NOTHING
        run = self._run(text, node)
        judgement = yield from self._court.ask(run, [Lead(node=node)])
        if judgement is None:
            return RehearsalReport(outcome=RestOutcome.JUDGE_OUT, question=text)
        if not judgement.trusted:
            return RehearsalReport(outcome=RestOutcome.SUGGESTS, question=text)
        found = judgement.verdicts == (Verdict.YES,)
        if found:
            self._teacher.rehearsed(run.question, sources=sources, target=node, judge=run.judge)
        return RehearsalReport(
            outcome=RestOutcome.DONE,
            question=text,
            judged=1,
            found=(node.id,) if found else (),
            written=written,
        )

    def _is_unwanted(self, text: str, node: Node) -> bool:
        """Taken back before, called not relevant, or no question to this note at all."""
        query = self._stores.log.known(text)
        refused = self._stores.pointers.vetoes(node.id).edges.get(node.id)
        return (
            query_key(text) == query_key(node.content)
            or (query is not None and node.id in self._stores.log.taken_back(query))
            or (refused is not None and any(s.query == query for s in refused.negative))
        )

    def _run(self, text: str, node: Node) -> Run:
        recent = self._recaller.recent.find(text)
        return Run(
            query=ExactQuery(text=text),
            question=Question(text=text, vector=None if recent is None else recent.vector),
            evidence=Evidence(self._stores.timeline, text, frozenset()),
            started_s=self._stores.clock.monotonic_s(),
            newest=node.seq,
            cause=Cause.REHEARSAL,
        )
