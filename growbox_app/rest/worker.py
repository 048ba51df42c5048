"""The idle worker: sleeps, learns and naps for one application, and says what it does and what comes next.

Owns the rest of the application: one background task that looks every few seconds whether it is time (`schedule.plan`), and the
user's own Dream, Sleep, Nap and Wake. Everything it starts goes through the arbiter. Invariants: what nobody asked for ends at
any input; what the user asked for ends when he asks a question or says Wake; a failure is answered by the back-off that the
engine names, never by a loop; nothing runs behind `close`. Event-loop thread. A crash loses the visit it falls into, which
memory takes up again.

Source: design 4.6, 5.5.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from growbox_app.api import AppEvent, MemoryChanged, RestChanged
from growbox_app.memory_service import MemoryService, Priority
from growbox_app.rest.arbiter import Arbiter, Claim, Interrupted
from growbox_app.rest.machine import Machine
from growbox_app.rest.schedule import RestPhase, RestPlan, RestReason, RestStatus, Seen, plan
from growbox_app.settings.store import SettingsStore
from growbox_app.tasks import TaskGroup
from memory.errors import MemoryEngineError
from memory.events import LearningRecorded, RestProgress
from memory.ports import Clock
from memory.requests import Operation
from memory.rest_values import (
    BACKGROUND,
    DreamReport,
    FlywheelReport,
    GoalKind,
    NapReport,
    RestOutcome,
    SleepReport,
)
from memory.values import DebtId

if TYPE_CHECKING:
    from memory.engine import MemoryEngine

T = TypeVar("T")

TICK_S = 5.0
LOOK_S = 600.0
"""So often it is asked whether another judge reads now; it costs no judgement."""
RETRY_S = 60.0
"""After an outage that the engine says nothing about (a full disk)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RestParts:
    """What the worker works with. `ready` tells whether a model is loaded, `trusted` whether its verdicts may teach."""

    memory: MemoryService
    arbiter: Arbiter
    clock: Clock
    settings: SettingsStore
    machine: Machine
    ready: Callable[[], bool]
    trusted: Callable[[], bool]
    tell: Callable[[AppEvent], None]


