"""The pointer store: diskcache behind one adapter, holding the fold of the learning log.

Derived; a lost or damaged folder is set aside and folded again. Invariants: nothing is ever evicted (`eviction_policy`
none); only JSON bytes are written, and nothing is ever unpickled – a row altered to pickle mode is refused, not executed
(CVE-2025-69872 has no fixed release); records stay inside SQLite, no loose files. The event's changes and the high-water
mark commit in one transaction, so a crash leaves a prefix of the log. Storage thread only.
"""

from __future__ import annotations

import os
import shutil
import sqlite3
import warnings
from collections.abc import Iterator
from pathlib import Path

import diskcache
import msgspec
from diskcache.core import MODE_RAW

from memory.config import LearningConfig
from memory.errors import MemoryEngineError, StorageError
from memory.storage.database import translated, translated_os
from memory.storage.learning_log import LearningEvent, LearningLog
from memory.storage.pointer_fold import FOLD_VERSION, apply
from memory.storage.pointer_records import (
    ANCHORS_KEY,
    CLUSTERS_KEY,
    EMPTY,
    LEDGER_KEY,
    Anchor,
    Counts,
    Record,
    arriving_key,
    cluster_key,
    source_key,
    veto_key,
)

_COUNTERS = "m:"  # keys of the store's own numbers
_HIGH_WATER = "m:high_water"
_COUNTS = "m:counts"
_VERSION = "m:fold"
_FOLD_BATCH = 200
_NO_FILES = 1 << 30  # values below this many bytes stay in SQLite: all of ours
_NO_LIMIT = 1 << 62  # bytes; with policy none nothing is culled, the number is only required


class PointerDamage(MemoryEngineError):
    """The folder cannot be read. Never leaves `memory`: the store is rebuilt."""


class _JsonDisk(diskcache.Disk):  # type: ignore[misc] # diskcache has no types
    """str keys and JSON bytes only. `JSONDisk` is not enough: it still unpickles a row in pickle mode."""

    def put(self, key: object) -> tuple[str, bool]:
        if not isinstance(key, str):
            raise PointerDamage(f"a key of type {type(key).__name__}")
        return key, True

    def get(self, key: object, raw: object) -> str:
        if not raw or not isinstance(key, str):
            raise PointerDamage("a key that is not text")
        return key

    def store(
        self,
        value: object,
        read: object,
        key: object = None,  # noqa: ARG002 - its signature
    ) -> tuple[int, int, None, sqlite3.Binary]:
        if read or not isinstance(value, bytes):
            raise PointerDamage(f"a value of type {type(value).__name__}")
        return 0, MODE_RAW, None, sqlite3.Binary(value)

    def fetch(self, mode: object, filename: object, value: object, read: object) -> bytes:
        if mode != MODE_RAW or filename is not None or read or not isinstance(value, bytes):
            raise PointerDamage("a value that is not inline JSON")
        return value


def _open(folder: Path) -> diskcache.Cache:
    """Every option that matters is said; the defaults evict at 1 GiB and pickle."""
    return diskcache.Cache(
        str(folder),
        timeout=5,
        disk=_JsonDisk,
        statistics=0,
        tag_index=0,
        eviction_policy="none",
        size_limit=_NO_LIMIT,
        cull_limit=0,
        sqlite_auto_vacuum=1,
        sqlite_cache_size=2_048,
        sqlite_journal_mode="wal",
        sqlite_mmap_size=0,
        sqlite_synchronous=1,
        disk_min_file_size=_NO_FILES,
    )


_TROUBLE = (
    sqlite3.Error,
    diskcache.Timeout,
    msgspec.MsgspecError,
    PointerDamage,
    OSError,
    ValueError,
)


