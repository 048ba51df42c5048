"""One call of a tool in the conversation: a line that unfolds what the tool has put out, and can undo what it changed.

A running call is the same line without an end; one that was cut off has no output, says under its line what it may have left, and after
a crash offers to ask again.
GUI thread; shows values, decides nothing.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent, QMouseEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget
from typing_extensions import override

from growbox_app.api import ToolCalled, ToolStarted
from growbox_app.text import tr
from ui.icons import icon
from ui.panels.controls import ICON_PIXELS, ElidedLabel, IconButton, QuietLabel, TextButton
from ui.panels.edit_field import ENTER
from ui.panels.folded_lines import FoldedLines
from ui.view_models import wording
from ui.view_models.display import one_line, plain, visible


class ToolCard(QFrame):
    """The card.

    Signals: `restore_wanted(str checkpoint, bool force)`, `again_wanted()`.
    """

    restore_wanted = Signal(object, bool)
    again_wanted = Signal()

    def __init__(self, note: ToolStarted | ToolCalled, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._note = note
        self._ended = note if isinstance(note, ToolCalled) else None
        self._waits = False
        self.setProperty("look", "code")
        self.fold_button = IconButton("chevron-down", "agent.show_output")
        self.fold_button.clicked.connect(self.toggle)
        self._picture = QuietLabel()
        self._verb = QuietLabel(look="strong")
        self._target = ElidedLabel(look="quiet")
        self._figures = QuietLabel()
        self._cut_off = QuietLabel()
        self._cut_off.setWordWrap(True)
        self._cut_off.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.undo_button = TextButton("agent.undo", icon_name="rotate-ccw", kind="quiet")
        self.undo_button.clicked.connect(self._undo)
        self.again_button = TextButton("agent.again", kind="quiet")
        self.again_button.clicked.connect(self.again_wanted)
        self.again_button.hide()
        self.output = FoldedLines("agent.output")
        self._lay_out()
        self._filled = False
        self.retranslate()
        self.restyle()

    def _lay_out(self) -> None:
        row = QHBoxLayout()
        row.setSpacing(6)
        row.addWidget(self._picture)
        row.addWidget(self._verb)
        row.addWidget(self._target, 1)
        row.addWidget(self._figures)
        row.addWidget(self.again_button)
        row.addWidget(self.undo_button)
        row.addWidget(self.fold_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 2, 4, 2)
        column.setSpacing(4)
        column.addLayout(row)
        self._cut_off.setIndent(ICON_PIXELS + row.spacing())
        column.addWidget(self._cut_off)
        column.addWidget(self.output)
        self.output.hide()
        ended = self._ended
        if ended is None or not ended.cut_off:
            self._cut_off.hide()
        else:
            column.setContentsMargins(10, 2, 4, 8)
        self.fold_button.setVisible(bool(ended and not ended.cut_off))
        self.undo_button.setVisible(bool(ended and ended.checkpoint))

    @property
    def unfolded(self) -> bool:
        """Whether the output is shown."""
        return not self.output.isHidden()

    def toggle(self) -> None:
        """Shows or hides the output."""
        if self._ended is None or self._ended.cut_off:
            return
        if not self._filled:  # most cards are never unfolded
            self._filled = True
            lines = plain(self._ended.output).rstrip("\n").splitlines()
            from_memory = self._ended.name.startswith("memory_")
            nothing = tr("agent.not_kept" if from_memory else "agent.no_output")
            self.output.show_lines(tuple(lines) or (nothing,))
        self.output.setVisible(not self.unfolded)
        column = self.layout()
        assert column is not None
        column.setContentsMargins(10, 2, 4, 8 if self.unfolded else 2)
        if self.unfolded:
            self.fold_button.show_as("chevron-up", "agent.hide_output")
        else:
            self.fold_button.show_as("chevron-down", "agent.show_output")
        self.updateGeometry()

    def show_waiting(self, waits: bool) -> None:
        """Takes whether it has not begun: the card below asks whether it may."""
        if waits is not self._waits:
            self._waits = waits
            self.retranslate()

    def show_undone(self, undone: frozenset[str]) -> None:
        """Takes which checkpoints are restored now; a wish that failed can be had again."""
        checkpoint = self._ended.checkpoint if self._ended else ""
        self.undo_button.setEnabled(checkpoint not in undone)
        self.undo_button.show_as("agent.undone" if checkpoint in undone else "agent.undo")
        self.undo_button.setToolTip("" if checkpoint in undone else tr("agent.undo_tip"))

    def show_again(self, offered: bool) -> None:
        """Takes whether the question can be asked again, which is offered where GrowBox ended in the middle of a call."""
        left = self._ended is not None and self._ended.cut_off == "exit"
        self.again_button.setVisible(offered and left)

    def _undo(self) -> None:
        assert self._ended is not None
        self.undo_button.setEnabled(False)
        self.restore_wanted.emit(self._ended.checkpoint, False)

    def retranslate(self) -> None:
        """Says the line again."""
        note, ended = self._note, self._ended
        self._verb.setText(wording.named("agent.verb", note.name))
        target = one_line(visible(note.arguments))
        self._cut_off.setText(wording.cut_off(ended) if ended is not None else "")
        result = ""
        if ended is not None and not ended.cut_off:
            result = one_line(visible(ended.result)) or tr("answer.failed")
        edited = tr("agent.edited") if ended is not None and ended.edited else ""
        self._target.say(" · ".join(part for part in (target, edited, result) if part))
        figures = tr("agent.running") if ended is None and not self._waits else ""
        if ended is not None and ended.seconds:
            figures = tr("agent.seconds", time=f"{ended.seconds:.1f}")
        self._figures.setText(figures)
        self.setAccessibleName(wording.note(note))

    def restyle(self) -> None:
        """Draws the icon again."""
        if self._ended is None:
            name, token = "ellipsis", "accent"
        else:
            name, token = ("check", "muted") if self._ended.ok else ("circle-alert", "danger_text")
        self._picture.setPixmap(icon(name, token).pixmap(ICON_PIXELS, ICON_PIXELS))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter on the folding button, which knows only the space key."""
        if event.key() in ENTER and self.fold_button.hasFocus():
            self.toggle()
        else:
            super().keyPressEvent(event)

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        """A click on the line."""
        on_line = event.position().y() < self.output.y() or not self.unfolded
        if event.button() is Qt.MouseButton.LeftButton and on_line:
            self.toggle()
        super().mouseReleaseEvent(event)
