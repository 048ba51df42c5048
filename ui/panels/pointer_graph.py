"""The pointer graph around one memory: a picture, and the same as a list with the questions of each edge.

The list is what the keyboard walks: arrows choose an edge and open its questions, Enter puts the memory at its other end in the middle,
Backspace goes back to the one before.
"""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QHBoxLayout,
    QHeaderView,
    QSplitter,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.text import tr
from memory.values import KSample, NeighbourhoodSnapshot, NodeId
from ui.icons import icon
from ui.panels.controls import ICON_PIXELS, ElidedLabel, IconButton, QuietLabel
from ui.panels.pointer_canvas import PointerCanvas
from ui.view_models import pointers, wording
from ui.view_models.display import one_line, title_line
from ui.view_models.pointers import Neighbour

COLUMNS = 3
LIST_PIXELS_MIN = 52
# How picture and list share the height at first.
SHARES = [110, 90]
BACK_MAX = 50


class EdgeList(QTreeWidget):
    """The list. Backspace goes back. Signals: `back_wanted()`."""

    back_wanted = Signal()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Backspace:
            self.back_wanted.emit()
        else:
            super().keyPressEvent(event)


class PointerGraphPanel(QWidget):
    """Picture and list.

    Signals: `node_wanted(NodeId)` to be put in the middle, `source_wanted(NodeId)`, `summary_changed(str)`.
    """

    node_wanted = Signal(object)
    source_wanted = Signal(object)
    summary_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: NeighbourhoodSnapshot | None = None
        self._now_ms = 0
        self._before: list[NodeId] = []
        self.canvas = PointerCanvas()
        self._make_list()
        self.back_button = IconButton("arrow-left", "pointers.back")
        self.source_button = IconButton("eye", "pointers.open")
        self._title = ElidedLabel(look="strong")
        self._empty = QuietLabel()
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        parts = QSplitter(Qt.Orientation.Vertical)
        parts.setChildrenCollapsible(False)
        parts.addWidget(self._make_top())
        parts.addWidget(self.list)
        parts.setSizes(SHARES)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 2, 8, 4)
        column.addWidget(parts)
        self.setFocusProxy(self.list)
        self._connect()
        self.retranslate()

    def _make_top(self) -> QWidget:
        """The picture, or why there is none; at its right what can be done with the memory in the middle."""
        words = QVBoxLayout()
        words.setSpacing(4)
        words.addWidget(self._title)
        words.addWidget(self._empty)
        words.addWidget(self.canvas, 1)
        words.addStretch(0)
        buttons = QVBoxLayout()
        buttons.setSpacing(2)
        buttons.addWidget(self.back_button)
        buttons.addWidget(self.source_button)
        buttons.addStretch(1)
        top = QWidget()
        row = QHBoxLayout(top)
        row.setContentsMargins(0, 0, 0, 2)
        row.setSpacing(4)
        row.addLayout(words, 1)
        row.addLayout(buttons)
        return top

    def _make_list(self) -> None:
        self.list = EdgeList()
        self.list.setColumnCount(COLUMNS)
        self.list.setHeaderHidden(True)
        self.list.setUniformRowHeights(True)
        self.list.setMinimumHeight(LIST_PIXELS_MIN)
        self.list.setIndentation(14)
        self.list.setIconSize(QSize(ICON_PIXELS, ICON_PIXELS))
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        header = self.list.header()
        header.setStretchLastSection(False)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        for column_at in (1, 2):
            header.setSectionResizeMode(column_at, QHeaderView.ResizeMode.ResizeToContents)

    def _connect(self) -> None:
        self.canvas.neighbour_clicked.connect(self._go_to)
        self.canvas.edge_clicked.connect(self._choose)
        self.list.currentItemChanged.connect(lambda now, _before: self._chosen(now))
        self.list.itemActivated.connect(self._activated)
        self.list.back_wanted.connect(self._go_back)
        self.back_button.clicked.connect(self._go_back)
        self.source_button.clicked.connect(self._open)

    @property
    def node_id(self) -> NodeId | None:
        """The memory in the middle."""
        return self._snapshot.node_id if self._snapshot else None

    def show_snapshot(self, snapshot: NeighbourhoodSnapshot | None, now_ms: int) -> None:
        """Shows another state or another memory; None when none is selected."""
        self._now_ms = now_ms
        if snapshot == self._snapshot:
            return
        self._snapshot = snapshot
        self.retranslate()

    def start_at(self, node_id: NodeId) -> None:
        """A memory was selected elsewhere: there is no way back from it."""
        self._before.clear()
        self.node_wanted.emit(node_id)

    def neighbours(self) -> tuple[Neighbour, ...]:
        """The edges, in the list's order."""
        return pointers.neighbours(self._snapshot) if self._snapshot else ()

    def selected(self) -> Neighbour | None:
        """The chosen edge; that of a chosen question."""
        return self._edge_of(self.list.currentItem())

    # -- what the reader does ---------------------------------------------------------------------
    def _edge_of(self, item: QTreeWidgetItem | None) -> Neighbour | None:
        if item is None:
            return None
        found = (item.parent() or item).data(0, Qt.ItemDataRole.UserRole)
        return found if isinstance(found, Neighbour) else None

    def _edges(self) -> list[QTreeWidgetItem]:
        items = [self.list.topLevelItem(at) for at in range(self.list.topLevelItemCount())]
        return [item for item in items if item is not None]

    def _chosen(self, item: QTreeWidgetItem | None) -> None:
        edge = self._edge_of(item)
        self.canvas.choose(edge.key if edge else None)
        if item is not None and item.parent() is None:
            for other in self._edges():
                other.setExpanded(other is item)
            last = item.child(item.childCount() - 1)
            if last is not None:
                self.list.scrollToItem(last)
            self.list.scrollToItem(item)

    def _choose(self, key: tuple[NodeId, NodeId]) -> None:
        for item in self._edges():
            edge = self._edge_of(item)
            if edge is not None and edge.key == key:
                self.list.setCurrentItem(item)

    def _activated(self, item: QTreeWidgetItem) -> None:
        edge = self._edge_of(item)
        if edge is not None and item.parent() is None:
            self._go_to(edge.node_id)

    def _go_to(self, node_id: NodeId) -> None:
        if self.node_id is not None and node_id != self.node_id:
            self._before = [*self._before[1 - BACK_MAX :], self.node_id]
            self.node_wanted.emit(node_id)

    def _go_back(self) -> None:
        if self._before:
            self.node_wanted.emit(self._before.pop())

    def _open(self) -> None:
        if self.node_id is not None:
            self.source_wanted.emit(self.node_id)

    # -- words --------------------------------------------------------------------------------
    def retranslate(self) -> None:
        """Says everything again."""
        snapshot, found = self._snapshot, self.neighbours()
        self.list.setAccessibleName(tr("pointers.list"))
        self.canvas.setAccessibleName(tr("panel.pointers"))
        self._empty.setText(tr("pointers.none" if snapshot else "pointers.unselected"))
        self._empty.setVisible(not found)
        self._title.setVisible(snapshot is not None and not found)
        self.canvas.setVisible(bool(found))
        self.list.setVisible(bool(found))
        for button in (self.back_button, self.source_button):
            button.setVisible(snapshot is not None)
        self.back_button.setEnabled(bool(self._before))
        title = title_line(snapshot.title, pointers.TITLE_CHARACTERS) if snapshot else ""
        self._title.say(title)
        self.canvas.show_neighbours(title, found)
        self.summary_changed.emit(wording.counted("pointers.count", len(found)) if found else "")
        self._fill(found)

    def _fill(self, found: tuple[Neighbour, ...]) -> None:
        chosen = self.selected()
        self.list.clear()
        self.list.addTopLevelItems([self._item(neighbour) for neighbour in found])
        if chosen is not None:
            self._choose(chosen.key)
        if self.list.currentItem() is None:
            self.canvas.choose(None)

    def _item(self, neighbour: Neighbour) -> QTreeWidgetItem:
        edge = neighbour.edge
        samples = [*edge.positive, *edge.negative]
        used = max((sample.used_at_ms for sample in samples), default=None)
        when = wording.age(used, self._now_ms) if used is not None else ""
        arrow = tr("pointers.arrow_to" if neighbour.leaving else "pointers.arrow_from")
        title = f"{arrow} {neighbour.title}"
        item = QTreeWidgetItem([title, wording.number(edge.heat), when])
        item.setData(0, Qt.ItemDataRole.UserRole, neighbour)
        if edge.forced:
            item.setIcon(0, icon("pin", "heat_text"))
        _say(item, pointers.describe(neighbour))
        item.addChildren([self._sample(sample, positive=True) for sample in edge.positive])
        item.addChildren([self._sample(sample, positive=False) for sample in edge.negative])
        return item

    def _sample(self, sample: KSample, *, positive: bool) -> QTreeWidgetItem:
        sign = tr("pointers.sign_for" if positive else "pointers.sign_against")
        weight = tr("pointers.times", count=wording.number(sample.weight))
        when = wording.age(sample.used_at_ms, self._now_ms)
        item = QTreeWidgetItem([f"{sign} {one_line(sample.text)}", weight, when])
        _say(item, pointers.describe_sample(sample, self._now_ms, positive=positive))
        return item

    def restyle(self) -> None:
        """Draws icons and picture again."""
        self.retranslate()

    @override
    def sizeHint(self) -> QSize:
        return QSize(290, 240)


def _say(item: QTreeWidgetItem, words: str) -> None:
    for column in range(COLUMNS):
        item.setToolTip(column, words)
        item.setData(column, Qt.ItemDataRole.AccessibleTextRole, words)
        if column:
            side = Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter
            item.setTextAlignment(column, side)