class PointerStore:
    """Edges and vetoes by node, what was read by cluster of questions, the fragment ledger and the anchors."""

    def __init__(self, folder: Path, log: LearningLog, config: LearningConfig) -> None:
        """Opens and checks the folder; a damaged one is replaced by an empty store.

        Raises:
            StorageError: the folder cannot be made at all.
        """
        if os.path.expandvars(str(folder)) != str(folder):
            raise StorageError("io", folder, "diskcache would expand a variable in this path")
        self.folder = folder
        self._log = log
        self._config = config
        self.replaced = False
        self._cache: diskcache.Cache = None
        try:
            self._make_folder()
            self._cache = _open(self.folder)
            self._check_at_start()
        except _TROUBLE:
            self._start_over()

    def _check_at_start(self) -> None:
        if any(_is_damage(p) for p in _check(self._cache, fix=False)):
            raise PointerDamage("the database failed its integrity check")
        if self._mark() > self._log.last_id():
            raise PointerDamage("the store knows events that the log does not have")
        if self._mark() and self._number(_VERSION) != FOLD_VERSION:
            raise PointerDamage("folded by another version")
        _check(self._cache, fix=True)

    def _make_folder(self) -> None:
        try:
            self.folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            self.folder.chmod(0o700)
        except OSError as error:
            raise translated_os(error, self.folder) from error

    def _start_over(self) -> None:
        """A folder that cannot be read is deleted: it is derived, and may hold a trap."""
        self.replaced = True
        self.close()
        if self.folder.is_dir():
            shutil.rmtree(self.folder, ignore_errors=True)
        else:
            self.folder.unlink(missing_ok=True)
        self._make_folder()
        try:
            self._cache = _open(self.folder)
        except sqlite3.Error as error:
            raise translated(error, self.folder) from error

    # --- reading

    def _load(self, key: str) -> Record:
        found = self._cache.get(key)
        return Record() if found is None else _decode(found)

    def _number(self, key: str) -> int:
        found = self._cache.get(key)
        return 0 if found is None else msgspec.json.decode(found, type=int)

    def _mark(self) -> int:
        return self._number(_HIGH_WATER)

    def read(self, key: str) -> Record:
        """A record; an empty one when there is none. Damage costs this store a rebuild, never the caller."""
        try:
            return self._load(key)
        except _TROUBLE:
            self.rebuild()
            return self._load(key)

    def edges(self, source: str) -> Record:
        """The edges that leave a node."""
        return self.read(source_key(source))

    def vetoes(self, target: str) -> Record:
        """The queries for which a node was called not relevant."""
        return self.read(veto_key(target))

    def high_water(self) -> int:
        """The last event that is folded in."""
        try:
            return self._mark()
        except _TROUBLE:
            self.rebuild()
            return self._mark()

    def sources(self, target: str) -> tuple[str, ...]:
        """Nodes whose edges lead to a node, the newest last."""
        return self.read(arriving_key(target)).sources

    def cluster(self, cluster: int) -> Record:
        """What was read for a cluster of questions."""
        return self.read(cluster_key(cluster))

    def clusters(self) -> tuple[int, ...]:
        """Clusters for which something was read, the one used last stands last."""
        return self.read(CLUSTERS_KEY).clusters

    def ledger(self) -> Record:
        """Open fragments, and how many were ever cleared."""
        return self.read(LEDGER_KEY)

    def anchors(self) -> tuple[Anchor, ...]:
        """Anchors, hottest first."""
        return self.read(ANCHORS_KEY).anchors

    def counts(self) -> Counts:
        """Numbers of the whole store."""
        try:
            return self._counts()
        except _TROUBLE:
            self.rebuild()
            return self._counts()

    def _counts(self) -> Counts:
        found = self._cache.get(_COUNTS)
        return Counts() if found is None else msgspec.json.decode(found, type=Counts)

    def records(self) -> Iterator[tuple[str, Record]]:
        """All records, by key."""
        for key in sorted(self._cache.iterkeys()):
            if not key.startswith(_COUNTERS):
                yield key, self._load(key)

    # --- folding

    def catch_up(self, limit: int = _FOLD_BATCH) -> tuple[bool, tuple[str, ...]]:
        """Folds the events that are missing.

        Returns:
            Whether more are left, and the keys that changed.

        Raises:
            StorageError: the store cannot be written, not even anew. The events stay in the log.
        """
        try:
            return self._catch_up(limit)
        except _TROUBLE:
            self.rebuild()
            return False, tuple(key for key, _ in self.records())

    def _catch_up(self, limit: int) -> tuple[bool, tuple[str, ...]]:
        mark = self._mark()
        events = self._log.after(mark, limit)
        if any(event.undoes and event.undoes <= mark for event in events):
            return False, self._fold_anew()
        changed: set[str] = set()
        for event in events:
            changed.update(self._fold(event))
        return len(events) == limit, tuple(sorted(changed))

    def _fold_anew(self) -> tuple[str, ...]:
        """What was taken back had been folded in: the whole fold again, in memory, and what differs in one transaction."""
        mark = self._log.last_id()
        wanted, held = self.expected(), dict(self.records())
        changed = [k for k in held.keys() | wanted.keys() if held.get(k) != wanted.get(k)]
        counts = Counts()
        for key, record in wanted.items():
            counts = counts.changed(key, EMPTY, record)
        with self._cache.transact(retry=True):
            for key in changed:
                if key in wanted:
                    self._cache.set(key, msgspec.json.encode(wanted[key]))
                else:
                    self._cache.delete(key)
            self._note(mark, counts)
        return tuple(sorted(changed))

    def _note(self, mark: int, counts: Counts) -> None:
        self._cache.set(_COUNTS, msgspec.json.encode(counts))
        self._cache.set(_VERSION, msgspec.json.encode(FOLD_VERSION))
        self._cache.set(_HIGH_WATER, msgspec.json.encode(mark))

    def _fold(self, event: LearningEvent) -> dict[str, Record]:
        """One event and the mark, in one transaction."""
        with self._cache.transact(retry=True):
            changed = apply(event, self._load, self._config)
            counts = self._counts()
            for key, record in changed.items():
                counts = counts.changed(key, self._load(key), record)
                if record == EMPTY:
                    self._cache.delete(key)
                else:
                    self._cache.set(key, msgspec.json.encode(record))
            self._note(event.id, counts)
        return changed

    def start_anew(self) -> None:
        """Deletes the folder; `catch_up` folds the log in again, in its slices.

        Raises:
            StorageError: the folder cannot be written.
        """
        self._start_over()

    def rebuild(self) -> None:
        """Folds the whole log anew into an empty store.

        Raises:
            StorageError: the folder cannot be written.
        """
        self._start_over()
        try:
            while self._catch_up(_FOLD_BATCH)[0]:
                continue
        except sqlite3.Error as error:
            raise translated(error, self.folder) from error

    def expected(self) -> dict[str, Record]:
        """The fold of the whole log in memory, for the audit."""
        records: dict[str, Record] = {}
        at = 0
        while events := self._log.after(at, _FOLD_BATCH):
            for event in events:
                records.update(apply(event, lambda k: records.get(k, EMPTY), self._config))
            at = events[-1].id
        return {key: record for key, record in records.items() if record != EMPTY}

    def problems(self, *, full: bool) -> list[str]:
        """What diskcache's own audit finds, and – in full – whether the store is the fold of the log."""
        try:
            found = _check(self._cache, fix=False)
            if self._mark() != self._log.last_id():
                found.append("events are not folded in")
            elif full and not self._is_fold():
                found.append("the store is not the fold of the log")
        except _TROUBLE as error:
            return [f"unreadable: {type(error).__name__}"]
        return found

    def _is_fold(self) -> bool:
        held, counts = dict(self.records()), Counts()
        for key, record in held.items():
            counts = counts.changed(key, EMPTY, record)
        return held == self.expected() and counts == self._counts()

    def file_bytes(self) -> int:
        """Size on disk."""
        return sum(f.stat().st_size for f in self.folder.rglob("*") if f.is_file())

    def close(self) -> None:
        """Idempotent."""
        if self._cache is not None:
            self._cache.close()


def _decode(value: object) -> Record:
    if not isinstance(value, bytes):
        raise PointerDamage("no JSON")
    return msgspec.json.decode(value, type=Record)


def _is_damage(problem: str) -> bool:
    """Counters and stray files are repaired in place; anything else comes from SQLite's integrity check."""
    harmless = ("wrong file size", "file not found", "unknown file", "empty directory", "Settings.")
    return not problem.startswith(harmless)


def _check(cache: diskcache.Cache, *, fix: bool) -> list[str]:
    """Diskcache reports through warnings, which a filter of the process must neither raise nor swallow."""
    with warnings.catch_warnings():
        warnings.simplefilter("always")
        return [str(w.message) for w in cache.check(fix=fix, retry=True)]
