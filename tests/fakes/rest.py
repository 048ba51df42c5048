"""A scripted background mind: its status is what a test says, its journal a list, and what the window asks for is noted.

`gate`, when set to an `asyncio.Event`, holds a dream or a sleep until it is set or woken; `fail` makes every call fail.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace

from growbox_app.api import AppEvent, Problem, ProblemError, RestChanged
from growbox_app.rest.schedule import RestPhase, RestStatus
from memory.rest_values import (
    DreamReport,
    Experience,
    Goal,
    GoalKind,
    JournalEntry,
    JournalFilter,
    JournalPage,
    NapReport,
    ProposalState,
    RestOutcome,
    SkillProposal,
    SleepReport,
)
from memory.values import DebtId, NodeId

GOALS_MAX = 24


class ScriptedRest:
    """Implements `growbox_app.api.RestFace` by a script."""

    def __init__(self, tell: Callable[[AppEvent], None]) -> None:
        self._tell = tell
        self.now = RestStatus()
        self.gate: asyncio.Event | None = None
        self.fail: Problem | None = None
        self.asked: list[str] = []
        self.activities = 0
        self.seen = 0
        self.entries: list[JournalEntry] = []
        self.wanted: list[JournalFilter] = []
        self.dream_report = DreamReport(outcome=RestOutcome.DONE, judged=12)
        self.sleep_report = SleepReport(outcome=RestOutcome.DONE)
        self.nap_report = NapReport(blocks=3, cached=40)
        self.known_proposals: list[SkillProposal] = []
        self.known_experiences: tuple[Experience, ...] = ()
        kinds = (GoalKind.IMPROVE, GoalKind.TEST, GoalKind.AUTOMATE)
        self.known_goals = [Goal(id=at, kind=kind, text="") for at, kind in enumerate(kinds, 1)]
        self._woken = False

    # -- the worker -----------------------------------------------------------------------------
    def tell(self, status: RestStatus) -> None:
        """Something moved."""
        self.now = status
        self._tell(RestChanged(status=status))

    def status(self) -> RestStatus:
        """What `tell` said last."""
        return self.now

    def activity(self) -> None:
        """Counts."""
        self.activities += 1

    def wake(self) -> None:
        """Lets what is held end without a report."""
        self.asked.append("wake")
        self._woken = True
        if self.gate is not None:
            self.gate.set()

    async def _run(self, name: str, phase: RestPhase) -> bool:
        self.asked.append(name)
        self._check()
        self._woken = False
        self.tell(replace(self.now, phase=phase, asked=True))
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(0)
        self.tell(replace(self.now, phase=RestPhase.AWAKE, asked=False, judged=0, discoveries=0))
        return not self._woken

    def _check(self) -> None:
        if self.fail is not None:
            raise ProblemError(self.fail)

    async def dream(self, debt_id: DebtId | None = None) -> DreamReport | None:
        """One visit."""
        done = await self._run(f"dream {debt_id or ''}".strip(), RestPhase.DREAMING)
        return self.dream_report if done else None

    async def dream_all(self) -> DreamReport | None:
        """All visits."""
        done = await self._run("dream all", RestPhase.DREAMING)
        return self.dream_report if done else None

    async def sleep(self) -> SleepReport | None:
        """A sleep."""
        return self.sleep_report if await self._run("sleep", RestPhase.SLEEPING) else None

    async def nap(self) -> NapReport:
        """A nap."""
        self.asked.append("nap")
        self._check()
        return self.nap_report

    # -- the dream journal ----------------------------------------------------------------------
    async def journal(self, wanted: JournalFilter) -> JournalPage:
        """The listed entries that fit, newest first."""
        self._check()
        self.wanted.append(wanted)
        fitting = [
            entry
            for entry in sorted(self.entries, key=lambda entry: -entry.id)
            if entry.cause in wanted.causes
            and (entry.yes or not wanted.finds_only)
            and wanted.text.casefold() in entry.question.casefold()
            and (wanted.before_id is None or entry.id < wanted.before_id)
        ]
        shown = tuple(fitting[: wanted.limit])
        unseen = sum(entry.new for entry in self.entries)
        return JournalPage(entries=shown, more=len(fitting) > len(shown), unseen=unseen)

    async def mark_journal_seen(self) -> None:
        """Nothing is new any more."""
        self.seen += 1
        self.entries = [replace(entry, new=False) for entry in self.entries]
        self.tell(replace(self.now, news=0))

    async def undo(self, entry_id: int) -> bool:
        """Marks it."""
        self._check()
        for at, entry in enumerate(self.entries):
            if entry.id == entry_id and not entry.undone:
                self.entries[at] = replace(entry, undone=True)
                return True
        return False

    # -- the flywheel ---------------------------------------------------------------------------
    async def goals(self) -> tuple[Goal, ...]:
        """In order."""
        return tuple(self.known_goals)

    async def add_goal(self, text: str) -> Goal | None:
        """Adds one, while there is room."""
        if not text.strip() or len(self.known_goals) >= GOALS_MAX:
            return None
        goal = Goal(id=max(goal.id for goal in self.known_goals) + 1, kind=GoalKind.OWN, text=text)
        self.known_goals.append(goal)
        return goal

    async def remove_goal(self, goal_id: int) -> None:
        """Removes one's own."""
        self.known_goals = [goal for goal in self.known_goals if goal.id != goal_id]

    async def enable_goal(self, goal_id: int, *, enabled: bool) -> None:
        """Switches."""
        self._change(goal_id, enabled=enabled)

    async def reword_goal(self, goal_id: int, text: str) -> None:
        """Rewords."""
        self._change(goal_id, text=text)

    def _change(self, goal_id: int, **changes: object) -> None:
        self.known_goals = [
            replace(goal, **changes) if goal.id == goal_id else goal  # type: ignore[arg-type]
            for goal in self.known_goals
        ]

    async def proposals(self) -> tuple[SkillProposal, ...]:
        """Open ones first."""
        return tuple(
            sorted(self.known_proposals, key=lambda item: item.state is not ProposalState.OPEN)
        )

    async def experiences(self) -> tuple[Experience, ...]:
        """The scripted ones."""
        return self.known_experiences

    async def decide_proposal(self, proposal_id: int, *, accepted: bool) -> NodeId | None:
        """Notes the decision."""
        state = ProposalState.ACCEPTED if accepted else ProposalState.REJECTED
        self.known_proposals = [
            replace(item, state=state) if item.id == proposal_id else item
            for item in self.known_proposals
        ]
        return NodeId("skill") if accepted else None
