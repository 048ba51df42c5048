"""Joins the background mind with the window: its buttons, its progress, its line at the foot, and the input that wakes it.

Event-loop thread. What the user asks for runs in a task of its own, is cancelled when the window closes, and costs nothing then: memory
keeps every answer. The countdown is looked at once a second, and only while the meter is in sight.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from PySide6.QtCore import QObject, QTimer, Signal

from growbox_app.api import Assistant, EnginePhase, ProblemError
from growbox_app.rest import words
from growbox_app.rest.schedule import RestPhase, RestStatus
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from memory.ports import Clock
from memory.values import DebtId
from ui.activity import ActivityWatch
from ui.panels.fatigue_meter import FatiguePanel
from ui.panels.fragment_ledger import FragmentLedgerPanel
from ui.panels.status_line import StatusLine
from ui.view_models import rest as rest_words
from ui.view_models.journal import time_of_day

COUNTDOWN_MS = 1_000


@dataclass(frozen=True, slots=True, kw_only=True)
class RestPlaces:
    """Where rest is shown."""

    fatigue: FatiguePanel
    ledger: FragmentLedgerPanel
    status_line: StatusLine


class RestFlow(QObject):
    """Rest in the window.

    Signals: `trouble(Problem)`, `ended()` when something that ran is over, `news_changed(int)`.
    """

    trouble = Signal(object)
    ended = Signal()
    news_changed = Signal(int)

    def __init__(
        self, assistant: Assistant, places: RestPlaces, *, tasks: TaskGroup, clock: Clock
    ) -> None:
        super().__init__(places.fatigue)
        self._assistant = assistant
        self._places = places
        self._tasks = tasks
        self._clock = clock
        self._status = RestStatus()
        self._ended: Callable[[], str] = str
        self._owed_before = 0
        self._wish = 0
        self._closed = False
        self._activity = ActivityWatch(assistant.rest.activity, clock, self)
        self._countdown = QTimer(self)
        self._countdown.setInterval(COUNTDOWN_MS)
        self._countdown.timeout.connect(self.look)
        self._connect()

    def _connect(self) -> None:
        fatigue, ledger = self._places.fatigue, self._places.ledger
        fatigue.rest.dream_wanted.connect(self.dream)
        fatigue.rest.sleep_wanted.connect(self.sleep)
        fatigue.rest.nap_wanted.connect(self.nap)
        fatigue.rest.wake_wanted.connect(self.wake)
        ledger.rest.dream_all_wanted.connect(self.dream_all)
        ledger.rest.wake_wanted.connect(self.wake)
        ledger.dream_wanted.connect(self.dream)

    # -- life -------------------------------------------------------------------------------------
    def close(self) -> None:
        """Shows and tells nothing any more."""
        self._closed = True
        self._countdown.stop()
        self._activity.close()

    def watch(self, in_sight: bool) -> None:
        """Counts down while the meter is in sight."""
        if in_sight and not self._closed:
            self._countdown.start()
            self.look()
        else:
            self._countdown.stop()

    # -- what is shown ----------------------------------------------------------------------------
    def look(self) -> None:
        """Shows what is done now, or what comes next."""
        self.show_status(self._assistant.rest.status())

    def show_status(self, status: RestStatus) -> None:
        """Shows another moment."""
        before, self._status = self._status, status
        if before.phase is RestPhase.AWAKE and status.phase is not RestPhase.AWAKE:
            # Of the reports within one batch the first may be missing: what was owed before it counts.
            self._owed_before = max(_owed(before), _owed(status))
        if before.phase is not RestPhase.AWAKE and status.phase is RestPhase.AWAKE:
            self._over(before, status)
        if before.news != status.news:
            self.news_changed.emit(status.news)
        self._show()

    def _over(self, before: RestStatus, status: RestStatus) -> None:
        if not before.asked:
            paid = self._owed_before - _owed(status)
            self._say(lambda: rest_words.slept_alone(before.phase, paid))
        self.ended.emit()

    def _say(self, sentence: Callable[[], str]) -> None:
        """How the last one ended, with its time; a callable, for the language may change."""
        now_ms = self._clock.now_ms()
        self._ended = lambda: f"{time_of_day(now_ms)} · {sentence()}"
        self._show()

    def _show(self) -> None:
        status = self._status
        paused = bool(self._assistant.setting("memory.paused"))
        view = rest_words.view(status, self._judge(), paused=paused, ended=self._ended())
        self._places.fatigue.rest.show_view(view)
        self._places.ledger.show_rest(view)
        self._places.status_line.show_rest(words.doing(status, tr))

    def _judge(self) -> rest_words.Judge:
        ready = self._assistant.engine_status().phase is EnginePhase.READY
        trusted = any(skill.trusted for skill in self._assistant.mind.judge_skills())
        return rest_words.Judge(ready=ready, trusted=trusted)

    # -- what the user asks for -----------------------------------------------------------------
    def dream(self, debt_id: DebtId | None = None) -> None:
        """A visit to a debt, or to the next one."""

        async def work() -> Callable[[], str] | None:
            report = await self._assistant.rest.dream(debt_id)
            return None if report is None else lambda: rest_words.dreamt(report)

        self._ask("dream", work)

    def dream_all(self) -> None:
        """Visits until no debt is left."""
        before = _owed(self._status)

        async def work() -> Callable[[], str] | None:
            report = await self._assistant.rest.dream_all()
            paid = before - _owed(self._assistant.rest.status())
            return None if report is None else lambda: rest_words.dreamt_all(report, paid)

        self._ask("dream all", work)

    def sleep(self) -> None:
        """A whole sleep."""

        async def work() -> Callable[[], str] | None:
            report = await self._assistant.rest.sleep()
            return None if report is None else lambda: rest_words.slept(report)

        self._ask("sleep", work)

    def nap(self) -> None:
        """Clears the working set."""

        async def work() -> Callable[[], str] | None:
            report = await self._assistant.rest.nap()
            return lambda: rest_words.napped(report)

        self._ask("nap", work)

    def wake(self) -> None:
        """Ends what runs."""
        self._assistant.rest.wake()

    def _ask(self, name: str, work: Callable[[], Awaitable[Callable[[], str] | None]]) -> None:
        self._wish += 1
        wish = self._wish
        self._tasks.start(name, self._carry_out(work, wish))

    async def _carry_out(
        self, work: Callable[[], Awaitable[Callable[[], str] | None]], wish: int
    ) -> None:
        try:
            sentence = await work()
        except ProblemError as error:
            self.trouble.emit(error.problem)
            return
        if wish != self._wish:
            return  # the user has asked for something else meanwhile; that one will say how it ended
        if sentence is None:
            status = self._assistant.rest.status()
            self._say(lambda: rest_words.interrupted(status))
        else:
            self._say(sentence)
        self.look()
        self.ended.emit()


def _owed(status: RestStatus) -> int:
    """A debt that was put aside is not paid by that."""
    return status.debts + status.unclear
