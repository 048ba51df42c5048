"""The background mind in the window: the meter's buttons, the ledger's, the line at the foot, and the input that wakes it."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QApplication

from growbox_app.api import EnginePhase, EngineStatus, Problem, ProblemCode, StatusChanged
from growbox_app.rest.schedule import RestPhase, RestReason, RestStatus
from memory.rest_values import DreamReport, RestOutcome, SleepReport
from memory.values import DebtState, Fragment, LedgerSnapshot, debt_id
from tests.fakes.assistant import START_MS
from tests.gui.conftest import Desk
from tests.gui.rest_past import TRUSTED
from ui.activity import ActivityWatch
from ui.panels.rest_controls import RestControls

OWING = RestStatus(coming=RestPhase.SLEEPING, reason=RestReason.DEBTS, in_s=221.0, debts=2)
DEBTS = tuple(
    Fragment(entry_seq=at + 9, target_seq=at, query=f"q{at}", created_at_ms=START_MS, remaining=8)
    for at in (10, 30)
)


async def opened(desk: Desk, status: RestStatus = OWING) -> RestControls:
    """A window with two debts, a judge that may pay them, and the meter in front."""
    desk.assistant.mind.skills = TRUSTED
    desk.assistant.rest.now = status
    desk.assistant.mind.ledger_snapshot = LedgerSnapshot(open=DEBTS, cleared=0, nodes=50)
    await desk.open()
    desk.window.panels.show_panel("fatigue")
    await desk.settle()
    return desk.window.panels.fatigue.rest


async def test_the_meter_says_what_comes_and_counts_down_only_in_sight(desk: Desk) -> None:
    controls = await opened(desk)
    assert controls.headline.text() == "Sleeps in 4 min: 2 debts"
    assert desk.window.rest._countdown.isActive()
    desk.assistant.rest.now = replace(OWING, in_s=61.0)
    desk.window.rest._countdown.timeout.emit()
    assert controls.headline.text() == "Sleeps in 61 s: 2 debts"
    desk.window.panels.docks["ledger"].raise_()
    await desk.until(lambda: not desk.window.rest._countdown.isActive())


async def test_dream_runs_shows_its_progress_and_says_how_it_ended(desk: Desk) -> None:
    controls = await opened(desk)
    rest = desk.assistant.rest
    rest.gate = asyncio.Event()
    rest.dream_report = DreamReport(outcome=RestOutcome.DONE, judged=12)
    controls.dream_button.setFocus()
    controls.dream_button.click()
    await desk.until(controls.wake_button.isEnabled)
    assert not controls.dream_button.isEnabled()
    assert controls.dream_button.toolTip() == "Something runs already."
    assert desk.window.focusWidget() is controls.wake_button
    rest.tell(replace(rest.now, judged=12, discoveries=2, remaining=48))
    await desk.until(lambda: "12" in controls.headline.text())
    assert controls.headline.text() == "Dreaming · 12 notes read · 2 found"
    assert controls.detail.text() == "48 unread here · 2 debts · you asked for it"
    assert (controls._bar.value(), controls._bar.maximum()) == (12, 60)
    assert desk.window.status_line.text().count("Dreaming · 12 notes read · 2 found") == 1
    rest.gate.set()
    await desk.settle()
    assert rest.asked == ["dream"]
    assert controls.detail.text().endswith("The debt is paid. 12 notes read")
    assert not controls.wake_button.isEnabled()
    assert "Background: idle" in desk.window.status_line.text()


async def test_wake_ends_what_runs(desk: Desk) -> None:
    controls = await opened(desk)
    desk.assistant.rest.gate = asyncio.Event()
    controls.sleep_button.click()
    await desk.until(controls.wake_button.isEnabled)
    controls.wake_button.click()
    await desk.settle()
    assert desk.assistant.rest.asked == ["sleep", "wake"]
    assert controls.detail.text().endswith(" · Woken.")


async def test_a_question_is_named_as_what_ended_it(desk: Desk) -> None:
    controls = await opened(desk)
    rest = desk.assistant.rest
    rest.gate = asyncio.Event()
    controls.sleep_button.click()
    await desk.until(controls.wake_button.isEnabled)
    rest.now = replace(rest.now, coming=RestPhase.AWAKE, reason=RestReason.FOREGROUND)
    rest.wake()
    await desk.settle()
    assert controls.detail.text().endswith(" · Woken by your question.")


async def test_a_sleep_that_nobody_asked_for_is_told_afterwards(desk: Desk) -> None:
    controls = await opened(desk)
    rest = desk.assistant.rest
    rest.tell(replace(OWING, phase=RestPhase.SLEEPING))
    rest.tell(replace(OWING, phase=RestPhase.SLEEPING, judged=3, debts=1))
    rest.tell(RestStatus(reason=RestReason.RESTED))  # in the same batch: nothing is lost
    await desk.settle()
    assert controls.headline.text() == "Rested: nothing is owed and nothing is new"
    assert controls.detail.text().endswith("Slept by itself. 2 debts paid")
    await desk.assistant.change_setting("general.language", "zh")
    desk.window.apply_settings()
    await desk.settle()
    assert controls.detail.text().endswith("自己睡了一觉。 清理了 2 个碎片")


async def test_a_nap_and_a_failure_are_said(desk: Desk) -> None:
    controls = await opened(desk)
    controls.nap_button.click()
    await desk.settle()
    assert controls.detail.text().endswith("3 blocks left the region, 40 cached results cleared.")
    desk.assistant.rest.fail = Problem(code=ProblemCode.DISK_FULL, detail="x")
    desk.window.run_command("sleep")
    await desk.settle()
    assert desk.window.conversation_panel.problem_bar.problem is desk.assistant.rest.fail


async def test_without_a_fit_judge_the_buttons_say_why(desk: Desk) -> None:
    controls = await opened(desk)
    ledger = desk.window.panels.ledger
    assert controls.dream_button.isEnabled()
    assert ledger.rest.button.isEnabled()
    assert not ledger.judge.isHidden()
    desk.assistant.mind.skills = (replace(TRUSTED[0], trusted=False),)
    desk.assistant.tell(StatusChanged())
    await desk.settle()
    badly = "This model judges too badly to pay debts. Choose another one."
    assert not controls.dream_button.isEnabled()
    assert not controls.sleep_button.isEnabled()
    assert controls.nap_button.isEnabled()
    assert controls.sleep_button.accessibleDescription() == badly
    assert not ledger.rest.button.isEnabled()
    assert ledger.rest.words.text() == badly
    assert ledger.judge.isHidden()
    assert "AUC" in ledger.rest.words.toolTip()
    desk.assistant.status = EngineStatus(phase=EnginePhase.LOADING)
    desk.assistant.tell(StatusChanged())
    await desk.settle()
    assert ledger.rest.words.text() == "Needs a model; none is loaded."


async def test_the_ledger_dreams_one_row_or_all(desk: Desk) -> None:
    await opened(desk)
    ledger, rest = desk.window.panels.ledger, desk.assistant.rest
    desk.window.panels.show_panel("ledger")
    ledger.table.setCurrentItem(ledger.table.topLevelItem(1))
    assert ledger.dream_button.isEnabled()
    assert ledger.dream_button.accessibleName() == "Dream this: q30"
    ledger.dream_button.click()
    await desk.settle()
    assert rest.asked == [f"dream {debt_id(39, 30)}"]
    rest.gate = asyncio.Event()
    rest.dream_report = DreamReport(outcome=RestOutcome.EMPTY)
    ledger.rest.button.click()
    await desk.until(lambda: ledger.rest.button.text() == "Wake")
    assert ledger.rest.button.isEnabled()
    assert not ledger.dream_button.isEnabled()
    rest.now = replace(rest.now, debts=0)
    rest.gate.set()
    await desk.settle()
    assert rest.asked[1:] == ["dream all"]
    assert ledger.rest.words.text() == "No debt is open."
    desk.assistant.mind.ledger_snapshot = LedgerSnapshot(open=(), cleared=2, nodes=50)
    await desk.window.panels.pull()
    assert ledger.rest.button.isHidden()
    assert ledger.rest.words.isHidden()
    assert desk.window.panels.fatigue.rest.detail.text().endswith("No debt is left. 2 debts paid")


async def test_another_wish_says_how_it_ended_in_place_of_the_first(desk: Desk) -> None:
    controls = await opened(desk)
    rest = desk.assistant.rest
    rest.gate = asyncio.Event()
    rest.sleep_report = SleepReport(outcome=RestOutcome.EMPTY)
    desk.window.run_command("dream")
    desk.window.run_command("sleep")
    await desk.until(lambda: len(rest.asked) == 2)
    rest.gate.set()
    await desk.settle()
    assert controls.detail.text().endswith("There was nothing to sleep over.")


async def test_the_line_at_the_foot_leads_to_the_meter(desk: Desk) -> None:
    await opened(desk)
    desk.window.panels.docks["fatigue"].hide()
    desk.window.status_line._background.click()
    assert not desk.window.panels.docks["fatigue"].isHidden()
    for name in ("dream", "sleep", "nap", "wake", "dream_all"):
        desk.window.run_command(name)
    await desk.settle()
    assert {"dream", "sleep", "nap", "wake", "dream all"} <= set(desk.assistant.rest.asked)


# -- input ----------------------------------------------------------------------------------------
class StepClock:
    """Seconds that a test sets."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def monotonic_s(self) -> float:
        return self.now_s

    def now_ms(self) -> int:
        return 0


