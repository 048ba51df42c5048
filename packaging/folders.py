"""Where set-up puts things: the standard-library twin of `growbox_app/paths.py` (a test compares the two).

Set-up runs before any package is installed, so platformdirs' rules for a user's data and cache folder are written out here.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

APP_NAME = "GrowBox"
ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"


def venv_python() -> Path:
    """The interpreter inside `.venv`."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def data_path() -> Path:
    """The user's data folder."""
    override = os.environ.get("GROWBOX_DATA_DIR")
    return Path(override) if override else _platform_folder("data")


def models_path() -> Path:
    """Where model files are."""
    override = os.environ.get("GROWBOX_MODELS_DIR")
    return Path(override) if override else data_path() / "models"


def cache_path() -> Path:
    """What may be deleted at any time."""
    override = os.environ.get("GROWBOX_CACHE_DIR")
    return Path(override) if override else _platform_folder("cache")


def _platform_folder(kind: str) -> Path:
    if sys.platform == "win32":
        local = Path(os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local")
        return local / APP_NAME / "Cache" if kind == "cache" else local / APP_NAME
    if sys.platform == "darwin":
        folder = "Caches" if kind == "cache" else "Application Support"
        return Path.home() / "Library" / folder / APP_NAME
    variable, default = {
        "data": ("XDG_DATA_HOME", ".local/share"),
        "cache": ("XDG_CACHE_HOME", ".cache"),
    }[kind]
    chosen = os.environ.get(variable, "").strip()
    base = Path(chosen) if chosen else Path.home() / default
    return base / APP_NAME
