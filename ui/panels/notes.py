"""What stands under an answer besides its text: trouble, calls of tools, approvals. One widget for each; see `Note`. GUI thread."""

from __future__ import annotations

from typing import TypeAlias

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QHBoxLayout, QWidget

from growbox_app.api import (
    Problem,
    ToolCalled,
    ToolStarted,
)
from growbox_app.approval_face import Approval, ApprovalEnded
from ui.icons import icon
from ui.panels.approval_card import ApprovalCard
from ui.panels.controls import ICON_PIXELS, IconButton, QuietLabel, TextButton
from ui.panels.tool_card import ToolCard
from ui.view_models import wording
from ui.view_models.transcript import Note, Restored


class NoteLine(QWidget):
    """One honest line: how an approval ended, what was undone, or trouble with what to do about it.

    Signals: `restore_wanted(str checkpoint, bool force)`, `again_wanted()`.
    """

    restore_wanted = Signal(object, bool)
    again_wanted = Signal()

    def __init__(
        self, note: Problem | ApprovalEnded | Restored, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self._note = note
        self._picture = QuietLabel()
        if isinstance(note, Problem):
            self._picture.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._words = QuietLabel()
        self._words.setWordWrap(True)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 2, 0, 2)
        row.setSpacing(8)
        row.addWidget(self._picture)
        row.addWidget(self._words, 1)
        if isinstance(note, Problem) and note.detail:
            copy = IconButton("copy", "problem_detail.copy")
            copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(note.detail))
            row.addWidget(copy)
        self.restore_button: TextButton | None = None
        if isinstance(note, Restored):
            self._offer(note, row)
        self.again_button: TextButton | None = None
        if isinstance(note, ApprovalEnded) and note.by == "exit":
            self.again_button = TextButton("agent.again")
            self.again_button.clicked.connect(self.again_wanted)
            row.addWidget(self.again_button, 0, Qt.AlignmentFlag.AlignTop)
        self.retranslate()
        self.restyle()

    def _offer(self, note: Restored, row: QHBoxLayout) -> None:
        """What is done can be undone; what was not, for conflicts, can be forced."""
        report = note.report
        forced = not report.is_done
        checkpoint = note.checkpoint if forced else report.undo_id
        if not checkpoint or (forced and not report.conflicts):
            return
        key = "agent.undo_anyway" if forced else "agent.undo" if note.again else "agent.redo"
        button = self.restore_button = TextButton(key, kind="quiet")
        button.clicked.connect(lambda: self._want(checkpoint, forced))
        row.addWidget(button)

    def _want(self, checkpoint: str, forced: bool) -> None:
        assert self.restore_button is not None
        self.restore_button.setEnabled(False)
        self.restore_wanted.emit(checkpoint, forced)

    def show_undone(self, undone: frozenset[str]) -> None:
        """Takes which checkpoints are restored now; a wish that failed can be had again."""
        note = self._note
        if self.restore_button is not None and isinstance(note, Restored):
            checkpoint = note.report.undo_id if note.report.is_done else note.checkpoint
            self.restore_button.setEnabled(checkpoint not in undone)

    def show_again(self, offered: bool) -> None:
        """Takes whether the question can be asked again."""
        if self.again_button is not None:
            self.again_button.setVisible(offered)

    def retranslate(self) -> None:
        """Says the line again."""
        self._words.setText(wording.note(self._note))
        self._words.set_look("" if isinstance(self._note, Problem) else "quiet")

    def restyle(self) -> None:
        """Draws the icon again."""
        name, token = "rotate-ccw", "muted"
        if isinstance(self._note, Problem):
            name, token = "circle-alert", "danger_text"
        elif isinstance(self._note, ApprovalEnded):
            name = "check" if self._note.allowed else "x"
        self._picture.setPixmap(icon(name, token).pixmap(ICON_PIXELS, ICON_PIXELS))


NoteView: TypeAlias = NoteLine | ToolCard | ApprovalCard


def note_view(note: Note, parent: QWidget) -> NoteView:
    """The widget of a note."""
    match note:
        case ToolStarted() | ToolCalled():
            return ToolCard(note, parent)
        case Approval():
            return ApprovalCard(note, parent)
        case _:
            return NoteLine(note, parent)
