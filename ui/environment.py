"""What must be known about the desktop before Qt starts. Standard library only."""

from __future__ import annotations

import sys
from collections.abc import Mapping, MutableMapping
from importlib.util import find_spec
from pathlib import Path

WINDOWLESS_PLATFORMS = ("offscreen", "minimal", "vnc", "linuxfb", "eglfs")


def has_display(environment: Mapping[str, str], platform: str = sys.platform) -> bool:
    """Whether Qt can open a window: always on Windows and macOS, by its variables elsewhere."""
    if platform in ("win32", "darwin"):
        return True
    chosen = environment.get("QT_QPA_PLATFORM", "")
    if chosen.split(":")[0] in WINDOWLESS_PLATFORMS:
        return True
    return bool(environment.get("DISPLAY") or environment.get("WAYLAND_DISPLAY"))


def qt_input_contexts() -> tuple[str, ...]:
    """File names of the input-method plugins that come with this Qt."""
    spec = find_spec("PySide6")
    if spec is None or spec.origin is None:
        return ()
    folder = Path(spec.origin).parent / "Qt" / "plugins" / "platforminputcontexts"
    return tuple(sorted(path.name for path in folder.glob("*"))) if folder.is_dir() else ()


def prepare_input_method(environment: MutableMapping[str, str], plugins: tuple[str, ...]) -> bool:
    """Points Qt at ibus where the desktop uses fcitx and this Qt has no fcitx plugin.

    fcitx5 answers on the ibus protocol too; without this, Chinese input is dead on most Chinese Linux desktops, because the
    PySide6 wheels carry no fcitx plugin.

    Returns:
        Whether the variable was changed.
    """
    named = (environment.get(key, "") for key in ("XMODIFIERS", "GTK_IM_MODULE", "QT_IM_MODULE"))
    uses_fcitx = any("fcitx" in value.lower() for value in named)
    if not uses_fcitx or any("fcitx" in name.lower() for name in plugins):
        return False
    environment["QT_IM_MODULE"] = "ibus"
    return True
