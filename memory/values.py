"""Plain values that cross the boundary of the memory engine.

Owns no state and does no I/O. Every type is frozen; sequences are tuples; ids are `NewType`s so that a conversation id
cannot be handed where a node id belongs. All times are UTC milliseconds since the epoch (`*_ms`), all token counts come
from the chat model's own tokenizer.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum
from typing import NewType

NodeId = NewType("NodeId", str)
ConversationId = NewType("ConversationId", str)
ProjectId = NewType("ProjectId", str)
DebtId = NewType("DebtId", str)
"""`<entry_seq>-<target_seq>` of a fragment; unique in the ledger, stable over restarts."""


class NodeKind(StrEnum):
    """What a node is. Source: seed item G2, cut to what exists."""

    MESSAGE = "message"
    TOOL_RESULT = "tool_result"
    DOCUMENT = "document"
    CHUNK = "chunk"
    NOTE = "note"
    KNOWLEDGE = "knowledge"
    """A conclusion of the flywheel; it rests on `derived_from`."""
    SKILL = "skill"
    """A way of doing something that the user has accepted."""


class Role(StrEnum):
    """Who said it."""

    USER = "user"
    ASSISTANT = "assistant"
    TOOL = "tool"
    NONE = "none"


class NodeStatus(StrEnum):
    """How far the writing of a node got."""

    PARTIAL = "partial"
    COMPLETE = "complete"
    CANCELLED = "cancelled"
    FAILED = "failed"


class Way(StrEnum):
    """How a page was found. Source: design 4.4."""

    RAG = "rag"
    POINTER = "pointer"
    JUMP = "jump"
    ANCHOR = "anchor"
    SCAN = "scan"
    ENTRY = "entry"
    """A judged candidate of the search itself, below the gate."""
    VERDICT = "verdict"
    """A remembered verdict of a question like this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A folder the user works in; memories of one project are preferred inside it."""

    id: ProjectId
    name: str
    path: str
    created_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Conversation:
    """One address space: a row of turns with its own context region."""

    id: ConversationId
    title: str
    project_id: ProjectId | None
    created_at_ms: int
    updated_at_ms: int
    message_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetPreview:
    """What goes with a conversation. `elsewhere` are answers of other conversations that it helped with: their text stays."""

    messages: int = 0
    notes: int = 0
    documents: int = 0
    elsewhere: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetReport:
    """What is left of a forgotten conversation, by a search of the bytes of `files` files.

    `searched` is False when there was nothing to search for any more (an earlier run had deleted the text). `left` names files in which something was found. `shared` counts phrases that other conversations say too.
    """

    conversation_id: ConversationId
    nodes: int = 0
    files: int = 0
    searched: bool = False
    left: tuple[str, ...] = ()
    shared: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectHoldings:
    """What a project has in the memory."""

    conversations: int = 0
    messages: int = 0
    documents: int = 0
    passages: int = 0
    waiting: int = 0
    """Of these, so many are not found by their meaning yet."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeDraft:
    """A node about to be journalled; the engine adds id, sequence number and time."""

    kind: NodeKind
    role: Role
    content: str
    conversation_id: ConversationId | None = None
    project_id: ProjectId | None = None
    reply_to: NodeId | None = None
    status: NodeStatus = NodeStatus.COMPLETE
    derived_from: tuple[NodeId, ...] = ()
    source_uri: str | None = None
    parent_id: NodeId | None = None
    byte_range: tuple[int, int] | None = None
    created_at_ms: int | None = None
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Node:
    """The timeline's unit. Source: design 4.1.

    `seq` is dense and ascending in journal order. `context` stands above a passage of a document – file, headings, names of
    definitions; it is part of its keys, never of its content. `token_ids` are the sampled ids of an answer (never retokenised), valid
    for the tokenizer whose fingerprint is `tokenizer`. `trace` is the host's own JSON about an answer (memories used,
    figures); the engine stores it and does not read it.
    """

    id: NodeId
    seq: int
    kind: NodeKind
    role: Role
    content: str
    created_at_ms: int
    conversation_id: ConversationId | None = None
    project_id: ProjectId | None = None
    reply_to: NodeId | None = None
    branch_active: bool = True
    status: NodeStatus = NodeStatus.COMPLETE
    derived_from: tuple[NodeId, ...] = ()
    source_uri: str | None = None
    parent_id: NodeId | None = None
    byte_range: tuple[int, int] | None = None
    embedding_epoch: str | None = None
    hits: int = 0
    token_ids: tuple[int, ...] | None = None
    tokenizer: str | None = None
    trace: str | None = None
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cut:
    """Where a passage of a document ends (exclusive, in characters), and what stands above it."""

    end: int
    context: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentDraft:
    """A version of a document about to be kept.

    `uri` names the document through all its versions; `stamp` and `content_hash` are the host's own marks, by which it sees
    without reading, and without storing, that nothing changed. The passages that `cuts` end join to `text`, none longer than
    a chunk may be. `created_at_ms` is the time of the text itself (None: now).
    """

    uri: str
    stamp: str
    content_hash: str
    text: str
    cuts: tuple[Cut, ...]
    project_id: ProjectId | None = None
    created_at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentState:
    """What is known of a document: its newest version, and the host's marks of it."""

    uri: str
    node_id: NodeId
    stamp: str
    content_hash: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DocumentChange:
    """What keeping a version did to the passages of a document."""

    node_id: NodeId
    added: int
    kept: int
    retired: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EmbedderEpoch:
    """Which embedder made a vector, and how its cosines are to be read.

    `floor` and `ceiling` are the mean cosines of unrelated and related probe pairs; every similarity in the engine is
    `clamp((cos - floor) / (ceiling - floor), 0, 1)`. A question lies nearer to another question than to any passage, so the
    comparison of questions (learned edges) has its own pair. Source: design 4.4 "Calibration".
    """

    name: str
    dimension: int
    floor: float
    ceiling: float
    question_floor: float
    question_ceiling: float


