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
    ("keys.delete", "Delete"),
    ("keys.menu", "Menu"),
    ("keys.pin", "P"),
    ("keys.evict", "Delete"),
    ("keys.next_stretch", "Ctrl+Right"),
    ("keys.zoom", "+"),
    ("keys.zoom_out", "-"),
    ("keys.zoom_all", "0"),
    ("keys.pointer_back", "Backspace"),
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
        listed = (*shortcuts, *FIXED_KEYS)
        rows = -(-len(listed) // 2)  # two columns: all of it fits a small screen
        for at, (key, sequence) in enumerate(listed):
            row, column = at % rows, 2 * (at // rows)
            grid.addWidget(Words(key), row, column)
            shown = QKeySequence(sequence).toString(QKeySequence.SequenceFormat.NativeText)
            right = Qt.AlignmentFlag.AlignRight
            grid.addWidget(QuietLabel(shown, look="key"), row, column + 1, right)
        close = TextButton("source.close")
        close.clicked.connect(self.close)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(20, 16, 20, 16)
        whole.setSpacing(12)
        whole.addWidget(Words("help.keys", look="title"))
        whole.addLayout(grid)
        whole.addWidget(close, 0, Qt.AlignmentFlag.AlignRight)

    def retranslate(self) -> None:
        """Says the title again."""
        self.setWindowTitle(tr("help.keys"))
