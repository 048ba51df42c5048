"""Head and tail of some lines in the code font; the rest is one click away. For tool output and changes. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QVBoxLayout, QWidget

from growbox_app.text import tr
from ui.panels.controls import TextButton
from ui.panels.mono_text import MonoText
from ui.panels.whole_text import WholeText
from ui.view_models import wording

HEAD_LINES = 12
TAIL_LINES = 8
HERE_LINES_MAX = 400
"""More lines than this are shown whole in a window of their own: each one here is laid out with every change of width."""
LINE_CHARACTERS_MAX = 1_200
"""A longer line is cut until all is wanted."""


class FoldedLines(QWidget):
    """The lines, the middle of many left out."""

    def __init__(
        self,
        name_key: str,
        *,
        diff: bool = False,
        head: int = HEAD_LINES,
        tail: int = TAIL_LINES,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._name_key = name_key
        self._head, self._tail = head, tail
        self._lines: tuple[str, ...] = ()
        self._whole = False
        self.text = MonoText(name_key, diff=diff)
        self.all_button = TextButton("agent.show_all_many", kind="quiet")
        self.all_button.clicked.connect(self._show_all)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(self.text)
        column.addWidget(self.all_button, 0, Qt.AlignmentFlag.AlignLeft)

    def show_lines(self, lines: tuple[str, ...]) -> None:
        """Shows the lines; the middle of many is left out."""
        self._lines = lines
        self._fill()

    def _left_out(self) -> int:
        more = len(self._lines) - self._head - self._tail
        # One line that says that one line is left out would be no shorter.
        return more if more > 1 and not self._whole else 0

    def _cut(self) -> bool:
        """Whether a line is shown in part."""
        return not self._whole and any(len(line) > LINE_CHARACTERS_MAX for line in self._lines)

    def _fill(self) -> None:
        lines = self._lines
        if self._left_out():
            lines = (*lines[: self._head], "⋯", *lines[-self._tail :])
        if not self._whole:
            lines = tuple(_cut_line(line) for line in lines)
        self.text.show_lines(lines)
        self.retranslate()

    def retranslate(self) -> None:
        """Says again how much is left out."""
        left_out = self._left_out()
        self.all_button.setVisible(bool(left_out) or self._cut())
        words = wording.counted("agent.show_all", left_out) if left_out else tr("agent.show_whole")
        self.all_button.setText(words)
        self.all_button.setAccessibleName(words)

    def _show_all(self) -> None:
        size = sum(map(len, self._lines))
        if len(self._lines) > HERE_LINES_MAX or size > HERE_LINES_MAX * LINE_CHARACTERS_MAX:
            WholeText(self._name_key, self._lines, self.window()).show()
            return
        self._whole = True
        if self.all_button.hasFocus():
            self.text.setFocus()
        self._fill()


def _cut_line(line: str) -> str:
    return line if len(line) <= LINE_CHARACTERS_MAX else line[:LINE_CHARACTERS_MAX] + " ⋯"
