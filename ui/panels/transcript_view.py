"""The scrolling conversation: lays out only what is near the view, keeps the reader's place, follows the end when the reader is there.

Every message has a height, measured once it was shown and estimated before. Widgets exist for messages in and around the view only (and
for one that holds the focus or a selection), so a conversation of thousands costs what a screen costs. The reader's place is an anchor
(message, offset): heights that change above it never move what is being read.
"""

from __future__ import annotations

from bisect import bisect_right
from itertools import accumulate, pairwise

from PySide6.QtCore import QEvent, QObject, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QResizeEvent, QWheelEvent
from PySide6.QtWidgets import QAbstractScrollArea, QApplication, QFrame, QWidget
from typing_extensions import override

from growbox_app.text import tr
from memory.values import Role
from ui.panels.controls import TextButton
from ui.panels.message import MessageView
from ui.view_models.transcript import Message, Transcript

COLUMN_PIXELS_MAX = 780
MARGIN_PIXELS = 20
KEPT_BEYOND_PIXELS = 600
FLUSH_MS = 33
NEAR_END_PIXELS = 24
_BY_KEY = (Qt.FocusReason.TabFocusReason, Qt.FocusReason.BacktabFocusReason)
# Each pass may find other heights than estimated and so bring other messages into view.
PASSES_MAX = 12
LINE_PIXELS = 22
CHARACTERS_PER_LINE = 70


