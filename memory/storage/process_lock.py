"""One process per data folder.

Taken before any store opens and released last: two processes on one Chroma folder lose vectors without one exception. The
operating system frees the lock when its holder dies, so a crash leaves nothing to clean up; the file itself stays (removing
it would race with the next owner). It holds the owner's process id in decimal, for the message to the second one.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

from memory.errors import DataFolderLocked
from memory.storage.database import translated_os

_LOCK_AT = 1 << 30  # beyond the text: Windows locks are mandatory, and the owner must stay readable


class ProcessLock:
    """Holds the lock while alive."""

    def __init__(self, path: Path) -> None:
        """Takes the lock.

        Raises:
            DataFolderLocked: another process (or another engine of this one) has it.
            StorageError: the folder cannot be written.
        """
        self.path = path
        try:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
        except OSError as error:
            raise translated_os(error, path) from error
        try:
            _lock(descriptor)
        except OSError as error:
            os.close(descriptor)
            raise DataFolderLocked(path.parent, _owner(path)) from error
        self._descriptor: int | None = descriptor
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, str(os.getpid()).encode())
        except OSError as error:
            self.release()
            raise translated_os(error, path) from error

    def release(self) -> None:
        """Idempotent."""
        if self._descriptor is not None:
            descriptor, self._descriptor = self._descriptor, None
            os.close(descriptor)


def _owner(path: Path) -> str:
    try:
        text = path.read_text(encoding="ascii", errors="replace").strip()
    except OSError:
        text = ""
    return f"pid {text}" if text.isdigit() else "another process"


if sys.platform == "win32":
    import msvcrt

    def _lock(descriptor: int) -> None:
        os.lseek(descriptor, _LOCK_AT, os.SEEK_SET)
        msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        os.lseek(descriptor, 0, os.SEEK_SET)

else:
    import fcntl

    def _lock(descriptor: int) -> None:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
