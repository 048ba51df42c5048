"""The rows of the index queue: how one is painted, and how rows glide to their new place when the order changes."""

from __future__ import annotations

from collections.abc import Mapping

from PySide6.QtCore import QObject, QRectF, QSize, Qt, QVariantAnimation, Signal
from PySide6.QtGui import QFontMetrics, QPainter, QPen
from PySide6.QtWidgets import QStyle, QStyledItemDelegate, QStyleOptionViewItem
from typing_extensions import override

from memory.values import PointerKind, QueueEntry
from ui import motion
from ui.icons import icon
from ui.panels.queue_model import TITLE_CHARACTERS, AnyIndex, QueueModel
from ui.theme import SMALL_PIXELS, theme
from ui.view_models import region, wording
from ui.view_models.block_words import name_of

ROW_PIXELS = 28
BAR_PIXELS = 8
BAR_ROOM = 32
PICTURE_PIXELS = 14
GAP = 8
# Below this width a row has no room for its age; the tooltip says it.
AGE_ROOM = 190
MOTION_MS = 150


class RowMotion(QObject):
    """Where rows are drawn while they move: one animation for all. Signals: `moved()` at each step."""

    moved = Signal()

    def __init__(self, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._distances: dict[int, float] = {}
        self._animation = QVariantAnimation(self)
        self._animation.setStartValue(1.0)
        self._animation.setEndValue(0.0)
        self._animation.setDuration(MOTION_MS)
        self._animation.valueChanged.connect(lambda _value: self.moved.emit())
        self._animation.finished.connect(self.stop)

    @property
    def running(self) -> bool:
        """Whether rows are moving."""
        return bool(self._distances)

    def offset(self, block_id: int) -> float:
        """Pixels from a row's place to where it is drawn now."""
        distance = self._distances.get(block_id, 0.0)
        return distance * float(self._animation.currentValue()) if distance else 0.0

    def start(self, before: Mapping[int, int], after: Mapping[int, int], reach: int) -> None:
        """Lets rows glide from the row numbers `before` to those `after`, none farther than `reach` pixels.

        A row that is still moving goes on from where it is drawn.
        """
        distances: dict[int, float] = {}
        if not motion.reduced():
            for block_id, row in after.items():
                old = before.get(block_id, row)
                distance = (old - row) * ROW_PIXELS + self.offset(block_id)
                if distance:
                    distances[block_id] = min(max(distance, -reach), reach)
        self._animation.stop()
        self._distances = distances
        if distances:
            self._animation.start()

    def stop(self) -> None:
        """Puts every row in its place."""
        self._animation.stop()
        self._distances = {}
        self.moved.emit()


class QueueDelegate(QStyledItemDelegate):
    """Paints a row: heat as a bar (hollow for a placeholder), kind, title, pin, tokens, age."""

    def __init__(self, rows: RowMotion, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._rows = rows
        self._tokens_room = 0
        self._age_room = 0

    def measure(self, model: QueueModel) -> None:
        """Makes the columns as wide as what stands in them."""
        metrics = QFontMetrics(theme.font(SMALL_PIXELS))
        self._tokens_room = max(
            (metrics.horizontalAdvance(wording.number(e.tokens)) for e in model.entries), default=0
        )
        self._age_room = max(
            (metrics.horizontalAdvance(_age(entry, model)) for entry in model.entries), default=0
        )

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        return QSize(120, ROW_PIXELS)

    @override
    def paint(self, painter: QPainter, option: QStyleOptionViewItem, index: AnyIndex) -> None:
        entry = index.data(Qt.ItemDataRole.UserRole)
        model = index.model()
        if not isinstance(entry, QueueEntry) or not isinstance(model, QueueModel):
            return
        box = QRectF(option.rect)
        painter.save()
        offset = self._rows.offset(entry.block_id)
        if offset:
            painter.translate(0, offset)
            painter.fillRect(box, option.palette.base())
        if option.state & QStyle.StateFlag.State_Selected:
            painter.fillRect(box, theme.color("accent_soft"))
        elif option.state & QStyle.StateFlag.State_MouseOver:
            painter.fillRect(box, theme.color("hover"))
        bar = QRectF(box.left() + 4, box.center().y() - BAR_PIXELS / 2, BAR_ROOM, BAR_PIXELS)
        self._paint_heat(painter, bar, entry, model.hottest)
        words = box.adjusted(4 + BAR_ROOM + GAP, 0, -6, 0)
        words.setRight(self._paint_figures(painter, words, entry, model))
        self._paint_title(painter, words, entry)
        painter.restore()

    def _paint_heat(
        self, painter: QPainter, box: QRectF, entry: QueueEntry, hottest: float
    ) -> None:
        share = region.heat_share(entry.heat, hottest)
        colour = theme.between("heat_cold", "heat", share)
        painter.fillRect(box, theme.color("pressed"))
        filled = QRectF(box.left(), box.top(), max(3.0, box.width() * share), box.height())
        if entry.pointer is PointerKind.PLACEHOLDER:
            painter.fillRect(filled, theme.color("surface"))
            painter.setPen(QPen(colour, 1))
            painter.drawRect(filled.adjusted(0.5, 0.5, -0.5, -0.5))
        else:
            painter.fillRect(filled, colour)

    def _paint_figures(
        self, painter: QPainter, box: QRectF, entry: QueueEntry, model: QueueModel
    ) -> float:
        """Age, tokens and pin at the right; returns where they begin."""
        painter.setFont(theme.font(SMALL_PIXELS))
        painter.setPen(theme.color("muted"))
        flags = int(Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        right = box.right()
        columns = [(wording.number(entry.tokens), self._tokens_room)]
        if box.width() >= AGE_ROOM:
            columns.insert(0, (_age(entry, model), self._age_room))
        for text, room in columns:
            painter.drawText(
                QRectF(right - room - 1, box.top(), room + 1, box.height()), flags, text
            )
            right -= room + GAP
        if entry.pinned:
            right -= PICTURE_PIXELS
            self._paint_picture(
                painter, "pin", "heat_text", QRectF(right, box.top(), 0, ROW_PIXELS)
            )
            right -= 4
        return right

    def _paint_title(self, painter: QPainter, box: QRectF, entry: QueueEntry) -> None:
        self._paint_picture(painter, region.icon_name(entry.kind), "muted", box)
        box = box.adjusted(PICTURE_PIXELS + 6, 0, 0, 0)
        font = theme.font()
        font.setItalic(entry.pointer is PointerKind.PLACEHOLDER)
        painter.setFont(font)
        painter.setPen(theme.color("text"))
        title = QFontMetrics(font).elidedText(
            name_of(entry.title, entry.kind, TITLE_CHARACTERS),
            Qt.TextElideMode.ElideRight,
            max(0, int(box.width())),
        )
        flags = int(Qt.AlignmentFlag.AlignLeft | Qt.AlignmentFlag.AlignVCenter)
        painter.drawText(box, flags, title)

    def _paint_picture(self, painter: QPainter, name: str, tint: str, box: QRectF) -> None:
        top = int(box.center().y() - PICTURE_PIXELS / 2)
        icon(name, tint).paint(painter, int(box.left()), top, PICTURE_PIXELS, PICTURE_PIXELS)


def _age(entry: QueueEntry, model: QueueModel) -> str:
    return wording.age(entry.loaded_at_ms, model.now_ms)
