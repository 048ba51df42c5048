"""The changes of the dream journal: filter and search, the list by day, and the chosen change beside or below it."""

from __future__ import annotations

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QResizeEvent
from PySide6.QtWidgets import QComboBox, QHBoxLayout, QLineEdit, QSplitter, QVBoxLayout, QWidget
from typing_extensions import override

from growbox_app.text import tr
from memory.rest_values import JournalEntry, JournalPage
from ui.panels.controls import QuietLabel, TextButton
from ui.panels.journal_detail import JournalDetail
from ui.panels.journal_list import JournalList
from ui.view_models import journal

SEARCH_DELAY_MS = 250
BESIDE_PIXELS = 760
"""From this width on the change stands beside the list."""
LIST_SHARE = 0.45


class JournalChanges(QWidget):
    """Filter, list and detail.

    Signals: `filter_changed()`, `older_wanted()`, `undo_wanted(int)`, `note_wanted(NodeId)`.
    """

    filter_changed = Signal()
    older_wanted = Signal()
    undo_wanted = Signal(int)
    note_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._more = False
        self.filter_box = QComboBox()
        self.search_field = QLineEdit()
        self.search_field.setClearButtonEnabled(True)
        self.list = JournalList()
        self.detail = JournalDetail()
        self.older_button = TextButton("journal.older")
        self._empty = QuietLabel()
        self._empty.setWordWrap(True)
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SEARCH_DELAY_MS)
        self._arrange()
        self._timer.timeout.connect(self.filter_changed)
        self.filter_box.activated.connect(lambda _at: self.filter_changed.emit())
        self.search_field.textChanged.connect(lambda _text: self._timer.start())
        self.older_button.clicked.connect(self.older_wanted)
        self.list.chosen.connect(self._show)
        self.list.opened.connect(self.detail.undo_button.setFocus)
        self.detail.undo_wanted.connect(self.undo_wanted)
        self.detail.note_wanted.connect(self.note_wanted)
        self.retranslate()

    def _arrange(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self.filter_box)
        top.addWidget(self.search_field, 1)
        left = QWidget()
        column = QVBoxLayout(left)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(4)
        column.addWidget(self._empty)
        column.addWidget(self.list, 1)
        column.addWidget(self.older_button)
        self.splitter = QSplitter(Qt.Orientation.Vertical)
        self.splitter.setChildrenCollapsible(False)
        self.splitter.setHandleWidth(1)
        self.splitter.addWidget(left)
        self.splitter.addWidget(self.detail)
        self.splitter.setStretchFactor(0, 1)
        self.splitter.setStretchFactor(1, 1)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 8, 0, 0)
        whole.setSpacing(8)
        whole.addLayout(top)
        whole.addWidget(self.splitter, 1)

    # -- what is asked for ------------------------------------------------------------------------
    @property
    def choice(self) -> str:
        """The chosen filter."""
        return str(self.filter_box.currentData() or "all")

    @property
    def text(self) -> str:
        """What is searched."""
        return self.search_field.text()

    # -- what is shown ----------------------------------------------------------------------------
    def show_page(self, page: JournalPage, now_ms: int) -> None:
        """Shows the newest changes; what stood there is gone."""
        self.list.show_entries(page.entries, now_ms)
        self._more = page.more
        self._say()

    def add_newer(self, page: JournalPage, now_ms: int) -> None:
        """Takes what is new into the list; what is chosen and what was loaded stays."""
        listed = self.list.journal.entries
        newest = listed[0].id if listed else 0
        newer = tuple(entry for entry in page.entries if entry.id > newest)
        if not listed or (len(newer) == len(page.entries) and page.more):
            self.show_page(page, now_ms)  # there may be a gap
        elif newer:
            self.list.show_entries((*newer, *listed), now_ms, keep=True)
        self._say()

    def add_older(self, page: JournalPage) -> None:
        """Adds a page at the end."""
        self.list.journal.append(page.entries)
        self._more = page.more
        self._say()

    def mark_undone(self, entry_id: int) -> None:
        """Shows a change as undone."""
        entry = self.list.journal.mark_undone(entry_id)
        if entry is not None and entry == self.list.entry():
            self._show(entry)
            self.list.setFocus()

    def _show(self, entry: JournalEntry | None) -> None:
        self.detail.show_entry(entry, self.list.journal.now_ms)

    def _say(self) -> None:
        listed = bool(self.list.journal.rowCount())
        filtered = self.choice != "all" or bool(self.text.strip())
        self._empty.setText(tr("journal.no_match" if filtered else "journal.empty"))
        self._empty.setHidden(listed)
        self.list.setVisible(listed)
        self.detail.setVisible(listed)
        self.older_button.setVisible(self._more)

    def empty_text(self) -> str:
        """What is said where no change is listed."""
        return "" if self._empty.isHidden() else self._empty.text()

    def retranslate(self) -> None:
        """Says everything again."""
        chosen = self.choice
        self.filter_box.clear()
        for choice in journal.FILTERS:
            self.filter_box.addItem(tr(f"journal.filter_{choice}"), choice)
        self.filter_box.setCurrentIndex(list(journal.FILTERS).index(chosen))
        self.filter_box.setAccessibleName(tr("journal.filter"))
        self.search_field.setPlaceholderText(tr("journal.search"))
        self.search_field.setAccessibleName(tr("journal.search"))
        entries, now_ms = self.list.journal.entries, self.list.journal.now_ms
        self.list.show_entries(entries, now_ms, keep=True)
        self._say()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        beside = self.width() >= BESIDE_PIXELS
        wanted = Qt.Orientation.Horizontal if beside else Qt.Orientation.Vertical
        if self.splitter.orientation() is not wanted:
            self.splitter.setOrientation(wanted)
            room = self.splitter.width() if beside else self.splitter.height()
            self.splitter.setSizes([int(room * LIST_SHARE), int(room * (1 - LIST_SHARE))])
