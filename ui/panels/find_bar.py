"""Find in the open conversation: a bar over the messages, with count, next and previous."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QLineEdit, QWidget
from typing_extensions import override

from growbox_app.text import tr
from ui.panels.controls import IconButton, QuietLabel


class FindBar(QFrame):
    """The bar.

    Signals: `moved(str words, int step)` asks for the next (+1), the previous (-1) or the first (0) place; `closed()`.
    """

    moved = Signal(str, int)
    closed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "bar")
        self.field = QLineEdit()
        self.field.setObjectName("find_field")
        self._count = QuietLabel()
        self._place = (0, 0)
        self._previous = IconButton("chevron-up", "find.previous")
        self._next = IconButton("chevron-down", "find.next")
        self._close = IconButton("x", "find.close")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 4, 8, 4)
        row.setSpacing(4)
        row.addWidget(self.field, 1)
        row.addWidget(self._count)
        for button in (self._previous, self._next, self._close):
            row.addWidget(button)
        self.field.textChanged.connect(lambda text: self.moved.emit(text, 0))
        self.field.returnPressed.connect(lambda: self.moved.emit(self.field.text(), 1))
        self._previous.clicked.connect(lambda: self.moved.emit(self.field.text(), -1))
        self._next.clicked.connect(lambda: self.moved.emit(self.field.text(), 1))
        self._close.clicked.connect(self.closed)
        self.retranslate()

    def open_bar(self) -> None:
        """Shows the bar with the field ready."""
        self.show()
        self.field.setFocus()
        self.field.selectAll()

    def say_count(self, at: int, count: int) -> None:
        """`2 of 7`, or that there is none."""
        self._place = (at, count)
        if not self.field.text():
            self._count.setText("")
        else:
            self._count.setText(tr("find.count", at=at, count=count) if count else tr("find.none"))

    def retranslate(self) -> None:
        """Says placeholder and count again."""
        self.say_count(*self._place)
        self.field.setPlaceholderText(tr("find.placeholder"))
        self.field.setAccessibleName(tr("find.placeholder"))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.closed.emit()
        else:
            super().keyPressEvent(event)
