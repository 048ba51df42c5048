"""The application's spine: settings, memory, engine and loop behind the `Assistant` face, and one turn at a time.

What is kept is read and changed through its parts `mind` and `library`. Owns the order of start and shutdown. Start: lock and open
memory, then load the model in the background. Shutdown: stop the turn, end background tasks, save the KV image, end the engine, drain
and close storage. Event-loop thread only.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
from collections.abc import AsyncGenerator, Callable, Collection, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from growbox_app import instance, paths
from growbox_app.agent.aftermath import Aftermath
from growbox_app.agent.deep_search import DeepSearches, search_of
from growbox_app.agent.hands import HandParts, Hands
from growbox_app.agent.loop import AgentLoop, LoopParts
from growbox_app.agent.outcomes import Outcomes
from growbox_app.agent.turn import decode_trace
from growbox_app.agent.warmth import IDLE_S, Idleness, Warmth
from growbox_app.api import (
    AppEvent,
    AskRequest,
    Attachment,
    ConversationsChanged,
    DeepSearch,
    EngineStatus,
    ModelStatus,
    Problem,
    ProblemCode,
    ProblemError,
    ProgressSink,
    RaiseWindow,
    StatusChanged,
    ToolCalled,
    ToolsChanged,
    TurnAccepted,
    TurnEvent,
    TurnFinished,
    TurnStats,
    Unsubscribe,
    UsedMemory,
)
from growbox_app.approval_face import ApprovalAnswer, ApprovalEnded
from growbox_app.approvals import Approvals
from growbox_app.audit_log import AuditLog, Decided
from growbox_app.background import Background
from growbox_app.checkpoints import Checkpoints
from growbox_app.clock import SystemClock
from growbox_app.endpoints.chat import chat_models
from growbox_app.endpoints.room import EndpointRoom
from growbox_app.engine import entry
from growbox_app.engine.client import Target
from growbox_app.engine.kv_files import KvFiles
from growbox_app.engine.supervisor import EngineSupervisor, LoadSpec
from growbox_app.event_fan import EventFan
from growbox_app.executors.base import CallContext
from growbox_app.executors.confinement import Sandbox
from growbox_app.executors.memory_get import MemoryGet
from growbox_app.executors.memory_search import MemorySearch
from growbox_app.executors.project_tools import project_tools
from growbox_app.executors.registry import Registry
from growbox_app.executors.task_board import TaskBoard
from growbox_app.executors.web_fetch import WebFetch
from growbox_app.forgetting import UNDO_S, ForgetParts, Forgetter
from growbox_app.grants import GrantBook
from growbox_app.ingest.cutting import cuts_of
from growbox_app.ingest.report import IngestReport
from growbox_app.library import Library, LibraryParts
from growbox_app.logging_setup import log_to, stop_logging
from growbox_app.memory_service import MemoryService
from growbox_app.mind import Mind
from growbox_app.mind_face import JudgeSkill
from growbox_app.model_room import ModelRoom, scripted_spec
from growbox_app.models.calibration import Calibrate, embedder_epoch, judge_calibration
from growbox_app.oracle import EngineOracle, judge_skills
from growbox_app.power import saving_power
from growbox_app.problems import guarded, problem_of
from growbox_app.projects import ProjectBook
from growbox_app.relay import AskRelay
from growbox_app.rest.arbiter import Arbiter
from growbox_app.rest.machine import Machine, ThisMachine
from growbox_app.rest.room import RestRoom
from growbox_app.rest.worker import Rest, RestParts
from growbox_app.safety.values import Mode, Rules
from growbox_app.secrets import Backend, Secrets, system_backend
from growbox_app.settings.store import SettingsStore
from growbox_app.shadow.values import CheckpointTrouble, RestoreReport
from growbox_app.slots import LoopKind, Slots, SlotsFull
from growbox_app.task_room import TaskRoom
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from growbox_app.toolbox.box import Toolbox
from memory.config import MemoryConfig
from memory.ports import Clock
from memory.text import storable
from memory.values import ConversationId, Layout, Node, NodeId, ProjectId

if TYPE_CHECKING:
    from memory.engine import MemoryEngine

END_S = 8.0
"""Longest wait at shutdown for the turn to end, and for the KV image to be written."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """What tests and benchmarks replace; the defaults are the application."""

    engine_target: Target = entry.run
    scripted_engine: bool = False
    """True: the engine is a test's script; no model file is asked for and no CPU variant proved."""
    config: MemoryConfig = dataclasses.field(default_factory=MemoryConfig)
    clock: Clock = dataclasses.field(default_factory=SystemClock)
    listen: bool = True
    idle_s: float = IDLE_S
    saving_power: Callable[[], bool] = saving_power
    machine: Machine = dataclasses.field(default_factory=ThisMachine)
    calibration: Calibrate = judge_calibration
    find_keyring: Callable[[], Backend | None] = system_backend
    guided: bool = True
    constrained: bool = True
    seed: int = 0
    """See `LoopParts`."""
    undo_s: float = UNDO_S


