"""The memory as its panels show it, and what is done there. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

from memory.values import (
    AuditReport,
    ConversationId,
    FatigueSnapshot,
    LedgerSnapshot,
    NeighbourhoodSnapshot,
    Node,
    NodeId,
    QueueSnapshot,
    RegionSnapshot,
    StainSnapshot,
    Statistics,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeSkill:
    """How well the loaded model tells in one language whether a passage answers a question.

    `auc` is measured on questions with hard wrong passages, with its 95 % interval; None where nobody has measured this model.
    One that is not `trusted` only suggests.
    """

    language: str
    auc: float | None
    auc_low: float | None
    auc_high: float | None
    trusted: bool


class MindFace(Protocol):
    """What the panels and the command line see of the memory. Event-loop thread.

    Raises:
        ProblemError: the memory could not do it.
    """

    async def node(self, node_id: NodeId) -> Node | None:
        """One node, for "open source"."""
        ...

    async def node_at(self, seq: int) -> Node | None:
        """The node at a place of the timeline, for the stain map and the ends of a fragment."""
        ...

    async def region(self, conversation_id: ConversationId | None) -> RegionSnapshot:
        """The context region of a conversation."""
        ...

    async def queue(self, conversation_id: ConversationId | None) -> QueueSnapshot:
        """The index queue of a conversation, hottest first."""
        ...

    async def ledger(self) -> LedgerSnapshot:
        """The fragment ledger."""
        ...

    def judge_skills(self) -> tuple[JudgeSkill, ...]:
        """How well the loaded model judges, by language; empty while none is loaded."""
        ...

    async def stains(self) -> StainSnapshot:
        """How thoroughly the timeline was read, as bands."""
        ...

    async def neighbourhood(self, node_id: NodeId) -> NeighbourhoodSnapshot:
        """The pointer graph around a node."""
        ...

    async def fatigue(self) -> FatigueSnapshot:
        """The fatigue meter."""
        ...

    async def statistics(self) -> Statistics:
        """Counts and store health."""
        ...

    async def pin(self, conversation_id: ConversationId, block_id: int, *, pinned: bool) -> None:
        """Pins or unpins a resident block."""
        ...

    async def evict(self, conversation_id: ConversationId, block_id: int) -> None:
        """Evicts a resident block now."""
        ...

    async def not_relevant(self, answer_id: NodeId, memory_id: NodeId) -> None:
        """Records that a memory did not belong to this answer's question."""
        ...

    async def audit(self, *, fix: bool) -> AuditReport:
        """Checks all stores against each other, in full."""
        ...

    async def rebuild(self) -> AuditReport:
        """Recreates every derived store from truth."""
        ...
