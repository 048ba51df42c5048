"""Calls the user to what waits for him while the window is not in front: the task bar's mark, and a notification of the desktop.

Says only that something waits and of what kind: commands and paths are nobody's business on a locked screen, and a desktop may read
marks in a text. Where there is neither a tray nor `notify-send`, the task bar's mark is all. GUI thread; never raises.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable

from PySide6.QtCore import QObject, QProcess, Qt, Signal
from PySide6.QtWidgets import QApplication, QSystemTrayIcon, QWidget

from growbox_app.approval_face import Approval
from growbox_app.text import tr
from ui.conversation_flow import ConversationFlow
from ui.icons import application_icon
from ui.view_models import wording

Send = Callable[[str, str], None]
"""Shows a title and a text."""


class Notifier(QObject):
    """One window's notifications. `wanted`: the user's setting, asked each time. `send` replaces the desktop in tests.

    Signals: `chosen()`: the user has clicked on one.
    """

    chosen = Signal()

    def __init__(
        self, window: QWidget, wanted: Callable[[], bool], *, send: Send | None = None
    ) -> None:
        super().__init__(window)
        self._window = window
        self._wanted = wanted
        self._send = send or self._show
        self._tray: QSystemTrayIcon | None = None

    def follow(self, flow: ConversationFlow) -> None:
        """Tells of what the conversations ask for."""
        flow.asked.connect(self.approval_asked)
        flow.waiting_changed.connect(self._waiting_changed)

    def _waiting_changed(self, conversation_id: object) -> None:
        if conversation_id is None:
            self.over()

    def approval_asked(self, approval: Approval) -> None:
        """A call waits for consent."""
        if self.in_front():
            return
        QApplication.alert(self._window)
        if self._wanted():
            verb = wording.named("agent.verb", approval.executor)
            self._send(tr("notify.title"), tr("notify.approval", what=verb))

    def over(self) -> None:
        """Nothing waits any more."""
        if self._tray is not None:
            self._tray.hide()
            self._tray.deleteLater()
            self._tray = None

    def in_front(self) -> bool:
        """Whether the user looks at the window or at a dialog of it."""
        minimized = self._window.isMinimized() or not self._window.isVisible()
        active = QApplication.applicationState() is Qt.ApplicationState.ApplicationActive
        return active and not minimized

    def _show(self, title: str, text: str) -> None:
        if QSystemTrayIcon.isSystemTrayAvailable() and QSystemTrayIcon.supportsMessages():
            self._in_tray(title, text)
            return
        program = shutil.which("notify-send") if sys.platform.startswith("linux") else None
        if program is not None and QApplication.platformName() not in ("offscreen", "minimal"):
            QProcess.startDetached(program, ["--app-name=GrowBox", title, text])

    def _in_tray(self, title: str, text: str) -> None:
        """Only while something waits is there an icon."""
        self.over()
        tray = self._tray = QSystemTrayIcon(application_icon(), self)
        tray.setToolTip(f"{title}: {text}")
        tray.messageClicked.connect(self.chosen)
        tray.activated.connect(lambda _reason: self.chosen.emit())
        tray.show()
        tray.showMessage(title, text, application_icon())
