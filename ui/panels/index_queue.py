"""The index queue: resident blocks ranked by heat, with what may be done to one.

The model keeps the selected block selected when the order changes; rows are painted by a delegate from theme colours.
"""

from __future__ import annotations

from PySide6.QtCore import (
    QAbstractListModel,
    QModelIndex,
    QObject,
    QPersistentModelIndex,
    QRectF,
    QSize,
    Qt,
    Signal,
)
from PySide6.QtGui import QColor, QFontMetrics, QKeyEvent, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QHBoxLayout,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.text import tr
from memory.values import PointerKind, QueueEntry, QueueSnapshot
from ui.icons import icon
from ui.panels.controls import ICON_PIXELS, ElidedLabel, IconButton, QuietLabel
from ui.theme import theme
from ui.view_models import wording
from ui.view_models.display import title_line

ROW_PIXELS = 28
BAR_PIXELS = 8
BAR_ROOM = 56
AnyIndex = QModelIndex | QPersistentModelIndex


def describe(entry: QueueEntry) -> str:
    """Kind, pointer, heat and size of an entry in words."""
    parts = [
        tr(f"region.kind_{entry.kind}"),
        tr(f"queue.{entry.pointer}"),
        tr("queue.heat", value=f"{entry.heat:.1f}"),
        tr("region.tokens", count=wording.number(entry.tokens)),
    ]
    return " · ".join([*parts, tr("region.pinned")] if entry.pinned else parts)


class QueueModel(QAbstractListModel):
    """The entries of a snapshot, hottest first."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self.entries: tuple[QueueEntry, ...] = ()

    def show_entries(self, entries: tuple[QueueEntry, ...]) -> None:
        """Takes another snapshot."""
        self.beginResetModel()
        self.entries = entries
        self.endResetModel()

    @override
    def rowCount(self, parent: AnyIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self.entries)

    @override
    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or index.row() >= len(self.entries):
            return None
        entry = self.entries[index.row()]
        match role:
            case Qt.ItemDataRole.DisplayRole:
                return title_line(entry.title, 120)
            case Qt.ItemDataRole.ToolTipRole | Qt.ItemDataRole.AccessibleDescriptionRole:
                return describe(entry)
            case Qt.ItemDataRole.AccessibleTextRole:
                return f"{title_line(entry.title, 120)}, {describe(entry)}"
            case Qt.ItemDataRole.UserRole:
                return entry
            case _:
                return None


class QueueDelegate(QStyledItemDelegate):
    """Paints a row: title, what it is, its heat as a bar with the number in words."""

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        return QSize(120, ROW_PIXELS)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        entry = index.data(Qt.ItemDataRole.UserRole)
        model = index.model()
        if not isinstance(entry, QueueEntry) or not isinstance(model, QueueModel):
            return
        hottest = max(1e-9, max(other.heat for other in model.entries))
        box = QRectF(option.rect)
        state = option.state
        painter.save()
        if state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, theme.color("accent_soft"))
        elif state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(box, theme.color("hover"))
        bar = QRectF(box.left() + 4, box.center().y() - BAR_PIXELS / 2, BAR_ROOM, BAR_PIXELS)
        self._paint_heat(painter, bar, entry.heat / hottest)
        self._paint_words(painter, box.adjusted(BAR_ROOM + 14, 0, -4, 0), entry)
        painter.restore()

    def _paint_words(self, painter: QPainter, box: QRectF, entry: QueueEntry) -> None:
        font = theme.font()
        metrics = QFontMetrics(font)
        right = f"{entry.heat:.1f}"
        painter.setFont(font)
        painter.setPen(theme.color("muted"))
        painter.drawText(
            box, int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter), right
        )
        box.setRight(box.right() - metrics.horizontalAdvance(right) - 8)
        if entry.pinned:
            side = int(box.right()) - ICON_PIXELS + 2
            icon("pin", "heat_text").paint(painter, side, int(box.center().y()) - 7, 14, 14)
            box.setRight(side - 4)
        font.setItalic(entry.pointer is PointerKind.PLACEHOLDER)
        painter.setFont(font)
        painter.setPen(theme.color("text"))
        title = metrics.elidedText(
            title_line(entry.title, 120), Qt.TextElideMode.ElideRight, int(box.width())
        )
        painter.drawText(
            box, int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter), title
        )

    def _paint_heat(self, painter: QPainter, box: QRectF, share: float) -> None:
        painter.fillRect(box, theme.color("pressed"))
        filled = QRectF(box.left(), box.top(), max(2.0, box.width() * share), box.height())
        cold, hot = theme.color("heat_cold"), theme.color("heat")
        colour = QColor.fromRgbF(
            cold.redF() + (hot.redF() - cold.redF()) * share,
            cold.greenF() + (hot.greenF() - cold.greenF()) * share,
            cold.blueF() + (hot.blueF() - cold.blueF()) * share,
        )
        painter.fillRect(filled, colour)


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

    Signals: `source_wanted(NodeId)`, `pin_wanted(int block_id, bool pinned)`, `evict_wanted(int block_id)`,
    `summary_changed(str)`.
    """

    source_wanted = Signal(object)
    pin_wanted = Signal(int, bool)
    evict_wanted = Signal(int)
    summary_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.model = QueueModel(self)
        self.list = QueueList()
        self.list.setModel(self.model)
        self.list.setItemDelegate(QueueDelegate(self.list))
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
        self._actions = QWidget()
        row = QHBoxLayout(self._actions)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self._words, 1)
        for button in (self.open_button, self.pin_button, self.evict_button):
            row.addWidget(button)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 2, 8, 4)
        column.setSpacing(4)
        column.addWidget(self._empty)
        column.addWidget(self.list, 1)
        column.addWidget(self._actions)
        column.addStretch(0)
        self.list.selectionModel().selectionChanged.connect(self._selected)
        self.list.activated.connect(self._open)
        self.list.pin_wanted.connect(self._pin)
        self.list.evict_wanted.connect(self._evict)
        self.open_button.clicked.connect(self._open)
        self.pin_button.clicked.connect(self._pin)
        self.evict_button.clicked.connect(self._evict)
        self.retranslate()

    def show_snapshot(self, snapshot: QueueSnapshot) -> None:
        """Shows another order; the selected block stays selected."""
        if snapshot.entries == self.model.entries:
            return
        chosen = self.selected()
        self.model.show_entries(snapshot.entries)
        for row, entry in enumerate(snapshot.entries):
            if chosen is not None and entry.block_id == chosen.block_id:
                self.list.setCurrentIndex(self.model.index(row))
        self.retranslate()

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
        self._words.say(describe(entry) if entry else "")

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
        self._selected()
        self.list.viewport().update()

    def restyle(self) -> None:
        """Paints the rows again."""
        self.list.viewport().update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(290, 220)
