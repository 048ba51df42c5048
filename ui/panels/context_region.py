"""The context region: the window as a strip to scale, its figures, and the same blocks as a list for the keyboard."""

from __future__ import annotations

from PySide6.QtCore import QEvent, QRectF, QSize, Qt, Signal
from PySide6.QtGui import QBrush, QHelpEvent, QMouseEvent, QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import (
    QHeaderView,
    QSizePolicy,
    QToolTip,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.text import tr
from memory.values import BlockKind, RegionBlock, RegionSnapshot
from ui.icons import icon
from ui.panels.controls import ICON_PIXELS, QuietLabel
from ui.theme import theme
from ui.view_models import region, wording
from ui.view_models.display import title_line

STRIP_PIXELS = 26
PIN_PIXELS = 5
# A pattern over the colour tells kinds apart without colour.
_PATTERNS = {
    BlockKind.MEMORY: Qt.BrushStyle.BDiagPattern,
    BlockKind.TOOL_RESULT: Qt.BrushStyle.Dense6Pattern,
    region.RESERVE: Qt.BrushStyle.DiagCrossPattern,
}


def describe(part: region.Part) -> str:
    """One part in words."""
    name = tr(f"region.kind_{part.kind}")
    tokens = tr("region.tokens", count=wording.number(part.tokens))
    if part.block is None:
        return f"{name} · {tokens}"
    marks = [tr("region.pinned")] if part.block.pinned else []
    marks.append(tr("region.cached" if part.block.cached else "region.new"))
    return " · ".join([f"{name}: {title_line(part.block.title, 60)}", tokens, *marks])


class RegionStrip(QWidget):
    """The strip. Signals: `block_clicked(RegionBlock)`."""

    block_clicked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: RegionSnapshot | None = None
        self.setFixedHeight(STRIP_PIXELS + PIN_PIXELS + 3)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)

    def show_snapshot(self, snapshot: RegionSnapshot) -> None:
        """Shows another state."""
        self._snapshot = snapshot
        self.update()

    def _part_under(self, x: float) -> region.Part | None:
        if self._snapshot is None or not self.width():
            return None
        return region.part_at(self._snapshot, x / self.width() * self._snapshot.window_tokens)

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            part = self._part_under(event.pos().x())
            QToolTip.showText(event.globalPos(), describe(part) if part else "", self)
            return True
        return super().event(event)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        part = self._part_under(event.position().x())
        clickable = part is not None and part.block is not None
        self.setCursor(
            Qt.CursorShape.PointingHandCursor if clickable else Qt.CursorShape.ArrowCursor
        )

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        part = self._part_under(event.position().x())
        if part is not None and part.block is not None:
            self.block_clicked.emit(part.block)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        if self._snapshot is None or not self._snapshot.window_tokens:
            return
        painter = QPainter(self)
        scale = self.width() / self._snapshot.window_tokens
        for part in region.parts(self._snapshot):
            self._paint_part(painter, part, scale)
        painter.setPen(QPen(theme.color("edge"), 1))
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawRect(QRectF(0.5, PIN_PIXELS + 0.5, self.width() - 1, STRIP_PIXELS - 1))
        if self._snapshot.reused_tokens:
            x = self._snapshot.reused_tokens * scale
            painter.setPen(QPen(theme.color("text"), 2))
            painter.drawLine(int(x), PIN_PIXELS - 3, int(x), PIN_PIXELS + STRIP_PIXELS + 2)

    def _paint_part(self, painter: QPainter, part: region.Part, scale: float) -> None:
        box = QRectF(part.start * scale, PIN_PIXELS, part.tokens * scale, STRIP_PIXELS)
        painter.fillRect(box, theme.color(region.color_token(part.kind)))
        pattern = _PATTERNS.get(part.kind)
        if pattern is not None:
            mark = theme.color("edge" if part.kind == region.RESERVE else "stain_deep")
            painter.fillRect(box, QBrush(mark, pattern))
        if part.block is None:
            return
        painter.setPen(QPen(theme.color("surface"), 1))
        painter.drawLine(box.topRight(), box.bottomRight())
        if part.block.pinned:
            painter.fillRect(
                QRectF(box.left(), 0, max(3.0, box.width() - 1), PIN_PIXELS - 2),
                theme.color("heat"),
            )


