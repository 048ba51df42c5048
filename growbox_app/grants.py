"""What the user has allowed for a project once and for all: one JSON file in the data folder, written whole.

Event-loop thread; the file is small. A file that cannot be read grants nothing: the user is asked again.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from growbox_app.files import write_atomically
from growbox_app.safety.values import Grant
from memory.values import ProjectId


class GrantBook:
    """Grants by project."""

    def __init__(self, data_path: Path) -> None:
        self._path = data_path / "grants.json"
        self._grants = self._read()

    def of(self, project_id: ProjectId | None) -> frozenset[Grant]:
        """What holds in a project; nothing outside of one."""
        return frozenset(self._grants.get(project_id or "", ()))

    def add(self, project_id: ProjectId, grants: Iterable[Grant]) -> None:
        """Allows more.

        Raises:
            OSError: the file cannot be written; the grant then holds until the end of this run.
        """
        kept = self._grants.setdefault(project_id, [])
        kept.extend(grant for grant in grants if grant not in kept)
        self._write(self._grants)

    def listed(self, project_id: ProjectId) -> tuple[Grant, ...]:
        """What holds in a project, oldest first."""
        return tuple(self._grants.get(project_id, ()))

    def revoke(self, project_id: ProjectId, grant: Grant) -> None:
        """Asks again for one thing.

        Raises:
            OSError: the file cannot be written; nothing was revoked.
        """
        kept = [other for other in self._grants.get(project_id, []) if other != grant]
        self._write({**self._grants, project_id: kept})

    def withdraw(self, project_id: ProjectId) -> None:
        """Asks again for everything in a project.

        Raises:
            OSError: the file cannot be written; nothing was revoked.
        """
        if project_id in self._grants:
            self._write({key: kept for key, kept in self._grants.items() if key != project_id})

    def _write(self, grants: dict[str, list[Grant]]) -> None:
        write_atomically(self._path, msgspec.json.encode(grants))
        self._grants = grants

    def _read(self) -> dict[str, list[Grant]]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, list[Grant]])
        except (OSError, msgspec.MsgspecError):
            return {}
