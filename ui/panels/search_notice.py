"""The quiet line under an answer about the search of the past: how far it came, what it found, and what may follow.

Always one line high, so that its place can be kept free before it says anything.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QWidget
from typing_extensions import override

from growbox_app.api import DeepSearch, DeepSearchState
from ui.icons import icon
from ui.panels.controls import ICON_PIXELS, ElidedLabel, QuietLabel, TextButton
from ui.theme import theme
from ui.view_models import searching

NOTICE_PIXELS = 30
TITLE_PIXELS_MIN = 40
TITLE_PADDING = 24
GAP = 6
_ICONS = {DeepSearchState.FOUND: "leaf", DeepSearchState.UNAVAILABLE: "circle-alert"}


class SearchNotice(QWidget):
    """The line.

    Signals: `stop_wanted()`, `further_wanted()`, `again_wanted()`, `source_wanted(NodeId)`.
    """

    stop_wanted = Signal()
    further_wanted = Signal()
    again_wanted = Signal()
    source_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._search: DeepSearch | None = None
        self._now_ms = 0
        self._picture = QuietLabel()
        self._words = ElidedLabel(look="quiet")
        self._words.setSizePolicy(QSizePolicy.Policy.Maximum, QSizePolicy.Policy.Fixed)
        self.title_button = TextButton("trace.open", kind="quiet")
        self.stop_button = TextButton("composer.stop", icon_name="circle-stop", kind="quiet")
        self.further_button = TextButton("search.further")
        self.again_button = TextButton("search.again")
        self.title_button.clicked.connect(self._open)
        self.stop_button.clicked.connect(self._stop)
        self.further_button.clicked.connect(self._go_on)
        self.again_button.clicked.connect(self._ask_again)
        row = QHBoxLayout(self)
        row.setContentsMargins(6, 0, 0, 0)
        row.setSpacing(GAP)
        row.addWidget(self._picture)
        row.addWidget(self._words)
        for button in self._buttons():
            row.addWidget(button)
        row.addStretch(1)
        self.setFixedHeight(NOTICE_PIXELS)

    def _buttons(self) -> tuple[TextButton, ...]:
        return self.title_button, self.stop_button, self.further_button, self.again_button

    def show_search(self, search: DeepSearch, now_ms: int) -> None:
        """Says how the search stands."""
        self._search, self._now_ms = search, now_ms
        for button in self._buttons():
            button.setEnabled(True)
        self.retranslate()
        self.restyle()

    def text(self) -> str:
        """The sentence."""
        return self._words.text()

    def retranslate(self) -> None:
        """Says the line again."""
        search = self._search
        if search is None:
            return
        state = search.state
        found = state is DeepSearchState.FOUND and bool(search.memories)
        self._words.say(searching.notice(search, self._now_ms))
        self.title_button.setVisible(found)
        self.stop_button.setVisible(state is DeepSearchState.RUNNING)
        self.further_button.setVisible(search.can_continue)
        self.again_button.setVisible(found)
        self._fit_title()

    def _fit_title(self) -> None:
        """Cuts the title where there is no room for it; sentence and buttons keep theirs."""
        title = searching.found_title(self._search) if self._search else ""
        others = (self._picture, self._words, self.again_button)
        taken = sum(other.sizeHint().width() + GAP for other in others)
        room = self.width() - taken - TITLE_PADDING
        metrics = QFontMetrics(theme.font())
        shown = metrics.elidedText(title, Qt.TextElideMode.ElideRight, max(TITLE_PIXELS_MIN, room))
        self.title_button.setText(shown)
        self.title_button.setToolTip(title)
        self.title_button.setAccessibleName(title)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fit_title()

    def restyle(self) -> None:
        """Draws the icon again."""
        if self._search is not None:
            name = _ICONS.get(self._search.state, "search")
            self._picture.setPixmap(icon(name, "muted").pixmap(ICON_PIXELS, ICON_PIXELS))

    # A pressed button waits for what the search says next: nothing can be asked twice.
    def _stop(self) -> None:
        self.stop_button.setEnabled(False)
        self.stop_wanted.emit()

    def _go_on(self) -> None:
        self.further_button.setEnabled(False)
        self.further_wanted.emit()

    def _ask_again(self) -> None:
        self.again_button.setEnabled(False)
        self.again_wanted.emit()

    def _open(self) -> None:
        if self._search is not None and self._search.memories:
            self.source_wanted.emit(self._search.memories[0].node_id)
