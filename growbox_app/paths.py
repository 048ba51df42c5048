"""Where everything lives: data, models, cache, logs, resources; source tree and frozen build alike.

`GROWBOX_DATA_DIR`, `GROWBOX_MODELS_DIR` and `GROWBOX_CACHE_DIR` override the platform's folders. The default of the models
folder is `models` inside the data folder. `packaging/dev.py` keeps a standard-library twin of these rules; a test compares
them.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

import platformdirs

APP_NAME = "GrowBox"


def data_path() -> Path:
    """The user's data folder."""
    override = os.environ.get("GROWBOX_DATA_DIR")
    return (
        Path(override) if override else Path(platformdirs.user_data_dir(APP_NAME, appauthor=False))
    )


def models_path() -> Path:
    """Where model files are."""
    override = os.environ.get("GROWBOX_MODELS_DIR")
    return Path(override) if override else data_path() / "models"


def bundled_models_path() -> Path | None:
    """The models that came with a frozen GrowBox, read-only; None in a source tree, and where none came."""
    if not getattr(sys, "frozen", False):
        return None
    folder = application_path() / "models"
    return folder if folder.is_dir() else None


def application_path() -> Path:
    """Frozen: the folder of what the installer laid down beside the program (macOS: inside the .app)."""
    folder = Path(sys.executable).parent
    return folder.parent / "Resources" if sys.platform == "darwin" else folder


def cache_path() -> Path:
    """What may be deleted at any time."""
    override = os.environ.get("GROWBOX_CACHE_DIR")
    return (
        Path(override) if override else Path(platformdirs.user_cache_dir(APP_NAME, appauthor=False))
    )


def resources_path() -> Path:
    """The read-only resources beside the code (source tree) or inside the frozen bundle."""
    frozen = getattr(sys, "_MEIPASS", None)
    return (
        Path(frozen) / "resources"
        if frozen
        else Path(__file__).resolve().parent.parent / "resources"
    )
