"""A long text in a window of its own, beside the work: what a card of the conversation has no room for. Never modal. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from growbox_app.text import tr
from ui.panels.controls import TextButton
from ui.theme import theme
from ui.view_models.display import broken_lines, head, visible

CHARACTERS_MAX = 2_000_000
SIZE = (820, 600)


class WholeText(QDialog):
    """Lines as they are, with signs for what shows nothing; laid out only where the reader looks."""

    def __init__(
        self, name_key: str, lines: tuple[str, ...], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setObjectName("whole_text")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self._name_key = name_key
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        shown, cut = head("\n".join(line.removesuffix("\r") for line in lines), CHARACTERS_MAX)
        self.text.setPlainText(broken_lines(visible(shown)) + ("\n…" if cut else ""))
        close = TextButton("source.close")
        close.clicked.connect(self.close)
        row = QHBoxLayout()
        row.addStretch(1)
        row.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(8)
        column.addWidget(self.text, 1)
        column.addLayout(row)
        room = self.screen().availableGeometry()
        self.resize(min(SIZE[0], room.width() - 64), min(SIZE[1], room.height() - 96))
        self.retranslate()
        self.restyle()

    def retranslate(self) -> None:
        """Says the name again."""
        self.setWindowTitle(tr(self._name_key))
        self.text.setAccessibleName(tr(self._name_key))

    def restyle(self) -> None:
        """Takes the font of the theme."""
        self.text.setFont(theme.code_font())
