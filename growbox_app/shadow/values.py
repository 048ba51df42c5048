"""The values of checkpoints: what a folder held, what was left out and why, what a restore did. Plain data; any thread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import NamedTuple

FOLDER_MODE = 0o040000
"""An empty folder; folders that hold something need no entry."""
LINK_MODE = 0o120000
UNFINISHED = "unfinished"
"""Name of the mark in a repository whose newest call has not ended."""
STAMP_MODE = 0o160000
"""A file that is there but whose content was not saved: `sha` is made of its size and times, so that a change shows."""


class CheckpointTrouble(Exception):
    """A checkpoint could not be taken, read or restored; the message is for the log."""


class SkipReason(StrEnum):
    """Why something is not in a checkpoint."""

    IGNORED = "ignored"
    """`.gitignore`, or a folder that tools fill."""
    TOO_BIG = "too_big"
    TOO_MANY = "too_many"
    """More files, bytes or seconds than one checkpoint may take."""
    UNREADABLE = "unreadable"
    SPECIAL = "special"
    """Neither a file, a link nor a folder."""
    OUTSIDE = "outside"
    """Named, but not in the project."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Skipped:
    """Something a checkpoint does not hold; a folder counts once."""

    path: Path
    reason: SkipReason


class CheckpointKind(StrEnum):
    """What a checkpoint was taken before."""

    CALL = "call"
    RESTORE = "restore"


@dataclass(frozen=True, slots=True, kw_only=True)
class Checkpoint:
    """The state of a project before one call. `is_finished`: the state after the call is known as well."""

    id: str
    root: Path
    created_at_ms: int
    label: str
    answer_id: str
    kind: CheckpointKind = CheckpointKind.CALL
    is_finished: bool = False
    skipped: tuple[Skipped, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class RestoreReport:
    """What a restore did. `is_done` False: there are conflicts, and nothing was changed.

    Attributes:
        is_done: Whether files were brought back.
        undo_id: The checkpoint that was taken before; restoring it undoes this restore.
        restored: Files (links, empty folders) that have their old content again.
        removed: Files that the agent had made, now gone.
        conflicts: Changed by the agent and by somebody else since; overwritten only by force.
        kept: Changed by somebody else only; left alone unless named.
        not_saved: Changed by the agent, but never saved (too big, too many).
        failed: The system refused, or the file changed while this ran.
    """

    is_done: bool
    undo_id: str | None = None
    restored: tuple[Path, ...] = ()
    removed: tuple[Path, ...] = ()
    conflicts: tuple[Path, ...] = ()
    kept: tuple[Path, ...] = ()
    not_saved: tuple[Path, ...] = ()
    failed: tuple[Path, ...] = ()


class Entry(NamedTuple):
    """One path in a snapshot: its type with its permissions, and its content's name. There are many; a tuple compares fast."""

    mode: int
    sha: bytes

    @property
    def is_saved(self) -> bool:
        """Whether its content can be brought back."""
        return self.mode != STAMP_MODE


ABSENT = Entry(0, b"")


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """What a folder held. Keys are paths below it, as bytes with forward slashes.

    `skipped` things are unknown, not absent, except for `named` paths, which were looked at in any case. The key `b""` in
    `skipped` stands for everything that has no entry.
    """

    entries: Mapping[bytes, Entry]
    skipped: Mapping[bytes, SkipReason] = field(default_factory=dict)
    named: frozenset[bytes] = frozenset()

    def state(self, path: bytes) -> Entry | None:
        """What was at a path: an entry, `ABSENT`, or None for unknown."""
        found = self.entries.get(path)
        if found is not None:
            return found
        if path in self.named or not self._is_skipped(path):
            return ABSENT
        return None

    @property
    def watched(self) -> frozenset[bytes]:
        """What to look at again to see what a call did, whatever the rules say then."""
        return self.named | {path for path, entry in self.entries.items() if entry.is_saved}

    def _is_skipped(self, path: bytes) -> bool:
        while path:
            if path in self.skipped:
                return True
            path = path.rpartition(b"/")[0]
        return b"" in self.skipped


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLimits:
    """How much one checkpoint may take, and how much all of a project may keep."""

    file_bytes: int = 5_000_000
    named_bytes: int = 256_000_000
    """For a file that the call itself will change; git objects are made in memory."""
    files: int = 50_000
    bytes: int = 1_000_000_000
    seconds: float = 20.0
    kept: int = 200
    kept_days: int = 30
    store_bytes: int = 1_000_000_000
