"""Shows Markdown blocks as flowing text: `DocumentWriter` builds a QTextDocument by cursor, `ProseView` shows it at full height.

The document is built from values, never from HTML, so nothing in an answer can be interpreted; `loadResource` answers nothing, so
no image or file is ever fetched. Links open outside, and only web and mail ones.
"""

from __future__ import annotations

import math

from PySide6.QtCore import QPointF, QRectF, Qt, QUrl
from PySide6.QtGui import (
    QAction,
    QContextMenuEvent,
    QDesktopServices,
    QFont,
    QGuiApplication,
    QKeySequence,
    QPainter,
    QPaintEvent,
    QTextBlockFormat,
    QTextCharFormat,
    QTextCursor,
    QTextDocument,
    QTextFormat,
    QTextLength,
    QTextOption,
    QTextTableFormat,
    QWheelEvent,
)
from PySide6.QtWidgets import QFrame, QMenu, QSizePolicy, QTextBrowser, QWidget
from typing_extensions import override

from growbox_app.text import tr
from ui.theme import theme
from ui.view_models.display import broken_lines
from ui.view_models.markdown import Block, Code, Heading, Paragraph, Rule, Span, Table

INDENT = 22
QUOTE_INDENT = 16
LINE_SEPARATOR = "\u2028"
_QUOTE_PROPERTY = QTextFormat.Property.UserProperty + 1
_HEADING_SCALE = {1: 1.35, 2: 1.2, 3: 1.08}
_OPENED_SCHEMES = ("http", "https", "mailto")


class DocumentWriter:
    """Appends blocks to a document in the colours and sizes of the theme."""

    def __init__(self, document: QTextDocument) -> None:
        self._document = document
        self._cursor = QTextCursor(document)

    def write(self, block: Block) -> None:
        """Appends one block."""
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        match block:
            case Paragraph():
                self._paragraph(block)
            case Heading():
                self._heading(block)
            case Code():
                self._plain(block.text)
            case Table():
                self._table(block)
            case Rule():
                self._rule()

    def _start(self, form: QTextBlockFormat) -> None:
        """Opens a block, reusing an empty one (the first of a document, the one after a table)."""
        if self._cursor.block().length() > 1:
            self._cursor.insertBlock(form, QTextCharFormat())
        else:
            self._cursor.setBlockFormat(form)

    def _paragraph(self, block: Paragraph) -> None:
        form = _block_format(bottom=4 if block.depth else 8)
        left = block.depth * INDENT + block.quote * QUOTE_INDENT
        form.setLeftMargin(left)
        if block.quote:
            form.setProperty(_QUOTE_PROPERTY, block.quote)
        if block.marker:
            form.setTextIndent(-INDENT)
            form.setTabPositions([_tab(INDENT)])
        self._start(form)
        base = _text_format("muted" if block.quote else "text")
        if block.marker:
            self._cursor.insertText(f"{block.marker}\t", base)
        self._spans(block.spans, base)

    def _heading(self, block: Heading) -> None:
        form = _block_format(top=8, bottom=6)
        form.setHeadingLevel(block.level)
        self._start(form)
        base = _text_format("text")
        font = theme.font(
            round(theme.conversation_pixels * _HEADING_SCALE.get(block.level, 1.0)), bold=True
        )
        base.setFont(font)
        self._spans(block.spans, base)

    def _plain(self, text: str) -> None:
        self._start(_block_format(bottom=8))
        self._cursor.insertText(text.replace("\n", LINE_SEPARATOR), _text_format("text"))

    def _spans(self, spans: tuple[Span, ...], base: QTextCharFormat) -> None:
        for span in spans:
            text = broken_lines(span.text).replace("\n", LINE_SEPARATOR)
            self._cursor.insertText(text, _span_format(span, base))

    def _table(self, table: Table) -> None:
        self._start(_block_format())
        form = QTextTableFormat()
        form.setBorder(1)
        form.setBorderCollapse(True)
        form.setBorderBrush(theme.color("line"))
        form.setBorderStyle(QTextTableFormat.BorderStyle.BorderStyle_Solid)
        form.setCellPadding(6)
        form.setCellSpacing(0)
        form.setTopMargin(2)
        form.setBottomMargin(8)
        columns = max(1, len(table.head))
        form.setColumnWidthConstraints([QTextLength()] * columns)
        grid = self._cursor.insertTable(1 + len(table.rows), columns, form)
        for row, cells in enumerate((table.head, *table.rows)):
            for column, spans in enumerate(cells[:columns]):
                self._cell(
                    grid.cellAt(row, column).firstCursorPosition(),
                    spans,
                    table.aligned[column],
                    head=row == 0,
                )
        self._cursor.movePosition(QTextCursor.MoveOperation.End)
        closing = QTextBlockFormat()
        closing.setLineHeight(1, QTextBlockFormat.LineHeightTypes.FixedHeight.value)
        self._cursor.setBlockFormat(closing)

    def _cell(
        self, cursor: QTextCursor, spans: tuple[Span, ...], aligned: str, *, head: bool
    ) -> None:
        form = QTextBlockFormat()
        sides = {"right": Qt.AlignmentFlag.AlignRight, "center": Qt.AlignmentFlag.AlignHCenter}
        form.setAlignment(sides.get(aligned, Qt.AlignmentFlag.AlignLeft))
        cursor.setBlockFormat(form)
        base = _text_format("text")
        if head:
            base.setFontWeight(QFont.Weight.DemiBold)
        for span in spans:
            cursor.insertText(span.text.replace("\n", LINE_SEPARATOR), _span_format(span, base))

    def _rule(self) -> None:
        form = _block_format(top=4, bottom=8)
        form.setProperty(
            QTextFormat.Property.BlockTrailingHorizontalRulerWidth,
            QTextLength(QTextLength.Type.PercentageLength, 100),
        )
        self._start(form)
        self._cursor.insertBlock(_block_format(), QTextCharFormat())


