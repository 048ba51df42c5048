"""Colours: both themes have the same names, every pair is readable, nothing else names a colour."""

import re
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication

from growbox_app.paths import resources_path
from ui.icons import icon
from ui.theme import CONTRAST_PAIRS, THEMES, contrast, load_colors, theme

ROOT = Path(__file__).resolve().parents[2]
DESIGN = {
    "light": {
        "surface": "#FFFFFF",
        "surface_alt": "#F6F7F6",
        "line": "#E3E6E3",
        "text": "#1D211E",
        "muted": "#667069",
        "accent": "#2E7D4F",
    },
    "dark": {
        "surface": "#151816",
        "surface_alt": "#1C201D",
        "line": "#2B312D",
        "text": "#E4E8E5",
        "muted": "#8F9A93",
        "accent": "#5FBF85",
    },
}
SHARED = {"stain_deep": "#1F6B42", "stain_light": "#9BD3B0", "heat": "#C98A1B", "danger": "#B3372F"}


def test_contrast_is_computed_as_wcag_does() -> None:
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21.0)
    assert contrast("#777777", "#FFFFFF") == pytest.approx(4.48, abs=0.01)


@pytest.mark.parametrize("name", THEMES)
@pytest.mark.parametrize(("front", "back", "least"), CONTRAST_PAIRS)
def test_every_pair_is_readable(name: str, front: str, back: str, least: float) -> None:
    colors = load_colors(name)
    assert contrast(colors[front], colors[back]) >= least, f"{front} on {back} in {name}"


@pytest.mark.parametrize("name", THEMES)
def test_the_colours_are_those_of_the_design(name: str) -> None:
    colors = load_colors(name)
    for token, value in {**DESIGN[name], **SHARED}.items():
        assert colors[token] == value


def test_both_themes_have_the_same_names() -> None:
    assert set(load_colors("light")) == set(load_colors("dark"))


def test_no_widget_names_a_colour() -> None:
    pattern = re.compile(r"#[0-9A-Fa-f]{6}\b|Qt\.GlobalColor\.(?!transparent)")
    found = [
        path.name
        for path in (ROOT / "ui").rglob("*.py")
        if pattern.search(path.read_text(encoding="utf-8"))
    ]
    assert found == []
    assert not re.search(
        r"#[0-9A-Fa-f]{6}\b",
        (resources_path() / "themes" / "window.qss").read_text(encoding="utf-8"),
    )


def test_every_text_colour_in_the_style_sheet_is_a_checked_pair() -> None:
    sheet = (resources_path() / "themes" / "window.qss").read_text(encoding="utf-8")
    used = set(re.findall(r"(?<![-\w])color: \$(\w+)", sheet))
    assert used <= {front for front, _back, _least in CONTRAST_PAIRS}


def test_every_icon_named_in_the_code_exists(qapp: QApplication) -> None:
    theme.use("light")
    names: set[str] = set()
    for path in (ROOT / "ui").rglob("*.py"):
        text = path.read_text(encoding="utf-8")
        names |= set(re.findall(r'icon_name="([a-z-]+)"', text))
        names |= set(re.findall(r'IconButton\(\s*"([a-z-]+)"', text))
        names |= set(re.findall(r'\bicon\(\s*"([a-z-]+)"', text))
    assert len(names) > 15
    for name in names | {"pin-off", "cpu", "message-square", "circle-alert"}:
        assert not icon(name).isNull(), name
        assert icon(name).availableSizes()


@pytest.mark.parametrize("name", THEMES)
def test_a_theme_applies_palette_and_style_sheet(qapp: QApplication, name: str) -> None:
    theme.use("dark" if name == "light" else "light")
    seen: list[str] = []
    theme.changed.connect(lambda: seen.append(theme.name))
    theme.use(name)
    assert seen == [name]
    assert qapp.palette().window().color().name().upper() == load_colors(name)["surface_alt"]
    assert "$" not in qapp.styleSheet().split("*/", 1)[1]
