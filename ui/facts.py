"""The facts that a bug report needs: versions and the machine, no user text. Pure look-ups.

They are English in every language of the window, because those who read bug reports compare them.
"""

from __future__ import annotations

import importlib.metadata
import platform

from PySide6.QtCore import qVersion
from PySide6.QtGui import QGuiApplication

from growbox_app.version import is_frozen, version


def facts(cpu_variant: str = "") -> str:
    """One fact a line.

    Args:
        cpu_variant: the llama.cpp build in use; empty where no model was loaded yet.
    """
    kind = "frozen build" if is_frozen() else "source tree"
    lines = (
        f"GrowBox {version()} ({kind})",
        f"System: {platform.platform()}, {platform.machine()}",
        f"Python {platform.python_version()}",
        f"Qt {qVersion()}, {QGuiApplication.platformName()}",
        f"{_llama()}, CPU variant: {cpu_variant or 'not known yet'}",
    )
    return "\n".join(lines)


def _llama() -> str:
    """A frozen build has no metadata of the package; its About box lists the version."""
    try:
        return f"llama.cpp of llama-cpp-python {importlib.metadata.version('llama-cpp-python')}"
    except importlib.metadata.PackageNotFoundError:
        return "llama.cpp as bundled"
