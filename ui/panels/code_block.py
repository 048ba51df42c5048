"""A code block in an answer: language label, copy, wrap, save as, highlighted text.

While the block is still being written its text is appended plain; colours come once, when it is closed,
from a worker thread.
"""

from __future__ import annotations

import math
from pathlib import Path

from PySide6.QtCore import Qt, QTimer
from PySide6.QtGui import QGuiApplication, QTextCharFormat, QTextCursor, QTextOption, QWheelEvent
from PySide6.QtWidgets import QFileDialog, QFrame, QHBoxLayout, QWidget
from typing_extensions import override

from growbox_app.files import write_atomically
from growbox_app.text import tr
from ui.panels.controls import IconButton, QuietLabel
from ui.panels.highlighting import Highlighter
from ui.panels.prose import ReadOnlyText
from ui.theme import theme
from ui.view_models.display import broken_lines
from ui.view_models.highlight import Piece, file_extension, full_name
from ui.view_models.markdown import Code

HEADER_PIXELS = 30
PADDING = 12
SCROLLBAR_PIXELS = 10
COPIED_MS = 2_000


class CodeText(ReadOnlyText):
    """The text of a code block; scrolls sideways unless wrapped."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAsNeeded)
        self.wrap(wrapped=False)
        self.setAccessibleName(tr("code.text"))

    def wrap(self, *, wrapped: bool) -> None:
        """Breaks long lines or lets them run out to the side."""
        mode = (
            QTextOption.WrapMode.WrapAtWordBoundaryOrAnywhere
            if wrapped
            else QTextOption.WrapMode.NoWrap
        )
        self.setWordWrapMode(mode)
        self.wrapped = wrapped

    @override
    def height_for(self, width: int) -> int:
        if self.wrapped:
            return super().height_for(width)
        document = self.document()
        wide = document.idealWidth() > width
        return math.ceil(document.size().height()) + (SCROLLBAR_PIXELS if wide else 0)

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        sideways = abs(event.angleDelta().x()) > abs(event.angleDelta().y())
        if sideways:
            super(ReadOnlyText, self).wheelEvent(event)
        else:
            event.ignore()


class CodeBlock(QFrame):
    """Header with buttons over the text. The owner sets the width and asks `height_for`."""

    def __init__(self, block: Code, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "code")
        self._block = block
        self._shown = ""
        self._highlighter = Highlighter(self._fill, self)
        self._header = QWidget(self)
        self._language = QuietLabel(full_name(block.language) or tr("code.plain"))
        self.copy_button = IconButton("copy", "code.copy")
        self.wrap_button = IconButton("wrap-text", "code.wrap")
        self.wrap_button.setCheckable(True)
        self.save_button = IconButton("save", "code.save")
        row = QHBoxLayout(self._header)
        row.setContentsMargins(PADDING, 0, 4, 0)
        row.setSpacing(2)
        row.addWidget(self._language, 1)
        for button in (self.wrap_button, self.save_button, self.copy_button):
            row.addWidget(button)
        self.text = CodeText(self)
        self._copied = QTimer(self)
        self._copied.setSingleShot(True)
        self._copied.setInterval(COPIED_MS)
        self._copied.timeout.connect(self._offer_copy)
        self.copy_button.clicked.connect(self._copy)
        self.wrap_button.toggled.connect(self._wrap)
        self.save_button.clicked.connect(self._ask_where)
        self.show_block(block)

    @property
    def block(self) -> Code:
        """The code as it stands."""
        return self._block

    def show_block(self, block: Code) -> None:
        """Shows the code: appended plain while open, coloured once when closed."""
        shown = broken_lines(block.text)
        grown = not block.closed and bool(self._shown) and shown.startswith(self._shown)
        if grown:
            self._append(shown[len(self._shown) :])
        elif shown != self._shown or block.closed != self._block.closed:
            self._highlighter.forget()
            self._fill((Piece(shown),))
        if block.closed and block.language:
            self._highlighter.colour(shown, block.language)
        self._shown = shown
        self._block = block
        self._language.setText(full_name(block.language) or tr("code.plain"))

    def _append(self, text: str) -> None:
        cursor = QTextCursor(self.text.document())
        cursor.movePosition(QTextCursor.MoveOperation.End)
        cursor.insertText(text, self._format(""))

    def _fill(self, pieces: tuple[Piece, ...]) -> None:
        selection = self.text.textCursor()
        anchor, position = selection.anchor(), selection.position()
        cursor = QTextCursor(self.text.document())
        cursor.beginEditBlock()
        cursor.select(QTextCursor.SelectionType.Document)
        cursor.removeSelectedText()
        for piece in pieces:
            cursor.insertText(piece.text, self._format(piece.token))
        cursor.endEditBlock()
        last = self.text.document().characterCount() - 1
        selection.setPosition(min(anchor, last))
        selection.setPosition(min(position, last), QTextCursor.MoveMode.KeepAnchor)
        self.text.setTextCursor(selection)

    def _format(self, token: str) -> QTextCharFormat:
        form = QTextCharFormat()
        form.setFont(theme.code_font())
        form.setForeground(theme.color(token or "text"))
        return form

    def height_for(self, width: int) -> int:
        """The height of header and text at a width."""
        return HEADER_PIXELS + self.text.height_for(width - 2 * PADDING) + PADDING

    def place(self, width: int, height: int) -> None:
        """Lays out the parts."""
        self._header.setGeometry(1, 1, width - 2, HEADER_PIXELS)
        text_height = height - HEADER_PIXELS - PADDING
        self.text.setGeometry(PADDING, HEADER_PIXELS, width - 2 * PADDING, text_height)

    def restyle(self) -> None:
        """Colours the text again."""
        self._shown = ""
        self._fill((Piece(""),))
        self.show_block(self._block)

    def retranslate(self) -> None:
        """Says the label again."""
        self._language.setText(full_name(self._block.language) or tr("code.plain"))
        self.text.setAccessibleName(tr("code.text"))

    def _copy(self) -> None:
        QGuiApplication.clipboard().setText(self._block.text)
        self.copy_button.show_as("check", "code.copied")
        self.copy_button.tint("accent")
        self._copied.start()

    def _offer_copy(self) -> None:
        self.copy_button.show_as("copy", "code.copy")
        self.copy_button.tint("muted")

    def _wrap(self, wrapped: bool) -> None:
        self.text.wrap(wrapped=wrapped)
        self.updateGeometry()

    def _ask_where(self) -> None:
        dialog = QFileDialog(self, tr("code.save"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.selectFile(f"code.{file_extension(self._block.language)}")
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda name: self.save_to(Path(name)))
        dialog.open()

    def save_to(self, path: Path) -> None:
        """Writes the code to a file; the label says when that fails."""
        try:
            write_atomically(path, (self._block.text + "\n").encode())
        except OSError as error:
            self._language.setText(tr("code.save_failed", reason=error.strerror or str(error)))
