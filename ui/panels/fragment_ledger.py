"""The fragment ledger: parts of the past that a jump skipped unread, how much of each is left, and the way to both of its ends."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QModelIndex, QPersistentModelIndex, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QFontMetricsF, QPainter
from PySide6.QtWidgets import (
    QHBoxLayout,
    QStyle,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.text import tr
from memory.values import LedgerSnapshot
from ui.panels.controls import QuietLabel, TextButton
from ui.panels.ledger_rest import LedgerRest
from ui.theme import SMALL_PIXELS, theme
from ui.view_models import ledger, wording
from ui.view_models.ledger import Debt
from ui.view_models.rest import RestView

ROW_PIXELS = 46
LINE_PIXELS = 19
PADDING = 6
BAR_PIXELS = 3


class DebtDelegate(QStyledItemDelegate):
    """Paints a row: the question, its facts below, a bar for how much was read since."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.now_ms = 0

    @override
    def sizeHint(
        self, option: QStyleOptionViewItem, index: QModelIndex | QPersistentModelIndex
    ) -> QSize:
        return QSize(120, ROW_PIXELS)

    @override
    def paint(
        self,
        painter: QPainter,
        option: QStyleOptionViewItem,
        index: QModelIndex | QPersistentModelIndex,
    ) -> None:
        debt = index.data(Qt.ItemDataRole.UserRole)
        if not isinstance(debt, Debt):
            return
        painter.save()
        box = QRectF(option.rect)
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, theme.color("accent_soft"))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(box, theme.color("hover"))
        words = box.adjusted(PADDING, 2, -PADDING, 0)
        words.setHeight(LINE_PIXELS)
        self._paint_line(painter, words, debt.question, "text")
        words.translate(0, LINE_PIXELS)
        painter.setFont(theme.font(SMALL_PIXELS))
        facts = ledger.facts(debt, self.now_ms)
        selected = bool(option.state & QStyle.StateFlag.State_Selected)
        self._paint_line(painter, words, facts, "text" if selected else "muted")
        bar = QRectF(words.left(), box.bottom() - BAR_PIXELS - 2, words.width(), BAR_PIXELS)
        painter.fillRect(bar, theme.color("pressed"))
        bar.setWidth(bar.width() * debt.read_share)
        painter.fillRect(bar, theme.color("accent"))
        painter.restore()

    def _paint_line(self, painter: QPainter, box: QRectF, words: str, colour: str) -> None:
        painter.setPen(theme.color(colour))
        metrics = QFontMetricsF(painter.font())
        shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, box.width())
        flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        painter.drawText(box, flags, shown)