class ContextRegionPanel(QWidget):
    """Strip, figures and list.

    Signals: `source_wanted(NodeId)`, `summary_changed(str)`.
    """

    source_wanted = Signal(object)
    summary_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: RegionSnapshot | None = None
        self._listed: tuple[str, str, tuple[RegionBlock, ...]] | None = None
        self.strip = RegionStrip()
        self._figures = ""
        self._reuse = QuietLabel()
        self.list = QTreeWidget()
        self.list.setColumnCount(2)
        self.list.setHeaderHidden(True)
        self.list.setRootIsDecorated(False)
        self.list.setUniformRowHeights(True)
        self.list.setIconSize(QSize(ICON_PIXELS, ICON_PIXELS))
        self.list.header().setStretchLastSection(False)
        self.list.header().setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        self.list.header().setSectionResizeMode(1, QHeaderView.ResizeMode.ResizeToContents)
        self.list.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._empty = QuietLabel()
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 2, 12, 6)
        column.setSpacing(4)
        for widget in (self.strip, self._reuse, self._empty):
            column.addWidget(widget)
        column.addWidget(self.list, 1)
        column.addStretch(0)
        self.strip.block_clicked.connect(self._open)
        self.list.itemActivated.connect(
            lambda item: self._open(item.data(0, Qt.ItemDataRole.UserRole))
        )
        self.retranslate()

    def show_snapshot(self, snapshot: RegionSnapshot) -> None:
        """Shows another state."""
        if snapshot == self._snapshot:
            return
        self._snapshot = snapshot
        self.strip.show_snapshot(snapshot)
        self.retranslate()

    def figures_text(self) -> str:
        """`3,412 / 8,192 tokens`."""
        return self._figures

    def retranslate(self) -> None:
        """Says figures and list again."""
        self.strip.setAccessibleName(tr("region.strip"))
        self.list.setAccessibleName(tr("region.list"))
        snapshot = self._snapshot
        if snapshot is None or not snapshot.window_tokens:
            self._figures = ""
            self.summary_changed.emit("")
            self._reuse.setText("")
            self._empty.setText(tr("region.none"))
            self._empty.show()
            self.list.hide()
            self.strip.hide()
            return
        self.strip.show()
        used, window = wording.number(snapshot.used_tokens), wording.number(snapshot.window_tokens)
        self._figures = tr("region.used", used=used, window=window)
        self.summary_changed.emit(self._figures)
        self._reuse.setText(self._reuse_words(snapshot))
        self.strip.setAccessibleDescription(f"{self._figures}. {self._reuse.text()}")
        self._empty.setText(tr("region.empty"))
        self._empty.setVisible(not snapshot.blocks)
        self.list.setVisible(bool(snapshot.blocks))
        if self._listed != (tr.language, theme.name, snapshot.blocks):
            self._listed = (tr.language, theme.name, snapshot.blocks)
            self._fill_list(snapshot.blocks)

    def _reuse_words(self, snapshot: RegionSnapshot) -> str:
        parts = []
        if snapshot.prompt_tokens:
            parts.append(tr("region.reused", share=wording.percent(region.reused_share(snapshot))))
        parts.append(tr("region.reserve", count=wording.number(snapshot.reserve_tokens)))
        if snapshot.evictions:
            parts.append(tr("region.evictions", count=wording.number(snapshot.evictions)))
        return " · ".join(parts)

    def _fill_list(self, blocks: tuple[RegionBlock, ...]) -> None:
        row = self.list.currentIndex().row()
        self.list.clear()
        for shown in blocks:
            item = QTreeWidgetItem(
                [title_line(shown.title, 80), wording.number(shown.block.tokens)]
            )
            item.setIcon(0, icon(self._icon_name(shown), region.color_token(shown.block.kind)))
            item.setData(0, Qt.ItemDataRole.UserRole, shown)
            item.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
            item.setForeground(1, theme.color("muted"))
            part = region.Part(
                kind=shown.block.kind, start=0, tokens=shown.block.tokens, block=shown
            )
            for column in (0, 1):
                item.setToolTip(column, describe(part))
                item.setData(column, Qt.ItemDataRole.AccessibleTextRole, describe(part))
            self.list.addTopLevelItem(item)
        if 0 <= row < len(blocks):
            self.list.setCurrentIndex(self.list.model().index(row, 0))

    def _icon_name(self, shown: RegionBlock) -> str:
        if shown.pinned:
            return "pin"
        names = {
            BlockKind.MEMORY: "leaf",
            BlockKind.TOOL_RESULT: "search",
            BlockKind.USER: "message-square",
        }
        return names.get(shown.block.kind, "cpu")

    def restyle(self) -> None:
        """Draws the icons again."""
        self.retranslate()

    def _open(self, shown: RegionBlock) -> None:
        self.source_wanted.emit(shown.block.node_id)

    @override
    def sizeHint(self) -> QSize:
        return QSize(290, 210)
