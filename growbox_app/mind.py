"""The memory as its panels show it: implements `growbox_app.mind_face.MindFace`. Event-loop thread; the work is the storage thread's."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, TypeVar

from growbox_app.api import ProblemError
from growbox_app.memory_service import MemoryService, Priority
from growbox_app.mind_face import JudgeSkill
from growbox_app.problems import problem_of
from memory.errors import MemoryEngineError
from memory.values import (
    AuditReport,
    ConversationId,
    FatigueSnapshot,
    LedgerSnapshot,
    NeighbourhoodSnapshot,
    NodeId,
    QueueSnapshot,
    RegionSnapshot,
    StainSnapshot,
    Statistics,
)

if TYPE_CHECKING:
    from memory.engine import MemoryEngine

T = TypeVar("T")


class Mind:
    """Shows the memory; `skills` tells how well the loaded model judges."""

    def __init__(self, memory: MemoryService, skills: Callable[[], tuple[JudgeSkill, ...]]) -> None:
        self._memory, self._skills = memory, skills

    async def region(self, conversation_id: ConversationId | None) -> RegionSnapshot:
        """See `MindFace.region`."""
        return await self._guarded(lambda engine: engine.region(conversation_id))

    async def queue(self, conversation_id: ConversationId | None) -> QueueSnapshot:
        """See `MindFace.queue`."""
        return await self._guarded(lambda engine: engine.queue(conversation_id))

    async def ledger(self) -> LedgerSnapshot:
        """See `MindFace.ledger`."""
        return await self._guarded(lambda engine: engine.ledger())

    def judge_skills(self) -> tuple[JudgeSkill, ...]:
        """See `MindFace.judge_skills`."""
        return self._skills()

    async def stains(self) -> StainSnapshot:
        """See `MindFace.stains`."""
        return await self._guarded(lambda engine: engine.stains())

    async def neighbourhood(self, node_id: NodeId) -> NeighbourhoodSnapshot:
        """See `MindFace.neighbourhood`."""
        return await self._guarded(lambda engine: engine.neighbourhood(node_id))

    async def fatigue(self) -> FatigueSnapshot:
        """See `MindFace.fatigue`."""
        return await self._guarded(lambda engine: engine.fatigue())

    async def statistics(self) -> Statistics:
        """See `MindFace.statistics`."""
        return await self._guarded(lambda engine: engine.statistics())

    async def pin(self, conversation_id: ConversationId, block_id: int, *, pinned: bool) -> None:
        """See `MindFace.pin`."""
        await self._guarded(lambda engine: engine.pin(conversation_id, block_id, pinned))

    async def evict(self, conversation_id: ConversationId, block_id: int) -> None:
        """See `MindFace.evict`."""
        await self._guarded(lambda engine: engine.evict(conversation_id, block_id))

    async def audit(self, *, fix: bool) -> AuditReport:
        """See `MindFace.audit`."""
        return await self._guarded(lambda engine: engine.audit(fix=fix, full=True))

    async def rebuild(self) -> AuditReport:
        """See `MindFace.rebuild`."""
        try:
            return await self._memory.drive(lambda engine: engine.rebuild(), Priority.PANEL)
        except MemoryEngineError as error:
            raise ProblemError(problem_of(error)) from error

    async def _guarded(self, work: Callable[[MemoryEngine], T]) -> T:
        try:
            return await self._memory.call(work, Priority.PANEL)
        except MemoryEngineError as error:
            raise ProblemError(problem_of(error)) from error
