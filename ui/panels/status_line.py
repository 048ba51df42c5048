"""The line at the foot: engine, background activity, health. A message may stand over it until it is read."""

from __future__ import annotations

from PySide6.QtCore import QSize, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QProgressBar, QPushButton, QWidget

from growbox_app.api import EnginePhase, EngineStatus, Progress
from growbox_app.text import tr
from memory.values import Statistics
from ui.icons import icon
from ui.panels.controls import ICON_PIXELS, ElidedLabel, IconButton, QuietLabel
from ui.view_models import wording

_LOADING = (EnginePhase.STARTING, EnginePhase.LOADING, EnginePhase.RESTARTING)


class StatusLine(QFrame):
    """Engine · background · tasks · health.

    Signals: `rest_wanted()` when the background is clicked, `tasks_wanted()` when the background tasks are.
    """

    rest_wanted = Signal()
    tasks_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("status_line")
        self.setProperty("look", "status")
        self.setFixedHeight(26)
        self._engine_status = EngineStatus(phase=EnginePhase.STOPPED)
        self._statistics: Statistics | None = None
        self._progress: Progress | None = None
        self._engine = QuietLabel()
        self._bar = QProgressBar()
        self._bar.setFixedSize(90, 4)
        self._bar.setTextVisible(False)
        self._bar.setRange(0, 1000)
        self._resting = ""
        self._background = QPushButton()
        self._background.setProperty("kind", "status")
        self._background.clicked.connect(self.rest_wanted)
        self.tasks_button = QPushButton()
        self.tasks_button.setProperty("kind", "status")
        self.tasks_button.setIconSize(QSize(ICON_PIXELS, ICON_PIXELS))
        self.tasks_button.clicked.connect(self.tasks_wanted)
        self._server = QuietLabel(look="")
        self._message = ElidedLabel(look="danger")
        self._said: tuple[str, dict[str, object]] = ("", {})
        self._dismiss = IconButton("x", "status.dismiss")
        self._health = QuietLabel()
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 0, 12, 0)
        row.setSpacing(12)
        for widget in (
            self._engine,
            self._bar,
            self._server,
            self._background,
            self.tasks_button,
        ):
            row.addWidget(widget)
        row.addWidget(self._message, 1)
        row.addWidget(self._dismiss)
        row.addWidget(self._health)
        self._dismiss.clicked.connect(lambda: self.say(""))
        self.show_tasks("")
        self.retranslate()
        self.restyle()

    def show_engine(self, status: EngineStatus) -> None:
        """Shows the state of the model process."""
        self._engine_status = status
        self.retranslate()

    def show_server(self, words: str) -> None:
        """Says who answers instead of the model of this machine, and where text goes; nothing while it answers itself."""
        self._server.setText(words)
        self._server.setVisible(bool(words))

    def show_statistics(self, statistics: Statistics) -> None:
        """Shows background activity and health."""
        self._statistics = statistics
        self.retranslate()

    def show_rest(self, words: str) -> None:
        """Says what the background mind does; nothing while it does nothing."""
        if words != self._resting:
            self._resting = words
            self.retranslate()

    def show_tasks(self, words: str) -> None:
        """Says how many background tasks run; the item is there only while there are words."""
        self.tasks_button.setText(words)
        self.tasks_button.setAccessibleName(words or tr("tasks.title"))
        self.tasks_button.setAccessibleDescription(tr("tasks.tip"))
        self.tasks_button.setToolTip(tr("tasks.tip"))
        self.tasks_button.setVisible(bool(words))

    def show_progress(self, progress: Progress | None) -> None:
        """Shows a long step of the start."""
        self._progress = progress
        self.retranslate()

    def say(self, key: str, **fields: object) -> None:
        """Shows a message of the translations until it is dismissed; an empty key dismisses it."""
        self._said = (key, fields)
        self._message.say(tr(key, **fields) if key else "")
        self._dismiss.setVisible(bool(key))

    def text(self) -> str:
        """Everything the line says."""
        parts = (
            self._engine.text(),
            self._server.text(),
            self._background.text(),
            self.tasks_button.text(),
            self._message.text(),
            self._health.text(),
        )
        return " · ".join(part for part in parts if part)

    def restyle(self) -> None:
        """Draws the icon again."""
        self.tasks_button.setIcon(icon("terminal"))

    def retranslate(self) -> None:
        """Says everything again."""
        key, fields = self._said
        self.say(key, **fields)
        status = self._engine_status
        if self._progress is not None and status.phase is EnginePhase.STOPPED:
            self._engine.setText(wording.progress(self._progress))
        else:
            self._engine.setText(wording.engine(status))
        self._bar.setAccessibleName(self._engine.text())
        self._bar.setVisible(status.phase in _LOADING)
        self._bar.setValue(round(status.progress * 1000))
        self._background.setText(wording.background(self._statistics, self._resting))
        self._background.setAccessibleDescription(tr("rest.status_tip"))
        self._background.setToolTip(tr("rest.status_tip"))
        words, well = wording.health(self._statistics)
        self._health.setText(words)
        self._health.set_look("quiet" if well else "danger")
