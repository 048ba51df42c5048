"""Rest as a face sees it. Implemented by `growbox_app.rest.room.RestRoom`, and by a script in the tests of the window.

Everything here is called on the event-loop thread; nothing here blocks it.
"""

from __future__ import annotations

from typing import Protocol

from growbox_app.rest.schedule import RestStatus
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


class RestFace(Protocol):
    """Dreams, sleep, naps, the dream journal and the flywheel. Every `async` method may raise `ProblemError`."""

    def status(self) -> RestStatus:
        """What the background does now, or what comes next and when."""
        ...

    def activity(self) -> None:
        """The user did something in a face: a sleep that nobody asked for ends."""
        ...

    def wake(self) -> None:
        """Ends what the background does."""
        ...

    async def dream(self, debt_id: DebtId | None = None) -> DreamReport | None:
        """Pays one debt, or the next one, as far as one visit goes. None: woken, or a turn came."""
        ...

    async def dream_all(self) -> DreamReport | None:
        """Pays all debts. The report is that of the last visit."""
        ...

    async def sleep(self) -> SleepReport | None:
        """Dreams and rehearses until nothing is left. None: woken, or a turn came."""
        ...

    async def nap(self) -> NapReport:
        """Clears the working set and the caches; nothing that was learned."""
        ...

    async def journal(self, wanted: JournalFilter) -> JournalPage:
        """What was changed, newest first."""
        ...

    async def mark_journal_seen(self) -> None:
        """The user has looked: nothing in the journal is new any more."""
        ...

    async def undo(self, entry_id: int) -> bool:
        """Takes one change back. False: it was not there any more."""
        ...

    async def goals(self) -> tuple[Goal, ...]:
        """The permanent goals."""
        ...

    async def add_goal(self, text: str) -> Goal | None:
        """Adds a goal of the user's. None: empty, or there are too many."""
        ...

    async def remove_goal(self, goal_id: int) -> None:
        """Removes a goal of the user's."""
        ...

    async def enable_goal(self, goal_id: int, *, enabled: bool) -> None:
        """Lets a goal have idle turns, or not."""
        ...

    async def reword_goal(self, goal_id: int, text: str) -> None:
        """Gives a goal of the user's another text."""
        ...

    async def proposals(self) -> tuple[SkillProposal, ...]:
        """Skills that were proposed, open ones first."""
        ...

    async def experiences(self) -> tuple[Experience, ...]:
        """What was tried and what came of it, newest first: what proposals and conclusions rest on."""
        ...

    async def decide_proposal(self, proposal_id: int, *, accepted: bool) -> NodeId | None:
        """Accepts or rejects a proposal. An accepted one is recorded as a node."""
        ...
