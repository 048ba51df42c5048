"""Tells when somebody uses the window: keys, pointer, wheel, touch, and what an input method composes.

Listens on the application's windows and not on every widget: each input passes its window once, and all other events of the
application stay untouched. Event-loop thread.
"""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import QEvent, QObject
from PySide6.QtGui import QGuiApplication, QWindow
from typing_extensions import override

from memory.ports import Clock

THROTTLE_S = 1.0
_INPUT = frozenset(
    {
        QEvent.Type.KeyPress,
        QEvent.Type.MouseButtonPress,
        QEvent.Type.MouseMove,
        QEvent.Type.Wheel,
        QEvent.Type.TouchBegin,
        QEvent.Type.TouchUpdate,
        QEvent.Type.TabletPress,
        QEvent.Type.TabletMove,
    }
)


class ActivityWatch(QObject):
    """Calls `tell` at most once a second while there is input in any window of the application."""

    def __init__(
        self, tell: Callable[[], None], clock: Clock, parent: QObject | None = None
    ) -> None:
        super().__init__(parent)
        self._tell = tell
        self._clock = clock
        self._told_s: float | None = None
        application = QGuiApplication.instance()
        assert isinstance(application, QGuiApplication)
        self._application = application
        application.focusWindowChanged.connect(self._window_focused)
        # An input method takes the keys before any window sees them; what it composes moves the cursor.
        application.inputMethod().cursorRectangleChanged.connect(self._cursor_moved)
        for window in application.topLevelWindows():
            self.watch(window)

    def watch(self, window: QWindow | None) -> None:
        """Listens on a window too; the focused ones are taken by themselves."""
        if window is not None:
            window.installEventFilter(self)

    def close(self) -> None:
        """Tells nothing any more."""
        self._application.focusWindowChanged.disconnect(self._window_focused)
        self._application.inputMethod().cursorRectangleChanged.disconnect(self._cursor_moved)
        for window in self._application.topLevelWindows():
            window.removeEventFilter(self)

    def _window_focused(self, window: QWindow | None) -> None:
        self.watch(window)

    def _cursor_moved(self) -> None:
        if self._application.focusWindow() is not None:
            self.happened()

    def happened(self) -> None:
        """There was input."""
        now_s = self._clock.monotonic_s()
        if self._told_s is None or now_s - self._told_s >= THROTTLE_S:
            self._told_s = now_s
            self._tell()

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        if event.type() in _INPUT:
            self.happened()
        return False
