"""One message of a conversation: header with actions, blocks, notes, the quiet lines under an answer, the recall trace.

Lays itself out by hand (`set_width` returns the height): a conversation has many, and nested Qt layouts would recompute all of them on each
streamed word.
"""

from __future__ import annotations

from itertools import zip_longest
from typing import TypeAlias

from PySide6.QtCore import QEvent, QObject, QPointF, Qt, Signal
from PySide6.QtGui import (
    QDrag,
    QEnterEvent,
    QFocusEvent,
    QGuiApplication,
    QMouseEvent,
    QPainter,
    QPaintEvent,
)
from PySide6.QtWidgets import QApplication, QBoxLayout, QHBoxLayout, QWidget
from typing_extensions import override

from growbox_app.api import DeepSearchState
from growbox_app.text import tr
from memory.values import NodeId, Role
from ui.panels.approval_card import ApprovalCard
from ui.panels.citing import carried
from ui.panels.code_block import CodeBlock
from ui.panels.controls import IconButton, QuietLabel, TextButton
from ui.panels.notes import NoteView, note_view
from ui.panels.prose import ProseView
from ui.panels.recall_trace import RecallTrace
from ui.panels.search_notice import NOTICE_PIXELS, SearchNotice
from ui.panels.tool_card import ToolCard
from ui.theme import theme
from ui.view_models import wording
from ui.view_models.display import one_line
from ui.view_models.enclosures import Citation
from ui.view_models.markdown import Block, Code, Paragraph
from ui.view_models.transcript import Message, Note, first_checkpoint

Segment: TypeAlias = ProseView | CodeBlock

PADDING = 14
HEADER_PIXELS = 24
GAP = 8
CITATION_CHARACTERS = 60


