"""A scripted `Assistant` with behaviour: conversations, streaming, stop, memories, models – all in memory, no engine.

`answers` is a queue of texts; without one the question is echoed. `gate`, when set to an `asyncio.Event`, holds a turn before its second piece
of text, so that a test can look at (or stop) a turn in the middle. `fail_next` makes the next question fail before it is accepted; `attach_gate` holds
attachments; `fail_models` and `fail_settings` make those calls fail until they are None again. A search of the past does only what
`tell_search` says; what the window asks for is noted in `searched_further`, `searches_stopped`, `called_wrong` and `answered_again`.
`tool_calls` are played in the next turn; `approval` is asked for before the first of them ends.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Collection, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from growbox_app.api import (
    AppEvent,
    AskRequest,
    Attachment,
    ConversationsChanged,
    DeepSearch,
    DeepSearchChanged,
    EnginePhase,
    EngineStatus,
    MemoriesFound,
    MemoryChanged,
    ModelStatus,
    Notice,
    Phase,
    PhaseChanged,
    Problem,
    ProblemCode,
    ProblemError,
    Progress,
    ProgressSink,
    StatusChanged,
    TextDelta,
    ToolCalled,
    ToolsChanged,
    ToolStarted,
    TurnAccepted,
    TurnEvent,
    TurnFinished,
    TurnStats,
    Unsubscribe,
    UsedMemory,
)
from growbox_app.approval_face import (
    Approval,
    ApprovalAnswer,
    ApprovalAsked,
    ApprovalEnded,
)
from growbox_app.audit_log import Decided
from growbox_app.ingest.report import IngestReport
from growbox_app.settings.schema import SETTINGS
from growbox_app.shadow.undoing import undone
from growbox_app.shadow.values import RestoreReport
from memory.events import RegionChanged
from memory.values import (
    BlockKind,
    Conversation,
    ConversationId,
    Node,
    NodeId,
    NodeKind,
    NodeStatus,
    Project,
    ProjectId,
    Role,
)
from tests.fakes.endpoints import ScriptedEndpoints
from tests.fakes.library import ScriptedLibrary
from tests.fakes.mind import ScriptedMind
from tests.fakes.rest import ScriptedRest
from tests.fakes.tasks import ScriptedTasks
from tests.fakes.tools import ScriptedTools

START_MS = 1_762_180_920_000  # 3 Nov 2025, 14:42 UTC
PIECE = 7
STEP_S = 0.001


@dataclass(frozen=True, slots=True)
class Taken:
    """A checkpoint as the fold over them reads it."""

    number: int
    restores: int | None = None


class ScriptedAssistant:
    """Implements `growbox_app.api.Assistant` by a script."""

    def __init__(self) -> None:
        self.answers: deque[str] = deque()
        self.memories: tuple[UsedMemory, ...] = ()
        self.notices: list[Problem] = []
        self.gate: asyncio.Event | None = None
        self.attach_gate: asyncio.Event | None = None
        self.ingest_gate: asyncio.Event | None = None
        self.ingested: list[tuple[tuple[Path, ...], ProjectId | None]] = []
        self.ingest_report: IngestReport | None = None
        self.fail_ingest: Problem | None = None
        self.fail_next: Problem | None = None
        self.fail_start: Problem | None = None
        self.fail_models: Problem | None = None
        self.fail_settings: Problem | None = None
        self.status = EngineStatus(
            phase=EnginePhase.READY, model_id="light", model_name="Qwen2.5 Coder 0.5B", progress=1.0
        )
        self.model_states = {"standard": "missing", "light": "ready", "e5": "ready"}
        self.selected = "light"
        self.model_problem: Problem | None = None
        self.searches: dict[NodeId, DeepSearch] = {}
        self.searched_further: list[NodeId] = []
        self.called_wrong: list[NodeId] = []
        self.answered_again: list[NodeId] = []
        self.searches_stopped = self.stops = self.shutdowns = 0
        self.tool_calls: list[ToolCalled] = []
        self.approval: Approval | None = None
        self.decided: list[Decided] = []
        self.approval_answers: list[ApprovalAnswer] = []
        self.restored: list[tuple[str, bool]] = []
        self.conflicts: tuple[Path, ...] = ()
        self.fail_restore: Problem | None = None
        self.requests: list[AskRequest] = []
        self.prepared: list[ConversationId | None] = []
        self.prepared_in: list[ProjectId | None] = []
        self.endpoints = ScriptedEndpoints(lambda: self.tell(StatusChanged()))
        self.tools = ScriptedTools(lambda: self.tell(ToolsChanged()))
        self.started = False
        self._time_ms = START_MS
        self._sequence = 0
        self._nodes: dict[NodeId, Node] = {}
        self._traces: dict[NodeId, tuple[tuple[UsedMemory, ...], TurnStats]] = {}
        self._calls: dict[NodeId, list[ToolCalled | ApprovalEnded | Problem]] = {}
        self._checkpoints: dict[str, Taken] = {}
        self._conversations: dict[ConversationId, Conversation] = {}
        self._projects: dict[ProjectId, Project] = {}
        self._settings: dict[str, object] = {
            key: setting.default for key, setting in SETTINGS.items()
        }
        self._listeners: list[Callable[[AppEvent], None]] = []
        self.rest = ScriptedRest(self.tell)
        self.background_tasks = ScriptedTasks(self.tell)
        self.mind = ScriptedMind(self._nodes, self._conversations, self.tell)
        self.library = ScriptedLibrary(
            projects=self._projects,
            conversations=self._conversations,
            nodes=self._nodes,
            add_project=self.add_project,
            tell=lambda: self.tell(ConversationsChanged()),
        )
        self._stop: asyncio.Event | None = None
        self._answered = asyncio.Event()

    # -- making a world -----------------------------------------------------------------------
    def now_ms(self) -> int:
        """The script's clock; every node is a minute after the last."""
        self._time_ms += 60_000
        return self._time_ms

    def add_project(self, name: str, path: str) -> Project:
        """A known project."""
        project = Project(
            id=ProjectId(f"p{len(self._projects)}"),
            name=name,
            path=path,
            created_at_ms=self.now_ms(),
        )
        self._projects[project.id] = project
        return project

    def add_conversation(
        self, title: str, turns: list[tuple[str, str]], project: Project | None = None
    ) -> Conversation:
        """A stored conversation of (question, answer) turns."""
        moment = self.now_ms()
        conversation = Conversation(
            id=ConversationId(f"c{len(self._conversations)}"),
            title=title,
            project_id=project.id if project else None,
            created_at_ms=moment,
            updated_at_ms=moment,
        )
        self._conversations[conversation.id] = conversation
        for question, answer in turns:
            asked = self.add_node(Role.USER, question, conversation)
            replied = self.add_node(Role.ASSISTANT, answer, conversation, reply_to=asked.id)
            stats = TurnStats(
                prompt_tokens=900,
                reused_tokens=870,
                answer_tokens=max(1, len(answer) // 4),
                decode_s=max(0.1, len(answer) / 47),
            )
            self._traces[replied.id] = (self.memories, stats)
        return self._conversations[conversation.id]

    def add_calls(
        self, answer_id: NodeId, *calls: ToolCalled | ApprovalEnded | Problem, status: NodeStatus
    ) -> None:
        """What is stored with an answer that ended in this way."""
        self._nodes[answer_id] = replace(self._nodes[answer_id], status=status)
        self._calls[answer_id] = list(calls)
        for call in calls:
            if isinstance(call, ToolCalled) and call.checkpoint:
                self._checkpoints[call.checkpoint] = Taken(len(self._checkpoints))

    def add_node(
        self,
        role: Role,
        content: str,
        conversation: Conversation | None = None,
        *,
        kind: NodeKind = NodeKind.MESSAGE,
        reply_to: NodeId | None = None,
        uri: str | None = None,
    ) -> Node:
        """A stored node."""
        self._sequence += 1
        node = Node(
            id=NodeId(f"n{self._sequence}"),
            seq=self._sequence,
            kind=kind,
            role=role,
            content=content,
            created_at_ms=self.now_ms(),
            conversation_id=conversation.id if conversation else None,
            reply_to=reply_to,
            source_uri=uri,
        )
        self._nodes[node.id] = node
        if conversation is not None:
            stored = self._conversations[conversation.id]
            self._conversations[conversation.id] = replace(
                stored, updated_at_ms=node.created_at_ms, message_count=stored.message_count + 1
            )
            block_kind = BlockKind.USER if role is Role.USER else BlockKind.ASSISTANT
            self.mind.page_in(conversation.id, node, block_kind)
        return node

    def used(self, title: str, *, way: str = "rag", score: float = 0.8) -> UsedMemory:
        """A memory as a turn would report it."""
        from memory.values import Way

        node = self.add_node(Role.USER, title, kind=NodeKind.NOTE)
        return UsedMemory(
            node_id=node.id,
            way=Way(way),
            score=score,
            similarity=0.74,
            lexical=0.5,
            reason="gate",
            title=title[:50],
            excerpt=title,
            created_at_ms=node.created_at_ms,
            conversation_id=None,
        )

    def tell_search(self, search: DeepSearch) -> None:
        """The search of the past for an answer moved."""
        self.searches[search.answer_id] = search
        conversation_id = self._nodes[search.answer_id].conversation_id
        assert conversation_id is not None
        self.tell(DeepSearchChanged(conversation_id=conversation_id, search=search))

    def tell(self, event: AppEvent) -> None:
        """Sends an application event to the listeners."""
        for listener in list(self._listeners):
            listener(event)

    @property
    def listeners(self) -> int:
        """How many listen."""
        return len(self._listeners)

    # -- life ---------------------------------------------------------------------------------
    async def start(self, progress: ProgressSink) -> None:
        """Opens."""
        progress(Progress(step="opening", done=0, total=0))
        await asyncio.sleep(0)
        if self.fail_start is not None:
            raise ProblemError(self.fail_start)
        self.started = True

    async def shutdown(self) -> None:
        """Ends the turn and closes."""
        self.shutdowns += 1
        await self.stop()

    def subscribe(self, listener: Callable[[AppEvent], None]) -> Unsubscribe:
        """Adds a listener."""
        self._listeners.append(listener)
        return lambda: self._listeners.remove(listener)

    def engine_status(self) -> EngineStatus:
        """The scripted state."""
        return self.status

    # -- turns --------------------------------------------------------------------------------
    async def ask(self, request: AskRequest) -> AsyncIterator[TurnEvent]:
        """Plays one turn."""
        if self._stop is not None:
            raise ProblemError(Problem(code=ProblemCode.BUSY))
        if self.fail_next is not None:
            problem, self.fail_next = self.fail_next, None
            raise ProblemError(problem)
        self.requests.append(request)
        self._stop = asyncio.Event()
        try:
            async for event in self._turn(request, self._stop):
                yield event
        finally:
            self._stop = None

    async def _turn(self, request: AskRequest, stop: asyncio.Event) -> AsyncIterator[TurnEvent]:
        conversation = self._conversation_for(request)
        question = self.add_node(Role.USER, request.text, conversation)
        answer = self.add_node(Role.ASSISTANT, "", conversation, reply_to=question.id)
        yield TurnAccepted(
            conversation=self._conversations[conversation.id],
            question=question,
            answer_id=answer.id,
        )
        self.tell(ConversationsChanged())
        yield PhaseChanged(phase=Phase.RECALLING)
        await asyncio.sleep(STEP_S)
        if self.memories:
            for memory in self.memories:
                self.mind.page_in(conversation.id, self._nodes[memory.node_id], BlockKind.MEMORY)
            yield MemoriesFound(memories=self.memories)
        yield PhaseChanged(phase=Phase.READING, done=0, total=1_240, left_s=14.0)
        await asyncio.sleep(STEP_S)
        kept = self._calls.setdefault(answer.id, [])
        for problem in self.notices:
            kept.append(problem)
            yield Notice(problem=problem)
        self.notices.clear()
        async for event in self._tools(stop, kept):
            yield event
        yield PhaseChanged(phase=Phase.WRITING, rate=11.8)
        text = self.answers.popleft() if self.answers else f"You said: {request.text}"
        written = ""
        for start in range(0, len(text), PIECE):
            if start and self.gate is not None:
                await self._wait_for_gate(stop)
            if stop.is_set():
                break
            piece = text[start : start + PIECE]
            written += piece
            yield TextDelta(text=piece)
            await asyncio.sleep(STEP_S)
        yield self._finish(answer, written, stopped=stop.is_set())

    async def _tools(
        self, stop: asyncio.Event, kept: list[ToolCalled | ApprovalEnded | Problem]
    ) -> AsyncIterator[TurnEvent]:
        for call in self.tool_calls:
            kept.append(call)
            if call.checkpoint:
                self._checkpoints[call.checkpoint] = Taken(len(self._checkpoints))
            yield ToolStarted(call_id=call.call_id, name=call.name, arguments=call.arguments)
            approval, self.approval = self.approval, None
            if approval is not None:
                self._answered.clear()
                yield ApprovalAsked(approval=approval)
                await self._first_of(self._answered, stop)
                by = "user" if self._answered.is_set() else "stop"
                allowed = by == "user" and self.approval_answers[-1].allowed
                over = approval.ended(by, allowed=allowed)
                kept.append(over)
                yield over
            yield call
        self.tool_calls.clear()

    async def _wait_for_gate(self, stop: asyncio.Event) -> None:
        assert self.gate is not None
        await self._first_of(self.gate, stop)

    async def _first_of(self, *events: asyncio.Event) -> None:
        loop = asyncio.get_running_loop()
        waits = {loop.create_task(event.wait()) for event in events}
        try:
            await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in waits:
                task.cancel()
            await asyncio.gather(*waits, return_exceptions=True)

    def _finish(self, answer: Node, text: str, *, stopped: bool) -> TurnFinished:
        status = NodeStatus.CANCELLED if stopped else NodeStatus.COMPLETE
        stored = replace(answer, content=text, status=status)
        self._nodes[answer.id] = stored
        stats = TurnStats(
            prompt_tokens=3_412,
            reused_tokens=3_310,
            answer_tokens=142,
            prefill_s=0.4,
            decode_s=12.03,
            first_token_s=0.6,
            recall_ms=18.0,
        )
        self._traces[answer.id] = (self.memories, stats)
        assert answer.conversation_id is not None
        self.tell(
            MemoryChanged(
                events=(RegionChanged(conversation_id=answer.conversation_id, paged_in=2),)
            )
        )
        return TurnFinished(answer=stored, status=status, memories=self.memories, stats=stats)

    def _conversation_for(self, request: AskRequest) -> Conversation:
        if request.conversation_id is not None:
            return self._conversations[request.conversation_id]
        project = self._projects.get(request.project_id) if request.project_id else None
        return self.add_conversation(request.text[:40], [], project)

    async def answer_again(self, answer_id: NodeId) -> AsyncIterator[TurnEvent]:
        """Asks the question once more."""
        self.answered_again.append(answer_id)
        answer = self._nodes[answer_id]
        assert answer.reply_to is not None
        question = self._nodes[answer.reply_to]
        request = AskRequest(text=question.content, conversation_id=answer.conversation_id)
        async for event in self.ask(request):
            yield event

    async def stop(self) -> None:
        """Stops the turn."""
        self.stops += 1
        if self._stop is not None:
            self._stop.set()

    async def search_further(self, answer_id: NodeId) -> None:
        """Notes the wish."""
        self.searched_further.append(answer_id)

    async def stop_search(self) -> None:
        """Notes the wish."""
        self.searches_stopped += 1

    async def wrong_answer(self, answer_id: NodeId) -> None:
        """Notes the judgement."""
        self.called_wrong.append(answer_id)

    def deep_search_of(self, answer: Node) -> DeepSearch | None:
        """What `tell_search` said last."""
        return self.searches.get(answer.id)

    def trace_of(self, answer: Node) -> tuple[tuple[UsedMemory, ...], TurnStats]:
        """Memories and figures."""
        return self._traces.get(answer.id, ((), TurnStats()))

    def calls_of(self, answer: Node) -> tuple[ToolCalled | ApprovalEnded | Problem, ...]:
        """The calls played with it."""
        return tuple(self._calls.get(answer.id, ()))

    def prepare(
        self, conversation_id: ConversationId | None, *, project_id: ProjectId | None = None
    ) -> None:
        """Notes the wish."""
        self.prepared.append(conversation_id)
        self.prepared_in.append(project_id)

    def answer_approval(self, answer: ApprovalAnswer) -> None:
        """Goes on with the turn that waits."""
        self.approval_answers.append(answer)
        self._answered.set()

    async def restore(self, checkpoint: str, *, force: bool = False) -> RestoreReport:
        """Notes the wish; the files in `conflicts` stand against it."""
        self.restored.append((checkpoint, force))
        if self.fail_restore is not None:
            raise ProblemError(self.fail_restore)
        if self.conflicts and not force:
            return RestoreReport(is_done=False, conflicts=self.conflicts)
        undo_id = f"u{len(self.restored)}"
        target = self._checkpoints[checkpoint].number
        self._checkpoints[undo_id] = Taken(len(self._checkpoints), restores=target)
        return RestoreReport(is_done=True, undo_id=undo_id, restored=(Path("src/loader.py"),))

    async def undone(self, checkpoints: Collection[str]) -> frozenset[str]:
        """As the application tells it."""
        gone = undone(self._checkpoints.values())
        return frozenset(k for k in checkpoints if self._checkpoints[k].number in gone)

    async def decisions(self, count: int) -> tuple[Decided, ...]:
        """The scripted log."""
        return tuple(self.decided[:count])

    async def attach(self, *, name: str, text: str) -> Attachment:
        """Stores a document."""
        if self.attach_gate is not None:
            await self.attach_gate.wait()
        node = self.add_node(Role.NONE, text, kind=NodeKind.DOCUMENT, uri=name)
        return Attachment(node_id=node.id, name=name, size_bytes=len(text.encode()))

    async def ingest(
        self, paths: Sequence[Path], progress: ProgressSink, *, project_id: ProjectId | None = None
    ) -> IngestReport:
        """Says that it takes each path in turn; `ingest_gate` holds it at the first."""
        self.ingested.append((tuple(paths), project_id))
        for place, path in enumerate(paths):
            progress(Progress(step="ingest", done=place, total=len(paths), detail=path.name))
            if self.ingest_gate is not None:
                await self.ingest_gate.wait()
        if self.fail_ingest is not None:
            raise ProblemError(self.fail_ingest)
        return self.ingest_report or IngestReport(added=len(paths), passages_added=3 * len(paths))

    # -- models and settings --------------------------------------------------------------------
    async def models(self) -> tuple[ModelStatus, ...]:
        """Three models."""
        if self.fail_models is not None:
            raise ProblemError(self.fail_models)
        facts = {
            "standard": ("Qwen2.5 Coder 1.5B", "chat", 1_117_320_768, 2_400_000_000, "Apache-2.0"),
            "light": ("Qwen2.5 Coder 0.5B", "chat", 491_400_064, 1_200_000_000, "Apache-2.0"),
            "e5": ("multilingual-e5-small", "embedding", 118_000_000, 300_000_000, "MIT"),
        }
        return tuple(
            ModelStatus(
                id=model_id,
                name=name,
                purpose=purpose,
                size_bytes=size,
                ram_bytes=ram,
                licence=licence,
                state=self.model_states[model_id],
                path=Path(f"{model_id}.gguf"),
                selected=model_id in (self.selected, "e5"),
            )
            for model_id, (name, purpose, size, ram, licence) in facts.items()
        )

    async def obtain_model(
        self, model_id: str, progress: ProgressSink, file: Path | None = None
    ) -> None:
        """Downloads in four steps; `gate` holds it half-way."""
        for quarter in range(1, 5):
            progress(
                Progress(
                    step="model_download", done=quarter, total=4, rate=12_400_000.0, left_s=40.0
                )
            )
            await asyncio.sleep(STEP_S)
            if quarter == 2 and self.gate is not None:
                await self.gate.wait()
        if self.model_problem is not None:
            raise ProblemError(self.model_problem)
        self.model_states[model_id] = "ready"

    async def select_model(self, model_id: str) -> None:
        """Uses another."""
        await asyncio.sleep(0)
        self.selected = "light" if model_id == "auto" else model_id
        self._settings["models.chat"] = model_id
        self.tell(StatusChanged())

    def setting(self, key: str) -> object:
        """A value."""
        return self._settings[key]

    async def change_setting(self, key: str, value: object) -> None:
        """Validates like the real one."""
        await asyncio.sleep(0)
        if self.fail_settings is not None:
            raise ProblemError(self.fail_settings)
        self._settings[key] = SETTINGS[key].validate(value)