class Scope(StrEnum):
    """Where a question looks first."""

    ALL = "all"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Selection:
    """Which nodes a search sees at all: a filter inside every search, never on its results. Nothing set is everything.

    Args: no `kinds` are all of them; `since_ms` is included, `until_ms` is not.
    """

    kinds: frozenset[NodeKind] = frozenset()
    project_id: ProjectId | None = None
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallQuery:
    """What to look for.

    Args: `exclude` are nodes that may not be returned (the question itself); `resident` are nodes already in the
    conversation's region: they are returned marked as such, so that a re-hit can warm them. `project_id` prefers; it filters
    with `scope` PROJECT, and what finds nothing there is widened to all. `kinds` are never widened. `since_ms` and `until_ms`
    (excluded) bound the time of a memory; where neither is given, a date in the text does, and is widened when it leaves
    nothing.
    """

    text: str
    project_id: ProjectId | None = None
    exclude: frozenset[NodeId] = frozenset()
    resident: frozenset[NodeId] = frozenset()
    pages_max: int = 6
    kinds: frozenset[NodeKind] = frozenset()
    scope: Scope = Scope.ALL
    since_ms: int | None = None
    until_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """A found memory: the node, the way it was found, and why it passed.

    `score` is the fused score in 0..1 that decided; `similarity` the calibrated vector similarity or None (no vector);
    `lexical` the idf-weighted share of the query's terms found, or None; `reason` is a short machine word such as
    `gate`, `substring`, `edge`.
    """

    node: Node
    way: Way
    score: float
    similarity: float | None = None
    lexical: float | None = None
    reason: str = ""
    resident: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallResult:
    """Pages, best first, whether they are enough, and what finding them cost.

    `passed_gate`: the evidence is rather among the pages than elsewhere, by `certainty`, the chance of that by the search's own
    ranking, or because this very question has used one of them before. Where it is false, the past may be read, whatever is shown.
    `degraded` names stores that did not answer (`embedder`, `vectors`): the result is then from the remaining ways.
    `widened` names filters that left nothing and were lifted (`dates`, `project`), in that order.
    """

    pages: tuple[Page, ...]
    passed_gate: bool
    best_score: float
    certainty: float
    candidates_seen: int
    scanned: int
    elapsed_ms: float
    degraded: tuple[str, ...] = ()
    widened: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactQuery:
    """A search of the past by reading it. Source: design 4.4 "Exact".

    Args: `question_id` is the node that asks (edges learned leave from it); `rejected` are nodes the user has called wrong for
    this question; `judgements_max` bounds what is put before the judge in this run; `budget_s` bounds its time, measured
    between batches (None: no bound). `forced` ignores other questions' stains and cached verdicts. The scan starts below
    `before_seq` (None: the newest node), so that a search goes on where an earlier one stopped.
    """

    text: str
    question_id: NodeId | None = None
    project_id: ProjectId | None = None
    exclude: frozenset[NodeId] = frozenset()
    rejected: frozenset[NodeId] = frozenset()
    judgements_max: int = 64
    budget_s: float | None = None
    forced: bool = False
    before_seq: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactResult:
    """What the exact layer found, best first, and how far it came.

    `judged` counts model judgements, `cached` remembered ones, `notes_read` both of the linear scan. `back_to_seq` and
    `back_to_ms` say where the scan stands (None: it was not needed); as `before_seq` of another search the first goes on
    from there. `complete` means the start of the timeline was reached. `trusted` is false where the judge only suggests. `degraded` names who did not answer (`judge`, `embedder`).
    """

    pages: tuple[Page, ...]
    judged: int = 0
    cached: int = 0
    notes_read: int = 0
    back_to_seq: int | None = None
    back_to_ms: int | None = None
    complete: bool = False
    trusted: bool = True
    elapsed_ms: float = 0.0
    degraded: tuple[str, ...] = ()


