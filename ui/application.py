"""The life of the window process: Qt starts, the assistant starts, the window lives, everything shuts down in order.

Start: words and colours kept from last time, then the memory (its lock first), then the window; a second instance never shows one. Shutdown,
once, however it was asked for: keep layout and drafts, hide the window, let the assistant end its turn and close its stores, cancel what is
left, end the loop.
"""

from __future__ import annotations

import asyncio
import importlib.metadata
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QtMsgType, qInstallMessageHandler
from PySide6.QtWidgets import QApplication, QMessageBox

from growbox_app.api import Assistant, Problem, ProblemCode, ProblemError
from growbox_app.clock import SystemClock
from growbox_app.instance import ask_to_raise
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from ui import event_loop
from ui.crash import CrashLog
from ui.icons import application_icon
from ui.main_window import MainWindow
from ui.theme import theme
from ui.view_models import wording
from ui.window_state import WindowState

# The window waits this long for the memory to open, so that a second instance (whose lock fails at once) never flashes one.
WINDOW_DELAY_S = 0.25
_QT_LOG = logging.getLogger("qt")

MakeAssistant = Callable[[], Assistant]


def version() -> str:
    """The installed version; empty in a bare source tree."""
    try:
        return importlib.metadata.version("growbox")
    except importlib.metadata.PackageNotFoundError:
        return ""


def make_application(arguments: list[str]) -> QApplication:
    """The Qt application, named and styled."""
    application = QApplication(arguments)
    application.setApplicationName("GrowBox")
    application.setApplicationDisplayName("GrowBox")
    application.setDesktopFileName("growbox")
    application.setStyle("Fusion")
    application.setQuitOnLastWindowClosed(False)
    application.setWindowIcon(application_icon())
    qInstallMessageHandler(_log_qt_message)
    return application


def _log_qt_message(kind: QtMsgType, _context: object, text: str) -> None:
    level = logging.INFO if kind in (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg) else logging.WARNING
    _QT_LOG.log(level, "%s", text)


def run(data_path: Path, make_assistant: MakeAssistant) -> int:
    """Runs the window until it is closed; returns the exit code."""
    application = make_application(sys.argv[:1])
    clock = SystemClock()
    crash_log = CrashLog(data_path / "logs", clock)
    crash_log.install()
    return event_loop.run(application, Life(data_path, make_assistant, crash_log).run())


class Life:
    """One run of the window."""

    def __init__(self, data_path: Path, make_assistant: MakeAssistant, crash_log: CrashLog) -> None:
        self._data_path = data_path
        self._make_assistant = make_assistant
        self._crash_log = crash_log
        self._state = WindowState(data_path)
        self._closing = asyncio.Event()
        self.window: MainWindow | None = None

    async def run(self) -> int:
        """From start to exit code."""
        language, choice = self._state.appearance()
        tr.use(language)
        theme.use(choice)
        theme.follow_system()
        asyncio.get_running_loop().set_exception_handler(self._loop_trouble)
        event_loop.on_end_signal(self._closing.set)
        try:
            assistant = self._make_assistant()
        except OSError as error:
            return await self._refuse(_unwritable(self._data_path, error))
        return await self._live(assistant)

    async def _live(self, assistant: Assistant) -> int:
        tasks = TaskGroup(lambda _name, error: self._crash_log.report(error))
        window = MainWindow(
            assistant, state=self._state, clock=SystemClock(), tasks=tasks, version=version()
        )
        self.window = window
        window.close_wanted.connect(self._closing.set)
        self._crash_log.tell(window.say_crash)
        starting = tasks.start("start", assistant.start(window.show_progress))
        await asyncio.wait({starting}, timeout=WINDOW_DELAY_S)
        if not starting.done():
            window.show()
        await asyncio.wait(
            {starting, ending := tasks.start("closing", self._wait_for_end())},
            return_when=asyncio.FIRST_COMPLETED,
        )
        code = 0
        if starting.done() and not starting.cancelled() and starting.exception() is not None:
            code = await self._start_failed(window, starting.exception())
        elif starting.done():
            await window.start()
            window.show()
            await ending
            window.keep()
        window.hide()
        window.bridge.close()
        await assistant.shutdown()
        await tasks.cancel_all()
        window.deleteLater()
        return code

    async def _wait_for_end(self) -> None:
        await self._closing.wait()

    async def _start_failed(self, window: MainWindow, error: BaseException | None) -> int:
        window.hide()
        if isinstance(error, ProblemError):
            return await self._refuse(error.problem)
        return await self._refuse(Problem(code=ProblemCode.INTERNAL, fields={"detail": str(error)}))

    async def _refuse(self, problem: Problem) -> int:
        """Raises the running instance, or says why GrowBox cannot start."""
        if problem.code is ProblemCode.DATA_LOCKED and await asyncio.to_thread(
            ask_to_raise, self._data_path
        ):
            return 0
        box = QMessageBox()
        box.setWindowTitle("GrowBox")
        box.setIcon(QMessageBox.Icon.Warning)
        box.setText(wording.problem(problem))
        box.setDetailedText(problem.detail)
        closed = asyncio.Event()
        box.finished.connect(lambda _result: closed.set())
        box.open()
        sys.stderr.write(wording.problem(problem) + "\n")
        await asyncio.wait(
            {
                asyncio.get_running_loop().create_task(event.wait())
                for event in (closed, self._closing)
            },
            return_when=asyncio.FIRST_COMPLETED,
        )
        box.deleteLater()
        return 1

    def _loop_trouble(self, _loop: asyncio.AbstractEventLoop, context: dict[str, object]) -> None:
        error = context.get("exception")
        if isinstance(error, BaseException):
            self._crash_log.report(error)
        else:
            self._crash_log.report(RuntimeError(str(context.get("message"))))


def _unwritable(path: Path, error: OSError) -> Problem:
    fields = {"path": str(path)}
    return Problem(code=ProblemCode.DATA_UNWRITABLE, fields=fields, detail=str(error))
