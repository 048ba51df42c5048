"""A field in an approval card where the user writes what is to be done instead. GUI thread."""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QPlainTextEdit, QWidget
from typing_extensions import override

from growbox_app.text import tr
from ui.theme import theme

LINES_MIN, LINES_MAX = 2, 16
ENTER = (Qt.Key.Key_Return, Qt.Key.Key_Enter)


class EditField(QPlainTextEdit):
    """As high as its lines, to a bound. Escape leaves it and denies nothing; Ctrl+Enter in it is not the window's "Send".

    Signals: `left()`.
    """

    left = Signal()

    def __init__(self, name_key: str, text: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._name_key = name_key
        self._original = text
        self.setTabChangesFocus(True)
        self.setPlainText(text)
        self.textChanged.connect(self._fit)
        self.retranslate()
        self.restyle()

    @property
    def original(self) -> str:
        """What it began with."""
        return self._original

    def edited(self) -> str | None:
        """The user's text; None while it is what it was."""
        text = self.toPlainText()
        return None if text == self._original else text

    def _fit(self) -> None:
        lines = min(max(self.blockCount(), LINES_MIN), LINES_MAX)
        margins = self.contentsMargins()
        around = margins.top() + margins.bottom() + 2 * round(self.document().documentMargin())
        # Half a line more: characters of the fallback font are higher than the font says.
        spacing = self.fontMetrics().lineSpacing()
        height = lines * spacing + spacing // 2 + around + 2 * self.frameWidth()
        if self.minimumHeight() != height:
            self.setFixedHeight(height)

    def retranslate(self) -> None:
        """Says the name again."""
        self.setAccessibleName(tr(self._name_key))

    def restyle(self) -> None:
        """Takes the font of the theme."""
        self.setFont(theme.code_font())
        self._fit()

    @override
    def event(self, event: QEvent) -> bool:
        is_enter = isinstance(event, QKeyEvent) and event.key() in ENTER
        if event.type() is QEvent.Type.ShortcutOverride and is_enter:
            event.accept()
            return True
        return super().event(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
            return
        super().keyPressEvent(event)