def _key() -> QKeyEvent:
    return QKeyEvent(QEvent.Type.KeyPress, Qt.Key.Key_A, Qt.KeyboardModifier.NoModifier, "a")


def _move() -> QMouseEvent:
    place = QPointF(5, 5)
    none = Qt.MouseButton.NoButton
    return QMouseEvent(
        QEvent.Type.MouseMove, place, place, place, none, none, Qt.KeyboardModifier.NoModifier
    )


async def test_input_in_the_window_is_told_once_a_second(desk: Desk) -> None:
    await opened(desk)
    handle = desk.window.windowHandle()
    rest, watch = desk.assistant.rest, desk.window.rest._activity
    clock = StepClock()
    watch._clock = clock
    watch._told_s = None
    rest.activities = 0
    for _times in range(50):
        QApplication.sendEvent(handle, _key())
    assert rest.activities == 1
    clock.now_s += 0.9
    QApplication.sendEvent(handle, _move())
    assert rest.activities == 1
    clock.now_s += 0.2
    QApplication.sendEvent(handle, _move())
    assert rest.activities == 2
    clock.now_s += 5
    QApplication.sendEvent(handle, QEvent(QEvent.Type.User))
    assert rest.activities == 2


async def test_what_an_input_method_composes_is_input_too(desk: Desk) -> None:
    await opened(desk)
    rest, watch = desk.assistant.rest, desk.window.rest._activity
    desk.window.activateWindow()
    desk.window.conversation_panel.input.setFocus()
    await desk.until(lambda: QApplication.focusWindow() is not None)
    watch._clock = StepClock()
    watch._told_s = None
    rest.activities = 0
    QApplication.inputMethod().cursorRectangleChanged.emit()
    assert rest.activities == 1