class MessageView(QWidget):
    """Shows one `Message`.

    `keeps_room`: the place of the search's line stays free under it while it says nothing. `judge`: who reads the past, and how
    well, for the trace.

    Signals: `height_changed()`, `source_wanted(NodeId)`, `pointers_wanted(NodeId)`, `rejected(NodeId answer, NodeId memory)`,
    `cite_wanted(Citation)`, `called_wrong(NodeId answer)`, and of the search's line `search_stop_wanted()`,
    `search_further_wanted(NodeId answer)`, `again_wanted(NodeId answer)`; of its tools `approval_answered(ApprovalAnswer)`,
    `restore_wanted(str checkpoint, bool force)`.
    """

    height_changed = Signal()
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

    def __init__(self, message: Message, now_ms: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.message = message
        self._now_ms = now_ms
        self._segments: list[Segment] = []
        self._streamed = 0
        self._tail_code: CodeBlock | None = None
        self._notes: list[NoteView] = []
        self._noted: list[Note] = []
        self._trace: RecallTrace | None = None
        self._cut = False
        self._pressed: QPointF | None = None
        self.keeps_room = False
        self.judge = ""
        self.setFocusPolicy(Qt.FocusPolicy.TabFocus)
        self._speaker = QuietLabel(look="strong", parent=self)
        self._time = QuietLabel(parent=self)
        self._make_actions()
        self._make_notice()
        self._footer = QWidget(self)
        self.memories_button = TextButton("answer.memories", icon_name="leaf", kind="quiet")
        self.memories_button.setCheckable(True)
        self.memories_button.toggled.connect(self._toggle_trace)
        self._figures = QuietLabel()
        self._footer_row = row = QHBoxLayout(self._footer)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        row.addWidget(self.memories_button, 0, Qt.AlignmentFlag.AlignLeft)
        row.addWidget(self._figures, 1)
        self.undo_button = TextButton(
            "agent.undo_turn", icon_name="rotate-ccw", kind="quiet", parent=self
        )
        self.undo_button.clicked.connect(self._undo)
        self._more = TextButton("message.open_whole", kind="quiet", parent=self)
        self._more.clicked.connect(lambda: self.source_wanted.emit(self.message.node_id))
        self.update_message()

    def _make_actions(self) -> None:
        self.wrong_button = IconButton("search-x", "message.wrong")
        self.cite_button = IconButton("quote", "message.cite")
        self.copy_button = IconButton("copy", "message.copy")
        self.wrong_button.clicked.connect(self._call_wrong)
        self.cite_button.clicked.connect(lambda: self.cite_wanted.emit(self.citation()))
        self.copy_button.clicked.connect(self._copy)
        self._actions = QWidget(self)
        row = QHBoxLayout(self._actions)
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(0)
        for button in (self.wrong_button, self.cite_button, self.copy_button):
            button.installEventFilter(self)
            row.addWidget(button)
        self._actions.hide()

    def _make_notice(self) -> None:
        notice = self.notice = SearchNotice(self)
        answer_id = self.message.node_id
        notice.hide()
        notice.stop_wanted.connect(self.search_stop_wanted)
        notice.further_wanted.connect(lambda: self.search_further_wanted.emit(answer_id))
        notice.again_wanted.connect(lambda: self.again_wanted.emit(answer_id))
        notice.source_wanted.connect(self.source_wanted)

    # -- content ------------------------------------------------------------------------------
    def update_message(self) -> None:
        """Takes what changed in the message."""
        if self.message.stream is None:
            self._show_whole()
        else:
            self._show_stream()
        self.show_notes()
        self.retranslate()
        self.show_search()

    def show_notes(self) -> None:
        """Takes new notes, and what has become of those that were not over."""
        for at, note in enumerate(self.message.notes):
            if at < len(self._noted) and self._noted[at] is note:
                continue
            view = self._note_view(note)
            if at < len(self._notes):
                self._replace_note(at, view)
            else:
                self._notes.append(view)
            view.move(PADDING, self.height())  # out of sight until it has its place
            view.show()
            self.height_changed.emit()
        self._noted = list(self.message.notes)
        undone = self.message.undone
        for view, below in zip_longest(self._notes, self._notes[1:]):
            if not isinstance(view, ApprovalCard):
                view.show_undone(undone)
                view.show_again(self.message.offers_again)
            if isinstance(view, ToolCard):
                view.show_waiting(isinstance(below, ApprovalCard))
        checkpoint = first_checkpoint(self._noted)
        self.undo_button.setVisible(bool(checkpoint) and not self.message.live)
        self.undo_button.setEnabled(checkpoint not in undone)

    def _undo(self) -> None:
        """With its first call, all that came after it."""
        self.undo_button.setEnabled(False)
        self.restore_wanted.emit(first_checkpoint(self._noted), False)

    def _note_view(self, note: Note) -> NoteView:
        view = note_view(note, self)
        if isinstance(view, ApprovalCard):
            view.answered.connect(self.approval_answered)
        else:
            view.restore_wanted.connect(self.restore_wanted)
            view.again_wanted.connect(self._ask_again)
        return view

    def _ask_again(self) -> None:
        """The focus of the button, which goes, stays in the message."""
        self.setFocus()
        self.again_wanted.emit(self.message.node_id)

    def _replace_note(self, at: int, view: NoteView) -> None:
        """The focus of what goes stays in the message."""
        old, self._notes[at] = self._notes[at], view
        focused = QApplication.focusWidget()
        if focused is not None and (focused is old or old.isAncestorOf(focused)):
            self.setFocus()
        old.hide()
        old.deleteLater()

    def show_search(self) -> None:
        """Takes news of the search of the past. Nothing above its line moves, and nothing below where room was kept."""
        search = self.message.search
        told = self.message.search_line
        if search is not None and told:
            self.notice.show_search(search, self._now_ms)
        if search is not None and self._trace is not None:
            self._trace.show_search(search)
        self.wrong_button.setEnabled(search is None or search.state is not DeepSearchState.RUNNING)
        if told is self.notice.isHidden():
            self.notice.setVisible(told)
            if not self.keeps_room:
                self.height_changed.emit()

    def _show_stream(self) -> None:
        stream = self.message.stream
        assert stream is not None
        for block in stream.finished[self._streamed :]:
            self._add(block)
        self._streamed = len(stream.finished)
        tail = stream.tail
        if isinstance(tail, Code):
            self._set_prose_tail("")
            if self._tail_code is None:
                self._tail_code = CodeBlock(tail, self)
                self._tail_code.show()
                self._segments.append(self._tail_code)
            self._tail_code.show_block(tail)
        else:
            self._set_prose_tail(tail.spans[0].text if isinstance(tail, Paragraph) else "")

    def _set_prose_tail(self, text: str) -> None:
        last = self._segments[-1] if self._segments else None
        if isinstance(last, ProseView):
            last.set_tail(text)
        elif text:
            self._new_prose().set_tail(text)

    def _new_prose(self) -> ProseView:
        view = ProseView(self)
        view.show()
        self._segments.append(view)
        return view

    def _add(self, block: Block) -> None:
        if isinstance(block, Code):
            self._add_code(block)
            return
        last = self._segments[-1] if self._segments else None
        view = last if isinstance(last, ProseView) else self._new_prose()
        view.add(block)

    def _add_code(self, block: Code) -> None:
        if self._tail_code is not None:
            self._tail_code.show_block(block)
            self._tail_code = None
            return
        self._set_prose_tail("")
        view = CodeBlock(block, self)
        view.show()
        self._segments.append(view)

    def _shown_blocks(self) -> tuple[Block, ...]:
        shown: list[Block] = []
        for segment in self._segments:
            shown.extend(segment.blocks if isinstance(segment, ProseView) else [segment.block])
        return tuple(shown)

    def _show_whole(self) -> None:
        """The final layout: keeps what streaming already laid out when it is right."""
        blocks, self._cut = self.message.blocks()
        self._set_prose_tail("")
        if self._tail_code is not None and self._segments[-1] is self._tail_code:
            self._drop(self._segments.pop())
        self._tail_code = None
        shown = self._shown_blocks()
        if blocks[: len(shown)] != shown:
            while self._segments:
                self._drop(self._segments.pop())
            shown = ()
        for block in blocks[len(shown) :]:
            self._add(block)

    def _drop(self, segment: Segment) -> None:
        segment.hide()
        segment.deleteLater()

    # -- words --------------------------------------------------------------------------------
    def retranslate(self) -> None:
        """Says header and footer again."""
        message = self.message
        self._speaker.setText(wording.speaker(message.role))
        when = wording.clock_time(message.created_at_ms, self._now_ms)
        self._time.setText(f"· {when}")
        self.setAccessibleName(f"{self._speaker.text()}, {when}")
        self.setAccessibleDescription(message.text[:500])
        later = bool(message.search and message.search.memories)
        line = wording.memories_line(message.memories)
        self.memories_button.setText(line if message.memories else tr("search.found_later"))
        self.memories_button.setAccessibleName(self.memories_button.text())
        self.memories_button.setVisible(bool(message.memories) or later)
        self.cite_button.setVisible(not message.live and bool(message.text.strip()))
        self.wrong_button.setVisible(not message.live and message.role is Role.ASSISTANT)
        figures = [wording.stats_line(message.stats)] if not message.live else []
        ending = "" if message.live else wording.ending(message.status)
        names = [
            tr("message.attached", name=item.name, size=wording.size(item.size_bytes))
            for item in message.attachments
        ]
        self._figures.setText(" · ".join(part for part in (*names, ending, *figures) if part))
        self._figures.setToolTip("" if message.live else wording.stats_figures(message.stats))
        self._footer.setVisible(bool(self._figures.text()) or bool(message.memories) or later)
        self._more.setVisible(self._cut)

    def restyle(self) -> None:
        """Repaints the card of a question."""
        self.update()

    # -- layout -------------------------------------------------------------------------------
    def set_width(self, width: int) -> int:
        """Lays everything out at a width and returns the height."""
        inner = width - 2 * PADDING
        self._speaker.adjustSize()
        self._time.adjustSize()
        top = 10
        self._speaker.move(PADDING, top + (HEADER_PIXELS - self._speaker.height()) // 2)
        time_left = PADDING + self._speaker.width() + 6
        self._time.move(time_left, top + (HEADER_PIXELS - self._time.height()) // 2)
        actions = self._actions.sizeHint().width()
        self._actions.setGeometry(width - PADDING - actions, top, actions, HEADER_PIXELS)
        top += HEADER_PIXELS + 4
        for segment in self._segments:
            top = self._place_segment(segment, top, inner)
        for line in self._notes:
            top = self._place(line, top, inner)
        self._fold_footer(inner)
        for widget in (self._more, self.undo_button, self._footer, self._trace):
            if widget is not None and not widget.isHidden():
                top = self._place(widget, top, inner)
        if self.keeps_room or not self.notice.isHidden():
            self.notice.setGeometry(PADDING, top, inner, NOTICE_PIXELS)
            top += NOTICE_PIXELS
        height = top + 6
        self.resize(width, height)
        return height

    def _place_segment(self, segment: Segment, top: int, width: int) -> int:
        height = segment.height_for(width)
        segment.setGeometry(PADDING, top, width, height)
        if isinstance(segment, CodeBlock):
            segment.place(width, height)
            return top + height + GAP
        return top + height + 2

    def _fold_footer(self, width: int) -> None:
        """Puts the figures under the memories where both do not fit in one line."""
        wanted = self.memories_button.sizeHint().width() + self._figures.sizeHint().width() + 16
        narrow = wanted > width and not self.memories_button.isHidden()
        direction = QBoxLayout.Direction.TopToBottom if narrow else QBoxLayout.Direction.LeftToRight
        self._footer_row.setDirection(direction)
        self._figures.setIndent(8)

    def _place(self, widget: QWidget, top: int, width: int) -> int:
        layout = widget.layout()
        if layout is not None and layout.hasHeightForWidth():
            height = layout.totalHeightForWidth(width)
        else:
            height = widget.sizeHint().height()
        widget.setGeometry(PADDING, top, width, height)
        return top + height + 4

    # -- what the reader does ---------------------------------------------------------------------
    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self.message.text)

    def _toggle_trace(self, shown: bool) -> None:
        if self._trace is not None:
            self._trace.hide()
            self._trace.deleteLater()
            self._trace = None
        if shown:
            message = self.message
            self._trace = RecallTrace(
                message.memories,
                message.stats,
                self._now_ms,
                search=message.search,
                judge=self.judge,
                parent=self,
            )
            self._trace.source_wanted.connect(self.source_wanted)
            self._trace.pointers_wanted.connect(self.pointers_wanted)
            self._trace.rejected.connect(self._reject)
            self._trace.show()
        self.height_changed.emit()

    @property
    def trace(self) -> RecallTrace | None:
        """The open recall trace."""
        return self._trace

    def citation(self) -> Citation:
        """This message, to be pointed at."""
        title = one_line(self.message.text, CITATION_CHARACTERS) or self._speaker.text()
        return Citation(node_id=self.message.node_id, title=title)

    def _call_wrong(self) -> None:
        self.wrong_button.setEnabled(False)
        self.called_wrong.emit(self.message.node_id)

    def _reject(self, node_id: NodeId) -> None:
        self.rejected.emit(self.message.node_id, node_id)

    def focus_order(self) -> list[QWidget]:
        """What the Tab key reaches in this message, in reading order."""
        trace = [self._trace] if self._trace is not None else []
        parts: list[QWidget] = [self._actions, *self._segments, *self._notes]
        parts += [self._more, self.undo_button, self._footer, *trace, self.notice]
        inner = [found for part in parts for found in (part, *part.findChildren(QWidget))]
        wanted = Qt.FocusPolicy.TabFocus
        return [self, *(found for found in inner if found.focusPolicy() & wanted)]

    def holds_reader(self) -> bool:
        """Whether focus or a selection is inside, so that the view must not be recycled."""
        focus = QGuiApplication.focusObject()
        if isinstance(focus, QWidget) and (focus is self or self.isAncestorOf(focus)):
            return True
        texts = [
            segment if isinstance(segment, ProseView) else segment.text
            for segment in self._segments
        ]
        return self._trace is not None or any(text.textCursor().hasSelection() for text in texts)

    def select_words(self, words: str) -> int | None:
        """Selects the first place of `words`; returns its distance from the top, None when it is not in a text view."""
        for segment in self._segments:
            text = segment if isinstance(segment, ProseView) else segment.text
            found = text.document().find(words)
            if not found.isNull():
                text.setTextCursor(found)
                return segment.y() + text.cursorRect().top()
        return None

    # -- events -------------------------------------------------------------------------------
    @override
    def event(self, event: QEvent) -> bool:
        if event.type() == QEvent.Type.LayoutRequest:
            self.height_changed.emit()
        return super().event(event)

    def _show_actions(self) -> None:
        """Shows what can be done with the message while the mouse or the focus is on it."""
        focused = QApplication.focusWidget()
        inside = focused is self or (focused is not None and self._actions.isAncestorOf(focused))
        self._actions.setVisible(inside or self.underMouse())

    @override
    def eventFilter(self, watched: QObject, event: QEvent) -> bool:
        """The focus has left a button."""
        if event.type() == QEvent.Type.FocusOut:
            self._show_actions()
        return super().eventFilter(watched, event)

    @override
    def enterEvent(self, event: QEnterEvent) -> None:
        self._actions.show()
        super().enterEvent(event)

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self._show_actions()
        super().leaveEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        self._actions.show()
        self.update()
        super().focusInEvent(event)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        self._show_actions()
        self.update()
        super().focusOutEvent(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        """A message can be dragged to the input by its header; elsewhere the mouse selects text."""
        citable = self.cite_button.isVisibleTo(self._actions)
        in_header = citable and event.position().y() <= HEADER_PIXELS + PADDING
        self._pressed = event.position() if in_header else None
        super().mousePressEvent(event)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        pressed = self._pressed
        if pressed is None or not event.buttons() & Qt.MouseButton.LeftButton:
            return
        way = event.position() - pressed
        if way.manhattanLength() >= QApplication.startDragDistance():
            self._pressed = None
            drag = QDrag(self)
            drag.setMimeData(carried(self.citation()))
            drag.exec(Qt.DropAction.CopyAction)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = self.rect().adjusted(1, 2, -1, -2)
        if self.message.role is Role.USER:
            painter.setPen(Qt.PenStyle.NoPen)
            painter.setBrush(theme.color("surface_alt"))
            painter.drawRoundedRect(box, 8, 8)
        if self.hasFocus():
            painter.setPen(theme.color("accent"))
            painter.setBrush(Qt.BrushStyle.NoBrush)
            painter.drawRoundedRect(box, 8, 8)
