"""The search of the past for an answer: when it runs, how far it has come, and what the user is told.

Owns the one search that runs. Before an answer the past is read only when the question asks about it, within seconds; else
after the answer, while nobody waits, and the user hears of it only when something was found. "Keep going" and "that is not
it" are the user's own wishes: they are always shown. A turn that begins stops the search where it stands; what was read stays
read, and a shown search keeps its place with its answer. Event-loop thread; a crash costs the place of a running search.

Source: design 4.4 step 4.
"""

from __future__ import annotations

import asyncio
import contextlib
import re
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

import msgspec

from growbox_app.agent.turn import Trace, decode_trace, encode_trace, used_memory
from growbox_app.api import DeepSearch, DeepSearchChanged, DeepSearchState
from growbox_app.memory_service import MemoryService, Priority
from growbox_app.tasks import TaskGroup
from memory.errors import MemoryEngineError
from memory.requests import Operation
from memory.text import asks, content_terms
from memory.values import ExactQuery, ExactResult, Node, NodeId, NodeStatus

if TYPE_CHECKING:
    from memory.engine import MemoryEngine

BEFORE_S = 3.0
"""Longest search before an answer, measured between batches. Source: design 4.4."""
BEFORE_JUDGED = 8
STEP_JUDGED = 8
"""Judgements between two signs of life."""
RUN_JUDGED = 64
"""Judgements of one run; then the user is asked."""
JUDGE = "judge"

_PAST = re.compile(
    r"\b(remember|earlier|previous(ly)?|last (time|week|month|year|night)|yesterday|(a while|long|days?|weeks?|months?) ago"
    r"|(did|have|had) (i|we|you)\b.*\b(say|said|tell|told|mention|decide|discuss|talk|use|pick|choose|call|write)\w*"
    r"|(i|we|you) (said|told|mentioned|decided|discussed|talked|agreed|chose|picked))\b"
    r"|之前|以前|上次|上周|上个月|去年|昨天|前天|前几天|刚才|记得|(说|提|聊|讨论|决定|商量|告诉)过|当时|那次",
    re.IGNORECASE,
)


_WANTS_TOLD = re.compile(
    r"\b(tell|remind|show|give) (me|us)\b|\b(repeat|recall|find|look up|search|list|summari[sz]e)\b"
    r"|\bremember (what|when|where|which|who|whose|how|why|if|whether)\b|告诉我|提醒我|回忆|回顾|找|查|列出|总结|重复",
    re.IGNORECASE,
)


def cites_the_past(text: str) -> bool:
    """Whether it asks for what was said before; who only tells of the past asks nothing. A rule, not a model: a miss costs only time."""
    wants = asks(text) or _WANTS_TOLD.search(text) is not None
    return wants and _PAST.search(text) is not None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Case:
    """An answer, its question, and what may not be found for it."""

    answer: Node
    question: Node
    exclude: frozenset[NodeId]
    rejected: frozenset[NodeId] = frozenset()


