"""The three questions the policy asks the disk: where a path leads, what a pattern matches, whether a folder hides a secret.

Reads only. The answers are those of now: a caller that waited (for the user) asks the policy again before it runs.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

ENTRIES_MAX = 50_000
"""A folder with more entries is not searched for secrets: about a quarter of a second."""
MATCHES_MAX = 2_000
PATTERNS_MAX = 20


class Disk(Protocol):
    """What a judgement needs to know of the disk."""

    def resolved(self, path: str) -> str:
        """The absolute path with all links followed; what does not exist stays as it is written."""
        ...

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder."""
        ...

    def matches(self, folder: str, pattern: str) -> tuple[str, ...] | None:
        """What a shell would put in place of a pattern, None when that is too much."""
        ...

    def any_below(self, folder: str, wanted: Callable[[str], bool]) -> bool | None:
        """Whether a file or folder below has such a name, None when there are too many to say."""
        ...


class RealDisk:
    """The disk of this machine."""

    def resolved(self, path: str) -> str:
        """Follows every link. A loop of links, or what no file can be called, stays as written: opening it fails."""
        try:
            return os.path.realpath(path)
        except ValueError:
            return path

    def is_folder(self, path: str) -> bool:
        """Whether there is a folder, links followed."""
        return Path(path).is_dir()

    def matches(self, folder: str, pattern: str) -> tuple[str, ...] | None:
        """Sorted as a shell does; nothing found is the pattern itself."""
        found: list[str] = []
        for match in glob.iglob(pattern, root_dir=folder):  # noqa: PTH207 – pathlib's matches hidden files
            found.append(match)
            if len(found) > MATCHES_MAX:
                return None
        return tuple(sorted(found)) or (pattern,)

    def any_below(self, folder: str, wanted: Callable[[str], bool]) -> bool | None:
        """Walks without following links; a folder that cannot be listed cannot be read by a command either."""
        seen = 0
        for _, folders, files in os.walk(folder):
            seen += len(folders) + len(files)
            if seen > ENTRIES_MAX:
                return None
            if ".git" in folders:
                folders.remove(".git")
            if any(wanted(name) for name in (*folders, *files)):
                return True
        return False


class RememberingDisk:
    """The disk during one judgement: each question is asked once, and no more of the long ones than a reader can wait for."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._resolved: dict[str, str] = {}
        self._matches: dict[tuple[str, str], tuple[str, ...] | None] = {}
        self._below: dict[tuple[str, Callable[[str], bool]], bool | None] = {}
        self._walked = 0

    def resolved(self, path: str) -> str:
        """As the disk says."""
        if path not in self._resolved:
            self._resolved[path] = self._disk.resolved(path)
        return self._resolved[path]

    def is_folder(self, path: str) -> bool:
        """As the disk says."""
        return self._disk.is_folder(path)

    def matches(self, folder: str, pattern: str) -> tuple[str, ...] | None:
        """As the disk says; None when there were too many patterns already."""
        asked = (folder, pattern)
        if asked not in self._matches:
            if len(self._matches) >= PATTERNS_MAX:
                return None
            self._matches[asked] = self._disk.matches(folder, pattern)
        return self._matches[asked]

    def any_below(self, folder: str, wanted: Callable[[str], bool]) -> bool | None:
        """As the disk says; None when too much was walked already."""
        asked = (folder, wanted)
        if asked not in self._below:
            if self._walked > ENTRIES_MAX:
                return None
            self._below[asked] = self._disk.any_below(folder, self._counting(wanted))
        return self._below[asked]

    def _counting(self, wanted: Callable[[str], bool]) -> Callable[[str], bool]:
        def counted(name: str) -> bool:
            self._walked += 1
            return wanted(name)

        return counted
