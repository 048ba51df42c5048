"""The context region: the window as a strip to scale, its figures, and the same blocks as a list for the keyboard."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtWidgets import (
    QHeaderView,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.text import tr
from memory.values import RegionBlock, RegionSnapshot
from ui.icons import icon
from ui.panels.controls import ICON_PIXELS, ElidedLabel, QuietLabel
from ui.panels.region_strip import RegionStrip
from ui.theme import contrast, theme
from ui.view_models import region, wording
from ui.view_models.block_words import name_of

# Source: WCAG 2.2, 1.4.11.
ICON_CONTRAST = 3.0


def _tint(kind: str) -> str:
    """The colour of a kind's icon: that of the strip where it can be seen on the panel."""
    token = region.color_token(kind)
    seen = contrast(theme.hex(token), theme.hex("surface_alt")) >= ICON_CONTRAST
    return token if seen else "muted"


class ContextRegionPanel(QWidget):
    """Strip, figures and list.

    Signals: `source_wanted(NodeId)`, `summary_changed(str)`.
    """

    source_wanted = Signal(object)
    summary_changed = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._snapshot: RegionSnapshot | None = None
        self._listed: tuple[str, str, RegionSnapshot] | None = None
        self.strip = RegionStrip()
        self._figures = ""
        self._reuse = ElidedLabel(look="quiet")
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

    def show_snapshot(self, snapshot: RegionSnapshot, now_ms: int) -> None:
        """Shows another state."""
        self.strip.now_ms = now_ms
        if snapshot == self._snapshot:
            return
        self._snapshot = snapshot
        self.strip.show_snapshot(snapshot)
        self.retranslate()

    def show_unread(self, unread: int | None) -> None:
        """Shows how much the running turn has to read; None when no turn runs."""
        self.strip.show_unread(unread)

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
            self._reuse.say("")
            self._empty.setText(tr("region.none"))
            self._empty.show()
            self.list.hide()
            self.strip.hide()
            return
        self.strip.show()
        used, window = wording.number(snapshot.used_tokens), wording.number(snapshot.window_tokens)
        self._figures = tr("region.used", used=used, window=window)
        self.summary_changed.emit(self._figures)
        self._reuse.say(self._reuse_words(snapshot))
        self.strip.setAccessibleDescription(f"{self._figures}. {self._reuse.text()}")
        self._empty.setText(tr("region.empty"))
        self._empty.setVisible(not snapshot.blocks)
        self.list.setVisible(bool(snapshot.blocks))
        if self._listed != (tr.language, theme.name, snapshot):
            self._listed = (tr.language, theme.name, snapshot)
            self._fill_list(snapshot)

    def _reuse_words(self, snapshot: RegionSnapshot) -> str:
        parts = [tr("region.share_used", share=wording.percent(region.used_share(snapshot)))]
        if snapshot.prompt_tokens:
            parts.append(tr("region.reused", share=wording.percent(region.reused_share(snapshot))))
        if snapshot.evictions:
            parts.append(tr("region.evictions", count=wording.number(snapshot.evictions)))
        # Last, for it is always the same, and a narrow panel cuts the line.
        parts.append(tr("region.reserve", count=wording.number(snapshot.reserve_tokens)))
        return " · ".join(parts)

    def _fill_list(self, snapshot: RegionSnapshot) -> None:
        row = self.list.currentIndex().row()
        self.list.clear()
        for part in region.parts(snapshot):
            if part.block is not None:
                self.list.addTopLevelItem(self._item(part, part.block))
        if 0 <= row < self.list.topLevelItemCount():
            self.list.setCurrentIndex(self.list.model().index(row, 0))

    def _item(self, part: region.Part, shown: RegionBlock) -> QTreeWidgetItem:
        item = QTreeWidgetItem([name_of(shown.title, part.kind, 80), wording.number(part.tokens)])
        name = "pin" if shown.pinned else region.icon_name(part.kind)
        item.setIcon(0, icon(name, _tint(part.kind)))
        item.setData(0, Qt.ItemDataRole.UserRole, shown)
        item.setTextAlignment(1, Qt.AlignmentFlag.AlignRight | Qt.AlignmentFlag.AlignVCenter)
        item.setForeground(1, theme.color("muted"))
        words = self.strip.describe(part)
        for column in (0, 1):
            item.setToolTip(column, words)
            item.setData(column, Qt.ItemDataRole.AccessibleTextRole, words.replace("\n", ", "))
        return item

    def restyle(self) -> None:
        """Draws the icons again."""
        self.retranslate()

    def _open(self, shown: RegionBlock) -> None:
        self.source_wanted.emit(shown.block.node_id)

    @override
    def sizeHint(self) -> QSize:
        return QSize(290, 210)
