"""Lines in the code font as they are: broken where they do not fit, never cut at the side, and with signs for what shows nothing.

For what a tool has put out and for what the user is asked to allow. GUI thread.
"""

from __future__ import annotations

from PySide6.QtCore import QSize
from PySide6.QtGui import QColor, QTextBlockFormat, QTextCharFormat, QTextCursor, QTextOption
from PySide6.QtWidgets import QSizePolicy, QWidget
from typing_extensions import override

from growbox_app.text import tr
from ui.panels.prose import ReadOnlyText
from ui.theme import theme
from ui.view_models.display import broken_lines, visible

CHANGE_TINT = 0.16
"""How far the ground of an added or a removed line is from that of the others."""


class MonoText(ReadOnlyText):
    """Read-only lines, as high as they need. With `diff`, lines that begin with `+` and `-` stand on a ground of their own."""

    def __init__(self, name_key: str, *, diff: bool = False, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name_key = name_key
        self._diff = diff
        self._lines: tuple[str, ...] = ()
        self.setWordWrapMode(QTextOption.WrapMode.WrapAnywhere)
        policy = QSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Minimum)
        policy.setHeightForWidth(True)
        self.setSizePolicy(policy)
        self.retranslate()

    def show_lines(self, lines: tuple[str, ...]) -> None:
        """Shows other lines."""
        self._lines = lines
        self.restyle()
        self.updateGeometry()

    def restyle(self) -> None:
        """Writes the lines again in the current colours."""
        self.document().clear()
        cursor = QTextCursor(self.document())
        form = QTextCharFormat()
        form.setFont(theme.code_font())
        form.setForeground(theme.color("text"))
        cursor.beginEditBlock()
        for at, line in enumerate(self._lines):
            if at:
                cursor.insertBlock()
            cursor.setBlockFormat(self._ground(line[:1]))
            cursor.insertText(
                broken_lines(visible(line.removesuffix("\r"))).replace("\n", "\u2028"), form
            )
        cursor.endEditBlock()

    def _ground(self, sign: str) -> QTextBlockFormat:
        form = QTextBlockFormat()
        tint = {"+": "accent", "-": "danger"}.get(sign) if self._diff else None
        if tint is not None:
            color: QColor = theme.between("surface", tint, CHANGE_TINT)
            form.setBackground(color)
        return form

    def retranslate(self) -> None:
        """Says the name again."""
        self.setAccessibleName(tr(self._name_key))

    @override
    def hasHeightForWidth(self) -> bool:
        return True

    @override
    def heightForWidth(self, width: int) -> int:
        return self.height_for(width)

    @override
    def sizeHint(self) -> QSize:
        width = max(80, self.width())
        return QSize(80, self.height_for(width))

    @override
    def minimumSizeHint(self) -> QSize:
        return QSize(80, 0)