class Rest:
    """The idle worker of one application."""

    def __init__(self, parts: RestParts) -> None:
        self._parts = parts
        self._memory = parts.memory
        self._tasks = TaskGroup()
        self._active_s = parts.clock.monotonic_s()
        self._retry_s = 0.0
        self._slept_since_use = False
        self._fruitless = 0
        self._goals = 0
        self._debts = self._unclear = 0
        self._look_s = 0.0
        self._fatigue = 0.0
        self._on_battery = self._busy = False
        self._task: asyncio.Task[Any] | None = None
        self._asked = False
        self._closed = False
        self._status = RestStatus()

    # -- what happens outside -----------------------------------------------------------------
    def start(self) -> None:
        """Looks from now on."""
        self._tasks.start("rest", self._watch())

    async def close(self) -> None:
        """Ends what runs; nothing begins any more."""
        self._closed = True
        await self._tasks.cancel_all()
        await self._parts.arbiter.close()

    def activity(self) -> None:
        """The user did something: what nobody asked for ends."""
        self._active_s = self._parts.clock.monotonic_s()
        if self._task is not None and not self._asked:
            self._task.cancel()

    def used(self) -> None:
        """Memory was used: there may be something new to sleep and to learn from."""
        self.activity()
        self._slept_since_use = False
        self._fruitless = 0
        self._retry_s = 0.0

    def hear(self, event: AppEvent) -> None:
        """Listener: how far a dream has come, and what is new in the journal."""
        if not isinstance(event, MemoryChanged):
            return
        for change in event.events:
            if isinstance(change, RestProgress):
                self._status = replace(
                    self._status,
                    judged=change.judged,
                    discoveries=change.discoveries,
                    remaining=change.remaining,
                    debts=change.debts_open,
                )
                self._tell()
            elif isinstance(change, LearningRecorded) and change.cause in BACKGROUND:
                self._status = replace(self._status, news=self._status.news + 1)
                self._tell()

    def status(self) -> RestStatus:
        """What is done now, or what comes next and when."""
        if self._task is not None:
            return self._status
        coming = self._plan()
        return replace(
            self._status,
            phase=RestPhase.AWAKE,
            asked=False,
            coming=coming.phase,
            reason=coming.reason,
            in_s=coming.in_s,
            debts=self._debts,
            unclear=self._unclear,
            fatigue=self._fatigue,
        )

    # -- what the user asks for -----------------------------------------------------------------
    async def dream(self, debt: DebtId | None = None) -> DreamReport | None:
        """One visit to one debt, or to the next. None: something else was more urgent."""
        return await self._on_request(
            RestPhase.DREAMING, lambda: self._drive(partial(_dream, debt))
        )

    async def dream_all(self) -> DreamReport | None:
        """Visits until no debt is left, or a round brought nothing."""
        return await self._on_request(RestPhase.DREAMING, self._dream_on)

    async def sleep(self) -> SleepReport | None:
        """A whole sleep, now."""
        return await self._on_request(RestPhase.SLEEPING, lambda: self._drive(_sleep))

    async def nap(self) -> NapReport:
        """Clears the working set and the caches."""
        report = await self._memory.call(lambda engine: engine.nap(), Priority.PANEL)
        await self.look_again()
        return report

    async def look_again(self) -> None:
        """Somebody changed what the status shows."""
        await self._look()
        self._tell()

    def wake(self) -> None:
        """Ends what runs."""
        self._active_s = self._parts.clock.monotonic_s()
        if self._task is not None:
            self._task.cancel()

    # -- the watch ------------------------------------------------------------------------------
    async def _watch(self) -> None:
        while True:
            await self.tick()
            await asyncio.sleep(TICK_S)

    async def tick(self) -> None:
        """Looks, and does what it is time for; returns when that is done."""
        if self._task is not None or self._closed:
            return
        with contextlib.suppress(MemoryEngineError):
            await self._look()
            coming = self._plan()
            self._tell()
            if coming.reason in (RestReason.RESTED, RestReason.GOALS) and self._unclear:
                await self._look_who_judges()
            if coming.phase is RestPhase.AWAKE or coming.in_s > 0 or self._task is not None:
                return
            if coming.phase is RestPhase.SLEEPING:
                await self._unasked(RestPhase.SLEEPING, Claim.SLEEP, self._sleep)
            else:
                await self._unasked(RestPhase.LEARNING, Claim.FLYWHEEL, self._learn)

    async def _look_who_judges(self) -> None:
        """A debt that one model had no clear answer to is owed to another one."""
        now_s = self._parts.clock.monotonic_s()
        if now_s >= self._look_s:
            self._look_s = now_s + LOOK_S
            await self._drive(_reopen)

    async def _look(self) -> None:
        machine = self._parts.machine
        self._on_battery = await asyncio.to_thread(machine.on_battery)
        self._busy = await asyncio.to_thread(machine.busy)

        def look(engine: MemoryEngine) -> tuple[int, int, float, int, int]:
            goals = sum(goal.enabled for goal in engine.goals())
            ledger = engine.ledger()
            debts, unclear = len(ledger.open), len(ledger.unclear)
            return debts, unclear, engine.fatigue().total, goals, engine.journal_unseen()

        found = await self._memory.call(look, Priority.BACKGROUND)
        self._debts, self._unclear, self._fatigue, self._goals, unseen = found
        self._status = replace(self._status, news=unseen)

    def _plan(self) -> RestPlan:
        parts = self._parts
        after_s = 60.0 * int(parts.settings.get("rest.sleep_after_minutes"))
        seen = Seen(
            now_s=parts.clock.monotonic_s(),
            sleep_at_s=self._active_s + after_s,
            retry_at_s=self._retry_s,
            enabled=bool(parts.settings.get("rest.enabled"))
            and not parts.settings.get("memory.paused"),
            foreground=parts.arbiter.foreground,
            on_battery=self._on_battery and not parts.settings.get("rest.on_battery"),
            busy=self._busy,
            ready=parts.ready(),
            trusted=parts.trusted(),
            debts=self._debts,
            fatigue=self._fatigue,
            slept_since_use=self._slept_since_use,
            goals_left=self._fruitless < self._goals,
        )
        return plan(seen)

    # -- work -----------------------------------------------------------------------------------
    async def _unasked(
        self, phase: RestPhase, claim: Claim, work: Callable[[], Coroutine[Any, Any, None]]
    ) -> None:
        """Nobody waits for it: however it ends, the next look decides."""
        with contextlib.suppress(Interrupted, asyncio.CancelledError):
            await self._as_task(phase, claim, work, asked=False)
        ours = asyncio.current_task()
        if ours is not None and ours.cancelling():
            raise asyncio.CancelledError

    async def _on_request(
        self, phase: RestPhase, work: Callable[[], Coroutine[Any, Any, T]]
    ) -> T | None:
        if self._closed:
            return None
        self.wake()
        if self._task is not None:
            await asyncio.wait({self._task})
        try:
            return await self._as_task(phase, Claim.SLEEP, work, asked=True)
        except (Interrupted, asyncio.CancelledError):
            ours = asyncio.current_task()
            if ours is not None and ours.cancelling():
                raise
            return None

    async def _as_task(
        self,
        phase: RestPhase,
        claim: Claim,
        work: Callable[[], Coroutine[Any, Any, T]],
        *,
        asked: bool,
    ) -> T:
        self._asked = asked
        task = self._tasks.start(f"rest {phase}", self._parts.arbiter.run(claim, work))
        self._task = task
        self._status = RestStatus(
            phase=phase,
            asked=asked,
            debts=self._debts,
            unclear=self._unclear,
            fatigue=self._fatigue,
            news=self._status.news,
        )
        self._tell()
        try:
            found: T = await task
            return found
        finally:
            task.cancel()
            self._task = None
            with contextlib.suppress(MemoryEngineError):
                await self._look()
            self._tell()

    async def _sleep(self) -> None:
        try:
            report = await self._drive(_sleep)
        except MemoryEngineError:
            self._retry_s = self._parts.clock.monotonic_s() + RETRY_S
            raise
        self._slept_since_use = report.outcome is not RestOutcome.WOKEN
        self._retry_s = self._parts.clock.monotonic_s() + report.retry_after_s

    async def _learn(self) -> None:
        try:
            report: FlywheelReport = await self._drive(_flywheel)
        except MemoryEngineError:
            self._retry_s = self._parts.clock.monotonic_s() + RETRY_S
            raise
        # Testing an old conclusion brings nothing new.
        tested = report.goal is not None and report.goal.kind is GoalKind.TEST
        concluded = report.knowledge_id is not None and not tested
        brought = concluded or report.proposal_id is not None
        self._fruitless = 0 if brought else self._fruitless + 1

    async def _dream_on(self) -> DreamReport:
        fruitless = 0
        while True:
            report: DreamReport = await self._drive(partial(_dream, None))
            fruitful = report.answered or report.outcome is RestOutcome.UNSURE  # put aside
            fruitless = 0 if fruitful else fruitless + 1
            ended = report.outcome not in (RestOutcome.DONE, RestOutcome.PARTLY, RestOutcome.UNSURE)
            if ended or fruitless > max(1, self._status.debts):
                return report

    async def _drive(self, operation: Callable[[MemoryEngine], Operation[T]]) -> T:
        found: T = await self._memory.drive(operation, Priority.BACKGROUND)
        return found

    # -- telling --------------------------------------------------------------------------------
    def _tell(self) -> None:
        if not self._closed:
            self._parts.tell(RestChanged(status=self.status()))


def _dream(debt: DebtId | None, engine: MemoryEngine) -> Operation[DreamReport]:
    return engine.dream(debt)


def _reopen(engine: MemoryEngine) -> Operation[int]:
    return engine.reopen_debts()


def _sleep(engine: MemoryEngine) -> Operation[SleepReport]:
    return engine.sleep()


def _flywheel(engine: MemoryEngine) -> Operation[FlywheelReport]:
    return engine.flywheel()
