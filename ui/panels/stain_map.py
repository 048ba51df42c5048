"""The stain map: how thoroughly the past was read. Band, legend, zoom buttons, and the words for what is under the mouse or the mark."""

from __future__ import annotations

from PySide6.QtCore import QRectF, QSize, Qt, Signal
from PySide6.QtGui import QPainter, QPaintEvent, QPen
from PySide6.QtWidgets import QHBoxLayout, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from growbox_app.text import tr
from memory.values import Depth, StainSnapshot
from ui.panels.controls import IconButton, QuietLabel
from ui.panels.stain_band import StainBand, paint_stain
from ui.theme import theme
from ui.view_models import stains

SWATCH_SIZE = QSize(16, 14)
LEGEND: tuple[Depth | None, ...] = (Depth.DEEP, Depth.LIGHT, None)


class Swatch(QWidget):
    """A small piece of band, beside its name in the legend."""

    def __init__(self, depth: Depth | None, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._depth = depth
        self.setFixedSize(SWATCH_SIZE)

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        painter = QPainter(self)
        box = QRectF(self.rect())
        paint_stain(painter, box, None)
        paint_stain(painter, box, self._depth)
        painter.setPen(QPen(theme.color("edge"), 1))
        painter.drawRect(box.adjusted(0.5, 0.5, -0.5, -0.5))


class StainMapPanel(QWidget):
    """Band, buttons, legend.

    Signals: `note_chosen(int seq)`, `summary_changed(str)`.
    """

    note_chosen = Signal(int)
    summary_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: StainSnapshot | None = None
        self.band = StainBand()
        self.out_button = IconButton("zoom-out", "stains.zoom_out")
        self.in_button = IconButton("zoom-in", "stains.zoom_in")
        self.all_button = IconButton("move-horizontal", "stains.show_all")
        self.setFocusProxy(self.band)
        self._words = QuietLabel(look="")
        self._words.setWordWrap(True)
        self._words.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._words.setSizePolicy(QSizePolicy.Policy.Preferred, QSizePolicy.Policy.Ignored)
        self._empty = QuietLabel()
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._names: dict[Depth | None, QuietLabel] = {}
        self._shown = QWidget()
        inner = QVBoxLayout(self._shown)
        inner.setContentsMargins(0, 0, 0, 0)
        inner.setSpacing(4)
        inner.addWidget(self.band)
        inner.addLayout(self._make_tools())
        inner.addWidget(self._words, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 2, 12, 6)
        column.setSpacing(4)
        column.addWidget(self._shown, 1)
        column.addWidget(self._empty, 1)
        self._connect()
        self.retranslate()

    def _make_tools(self) -> QHBoxLayout:
        row = QHBoxLayout()
        row.setContentsMargins(0, 0, 0, 0)
        row.setSpacing(4)
        for depth in LEGEND:
            self._names[depth] = QuietLabel()
            row.addWidget(Swatch(depth))
            row.addWidget(self._names[depth])
            row.addSpacing(2)
        row.addStretch(1)
        for button in (self.out_button, self.in_button, self.all_button):
            row.addWidget(button)
        return row

    def _connect(self) -> None:
        band = self.band
        self.out_button.clicked.connect(lambda: band.zoom(1 / stains.ZOOM_STEP))
        self.in_button.clicked.connect(lambda: band.zoom(stains.ZOOM_STEP))
        self.all_button.clicked.connect(band.show_all)
        band.note_chosen.connect(self.note_chosen)
        band.said.connect(self._say)
        band.view_changed.connect(self._view_changed)

    def show_snapshot(self, snapshot: StainSnapshot, now_ms: int) -> None:
        """Shows another state."""
        self.band.now_ms = now_ms
        if snapshot != self._snapshot:
            self._snapshot = snapshot
            self.band.show_snapshot(snapshot)
            self.retranslate()

    def words(self) -> str:
        """What is said about the place under the mouse or the mark."""
        return self._words.text()

    def _say(self, words: str) -> None:
        spans = bool(self._snapshot and self._snapshot.spans)
        self._words.setText(words or tr("stains.hint" if spans else "stains.nothing_read"))

    def _view_changed(self) -> None:
        view = self.band.view
        for button in (self.out_button, self.all_button):
            button.setEnabled(view is not None and not view.whole)

    def retranslate(self) -> None:
        """Says everything again."""
        for depth, label in self._names.items():
            label.setText(tr(f"stains.name_{depth or 'none'}"))
            label.setToolTip(tr(f"stains.{depth or 'none'}"))
        self.band.setAccessibleName(tr("panel.stains"))
        snapshot = self._snapshot
        filled = snapshot is not None and snapshot.nodes > 0
        self._empty.setText(tr("stains.empty"))
        self._empty.setVisible(not filled)
        self._shown.setVisible(filled)
        self.summary_changed.emit(stains.summary(snapshot) if snapshot else "")
        self._say(self.band.words_at(self.band.mark))
        self._view_changed()
        self.band.update()

    def restyle(self) -> None:
        """Paints the band again."""
        self.band.update()

    @override
    def sizeHint(self) -> QSize:
        return QSize(290, 170)
