"""Line icons (Lucide, `resources/icons`), drawn in the colours of the theme. GUI thread."""

from __future__ import annotations

from functools import cache

from PySide6.QtCore import QByteArray, QRectF, Qt
from PySide6.QtGui import QIcon, QPainter, QPixmap
from PySide6.QtSvg import QSvgRenderer

from growbox_app.paths import resources_path
from ui.theme import theme

_SIZES = (16, 20, 32, 40)


@cache
def _source(name: str) -> str:
    return (resources_path() / "icons" / f"{name}.svg").read_text(encoding="utf-8")


@cache
def _drawn(name: str, color: str) -> QIcon:
    renderer = QSvgRenderer(QByteArray(_source(name).replace("currentColor", color).encode()))
    icon = QIcon()
    for size in _SIZES:
        pixmap = QPixmap(size, size)
        pixmap.fill(Qt.GlobalColor.transparent)
        painter = QPainter(pixmap)
        renderer.render(painter, QRectF(0, 0, size, size))
        painter.end()
        icon.addPixmap(pixmap)
    return icon


def icon(name: str, tint: str = "muted") -> QIcon:
    """The icon `resources/icons/<name>.svg` in the colour of a theme token."""
    return _drawn(name, theme.hex(tint))


def application_icon() -> QIcon:
    """GrowBox's own icon."""
    return QIcon(str(resources_path() / "icons" / "growbox.svg"))
