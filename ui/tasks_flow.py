"""Background tasks in the window: the item in the line at the foot, and the dialog behind it. Event-loop thread.

The item follows the application's word; the dialog looks once a second besides, and only while it is shown.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from growbox_app.api import Assistant
from memory.ports import Clock
from ui.bridge import Bridge
from ui.panels.controls import refresh
from ui.panels.status_line import StatusLine
from ui.panels.tasks_dialog import TasksDialog, Titles
from ui.view_models import tasks as words

LOOK_MS = 1_000


class TasksFlow(QObject):
    """What the user sees of background tasks and does with them. `titles` names a conversation and its project.

    Signals: `conversation_wanted(ConversationId)`.
    """

    conversation_wanted = Signal(object)

    def __init__(
        self,
        assistant: Assistant,
        bridge: Bridge,
        status_line: StatusLine,
        titles: Titles,
        *,
        clock: Clock,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._tasks = assistant.background_tasks
        self._status_line, self._titles, self._clock = status_line, titles, clock
        self._window = parent
        self._dialog: TasksDialog | None = None
        self._timer = QTimer(self)
        self._timer.setInterval(LOOK_MS)
        self._timer.timeout.connect(self._look)
        bridge.tasks_changed.connect(self.show_tasks)
        status_line.tasks_wanted.connect(self.open)

    def open(self) -> None:
        """Shows the dialog."""
        dialog = self._open_dialog()
        if dialog is None:
            self._dialog = dialog = TasksDialog(self._titles, self._window)
            dialog.stop_wanted.connect(self._tasks.stop)
            dialog.stop_all_wanted.connect(self._tasks.stop_all)
            dialog.chosen.connect(self._show_output)
            dialog.conversation_wanted.connect(self.conversation_wanted)
            self._timer.start()
        self.show_tasks()
        dialog.show()
        dialog.raise_()
        dialog.activateWindow()
        dialog.table.setFocus()

    def refresh(self) -> None:
        """Says everything again."""
        dialog = self._open_dialog()
        if dialog is not None:
            refresh(dialog)
        self.show_tasks()

    def close(self) -> None:
        """Looks no more."""
        self._timer.stop()

    def show_tasks(self) -> None:
        """Shows what runs now."""
        listed = self._tasks.listed()
        self._status_line.show_tasks(words.running(listed))
        dialog = self._open_dialog()
        if dialog is not None:
            dialog.show_tasks(listed, self._clock.now_ms())
            self._show_output()

    # -- inside ---------------------------------------------------------------------------------
    def _look(self) -> None:
        if self._open_dialog() is None:
            self._timer.stop()
        else:
            self.show_tasks()

    def _show_output(self) -> None:
        dialog = self._open_dialog()
        if dialog is not None:
            dialog.show_output(self._tasks.output(dialog.current()))

    def _open_dialog(self) -> TasksDialog | None:
        """The dialog, unless it was closed."""
        return self._dialog if self._dialog is not None and isValid(self._dialog) else None
