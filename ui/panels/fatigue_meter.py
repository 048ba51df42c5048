"""The fatigue meter: one gauge of three weighted parts, what the background does about it, the parts in words, the last day as a line."""

from __future__ import annotations

from PySide6.QtCore import QPointF, QRectF, QSize, Qt, Signal
from PySide6.QtGui import (
    QBrush,
    QPainter,
    QPaintEvent,
    QPen,
    QPolygonF,
)
from PySide6.QtWidgets import QFrame, QGridLayout, QScrollArea, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from growbox_app.text import tr
from memory.values import FatigueSnapshot
from ui.panels.controls import QuietLabel
from ui.panels.rest_controls import RestControls
from ui.theme import theme
from ui.view_models import wording
from ui.view_models.fatigue import mood, shares

GAUGE_PIXELS = 14
HISTORY_PIXELS = 44
_LOOKS = (
    ("heat", None),
    ("heat", Qt.BrushStyle.BDiagPattern),
    ("heat", Qt.BrushStyle.Dense5Pattern),
)


class FatigueGauge(QWidget):
    """The total, made of its three parts, on a scale of 0 to 1 with the mark where sleep begins."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.snapshot: FatigueSnapshot | None = None
        self.setFixedHeight(GAUGE_PIXELS)
        self.setSizePolicy(QSizePolicy.Policy.Expanding, QSizePolicy.Policy.Fixed)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        frame = QRectF(0.5, 0.5, self.width() - 1, GAUGE_PIXELS - 1)
        painter.fillRect(frame, theme.color("hover"))
        left = 0.0
        for share, (token, pattern) in zip(
            shares(self.snapshot) if self.snapshot else (), _LOOKS, strict=False
        ):
            box = QRectF(left, 0, share.added * self.width(), GAUGE_PIXELS)
            painter.fillRect(box, theme.color(token))
            if pattern is not None:
                painter.fillRect(box, QBrush(theme.color("text"), pattern))
            left += box.width()
        painter.setPen(QPen(theme.color("edge"), 1))
        painter.drawRect(frame)
        middle = self.width() * 0.5
        painter.drawLine(QPointF(middle, 0), QPointF(middle, GAUGE_PIXELS))


class FatigueHistory(QWidget):
    """The total over time."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.history: tuple[tuple[int, float], ...] = ()
        self.setMinimumHeight(HISTORY_PIXELS)
        self.setMaximumHeight(HISTORY_PIXELS * 2)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        box = QRectF(self.rect()).adjusted(1, 3, -1, -3)
        painter.setPen(QPen(theme.color("line"), 1))
        for level in (0.0, 0.5, 1.0):
            y = box.bottom() - level * box.height()
            painter.drawLine(QPointF(box.left(), y), QPointF(box.right(), y))
        if len(self.history) < 2:
            return
        first, last = self.history[0][0], self.history[-1][0]
        span = max(1, last - first)
        points = [
            QPointF(
                box.left() + (at - first) / span * box.width(), box.bottom() - total * box.height()
            )
            for at, total in self.history
        ]
        painter.setPen(QPen(theme.color("heat"), 2))
        painter.drawPolyline(QPolygonF(points))


class FatiguePanel(QWidget):
    """Gauge, what comes next and the buttons, parts, history.

    Signals: `summary_changed(str)`.
    """

    summary_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: FatigueSnapshot | None = None
        self._total = ""
        self.gauge = FatigueGauge()
        self.rest = RestControls()
        self.history = FatigueHistory()
        self._note = QuietLabel()
        self._note.setWordWrap(True)
        self._names = [QuietLabel() for _share in range(3)]
        self._values = [QuietLabel(look="") for _share in range(3)]
        grid = QGridLayout()
        grid.setHorizontalSpacing(12)
        grid.setVerticalSpacing(2)
        grid.setColumnStretch(0, 1)
        for row, (name, value) in enumerate(zip(self._names, self._values, strict=True)):
            grid.addWidget(name, row, 0)
            grid.addWidget(value, row, 1, Qt.AlignmentFlag.AlignRight)
        inner = QWidget()
        inner.setObjectName("fatigue_inner")
        column = QVBoxLayout(inner)
        column.setContentsMargins(12, 2, 12, 8)
        column.setSpacing(6)
        column.addWidget(self.gauge)
        column.addWidget(self.rest)
        column.addLayout(grid)
        column.addWidget(self.history, 1)
        column.addWidget(self._note)
        column.addStretch(1)
        scroll = QScrollArea()
        scroll.setFrameShape(QFrame.Shape.NoFrame)
        scroll.setWidgetResizable(True)
        scroll.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        scroll.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        scroll.setWidget(inner)
        scroll.viewport().setAutoFillBackground(False)
        inner.setAutoFillBackground(False)
        whole = QVBoxLayout(self)
        whole.setContentsMargins(0, 0, 0, 0)
        whole.addWidget(scroll)
        self.setFocusProxy(self.rest.dream_button)
        self.retranslate()

    def show_snapshot(self, snapshot: FatigueSnapshot) -> None:
        """Shows another state."""
        if snapshot != self._snapshot:
            self._snapshot = snapshot
            self.gauge.snapshot = snapshot
            self.history.history = snapshot.history
            self.retranslate()
            self.restyle()

    def total_text(self) -> str:
        """The total in words."""
        return self._total

    def retranslate(self) -> None:
        """Says everything again."""
        self.gauge.setAccessibleName(tr("panel.fatigue"))
        self.history.setAccessibleName(tr("fatigue.history"))
        self.history.setToolTip(tr("fatigue.history"))
        snapshot = self._snapshot
        if snapshot is None:
            return
        self._total = f"{snapshot.total:.2f} · {tr(f'fatigue.{mood(snapshot.total)}')}"
        self.summary_changed.emit(self._total)
        self.gauge.setAccessibleDescription(self._total)
        self.gauge.setToolTip(tr("fatigue.help"))
        for share, name, value in zip(shares(snapshot), self._names, self._values, strict=True):
            name.setText(tr(f"fatigue.{share.name}"))
            value.setText(f"{share.weight:.1f} × {share.value:.2f}")
        self._note.setText(
            wording.counted("fatigue.accesses", snapshot.accesses)
            if snapshot.accesses
            else tr("fatigue.none")
        )

    def restyle(self) -> None:
        """Paints again."""
        self.gauge.update()
        self.history.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(290, 170)
