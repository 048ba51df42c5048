"""The application as a face sees it: plain values, turn events, and the `Assistant` protocol.

The window, the command line and the instance channel speak only this. Two implementations: `growbox_app.assistant.GrowBox`
and the tests' scripted fake. Everything here is called on the event-loop thread; nothing here blocks it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol, TypeAlias

from growbox_app.approval_face import ApprovalAnswer, ApprovalAsked, ApprovalEnded
from growbox_app.audit_log import Decided
from growbox_app.endpoints.face import Endpoints
from growbox_app.ingest.report import IngestReport
from growbox_app.library_face import LibraryFace
from growbox_app.mind_face import MindFace
from growbox_app.rest.face import RestFace
from growbox_app.rest.schedule import RestStatus
from growbox_app.shadow.values import RestoreReport
from growbox_app.task_face import BackgroundTasks, TasksChanged
from growbox_app.toolbox.face import Tools
from memory.events import Event
from memory.values import (
    Conversation,
    ConversationId,
    Node,
    NodeId,
    NodeKind,
    NodeStatus,
    ProjectId,
    Way,
)


class Phase(StrEnum):
    """What a turn is doing right now."""

    RECALLING = "recalling"
    READING = "reading"
    THINKING = "thinking"
    WRITING = "writing"
    TOOL = "tool"


class ProblemCode(StrEnum):
    """Known trouble with a sentence in both languages (`problem.<code>` in resources/translations)."""

    EMPTY_QUESTION = "empty_question"
    BUSY = "busy"
    MODEL_MISSING = "model_missing"
    MODEL_BROKEN = "model_broken"
    MODEL_TEMPLATE = "model_template"
    NOT_ENOUGH_RAM = "not_enough_ram"
    PROMPT_TOO_LONG = "prompt_too_long"
    CPU_UNSUPPORTED = "cpu_unsupported"
    ENGINE_DIED = "engine_died"
    ENGINE_RESTARTED = "engine_restarted"
    ENGINE_GIVEN_UP = "engine_given_up"
    ENGINE_ERROR = "engine_error"
    DISK_FULL = "disk_full"
    DATA_UNWRITABLE = "data_unwritable"
    DATA_LOCKED = "data_locked"
    DATA_TOO_NEW = "data_too_new"
    DATA_CORRUPT = "data_corrupt"
    DOWNLOAD_FAILED = "download_failed"
    NO_DOWNLOAD = "no_download"
    NO_NETWORK = "no_network"
    CHECKSUM = "checksum"
    NO_PROJECT_FOLDER = "no_project_folder"
    FOLDER_TOO_WIDE = "folder_too_wide"
    TOO_MANY_FOLDERS = "too_many_folders"
    EXPORT_FAILED = "export_failed"
    RESTORE_FAILED = "restore_failed"
    RESTORE_IN_TURN = "restore_in_turn"
    RESTORE_BESIDE_TASK = "restore_beside_task"
    ENDPOINT_ADDRESS = "endpoint_address"
    ENDPOINT_OFFLINE = "endpoint_offline"
    ENDPOINT_UNREACHABLE = "endpoint_unreachable"
    ENDPOINT_TLS = "endpoint_tls"
    ENDPOINT_KEY = "endpoint_key"
    ENDPOINT_KEY_FORM = "endpoint_key_form"
    ENDPOINT_KEYRING = "endpoint_keyring"
    ENDPOINT_MODEL = "endpoint_model"
    ENDPOINT_NO_MODEL = "endpoint_no_model"
    ENDPOINT_REDIRECT = "endpoint_redirect"
    ENDPOINT_TIMEOUT = "endpoint_timeout"
    ENDPOINT_BUSY = "endpoint_busy"
    ENDPOINT_ERROR = "endpoint_error"
    ENDPOINT_PROTOCOL = "endpoint_protocol"
    ENDPOINT_BROKEN = "endpoint_broken"
    ENDPOINT_EMPTY = "endpoint_empty"
    ENDPOINT_SHORTENED = "endpoint_shortened"
    ENDPOINT_TOO_LONG = "endpoint_too_long"
    SERVER_INVALID = "server_invalid"
    SECRETS = "secrets"
    INTERNAL = "internal"


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """Known trouble: a code, fields for its sentence, and a copyable detail (native log line, path)."""

    code: ProblemCode
    fields: Mapping[str, str] = field(default_factory=dict)
    detail: str = ""


class ProblemError(Exception):
    """Carries a `Problem` to the face that will say it."""

    def __init__(self, problem: Problem) -> None:
        super().__init__(f"{problem.code}: {dict(problem.fields)} {problem.detail}".strip())
        self.problem = problem


@dataclass(frozen=True, slots=True, kw_only=True)
class UsedMemory:
    """A memory that stood in the prompt of a turn because recall found it."""

    node_id: NodeId
    way: Way
    score: float
    similarity: float | None
    lexical: float | None
    reason: str
    title: str
    excerpt: str
    created_at_ms: int
    conversation_id: ConversationId | None
    cited: bool = False
    kind: NodeKind = NodeKind.MESSAGE


class DeepSearchState(StrEnum):
    """Where the search of the past for one answer stands."""

    RUNNING = "running"
    FOUND = "found"
    NOTHING = "nothing"
    PAUSED = "paused"
    """The budget of this run is used up; there is more to read."""
    UNAVAILABLE = "unavailable"
    """No judge answered."""
    USED = "used"
    """Found before the answer, which was written with it: nothing is left to offer."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepSearch:
    """A search of the past by reading it, for one answer.

    `back_to_ms` is how far it has come, `back_to_seq` the same on the timeline (None: it did not scan). A `forced` one ignores
    what was read for other questions.
    """

    answer_id: NodeId
    state: DeepSearchState
    memories: tuple[UsedMemory, ...] = ()
    back_to_ms: int | None = None
    notes_read: int = 0
    judged: int = 0
    back_to_seq: int | None = None
    forced: bool = False

    @property
    def can_continue(self) -> bool:
        """There is more to read, and somebody who can."""
        return self.state is DeepSearchState.PAUSED


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnStats:
    """What a turn cost. Times in seconds, `reused_tokens` came from the KV cache.

    Over all its `rounds`: `read_tokens` were new to the model and `kept_tokens` came from the cache; of its calls, `invalid_calls` were none
    that could be understood, `cut_calls` broke off, `repeated_calls` were made again for nothing. `degenerate`: what the
    model wrote last ran in a circle and was ended. `answered_by` names model and host of a server that answered; `reuse_known` False: it does not say what
    it reused.
    """

    prompt_tokens: int = 0
    reused_tokens: int = 0
    answer_tokens: int = 0
    prefill_s: float = 0.0
    decode_s: float = 0.0
    first_token_s: float = 0.0
    recall_ms: float = 0.0
    rounds: int = 0
    read_tokens: int = 0
    kept_tokens: int = 0
    invalid_calls: int = 0
    cut_calls: int = 0
    repeated_calls: int = 0
    degenerate: bool = False
    reuse_known: bool = True
    answered_by: str = ""

    @property
    def tokens_per_s(self) -> float:
        """Decode rate."""
        return self.answer_tokens / self.decode_s if self.decode_s > 0 else 0.0

    @property
    def new_tokens(self) -> int:
        """Tokens of the prompt that had to be read."""
        return max(0, self.prompt_tokens - self.reused_tokens)

    @property
    def reused_share(self) -> float:
        """Share of the prompt that needed no prefill, 0..1."""
        return self.reused_tokens / self.prompt_tokens if self.prompt_tokens else 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnAccepted:
    """The question is durable; the model has not been called yet."""

    conversation: Conversation
    question: Node
    answer_id: NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged:
    """Progress of the running phase. `total` 0 means unknown; `left_s` None means unknown."""

    phase: Phase
    done: int = 0
    total: int = 0
    rate: float = 0.0
    left_s: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TextDelta:
    """More of the answer; never splits a character."""

    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoriesFound:
    """Recall is done for this turn (again after a memory_search call)."""

    memories: tuple[UsedMemory, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolStarted:
    """The model calls an executor; the end is a `ToolCalled` with the same `call_id`."""

    call_id: int
    name: str
    arguments: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolCalled:
    """A call has ended; `result` is its one-line summary, `output` what the model was given of it.

    `checkpoint` names the state of the project before it (empty: it changed nothing), `paths` what it changed. `edited`: the user changed
    it before he allowed it. `cut_off`: exit (GrowBox ended while it ran) | stop (the turn did): a part of it may have been done.
    """

    name: str
    arguments: str
    result: str
    ok: bool
    call_id: int = 0
    output: str = ""
    seconds: float = 0.0
    checkpoint: str = ""
    paths: tuple[str, ...] = ()
    edited: bool = False
    cut_off: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One honest line inside the conversation, e.g. the engine died and was restarted."""

    problem: Problem


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnFinished:
    """The end of a turn: the stored answer, complete, cancelled or failed (partial text kept)."""

    answer: Node
    status: NodeStatus
    memories: tuple[UsedMemory, ...]
    stats: TurnStats
    problem: Problem | None = None


TurnEvent: TypeAlias = (
    TurnAccepted
    | PhaseChanged
    | TextDelta
    | MemoriesFound
    | ToolStarted
    | ToolCalled
    | ApprovalAsked
    | ApprovalEnded
    | Notice
    | TurnFinished
)


class EnginePhase(StrEnum):
    """State of the model process."""

    STOPPED = "stopped"
    STARTING = "starting"
    LOADING = "loading"
    READY = "ready"
    RESTARTING = "restarting"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStatus:
    """State of the model process, with load progress 0..1."""

    phase: EnginePhase
    model_id: str = ""
    model_name: str = ""
    progress: float = 0.0
    context_tokens: int = 0
    cpu_variant: str = ""
    slow_processor: bool = False
    prefix_stable: bool = True
    """False: the model's template rewrites history, so that little of it can be reused from turn to turn."""
    problem: Problem | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelStatus:
    """One catalogue entry and where it stands on this machine. `state`: missing | partial | unverified | ready | broken."""

    id: str
    name: str
    purpose: str
    size_bytes: int
    ram_bytes: int
    licence: str
    state: str
    path: Path
    selected: bool
    have_bytes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """Progress of something long. `step` is a translation key suffix (`progress.<step>`)."""

    step: str
    done: int
    total: int
    rate: float = 0.0
    left_s: float | None = None
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A stored document that a message refers to."""

    node_id: NodeId
    name: str
    size_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AskRequest:
    """A question. `conversation_id` None starts a new conversation."""

    text: str
    conversation_id: ConversationId | None = None
    project_id: ProjectId | None = None
    attachments: tuple[Attachment, ...] = ()
    cited: tuple[NodeId, ...] = ()
    """Messages and memories the user points at: they stand in the prompt, and a jump to them is learned."""
    found: tuple[UsedMemory, ...] = ()
    """What a search of the past has found for this question: it stands in the prompt."""
    waits: bool = False
    """Waits while another turn runs, instead of being refused."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StatusChanged:
    """The model process or the background changed state; pull `engine_status()`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolsChanged:
    """A server of tools was set up, changed, or is doing differently; pull `tools.servers()`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ConversationsChanged:
    """The list of conversations changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryChanged:
    """Something in memory changed; `events` is a coalesced batch. Pull snapshots."""

    events: tuple[Event, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RestChanged:
    """The background began or ended something, has come further, or plans something else."""

    status: RestStatus


@dataclass(frozen=True, slots=True, kw_only=True)
class DeepSearchChanged:
    """The search of the past for an answer moved or ended."""

    conversation_id: ConversationId
    search: DeepSearch


@dataclass(frozen=True, slots=True, kw_only=True)
class RaiseWindow:
    """A second instance asked for this one."""


AppEvent: TypeAlias = (
    StatusChanged
    | ConversationsChanged
    | MemoryChanged
    | DeepSearchChanged
    | RestChanged
    | ToolsChanged
    | TasksChanged
    | RaiseWindow
)
Unsubscribe: TypeAlias = Callable[[], None]
ProgressSink: TypeAlias = Callable[[Progress], None]


class Assistant(Protocol):
    """The whole application behind one face. Every `async` method may raise `ProblemError`."""

    # -- life ---------------------------------------------------------------------------------
    async def start(self, progress: ProgressSink) -> None:
        """Opens the memory (lock, audit). Then loads the model in the background: watch `StatusChanged`."""
        ...

    async def shutdown(self) -> None:
        """Stops the turn, saves the KV image, drains storage, ends the child processes. Idempotent."""
        ...

    def subscribe(self, listener: Callable[[AppEvent], None]) -> Unsubscribe:
        """Delivers events on the loop thread, at most ~30 batches a second."""
        ...

    def engine_status(self) -> EngineStatus:
        """State of the model process."""
        ...

    @property
    def rest(self) -> RestFace:
        """Dreams and sleep."""
        ...

    @property
    def background_tasks(self) -> BackgroundTasks:
        """Commands of the assistant's that run on in the background."""
        ...

    # -- turns --------------------------------------------------------------------------------
    def ask(self, request: AskRequest) -> AsyncIterator[TurnEvent]:
        """Runs one turn. Known trouble before `TurnAccepted` raises; later it ends in `TurnFinished.problem`."""
        ...

    async def stop(self) -> None:
        """Cancels the running turn, in whatever phase, within a second. Harmless when none runs."""
        ...

    def answer_again(self, answer_id: NodeId) -> AsyncIterator[TurnEvent]:
        """Asks the question of an answer again, with what the search of the past has found for it."""
        ...

    async def search_further(self, answer_id: NodeId) -> None:
        """Goes on with the search of the past for an answer: watch `DeepSearchChanged`."""
        ...

    async def stop_search(self) -> None:
        """Ends the running search of the past where it stands; it can go on later."""
        ...

    async def wrong_answer(self, answer_id: NodeId) -> None:
        """The user says "that is not it": its memories get negatives, and all of the past is read again for the question."""
        ...

    def deep_search_of(self, answer: Node) -> DeepSearch | None:
        """How the search of the past for a stored answer ended; None when there was none."""
        ...

    def trace_of(self, answer: Node) -> tuple[tuple[UsedMemory, ...], TurnStats]:
        """The memories and figures stored with an answer."""
        ...

    def calls_of(self, answer: Node) -> tuple[ToolCalled | ApprovalEnded | Problem, ...]:
        """The calls stored with an answer, each before its approvals, and trouble in its place; long output as its beginning and end."""
        ...

    def answer_approval(self, answer: ApprovalAnswer) -> None:
        """Lets a waiting call run, or not; an answer to one that is over changes nothing."""
        ...

    async def restore(self, checkpoint: str, *, force: bool = False) -> RestoreReport:
        """Puts a project's files back to what they were before a call, but for what somebody else has changed since.

        Such files are conflicts, and nothing is done unless forced. The report names the checkpoint that undoes this. Refused while a
        turn or a background command of the project runs: it would write on top.
        """
        ...

    async def undone(self, checkpoints: Collection[str]) -> frozenset[str]:
        """Those that are undone now: of calls, and of restores that were undone themselves."""
        ...

    async def decisions(self, count: int) -> tuple[Decided, ...]:
        """The newest decisions about calls, newest first."""
        ...

    async def attach(self, *, name: str, text: str) -> Attachment:
        """Stores a large paste or a dropped text file as a document node."""
        ...

    async def ingest(
        self, paths: Sequence[Path], progress: ProgressSink, *, project_id: ProjectId | None = None
    ) -> IngestReport:
        """Adds files and folders to the memory. Cancel by cancelling the task: what is done stays, and a new call goes on."""
        ...

    def prepare(
        self, conversation_id: ConversationId | None, *, project_id: ProjectId | None = None
    ) -> None:
        """Says which conversation a question is likely in next (None: a new one, of that project); returns at once, never raises.

        The model reads ahead what its prompt certainly begins with; the next turn cancels that.
        """
        ...

    # -- what is kept -------------------------------------------------------------------------
    @property
    def library(self) -> LibraryFace:
        """Projects and conversations: listing, reading, finding, moving, exporting and forgetting them."""
        ...

    @property
    def mind(self) -> MindFace:
        """The memory as its panels show it."""
        ...

    # -- models and settings --------------------------------------------------------------------
    async def models(self) -> tuple[ModelStatus, ...]:
        """The catalogue and what is on this machine."""
        ...

    async def obtain_model(
        self, model_id: str, progress: ProgressSink, file: Path | None = None
    ) -> None:
        """Downloads (or copies `file`) and verifies a model. Cancel by cancelling the task."""
        ...

    async def select_model(self, model_id: str) -> None:
        """Uses another chat model from now on."""
        ...

    @property
    def endpoints(self) -> Endpoints:
        """Servers that can answer instead of the model of this machine."""
        ...

    @property
    def tools(self) -> Tools:
        """Servers that bring tools, and what was learned about tools."""
        ...

    def setting(self, key: str) -> object:
        """The value of a setting. Raises KeyError for an unknown key."""
        ...

    async def change_setting(self, key: str, value: object) -> None:
        """Validates and stores a setting. Raises ValueError with the allowed range."""
        ...
