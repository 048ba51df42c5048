"""Help: the list of keys. Beside the work, never modal."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtGui import QKeySequence
from PySide6.QtWidgets import QDialog, QGridLayout, QVBoxLayout, QWidget

from growbox_app.text import tr
from ui.panels.controls import QuietLabel, TextButton, Words

# Keys of the input and the lists, which no menu carries.
FIXED_KEYS = (
    ("keys.send", "Return"),
    ("keys.line_break", "Shift+Return"),
    ("keys.recall", "Up"),
    ("keys.rename", "F2"),
    ("keys.pin", "P"),
    ("keys.evict", "Delete"),
)


class KeysDialog(QDialog):
    """All keys. `shortcuts` are (translation key, key sequence) pairs."""

    def __init__(
        self, shortcuts: tuple[tuple[str, str], ...], parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setWindowTitle(tr("help.keys"))
        grid = QGridLayout()
        grid.setHorizontalSpacing(32)
        grid.setVerticalSpacing(6)
        for row, (key, sequence) in enumerate((*shortcuts, *FIXED_KEYS)):
            grid.addWidget(Words(key), row, 0)
            shown = QKeySequence(sequence).toString(QKeySequence.SequenceFormat.NativeText)
            grid.addWidget(QuietLabel(shown, look="key"), row, 1, Qt.AlignmentFlag.AlignRight)
        close = TextButton("source.close")
        close.clicked.connect(self.close)
        column = QVBoxLayout(self)
        column.setContentsMargins(20, 16, 20, 16)
        column.setSpacing(12)
        column.addWidget(Words("help.keys", look="title"))
        column.addLayout(grid)
        column.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)

    def retranslate(self) -> None:
        """Says the title again."""
        self.setWindowTitle(tr("help.keys"))
