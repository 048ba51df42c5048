"""The one spine of every turn: journal, recall, page in, generate, dispatch tool calls, finish.

Both faces and the benchmarks run turns through here; there is no second chat path. Runs on the event-loop thread and blocks
it nowhere. The question is durable before the model is called; a streamed answer is checkpointed every second, so a crash
costs at most that.

Source: design 5.1; seed item G43 for the stops.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from growbox_app.agent import drafts, prompts
from growbox_app.agent.chat_model import Ask, Cancelled, ChatModel, unless
from growbox_app.agent.context import ATTACHED, CITED, ContextAssembler, Window, resumable
from growbox_app.agent.deep_search import DeepSearches, advanced, cites_the_past
from growbox_app.agent.drafts import Draft
from growbox_app.agent.guide import ANSWER_NOW, NO_CALL, Guide, guide_for, told
from growbox_app.agent.hands import Deed, Hands
from growbox_app.agent.kinds import object_of
from growbox_app.agent.protocol import (
    RUN_ON,
    CallFilter,
    ToolCall,
    ended_at_line,
    parse_tool_call,
    unwound,
)
from growbox_app.agent.turn import Turn, decode_trace, encode_trace
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
from growbox_app.engine.client import EngineDied
from growbox_app.engine.kv_files import KvFiles
from growbox_app.engine.supervisor import EngineSupervisor
from growbox_app.executors.answer_grammar import answer_grammar
from growbox_app.executors.base import CallContext, ExecutorResult, Workspace
from growbox_app.executors.call_grammar import CLOSER, TRIGGER
from growbox_app.executors.registry import Registry
from growbox_app.executors.tool_search import ToolSearch
from growbox_app.memory_service import MemoryService
from growbox_app.problems import problem_of
from growbox_app.settings.store import SettingsStore
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
    ProjectId,
    RecallQuery,
    RecallResult,
    Role,
    Scope,
    Way,
)

if TYPE_CHECKING:
    from memory.engine import MemoryEngine

T = TypeVar("T")

TOOL_ROUNDS_MAX = 3
"""Calls of one turn in a conversation without a project; in one, the setting `agent.rounds_max`."""
CUT_CALLS_MAX = 2
SEEDS_APART = 1_000_003
REPEATS_MAX = 2
"""After so many calls that were made again for nothing, an answer is all that is left."""
CHECKED_FROM_CALLS = 3
"""After so many calls, the end of the work is looked over once."""
MAY_REPEAT = frozenset({"task_wait", "task_list"})
CHECKPOINT_S = 1.0
CITED_HEAT = 1.0
REHIT_HEAT = 0.5
QUERY_CHARACTERS_MAX = 2000
RECALL_PARTS_MAX = 3
"""Sentences of a question that are tried alone when the whole of it finds nothing."""

REPEATED = ExecutorResult(
    ok=False, text="the same call brought nothing new; answer now", summary=""
)
CUT_OFF = ExecutorResult(
    ok=False,
    text="the call broke off before its end and was not run; call again with less text at a time",
    summary="",
)
LOOK_OVER = ExecutorResult(
    ok=False,
    text="Before you finish: is everything done that was asked, and did you check it? If not, go on. If so, finish again.",
    summary="",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class LoopParts:
    """What the loop works with."""

    memory: MemoryService
    engine: EngineSupervisor
    chat: ChatModel
    registry: Registry
    kv: KvFiles
    settings: SettingsStore
    clock: Clock
    past: DeepSearches
    hands: Hands
    workspace: Callable[[ProjectId | None], Awaitable[Workspace]]
    scope: Callable[[ProjectId | None], Scope] = lambda _project_id: Scope.ALL
    guided: bool = True
    constrained: bool = True
    seed: int = 0
    """Only benchmarks change these: to measure what stages and grammar bring, and how much luck there is in an answer."""


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
                    if isinstance(event, Notice):
                        turn.tell(event.problem)
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
        for call in turn.cut_off():
            yield call
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
        yield PhaseChanged(phase=Phase.RECALLING, detail=self._parts.chat.phase)
        context: ContextAssembler | None = None
        try:
            context = await unless(turn.cancelled, self._prepare(turn, request))
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
        await self._parts.chat.ready()
        context = await self._open_context(turn)
        blocks = await context.blocks()
        turn.newest_block = max((block.id for block in blocks), default=0)
        given = await self._pointed_at(turn, request)
        found = await self._recall(turn, request, await context.resident(), bool(given))
        pages = (*given, *(page for page in found if page.node.id not in _ids(given)))
        suggested = context.window.tools.suggest(turn.question.content)
        if suggested is not None:
            await context.add_tool_result(turn.question, ToolSearch.name, suggested)
        entered = await context.add_question(turn.question, turn.question.content, pages=pages)
        turn.pages = [page for page in pages if page.resident or page in entered]
        await self._parts.chat.switch_to(turn.conversation.id, system_text=context.system_text)
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
        rounds = self._rounds_max(turn)
        guide = turn.guide = await self._guide(turn)
        for round_number in range(rounds + 2):
            async with contextlib.aclosing(self._known_calls(turn, context, guide)) as events:
                async for event in events:
                    yield event
            last = round_number >= rounds or turn.repeats >= REPEATS_MAX or turn.silent
            before, turn.move = turn.visible, ANSWER_NOW if last else guide.move
            async with contextlib.aclosing(self._generate(turn, context)) as events:
                async for event in events:
                    yield event
            call = self._call_of(turn, context) if turn.move.may_call else None
            if call is None:
                owed = turn.move.narrowed.must_call and self._parts.constrained
                if turn.silent or (turn.visible.strip() and not owed):
                    turn.unwind()
                    return
                # Neither a word nor a call, or only the thought before one that never ended: asked once more.
                turn.visible, turn.silent = before, True
                continue
            turn.visible = before
            async with contextlib.aclosing(self._run_tool(turn, context, call)) as events:
                async for event in events:
                    yield event
            if turn.text:  # the call was the end of the work
                return

    async def _guide(self, turn: Turn) -> Guide:
        text = turn.question.content
        language = prompts.prompt_language(text)
        workspace = await self._parts.workspace(turn.conversation.project_id)
        guided = self._parts.guided and self._parts.chat.is_local  # a server holds no grammar to it
        return await guide_for(text, language, workspace if guided else Workspace())

    async def _known_calls(
        self, turn: Turn, context: ContextAssembler, guide: Guide
    ) -> AsyncGenerator[TurnEvent, None]:
        """Makes the calls that follow by rule, and those that come of drafts, then says what comes next."""
        while (step := guide.next_call() or self._next_draft(guide)) is not None:
            drafted = isinstance(step, Draft)
            if isinstance(step, Draft):
                yield PhaseChanged(phase=Phase.WRITING)
                writing = drafts.write(self._parts.engine, step, guide.language)
                call = await unless(turn.cancelled, writing)
            else:
                call = step
            if call is None or call.name not in context.window.tools.names:
                continue
            events = self._run_tool(turn, context, call, by_rule=True, drafted=drafted)
            async with contextlib.aclosing(events):
                async for event in events:
                    yield event
        if guide.hint:
            await context.add_hint(turn.question, guide.hint)

    def _next_draft(self, guide: Guide) -> Draft | None:
        return guide.next_draft() if self._parts.constrained else None

    def _rounds_max(self, turn: Turn) -> int:
        if turn.conversation.project_id is None:
            return TOOL_ROUNDS_MAX
        return int(self._parts.settings.get("agent.rounds_max"))

    def _call_of(self, turn: Turn, context: ContextAssembler) -> ToolCall | None:
        """The call in what was written; one that broke off is named by nothing, and answered as such."""
        known = context.window.tools.known
        call = parse_tool_call(turn.text, known)
        if call is None:
            whole = unwound(turn.text) if turn.stats.degenerate else ""
            whole = whole or (
                ended_at_line(turn.text) if turn.move.narrowed.begins_in_block else ""
            )
            call = parse_tool_call(whole, known)
            if call is not None:  # what ran on would only invite more of it
                turn.text, turn.ids = whole, []
        must = turn.move.narrowed.must_call and self._parts.constrained
        tried = TRIGGER in turn.text or must
        if call is None and tried and turn.cut_calls < CUT_CALLS_MAX:
            turn.cut_calls += 1
            closed = CLOSER in turn.text
            turn.stats = replace(
                turn.stats,
                invalid_calls=turn.stats.invalid_calls + closed,
                cut_calls=turn.stats.cut_calls + (not closed),
            )
            return NO_CALL
        return call

    async def _open_context(self, turn: Turn) -> ContextAssembler:
        conversation_id = turn.conversation.id
        history = await self._memory.call(lambda engine: engine.messages(conversation_id))
        window = await self.window(
            history[0].content, in_project=turn.conversation.project_id is not None
        )
        context = ContextAssembler(self._memory, self.count, conversation_id, window)
        await context.open()
        await context.reload(resumable(history, turn.question.id))
        window.tools.restore(block.text for block in await context.blocks())
        if (left := _broken_off(history, turn.question.id)) is not None:
            text = prompts.broken_off(window.language, left.arguments)
            result = ExecutorResult(ok=False, text=text, summary="")
            await context.add_tool_result(turn.question, left.name, result)
        return context

    async def system_text(self, language: str, *, in_project: bool = False) -> str:
        """The system prompt of conversations in a language, now."""
        loaded = await self._parts.chat.ready()
        tools = self._parts.registry.for_window(loaded.context_tokens, in_project=in_project)
        return prompts.system_prompt(
            language,
            tools=self._parts.chat.tool_list(tools),
            instructions=str(self._parts.settings.get("models.instructions")),
            in_project=in_project and bool(tools.names),
            deferred=tools.deferred_names(),
            head="system" if self._parts.chat.is_local else "system_server",
        )

    async def window(self, first_question: str, *, in_project: bool = False) -> Window:
        """The model's window as the conversation that began with this question uses it."""
        loaded = await self._parts.chat.ready()
        language = prompts.prompt_language(first_question)
        text = await self.system_text(language, in_project=in_project)
        wanted = int(self._parts.settings.get("models.answer_tokens"))
        tools = self._parts.registry.for_window(loaded.context_tokens, in_project=in_project)
        beside = loaded.base_overhead + self._parts.chat.tool_tokens(tools)
        return Window(
            loaded=loaded,
            language=language,
            tools=tools,
            system_text=text,
            system_tokens=(await self.count([text]))[0] + beside,
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
            scope=self._parts.scope(turn.conversation.project_id),
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
        self, turn: Turn, context: ContextAssembler
    ) -> AsyncGenerator[TurnEvent, None]:
        """One generation; a crash of the engine is answered by going on where it stopped, once a turn."""
        turn.text, turn.ids = "", []
        visible = CallFilter()
        while True:
            try:
                async with contextlib.aclosing(self._stream(turn, context, visible)) as events:
                    async for event in events:
                        yield event
                break
            except EngineDied:
                problem = Problem(code=ProblemCode.ENGINE_RESTARTED)
                if turn.restarted:
                    raise
                turn.restarted = True
                yield Notice(problem=problem)
                await unless(turn.cancelled, self._parts.chat.ready())
        rest = visible.finish()
        if rest:
            turn.visible += rest
            yield TextDelta(text=rest)

    async def _stream(
        self, turn: Turn, context: ContextAssembler, visible: CallFilter
    ) -> AsyncGenerator[TurnEvent, None]:
        ask = Ask(
            request=await self._chat_request(turn, context),
            tools=context.window.tools,
            language=context.window.language,
            may_call=turn.move.may_call,
        )
        checkpoint_at = self._parts.clock.monotonic_s() + CHECKPOINT_S
        answers = self._parts.chat.stream(ask, turn.cancelled)
        async with contextlib.aclosing(answers):
            async for answer in answers:
                if isinstance(answer, p.Delta):
                    shown = visible.feed(turn.take(answer))
                    if shown:
                        turn.visible += shown
                        yield TextDelta(text=shown)
                    checkpoint_at = await self._checkpoint(turn, checkpoint_at)
                elif isinstance(answer, p.DoneChat):
                    await self._note_cost(turn, answer)
                    if answer.reason == "cancelled":
                        raise Cancelled
                else:
                    yield answer

    async def _chat_request(self, turn: Turn, context: ContextAssembler) -> p.Chat:
        settings, move = self._parts.settings, turn.move
        wanted = move.tokens or context.window.reserve_tokens
        wanted *= 1 + turn.cut_calls  # a call that broke off gets more room
        free = not move.may_call or not self._parts.constrained
        grammar = "" if free else context.window.tools.grammar(turn.barred, move.narrowed)
        said = move.lead or move.echoes or turn.silent
        if said and not move.may_call and self._parts.constrained:
            grammar = answer_grammar(move.lead, move.echoes)
        waits = bool(grammar) and move.may_call and not move.narrowed.must_call
        if waits and move.echoes:
            grammar, waits = answer_grammar(echoes=move.echoes, call=grammar), False
        return p.Chat(
            id=0,
            messages=await context.messages(),
            date=prompts.local_date(turn.conversation.created_at_ms),
            max_tokens=min(wanted, await context.room()),
            temperature=float(settings.get("models.temperature")) + move.heat,
            top_p=0.9,
            seed=(turn.question.seq + self._parts.seed * SEEDS_APART) & 0xFFFFFFFF,
            prefix=tuple(turn.ids),
            grammar=grammar,
            trigger=TRIGGER if waits else "",
            barred=() if move.may_call else (TRIGGER,),
            ends=RUN_ON if grammar and move.may_call else (),
        )

    async def _run_tool(
        self,
        turn: Turn,
        context: ContextAssembler,
        call: ToolCall,
        *,
        by_rule: bool = False,
        drafted: bool = False,
    ) -> AsyncGenerator[TurnEvent, None]:
        yield PhaseChanged(phase=Phase.TOOL, detail=call.name)
        if not by_rule:
            await context.add_answer(
                replace(turn.answer, content=turn.text), tuple(turn.ids) or None
            )
        turn.text, turn.ids = "", []
        tools = context.window.tools
        result = None if by_rule else self._unfit(turn, call, ends=tools.ends_turn(call.name))
        deed = None
        if result is None:
            turn.performed += by_rule
            deed = await self._deed(turn, context, call)
            async with contextlib.aclosing(self._parts.hands.perform(deed)) as events:
                async for event in events:
                    await self._keep(turn, event)
                    yield event
            if turn.cancelled.is_set():
                raise Cancelled
            result = deed.result
            assert result is not None
            if deed.checkpoint:
                turn.calls.clear()  # the world has changed: what was looked at may be looked at again
            if turn.guide is not None:
                await turn.guide.took(deed, by_rule=by_rule and not drafted)
        name = told(call) if by_rule else call.name
        entered = await context.add_tool_result(turn.question, name, result)
        turn.pages += entered
        yield MemoriesFound(memories=turn.memories())
        if result.ok and tools.ends_turn(call.name):
            turn.text = result.text
            turn.visible += result.text
            yield TextDelta(text=result.text)

    def _unfit(self, turn: Turn, call: ToolCall, *, ends: bool) -> ExecutorResult | None:
        """Why a call is not performed; None: it is."""
        if not call.name:
            if turn.guide is not None:
                turn.guide.repeated(call)
            return CUT_OFF
        turn.performed += 1
        if ends and turn.performed > CHECKED_FROM_CALLS and not turn.checked:
            turn.checked = True
            return LOOK_OVER
        if call.fingerprint in turn.calls and call.name not in MAY_REPEAT:
            turn.repeats += 1
            turn.stats = replace(turn.stats, repeated_calls=turn.repeats)
            if turn.guide is None or not turn.move.narrowed.must_call:
                turn.barred.add(call.name)
            else:
                turn.guide.repeated(call)
            return REPEATED
        turn.calls.add(call.fingerprint)
        return None

    async def _deed(self, turn: Turn, context: ContextAssembler, call: ToolCall) -> Deed:
        project_id = turn.conversation.project_id
        scene = CallContext(
            conversation_id=turn.conversation.id,
            project_id=project_id,
            exclude=frozenset({turn.question.id, turn.answer.id}),
            resident=await context.resident(),
            workspace=await self._parts.workspace(project_id),
            cancelled=turn.cancelled,
        )
        return Deed(
            id=turn.performed,
            call=call,
            registry=context.window.tools,
            scene=scene,
            answer_id=turn.answer.id,
            store=partial(self._keep, turn),
            question=turn.question.content,
            question_id=turn.question.id,
        )

    # -- keeping ------------------------------------------------------------------------------
    async def _checkpoint(self, turn: Turn, due_s: float) -> float:
        now = self._parts.clock.monotonic_s()
        if now < due_s:
            return due_s
        text = turn.visible
        await self._memory.call(lambda engine: engine.checkpoint_answer(turn.answer.id, text))
        return now + CHECKPOINT_S

    async def _keep(self, turn: Turn, event: TurnEvent) -> None:
        """At once, so that after a crash a call's card, and with it the way back, is there again.

        An approval before it is shown, and the answer before anything runs: what the store has as open was not done. A call before it
        acts: what the store has as begun may have been done in part.
        """
        if not turn.keep(event):
            return
        text, trace = turn.visible, encode_trace(turn.trace())
        await self._memory.call(
            lambda engine: engine.checkpoint_answer(turn.answer.id, text, trace=trace)
        )

    async def _note_cost(self, turn: Turn, done: p.DoneChat) -> None:
        turn.add_cost(done)
        self._parts.chat.note(
            turn.conversation.id,
            new_tokens=done.prompt_tokens + done.answer_tokens - done.reused_tokens,
        )
        if not done.reuse_known:
            return
        await self._memory.call(
            lambda engine: engine.note_prompt(
                turn.conversation.id,
                prompt_tokens=done.prompt_tokens,
                reused_tokens=done.reused_tokens,
            )
        )

    async def _keep_answer(self, turn: Turn, context: ContextAssembler) -> None:
        answer = replace(turn.answer, content=turn.text)
        await context.add_answer(answer, tuple(turn.ids) or None)
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
        loaded = self._parts.chat.loaded
        if problem is not None:
            turn.tell(problem)
        turn.close()
        trace = turn.trace()
        text = turn.visible
        try:
            answer = await self._memory.call(
                lambda engine: engine.finish_answer(
                    turn.answer.id,
                    content=text,
                    status=status,
                    token_ids=(tuple(turn.ids) or None) if status is NodeStatus.COMPLETE else None,
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
        """Tokens of each text, as content, for the model that answers."""
        return await self._parts.chat.count(texts)


def _with_attachments(text: str, attachments: Sequence[Attachment]) -> str:
    lines = [f"[{item.name} · {item.size_bytes} B · {item.node_id}]" for item in attachments]
    return "\n".join([*lines, text]) if lines else text


def _broken_off(history: Sequence[Node], question_id: NodeId) -> ToolCalled | None:
    """The last call that may have changed something, of a turn before this question that did not come to its end."""
    place = next((at for at, node in enumerate(history) if node.id == question_id), 0)
    answers = [node for node in history[:place] if node.role is Role.ASSISTANT]
    if not answers or answers[-1].status is NodeStatus.COMPLETE:
        return None
    calls = decode_trace(answers[-1].trace).calls
    return next((call for call in reversed(calls) if call.checkpoint), None)


def _parts_of(text: str) -> list[str]:
    """What is tried alone: the sentences of a question of several, asking ones first, then what a request wants to be put somewhere.

    A request beside a question may drown what it asks, and the place what is to stand there.
    """
    parts = sentences(text)
    found = sorted(parts, key=lambda part: not asks(part)) if len(parts) > 1 else []
    wanted = object_of(text)
    return [*found[:RECALL_PARTS_MAX], *([wanted] if wanted else [])]


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