class DeepSearches:
    """One search at a time, for one answer."""

    def __init__(
        self,
        memory: MemoryService,
        tell: Callable[[DeepSearchChanged], None],
        *,
        may_read: Callable[[], bool],
        quiet: Callable[[], Awaitable[None]],
        foreground: Callable[[], contextlib.AbstractContextManager[None]],
    ) -> None:
        """`may_read` is asked on another thread, and `quiet` awaited, before a search that nobody has asked for.

        `foreground` is entered while one runs: it is for an answer that the user has before him, and goes before dreams.
        """
        self._memory = memory
        self._tell = tell
        self._may_read = may_read
        self._quiet = quiet
        self._foreground = foreground
        self._tasks = TaskGroup()
        self._task: asyncio.Task[None] | None = None
        self._in_turn = False

    # -- what happens outside -----------------------------------------------------------------
    def turn_began(self) -> None:
        """The turn goes first."""
        self._in_turn = True
        self._drop()

    def turn_ended(self, answer: Node | None) -> None:
        """Reads the past for an answer that had nothing to lean on; None: there is no answer."""
        self._in_turn = False
        if answer is None or answer.status is not NodeStatus.COMPLETE:
            return
        trace = decode_trace(answer.trace)
        if trace.gate_failed:
            found = trace.deep or _begun(answer.id)
            if found.state is not DeepSearchState.USED:
                self._begin(answer.id, found, shown=trace.deep is not None, asked=False)

    async def further(self, answer: Node) -> None:
        """Goes on where the search for an answer stopped."""
        found = search_of(answer)
        if found is not None and found.can_continue:
            self._begin(answer.id, found, shown=True)

    async def wrong(self, answer: Node, question: Node) -> None:
        """Everything is read again for this question; what the answer leant on is out."""
        used = frozenset(memory.node_id for memory in decode_trace(answer.trace).memories)
        for memory_id in sorted(used):
            await self._memory.call(
                partial(_not_relevant, question.content, memory_id), Priority.PANEL
            )
        self._begin(answer.id, replace(_begun(answer.id), forced=True), shown=True, rejected=used)

    async def stop(self) -> None:
        """Ends the running search where it stands."""
        task = self._task
        self._drop()
        if task is not None:
            await asyncio.wait({task})

    async def close(self) -> None:
        """Stops for good."""
        await self._tasks.cancel_all()

    async def before_answer(self, query: ExactQuery) -> ExactResult:
        """A short search that the answer waits for."""
        wanted = replace(query, judgements_max=BEFORE_JUDGED, budget_s=BEFORE_S)
        return await self._memory.drive(partial(_exact, wanted))

    # -- the run --------------------------------------------------------------------------------
    def _drop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _begin(
        self,
        answer_id: NodeId,
        search: DeepSearch,
        *,
        shown: bool,
        asked: bool = True,
        rejected: frozenset[NodeId] = frozenset(),
    ) -> None:
        self._drop()
        if self._in_turn:
            return
        work = partial(self._run, answer_id, search, shown=shown, rejected=rejected)
        self._task = self._tasks.start("deep search", work() if asked else self._later(work))

    async def _later(self, work: Callable[[], Awaitable[None]]) -> None:
        """When nobody has asked: after what the next turn gains more from, and only where the user lets it."""
        await self._quiet()
        if await asyncio.to_thread(self._may_read):
            await work()

    async def _run(
        self, answer_id: NodeId, search: DeepSearch, *, shown: bool, rejected: frozenset[NodeId]
    ) -> None:
        case = await self._case(answer_id, rejected)
        if case is None:
            return
        search = replace(search, state=DeepSearchState.RUNNING)
        try:
            with self._foreground():
                search = await self._steps(case, search, shown=shown)
        except asyncio.CancelledError:
            if shown:
                await self._keep(case, replace(search, state=DeepSearchState.PAUSED))
            raise
        except MemoryEngineError:
            search = replace(search, state=DeepSearchState.UNAVAILABLE)
        if shown or search.state is DeepSearchState.FOUND:
            await self._keep(case, search)

    async def _steps(self, case: _Case, search: DeepSearch, *, shown: bool) -> DeepSearch:
        spent = 0
        while search.state is DeepSearchState.RUNNING:
            if shown:
                self._show(case, search)
            query = ExactQuery(
                text=case.question.content,
                question_id=case.question.id,
                project_id=case.question.project_id,
                exclude=case.exclude,
                rejected=case.rejected,
                judgements_max=min(STEP_JUDGED, RUN_JUDGED - spent),
                forced=search.forced,
                before_seq=search.back_to_seq,
            )
            result = await self._memory.drive(partial(_exact, query), Priority.BACKGROUND)
            spent += result.judged
            search = advanced(search, result, case.question.content)
            idle = not result.judged
            if search.state is DeepSearchState.RUNNING and (idle or spent >= RUN_JUDGED):
                search = replace(search, state=DeepSearchState.PAUSED)
        return search

    async def _case(self, answer_id: NodeId, rejected: frozenset[NodeId]) -> _Case | None:
        """The pair, with the conversation's resident nodes: the model has read those already."""

        def look(engine: MemoryEngine) -> _Case | None:
            answer = engine.node(answer_id)
            question = engine.node(answer.reply_to) if answer and answer.reply_to else None
            if answer is None or question is None or answer.conversation_id is None:
                return None
            resident = {block.node_id for block in engine.blocks(answer.conversation_id)}
            exclude = frozenset({*resident, answer.id, question.id} - rejected)
            return _Case(answer=answer, question=question, exclude=exclude, rejected=rejected)

        return await self._memory.call(look, Priority.PANEL)

    def _show(self, case: _Case, search: DeepSearch) -> None:
        if case.answer.conversation_id is not None:
            self._tell(
                DeepSearchChanged(conversation_id=case.answer.conversation_id, search=search)
            )

    async def _keep(self, case: _Case, search: DeepSearch) -> None:
        """Stored with the answer, so that it is there when the conversation is opened again, and told."""
        trace = encode_trace(with_search(decode_trace(case.answer.trace), search))
        await self._memory.call(
            lambda engine: engine.annotate_answer(case.answer.id, trace), Priority.BACKGROUND
        )
        self._show(case, search)


def search_of(answer: Node) -> DeepSearch | None:
    """What is stored with an answer; one that a crash cut off can go on."""
    found = decode_trace(answer.trace).deep
    if found is not None and found.state is DeepSearchState.RUNNING:
        return replace(found, state=DeepSearchState.PAUSED)
    return found


def with_search(trace: Trace, search: DeepSearch) -> Trace:
    """A trace with the state of its search."""
    return msgspec.structs.replace(trace, deep=search)


def advanced(search: DeepSearch, result: ExactResult, question: str) -> DeepSearch:
    """A search after one more step."""
    asked = content_terms(question)
    state = DeepSearchState.RUNNING
    if result.pages:
        state = DeepSearchState.FOUND
    elif JUDGE in result.degraded:
        state = DeepSearchState.UNAVAILABLE
    elif result.complete:
        state = DeepSearchState.NOTHING
    return replace(
        search,
        state=state,
        memories=tuple(used_memory(page, frozenset(), asked) for page in result.pages),
        back_to_ms=result.back_to_ms if result.back_to_seq is not None else search.back_to_ms,
        back_to_seq=result.back_to_seq if result.back_to_seq is not None else search.back_to_seq,
        notes_read=search.notes_read + result.notes_read,
        judged=search.judged + result.judged,
    )


def _begun(answer_id: NodeId) -> DeepSearch:
    return DeepSearch(answer_id=answer_id, state=DeepSearchState.RUNNING)


def _exact(query: ExactQuery, engine: MemoryEngine) -> Operation[ExactResult]:
    return engine.search_exactly(query)


def _not_relevant(query: str, memory_id: NodeId, engine: MemoryEngine) -> None:
    engine.learn_not_relevant(query=query, memory_id=memory_id)