async def test_what_the_window_shows_by_itself_is_no_input(desk: Desk) -> None:
    await opened(desk)
    rest, watch = desk.assistant.rest, desk.window.rest._activity
    desk.window.activateWindow()
    desk.window.conversation_panel.input.setFocus()
    await desk.until(lambda: QApplication.focusWindow() is not None)
    await desk.settle()
    watch._clock = StepClock()
    watch._told_s = None
    rest.activities = 0
    for judged in (1, 900, 64_000):
        rest.tell(replace(OWING, phase=RestPhase.SLEEPING, judged=judged, remaining=judged))
        await desk.settle()
    rest.tell(OWING)
    await desk.settle()
    assert rest.activities == 0


async def test_a_closed_watch_tells_nothing(desk: Desk) -> None:
    await opened(desk)
    told: list[int] = []
    watch = ActivityWatch(lambda: told.append(1), StepClock(), desk.window)
    QApplication.sendEvent(desk.window.windowHandle(), _key())
    assert told == [1]
    watch.close()
    watch._told_s = None
    QApplication.sendEvent(desk.window.windowHandle(), _key())
    QApplication.inputMethod().cursorRectangleChanged.emit()
    assert told == [1]


async def test_a_debt_that_was_put_aside_can_be_dreamt_of_though_nothing_is_owed(
    desk: Desk,
) -> None:
    aside = replace(DEBTS[1], state=DebtState.UNSURE)
    await opened(desk, RestStatus(unclear=1))
    desk.assistant.mind.ledger_snapshot = LedgerSnapshot(
        open=(), cleared=0, nodes=50, unclear=(aside,)
    )
    await desk.window.panels.pull()
    ledger = desk.window.panels.ledger
    ledger.table.setCurrentItem(ledger.table.topLevelItem(0))
    assert not ledger.rest.button.isEnabled()
    assert ledger.dream_button.isEnabled()
    ledger.dream_button.click()
    await desk.until(lambda: f"dream {aside.id}" in desk.assistant.rest.asked)