def _tab(position: int) -> QTextOption.Tab:
    return QTextOption.Tab(position, QTextOption.TabType.LeftTab)


def _block_format(*, top: int = 0, bottom: int = 0) -> QTextBlockFormat:
    form = QTextBlockFormat()
    form.setTopMargin(top)
    form.setBottomMargin(bottom)
    form.setLineHeight(135, QTextBlockFormat.LineHeightTypes.ProportionalHeight.value)
    return form


def _text_format(token: str) -> QTextCharFormat:
    form = QTextCharFormat()
    form.setFont(theme.font(theme.conversation_pixels))
    form.setForeground(theme.color(token))
    return form


def _span_format(span: Span, base: QTextCharFormat) -> QTextCharFormat:
    form = QTextCharFormat(base)
    if span.code:
        form.setFont(theme.code_font(theme.conversation_pixels - 2))
        form.setBackground(theme.color("hover"))
    if span.bold:
        form.setFontWeight(QFont.Weight.DemiBold)
    if span.italic:
        form.setFontItalic(True)
    if span.struck:
        form.setFontStrikeOut(True)
    if span.link:
        form.setAnchor(True)
        form.setAnchorHref(span.link)
        form.setForeground(theme.color("link"))
        form.setFontUnderline(True)
    return form


def open_outside(url: QUrl) -> None:
    """Opens a web or mail address in the user's own program; other schemes are refused."""
    if url.scheme().lower() in _OPENED_SCHEMES:
        QDesktopServices.openUrl(url)


