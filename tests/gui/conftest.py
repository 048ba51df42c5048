"""Fixtures of the window's tests: no display, one asyncio+Qt loop per test, the scripted assistant."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Callable, Iterator
from pathlib import Path

os.environ["QT_QPA_PLATFORM"] = "offscreen"

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication

from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from tests.fakes.assistant import ScriptedAssistant
from ui.event_loop import new_event_loop
from ui.main_window import MainWindow, Tasks
from ui.theme import theme
from ui.window_state import WindowState

TIMEOUT_S = 20


class ScriptClock:
    """The time of the script, standing still while a test looks."""

    def __init__(self, assistant: ScriptedAssistant) -> None:
        self._assistant = assistant

    def now_ms(self) -> int:
        """A minute after the last thing that happened in the script."""
        return self._assistant.now_ms()

    def monotonic_s(self) -> float:
        """Not used by the window."""
        return 0.0


class Desk:
    """A window on a scripted assistant."""

    def __init__(self, data_path: Path, assistant: ScriptedAssistant) -> None:
        self.assistant = assistant
        self.failures: list[BaseException] = []
        self.readers = TaskGroup(lambda _name, error: self.failures.append(error))
        self.turns = TaskGroup(lambda _name, error: self.failures.append(error))
        self.state = WindowState(data_path)
        self.window = MainWindow(
            assistant,
            state=self.state,
            clock=ScriptClock(assistant),
            tasks=Tasks(readers=self.readers, turns=self.turns),
        )

    async def open(self) -> None:
        """Starts the assistant, fills the window and shows it."""
        await self.assistant.start(self.window.show_progress)
        await self.window.start()
        self.window.show()
        await self.settle()

    async def until(self, condition: Callable[[], bool]) -> None:
        """Lets the loop run until something is so; fails after the time-out."""
        async with asyncio.timeout(TIMEOUT_S):
            while not condition():
                await asyncio.sleep(0.002)

    async def settle(self) -> None:
        """Lets the running turn and everything that was started come to rest."""
        await asyncio.sleep(0.002)
        await self.until(self._at_rest)
        await self.window.panels.pull()
        await self.until(self._at_rest)

    def _at_rest(self) -> bool:
        timers = (
            self.window.bridge._timer,
            self.window.panels._timer,
            self.window.conversation_panel.view._flush,
        )
        return (
            not self.readers._tasks
            and not self.turns._tasks
            and not any(timer.isActive() for timer in timers)
        )

    def ask(self, text: str) -> None:
        """Types a question and sends it."""
        self.window.conversation_panel.composer.show_text(text)
        self.window.conversation_panel.input.submit()

    async def close(self) -> None:
        """Ends everything, and fails on an error nobody saw."""
        self.window.stop_updates()
        self.window.hide()
        await self.readers.cancel_all()
        await self.turns.cancel_all()
        self.window.deleteLater()
        QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
        assert not self.failures, self.failures


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The off-screen platform says for every shown window what it cannot do; nothing else may be said."""
    for item in items:
        if "tests/gui" in item.path.as_posix():
            item.add_marker(pytest.mark.qt_log_ignore("^This plugin does not support"))


@pytest.hookimpl(tryfirst=True)
def pytest_pyfunc_call(pyfuncitem: pytest.Function) -> bool | None:
    """Runs a coroutine test on the Qt loop, to its end and that of its window, in one go.

    qasync processes Qt events once more after a run, without a running loop; nothing may be left to happen then.
    """
    if not inspect.iscoroutinefunction(pyfuncitem.obj):
        return None
    arguments = {name: pyfuncitem.funcargs[name] for name in pyfuncitem._fixtureinfo.argnames}

    async def whole() -> None:
        try:
            await pyfuncitem.obj(**arguments)
        finally:
            if (desk := pyfuncitem.funcargs.get("desk")) is not None:
                await desk.close()

    pyfuncitem.funcargs["loop"].run_until_complete(whole())
    return True


@pytest.fixture
def loop(qapp: QApplication) -> Iterator[asyncio.AbstractEventLoop]:
    """An asyncio loop on Qt's, closed at the end."""
    made = new_event_loop(qapp)
    asyncio.set_event_loop(made)
    qapp.setQuitOnLastWindowClosed(False)
    qapp.setStyle("Fusion")
    tr.use("en")
    theme.use("light", conversation_pixels=15)
    yield made
    made.run_until_complete(made.shutdown_asyncgens())
    made.close()
    # Timers of cancelled time-outs still run in it; collected by a worker thread of a later test, it would complain.
    made._timer.deleteLater()  # type: ignore[attr-defined]
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    asyncio.set_event_loop(None)


@pytest.fixture
def assistant() -> ScriptedAssistant:
    """A scripted assistant."""
    return ScriptedAssistant()


@pytest.fixture
def desk(loop: asyncio.AbstractEventLoop, tmp_path: Path, assistant: ScriptedAssistant) -> Desk:
    """A window that is not open yet; `await desk.open()` opens it. Closed with its test."""
    return Desk(tmp_path, assistant)
