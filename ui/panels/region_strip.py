"""The strip: the whole context window to scale, with the boundary of the KV cache. Painted by hand, walked by the arrow keys.

From the top: pin marks, the parts (hue by kind, brightness by heat), a line under the turns that do not leave, the boundary's words.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QBrush,
    QFontMetricsF,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from growbox_app.text import tr
from memory.values import BlockKind, RegionSnapshot
from ui.theme import SMALL_PIXELS, theme
from ui.view_models import region
from ui.view_models.block_words import describe_part

PIN_PIXELS = 5
STRIP_PIXELS = 26
LINE_TOP = PIN_PIXELS + STRIP_PIXELS + 2
WORDS_TOP = LINE_TOP + 6
WORDS_PIXELS = 16
WORDS_GAP = 6
# A pattern over the colour tells kinds apart without colour.
_PATTERNS = {
    BlockKind.MEMORY: Qt.BrushStyle.BDiagPattern,
    BlockKind.TOOL_RESULT: Qt.BrushStyle.Dense6Pattern,
    region.RESERVE: Qt.BrushStyle.DiagCrossPattern,
}
_STEPS = {Qt.Key.Key_Right: 1, Qt.Key.Key_Left: -1}
_OPEN = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)


class RegionStrip(QWidget):
    """The strip. Keys: arrows, Home and End walk through the blocks, Enter opens one. Signals: `block_clicked(RegionBlock)`."""

    block_clicked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.now_ms = 0
        self._snapshot: RegionSnapshot | None = None
        self._parts: tuple[region.Part, ...] = ()
        self._unread: int | None = None
        self._current: int | None = None
        self.setFixedHeight(WORDS_TOP + WORDS_PIXELS)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def show_snapshot(self, snapshot: RegionSnapshot) -> None:
        """Shows another state; the chosen block stays chosen while it is there."""
        self._snapshot = snapshot
        self._parts = region.parts(snapshot)
        if self.current_part() is None:
            self._current = None
        self.update()

    def show_unread(self, unread: int | None) -> None:
        """Shows what the running turn has to read; None when the snapshot says it."""
        if unread != self._unread:
            self._unread = unread
            self.update()

    # -- places -------------------------------------------------------------------------------
    @property
    def boundary(self) -> int | None:
        """Where "new this turn" begins, in tokens."""
        return None if self._snapshot is None else region.boundary(self._snapshot, self._unread)

    def box(self, part: region.Part) -> QRectF:
        """Where a part is painted; together the boxes are as wide as the strip."""
        return QRectF(self._x(part.start), PIN_PIXELS, self._x(part.tokens), STRIP_PIXELS)

    def _x(self, tokens: float) -> float:
        window = self._snapshot.window_tokens if self._snapshot else 0
        return tokens * self.width() / window if window else 0.0

    def _part_under(self, x: float) -> region.Part | None:
        return next(
            (part for part in self._parts if self._x(part.start) <= x < self._x(part.end)), None
        )

    def describe(self, part: region.Part) -> str:
        """A part in words, several lines."""
        window = self._snapshot.window_tokens if self._snapshot else 0
        lines = describe_part(part, window=window, now_ms=self.now_ms, cached_to=self.boundary)
        return "\n".join(lines)

    # -- mouse --------------------------------------------------------------------------------
    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            part = self._part_under(event.pos().x())
            QToolTip.showText(event.globalPos(), self.describe(part) if part else "", self)
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
            self._current = part.block.block.id
            self.update()
            self.block_clicked.emit(part.block)

    # -- keyboard -----------------------------------------------------------------------------
    def _blocks(self) -> list[region.Part]:
        return [part for part in self._parts if part.block is not None]

    def current_part(self) -> region.Part | None:
        """The block that the arrow keys have reached."""
        return next(
            (
                part
                for part in self._parts
                if part.block is not None and part.block.block.id == self._current
            ),
            None,
        )

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        blocks, current = self._blocks(), self.current_part()
        key = Qt.Key(event.key())
        if key in _OPEN and current is not None:
            self.block_clicked.emit(current.block)
        elif blocks and key in _STEPS:
            step = _STEPS[key]
            at = blocks.index(current) + step if current else (0 if step > 0 else len(blocks) - 1)
            self._choose(blocks[min(max(at, 0), len(blocks) - 1)])
        elif blocks and key in (Qt.Key.Key_Home, Qt.Key.Key_End):
            self._choose(blocks[0 if key == Qt.Key.Key_Home else -1])
        else:
            super().keyPressEvent(event)

    def _choose(self, part: region.Part) -> None:
        assert part.block is not None
        self._current = part.block.block.id
        words = self.describe(part)
        self.setAccessibleDescription(words.replace("\n", ". "))
        QAccessible.updateAccessibility(
            QAccessibleEvent(self, QAccessible.Event.DescriptionChanged)
        )
        place = QPointF(self.box(part).center().x(), WORDS_TOP).toPoint()
        QToolTip.showText(self.mapToGlobal(place), words, self)
        self.update()

    # -- painting -----------------------------------------------------------------------------
    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        snapshot = self._snapshot
        if snapshot is None or not snapshot.window_tokens:
            return
        painter = QPainter(self)
        hottest = max((shown.heat for shown in snapshot.blocks), default=0.0)
        for part in self._parts:
            self._paint_part(painter, part, hottest)
        painter.setPen(QPen(theme.color("edge"), 1))
        painter.drawRect(QRectF(0.5, PIN_PIXELS + 0.5, self.width() - 1, STRIP_PIXELS - 1))
        for start, end in region.protected_spans(snapshot):
            span = QRectF(self._x(start), LINE_TOP, self._x(end - start) - 1, 2)
            painter.fillRect(span, theme.color("accent"))
        current = self.current_part()
        if current is not None and self.hasFocus():
            self._paint_focus(painter, self.box(current))
        boundary = self.boundary
        if boundary is not None:
            self._paint_boundary(painter, self._x(boundary))

    def _paint_part(self, painter: QPainter, part: region.Part, hottest: float) -> None:
        box = self.box(part)
        token, shown = region.color_token(part.kind), part.block
        share = 1.0 if shown is None else region.brightness(shown.heat, hottest)
        painter.fillRect(box, theme.between("surface_alt", token, share))
        pattern = _PATTERNS.get(part.kind)
        if pattern is not None:
            mark = theme.color("edge" if part.kind == region.RESERVE else "stain_deep")
            painter.fillRect(box, QBrush(mark, pattern))
        if shown is None:
            return
        if box.width() >= 3:
            painter.setPen(QPen(theme.color("surface"), 1))
            painter.drawLine(box.topRight(), box.bottomRight())
        if shown.pinned:
            pin = QRectF(box.left(), 0, max(3.0, box.width() - 1), PIN_PIXELS - 2)
            painter.fillRect(pin, theme.color("heat"))

    def _paint_focus(self, painter: QPainter, box: QRectF) -> None:
        painter.setPen(QPen(theme.color("text"), 2))
        painter.drawRect(box.adjusted(0, 1, max(0.0, 4 - box.width()), -1))

    def _paint_boundary(self, painter: QPainter, x: float) -> None:
        """The line, and its words left and right of its foot; near an end of the strip the foot is drawn aside."""
        font = theme.font(SMALL_PIXELS)
        metrics = QFontMetricsF(font)
        room = self.width() / 2 - WORDS_GAP
        left, right = (
            metrics.elidedText(tr(key), Qt.TextElideMode.ElideRight, room)
            for key in ("region.cached", "region.new")
        )
        before = metrics.horizontalAdvance(left) + WORDS_GAP
        after = metrics.horizontalAdvance(right) + WORDS_GAP
        line = min(max(x, 1.0), self.width() - 1.0)
        foot = min(max(line, before), self.width() - after)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.setPen(QPen(theme.color("text"), 2))
        painter.drawPolyline(
            [
                QPointF(line, PIN_PIXELS - 3),
                QPointF(line, LINE_TOP),
                QPointF(foot, WORDS_TOP),
                QPointF(foot, self.height()),
            ]
        )
        painter.setFont(font)
        painter.setPen(theme.color("muted"))
        middle = Qt.AlignmentFlag.AlignVCenter
        words = QRectF(foot - before, WORDS_TOP, before - WORDS_GAP, WORDS_PIXELS)
        painter.drawText(words, int(middle | Qt.AlignmentFlag.AlignRight), left)
        words = QRectF(foot + WORDS_GAP, WORDS_TOP, after, WORDS_PIXELS)
        painter.drawText(words, int(middle | Qt.AlignmentFlag.AlignLeft), right)
