"""The changes of the dream journal as a list: days, and under each its changes, newest first.

One item model over plain rows and one delegate that paints them: ten thousand changes cost no widget.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from PySide6.QtCore import QAbstractListModel, QModelIndex, QObject, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFont, QFontMetricsF, QPainter
from PySide6.QtWidgets import (
    QAbstractItemView,
    QListView,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QWidget,
)
from typing_extensions import override

from growbox_app.text import tr
from memory.rest_values import JournalEntry
from ui.panels.queue_model import AnyIndex
from ui.theme import SMALL_PIXELS, theme
from ui.view_models import journal

ROW_PIXELS = 46
LINE_PIXELS = 19
PADDING = 8
DOT_PIXELS = 6
DOT_ROOM = 14
TIME_ROOM = 44

Row = str | JournalEntry


def rows_of(entries: Iterable[JournalEntry], now_ms: int, last_day: str = "") -> list[Row]:
    """The entries with a row for each day that begins; `last_day` is the day of what stands above."""
    rows: list[Row] = []
    for entry in entries:
        day = journal.day_name(entry.at_ms, now_ms)
        if day != last_day:
            rows.append(day)
            last_day = day
        rows.append(entry)
    return rows


class JournalModel(QAbstractListModel):
    """Days and changes. What was new when it came into the list stays marked until the list is filled anew."""

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows: list[Row] = []
        self.now_ms = 0

    @property
    def entries(self) -> tuple[JournalEntry, ...]:
        """What is listed, newest first."""
        return tuple(row for row in self._rows if not isinstance(row, str))

    def show_entries(self, entries: Iterable[JournalEntry], now_ms: int) -> None:
        """Fills the list anew."""
        self.beginResetModel()
        self.now_ms = now_ms
        self._rows = rows_of(entries, now_ms)
        self.endResetModel()

    def append(self, entries: Iterable[JournalEntry]) -> None:
        """Adds older ones at the end."""
        last = self._rows[-1] if self._rows else ""
        day = last if isinstance(last, str) else journal.day_name(last.at_ms, self.now_ms)
        rows = rows_of(entries, self.now_ms, day)
        if rows:
            first = len(self._rows)
            self.beginInsertRows(QModelIndex(), first, first + len(rows) - 1)
            self._rows += rows
            self.endInsertRows()

    def mark_undone(self, entry_id: int) -> JournalEntry | None:
        """Shows a change as undone."""
        row = self.row_of(entry_id)
        entry = self._rows[row] if row >= 0 else None
        if not isinstance(entry, JournalEntry):
            return None
        self._rows[row] = undone = replace(entry, undone=True)
        self.dataChanged.emit(self.index(row), self.index(row))
        return undone

    def row_of(self, entry_id: int | None) -> int:
        """Where a change stands; -1 where it does not."""
        for at, row in enumerate(self._rows):
            if not isinstance(row, str) and row.id == entry_id:
                return at
        return -1

    @override
    def rowCount(self, parent: AnyIndex | None = None) -> int:
        return 0 if parent is not None and parent.isValid() else len(self._rows)

    @override
    def flags(self, index: AnyIndex) -> Qt.ItemFlag:
        if not index.isValid() or isinstance(self._rows[index.row()], str):
            return Qt.ItemFlag.NoItemFlags
        return super().flags(index)

    @override
    def data(self, index: AnyIndex, role: int = Qt.ItemDataRole.DisplayRole) -> object:
        if not index.isValid() or index.row() >= len(self._rows):
            return None
        row = self._rows[index.row()]
        if role == Qt.ItemDataRole.UserRole:
            return row
        if isinstance(row, str):
            return row if role == Qt.ItemDataRole.DisplayRole else None
        if role == Qt.ItemDataRole.DisplayRole:
            return journal.what(row)
        if role in (Qt.ItemDataRole.AccessibleTextRole, Qt.ItemDataRole.ToolTipRole):
            return journal.describe(row, self.now_ms)
        return None


class JournalDelegate(QStyledItemDelegate):
    """Paints a day, or a change: a dot while it is new, what it was, its time, and cause and question below."""

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        return QSize(160, ROW_PIXELS)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        row = index.data(Qt.ItemDataRole.UserRole)
        box = QRectF(option.rect)
        painter.save()
        if isinstance(row, str):
            painter.setFont(theme.font(bold=True))
            words = box.adjusted(PADDING, 0, -PADDING, -6)
            low = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignBottom
            painter.setPen(theme.color("muted"))
            painter.drawText(words, int(low), row)
        elif isinstance(row, JournalEntry):
            selected = bool(option.state & QStyle.StateFlag.State_Selected)
            if selected:
                painter.fillRect(box, theme.color("accent_soft"))
            elif option.state & QStyle.StateFlag.State_MouseOver:
                painter.fillRect(box, theme.color("hover"))
            self._paint_entry(painter, box, row, selected=selected)
        painter.restore()

    def _paint_entry(
        self, painter: QPainter, box: QRectF, entry: JournalEntry, *, selected: bool
    ) -> None:
        quiet = "text" if selected else "muted"
        if entry.new:
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("accent"))
            top = box.top() + 4 + (LINE_PIXELS - DOT_PIXELS) / 2
            painter.drawEllipse(QRectF(box.left() + PADDING, top, DOT_PIXELS, DOT_PIXELS))
        words = box.adjusted(PADDING + DOT_ROOM, 4, -PADDING, 0)
        words.setHeight(LINE_PIXELS)
        time = QRectF(words.right() - TIME_ROOM, words.top(), TIME_ROOM, LINE_PIXELS)
        painter.setFont(theme.font(SMALL_PIXELS))
        right = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
        painter.setPen(theme.color(quiet))
        painter.drawText(time, int(right), journal.time_of_day(entry.at_ms))
        title = words.adjusted(0, 0, -TIME_ROOM, 0)
        font = theme.font(bold=entry.new)
        font.setStrikeOut(entry.undone)
        self._paint_line(
            painter, title, journal.what(entry), font, quiet if entry.undone else "text"
        )
        words.translate(0, LINE_PIXELS)
        self._paint_line(painter, words, journal.about(entry), theme.font(SMALL_PIXELS), quiet)

    def _paint_line(
        self, painter: QPainter, box: QRectF, words: str, font: QFont, colour: str
    ) -> None:
        painter.setFont(font)
        painter.setPen(theme.color(colour))
        shown = QFontMetricsF(font).elidedText(words, Qt.TextElideMode.ElideRight, box.width())
        flags = Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter
        painter.drawText(box, int(flags), shown)


class JournalList(QListView):
    """The list. Signals: `chosen(JournalEntry | None)`, `opened()` when a change is activated."""

    chosen = Signal(object)
    opened = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("journal_list")
        self.setUniformItemSizes(True)
        self.setMouseTracking(True)
        self.setVerticalScrollMode(QAbstractItemView.ScrollMode.ScrollPerPixel)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.journal = JournalModel(self)
        self.setModel(self.journal)
        self.setItemDelegate(JournalDelegate(self))
        self.selectionModel().currentChanged.connect(lambda *_: self.chosen.emit(self.entry()))
        self.activated.connect(lambda _index: self.opened.emit())
        self.retranslate()

    def entry(self) -> JournalEntry | None:
        """The chosen change."""
        row = self.currentIndex().data(Qt.ItemDataRole.UserRole)
        return row if isinstance(row, JournalEntry) else None

    def show_entries(
        self, entries: tuple[JournalEntry, ...], now_ms: int, *, keep: bool = False
    ) -> None:
        """Fills the list anew; with `keep`, the chosen change and the place stay."""
        chosen = self.entry()
        place, before = self.verticalScrollBar().value(), self.journal.rowCount()
        self.journal.show_entries(entries, now_ms)
        row = self.journal.row_of(chosen.id if chosen else None) if keep else -1
        if row >= 0:
            self.setCurrentIndex(self.journal.index(row))
        if keep and place:
            added = self.journal.rowCount() - before
            self.verticalScrollBar().setValue(place + max(0, added) * ROW_PIXELS)
        if row < 0:
            self.chosen.emit(None)

    def retranslate(self) -> None:
        """Says the name again."""
        self.setAccessibleName(tr("journal.list"))

    def restyle(self) -> None:
        """Paints the rows again."""
        self.viewport().update()