class Depth(StrEnum):
    """How thoroughly an interval was read. Source: seed item G12."""

    DEEP = "deep"
    """Every node of it was answered by a judge, for some cluster of questions."""
    LIGHT = "light"
    """Reached by a jump, or swept by vectors: there may be gaps."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StainSpan:
    """One band of the stain map: nodes `first_seq`..`last_seq`, both included, and for how many clusters of questions."""

    first_seq: int
    last_seq: int
    depth: Depth
    clusters: int
    first_ms: int
    last_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class StainSnapshot:
    """The timeline as a band. What lies in no span was never read. Spans ascend and do not overlap."""

    first_seq: int
    last_seq: int
    first_ms: int
    last_ms: int
    nodes: int
    spans: tuple[StainSpan, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class KSample:
    """A past question by which a pointer was followed, or refused."""

    text: str
    weight: int
    used_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PointerEdge:
    """One pointer as the graph panel shows it. `forced` is a jump pinned by the user."""

    source_id: NodeId
    target_id: NodeId
    target_title: str
    source_title: str
    heat: int
    positive: tuple[KSample, ...] = ()
    negative: tuple[KSample, ...] = ()
    forced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class NeighbourhoodSnapshot:
    """The pointer graph around one node: edges that leave it, hottest first, and edges that lead to it."""

    node_id: NodeId
    title: str
    leaving: tuple[PointerEdge, ...] = ()
    arriving: tuple[PointerEdge, ...] = ()


class Layout(StrEnum):
    """In which order resident blocks stand in the prompt; see `memory.paging.layout`."""

    APPEND_LOG = "append_log"
    TAIL_RING = "tail_ring"


class BlockKind(StrEnum):
    """What a resident block holds."""

    USER = "user"
    ASSISTANT = "assistant"
    MEMORY = "memory"
    TOOL_RESULT = "tool_result"


class PointerKind(StrEnum):
    """A RAG hit enters as a placeholder, an exact hit as real. Source: seed item G16."""

    PLACEHOLDER = "placeholder"
    REAL = "real"


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """One resident block of a context region. It never moves and never changes a byte of what is rendered while it is in.

    `turn` groups the blocks that are rendered into one user message (memories travel inside the turn's user message).
    `text` is what is rendered, header included; `tokens` its size by the real tokenizer, template pieces included for
    the block that opens a message. `token_ids` are the sampled ids of an assistant block. `pointer` is rendered nowhere: a
    placeholder becomes real when the block proves itself.
    """

    id: int
    turn: int
    kind: BlockKind
    node_id: NodeId
    text: str
    tokens: int
    loaded_at_ms: int
    reason: str = ""
    pointer: PointerKind = PointerKind.REAL
    token_ids: tuple[int, ...] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ResidentBlock:
    """A block with its pointer in the index queue, as paging and its store see it: heat as of turn `heat_turn`."""

    block: Block
    heat: float
    heat_turn: int
    pinned: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionState:
    """Budget and counters of a region; ids and turns are never given twice."""

    window_tokens: int
    system_tokens: int
    reserve_tokens: int
    tokenizer: str
    next_block_id: int = 1
    turn: int = 0
    page_ins: int = 0
    evictions: int = 0
    prompt_tokens: int = 0
    reused_tokens: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionBlock:
    """A block as a panel shows it: `cached` as of the last prompt, `protected` with the turns that do not leave.

    `role` and `created_at_ms` are those of its node.
    """

    block: Block
    heat: float
    pinned: bool
    cached: bool
    title: str
    protected: bool = False
    role: Role = Role.NONE
    created_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionSnapshot:
    """The context window to scale: system + blocks (load order) + free + reserve = window, all in tokens."""

    conversation_id: ConversationId | None
    window_tokens: int
    system_tokens: int
    reserve_tokens: int
    blocks: tuple[RegionBlock, ...]
    reused_tokens: int = 0
    prompt_tokens: int = 0
    high_watermark: float = 0.9
    low_watermark: float = 0.5
    evictions: int = 0
    page_ins: int = 0

    @property
    def used_tokens(self) -> int:
        """Tokens of system and resident blocks."""
        return self.system_tokens + sum(b.block.tokens for b in self.blocks)

    @property
    def cached_tokens(self) -> int:
        """Where the last prompt stopped coming from the KV cache, in tokens from the start; 0 before the first prompt.

        What the newest turn brought was new to it, whatever later calls of that turn, or evictions since, made of the count.
        """
        return min(self.reused_tokens, self.newest_turn_start)

    @property
    def newest_turn_start(self) -> int:
        """Where the newest turn's first block begins, in tokens."""
        newest = max((shown.block.turn for shown in self.blocks), default=0)
        at = self.system_tokens
        for shown in self.blocks:
            if shown.block.turn == newest:
                break
            at += shown.block.tokens
        return at


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueEntry:
    """One pointer of the index queue, hottest first in a snapshot."""

    block_id: int
    node_id: NodeId
    title: str
    kind: BlockKind
    pointer: PointerKind
    heat: float
    tokens: int
    pinned: bool
    loaded_at_ms: int


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueSnapshot:
    """The index queue of one conversation, hottest first."""

    conversation_id: ConversationId | None
    entries: tuple[QueueEntry, ...]


class DebtState(StrEnum):
    """How far the payment of a debt has come."""

    WAITING = "waiting"
    STARTED = "started"
    UNSURE = "unsure"
    """All of it was read; what is left got no clear answer, and is put aside until another judge reads, or the user asks for it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fragment:
    """An interval (by sequence number, both ends excluded) that a jump skipped unread.

    `query` is the question that jumped, `remaining` how many numbers of the interval are still unread for it.
    """

    entry_seq: int
    target_seq: int
    query: str
    created_at_ms: int
    remaining: int
    entry_title: str = ""
    target_title: str = ""
    state: DebtState = DebtState.WAITING

    @property
    def id(self) -> DebtId:
        """By which it is dreamt of."""
        return debt_id(self.entry_seq, self.target_seq)

    @property
    def first_seq(self) -> int:
        """First number of the interval."""
        return min(self.entry_seq, self.target_seq) + 1

    @property
    def last_seq(self) -> int:
        """Last number of the interval."""
        return max(self.entry_seq, self.target_seq) - 1

    @property
    def size(self) -> int:
        """Numbers in the interval."""
        return self.last_seq - self.first_seq + 1

    @property
    def progress(self) -> float:
        """Which share of it is read, 0..1."""
        return 1.0 - self.remaining / self.size if self.size > 0 else 1.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerSnapshot:
    """Open debts in the order in which they are paid, and how many were ever cleared. `now_ms` is for their age.

    `unclear` are owed no more: they were read, and what remains of each got no clear answer.
    """

    open: tuple[Fragment, ...]
    cleared: int
    nodes: int
    now_ms: int = 0
    unclear: tuple[Fragment, ...] = ()

    @property
    def remaining(self) -> int:
        """Places that are unread still, all debts together."""
        return sum(fragment.remaining for fragment in self.open)

    @property
    def unclear_notes(self) -> int:
        """Places that were read without a clear answer."""
        return sum(fragment.remaining for fragment in self.unclear)


def debt_id(entry_seq: int, target_seq: int) -> DebtId:
    """The name of a debt."""
    return DebtId(f"{entry_seq}-{target_seq}")


@dataclass(frozen=True, slots=True, kw_only=True)
class FatigueSnapshot:
    """The pressure meter and its three parts, each 0..1. Source: design 4.6.

    `total = 0.4*miss + 0.2*eviction + 0.4*debt`; `history` holds (time_ms, total) of the last day, oldest first.
    """

    total: float
    miss: float
    eviction: float
    debt: float
    accesses: int
    history: tuple[tuple[int, float], ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreHealth:
    """The state of one store. `lag` counts nodes that truth has and the store has not absorbed yet."""

    name: str
    ok: bool
    items: int
    lag: int
    bytes: int
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Statistics:
    """A cheap picture of the whole engine for the status line, the health panel and `--json`.

    `stains` counts intervals, over all clusters of questions; the last three are the neighbour cache's since the start.
    """

    nodes: int
    conversations: int
    embedded: int
    pending_embeddings: int
    edges: int
    learning_events: int
    stores: tuple[StoreHealth, ...]
    jumps: int = 0
    stains: int = 0
    fragments: int = 0
    anchors: int = 0
    cache_hits: int = 0
    cache_misses: int = 0
    cache_evictions: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditFinding:
    """One disagreement between stores, in machine words plus a number."""

    store: str
    problem: str
    count: int
    fixed: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditReport:
    """What an audit saw. Clean means no finding is left unfixed."""

    findings: tuple[AuditFinding, ...] = field(default=())
    nodes: int = 0

    @property
    def clean(self) -> bool:
        """True when nothing is left to repair."""
        return all(finding.fixed for finding in self.findings)
