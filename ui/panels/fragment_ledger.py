"""The fragment ledger: intervals that a jump skipped unread, and what was cleared."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import QHeaderView, QTreeWidget, QTreeWidgetItem, QVBoxLayout, QWidget
from typing_extensions import override

from growbox_app.text import tr
from memory.values import LedgerSnapshot
from ui.panels.controls import QuietLabel
from ui.view_models import wording
from ui.view_models.display import one_line

COLUMNS = ("question", "span", "left", "since")


class FragmentLedgerPanel(QWidget):
    """Counts and the table of open debts.

    Signals: `summary_changed(str)`.
    """

    summary_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: LedgerSnapshot | None = None
        self._now_ms = 0
        self._counts = ""
        self._empty = QuietLabel()
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self.table = QTreeWidget()
        self.table.setRootIsDecorated(False)
        self.table.setColumnCount(len(COLUMNS))
        self.table.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.table.header().setStretchLastSection(False)
        for column_at in (1, 2, 3):
            self.table.header().setSectionResizeMode(
                column_at, QHeaderView.ResizeMode.ResizeToContents
            )
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 2, 12, 6)
        column.setSpacing(4)
        column.addWidget(self._empty, 1)
        column.addWidget(self.table, 1)
        self.retranslate()

    def show_snapshot(self, snapshot: LedgerSnapshot, now_ms: int) -> None:
        """Shows another state."""
        self._now_ms = now_ms
        if snapshot != self._snapshot:
            self._snapshot = snapshot
            self.retranslate()

    def counts_text(self) -> str:
        """The line of counts."""
        return self._counts

    def retranslate(self) -> None:
        """Says everything again."""
        self.table.setHeaderLabels([tr(f"ledger.{name}") for name in COLUMNS])
        self.table.setAccessibleName(tr("panel.ledger"))
        self._empty.setText(tr("ledger.empty"))
        snapshot = self._snapshot
        fragments = snapshot.open if snapshot else ()
        self._empty.setVisible(not fragments)
        self.table.setVisible(bool(fragments))
        if snapshot is None:
            return
        numbers = {"open": len(fragments), "cleared": snapshot.cleared, "nodes": snapshot.nodes}
        self._counts = tr(
            "ledger.counts", **{name: wording.number(value) for name, value in numbers.items()}
        )
        self.summary_changed.emit(self._counts)
        self.table.clear()
        for fragment in fragments:
            span = f"{wording.number(fragment.target_seq)}–{wording.number(fragment.entry_seq)}"
            since = wording.age(fragment.created_at_ms, self._now_ms)
            item = QTreeWidgetItem(
                [one_line(fragment.query), span, wording.number(fragment.remaining), since]
            )
            item.setToolTip(0, fragment.query)
            self.table.addTopLevelItem(item)

    @override
    def sizeHint(self) -> QSize:
        return QSize(290, 170)
