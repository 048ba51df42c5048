"""The memory as its panels show it: implements `growbox_app.mind_face.MindFace`. Event-loop thread; the work is the storage thread's."""

from __future__ import annotations

from collections.abc import Callable

from growbox_app.api import Problem, ProblemCode, ProblemError
from growbox_app.memory_service import MemoryService, Priority
from growbox_app.mind_face import JudgeSkill
from growbox_app.problems import guarded
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


class Mind:
    """Shows the memory; `skills` tells how well the loaded model judges."""

    def __init__(self, memory: MemoryService, skills: Callable[[], tuple[JudgeSkill, ...]]) -> None:
        self._memory, self._skills = memory, skills

    async def node(self, node_id: NodeId) -> Node | None:
        """See `MindFace.node`."""
        return await self._memory.for_face(lambda engine: engine.node(node_id))

    async def node_at(self, seq: int) -> Node | None:
        """See `MindFace.node_at`."""
        return await self._memory.for_face(lambda engine: engine.node_at(seq))

    async def region(self, conversation_id: ConversationId | None) -> RegionSnapshot:
        """See `MindFace.region`."""
        return await self._memory.for_face(lambda engine: engine.region(conversation_id))

    async def queue(self, conversation_id: ConversationId | None) -> QueueSnapshot:
        """See `MindFace.queue`."""
        return await self._memory.for_face(lambda engine: engine.queue(conversation_id))

    async def ledger(self) -> LedgerSnapshot:
        """See `MindFace.ledger`."""
        return await self._memory.for_face(lambda engine: engine.ledger())

    def judge_skills(self) -> tuple[JudgeSkill, ...]:
        """See `MindFace.judge_skills`."""
        return self._skills()

    async def stains(self) -> StainSnapshot:
        """See `MindFace.stains`."""
        return await self._memory.for_face(lambda engine: engine.stains())

    async def neighbourhood(self, node_id: NodeId) -> NeighbourhoodSnapshot:
        """See `MindFace.neighbourhood`."""
        return await self._memory.for_face(lambda engine: engine.neighbourhood(node_id))

    async def fatigue(self) -> FatigueSnapshot:
        """See `MindFace.fatigue`."""
        return await self._memory.for_face(lambda engine: engine.fatigue())

    async def statistics(self) -> Statistics:
        """See `MindFace.statistics`."""
        return await self._memory.for_face(lambda engine: engine.statistics())

    async def pin(self, conversation_id: ConversationId, block_id: int, *, pinned: bool) -> None:
        """See `MindFace.pin`."""
        await self._memory.for_face(lambda engine: engine.pin(conversation_id, block_id, pinned))

    async def evict(self, conversation_id: ConversationId, block_id: int) -> None:
        """See `MindFace.evict`."""
        await self._memory.for_face(lambda engine: engine.evict(conversation_id, block_id))

    async def not_relevant(self, answer_id: NodeId, memory_id: NodeId) -> None:
        """See `MindFace.not_relevant`."""
        query = (await self.answered(answer_id))[1].content
        await self._memory.for_face(
            lambda engine: engine.learn_not_relevant(query=query, memory_id=memory_id)
        )

    async def audit(self, *, fix: bool) -> AuditReport:
        """See `MindFace.audit`."""
        return await self._memory.for_face(lambda engine: engine.audit(fix=fix, full=True))

    async def rebuild(self) -> AuditReport:
        """See `MindFace.rebuild`."""
        return await guarded(self._memory.drive(lambda engine: engine.rebuild(), Priority.PANEL))

    # -- for the application ----------------------------------------------------------------------
    async def answered(self, answer_id: NodeId) -> tuple[Node, Node]:
        """An answer and its question.

        Raises:
            ProblemError: there is no such answer, or the memory could not find it.
        """
        answer = await self.node(answer_id)
        question = await self.node(answer.reply_to) if answer and answer.reply_to else None
        if answer is None or question is None:
            raise ProblemError(Problem(code=ProblemCode.INTERNAL, detail=f"no answer {answer_id}"))
        return answer, question
