"""A dock with a flat title bar: name at the left, close at the right. Dragging and tabbing are Qt's own."""

from __future__ import annotations

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QDockWidget, QHBoxLayout, QWidget

from growbox_app.text import tr
from ui.panels.controls import ElidedLabel, IconButton, QuietLabel


class PanelDock(QDockWidget):
    """One of the movable panels. `key` names its title in the translations and its place in the kept layout."""

    def __init__(self, key: str, panel: QWidget) -> None:
        super().__init__()
        self._key = key
        self._figure = ""
        self._summary = ElidedLabel(look="quiet")
        self.setObjectName(f"dock_{key}")
        self.setAllowedAreas(Qt.DockWidgetArea.AllDockWidgetAreas)
        self.setWidget(panel)
        self._title = QuietLabel(look="section")
        self._close = IconButton("x", "dock.close")
        self._close.clicked.connect(self.close)
        bar = QWidget()
        row = QHBoxLayout(bar)
        row.setContentsMargins(12, 4, 4, 2)
        row.setSpacing(8)
        row.addWidget(self._title)
        row.addWidget(self._summary, 1)
        row.addWidget(self._close)
        self.setTitleBarWidget(bar)
        self.retranslate()

    @property
    def key(self) -> str:
        """The panel's name in the translations."""
        return self._key

    def show_figure(self, figure: str) -> None:
        """Adds a number to the title, so that a tabbed panel still says it."""
        if figure != self._figure:
            self._figure = figure
            self.retranslate()

    def show_summary(self, text: str) -> None:
        """Says the panel's state in the title bar."""
        self._summary.say(text)

    def summary(self) -> str:
        """The panel's state in the title bar."""
        return self._summary.text()

    def show_tabbed(self, *, tabbed: bool) -> None:
        """Leaves the name to the tab where there is one."""
        self._title.setVisible(not tabbed)

    def retranslate(self) -> None:
        """Says the title again."""
        name = tr(f"panel.{self._key}")
        self.setWindowTitle(f"{name} {self._figure}".strip())
        self._title.setText(name)
        self.setAccessibleName(name)
        self._close.setAccessibleName(tr("dock.close_named", name=name))
