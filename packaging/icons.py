"""Draws GrowBox's icons in all sizes: `python packaging/icons.py OUT_FOLDER`, with the Python of the set-up (it needs Qt).

Writes `growbox-<size>.png` and `growbox-document-<size>.png`, `growbox.ico` for Windows and `growbox.icns` for macOS, from the two SVG files in
resources/icons. Off screen; no display is needed.

Source of the containers: Microsoft, "Icons" (ICONDIR, PNG entries since Windows Vista); Apple, "Icon Composer" types ic07 to ic14.
"""

from __future__ import annotations

import os
import struct
import sys
from collections.abc import Mapping
from pathlib import Path

ICONS = Path(__file__).resolve().parent.parent / "resources" / "icons"
NAMES = ("growbox", "growbox-document")
SIZES = (16, 20, 24, 32, 40, 48, 64, 96, 128, 256, 512, 1024)
ICO_SIZES = (16, 20, 24, 32, 40, 48, 64, 96, 128, 256)
# The type names the size in points; 11 to 14 are the doubled ones, for screens with two pixels a point.
ICNS_TYPES = (
    ("icp4", 16),
    ("icp5", 32),
    ("ic11", 32),
    ("ic12", 64),
    ("ic07", 128),
    ("ic13", 256),
    ("ic08", 256),
    ("ic14", 512),
    ("ic09", 512),
    ("ic10", 1024),
)


def draw(svg: Path) -> dict[int, bytes]:
    """PNG files of an SVG file, by size in pixels."""
    from PySide6.QtCore import QBuffer, QByteArray, QIODevice, QRectF, Qt
    from PySide6.QtGui import QImage, QImageWriter, QPainter
    from PySide6.QtSvg import QSvgRenderer

    renderer = QSvgRenderer(str(svg))
    if not renderer.isValid():
        raise ValueError(f"{svg} cannot be drawn")
    drawn: dict[int, bytes] = {}
    for size in SIZES:
        image = QImage(size, size, QImage.Format.Format_ARGB32_Premultiplied)
        image.fill(Qt.GlobalColor.transparent)
        painter = QPainter(image)
        painter.setRenderHint(QPainter.RenderHint.Antialiasing)
        renderer.render(painter, QRectF(0, 0, size, size))
        painter.end()
        buffer = QBuffer()
        buffer.open(QIODevice.OpenModeFlag.WriteOnly)
        QImageWriter(buffer, QByteArray(b"PNG")).write(image)
        drawn[size] = bytes(buffer.data().data())
    return drawn


def ico(pictures: Mapping[int, bytes]) -> bytes:
    """A Windows icon file of PNG entries."""
    offset = 6 + 16 * len(ICO_SIZES)
    entries = b""
    for size in ICO_SIZES:
        edge = size % 256  # 0 stands for 256
        length = len(pictures[size])
        entries += struct.pack("<BBBBHHII", edge, edge, 0, 0, 1, 32, length, offset)
        offset += length
    header = struct.pack("<HHH", 0, 1, len(ICO_SIZES))
    return header + entries + b"".join(pictures[size] for size in ICO_SIZES)


def icns(pictures: Mapping[int, bytes]) -> bytes:
    """A macOS icon file of PNG entries."""
    body = b"".join(
        kind.encode() + struct.pack(">I", 8 + len(pictures[size])) + pictures[size]
        for kind, size in ICNS_TYPES
    )
    return b"icns" + struct.pack(">I", 8 + len(body)) + body


def main(arguments: list[str]) -> int:
    """Draws everything into the folder."""
    if len(arguments) != 1:
        sys.stderr.write("usage: python packaging/icons.py OUT_FOLDER\n")
        return 2
    os.environ["QT_QPA_PLATFORM"] = "offscreen"
    from PySide6.QtGui import QGuiApplication

    application = QGuiApplication(sys.argv[:1])
    folder = Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    for name in NAMES:
        pictures = draw(ICONS / f"{name}.svg")
        for size, picture in pictures.items():
            (folder / f"{name}-{size}.png").write_bytes(picture)
        (folder / f"{name}.ico").write_bytes(ico(pictures))
        (folder / f"{name}.icns").write_bytes(icns(pictures))
    application.quit()
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
