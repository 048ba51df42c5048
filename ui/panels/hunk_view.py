"""The changes of an approval: each can be left out or, where it is plain text, written anew. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QCheckBox, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from growbox_app.hunks import DiffHunk
from growbox_app.text import tr
from ui.panels.controls import TextButton
from ui.panels.edit_field import EditField
from ui.panels.folded_lines import FoldedLines
from ui.panels.whole_text import WholeText
from ui.view_models import wording
from ui.view_models.display import editable, visible

BOX_PIXELS = 32
HEAD_LINES, TAIL_LINES = 9, 5
"""Of a long change: what is asked and the answers are seen at once in a window of the usual size."""
EDITED_LINES_MAX = 2_000
"""A longer change is not edited in a card."""


class Choice(QCheckBox):
    """A box whose words are cut in the middle where they do not fit; the tooltip has them whole."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setChecked(True)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    def say(self, words: str) -> None:
        """Shows other words."""
        self.setAccessibleName(words)
        self.setToolTip(words)
        self._fit()

    def _fit(self) -> None:
        mode = Qt.TextElideMode.ElideMiddle
        room = max(80, self.width() - BOX_PIXELS)
        shown = self.fontMetrics().elidedText(self.accessibleName(), mode, room)
        # A path may have an ampersand, which would else name a key.
        self.setText(shown.replace("&", "&&"))

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit()


class HunkView(QWidget):
    """One change. `named`: its place says which file; else the card's title alone does.

    Signals: `chosen_changed()`, `edit_left()` (Escape in the field).
    """

    chosen_changed = Signal()
    edit_left = Signal()

    def __init__(
        self, hunk: DiffHunk, *, named: bool = True, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.hunk = hunk
        self._named = named
        self.box = Choice()
        self.box.toggled.connect(self._choose)
        self.lines = FoldedLines("agent.change", diff=True, head=HEAD_LINES, tail=TAIL_LINES)
        self.lines.show_lines(hunk.lines)
        self.field: EditField | None = None
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self.box)
        column.addWidget(self.lines)
        self.lines.setHidden(not hunk.lines)
        self.retranslate()

    @property
    def editable(self) -> bool:
        """Whether the user may write it anew: what shows nothing would be lost in a field."""
        hunk = self.hunk
        return hunk.editable and len(hunk.lines) <= EDITED_LINES_MAX and editable(hunk.text)

    def edit(self, on: bool) -> None:
        """Shows what would stand there as a field, or the change again."""
        if on and self.editable and self.field is None:
            self.field = EditField("agent.edit_change", self.hunk.text)
            self.field.left.connect(self.edit_left)
            self.field.setEnabled(self.box.isChecked())
            self._column.addWidget(self.field)
        elif not on and self.field is not None:
            self.field.hide()
            self.field.deleteLater()
            self.field = None
        self.lines.setHidden(self.field is not None or not self.hunk.lines)

    def text(self) -> str | None:
        """What the user has written; None while it is what it was."""
        return self.field.edited() if self.field is not None and self.box.isChecked() else None

    def _choose(self, chosen: bool) -> None:
        if self.field is not None:
            self.field.setEnabled(chosen)
        self.chosen_changed.emit()

    def retranslate(self) -> None:
        """Says the place again."""
        hunk = self.hunk
        words = [wording.place(hunk.header) if hunk.lines else tr("agent.whole_file")]
        if self._named:
            words.insert(0, visible(hunk.path))
        self.box.say(" · ".join(filter(None, words)))


class RestView(QWidget):
    """Changes that a card has no room for, chosen or left out together; they are read in a window of their own.

    Signals: `chosen_changed()`.
    """

    chosen_changed = Signal()

    def __init__(self, hunks: tuple[DiffHunk, ...], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.hunks = hunks
        self.box = Choice()
        self.box.toggled.connect(lambda _on: self.chosen_changed.emit())
        self.open_button = TextButton("agent.open_rest", kind="quiet")
        self.open_button.clicked.connect(self._open)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self.box)
        column.addWidget(self.open_button, 0, Qt.AlignmentFlag.AlignLeft)
        self.retranslate()

    def _open(self) -> None:
        lines: list[str] = []
        for hunk in self.hunks:
            lines += [hunk.path, hunk.header, *hunk.lines, ""]
        WholeText("agent.change", tuple(lines), self.window()).show()

    def retranslate(self) -> None:
        """Says how many again."""
        self.box.say(wording.counted("agent.rest", len(self.hunks)))
