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
        """Follows every link. A loop of links stays as written: opening it fails."""
        return os.path.realpath(path)

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
