"""What the engine tells its host: a closed union of frozen events.

Emitted on the storage thread, after commit, in order. An event says what changed; panels then pull a snapshot, so a missed
event can never leave a wrong screen, and no business rule depends on delivery.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol, TypeAlias

from memory.rest_values import Cause
from memory.values import ConversationId, DebtId, NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeRecorded:
    """A node is durable."""

    node_id: NodeId
    conversation_id: ConversationId | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionChanged:
    """Blocks entered or left a region, or were pinned."""

    conversation_id: ConversationId
    paged_in: int = 0
    evicted: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class QueueChanged:
    """Heat changed."""

    conversation_id: ConversationId


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningRecorded:
    """An act of learning was appended to the log. Background causes are news for the dream journal."""

    kind: str
    cause: Cause = Cause.USER


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexProgress:
    """Background indexing moved; `pending` nodes still have no vector."""

    done: int
    pending: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FatigueChanged:
    """The meter moved."""

    total: float


@dataclass(frozen=True, slots=True, kw_only=True)
class RestProgress:
    """A dream has read a batch, or a rehearsal ended. Numbers of this visit, `remaining` of its debt, `debts_open` in all."""

    activity: Cause
    debt_id: DebtId | None = None
    judged: int = 0
    discoveries: int = 0
    remaining: int = 0
    debts_open: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreTrouble:
    """A derived store failed or recovered. `problem` is empty on recovery."""

    store: str
    problem: str


Event: TypeAlias = (
    NodeRecorded
    | RegionChanged
    | QueueChanged
    | LearningRecorded
    | IndexProgress
    | FatigueChanged
    | RestProgress
    | StoreTrouble
)


class EventSink(Protocol):
    """Takes events. Must be O(1) and must not raise."""

    def emit(self, event: Event, /) -> None:
        """Takes one event."""
        ...
