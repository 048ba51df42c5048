"""The picture of the pointer graph: the memory in the middle, its neighbours as boxes, edges as thick as they are hot.

Painted by hand; which box lies where is decided in `ui.view_models.pointers`. For the mouse only: the list below the picture says the same
to the keyboard and to screen readers.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QFontMetricsF,
    QHelpEvent,
    QMouseEvent,
    QPainter,
    QPainterPath,
    QPainterPathStroker,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from memory.values import NodeId
from ui.icons import icon
from ui.theme import SMALL_PIXELS, theme
from ui.view_models import pointers, wording
from ui.view_models.pointers import Box, Drawing, Neighbour

PICTURE_PIXELS = 14
ARROW_PIXELS = 5.0
CORNER = 6.0
PADDING = 8.0
REACH_PIXELS = 10.0
"""How near to a line a click still means it."""


class PointerCanvas(QWidget):
    """The picture.

    Signals: `neighbour_clicked(NodeId)`, `edge_clicked(tuple[NodeId, NodeId])`.
    """

    neighbour_clicked = Signal(object)
    edge_clicked = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = ""
        self._neighbours: tuple[Neighbour, ...] = ()
        self._chosen: tuple[NodeId, NodeId] | None = None
        self.setMouseTracking(True)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Expanding)
        self.setMinimumHeight(2 * pointers.ROW_PIXELS + pointers.GAP_PIXELS + 4)

    def show_neighbours(self, title: str, found: tuple[Neighbour, ...]) -> None:
        """Shows another neighbourhood."""
        self._title, self._neighbours = title, found
        self.update()

    def choose(self, key: tuple[NodeId, NodeId] | None) -> None:
        """Lifts one edge out."""
        self._chosen = key
        self.update()

    # -- places -------------------------------------------------------------------------------
    def drawing(self) -> Drawing:
        """Where everything lies at the present size."""
        room = self.rect().adjusted(1, 2, -1, -2)
        return pointers.drawing(self._neighbours, room.width(), room.height())

    @property
    def hottest(self) -> int:
        """The heat that is drawn thickest."""
        return max((item.edge.heat for item in self._neighbours), default=0)

    def path(self, neighbour: Neighbour, box: Box, drawn: Drawing) -> QPainterPath:
        """The line of an edge, from where it leaves to where it leads."""
        if drawn.columns:
            return self._across(neighbour, box, drawn.centre)
        return self._down(neighbour, box, drawn)

    def _across(self, neighbour: Neighbour, box: Box, centre: Box) -> QPainterPath:
        if neighbour.leaving:
            start, end = QPointF(centre.right, centre.middle), QPointF(box.left, box.middle)
        else:
            start, end = QPointF(box.right, box.middle), QPointF(centre.left, centre.middle)
        bend = (end.x() - start.x()) / 2
        path = QPainterPath(start)
        path.cubicTo(start + QPointF(bend, 0), end - QPointF(bend, 0), end)
        return path

    def _down(self, neighbour: Neighbour, box: Box, drawn: Drawing) -> QPainterPath:
        """Along the left side; whoever is farther from the middle has its line farther left."""
        same_side = [found for item, found in drawn.boxes if item.leaving is neighbour.leaving]
        same_side.sort(key=lambda found: abs(found.middle - drawn.centre.middle))
        at = (same_side.index(box) + 0.5) / len(same_side)
        x = pointers.GUTTER_PIXELS - 14 - at * (pointers.GUTTER_PIXELS - 20)
        above = box.middle < drawn.centre.middle
        foot = QPointF(x, drawn.centre.top if above else drawn.centre.bottom)
        turn = 8.0 if above else -8.0
        path = QPainterPath(QPointF(box.left, box.middle))
        path.lineTo(x + 8, box.middle)
        path.quadTo(QPointF(x, box.middle), QPointF(x, box.middle + turn))
        path.lineTo(foot)
        return path.toReversed() if neighbour.leaving else path

    # -- mouse --------------------------------------------------------------------------------
    def neighbour_under(self, x: float, y: float) -> Neighbour | None:
        """The neighbour whose box is at a point."""
        point = x - 1, y - 2
        boxes = self.drawing().boxes
        return next((item for item, box in boxes if box.holds(*point)), None)

    def edge_under(self, x: float, y: float) -> Neighbour | None:
        """The edge whose line is near a point."""
        drawn = self.drawing()
        stroker = QPainterPathStroker()
        stroker.setWidth(REACH_PIXELS)
        point = QPointF(x - 1, y - 2)
        for item, box in drawn.boxes:
            if stroker.createStroke(self.path(item, box, drawn)).contains(point):
                return item
        return None

    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            x, y = event.pos().x(), event.pos().y()
            found = self.neighbour_under(x, y) or self.edge_under(x, y)
            words = pointers.describe(found) if found else self._title
            QToolTip.showText(event.globalPos(), words, self)
            return True
        return super().event(event)

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        x, y = event.position().x(), event.position().y()
        found = self.neighbour_under(x, y) or self.edge_under(x, y)
        shape = Qt.CursorShape.PointingHandCursor if found else Qt.CursorShape.ArrowCursor
        self.setCursor(shape)

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        x, y = event.position().x(), event.position().y()
        neighbour = self.neighbour_under(x, y)
        if neighbour is not None:
            self.neighbour_clicked.emit(neighbour.node_id)
            return
        edge = self.edge_under(x, y)
        if edge is not None:
            self.edge_clicked.emit(edge.key)

    # -- painting -----------------------------------------------------------------------------
    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        painter.translate(1, 2)
        drawn = self.drawing()
        for item, box in drawn.boxes:
            self._paint_edge(painter, item, self.path(item, box, drawn))
        for item, box in drawn.boxes:
            self._paint_neighbour(painter, item, box)
        self._paint_centre(painter, drawn.centre)

    def _paint_edge(self, painter: QPainter, item: Neighbour, path: QPainterPath) -> None:
        chosen = item.key == self._chosen
        share = pointers.heat_share(item.edge, self.hottest)
        colour = theme.color("accent") if chosen else theme.between("heat_cold", "heat", share)
        pen = QPen(colour, pointers.line_width(item.edge, self.hottest))
        pen.setCapStyle(Qt.PenCapStyle.FlatCap)
        if item.edge.forced:
            pen.setDashPattern([3.0, 1.5])
        painter.setPen(pen)
        painter.setBrush(Qt.BrushStyle.NoBrush)
        painter.drawPath(path)
        painter.setPen(Qt.PenStyle.NoPen)
        painter.setBrush(colour)
        painter.drawPolygon(_arrow_head(path, ARROW_PIXELS + pen.widthF()))

    def _paint_frame(self, painter: QPainter, box: Box, *, ground: str, edge: str) -> None:
        painter.setPen(QPen(theme.color(edge), 1))
        painter.setBrush(theme.color(ground))
        rect = QRectF(box.left + 0.5, box.top + 0.5, box.width - 1, box.height - 1)
        painter.drawRoundedRect(rect, CORNER, CORNER)

    def _paint_neighbour(self, painter: QPainter, item: Neighbour, box: Box) -> None:
        chosen = item.key == self._chosen
        self._paint_frame(
            painter,
            box,
            ground="accent_soft" if chosen else "surface",
            edge="accent" if chosen else "line",
        )
        right = box.right - PADDING
        painter.setFont(theme.font(SMALL_PIXELS))
        painter.setPen(theme.color("muted"))
        heat = wording.number(item.edge.heat)
        room = QFontMetricsF(painter.font()).horizontalAdvance(heat)
        self._paint_words(painter, QRectF(right - room, box.top, room + 1, box.height), heat)
        right -= room + 6
        if item.edge.forced:
            right -= PICTURE_PIXELS
            top = int(box.middle - PICTURE_PIXELS / 2)
            pin = icon("pin", "heat_text")
            pin.paint(painter, int(right), top, PICTURE_PIXELS, PICTURE_PIXELS)
            right -= 4
        painter.setFont(theme.font())
        painter.setPen(theme.color("text"))
        left = box.left + PADDING
        self._paint_words(painter, QRectF(left, box.top, right - left, box.height), item.title)

    def _paint_centre(self, painter: QPainter, box: Box) -> None:
        self._paint_frame(painter, box, ground="accent_soft", edge="accent")
        painter.setFont(theme.font(bold=True))
        painter.setPen(theme.color("text"))
        words = QRectF(box.left + PADDING, box.top, max(0.0, box.width - 2 * PADDING), box.height)
        self._paint_words(painter, words, self._title)

    def _paint_words(self, painter: QPainter, box: QRectF, words: str) -> None:
        metrics = QFontMetricsF(painter.font())
        shown = metrics.elidedText(words, Qt.TextElideMode.ElideRight, max(0.0, box.width()))
        flags = int(Qt.AlignmentFlag.AlignVCenter | Qt.AlignmentFlag.AlignLeft)
        painter.drawText(box, flags, shown)

    @override
    def sizeHint(self) -> QSize:
        rows = max(3, len(self._neighbours) + 1)
        return QSize(290, min(rows, 9) * (pointers.ROW_PIXELS + pointers.GAP_PIXELS))


def _arrow_head(path: QPainterPath, size: float) -> QPolygonF:
    """A triangle at the end of a line, pointing the way it goes."""
    tip = path.pointAtPercent(1.0)
    before = path.pointAtPercent(max(0.0, path.percentAtLength(path.length() - size)))
    back = before - tip
    length = max(1e-6, (back.x() ** 2 + back.y() ** 2) ** 0.5)
    back = back / length * size
    aside = QPointF(-back.y(), back.x()) * 0.7
    return QPolygonF([tip, tip + back + aside, tip + back - aside])
