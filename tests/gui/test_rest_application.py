"""The window over the whole application: a debt is dreamt by button, stands in the journal, and is taken back."""

from __future__ import annotations

import asyncio
from pathlib import Path

from growbox_app.tasks import TaskGroup
from memory.rest_values import JournalFilter
from tests.fakes.application import scripted
from tests.fakes.clock import FakeClock
from tests.fakes.resting import QuietMachine, owe, trusted
from tests.gui.conftest import TIMEOUT_S
from ui.main_window import MainWindow, Tasks
from ui.window_state import WindowState


async def test_a_debt_is_paid_by_button_and_undone_in_the_journal(
    loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    clock = FakeClock()
    app = scripted(tmp_path, clock=clock, machine=QuietMachine(), calibration=trusted)
    for key, value in {"models.prewarm": False, "memory.search_past": False}.items():
        await app.change_setting(key, value)
    failures: list[BaseException] = []
    readers, turns = (
        TaskGroup(lambda _name, error: failures.append(error)),
        TaskGroup(lambda _name, error: failures.append(error)),
    )
    window = MainWindow(
        app,
        state=WindowState(tmp_path),
        clock=clock,
        tasks=Tasks(readers=readers, turns=turns),
    )
    try:
        await app.start(window.show_progress)
        await window.start()
        window.show()
        await app._engine.ready()
        assert await owe(app) == 1
        await app.rest.look_again()
        await _pay_and_undo(window, app.rest)
        assert (await app.mind.audit(fix=False)).clean
    finally:
        window.stop_updates()
        window.hide()
        await readers.cancel_all()
        await app.shutdown()
        await turns.cancel_all()
        window.deleteLater()
    assert failures == []


async def _pay_and_undo(window: MainWindow, rest: object) -> None:
    from growbox_app.rest.room import RestRoom

    assert isinstance(rest, RestRoom)
    controls = window.panels.fatigue.rest
    async with asyncio.timeout(TIMEOUT_S):
        while not controls.dream_button.isEnabled():
            await asyncio.sleep(0.01)
        assert controls.headline.text().startswith("Sleeps in ")
        controls.dream_button.click()
        while "paid" not in controls.detail.text():
            await asyncio.sleep(0.01)
        while window.sidebar.journal_button.text() == "Journal":
            await asyncio.sleep(0.01)
        window.run_command("journal")
        changes = window.journal.page.changes
        while not changes.list.journal.entries:
            await asyncio.sleep(0.01)
        while window.sidebar.journal_button.text() != "Journal":
            await asyncio.sleep(0.01)
        assert rest.status().news == 0
        changes.list.setCurrentIndex(changes.list.journal.index(1))
        changes.detail.undo_button.click()
        while not (await rest.journal(JournalFilter())).entries[0].undone:
            await asyncio.sleep(0.01)
        while changes.detail.undo_button.isEnabled():
            await asyncio.sleep(0.01)
