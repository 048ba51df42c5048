"""The life of the window process: Qt starts, the assistant starts, the window lives, everything shuts down in order.

Start: words and colours kept from last time; a running instance is raised instead; the window, and behind it the memory (its lock first), which
loads half of the program while the window can already be typed in. Shutdown, once, however it was asked for: keep layout and drafts, hide the window, let the assistant end its turn and close its stores, cancel what is
left, end the loop.
"""

from __future__ import annotations

import asyncio
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
from ui.crash import CrashLog, past_crashes
from ui.icons import application_icon
from ui.main_window import MainWindow, Tasks
from ui.qt_language import use_qt_language
from ui.theme import theme
from ui.view_models import wording
from ui.window_state import WindowState

_DISPLAY_LOST = ("The X11 connection broke", "The Wayland connection broke")
_QT_LOG = logging.getLogger("qt")

MakeAssistant = Callable[[], Assistant]


def make_application(arguments: list[str]) -> QApplication:
    """The Qt application, named and styled."""
    application = QApplication(arguments)
    application.setApplicationName("GrowBox")
    application.setApplicationDisplayName("GrowBox")
    application.setDesktopFileName("growbox")
    application.setStyle("Fusion")
    application.setQuitOnLastWindowClosed(False)
    application.setWindowIcon(application_icon())
    return application


def _hear_qt(crash_log: CrashLog, kind: QtMsgType, context: object, text: str) -> None:
    """Logs what Qt says. A lost display is how a session may end, and Qt ends the process right after these words."""
    if text.startswith(_DISPLAY_LOST):
        crash_log.close()
    _log_qt_message(kind, context, text)


def _log_qt_message(kind: QtMsgType, _context: object, text: str) -> None:
    level = logging.INFO if kind in (QtMsgType.QtDebugMsg, QtMsgType.QtInfoMsg) else logging.WARNING
    _QT_LOG.log(level, "%s", text)


def run(data_path: Path, make_assistant: MakeAssistant) -> int:
    """Runs the window until it is closed; returns the exit code."""
    crash_log = CrashLog(data_path / "logs", SystemClock())
    crash_log.install()
    application = make_application(sys.argv[:1])
    qInstallMessageHandler(lambda *said: _hear_qt(crash_log, *said))
    # The session ends: the system may not wait until everything is closed.
    application.commitDataRequest.connect(lambda _session: crash_log.close())
    code = event_loop.run(application, Life(data_path, make_assistant, crash_log).run())
    crash_log.close()
    return code


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
        use_qt_language(tr.language)
        theme.use(choice)
        theme.follow_system()
        asyncio.get_running_loop().set_exception_handler(self._loop_trouble)
        event_loop.on_end_signal(self._closing.set)
        if await asyncio.to_thread(ask_to_raise, self._data_path):
            return 0  # before a second window could flash up
        try:
            assistant = self._make_assistant()
        except OSError as error:
            return await self._refuse(_unwritable(self._data_path, error))
        return await self._live(assistant)

    async def _live(self, assistant: Assistant) -> int:
        readers = TaskGroup(self._task_failed)
        turns = TaskGroup(self._task_failed)
        window = MainWindow(
            assistant,
            state=self._state,
            clock=SystemClock(),
            tasks=Tasks(readers=readers, turns=turns),
        )
        self.window = window
        window.close_wanted.connect(self._closing.set)
        self._crash_log.tell(window.say_crash)
        window.show()
        window.conversation_panel.input.setFocus()
        starting = turns.start("start", self._start(assistant, window))
        # A start that was begun is finished even when the user closes meanwhile: it is short, and stores close cleanly only when open.
        await asyncio.wait({starting})
        code = await self._after_start(window, starting, turns)
        window.hide()
        window.stop_updates()
        await readers.cancel_all()
        await assistant.shutdown()
        await turns.cancel_all()
        self._crash_log.tell(None)
        window.deleteLater()
        return code

    def _task_failed(self, _name: str, error: BaseException) -> None:
        self._crash_log.report(error)

    async def _start(self, assistant: Assistant, window: MainWindow) -> Problem | None:
        """Starts the assistant; known trouble is the answer, not an error."""
        try:
            await assistant.start(window.show_progress)
        except ProblemError as error:
            return error.problem
        return None

    async def _after_start(
        self, window: MainWindow, starting: asyncio.Task[Problem | None], turns: TaskGroup
    ) -> int:
        """Lives until closed, or says why the start failed; returns the exit code."""
        error = starting.exception()
        problem = starting.result() if error is None else _internal(error)
        if problem is not None:
            window.hide()
            return await self._refuse(problem)
        filling = turns.start("fill the window", window.start())
        await asyncio.wait({filling})  # what goes wrong in it was reported; the window lives on
        window.show()
        self._tell_past_crash(window)
        await self._closing.wait()
        window.keep()
        return 0

    def _tell_past_crash(self, window: MainWindow) -> None:
        """Only a window that lives tells it, and only once."""
        past = past_crashes(self._data_path / "logs")
        if past is not None:
            window.tell_past_crash(past.text)
            past.forget()

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
        box.finished.connect(lambda _result: self._closing.set())
        box.open()
        sys.stderr.write(wording.problem(problem) + "\n")
        await self._closing.wait()
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


def _internal(error: BaseException) -> Problem:
    return Problem(code=ProblemCode.INTERNAL, fields={"detail": str(error) or type(error).__name__})
