"""The band of the stain map: the timeline to scale, painted by hand, walked by the arrow keys.

How well a stretch was read is told by hue, by height and by pattern: deep fills the band, light its lower half in stripes, what was
never read is empty. From the top: the mark of the chosen note, the band, dates.
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, QPointF, QRectF, Qt, Signal
from PySide6.QtGui import (
    QAccessible,
    QAccessibleEvent,
    QBrush,
    QHelpEvent,
    QKeyEvent,
    QMouseEvent,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
    QResizeEvent,
    QWheelEvent,
)
from PySide6.QtWidgets import QApplication, QSizePolicy, QToolTip, QWidget
from typing_extensions import override

from memory.values import Depth, StainSnapshot
from ui.theme import SMALL_PIXELS, theme
from ui.view_models import stains
from ui.view_models.stains import InView, Timeline

MARK_PIXELS = 7
BAND_PIXELS = 40
WORDS_PIXELS = 18
TICK_PIXELS = 84
PAN_STEP = 0.25
WHEEL_NOTCH = 120
# The arrow keys step by this share of what is shown, but at least by one note.
STEP_SHARE = 1 / 60
_OPEN = (Qt.Key.Key_Return, Qt.Key.Key_Enter, Qt.Key.Key_Space)


def paint_stain(painter: QPainter, box: QRectF, depth: Depth | None) -> None:
    """Paints how well something was read, in the band and in its legend alike."""
    if depth is Depth.DEEP:
        painter.fillRect(box, theme.color("stain_deep"))
        painter.fillRect(QRectF(box.left(), box.top(), box.width(), 2), theme.color("accent"))
    elif depth is Depth.LIGHT:
        half = box.adjusted(0, box.height() / 2, 0, 0)
        painter.fillRect(half, theme.color("stain_light"))
        painter.fillRect(half, QBrush(theme.color("stain_deep"), Qt.BrushStyle.BDiagPattern))
    else:
        painter.fillRect(box, theme.color("surface"))


class StainBand(QWidget):
    """The band. Keys: arrows move the mark, with Ctrl to the next stretch; Home, End, Page Up and Page Down; plus, minus and 0 zoom; Enter opens.

    Signals: `note_chosen(int seq)`, `said(str)` what is under the mouse or the mark, `view_changed()`.
    """

    note_chosen = Signal(int)
    said = Signal(str)
    view_changed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.now_ms = 0
        self._timeline: Timeline | None = None
        self._view: InView | None = None
        self._mark: int | None = None
        self._pressed: tuple[float, InView] | None = None
        self._dragged = False
        self.setFixedHeight(MARK_PIXELS + BAND_PIXELS + WORDS_PIXELS)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)
        self.setMouseTracking(True)
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)

    def show_snapshot(self, snapshot: StainSnapshot) -> None:
        """Shows another state; zoom and mark stay."""
        self._timeline = Timeline(snapshot)
        whole = stains.all_of(snapshot)
        self._view = whole if self._view is None else stains.kept(self._view, snapshot)
        if self._mark is not None and not whole.low <= self._mark < whole.high:
            self._mark = None
        self.update()
        self.view_changed.emit()

    # -- places -------------------------------------------------------------------------------
    @property
    def view(self) -> InView | None:
        """The part in view."""
        return self._view

    @property
    def mark(self) -> int | None:
        """The note that the keyboard or a click has reached."""
        return self._mark

    def _x(self, seq: float) -> float:
        return self._view.place(seq) * self.width() if self._view else 0.0

    def seq_at(self, x: float) -> int | None:
        """The note under a point."""
        if self._view is None:
            return None
        return self._view.seq(x / max(1, self.width()))

    def words_at(self, seq: int | None) -> str:
        """The stretch around a note, in words."""
        timeline = self._timeline
        stretch = timeline.at(seq) if timeline is not None and seq is not None else None
        return stains.describe(stretch, self.now_ms) if stretch else ""

    # -- moving -------------------------------------------------------------------------------
    def zoom(self, factor: float, share: float | None = None) -> None:
        """Nearer or farther, around the mark when it is in view."""
        if self._view is None:
            return
        if share is None:
            at = self._view.place(self._mark + 0.5) if self._mark is not None else 0.5
            share = at if 0.0 <= at <= 1.0 else 0.5
        self._show_view(self._view.zoomed(factor, share))

    def pan(self, share: float) -> None:
        """To the newer (above 0) or older side, by a share of what is shown."""
        if self._view is not None:
            self._show_view(self._view.panned(share))

    def show_all(self) -> None:
        """The whole timeline."""
        if self._timeline is not None:
            self._show_view(stains.all_of(self._timeline.snapshot))

    def _show_view(self, view: InView) -> None:
        if view != self._view:
            self._view = view
            self.update()
            self.view_changed.emit()

    def _move_mark(self, seq: int) -> None:
        assert self._view is not None
        self._mark = min(max(seq, self._view.low), self._view.high - 1)
        self._show_view(self._view.holding(self._mark))
        words = self.words_at(self._mark)
        self.said.emit(words)
        self.setAccessibleDescription(words)
        changed = QAccessibleEvent(self, QAccessible.Event.DescriptionChanged)
        QAccessible.updateAccessibility(changed)
        self.update()

    # -- mouse --------------------------------------------------------------------------------
    @override
    def event(self, event: QEvent) -> bool:
        if isinstance(event, QHelpEvent):
            QToolTip.showText(event.globalPos(), self.words_at(self.seq_at(event.pos().x())), self)
            return True
        return super().event(event)

    @override
    def mousePressEvent(self, event: QMouseEvent) -> None:
        if self._view is not None and event.button() == Qt.MouseButton.LeftButton:
            self._pressed, self._dragged = (event.position().x(), self._view), False

    @override
    def mouseMoveEvent(self, event: QMouseEvent) -> None:
        x = event.position().x()
        if self._pressed is None:
            self.setCursor(Qt.CursorShape.PointingHandCursor)
            self.said.emit(self.words_at(self.seq_at(x)))
            return
        start, view = self._pressed
        if self._dragged or abs(x - start) >= QApplication.startDragDistance():
            self._dragged = True
            self.setCursor(Qt.CursorShape.ClosedHandCursor)
            self._show_view(view.panned((start - x) / max(1, self.width())))

    @override
    def mouseReleaseEvent(self, event: QMouseEvent) -> None:
        pressed, self._pressed = self._pressed, None
        seq = self.seq_at(event.position().x())
        if pressed is None or self._dragged or seq is None:
            return
        self._move_mark(seq)
        self.note_chosen.emit(seq)

    @override
    def leaveEvent(self, event: QEvent) -> None:
        self.said.emit(self.words_at(self._mark))
        super().leaveEvent(event)

    @override
    def wheelEvent(self, event: QWheelEvent) -> None:
        turned = event.angleDelta()
        sideways = turned.x() or (
            turned.y() if event.modifiers() & Qt.KeyboardModifier.ShiftModifier else 0
        )
        if sideways:
            self.pan(-sideways / WHEEL_NOTCH * PAN_STEP)
        else:
            share = event.position().x() / max(1, self.width())
            self.zoom(stains.ZOOM_STEP ** (turned.y() / WHEEL_NOTCH), share)
        event.accept()

    # -- keyboard -----------------------------------------------------------------------------
    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if not self._take_key(event):
            super().keyPressEvent(event)

    def _take_key(self, event: QKeyEvent) -> bool:
        """Does what a key asks for; False when it means nothing here."""
        view, timeline = self._view, self._timeline
        if view is None or timeline is None or not timeline.snapshot.nodes:
            return False
        return self._key_moves(event, view, timeline) or self._key_zooms(event)

    def _key_moves(self, event: QKeyEvent, view: InView, timeline: Timeline) -> bool:
        """Moves or opens the mark; False when the key means something else."""
        key = Qt.Key(event.key())
        mark = self._mark if self._mark is not None else view.seq(0.5)
        leap = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
        step = max(1, round(view.notes * STEP_SHARE))
        places = {
            Qt.Key.Key_Left: timeline.next_stretch(mark, -1) if leap else mark - step,
            Qt.Key.Key_Right: timeline.next_stretch(mark, 1) if leap else mark + step,
            Qt.Key.Key_Home: view.low,
            Qt.Key.Key_End: view.high - 1,
            Qt.Key.Key_PageUp: mark - round(view.notes * PAN_STEP * 2),
            Qt.Key.Key_PageDown: mark + round(view.notes * PAN_STEP * 2),
        }
        if key in _OPEN:
            self._move_mark(mark)
            self.note_chosen.emit(mark)
            return True
        if key in places:
            self._move_mark(places[key])
            return True
        return False

    def _key_zooms(self, event: QKeyEvent) -> bool:
        match event.key():
            case Qt.Key.Key_Plus | Qt.Key.Key_Equal:
                self.zoom(stains.ZOOM_STEP)
            case Qt.Key.Key_Minus:
                self.zoom(1 / stains.ZOOM_STEP)
            case Qt.Key.Key_0:
                self.show_all()
            case _:
                return False
        return True

    # -- painting -----------------------------------------------------------------------------
    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        view, timeline = self._view, self._timeline
        if view is None or timeline is None:
            return
        painter = QPainter(self)
        band = QRectF(0, MARK_PIXELS, self.width(), BAND_PIXELS)
        paint_stain(painter, band, None)
        for left, end, depth in timeline.runs(view, self.width()):
            paint_stain(painter, QRectF(left, MARK_PIXELS, end - left, BAND_PIXELS), depth)
        focused = self.hasFocus()
        painter.setPen(QPen(theme.color("accent" if focused else "edge"), 2 if focused else 1))
        inset = 1.0 if focused else 0.5
        painter.drawRect(band.adjusted(inset, inset, -inset, -inset))
        self._paint_dates(painter, view, timeline)
        self._paint_mark(painter)

    def _paint_dates(self, painter: QPainter, view: InView, timeline: Timeline) -> None:
        painter.setFont(theme.font(SMALL_PIXELS))
        painter.setPen(theme.color("muted"))
        count = max(1, self.width() // TICK_PIXELS)
        room = self.width() / count
        for share, words in stains.ticks(timeline, view, count, self.now_ms):
            x = share * self.width()
            below = MARK_PIXELS + BAND_PIXELS
            painter.drawLine(QPointF(x, below), QPointF(x, below + 3))
            box = QRectF(x - room / 2, below + 2, room, WORDS_PIXELS - 2)
            painter.drawText(box, int(Qt.AlignmentFlag.AlignCenter), words)

    def _paint_mark(self, painter: QPainter) -> None:
        if self._mark is None:
            return
        x = self._x(self._mark + 0.5)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        colour = theme.color("text")
        painter.setPen(QPen(colour, 2 if self.hasFocus() else 1))
        painter.drawLine(QPointF(x, MARK_PIXELS), QPointF(x, MARK_PIXELS + BAND_PIXELS))
        painter.setBrush(colour)
        half = MARK_PIXELS / 2 + 1
        tip = [QPointF(x - half, 0), QPointF(x + half, 0), QPointF(x, MARK_PIXELS)]
        painter.drawPolygon(QPolygonF(tip))
