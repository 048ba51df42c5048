"""Says once, quietly, that the last run ended unexpectedly, and shows its report. Beside the work, never modal."""

from __future__ import annotations

from collections.abc import Callable

from PySide6.QtCore import Qt
from PySide6.QtGui import QGuiApplication
from PySide6.QtWidgets import QDialog, QFrame, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from growbox_app.text import tr
from ui.panels.controls import IconButton, TextButton, Words
from ui.theme import theme


class CrashNotice(QFrame):
    """A bar over the conversation. `report()` makes the text when it is asked for: the engine may be ready by then."""

    def __init__(self, report: Callable[[], str], parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("crash_notice")
        self.setProperty("look", "bar")
        self._report = report
        words = Words("crash.words")
        words.setWordWrap(True)
        self.show_button = TextButton("crash.show")
        self.copy_button = TextButton("crash.copy")
        self.dismiss_button = IconButton("x", "crash.dismiss")
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 6, 12, 6)
        row.setSpacing(8)
        row.addWidget(words, 1)
        for button in (self.show_button, self.copy_button, self.dismiss_button):
            row.addWidget(button)
        self.show_button.clicked.connect(self._show)
        self.copy_button.clicked.connect(
            lambda: QGuiApplication.clipboard().setText(self._report())
        )
        self.dismiss_button.clicked.connect(self.close)

    def _show(self) -> None:
        dialog = CrashReport(self._report(), self.window())
        dialog.show()


class CrashReport(QDialog):
    """The report in full."""

    def __init__(self, report: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("crash_report")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        words = Words("crash.words")
        words.setWordWrap(True)
        private = Words("crash.private", look="quiet")
        private.setWordWrap(True)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setTabChangesFocus(True)
        self.text.setPlainText(report)
        copy = TextButton("crash.copy", icon_name="copy")
        copy.clicked.connect(lambda: QGuiApplication.clipboard().setText(report))
        close = TextButton("source.close")
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addWidget(copy)
        buttons.addStretch(1)
        buttons.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(8)
        for widget in (words, private):
            column.addWidget(widget)
        column.addWidget(self.text, 1)
        column.addLayout(buttons)
        self.resize(720, 460)
        self.retranslate()
        self.restyle()

    def retranslate(self) -> None:
        """Says everything again."""
        self.setWindowTitle(tr("crash.title"))
        self.text.setAccessibleName(tr("crash.title"))

    def restyle(self) -> None:
        """Takes the font of the theme."""
        self.text.setFont(theme.code_font())
