"""The one spine of every turn: journal, recall, page in, generate, dispatch tool calls, finish.

Both faces and the benchmarks run turns through here; there is no second chat path. Runs on the event-loop thread and blocks
it nowhere. The question is durable before the model is called; a streamed answer is checkpointed every second, so a crash
costs at most that.

Source: design 5.1; seed item G43 for the stops.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from growbox_app.agent import prompts
from growbox_app.agent.context import ATTACHED, CITED, ContextAssembler, Window, resumable
from growbox_app.agent.deep_search import DeepSearches, advanced, cites_the_past
from growbox_app.agent.protocol import CallFilter, ToolCall, parse_tool_call
from growbox_app.agent.turn import Trace, Turn, encode_trace
from growbox_app.api import (
    AskRequest,
    Attachment,
    DeepSearch,
    DeepSearchState,
    MemoriesFound,
    Notice,
    Phase,
    PhaseChanged,
    Problem,
    ProblemCode,
    ProblemError,
    TextDelta,
    ToolCalled,
    TurnAccepted,
    TurnEvent,
    TurnFinished,
)
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient, EngineDied
from growbox_app.engine.kv_files import KvFiles
from growbox_app.engine.supervisor import EngineSupervisor
from growbox_app.executors.base import CallContext, ExecutorResult
from growbox_app.executors.registry import TRIGGER, Registry
from growbox_app.memory_service import MemoryService
from growbox_app.problems import problem_of
from growbox_app.settings.store import SettingsStore
from growbox_app.tasks import TaskGroup
from memory.errors import MemoryEngineError
from memory.ports import Clock
from memory.requests import Operation
from memory.text import asks, sentences, storable, title
from memory.values import (
    ExactQuery,
    Node,
    NodeDraft,
    NodeId,
    NodeKind,
    NodeStatus,
    Page,
    RecallQuery,
    RecallResult,
    Role,
    Way,
)

if TYPE_CHECKING:
    from memory.engine import MemoryEngine

T = TypeVar("T")

TOOL_ROUNDS_MAX = 3
CHECKPOINT_S = 1.0
CITED_HEAT = 1.0
SILENCE_S = 90.0
"""Source: seed item G43."""
CANCEL_S = 2.0
CANCEL_TRIES = 4
REHIT_HEAT = 0.5
QUERY_CHARACTERS_MAX = 2000
RECALL_PARTS_MAX = 3
"""Sentences of a question that are tried alone when the whole of it finds nothing."""

REPEATED = ExecutorResult(
    ok=False, text="the same call brought nothing new; answer now", summary=""
)


class Cancelled(Exception):
    """The user stopped the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """What the loop works with."""

    memory: MemoryService
    engine: EngineSupervisor
    registry: Registry
    kv: KvFiles
    settings: SettingsStore
    clock: Clock
    past: DeepSearches


