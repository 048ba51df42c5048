"""What a folder holds, exactly, for comparing before and after."""

from __future__ import annotations

import os
import stat
from pathlib import Path


def contents_of(root: Path) -> dict[str, object]:
    """Every file (bytes), link (its target), folder (None), and the permissions of files as `mode NAME`."""
    found: dict[str, object] = {}
    for folder, folders, names in os.walk(root):
        for name in (*folders, *names):
            path = Path(folder, name)
            key = path.relative_to(root).as_posix()
            status = path.lstat()
            if stat.S_ISLNK(status.st_mode):
                found[key] = str(path.readlink())
            elif stat.S_ISDIR(status.st_mode):
                found[key] = None
            else:
                found[key] = path.read_bytes()
                found[f"mode {key}"] = stat.S_IMODE(status.st_mode)
    return found