class ReadOnlyText(QTextBrowser):
    """Selectable text as high as its content, without resources, with the wheel left to the conversation."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setOpenLinks(False)
        self.setVerticalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setTextInteractionFlags(
            Qt.TextInteractionFlag.TextBrowserInteraction
            | Qt.TextInteractionFlag.TextSelectableByKeyboard
        )
        self.setProperty("look", "flat")
        self.document().setDocumentMargin(0)
        self.document().setUndoRedoEnabled(False)
        self.anchorClicked.connect(open_outside)

    @override
    def loadResource(self, kind: int, name: QUrl | str) -> object:
        return None

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        event.ignore()

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        menu = QMenu(self)
        menu.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        copy = QAction(tr("edit.copy"), menu)
        copy.setShortcut(QKeySequence.StandardKey.Copy)
        copy.setEnabled(self.textCursor().hasSelection())
        copy.triggered.connect(self.copy)
        link = self.anchorAt(event.pos())
        everything = QAction(tr("edit.select_all"), menu)
        everything.triggered.connect(self.selectAll)
        menu.addActions([copy, everything])
        if link:
            address = QAction(tr("edit.copy_link"), menu)
            address.triggered.connect(lambda: QGuiApplication.clipboard().setText(link))
            menu.addAction(address)
        menu.popup(event.globalPos())

    def height_for(self, width: int) -> int:
        """The height of the whole text at a width."""
        document = self.document()
        if document.textWidth() != width:
            document.setTextWidth(width)
        return math.ceil(document.size().height())


class ProseView(ReadOnlyText):
    """A run of prose blocks, plus the unfinished tail of a streaming answer as plain text."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.blocks: list[Block] = []
        self._tail = ""
        self._tail_start = 0
        self.setAccessibleName(tr("message.text"))

    def add(self, *blocks: Block) -> None:
        """Adds finished blocks after the last; the tail is dropped."""
        selection = self._selection()
        self._drop_tail()
        writer = DocumentWriter(self.document())
        for block in blocks:
            writer.write(block)
        self.blocks.extend(blocks)
        self._select(selection)

    def set_tail(self, text: str) -> None:
        """Shows the unfinished text; only what is new is laid out."""
        if text == self._tail:
            return
        selection = self._selection()
        if self._tail and text.startswith(self._tail):
            self._insert_at_end(text[len(self._tail) :])
        else:
            self._drop_tail()
            if text:
                self._open_tail(text)
        self._tail = text
        self._select(selection)

    def _open_tail(self, text: str) -> None:
        end = QTextCursor(self.document())
        end.movePosition(QTextCursor.MoveOperation.End)
        self._tail_start = end.position()
        form = _block_format(bottom=8)
        if end.block().length() > 1:
            end.insertBlock(form, QTextCharFormat())
        else:
            end.setBlockFormat(form)
        self._insert_at_end(text)

    def _insert_at_end(self, text: str) -> None:
        end = QTextCursor(self.document())
        end.movePosition(QTextCursor.MoveOperation.End)
        end.insertText(text.replace("\n", LINE_SEPARATOR), _text_format("text"))

    def _drop_tail(self) -> None:
        if not self._tail:
            return
        cursor = QTextCursor(self.document())
        cursor.setPosition(self._tail_start)
        cursor.movePosition(QTextCursor.MoveOperation.End, QTextCursor.MoveMode.KeepAnchor)
        cursor.removeSelectedText()
        self._tail = ""

    def _selection(self) -> tuple[int, int] | None:
        cursor = self.textCursor()
        return (cursor.anchor(), cursor.position()) if cursor.hasSelection() else None

    def _select(self, selection: tuple[int, int] | None) -> None:
        """Puts the reader's selection back; edits at the end would otherwise stretch or drop it."""
        if selection is None:
            return
        last = self.document().characterCount() - 1
        cursor = self.textCursor()
        cursor.setPosition(min(selection[0], last))
        cursor.setPosition(min(selection[1], last), QTextCursor.MoveMode.KeepAnchor)
        self.setTextCursor(cursor)

    def restyle(self) -> None:
        """Writes the text again in the current colours."""
        tail = self._tail
        blocks, self.blocks, self._tail = self.blocks, [], ""
        self.document().clear()
        self.add(*blocks)
        self.set_tail(tail)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        super().paintEvent(event)
        painter = QPainter(self.viewport())
        layout = self.document().documentLayout()
        block = self.document().begin()
        while block.isValid():
            depth = block.blockFormat().property(_QUOTE_PROPERTY)
            if isinstance(depth, int):
                box = layout.blockBoundingRect(block)
                for level in range(depth):
                    bar = QRectF(
                        QPointF(level * QUOTE_INDENT + 2, box.top()),
                        QPointF(level * QUOTE_INDENT + 5, box.bottom()),
                    )
                    painter.fillRect(bar, theme.color("line"))
            block = block.next()