class AgentLoop:
    """Runs one turn at a time."""

    def __init__(self, parts: LoopParts) -> None:
        self._parts = parts
        self._memory = parts.memory

    async def run(
        self, request: AskRequest, cancelled: asyncio.Event
    ) -> AsyncGenerator[TurnEvent, None]:
        """Runs a turn to its end.

        Args:
            request: the question.
            cancelled: set by the user's stop; every phase ends within a second of it.

        Raises:
            ProblemError: the question could not be accepted; nothing was stored.
        """
        turn = await self._accept(request, cancelled)
        status, problem = NodeStatus.COMPLETE, None
        try:
            yield TurnAccepted(
                conversation=turn.conversation, question=turn.question, answer_id=turn.answer.id
            )
            async with contextlib.aclosing(self._work(turn, request)) as events:
                async for event in events:
                    yield event
        except Cancelled:
            status = NodeStatus.CANCELLED
        except (ProblemError, p.EngineFault, EngineDied, MemoryEngineError) as error:
            status, problem = NodeStatus.FAILED, problem_of(error)
        except (asyncio.CancelledError, GeneratorExit):
            await self._finish(turn, NodeStatus.CANCELLED, None)
            raise
        except BaseException as error:
            await self._finish(turn, NodeStatus.FAILED, problem_of(error))
            raise
        finished = await self._finish(turn, status, problem)
        yield finished

    # -- the phases of a turn ---------------------------------------------------------------------
    async def _accept(self, request: AskRequest, cancelled: asyncio.Event) -> Turn:
        text = storable(request.text).strip()
        if not any(character.isalnum() for character in text) and not request.attachments:
            raise ProblemError(Problem(code=ProblemCode.EMPTY_QUESTION))
        draft = NodeDraft(
            kind=NodeKind.MESSAGE,
            role=Role.USER,
            content=_with_attachments(text, request.attachments),
            conversation_id=request.conversation_id,
            project_id=request.project_id,
            derived_from=tuple(item.node_id for item in request.attachments),
        )
        name = title(text) or request.attachments[0].name
        try:
            conversation, question, answer = await self._memory.call(
                lambda engine: engine.begin_turn(draft, title=name)
            )
        except MemoryEngineError as error:
            raise ProblemError(problem_of(error)) from error
        return Turn(
            conversation=conversation, question=question, answer=answer, cancelled=cancelled
        )

    async def _work(self, turn: Turn, request: AskRequest) -> AsyncGenerator[TurnEvent, None]:
        yield PhaseChanged(phase=Phase.RECALLING, detail=self._parts.engine.status.phase.value)
        context: ContextAssembler | None = None
        try:
            context = await _unless(turn.cancelled, self._prepare(turn, request))
            yield MemoriesFound(memories=turn.memories())
            async with contextlib.aclosing(self._rounds(turn, context)) as events:
                async for event in events:
                    yield event
        finally:
            if context is not None and turn.text and turn.visible.strip():
                await self._keep_answer(turn, context)  # also half of one: the reader has seen it
            else:
                await self._retract(turn)

    async def _prepare(self, turn: Turn, request: AskRequest) -> ContextAssembler:
        """Everything before the first token: recall, paging, and the conversation's own KV image."""
        await self._parts.engine.ready()
        context = await self._open_context(turn)
        blocks = await context.blocks()
        turn.newest_block = max((block.id for block in blocks), default=0)
        given = await self._pointed_at(turn, request)
        found = await self._recall(turn, request, await context.resident(), bool(given))
        pages = (*given, *(page for page in found if page.node.id not in _ids(given)))
        entered = await context.add_question(turn.question, turn.question.content, pages=pages)
        turn.pages = [page for page in pages if page.resident or page in entered]
        await self._parts.kv.switch_to(turn.conversation.id, system_text=context.system_text)
        return context

    async def _pointed_at(self, turn: Turn, request: AskRequest) -> tuple[Page, ...]:
        """What the user himself points at, as pages; a citation is also learned, as a jump."""
        wanted = [(item.node_id, ATTACHED) for item in request.attachments]
        wanted += [(node_id, CITED) for node_id in request.cited]
        pages = [
            Page(node=node, way=Way.JUMP, score=1.0, reason=reason)
            for node_id, reason in wanted
            if (node := await self._memory.call(partial(_node, node_id))) is not None
        ]
        for page in pages:
            if page.reason == CITED:
                await self._memory.call(partial(_learn_cited, turn.question, page.node.id))
        pages += [
            Page(node=node, way=memory.way, score=memory.score, reason=memory.reason)
            for memory in request.found
            if (node := await self._memory.call(partial(_node, memory.node_id))) is not None
        ]
        return tuple(pages)

    async def _rounds(
        self, turn: Turn, context: ContextAssembler
    ) -> AsyncGenerator[TurnEvent, None]:
        """Generates, and answers tool calls, until there is an answer."""
        for round_number in range(TOOL_ROUNDS_MAX + 1):
            before = turn.visible
            async with contextlib.aclosing(self._generate(turn, context, round_number)) as events:
                async for event in events:
                    yield event
            if round_number == TOOL_ROUNDS_MAX:
                return
            call = parse_tool_call(turn.text, context.window.tools.names)
            if call is None:
                return
            turn.visible = before
            async with contextlib.aclosing(self._run_tool(turn, context, call)) as events:
                async for event in events:
                    yield event

    async def _open_context(self, turn: Turn) -> ContextAssembler:
        conversation_id = turn.conversation.id
        history = await self._memory.call(lambda engine: engine.messages(conversation_id))
        window = await self.window(history[0].content)
        context = ContextAssembler(self._memory, self.count, conversation_id, window)
        await context.open()
        await context.reload(resumable(history, turn.question.id))
        return context

    async def system_text(self, language: str) -> str:
        """The system prompt of conversations in a language, now."""
        loaded = await self._parts.engine.ready()
        return prompts.system_prompt(
            language,
            tools=self._parts.registry.for_window(loaded.context_tokens).tool_list(),
            instructions=str(self._parts.settings.get("models.instructions")),
        )

    async def window(self, first_question: str) -> Window:
        """The model's window as the conversation that began with this question uses it."""
        loaded = await self._parts.engine.ready()
        language = prompts.prompt_language(first_question)
        text = await self.system_text(language)
        wanted = int(self._parts.settings.get("models.answer_tokens"))
        return Window(
            loaded=loaded,
            language=language,
            tools=self._parts.registry.for_window(loaded.context_tokens),
            system_text=text,
            system_tokens=(await self.count([text]))[0] + loaded.base_overhead,
            reserve_tokens=min(wanted, loaded.context_tokens // 4),
        )

    async def _recall(
        self, turn: Turn, request: AskRequest, resident: frozenset[NodeId], given: bool
    ) -> tuple[Page, ...]:
        """`given`: the question brings its own pages, so that nothing is missing when recall finds none."""
        settings = self._parts.settings
        if settings.get("memory.paused") or not int(settings.get("memory.pages_max")):
            return ()
        query = RecallQuery(
            text=(storable(request.text).strip() or turn.question.content)[:QUERY_CHARACTERS_MAX],
            project_id=turn.conversation.project_id,
            exclude=frozenset({turn.question.id, turn.answer.id}) | _attached(request),
            resident=resident,
            pages_max=int(settings.get("memory.pages_max")),
        )
        result = await self._recalled(turn, query)
        for text in _parts_of(query.text):
            if result.pages:
                break
            result = await self._recalled(turn, replace(query, text=text))
        turn.gate_failed = not (given or result.passed_gate)
        if turn.gate_failed and cites_the_past(query.text):
            unread = replace(query, exclude=query.exclude | _ids(result.pages))
            return (*await self._past(turn, unread), *result.pages)
        return result.pages

    async def _recalled(self, turn: Turn, query: RecallQuery) -> RecallResult:
        result = await self._memory.drive(partial(_recall_operation, query))
        turn.stats = replace(turn.stats, recall_ms=turn.stats.recall_ms + result.elapsed_ms)
        return result

    async def _past(self, turn: Turn, query: RecallQuery) -> tuple[Page, ...]:
        """The question asks about the past, and the search is not sure of what it knows: it is read, for some seconds."""
        if not self._parts.settings.get("memory.search_past"):
            return ()
        exact = ExactQuery(
            text=query.text,
            question_id=turn.question.id,
            project_id=query.project_id,
            exclude=query.exclude | query.resident,
        )
        result = await self._parts.past.before_answer(exact)
        begun = DeepSearch(answer_id=turn.answer.id, state=DeepSearchState.RUNNING)
        turn.deep = advanced(begun, result, query.text)
        if result.pages:
            turn.deep = replace(turn.deep, state=DeepSearchState.USED)
        turn.stats = replace(turn.stats, recall_ms=turn.stats.recall_ms + result.elapsed_ms)
        return result.pages[: query.pages_max]

    async def _generate(
        self, turn: Turn, context: ContextAssembler, round_number: int
    ) -> AsyncGenerator[TurnEvent, None]:
        """One generation; a crash of the engine is answered by going on where it stopped, once a turn."""
        turn.text, turn.ids = "", []
        visible = CallFilter()
        while True:
            try:
                async with contextlib.aclosing(
                    self._stream(turn, context, round_number, visible)
                ) as events:
                    async for event in events:
                        yield event
                break
            except EngineDied:
                problem = Problem(code=ProblemCode.ENGINE_RESTARTED)
                if turn.restarted:
                    raise
                turn.restarted = True
                yield Notice(problem=problem)
                await _unless(turn.cancelled, self._parts.engine.ready())
        rest = visible.finish()
        if rest:
            turn.visible += rest
            yield TextDelta(text=rest)

    async def _stream(
        self, turn: Turn, context: ContextAssembler, round_number: int, visible: CallFilter
    ) -> AsyncGenerator[TurnEvent, None]:
        client = self._parts.engine.client
        request = await self._chat_request(turn, context, round_number)
        checkpoint_at = self._parts.clock.monotonic_s() + CHECKPOINT_S
        watcher = _CancelWatcher(turn.cancelled, client, request.id)
        done: p.DoneChat | None = None
        try:
            yield PhaseChanged(phase=Phase.READING)
            async with contextlib.aclosing(_not_silent(client, request)) as answers:
                async for answer in answers:
                    if isinstance(answer, p.PrefillProgress):
                        yield _reading(answer)
                    elif isinstance(answer, p.Delta):
                        shown = visible.feed(turn.take(answer))
                        if shown:
                            turn.visible += shown
                            yield TextDelta(text=shown)
                        checkpoint_at = await self._checkpoint(turn, checkpoint_at)
                    elif isinstance(answer, p.DoneChat):
                        done = answer
        except p.EngineFault as fault:
            if fault.code == "cancelled":  # it was still waiting in the engine's queue
                raise Cancelled from fault
            raise
        finally:
            await watcher.close()
        if done is None:
            raise EngineDied(None)
        await self._note_cost(turn, done)
        if done.reason == "cancelled":
            raise Cancelled

    async def _chat_request(
        self, turn: Turn, context: ContextAssembler, round_number: int
    ) -> p.Chat:
        settings = self._parts.settings
        grammar = context.window.tools.grammar() if round_number < TOOL_ROUNDS_MAX else ""
        return p.Chat(
            id=self._parts.engine.client.next_id(),
            messages=await context.messages(),
            date=prompts.local_date(turn.conversation.created_at_ms),
            max_tokens=context.window.reserve_tokens,
            temperature=float(settings.get("models.temperature")),
            top_p=0.9,
            seed=turn.question.seq & 0xFFFFFFFF,
            prefix=tuple(turn.ids),
            grammar=grammar,
            trigger=TRIGGER if grammar else "",
            barred=() if grammar else (TRIGGER,),
        )

    async def _run_tool(
        self, turn: Turn, context: ContextAssembler, call: ToolCall
    ) -> AsyncGenerator[TurnEvent, None]:
        yield PhaseChanged(phase=Phase.TOOL, detail=call.name)
        await context.add_answer(replace(turn.answer, content=turn.text), tuple(turn.ids))
        turn.text, turn.ids = "", []
        repeated = call.fingerprint in turn.calls
        turn.calls.add(call.fingerprint)
        result = REPEATED if repeated else await self._dispatch(turn, context, call)
        entered = await context.add_tool_result(turn.question, call.name, result)
        turn.pages += entered
        arguments = ", ".join(call.arguments.values())
        yield ToolCalled(name=call.name, arguments=arguments, result=result.summary, ok=result.ok)
        yield MemoriesFound(memories=turn.memories())

    async def _dispatch(
        self, turn: Turn, context: ContextAssembler, call: ToolCall
    ) -> ExecutorResult:
        scene = CallContext(
            conversation_id=turn.conversation.id,
            project_id=turn.conversation.project_id,
            exclude=frozenset({turn.question.id, turn.answer.id}),
            resident=await context.resident(),
        )
        return await _unless(
            turn.cancelled, context.window.tools.dispatch(call.name, call.arguments, scene)
        )

    # -- keeping ------------------------------------------------------------------------------
    async def _checkpoint(self, turn: Turn, due_s: float) -> float:
        now = self._parts.clock.monotonic_s()
        if now < due_s:
            return due_s
        text = turn.visible
        await self._memory.call(lambda engine: engine.checkpoint_answer(turn.answer.id, text))
        return now + CHECKPOINT_S

    async def _note_cost(self, turn: Turn, done: p.DoneChat) -> None:
        turn.add_cost(done)
        self._parts.kv.note(
            turn.conversation.id,
            new_tokens=done.prompt_tokens + done.answer_tokens - done.reused_tokens,
        )
        await self._memory.call(
            lambda engine: engine.note_prompt(
                turn.conversation.id,
                prompt_tokens=done.prompt_tokens,
                reused_tokens=done.reused_tokens,
            )
        )

    async def _keep_answer(self, turn: Turn, context: ContextAssembler) -> None:
        answer = replace(turn.answer, content=turn.text)
        await context.add_answer(answer, tuple(turn.ids))
        cited = turn.cited()
        again = [page for page in turn.pages if page.resident]
        exact = [page for page in again if page.way is not Way.RAG]
        await self._warm(turn, again, REHIT_HEAT)
        await self._warm(turn, cited, CITED_HEAT)
        await self._confirm(turn, [*exact, *cited])
        query = turn.question.content[:QUERY_CHARACTERS_MAX]
        await self._memory.call(
            lambda engine: engine.learn_used(query=query, question_id=turn.question.id, used=cited)
        )

    async def _retract(self, turn: Turn) -> None:
        """A turn without a visible word leaves nothing in the region; the next prompt is as if it had not been.

        Two things stay: evictions made to fit it, and its number, by which heat cools one turn further.
        """
        after = turn.newest_block
        if after is not None:
            await self._memory.call(lambda engine: engine.retract(turn.conversation.id, after))

    async def _confirm(self, turn: Turn, pages: Sequence[Page]) -> None:
        ids = [page.node.id for page in pages]
        if ids:
            await self._memory.call(lambda engine: engine.confirm(turn.conversation.id, ids))

    async def _warm(self, turn: Turn, pages: Sequence[Page], amount: float) -> None:
        ids = [page.node.id for page in pages]
        if ids:
            await self._memory.call(lambda engine: engine.warm(turn.conversation.id, ids, amount))

    async def _finish(
        self, turn: Turn, status: NodeStatus, problem: Problem | None
    ) -> TurnFinished:
        memories = turn.memories()
        loaded = self._parts.engine.loaded
        notices = [ProblemCode.ENGINE_RESTARTED.value] if turn.restarted else []
        if problem is not None:
            notices.append(problem.code.value)
        trace = Trace(
            memories=memories,
            stats=turn.stats,
            notices=tuple(notices),
            gate_failed=turn.gate_failed,
            deep=turn.deep,
        )
        text = turn.visible
        try:
            answer = await self._memory.call(
                lambda engine: engine.finish_answer(
                    turn.answer.id,
                    content=text,
                    status=status,
                    token_ids=tuple(turn.ids) if status is NodeStatus.COMPLETE else None,
                    tokenizer=loaded.tokenizer if loaded else None,
                    derived_from=tuple(page.node.id for page in turn.pages),
                    trace=encode_trace(trace),
                )
            )
        except (
            MemoryEngineError
        ) as error:  # a full disk: the last checkpoint is stored, the reader keeps the text
            status, problem = NodeStatus.FAILED, problem_of(error)
            answer = replace(turn.answer, content=text, status=status)
        return TurnFinished(
            answer=answer, status=status, memories=memories, stats=turn.stats, problem=problem
        )

    async def count(self, texts: Sequence[str]) -> Sequence[int]:
        """Tokens of each text, as content, by the loaded model."""
        try:
            return await self._count_now(texts)
        except EngineDied:
            await self._parts.engine.ready()
            return await self._count_now(texts)

    async def _count_now(self, texts: Sequence[str]) -> Sequence[int]:
        client = self._parts.engine.client
        request = p.Count(id=client.next_id(), texts=tuple(texts))
        return (await client.request(request, p.DoneCount)).counts


def _reading(progress: p.PrefillProgress) -> PhaseChanged:
    left = (progress.total - progress.done) / progress.rate if progress.rate > 0 else None
    phase = Phase.READING if progress.done < progress.total else Phase.WRITING
    return PhaseChanged(
        phase=phase, done=progress.done, total=progress.total, rate=progress.rate, left_s=left
    )


def _with_attachments(text: str, attachments: Sequence[Attachment]) -> str:
    lines = [f"[{item.name} · {item.size_bytes} B · {item.node_id}]" for item in attachments]
    return "\n".join([*lines, text]) if lines else text


class _CancelWatcher:
    """Cancels a request once the event is set, again until the engine listens, and kills an engine that does not."""

    def __init__(self, event: asyncio.Event, client: EngineClient, request_id: int) -> None:
        self._tasks = TaskGroup()
        self._tasks.start("cancel", self._watch(event, client, request_id))

    async def _watch(self, event: asyncio.Event, client: EngineClient, request_id: int) -> None:
        await event.wait()
        for _ in range(CANCEL_TRIES):
            client.cancel(request_id)
            await asyncio.sleep(CANCEL_S / CANCEL_TRIES)
        client.kill()

    async def close(self) -> None:
        await self._tasks.cancel_all()


async def _not_silent(client: EngineClient, request: p.Chat) -> AsyncGenerator[p.Answer, None]:
    """The frames of an answer; an engine that says nothing for too long is taken for dead and killed."""
    async with contextlib.aclosing(client.stream(request)) as answers:
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    answer = await anext(answers)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                client.kill()
                raise EngineDied(None) from error
            yield answer


def _parts_of(text: str) -> list[str]:
    """The sentences of a question of several, asking ones first: a request beside it may drown what it asks."""
    parts = sentences(text)
    if len(parts) < 2:
        return []
    return sorted(parts, key=lambda part: not asks(part))[:RECALL_PARTS_MAX]


def _recall_operation(query: RecallQuery, engine: MemoryEngine) -> Operation[RecallResult]:
    return engine.recall(query)


def _attached(request: AskRequest) -> frozenset[NodeId]:
    """What stands in the prompt whole (or head…tail) is not shown in passages besides."""
    return frozenset(item.node_id for item in request.attachments)


def _ids(pages: Sequence[Page]) -> frozenset[NodeId]:
    return frozenset(page.node.id for page in pages)


def _learn_cited(question: Node, target_id: NodeId, engine: MemoryEngine) -> None:
    query = question.content[:QUERY_CHARACTERS_MAX]
    engine.learn_cited(query=query, question_id=question.id, target_id=target_id)


def _node(node_id: NodeId, engine: MemoryEngine) -> Node | None:
    return engine.node(node_id)


async def _unless(cancelled: asyncio.Event, work: Awaitable[T]) -> T:
    """Awaits `work`, or raises `Cancelled` as soon as the user stops the turn."""
    running = asyncio.ensure_future(work)  # noqa: TID251 - awaited right here
    stop = asyncio.ensure_future(cancelled.wait())  # noqa: TID251 - cancelled right here
    try:
        await asyncio.wait({running, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise Cancelled
        return running.result()
    finally:
        stop.cancel()
        if not running.done():
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running
