"""The index queue: resident blocks ranked by heat, with what may be done to one.

The selected block stays selected when the order changes. Rows glide to their new place, here and nowhere else in the window.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QListView,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.text import tr
from memory.values import NodeId, QueueEntry, QueueSnapshot
from ui.panels.controls import ElidedLabel, IconButton, QuietLabel
from ui.panels.queue_model import QueueModel
from ui.panels.queue_rows import QueueDelegate, RowMotion
from ui.view_models import wording
from ui.view_models.block_words import describe_entry


class QueueList(QListView):
    """The list. Keys: P pins, Delete evicts, Enter opens the source."""

    pin_wanted = Signal()
    evict_wanted = Signal()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_P and not event.modifiers():
            self.pin_wanted.emit()
        elif event.key() == Qt.Key.Key_Delete:
            self.evict_wanted.emit()
        else:
            super().keyPressEvent(event)


class IndexQueuePanel(QWidget):
    """List and actions.

    Signals: `source_wanted(NodeId)`, `node_chosen(NodeId)` when another memory is selected, `pin_wanted(int block_id, bool pinned)`,
    `evict_wanted(int block_id)`, `summary_changed(str)`.
    """

    source_wanted = Signal(object)
    node_chosen = Signal(object)
    pin_wanted = Signal(int, bool)
    evict_wanted = Signal(int)
    summary_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._told: NodeId | None = None
        self.model = QueueModel(self)
        self.list = QueueList()
        self.list.setModel(self.model)
        self.rows = RowMotion(self)
        self._delegate = QueueDelegate(self.rows, self.list)
        self.list.setItemDelegate(self._delegate)
        self.list.setUniformItemSizes(True)
        self.list.setMouseTracking(True)
        self.list.setSelectionMode(QAbstractItemView.SelectionMode.SingleSelection)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._empty = QuietLabel()
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._words = ElidedLabel(look="quiet")
        self.open_button = IconButton("eye", "queue.open")
        self.pin_button = IconButton("pin", "queue.pin")
        self.evict_button = IconButton("log-out", "queue.evict")
        self._actions = self._make_actions()
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 2, 8, 4)
        column.setSpacing(4)
        column.addWidget(self._empty)
        column.addWidget(self.list, 1)
        column.addWidget(self._actions)
        column.addStretch(0)
        self._connect()
        self.retranslate()

    def _make_actions(self) -> QWidget:
        actions = QWidget()
        row = QHBoxLayout(actions)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self._words, 1)
        for button in (self.open_button, self.pin_button, self.evict_button):
            row.addWidget(button)
        return actions

    def _connect(self) -> None:
        self.list.selectionModel().selectionChanged.connect(self._selected)
        self.rows.moved.connect(self.list.viewport().update)
        self.list.activated.connect(self._open)
        self.list.pin_wanted.connect(self._pin)
        self.list.evict_wanted.connect(self._evict)
        self.open_button.clicked.connect(self._open)
        self.pin_button.clicked.connect(self._pin)
        self.evict_button.clicked.connect(self._evict)

    def show_snapshot(self, snapshot: QueueSnapshot, now_ms: int) -> None:
        """Shows another order; the selected block stays selected, and rows that moved are seen to move."""
        if snapshot.entries == self.model.entries:
            return
        before = self._rows_by_block()
        if self.model.show_snapshot(snapshot, now_ms):
            self.rows.start(before, self._rows_by_block(), self.list.viewport().height())
        else:
            self.rows.stop()
        self.retranslate()

    def _rows_by_block(self) -> dict[int, int]:
        return {entry.block_id: row for row, entry in enumerate(self.model.entries)}

    def selected(self) -> QueueEntry | None:
        """The chosen entry."""
        entry = (
            self.list.currentIndex().data(Qt.ItemDataRole.UserRole)
            if self.list.currentIndex().isValid()
            else None
        )
        return entry if isinstance(entry, QueueEntry) else None

    def _selected(self) -> None:
        entry = self.selected()
        for button in (self.open_button, self.pin_button, self.evict_button):
            button.setEnabled(entry is not None)
        pinned = entry is not None and entry.pinned
        self.pin_button.show_as(
            "pin-off" if pinned else "pin", "queue.unpin" if pinned else "queue.pin"
        )
        self._words.say(describe_entry(entry, self.model.now_ms) if entry else "")
        if entry is not None and entry.node_id != self._told:
            self._told = entry.node_id
            self.node_chosen.emit(entry.node_id)

    def _open(self) -> None:
        if (entry := self.selected()) is not None:
            self.source_wanted.emit(entry.node_id)

    def _pin(self) -> None:
        if (entry := self.selected()) is not None:
            self.pin_wanted.emit(entry.block_id, not entry.pinned)

    def _evict(self) -> None:
        if (entry := self.selected()) is not None:
            self.evict_wanted.emit(entry.block_id)

    def retranslate(self) -> None:
        """Says everything again."""
        self.list.setAccessibleName(tr("panel.queue"))
        self._empty.setText(tr("queue.empty"))
        self._empty.setVisible(not self.model.entries)
        self.list.setVisible(bool(self.model.entries))
        self._actions.setVisible(bool(self.model.entries))
        count = len(self.model.entries)
        self.summary_changed.emit(wording.counted("queue.count", count) if count else "")
        self._delegate.measure(self.model)
        self._selected()
        self.list.viewport().update()

    def restyle(self) -> None:
        """Paints the rows again."""
        self._delegate.measure(self.model)
        self.list.viewport().update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(290, 220)
