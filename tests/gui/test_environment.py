"""What is decided before Qt starts."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import QCoreApplication
from PySide6.QtWidgets import QApplication

from growbox_app.text import LANGUAGES
from ui.environment import has_display, prepare_input_method, qt_input_contexts
from ui.qt_language import use_qt_language

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", False),
        ({"DISPLAY": ":0"}, "linux", True),
        ({"WAYLAND_DISPLAY": "wayland-0"}, "linux", True),
        ({"QT_QPA_PLATFORM": "offscreen"}, "linux", True),
        ({"QT_QPA_PLATFORM": "xcb"}, "linux", False),
        ({}, "darwin", True),
        ({}, "win32", True),
    ],
)
def test_a_display_is_found_by_its_variables(
    environment: dict[str, str], platform: str, expected: bool
) -> None:
    assert has_display(environment, platform) is expected


def test_fcitx_without_a_plugin_speaks_ibus() -> None:
    for key in ("XMODIFIERS", "GTK_IM_MODULE", "QT_IM_MODULE"):
        environment = {key: "@im=fcitx" if key == "XMODIFIERS" else "fcitx5"}
        assert prepare_input_method(environment, ("libibusplatforminputcontextplugin.so",))
        assert environment["QT_IM_MODULE"] == "ibus"


def test_other_input_methods_are_left_alone() -> None:
    environment = {"QT_IM_MODULE": "ibus"}
    assert not prepare_input_method(environment, ())
    assert environment == {"QT_IM_MODULE": "ibus"}
    with_plugin = {"QT_IM_MODULE": "fcitx"}
    assert not prepare_input_method(with_plugin, ("libfcitx5platforminputcontextplugin.so",))
    assert with_plugin == {"QT_IM_MODULE": "fcitx"}


def test_the_plugins_of_this_qt_are_seen() -> None:
    if sys.platform == "linux":
        assert any("ibus" in name for name in qt_input_contexts())


def test_without_a_display_the_program_says_so_and_points_to_ask(tmp_path: Path) -> None:
    if sys.platform in ("win32", "darwin"):
        pytest.skip("always has a display")
    bare = {
        key: value
        for key, value in os.environ.items()
        if key not in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM")
    }
    environment = {**bare, "GROWBOX_DATA_DIR": str(tmp_path), "LC_ALL": "C.UTF-8"}
    ended = subprocess.run(
        [sys.executable, "-m", "ui.main"],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ended.returncode == 2
    assert " ask " in ended.stderr
    assert len(ended.stderr.strip().splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_the_entry_module_imports_nothing_heavy() -> None:
    code = "import ui.main, sys; print([m for m in ('PySide6', 'qasync', 'chromadb', 'growbox_app.assistant') if m in sys.modules])"
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout.strip() == "[]"


def test_a_window_that_starts_waits_for_no_import_of_a_turn(tmp_path: Path) -> None:
    """What only a call, a file, a fetch or a server needs is imported by that: a start is measured in tenths of a second."""
    heavy = (
        "chromadb", "cryptography", "docx", "dulwich", "httpx", "keyring", "llama_cpp", "mcp", "numpy", "pydantic", "pypdf", "starlette",
        "tree_sitter", "tree_sitter_bash", "tree_sitter_python", "memory.engine", "growbox_app.ingest.ingestion",
    )  # fmt: skip
    code = (
        "import asyncio, sys; from pathlib import Path; import ui.main, ui.application\n"
        f"async def make(): GrowBox(data_path=Path({str(tmp_path)!r}), models_path=Path({str(tmp_path)!r}))\n"
        "from growbox_app.assistant import GrowBox; asyncio.run(make())\n"
        f"print([name for name in {heavy!r} if name in sys.modules])"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert ended.stdout.strip() == "[]"


def test_qt_speaks_the_languages_of_the_window(qapp: QApplication) -> None:
    for language in LANGUAGES:
        assert use_qt_language(language)
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "取消"
    use_qt_language("en")
    assert QCoreApplication.translate("QPlatformTheme", "Cancel") == "Cancel"
