"""What was decided about the assistant's calls: a list to look through, filter and save. Beside the work, never modal; changes nothing.

GUI thread. Saving writes the decisions that are listed, a JSON object a line, as the log itself has them.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QLineEdit,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)

from growbox_app.audit_log import Decided
from growbox_app.text import tr
from ui.icons import icon
from ui.panels.controls import QuietLabel, TextButton
from ui.view_models import decisions, wording
from ui.view_models.display import one_line

SIZE = (900, 560)
COLUMNS = ("time", "call", "outcome", "reason")
WIDTHS = (120, 330, 170)


class DecisionsDialog(QDialog):
    """The list. `save_wanted` carries the decisions that are shown.

    Signals: `save_wanted(tuple[Decided, ...])`.
    """

    save_wanted = Signal(object)

    def __init__(self, now_ms: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("decisions_dialog")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self._now_ms = now_ms
        self._all: tuple[Decided, ...] = ()
        self._shown: tuple[Decided, ...] = ()
        self.words = QLineEdit()
        self.words.setClearButtonEnabled(True)
        self.words.textChanged.connect(self._fill)
        self.outcome = QComboBox()
        for _name in decisions.OUTCOMES:
            self.outcome.addItem("")
        self.outcome.currentIndexChanged.connect(self._fill)
        self.table = QTreeWidget()
        self.table.setRootIsDecorated(False)
        self.table.setUniformRowHeights(True)
        self.table.setColumnCount(len(COLUMNS))
        self.table.header().setStretchLastSection(True)
        self.table.header().setSectionResizeMode(QHeaderView.ResizeMode.Interactive)
        for column, width in enumerate(WIDTHS):
            self.table.setColumnWidth(column, width)
        self._count = QuietLabel()
        self.save_button = TextButton("decisions.save", icon_name="save")
        self.save_button.clicked.connect(lambda: self.save_wanted.emit(self._shown))
        self._lay_out()
        room = self.screen().availableGeometry()
        self.resize(min(SIZE[0], room.width() - 64), min(SIZE[1], room.height() - 96))
        self.retranslate()

    def _lay_out(self) -> None:
        filters = QHBoxLayout()
        filters.setSpacing(8)
        filters.addWidget(self.words, 1)
        filters.addWidget(self.outcome)
        close = TextButton("source.close")
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._count, 1)
        buttons.addWidget(self.save_button)
        buttons.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(8)
        column.addLayout(filters)
        column.addWidget(self.table, 1)
        column.addLayout(buttons)

    def show_decisions(self, found: tuple[Decided, ...]) -> None:
        """Lists the decisions, newest first."""
        self._all = found
        self._fill()

    @property
    def shown(self) -> tuple[Decided, ...]:
        """The decisions that pass the filter."""
        return self._shown

    def _fill(self) -> None:
        outcome = decisions.OUTCOMES[max(0, self.outcome.currentIndex())]
        self._shown = decisions.filtered(self._all, self.words.text(), outcome)
        self.table.clear()
        self.table.addTopLevelItems([self._row(decided) for decided in self._shown])
        self._count.setText(wording.counted("decisions.count", len(self._shown)))
        self.save_button.setEnabled(bool(self._shown))

    def _row(self, decided: Decided) -> QTreeWidgetItem:
        cells = [
            wording.clock_time(decided.at_ms, self._now_ms),
            decisions.call(decided),
            decisions.outcome(decided),
            decisions.reason(decided),
        ]
        item = QTreeWidgetItem([one_line(cell, 300) for cell in cells])
        item.setIcon(2, icon("check", "muted") if decided.allowed else icon("x", "danger_text"))
        for column, cell in enumerate(cells):
            item.setToolTip(column, cell)
        return item

    def retranslate(self) -> None:
        """Says everything again."""
        self.setWindowTitle(tr("decisions.title"))
        self.words.setPlaceholderText(tr("decisions.filter"))
        self.words.setAccessibleName(tr("decisions.filter"))
        self.outcome.setAccessibleName(tr("decisions.outcome"))
        for at, name in enumerate(decisions.OUTCOMES):
            self.outcome.setItemText(at, tr(f"decisions.{name}"))
        self.table.setAccessibleName(tr("decisions.title"))
        self.table.setHeaderLabels([tr(f"decisions.column_{name}") for name in COLUMNS])
        self._fill()