class FragmentLedgerPanel(QWidget):
    """Counts, the open debts, and the two ends of the chosen one. Enter or a double click opens the older end.

    Signals: `note_chosen(int seq)`, `dream_wanted(DebtId)`, `summary_changed(str)`.
    """

    note_chosen = Signal(int)
    dream_wanted = Signal(object)
    summary_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: LedgerSnapshot | None = None
        self._debts: tuple[Debt, ...] = ()
        self._counts = ""
        self._empty = QuietLabel()
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._more = QuietLabel()
        self.judge = QuietLabel()
        self.judge.setWordWrap(True)
        self.judge.hide()
        self.table = QTreeWidget()
        self.table.setRootIsDecorated(False)
        self.table.setHeaderHidden(True)
        self.table.setUniformRowHeights(True)
        self.table.setMouseTracking(True)
        self.table.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._delegate = DebtDelegate(self.table)
        self.table.setItemDelegate(self._delegate)
        self.rest = LedgerRest(self.judge)
        self._hindrances = ("", "")  # for a debt that is owed, and for one that was put aside
        self.dream_button = TextButton("ledger.dream", kind="quiet")
        self.older_button = TextButton("ledger.open_older", kind="quiet")
        self.newer_button = TextButton("ledger.open_newer", kind="quiet")
        self._actions = QWidget()
        row = QHBoxLayout(self._actions)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(2)
        row.addWidget(self.dream_button)
        row.addWidget(self.older_button)
        row.addWidget(self.newer_button)
        row.addStretch(1)
        self._lay_out()
        self.setFocusProxy(self.table)
        self.table.currentItemChanged.connect(lambda _now, _before: self._chosen())
        self.table.itemActivated.connect(lambda _item: self._open_older())
        self.dream_button.clicked.connect(self._dream)
        self.older_button.clicked.connect(self._open_older)
        self.newer_button.clicked.connect(self._open_newer)
        self.retranslate()

    def _lay_out(self) -> None:
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 2, 12, 4)
        column.setSpacing(4)
        column.addWidget(self.rest)
        column.addWidget(self._empty, 1)
        column.addWidget(self.table, 1)
        self._more.setWordWrap(True)
        column.addWidget(self._more)
        column.addWidget(self._actions)

    def show_snapshot(
        self, snapshot: LedgerSnapshot, now_ms: int, times: Mapping[int, int]
    ) -> None:
        """Shows another state; `times` says when the ends of the fragments were written, as far as that is known."""
        debts = ledger.debts(snapshot, times)
        new_day = wording.day(now_ms, now_ms) != wording.day(self._delegate.now_ms, now_ms)
        self._delegate.now_ms = now_ms
        if (snapshot, debts) != (self._snapshot, self._debts) or new_day:
            self._snapshot, self._debts = snapshot, debts
            self.retranslate()

    def show_rest(self, view: RestView) -> None:
        """Says what is read of the debts now, or why nothing can be."""
        self.rest.show_view(view)
        hindrances = view.dream_hindrance, view.sleep_hindrance
        if hindrances != self._hindrances:
            self._hindrances = hindrances
            self._chosen()

    def show_judge(self, words: str) -> None:
        """Says who reads the past, and how well; empty for nobody."""
        self.judge.setText(words)
        self.judge.setToolTip(tr("judge.why"))
        self.rest.retranslate()

    def counts_text(self) -> str:
        """The line of counts."""
        return self._counts

    def selected(self) -> Debt | None:
        """The chosen debt."""
        item = self.table.currentItem()
        debt = item.data(0, Qt.ItemDataRole.UserRole) if item is not None else None
        return debt if isinstance(debt, Debt) else None

    def _chosen(self) -> None:
        debt = self.selected()
        titles = debt.titles if debt is not None else ("", "")
        for button, title in zip((self.older_button, self.newer_button), titles, strict=True):
            button.setEnabled(debt is not None)
            button.setToolTip(title)
        hindrance = self._hindrances[debt is not None and debt.aside]
        self.dream_button.setEnabled(debt is not None and not hindrance)
        self.dream_button.setToolTip(hindrance or tr("rest.dream_tip"))
        question = debt.question if debt is not None else ""
        self.dream_button.setAccessibleName(tr("ledger.dream_named", question=question))

    def _dream(self) -> None:
        if (debt := self.selected()) is not None:
            self.dream_wanted.emit(debt.fragment.id)

    def _open_older(self) -> None:
        if (debt := self.selected()) is not None:
            self.note_chosen.emit(debt.older_seq)

    def _open_newer(self) -> None:
        if (debt := self.selected()) is not None:
            self.note_chosen.emit(debt.newer_seq)

    def retranslate(self) -> None:
        """Says everything again."""
        self.table.setAccessibleName(tr("panel.ledger"))
        self._empty.setText(tr("ledger.empty"))
        self._empty.setVisible(not self._debts)
        self.table.setVisible(bool(self._debts))
        self._actions.setVisible(bool(self._debts))
        self.rest.show_owing(owing=bool(self._debts))
        if self._snapshot is not None:
            numbers = {
                "open": len(self._snapshot.open),
                "cleared": self._snapshot.cleared,
                "nodes": self._snapshot.nodes,
            }
            said = {name: wording.number(value) for name, value in numbers.items()}
            self._counts = tr("ledger.counts", **said)
            self.summary_changed.emit(self._counts)
        self._fill()

    def _fill(self) -> None:
        chosen = self.selected()
        self.table.clear()
        for debt in self._debts:
            words = ledger.describe(debt, self._delegate.now_ms)
            item = QTreeWidgetItem([debt.question])
            item.setData(0, Qt.ItemDataRole.UserRole, debt)
            item.setToolTip(0, words)
            item.setData(0, Qt.ItemDataRole.AccessibleTextRole, words.replace("\n", ", "))
            self.table.addTopLevelItem(item)
            if chosen is not None and _same(chosen, debt):
                self.table.setCurrentItem(item)
        beyond = ledger.beyond(self._snapshot) if self._snapshot else ""
        self._more.setText(beyond)
        self._more.setVisible(bool(beyond))
        self._chosen()

    def restyle(self) -> None:
        """Paints the rows again."""
        self.table.viewport().update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(290, 170)


def _same(first: Debt, second: Debt) -> bool:
    one, other = first.fragment, second.fragment
    return (one.entry_seq, one.target_seq, one.query) == (
        other.entry_seq,
        other.target_seq,
        other.query,
    )