def estimated_height(message: Message) -> int:
    """A guess for a message that was never laid out."""
    lines = sum(1 + len(line) // CHARACTERS_PER_LINE for line in message.text[:20_000].split("\n"))
    return 60 + lines * LINE_PIXELS


class TranscriptView(QAbstractScrollArea):
    """Shows a `Transcript`. Its signals are those of `MessageView`."""

    source_wanted = Signal(object)
    pointers_wanted = Signal(object)
    rejected = Signal(object, object)
    cite_wanted = Signal(object)
    called_wrong = Signal(object)
    search_stop_wanted = Signal()
    search_further_wanted = Signal(object)
    again_wanted = Signal(object)
    approval_answered = Signal(object)
    restore_wanted = Signal(object, bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self.setProperty("look", "conversation")
        self.setAccessibleName(tr("transcript.name"))
        self.transcript = Transcript()
        self.now_ms = 0
        self.judge = ""
        self._heights: list[int] = []
        self._tops: list[int] = [0]
        self._views: dict[int, MessageView] = {}
        self._following = True
        self._anchor = (0, 0)
        self._placing = False
        self._disordered = False
        self._flush = QTimer(self)
        self._flush.setSingleShot(True)
        self._flush.setInterval(FLUSH_MS)
        self._flush.timeout.connect(self._take_stream)
        self._relayout = QTimer(self)
        self._relayout.setSingleShot(True)
        self._relayout.setInterval(0)
        self._relayout.timeout.connect(self._measure_again)
        self.newest_button = TextButton(
            "transcript.newest", icon_name="arrow-down", kind="pill", parent=self
        )
        self.newest_button.clicked.connect(self.jump_to_newest)
        self.newest_button.hide()
        self.verticalScrollBar().setSingleStep(LINE_PIXELS * 2)
        self.verticalScrollBar().valueChanged.connect(self._scrolled)

    # -- content ------------------------------------------------------------------------------
    def show_transcript(self, transcript: Transcript, now_ms: int) -> None:
        """Shows another conversation, at its end."""
        for view in self._views.values():
            self._discard(view)
        self._views.clear()
        self.transcript = transcript
        self.now_ms = now_ms
        self._heights = [estimated_height(message) for message in transcript.messages]
        self._following = True
        self._place()

    def messages_added(self, *, follow: bool = False) -> None:
        """Takes messages that were appended to the transcript; goes to the end when told to or there already."""
        self._heights += [
            estimated_height(message) for message in self.transcript.messages[len(self._heights) :]
        ]
        self._following = self._following or follow
        for index, view in self._views.items():
            self._keep_room(index, view)
        self._measure_again()

    def _keep_room(self, index: int, view: MessageView) -> None:
        """Under the newest answer the line of a search has its place before there is one, so that it moves nothing."""
        newest = index == len(self.transcript.messages) - 1
        view.keeps_room = newest and view.message.role is Role.ASSISTANT

    def search_changed(self, index: int) -> None:
        """Takes news of the search of the past for an answer."""
        view = self._views.get(index)
        if view is not None:
            view.show_search()

    def notes_changed(self) -> None:
        """Takes what was noted under answers that are over."""
        for view in self._views.values():
            view.show_notes()

    def stream_changed(self) -> None:
        """Asks for the growing answer to be shown; merged to at most ~30 times a second."""
        if not self._flush.isActive():
            self._flush.start()

    def finish_stream(self) -> None:
        """Shows the final form of the last message at once."""
        self._flush.stop()
        self._disordered = True
        self._take_stream()

    def _take_stream(self) -> None:
        last = len(self.transcript.messages) - 1
        view = self._views.get(last)
        if view is None:
            if last >= 0:
                self._heights[last] = estimated_height(self.transcript.messages[last])
                self._place()
            return
        view.update_message()
        self._heights[last] = view.set_width(self._column()[1])
        self._place()

    def view_of(self, index: int) -> MessageView | None:
        """The widget of a message, when it is laid out."""
        return self._views.get(index)

    def visible_views(self) -> dict[int, MessageView]:
        """The widgets that exist now, by message index."""
        return dict(self._views)

    # -- geometry -----------------------------------------------------------------------------
    def _column(self) -> tuple[int, int]:
        room = self.viewport().width()
        width = max(200, min(COLUMN_PIXELS_MAX, room - 2 * MARGIN_PIXELS))
        return (room - width) // 2, width

    def _measure_again(self) -> None:
        _left, width = self._column()
        self._disordered = True
        for index, view in self._views.items():
            self._heights[index] = view.set_width(width)
        self._place()

    def _place(self) -> None:
        """Puts scroll bar and widgets where heights and the reader's place want them."""
        if self._placing:
            return
        self._placing = True
        for _attempt in range(PASSES_MAX):
            self._set_range()
            if not self._make_visible():
                break
        self._set_range()
        self._move_widgets()
        self._placing = False
        self._show_newest_button()

    def _set_range(self) -> None:
        self._tops = [0, *accumulate(self._heights)]
        total = self._tops[-1] + 2 * MARGIN_PIXELS
        bar = self.verticalScrollBar()
        page = self.viewport().height()
        bar.setPageStep(page)
        bar.setRange(0, max(0, total - page))
        if self._following:
            bar.setValue(bar.maximum())
        else:
            index, offset = self._anchor
            bar.setValue(self._tops[min(index, len(self._heights))] + offset)

    def _make_visible(self) -> bool:
        """Creates and measures the widgets of what is in view; True when a height turned out otherwise."""
        _left, width = self._column()
        top = self.verticalScrollBar().value()
        first, last = self._range(top, top + self.viewport().height())
        changed = False
        for index in range(first, last + 1):
            view = self._views.get(index)
            if view is None:
                view = self._create(index)
            height = view.set_width(width)
            changed |= height != self._heights[index]
            self._heights[index] = height
        self._recycle(top)
        return changed

    def _range(self, top: int, bottom: int) -> tuple[int, int]:
        last = len(self._heights) - 1
        first = max(0, bisect_right(self._tops, top - MARGIN_PIXELS) - 1)
        end = max(0, bisect_right(self._tops, bottom - MARGIN_PIXELS) - 1)
        return min(first, max(0, last)), min(end, last)

    def _create(self, index: int) -> MessageView:
        view = MessageView(self.transcript.messages[index], self.now_ms, self.viewport())
        self._keep_room(index, view)
        view.judge = self.judge
        view.height_changed.connect(self._relayout.start)
        view.source_wanted.connect(self.source_wanted)
        view.pointers_wanted.connect(self.pointers_wanted)
        view.rejected.connect(self.rejected)
        view.cite_wanted.connect(self.cite_wanted)
        view.called_wrong.connect(self.called_wrong)
        view.search_stop_wanted.connect(self.search_stop_wanted)
        view.search_further_wanted.connect(self.search_further_wanted)
        view.again_wanted.connect(self.again_wanted)
        view.approval_answered.connect(self.approval_answered)
        view.restore_wanted.connect(self.restore_wanted)
        view.installEventFilter(self)
        self._views[index] = view
        self._disordered = True
        view.show()
        return view

    def _recycle(self, top: int) -> None:
        first, last = self._range(
            top - KEPT_BEYOND_PIXELS, top + self.viewport().height() + KEPT_BEYOND_PIXELS
        )
        for index in [index for index in self._views if not first <= index <= last]:
            view = self._views[index]
            if not view.message.live and not view.holds_reader():
                del self._views[index]
                self._discard(view)

    def _discard(self, view: MessageView) -> None:
        view.removeEventFilter(self)
        view.hide()
        view.deleteLater()

    def _move_widgets(self) -> None:
        left, _width = self._column()
        top = self.verticalScrollBar().value()
        for index, view in self._views.items():
            view.move(left, MARGIN_PIXELS + self._tops[index] - top)
        if self._disordered:
            self._disordered = False
            views = (self._views[index] for index in sorted(self._views))
            for before, after in pairwise(found for view in views for found in view.focus_order()):
                QWidget.setTabOrder(before, after)

    # -- the reader's place -----------------------------------------------------------------------
    def _scrolled(self) -> None:
        if self._placing:
            return
        bar = self.verticalScrollBar()
        self._following = bar.value() >= bar.maximum() - NEAR_END_PIXELS
        index, _last = self._range(bar.value(), bar.value())
        self._anchor = (index, bar.value() - self._tops[index])
        self._place()

    @property
    def following(self) -> bool:
        """Whether the view stays at the newest text."""
        return self._following

    def jump_to_newest(self) -> None:
        """Goes to the end and follows it again."""
        self._following = True
        self._place()

    def scroll_to(self, index: int, offset: int = 0) -> None:
        """Brings a message into view."""
        self._following = False
        self._anchor = (index, offset)
        self._place()

    def show_match(self, index: int, words: str) -> None:
        """Brings a found place into view and selects it."""
        self.scroll_to(index)
        view = self._views.get(index)
        distance = view.select_words(words) if view else None
        if distance is not None and distance > self.viewport().height() // 2:
            self.scroll_to(index, distance - self.viewport().height() // 3)

    def _show_newest_button(self) -> None:
        button = self.newest_button
        button.setVisible(not self._following and bool(self._heights))
        button.adjustSize()
        button.move((self.width() - button.width()) // 2, self.height() - button.height() - 12)
        button.raise_()

    # -- events -------------------------------------------------------------------------------
    def retranslate(self) -> None:
        """Says the name again; words inside changed, so everything is measured again."""
        self.setAccessibleName(tr("transcript.name"))
        self._relayout.start()

    def restyle(self) -> None:
        """Colours and sizes changed, so everything is measured again."""
        self._relayout.start()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._measure_again()

    @override
    def scrollContentsBy(self, dx: int, dy: int) -> None:
        """Widgets are placed by `_place`; the area must not move them itself."""

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        QApplication.sendEvent(self.verticalScrollBar(), event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        bar = self.verticalScrollBar()
        match event.key():
            case Qt.Key.Key_Home:
                self.scroll_to(0)
            case Qt.Key.Key_End:
                self.jump_to_newest()
            case Qt.Key.Key_PageUp:
                bar.setValue(bar.value() - bar.pageStep())
            case Qt.Key.Key_PageDown:
                bar.setValue(bar.value() + bar.pageStep())
            case Qt.Key.Key_Up:
                bar.setValue(bar.value() - bar.singleStep())
            case Qt.Key.Key_Down:
                bar.setValue(bar.value() + bar.singleStep())
            case _:
                super().keyPressEvent(event)

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """Scrolls a message into view when the keyboard reaches it."""
        by_key = isinstance(event, QFocusEvent) and event.gotFocus() and event.reason() in _BY_KEY
        if by_key and isinstance(watched, MessageView):
            inside = watched.y() >= 0 and watched.geometry().bottom() <= self.viewport().height()
            index = next((at for at, view in self._views.items() if view is watched), None)
            if index is not None and not inside:
                self.scroll_to(index)
        return super().eventFilter(watched, event)
