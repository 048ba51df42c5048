"""Loads and saves settings as `settings.json` in the data folder.

Atomic: temp file, fsync, rename, fsync of the folder. Unknown keys are kept (a newer GrowBox may have written them);
values that do not validate fall back to the default and are reported, never fatal.
"""

from __future__ import annotations

import json
from pathlib import Path

from growbox_app.files import write_atomically
from growbox_app.settings.schema import SETTINGS, Value


class SettingsStore:
    """The settings of one data folder. Single-threaded: owned by the event-loop thread."""

    def __init__(self, data_path: Path) -> None:
        self._path = data_path / "settings.json"
        self._raw: dict[str, object] = {}
        self.rejected: tuple[str, ...] = ()
        self._load()

    def _load(self) -> None:
        try:
            loaded = json.loads(self._path.read_text(encoding="utf-8"))
        except (OSError, ValueError):
            loaded = {}
        self._raw = loaded if isinstance(loaded, dict) else {}
        rejected = []
        for key in list(self._raw):
            if key in SETTINGS:
                try:
                    SETTINGS[key].validate(self._raw[key])
                except ValueError:
                    rejected.append(key)
                    del self._raw[key]
        self.rejected = tuple(rejected)

    def get(self, key: str) -> Value:
        """The value in force.

        Raises:
            KeyError: no such setting.
        """
        setting = SETTINGS[key]
        return setting.validate(self._raw.get(key, setting.default))

    def set(self, key: str, value: object) -> None:
        """Validates and saves.

        Raises:
            KeyError: no such setting.
            ValueError: not allowed.
            OSError: the file cannot be written.
        """
        changed = self._raw | {key: SETTINGS[key].validate(value)}
        write_atomically(self._path, json.dumps(changed, ensure_ascii=False, indent=1).encode())
        self._raw = changed
