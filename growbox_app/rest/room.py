"""The face of rest: the worker's verbs, the dream journal, and the flywheel's goals and proposals, as the window calls them.

Implements `growbox_app.rest.face.RestFace`. Event-loop thread; every call that reads or changes memory is one step on the storage
thread. Known trouble is a `ProblemError`.
"""

from __future__ import annotations

from growbox_app.memory_service import MemoryService
from growbox_app.problems import guarded
from growbox_app.rest.schedule import RestStatus
from growbox_app.rest.worker import Rest
from memory.rest_values import (
    DreamReport,
    Experience,
    Goal,
    JournalFilter,
    JournalPage,
    NapReport,
    SkillProposal,
    SleepReport,
)
from memory.values import DebtId, NodeId

EXPERIENCES_MAX = 1_000
"""More are not shown: a proposal rests on recent ones."""


class RestRoom:
    """Delegates to the worker and to memory."""

    def __init__(self, worker: Rest, memory: MemoryService) -> None:
        self.worker = worker
        self._memory = memory

    # -- the worker -----------------------------------------------------------------------------
    def status(self) -> RestStatus:
        """See `RestFace.status`."""
        return self.worker.status()

    async def look_again(self) -> None:
        """Looks at memory and machine now, so that `status` is of this moment."""
        await guarded(self.worker.look_again())

    def activity(self) -> None:
        """See `RestFace.activity`."""
        self.worker.activity()

    def wake(self) -> None:
        """See `RestFace.wake`."""
        self.worker.wake()

    async def dream(self, debt_id: DebtId | None = None) -> DreamReport | None:
        """See `RestFace.dream`."""
        return await guarded(self.worker.dream(debt_id))

    async def dream_all(self) -> DreamReport | None:
        """See `RestFace.dream_all`."""
        return await guarded(self.worker.dream_all())

    async def sleep(self) -> SleepReport | None:
        """See `RestFace.sleep`."""
        return await guarded(self.worker.sleep())

    async def nap(self) -> NapReport:
        """See `RestFace.nap`."""
        return await guarded(self.worker.nap())

    # -- the dream journal ----------------------------------------------------------------------
    async def journal(self, wanted: JournalFilter) -> JournalPage:
        """See `RestFace.journal`."""
        return await self._memory.for_face(lambda engine: engine.journal(wanted))

    async def mark_journal_seen(self) -> None:
        """See `RestFace.mark_journal_seen`."""
        await self._memory.for_face(lambda engine: engine.mark_journal_seen())
        await self.worker.look_again()

    async def undo(self, entry_id: int) -> bool:
        """See `RestFace.undo`."""
        done = await self._memory.for_face(lambda engine: engine.undo(entry_id))
        await self.worker.look_again()
        return done

    # -- the flywheel ---------------------------------------------------------------------------
    async def goals(self) -> tuple[Goal, ...]:
        """See `RestFace.goals`."""
        return await self._memory.for_face(lambda engine: engine.goals())

    async def add_goal(self, text: str) -> Goal | None:
        """See `RestFace.add_goal`."""
        return await self._memory.for_face(lambda engine: engine.add_goal(text))

    async def remove_goal(self, goal_id: int) -> None:
        """See `RestFace.remove_goal`."""
        await self._memory.for_face(lambda engine: engine.remove_goal(goal_id))

    async def enable_goal(self, goal_id: int, *, enabled: bool) -> None:
        """See `RestFace.enable_goal`."""
        await self._memory.for_face(lambda engine: engine.enable_goal(goal_id, enabled))

    async def reword_goal(self, goal_id: int, text: str) -> None:
        """See `RestFace.reword_goal`."""
        await self._memory.for_face(lambda engine: engine.reword_goal(goal_id, text))

    async def proposals(self) -> tuple[SkillProposal, ...]:
        """See `RestFace.proposals`."""
        return await self._memory.for_face(lambda engine: engine.proposals())

    async def experiences(self) -> tuple[Experience, ...]:
        """See `RestFace.experiences`."""
        return await self._memory.for_face(lambda engine: engine.experiences(EXPERIENCES_MAX))

    async def decide_proposal(self, proposal_id: int, *, accepted: bool) -> NodeId | None:
        """See `RestFace.decide_proposal`."""
        return await self._memory.for_face(
            lambda engine: engine.decide_proposal(proposal_id, accepted=accepted)
        )
