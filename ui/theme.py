"""Colours and fonts: reads `resources/themes/*.toml`, makes the palette and the style sheet, and says when they change.

Nothing else in the window names a colour. Lives on the GUI thread.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from string import Template

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtGui import QColor, QFont, QFontDatabase, QGuiApplication, QPalette
from PySide6.QtWidgets import QApplication

from growbox_app.paths import resources_path

THEMES = ("light", "dark")
UI_PIXELS = 13
CODE_PIXELS = 13
SMALL_PIXELS = 11
TITLE_PIXELS = 15
# Bitmap-era fallbacks that fontconfig answers with when the desktop names no font; a better installed family is preferred to them.
_LAST_RESORT = ("dejavu sans", "bitstream vera sans", "sans serif", "sans", "nimbus sans")
_BETTER = ("Inter", "Noto Sans", "Cantarell", "Ubuntu", "Noto Sans CJK SC")
_MONOSPACE = ("JetBrains Mono", "Cascadia Code", "SF Mono", "Menlo", "Consolas", "Noto Sans Mono")
_CJK = ("Noto Sans CJK SC", "PingFang SC", "Microsoft YaHei UI", "Source Han Sans SC")

# (foreground, background, least contrast): every pair that the window uses. A test computes them for each theme.
CONTRAST_PAIRS: tuple[tuple[str, str, float], ...] = (
    *(
        ("text", ground, 4.5)
        for ground in ("surface", "surface_alt", "hover", "pressed", "accent_soft", "selection")
    ),
    *(("muted", ground, 4.5) for ground in ("surface", "surface_alt")),
    *(("link", ground, 4.5) for ground in ("surface", "surface_alt", "accent_soft")),
    *(("heat_text", ground, 4.5) for ground in ("surface", "surface_alt")),
    *(("danger_text", ground, 4.5) for ground in ("surface", "surface_alt")),
    ("on_accent", "accent", 4.5),
    ("on_accent", "accent_hover", 4.5),
    ("on_danger", "danger", 4.5),
    *(
        (f"code_{kind}", "surface_alt", 4.5)
        for kind in ("keyword", "string", "number", "comment", "name", "builtin")
    ),
    *((mark, ground, 3.0) for mark in ("accent", "edge") for ground in ("surface", "surface_alt")),
)


@cache
def load_colors(theme: str) -> Mapping[str, str]:
    """Token name → `#RRGGBB` of a theme."""
    path = resources_path() / "themes" / f"{theme}.toml"
    colors: dict[str, str] = tomllib.loads(path.read_text(encoding="utf-8"))["colors"]
    return colors


def contrast(foreground: str, background: str) -> float:
    """Contrast ratio of two colours, 1..21. Source: WCAG 2.2, "relative luminance"."""
    lighter, darker = sorted((_luminance(foreground), _luminance(background)), reverse=True)
    return (lighter + 0.05) / (darker + 0.05)


def _luminance(color: str) -> float:
    channels = [int(color[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    red, green, blue = (
        value / 12.92 if value <= 0.04045 else ((value + 0.055) / 1.055) ** 2.4
        for value in channels
    )
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def system_theme() -> str:
    """`dark` where the desktop asks for it, else `light`."""
    return "dark" if QGuiApplication.styleHints().colorScheme() == Qt.ColorScheme.Dark else "light"


class Theme(QObject):
    """The colours in force. `changed` fires after palette and style sheet were applied."""

    changed = Signal()

    def __init__(self) -> None:
        super().__init__()
        self.choice = "system"
        self.name = "light"
        self.conversation_pixels = TITLE_PIXELS
        self._families: tuple[list[str], list[str]] = ([], [])
        self._applied: tuple[str, int] | None = None

    def use(self, choice: str, *, conversation_pixels: int | None = None) -> bool:
        """Applies `light`, `dark` or `system`, and the text size of the conversation.

        Nothing happens when both are in force: a style sheet costs a walk over every widget.

        Returns:
            Whether something changed; `changed` was then emitted.
        """
        self.choice = choice
        self.name = system_theme() if choice == "system" else choice
        if conversation_pixels is not None:
            self.conversation_pixels = conversation_pixels
        self._families = (_interface_families(), _code_families())
        wanted = (self.name, self.conversation_pixels)
        if wanted == self._applied:
            return False
        self._applied = wanted
        application = QApplication.instance()
        assert isinstance(application, QApplication)
        application.setFont(self.font())
        application.setPalette(self._palette())
        application.setStyleSheet(_style_sheet(self.name))
        self.changed.emit()
        return True

    def follow_system(self) -> None:
        """Re-applies the theme whenever the desktop switches between light and dark."""
        QGuiApplication.styleHints().colorSchemeChanged.connect(self._system_changed)

    def _system_changed(self) -> None:
        if self.choice == "system" and system_theme() != self.name:
            self.use("system")

    def hex(self, token: str) -> str:
        """The colour of a token as `#RRGGBB`."""
        return load_colors(self.name)[token]

    def color(self, token: str) -> QColor:
        """The colour of a token."""
        return QColor(self.hex(token))

    def between(self, first: str, second: str, share: float) -> QColor:
        """The colour that stands `share` of the way from one token to another."""
        start, end = self.color(first), self.color(second)
        return QColor.fromRgbF(
            start.redF() + (end.redF() - start.redF()) * share,
            start.greenF() + (end.greenF() - start.greenF()) * share,
            start.blueF() + (end.blueF() - start.blueF()) * share,
        )

    def font(self, pixels: int = UI_PIXELS, *, bold: bool = False) -> QFont:
        """The interface font, with CJK fallback."""
        font = QFont(self._families[0])
        font.setPixelSize(pixels)
        if bold:
            font.setWeight(QFont.Weight.DemiBold)
        return font

    def code_font(self, pixels: int = CODE_PIXELS) -> QFont:
        """The monospace font, with CJK fallback."""
        font = QFont(self._families[1])
        font.setPixelSize(pixels)
        font.setStyleHint(QFont.StyleHint.Monospace)
        return font

    def _palette(self) -> QPalette:
        palette = QPalette()
        roles = {
            QPalette.ColorRole.Window: "surface_alt",
            QPalette.ColorRole.WindowText: "text",
            QPalette.ColorRole.Base: "surface",
            QPalette.ColorRole.AlternateBase: "surface_alt",
            QPalette.ColorRole.Text: "text",
            QPalette.ColorRole.Button: "surface_alt",
            QPalette.ColorRole.ButtonText: "text",
            QPalette.ColorRole.ToolTipBase: "surface",
            QPalette.ColorRole.ToolTipText: "text",
            QPalette.ColorRole.PlaceholderText: "muted",
            QPalette.ColorRole.Highlight: "selection",
            QPalette.ColorRole.HighlightedText: "text",
            QPalette.ColorRole.Link: "link",
            QPalette.ColorRole.LinkVisited: "link",
            QPalette.ColorRole.Light: "surface",
            QPalette.ColorRole.Midlight: "hover",
            QPalette.ColorRole.Mid: "line",
            QPalette.ColorRole.Dark: "edge",
            QPalette.ColorRole.Shadow: "edge",
            QPalette.ColorRole.Accent: "accent",
        }
        for role, token in roles.items():
            palette.setColor(role, self.color(token))
        for role in (
            QPalette.ColorRole.Text,
            QPalette.ColorRole.ButtonText,
            QPalette.ColorRole.WindowText,
        ):
            palette.setColor(QPalette.ColorGroup.Disabled, role, self.color("muted"))
        return palette


@cache
def _interface_families() -> list[str]:
    system = QFontDatabase.systemFont(QFontDatabase.SystemFont.GeneralFont).family()
    installed = set(QFontDatabase.families())
    better = [family for family in _BETTER if family in installed]
    if system.lower() in _LAST_RESORT and better:
        system = better[0]
    return list(dict.fromkeys([system, *(family for family in _CJK if family in installed)]))


@cache
def _code_families() -> list[str]:
    installed = set(QFontDatabase.families())
    system = QFontDatabase.systemFont(QFontDatabase.SystemFont.FixedFont).family()
    chosen = next((family for family in _MONOSPACE if family in installed), system)
    fallback = [family for family in ("Noto Sans Mono CJK SC", *_CJK) if family in installed]
    return list(dict.fromkeys([chosen, *fallback]))


def _style_sheet(name: str) -> str:
    folder = resources_path() / "themes"
    template = Template((folder / "window.qss").read_text(encoding="utf-8"))
    return template.substitute(load_colors(name), folder=folder.as_posix(), theme=name)


theme = Theme()
