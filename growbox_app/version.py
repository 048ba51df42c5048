"""Which GrowBox this is. Pure look-ups, any thread.

A frozen build has the file `VERSION`, written by packaging/freeze.py, beside the executable; inside a macOS bundle it stands in
`Contents/Resources`. A source tree asks its own pyproject.toml first: an older installed copy must not answer for it.
"""

from __future__ import annotations

import importlib.metadata
import sys
import tomllib
from pathlib import Path

FILE_NAME = "VERSION"
_PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def is_frozen() -> bool:
    """Whether this is a build that PyInstaller made."""
    return bool(getattr(sys, "frozen", False))


def version() -> str:
    """The version; empty where nobody knows it."""
    if is_frozen():
        return _of_build(Path(sys.executable))
    try:
        return str(tomllib.loads(_PROJECT.read_text(encoding="utf-8"))["project"]["version"])
    except OSError:
        return _installed()


def _of_build(executable: Path) -> str:
    for folder in (executable.parent, executable.parent.parent / "Resources"):
        try:
            return (folder / FILE_NAME).read_text(encoding="utf-8").strip()
        except OSError:
            continue
    return ""


def _installed() -> str:
    try:
        return importlib.metadata.version("growbox")
    except importlib.metadata.PackageNotFoundError:
        return ""
