"""What an ingest did, in numbers, and what it left out, with the reason. Plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

SKIPPED_SHOWN_MAX = 1_000
"""Files that are named; the counts by reason know of all."""


class SkipReason(StrEnum):
    """Why a file was left out (`ingest.reason.<reason>` in resources/translations)."""

    MISSING = "missing"
    UNREADABLE = "unreadable"
    LINK = "link"
    SPECIAL = "special"
    PRIVATE = "private"
    TOO_LARGE = "too_large"
    BINARY = "binary"
    ENCODING = "encoding"
    ENCRYPTED = "encrypted"
    DAMAGED = "damaged"
    TOO_SLOW = "too_slow"
    NO_TEXT = "no_text"
    TOO_MANY = "too_many"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkippedFile:
    """A file or folder that was left out."""

    path: str
    reason: SkipReason


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestReport:
    """Files by what became of them, and passages by what became of those.

    `ignored` counts what `.gitignore` and the built-in list keep out; a folder counts once. `skipped` names at most the first
    `SKIPPED_SHOWN_MAX`, `reasons` counts all. `removed` are documents whose file is gone from an ingested folder.
    """

    added: int = 0
    changed: int = 0
    unchanged: int = 0
    removed: int = 0
    ignored: int = 0
    passages_added: int = 0
    passages_kept: int = 0
    passages_retired: int = 0
    skipped: tuple[SkippedFile, ...] = ()
    reasons: tuple[tuple[SkipReason, int], ...] = ()

    @property
    def skipped_count(self) -> int:
        """How many were left out with a reason."""
        return sum(count for _, count in self.reasons)

    @property
    def files(self) -> int:
        """How many files are in the memory as they are on the disk."""
        return self.added + self.changed + self.unchanged


class Tally:
    """A report that is still being made."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()
        self._skipped: list[SkippedFile] = []
        self._reasons: Counter[SkipReason] = Counter()

    def skip(self, path: str, reason: SkipReason) -> None:
        """Notes a file that is left out."""
        self._reasons[reason] += 1
        if len(self._skipped) < SKIPPED_SHOWN_MAX:
            self._skipped.append(SkippedFile(path=path, reason=reason))

    def report(self) -> IngestReport:
        """What was counted so far."""
        counts: Mapping[str, int] = self.counts
        return IngestReport(
            **counts,
            skipped=tuple(self._skipped),
            reasons=tuple(sorted(self._reasons.items(), key=lambda item: (-item[1], item[0]))),
        )
