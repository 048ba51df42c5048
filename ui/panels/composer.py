"""The input: a field that grows, chips for what is attached, a send button.

Safe for input methods: while a composition is open, Enter belongs to it. A paste above `PASTE_BYTES_MAX` never enters the field (Qt needs many
seconds for a long line); it is handed out as an attachment.
"""

from __future__ import annotations

import math
from pathlib import Path

from PySide6.QtCore import QMimeData, QSize, Qt, Signal
from PySide6.QtGui import (
    QDragEnterEvent,
    QDragMoveEvent,
    QDropEvent,
    QFocusEvent,
    QFontMetrics,
    QKeyEvent,
    QTextCursor,
)
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QTextEdit, QVBoxLayout, QWidget
from typing_extensions import override

from growbox_app.text import tr
from ui.icons import icon
from ui.panels.citing import citation_of
from ui.panels.controls import ICON_PIXELS, IconButton, QuietLabel
from ui.theme import theme
from ui.view_models import wording
from ui.view_models.enclosures import Citation, Enclosure

PASTE_BYTES_MAX = 8_192
HEIGHT_SHARE_MAX = 0.4
FIELD_PIXELS_MIN = 34
CHIP_NAME_PIXELS = 200


class InputField(QTextEdit):
    """The text field.

    Signals: `submitted()`, `recall_wanted()`, `large_text(str)`, `files_dropped(list[Path])`, `cited(Citation)` when a message was
    dropped, `focus_changed(bool)`.
    """

    submitted = Signal()
    recall_wanted = Signal()
    large_text = Signal(str)
    files_dropped = Signal(object)
    cited = Signal(object)
    focus_changed = Signal(bool)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversation_input")
        self.setAcceptRichText(False)
        self.setTabChangesFocus(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.document().setDocumentMargin(2)
        self.setProperty("look", "flat")

    def composing(self) -> bool:
        """Whether an input method is composing at the cursor."""
        layout = self.textCursor().block().layout()
        return bool(layout.preeditAreaText())

    def submit(self) -> None:
        """Sends what is in the field, as Enter does; an open composition is not cut off."""
        if not self.composing():
            self.submitted.emit()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        enter = event.key() in (Qt.Key.Key_Return, Qt.Key.Key_Enter)
        if self.composing():
            if enter:
                event.accept()
                return
            super().keyPressEvent(event)
            return
        if enter and not event.modifiers() & Qt.KeyboardModifier.ShiftModifier:
            self.submitted.emit()
            return
        if event.key() == Qt.Key.Key_Up and not self.toPlainText():
            self.recall_wanted.emit()
            return
        super().keyPressEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.focus_changed.emit(True)

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.focus_changed.emit(False)

    @override
    def insertFromMimeData(self, source: QMimeData) -> None:
        paths = local_files(source)
        if paths:
            self.files_dropped.emit(paths)
            return
        text = source.text()
        if len(text) > PASTE_BYTES_MAX or len(text.encode()) > PASTE_BYTES_MAX:
            self.large_text.emit(text)
            return
        self.textCursor().insertText(text)

    @override
    def canInsertFromMimeData(self, source: QMimeData) -> bool:
        return source.hasText() or source.hasUrls()

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        data = event.mimeData()
        if data.hasUrls() or data.hasText() or citation_of(data) is not None:
            event.acceptProposedAction()

    @override
    def dragMoveEvent(self, event: QDragMoveEvent) -> None:
        event.acceptProposedAction()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        citation = citation_of(event.mimeData())
        paths = local_files(event.mimeData())
        if citation is not None:
            self.cited.emit(citation)
            event.acceptProposedAction()
        elif paths:
            self.files_dropped.emit(paths)
            event.acceptProposedAction()
        else:
            super().dropEvent(event)


def local_files(source: QMimeData) -> list[Path]:
    """The files that are pasted or dropped."""
    return [Path(url.toLocalFile()) for url in source.urls() if url.isLocalFile()]


class Chip(QFrame):
    """An attachment or a cited message, before it is sent.

    Signals: `removed()`.
    """

    removed = Signal()

    def __init__(self, enclosure: Enclosure, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._enclosure = enclosure
        self.setProperty("look", "chip")
        row = QHBoxLayout(self)
        row.setContentsMargins(8, 2, 2, 2)
        row.setSpacing(4)
        self._picture = QuietLabel()
        self._words = QuietLabel(look="")
        self._remove = IconButton("x", "composer.remove")
        self._remove.clicked.connect(self.removed)
        row.addWidget(self._picture)
        row.addWidget(self._words)
        row.addWidget(self._remove)
        self.retranslate()
        self.restyle()

    def text(self) -> str:
        """What stands on it."""
        return self._words.text()

    def retranslate(self) -> None:
        """Says it again."""
        item = self._enclosure
        cites = isinstance(item, Citation)
        name = item.title if isinstance(item, Citation) else item.name
        side = Qt.TextElideMode.ElideRight if cites else Qt.TextElideMode.ElideMiddle
        shown = QFontMetrics(theme.font()).elidedText(name, side, CHIP_NAME_PIXELS)
        size = [] if isinstance(item, Citation) else [wording.size(item.size_bytes)]
        self._words.setText(" · ".join([shown, *size]))
        self.setToolTip(tr("composer.cites", title=name) if cites else name)
        self._remove.setAccessibleName(tr("composer.remove_named", name=name))

    def restyle(self) -> None:
        """Draws the icon again."""
        name = "quote" if isinstance(self._enclosure, Citation) else "paperclip"
        self._picture.setPixmap(icon(name, "muted").pixmap(ICON_PIXELS, ICON_PIXELS))


class ChipRow(QScrollArea):
    """The chips in one line that scrolls sideways, so that many attachments never widen the window.

    Signals: `removed(Enclosure)`.
    """

    removed = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setWidgetResizable(True)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.viewport().setAutoFillBackground(False)
        self._row = QHBoxLayout()
        self._row.setContentsMargins(0, 0, 0, 0)
        self._row.setSpacing(6)
        self._row.addStretch(1)
        inner = QWidget()
        inner.setLayout(self._row)
        self.setWidget(inner)
        inner.setAutoFillBackground(False)
        self.horizontalScrollBar().rangeChanged.connect(self._range_changed)
        self.hide()

    def show_chips(self, enclosures: list[Enclosure]) -> None:
        """Replaces the chips; the newest is in view."""
        while self._row.count() > 1:
            item = self._row.takeAt(0)
            widget = item.widget() if item is not None else None
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for at, enclosure in enumerate(enclosures):
            chip = Chip(enclosure)
            chip.removed.connect(lambda gone=enclosure: self.removed.emit(gone))
            self._row.insertWidget(at, chip)
        self.setVisible(bool(enclosures))
        self._fit()

    def _range_changed(self, _low: int, high: int) -> None:
        self.horizontalScrollBar().setValue(high)
        self._fit()

    def _fit(self) -> None:
        """As high as a chip, and the scroll bar where there is one."""
        bar = self.horizontalScrollBar()
        room = bar.sizeHint().height() if bar.maximum() > 0 else 0
        self.setFixedHeight(self._row.sizeHint().height() + room)


class Composer(QFrame):
    """Field, chips and send button.

    Signals: `submitted()`, `large_text(str)`, `files_dropped(list[Path])`, `recall_wanted()`, `changed()`.
    """

    submitted = Signal()
    large_text = Signal(str)
    files_dropped = Signal(object)
    recall_wanted = Signal()
    changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "composer")
        self.enclosures: list[Enclosure] = []
        self.field = InputField(self)
        self.send_button = IconButton("send-horizontal", "composer.send")
        self.send_button.name_shortcut("Enter")
        self.send_button.tint("accent")
        self.attach_button = IconButton("paperclip", "composer.attach")
        self.chips = ChipRow()
        self.chips.removed.connect(self._remove)
        self._hint = QuietLabel()
        self._hint.setWordWrap(True)
        self._hint.hide()
        self._hint_key = ""
        row = QHBoxLayout()
        row.setSpacing(4)
        row.addWidget(self.field, 1)
        row.addWidget(self.attach_button, 0, Qt.AlignmentFlag.AlignBottom)
        row.addWidget(self.send_button, 0, Qt.AlignmentFlag.AlignBottom)
        column = QVBoxLayout(self)
        column.setContentsMargins(10, 8, 8, 8)
        column.setSpacing(6)
        column.addWidget(self.chips)
        column.addLayout(row)
        column.addWidget(self._hint)
        self.field.submitted.connect(self.submitted)
        self.field.recall_wanted.connect(self.recall_wanted)
        self.field.large_text.connect(self.large_text)
        self.field.files_dropped.connect(self.files_dropped)
        self.field.cited.connect(self.cite)
        self.send_button.clicked.connect(self.field.submit)
        self.field.textChanged.connect(self._text_changed)
        self.field.focus_changed.connect(self._show_focus)
        self.restyle()
        self.retranslate()

    def text(self) -> str:
        """What was typed."""
        return self.field.toPlainText()

    def show_text(self, text: str) -> None:
        """Replaces what is in the field; the cursor goes to the end."""
        self.field.setPlainText(text)
        self.field.moveCursor(QTextCursor.MoveOperation.End)

    def insert_text(self, text: str) -> None:
        """Adds text where the cursor is; what was typed stays."""
        self.field.textCursor().insertText(text)

    def show_enclosures(self, enclosures: list[Enclosure]) -> None:
        """Replaces the chips."""
        self.enclosures = list(enclosures)
        self.chips.show_chips(self.enclosures)

    def cite(self, citation: Citation) -> None:
        """Adds a message to point at; one that is cited already is not cited twice."""
        cited = {item.node_id for item in self.enclosures if isinstance(item, Citation)}
        if citation.node_id not in cited:
            self.show_enclosures([*self.enclosures, citation])
            self.changed.emit()
        self.field.setFocus()

    def _remove(self, enclosure: Enclosure) -> None:
        self.show_enclosures([kept for kept in self.enclosures if kept is not enclosure])
        self.changed.emit()

    def hint(self, key: str) -> None:
        """Shows one sentence under the field until the next key; an empty key hides it."""
        self._hint_key = key
        self._hint.setText(tr(key) if key else "")
        self._hint.setVisible(bool(key))

    @property
    def hint_key(self) -> str:
        """Which hint is shown; empty when none is."""
        return self._hint_key

    @property
    def hint_text(self) -> str:
        """The sentence under the field."""
        return self._hint.text()

    def _text_changed(self) -> None:
        self.hint("")
        self.fit()
        self.changed.emit()

    def _show_focus(self, focused: bool) -> None:
        self.setProperty("active", focused)
        self.style().unpolish(self)
        self.style().polish(self)

    def fit(self) -> None:
        """Grows or shrinks the field with its text, up to the window's share."""
        window = self.window()
        most = int(window.height() * HEIGHT_SHARE_MAX)
        wanted = math.ceil(self.field.document().size().height()) + 6
        self.field.setFixedHeight(max(FIELD_PIXELS_MIN, min(wanted, most)))

    def restyle(self) -> None:
        """Takes the conversation's text size."""
        self.field.setFont(theme.font(theme.conversation_pixels))
        self.fit()

    def retranslate(self) -> None:
        """Says the placeholder again."""
        self.field.setPlaceholderText(tr("composer.placeholder"))
        self.field.setAccessibleName(tr("composer.name"))
        if self._hint_key:
            self.hint(self._hint_key)

    @override
    def sizeHint(self) -> QSize:
        return QSize(400, super().sizeHint().height())
