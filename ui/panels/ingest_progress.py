"""The line about files that are added to the memory: how far it came, a stop, and in the end what was done and what was left out.

Stands over the input, inline, and goes away when it is closed or when the next one begins.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QFrame,
    QHBoxLayout,
    QPlainTextEdit,
    QProgressBar,
    QVBoxLayout,
    QWidget,
)

from growbox_app.api import Progress
from growbox_app.ingest.report import IngestReport
from growbox_app.ingest.words import sentence, skipped_line
from growbox_app.text import tr
from ui.panels.controls import ElidedLabel, IconButton, QuietLabel, TextButton

BAR_PIXELS = (90, 4)
_FINDING = "ingest_finding"


class IngestBar(QFrame):
    """The line.

    Signals: `stop_wanted()`.
    """

    stop_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("ingest_bar")
        self.setProperty("look", "chip")
        self._progress: Progress | None = None
        self._report: IngestReport | None = None
        self._waiting = 0
        self._doing = ElidedLabel(look="quiet")
        self._bar = QProgressBar()
        self._bar.setFixedSize(*BAR_PIXELS)
        self._bar.setTextVisible(False)
        self._done = QuietLabel(look="")
        self._done.setWordWrap(True)
        self._done.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.stop_button = TextButton("ingest.stop", icon_name="circle-stop")
        self.details_button = TextButton("ingest.details", kind="quiet")
        self.close_button = IconButton("x", "ingest.close")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 8, 6)
        row.setSpacing(8)
        row.addWidget(self._doing, 1)
        row.addWidget(self._done, 1)
        for widget in (self._bar, self.stop_button, self.details_button):
            row.addWidget(widget)
        row.addWidget(self.close_button, 0, Qt.AlignmentFlag.AlignTop)
        self.stop_button.clicked.connect(self._stop)
        self.details_button.clicked.connect(self._show_details)
        self.close_button.clicked.connect(self.hide)
        self.hide()

    def show_progress(self, progress: Progress, waiting: int) -> None:
        """Says how far it came; `waiting` further wishes come after it."""
        self.stop_button.setEnabled(True)
        self._progress, self._report, self._waiting = progress, None, waiting
        self._say(running=True)

    def show_report(self, report: IngestReport) -> None:
        """Says what was done."""
        self._progress, self._report = None, report
        self._say(running=False)

    def show_stopped(self) -> None:
        """Says where it was stopped."""
        self._say(running=False)

    def text(self) -> str:
        """The sentence shown."""
        return self._doing.text() if self._done.isHidden() else self._done.text()

    def _say(self, *, running: bool) -> None:
        self._doing.setVisible(running)
        self._bar.setVisible(running)
        self.stop_button.setVisible(running)
        self._done.setVisible(not running)
        self.close_button.setVisible(not running)
        self.details_button.setVisible(bool(self._report and self._report.skipped))
        self.retranslate()
        self.show()

    def retranslate(self) -> None:
        """Says everything again."""
        self.setAccessibleName(tr("ingest.chooser"))
        self.stop_button.setToolTip(tr("ingest.stop_tip"))
        self._bar.setAccessibleName(tr("progress.ingest"))
        progress = self._progress
        if self._report is not None:
            self._done.setText(sentence(self._report, tr))
        elif progress is not None:
            self._doing.say(self._doing_words(progress))
            self._done.setText(_stopped_words(progress))
            self._bar.setRange(0, progress.total)  # (0, 0) shows that nobody knows
            self._bar.setValue(progress.done)

    def _doing_words(self, progress: Progress) -> str:
        if progress.step == _FINDING:
            words = tr("ingest.finding", count=progress.detail)
        else:
            words = tr(
                "ingest.working",
                done=min(progress.done + 1, progress.total),
                total=progress.total,
                name=progress.detail,
            )
        waiting = tr("ingest.waiting", count=self._waiting) if self._waiting else ""
        return " · ".join(part for part in (words, waiting) if part)

    def _stop(self) -> None:
        self.stop_button.setEnabled(False)
        self.stop_wanted.emit()

    def _show_details(self) -> None:
        if self._report is not None:
            SkippedFiles(self._report, self.window()).show()


def _stopped_words(progress: Progress) -> str:
    if not progress.done:
        return tr("ingest.stopped_early")
    return tr("ingest.stopped", done=progress.done, total=progress.total)


class SkippedFiles(QDialog):
    """What was left out, file by file, with the reason."""

    def __init__(self, report: IngestReport, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("skipped_files")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self._report = report
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        close = TextButton("ingest.close")
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(8)
        column.addWidget(self.text, 1)
        column.addLayout(buttons)
        self.resize(720, 400)
        self.retranslate()

    def retranslate(self) -> None:
        """Says everything again."""
        self.setWindowTitle(tr("ingest.details"))
        self.text.setAccessibleName(tr("ingest.details"))
        lines = [skipped_line(skipped, tr) for skipped in self._report.skipped]
        more = self._report.skipped_count - len(lines)
        if more:
            lines.append(tr("ingest.details_more", count=more))
        self.text.setPlainText("\n".join(lines))
