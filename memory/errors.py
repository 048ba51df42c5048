"""Known trouble of the memory engine, apart from our own bugs (`InvariantError`).

Texts here are for logs; what the user reads is made in `ui/text.py` (and `growbox_app/sentences.py` for the headless
face) from type and fields.
"""

from __future__ import annotations

from pathlib import Path


class MemoryEngineError(Exception):
    """Root of all known trouble."""


class StorageError(MemoryEngineError):
    """The environment refused: disk full, unreadable, read-only. `reason` is one of `full`, `readonly`, `io`."""

    def __init__(self, reason: str, path: Path, detail: str = "") -> None:
        super().__init__(f"{reason}: {path} {detail}".strip())
        self.reason = reason
        self.path = path
        self.detail = detail


class DataFolderLocked(MemoryEngineError):
    """Another process owns the data folder; `owner` says who, as far as known (e.g. `pid 123`)."""

    def __init__(self, path: Path, owner: str) -> None:
        super().__init__(f"{path} is held by {owner}")
        self.path = path
        self.owner = owner


class DataTooNew(MemoryEngineError):
    """The data folder was written by a newer GrowBox."""

    def __init__(self, path: Path, found: int, known: int) -> None:
        super().__init__(f"{path}: schema {found} is newer than {known}")
        self.path = path
        self.found = found
        self.known = known


class CorruptStore(MemoryEngineError):
    """Truth itself cannot be read. Derived stores never raise this: they are set aside and rebuilt."""

    def __init__(self, store: str, path: Path, detail: str) -> None:
        super().__init__(f"{store} at {path}: {detail}")
        self.store = store
        self.path = path
        self.detail = detail


class EngineClosed(MemoryEngineError):
    """Used after close."""


class BudgetExceeded(MemoryEngineError):
    """A block does not fit the context region even after every allowed eviction.

    `needed` and `available` are tokens; the caller shows head…tail of at most `available`.
    """

    def __init__(self, needed: int, available: int) -> None:
        super().__init__(f"{needed} tokens needed, {available} available")
        self.needed = needed
        self.available = available


class InvariantError(AssertionError):
    """Our bug: an invariant does not hold. Stop the operation, write a crash report."""


def require(condition: bool, message: str) -> None:
    """Checks an invariant; stays on in release builds.

    Raises:
        InvariantError: `condition` is false.
    """
    if not condition:
        raise InvariantError(message)