class GrowBox:
    """Implements `growbox_app.api.Assistant`."""

    def __init__(
        self, *, data_path: Path, models_path: Path, options: Options | None = None
    ) -> None:
        self._options = options or Options()
        self._data_path = data_path
        self._own_folders = (data_path, models_path, paths.cache_path())
        self._settings = SettingsStore(data_path)
        self._models = ModelRoom(models_path, self._settings)
        self._fan = EventFan()
        self._secrets = Secrets(self._options.find_keyring)
        self._endpoints = EndpointRoom(
            data_path, self._settings, self._secrets, lambda: self._fan.tell(StatusChanged())
        )
        self._tools = Toolbox(
            data_path,
            self._secrets,
            self._options.clock,
            offline=lambda: bool(self._settings.get("network.offline")),
            changed=lambda: self._fan.tell(ToolsChanged()),
        )
        self._tasks = TaskGroup()
        self._engine = EngineSupervisor(
            target=self._options.engine_target,
            clock=self._options.clock,
            variant_file=data_path / "cpu_variant.json",
            on_status=lambda: self._fan.tell(StatusChanged()),
            needs_variant=not self._options.scripted_engine,
        )
        self._memory = MemoryService(EngineOracle(self._engine, self._options.calibration))
        self.mind = Mind(self._memory, self._judge_skills)
        self._arbiter = Arbiter()
        self.rest = self._make_rest()
        self._kv = KvFiles(
            data_path / "kv",
            self._engine,
            bytes_max=int(self._settings.get("memory.kv_bytes_max")) << 20,
        )
        self._background = Background(self._memory, self._engine, self._kv, self._tasks)
        self._past = DeepSearches(
            self._memory,
            self._fan.tell,
            may_read=self._may_read_past,
            quiet=lambda: self._warmth.settled(),
            foreground=self._arbiter.in_foreground,
        )
        self._slots, self._approvals = Slots(), Approvals()
        self._checkpoints = Checkpoints(data_path, self._options.clock)
        self._board = TaskBoard()
        self.background_tasks = TaskRoom(self._board, self._options.clock, self._fan.tell)
        self._sandbox = Sandbox(self._own_folders)
        self._aftermath = Aftermath(self._checkpoints, self._board)
        self._audit = AuditLog(data_path, self._options.clock)
        self._grants = GrantBook(data_path)
        self.library = self._make_library()
        parts = self._loop_parts()
        self._loop = AgentLoop(parts)
        idleness = Idleness(idle_s=self._options.idle_s, saving_power=self._options.saving_power)
        self._warmth = Warmth(parts, self._loop, idleness)
        self._server: instance.InstanceServer | None = None
        self._cancelled: asyncio.Event | None = None
        self._turn_ended, self._unheld = asyncio.Event(), asyncio.Event()
        self._turn_ended.set()
        self._endpoints.busy = lambda: not self._turn_ended.is_set()
        self._unheld.set()
        self._closed = False
        self._loading: asyncio.Task[None] | None = None
        tr.use(str(self._settings.get("general.language")))

    def _make_rest(self) -> RestRoom:
        parts = RestParts(
            memory=self._memory,
            arbiter=self._arbiter,
            clock=self._options.clock,
            settings=self._settings,
            machine=self._options.machine,
            ready=lambda: self._engine.loaded is not None,
            trusted=lambda: any(skill.trusted for skill in self.mind.judge_skills()),
            tell=self._fan.tell,
        )
        return RestRoom(Rest(parts), self._memory)

    def _loop_parts(self) -> LoopParts:
        """What a turn works with."""
        return LoopParts(
            memory=self._memory,
            engine=self._engine,
            registry=self._registry(),
            kv=self._kv,
            chat=chat_models(self._endpoints, self._engine, self._kv, self._options.clock),
            settings=self._settings,
            clock=self._options.clock,
            past=self._past,
            hands=self._hands(),
            workspace=self.library.workspace,
            scope=self.library.scope,
            guided=self._options.guided,
            constrained=self._options.constrained,
            seed=self._options.seed,
        )

    def _registry(self) -> Registry:
        """Everything that a turn may call."""
        return Registry(
            [
                MemoryGet(self._memory, paused=self._memory_paused),
                MemorySearch(
                    self._memory,
                    paused=self._memory_paused,
                    now_ms=self._options.clock.now_ms,
                    scope=self.library.scope,
                ),
                WebFetch(allowed=self._web_allowed),
            ],
            project_tools(self._memory, self._board, self._sandbox, paused=self._memory_paused),
            foreign=self._tools.foreign,
            rank=self._tools.rank,
        )

    def _hands(self) -> Hands:
        """What performs a call, with the user's rules and grants."""
        parts = HandParts(
            approvals=self._approvals,
            checkpoints=self._checkpoints,
            aftermath=self._aftermath,
            audit=self._audit,
            grants=self._grants,
            lessons=self._tools.lessons,
            clock=self._options.clock,
            rules=self._rules,
            outcomes=Outcomes(self._memory, paused=self._memory_paused),
        )
        return Hands(parts)

    def _make_library(self) -> Library:
        """Projects, conversations, and what is forgotten."""
        forgetter = Forgetter(
            ForgetParts(
                memory=self._memory,
                kv=self._kv,
                checkpoints=self._checkpoints,
                audit=self._audit,
                tasks=self._tasks,
                quiet=self._quiet,
                stop_turn=self._stop_turn,
                end_tasks=self.background_tasks.forget,
                unlearn=self._tools.forget_conversation,
                changed=lambda: self._fan.tell(ConversationsChanged()),
                beside=(*self._own_folders[1:], self._data_path / "kv"),
                undo_s=self._options.undo_s,
            )
        )
        parts = LibraryParts(
            memory=self._memory,
            book=ProjectBook(self._data_path),
            grants=self._grants,
            forgetter=forgetter,
            data_path=self._data_path,
            default_mode=lambda: Mode(str(self._settings.get("agent.mode"))),
            changed=lambda: self._fan.tell(ConversationsChanged()),
        )
        return Library(parts)

    # -- life ---------------------------------------------------------------------------------
    async def start(self, progress: ProgressSink) -> None:
        """See `Assistant.start`."""
        await guarded(self._memory.open(self._open_memory))
        log_to(self._data_path)
        if self._options.listen:
            relay = AskRelay(self, asyncio.get_running_loop(), self._raise_window)
            with contextlib.suppress(OSError):  # only the hand-over of a second instance is lost
                self._server = instance.InstanceServer(self._data_path, relay.handle)
        self._fan.subscribe(self._background.wake)
        self._fan.subscribe(self._warmth.wake)
        self._fan.subscribe(self.rest.worker.hear)
        self._background.start()
        self.rest.worker.start()
        self._tasks.start("recover", self._checkpoints.recover())
        self._tasks.start("forget", self.library.resume())
        if self._settings.get("agent.confined"):
            self._tasks.start("sandbox", asyncio.to_thread(self._sandbox.open))
        self._start_load(progress)

    def _open_memory(self) -> MemoryEngine:
        """Storage thread. The import is a third of a second, which the window need not wait for."""
        from memory.engine import MemoryEngine

        return MemoryEngine.open(
            self._data_path,
            config=self._memory_config(),
            clock=self._options.clock,
            sink=self._fan,
            embedder=embedder_epoch(),
        )

    def _memory_config(self) -> MemoryConfig:
        config = self._options.config
        layout = Layout(str(self._settings.get("context.layout")))
        return dataclasses.replace(config, paging=dataclasses.replace(config.paging, layout=layout))

    async def shutdown(self) -> None:
        """See `Assistant.shutdown`."""
        if self._closed:
            return
        self._closed = True
        if self._server is not None:
            await asyncio.to_thread(self._server.close)
        await self.stop()
        with contextlib.suppress(
            TimeoutError
        ):  # an engine that answers nothing may not keep the window open
            async with asyncio.timeout(END_S):
                await self._turn_ended.wait()
        self._background.stop()
        await self.rest.worker.close()
        await self.background_tasks.close()
        await self._tools.close()
        await self._aftermath.close()
        await self._past.close()
        await self._warmth.close()
        await self._tasks.cancel_all()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(END_S):
                await self._kv.save(at_least=1)
        await self._engine.close()
        await self._memory.close()
        stop_logging(self._data_path)

    def subscribe(self, listener: Callable[[AppEvent], None]) -> Unsubscribe:
        """See `Assistant.subscribe`."""
        return self._fan.subscribe(listener)

    def engine_status(self) -> EngineStatus:
        """See `Assistant.engine_status`."""
        return self._engine.status

    def engine_pid(self) -> int | None:
        """Process id of the engine, for tests that kill it."""
        return self._engine.pid

    def _start_load(self, progress: ProgressSink) -> None:
        """Loads what the settings say now; an older attempt that is still looking for its files is given up."""
        if self._loading is not None:
            self._loading.cancel()
        self._loading = self._tasks.start("load", self._load(progress))

    async def _load(self, progress: ProgressSink) -> None:
        """Finds the model files, verifies them once, and loads them."""
        try:
            self._engine.use(await self._spec(progress))
        except (ProblemError, OSError) as error:
            self._engine.refuse(problem_of(error))
            return

    async def _spec(self, progress: ProgressSink) -> LoadSpec:
        if self._options.scripted_engine:
            return scripted_spec(int(self._settings.get("models.context_tokens")))
        return await self._models.load_spec(progress, self._loaded_id())

    def _memory_paused(self) -> bool:
        return bool(self._settings.get("memory.paused"))

    def _web_allowed(self) -> bool:
        """Whether pages may be fetched: the user wants it, and is not offline."""
        return bool(self._settings.get("agent.web")) and not self._settings.get("network.offline")

    def _rules(self, scene: CallContext) -> Rules:
        """What the user has decided about calls, but for the grants of the project."""
        return Rules(
            workspace=scene.workspace,
            mode=self.library.mode(scene.project_id, scene.workspace),
            offline=bool(self._settings.get("network.offline")),
            private=self._own_folders,
        )

    def _judge_skills(self) -> tuple[JudgeSkill, ...]:
        loaded = self._engine.loaded
        return judge_skills(loaded, self._options.calibration) if loaded is not None else ()

    def _may_read_past(self) -> bool:
        """Whether the past may be read when nobody has asked for it. Not on the loop's thread: it looks at the battery."""
        wanted = bool(self._settings.get("memory.search_past")) and not self._memory_paused()
        return wanted and not self._options.saving_power()

    def _loaded_id(self) -> str:
        return self._engine.status.model_id if self._engine.loaded is not None else ""

    def _raise_window(self) -> None:
        self._fan.tell(RaiseWindow())

    # -- turns --------------------------------------------------------------------------------
    async def ask(self, request: AskRequest) -> AsyncGenerator[TurnEvent, None]:
        """See `Assistant.ask`."""
        await self._unheld.wait()
        while request.waits and not self._turn_ended.is_set():
            await self._turn_ended.wait()
        if not self._turn_ended.is_set() or self._closed:
            raise ProblemError(Problem(code=ProblemCode.BUSY))
        self._turn_ended.clear()
        self._warmth.turn_began()
        self._past.turn_began()
        self.rest.worker.used()
        self._cancelled = cancelled = asyncio.Event()
        self._arbiter.foreground_began()
        try:
            async with contextlib.aclosing(self._loop.run(request, cancelled)) as events:
                async for event in events:
                    if isinstance(event, TurnFinished):
                        # before the yield: a face may stop listening here
                        self._end_turn(cancelled, event.answer)
                    if isinstance(event, TurnAccepted):
                        self._warmth.turn_accepted(event.conversation.id)
                    yield event
                    if isinstance(event, TurnAccepted):
                        self._fan.tell(ConversationsChanged())
        finally:
            self._end_turn(cancelled)

    def _end_turn(self, cancelled: asyncio.Event, answer: Node | None = None) -> None:
        """Idempotent for each turn, which its cancel event stands for."""
        if self._cancelled is cancelled:
            self._cancelled = None
            self._turn_ended.set()
            self._arbiter.foreground_ended()
            self.rest.worker.used()
            self._background.turn_ended()
            self._warmth.turn_ended()
            self._past.turn_ended(answer)

    @contextlib.asynccontextmanager
    async def _quiet(self) -> AsyncGenerator[None, None]:
        """No turn runs in here, nothing rests, and the past is not read; a question that comes waits."""
        while not self._turn_ended.is_set():
            await self._turn_ended.wait()
        self._turn_ended.clear()
        self._unheld.clear()
        try:
            with self._arbiter.in_foreground():
                await self._past.stop()
                yield
        finally:
            self._turn_ended.set()
            self._unheld.set()

    async def _stop_turn(self) -> None:
        await self.stop()
        await self._turn_ended.wait()

    async def stop(self) -> None:
        """See `Assistant.stop`."""
        if self._cancelled is not None:
            self._cancelled.set()

    def answer_approval(self, answer: ApprovalAnswer) -> None:
        """See `Assistant.answer_approval`."""
        self._approvals.answer(answer)

    async def restore(self, checkpoint: str, *, force: bool = False) -> RestoreReport:
        """See `Assistant.restore`."""
        try:
            root = await self._checkpoints.root_of(checkpoint)
            self._refuse_beside_task(root)
            # Only now: a task that ended a moment ago has to be waited for, too.
            await self._aftermath.settle()
            if not self._turn_ended.is_set():
                raise ProblemError(Problem(code=ProblemCode.RESTORE_IN_TURN))
            self._refuse_beside_task(root)
            return await self._checkpoints.restore(checkpoint, force=force)
        except CheckpointTrouble as trouble:
            raise ProblemError(
                Problem(code=ProblemCode.RESTORE_FAILED, detail=str(trouble))
            ) from trouble

    def _refuse_beside_task(self, root: Path) -> None:
        task = self._board.running_in(root)
        if task is not None:
            fields = {"command": task.words}
            raise ProblemError(Problem(code=ProblemCode.RESTORE_BESIDE_TASK, fields=fields))

    async def undone(self, checkpoints: Collection[str]) -> frozenset[str]:
        """See `Assistant.undone`."""
        return await self._checkpoints.undone(checkpoints)

    async def answer_again(self, answer_id: NodeId) -> AsyncGenerator[TurnEvent, None]:
        """See `Assistant.answer_again`."""
        answer, question = await self.mind.answered(answer_id)
        search = search_of(answer)
        request = AskRequest(
            text=question.content,
            conversation_id=answer.conversation_id,
            project_id=question.project_id,
            found=search.memories if search is not None else (),
        )
        async with contextlib.aclosing(self.ask(request)) as events:
            async for event in events:
                yield event

    async def search_further(self, answer_id: NodeId) -> None:
        """See `Assistant.search_further`."""
        await self._past.further((await self.mind.answered(answer_id))[0])

    async def stop_search(self) -> None:
        """See `Assistant.stop_search`."""
        await self._past.stop()

    async def wrong_answer(self, answer_id: NodeId) -> None:
        """See `Assistant.wrong_answer`."""
        await guarded(self._past.wrong(*await self.mind.answered(answer_id)))

    def deep_search_of(self, answer: Node) -> DeepSearch | None:
        """See `Assistant.deep_search_of`."""
        return search_of(answer)

    def trace_of(self, answer: Node) -> tuple[tuple[UsedMemory, ...], TurnStats]:
        """See `Assistant.trace_of`."""
        trace = decode_trace(answer.trace)
        return trace.memories, trace.stats

    def calls_of(self, answer: Node) -> tuple[ToolCalled | ApprovalEnded | Problem, ...]:
        """See `Assistant.calls_of`."""
        return decode_trace(answer.trace).notes()

    def prepare(
        self, conversation_id: ConversationId | None, *, project_id: ProjectId | None = None
    ) -> None:
        """See `Assistant.prepare`."""
        self._warmth.prepare(conversation_id, in_project=project_id is not None)

    async def prepared(self, seconds: float) -> bool:
        """Waits, at most so long, until nothing is being prepared; for benchmarks. False: it still was."""
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._warmth.settled()
                return True
        return False

    async def settle(self, seconds: float) -> None:
        """Waits, at most so long, until new memories are indexed; for faces that end right after a turn."""
        await self._background.settle(seconds)

    async def decisions(self, count: int) -> tuple[Decided, ...]:
        """See `Assistant.decisions`."""
        return await asyncio.to_thread(self._audit.recent, count)

    async def attach(self, *, name: str, text: str) -> Attachment:
        """See `Assistant.attach`."""
        most = self._options.config.rest.chunk_characters
        text = storable(text)
        cuts = await asyncio.to_thread(cuts_of, text, name, most)
        node = await self._memory.for_face(
            lambda engine: engine.attach(name=name, text=text, cuts=cuts)
        )
        return Attachment(node_id=node.id, name=name, size_bytes=len(text.encode(errors="replace")))

    async def ingest(
        self, paths: Sequence[Path], progress: ProgressSink, *, project_id: ProjectId | None = None
    ) -> IngestReport:
        """See `Assistant.ingest`. A task of ours, so that a shutdown ends it before the memory closes."""
        # Not before the window shows.
        from growbox_app.ingest.ingestion import Ingestion, IngestParts

        parts = IngestParts(
            memory=self._memory,
            clock=self._options.clock,
            characters_max=self._options.config.rest.chunk_characters,
            own_folders=self._own_folders,
        )
        run = Ingestion(parts, progress, project_id).run
        try:
            async with self._slots.queued(LoopKind.INGEST):
                report: IngestReport = await guarded(self._tasks.start("ingest", run(paths)))
        except SlotsFull as error:
            raise ProblemError(Problem(code=ProblemCode.BUSY)) from error
        return report

    # -- models and settings --------------------------------------------------------------------
    async def models(self) -> tuple[ModelStatus, ...]:
        """See `Assistant.models`."""
        return await asyncio.to_thread(self._models.statuses, self._loaded_id())

    async def obtain_model(
        self, model_id: str, progress: ProgressSink, file: Path | None = None
    ) -> None:
        """See `Assistant.obtain_model`."""
        await self._models.obtain(model_id, progress, file)
        if self._engine.loaded is None:
            self._start_load(progress)

    async def select_model(self, model_id: str) -> None:
        """See `Assistant.select_model`."""
        if not self._turn_ended.is_set():
            raise ProblemError(Problem(code=ProblemCode.BUSY))
        before = self._settings.get("models.chat")
        answered = self._endpoints.chosen() is not None
        await self._endpoints.choose("")
        if answered and model_id == self._loaded_id():
            return  # it is there already
        await self.change_setting("models.chat", model_id)
        try:
            spec = await self._spec(lambda _progress: None)
        except ProblemError:
            await self.change_setting("models.chat", before)
            raise
        if self._loading is not None:
            self._loading.cancel()
        await self._kv.save(at_least=1)
        self._engine.use(spec)

    @property
    def endpoints(self) -> EndpointRoom:
        """See `Assistant.endpoints`."""
        return self._endpoints

    @property
    def tools(self) -> Toolbox:
        """See `Assistant.tools`."""
        return self._tools

    def setting(self, key: str) -> object:
        """See `Assistant.setting`."""
        return self._settings.get(key)

    async def change_setting(self, key: str, value: object) -> None:
        """See `Assistant.change_setting`."""
        try:
            self._settings.set(key, value)
        except OSError as error:
            fields = {"path": str(self._data_path)}
            problem = Problem(code=ProblemCode.DATA_UNWRITABLE, fields=fields, detail=str(error))
            raise ProblemError(problem) from error
        if key == "general.language":
            tr.use(str(value))
        if key == "network.offline":
            self._tools.network_changed()
