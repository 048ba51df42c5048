"""The one SQLite connection of `timeline.db`: pragmas, transactions, thread check, error translation.

Invariants: one connection, used only on the thread that opened it; WAL with `synchronous=FULL`, so a commit that returned
survives a power cut; `secure_delete` overwrites freed pages. A crash leaves the last committed transaction. Every sqlite3
error is translated by one table, `translated`.
"""

from __future__ import annotations

import errno
import sqlite3
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeAlias

from memory.config import StorageConfig
from memory.errors import (
    CorruptStore,
    EngineClosed,
    InvariantError,
    MemoryEngineError,
    StorageError,
    require,
)

Value: TypeAlias = str | int | float | bytes | None
Row: TypeAlias = sqlite3.Row

_FULL = {sqlite3.SQLITE_FULL}
_READONLY = {sqlite3.SQLITE_READONLY, sqlite3.SQLITE_PERM}
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_BASE_CODE = 0xFF  # extended result codes keep the plain one in the low byte


def translated(error: sqlite3.Error, path: Path) -> MemoryEngineError | InvariantError:
    """What a sqlite3 error means here: full, read-only, corrupt, our own bug, or other input/output trouble."""
    code = getattr(error, "sqlite_errorcode", None)
    base = code & _BASE_CODE if isinstance(code, int) else -1
    if base in _CORRUPT:
        return CorruptStore("timeline", path, str(error))
    if base == sqlite3.SQLITE_CONSTRAINT:
        return InvariantError(f"timeline.db refused a row: {error}")
    if base in _FULL:
        return StorageError("full", path, str(error))
    if base in _READONLY:
        return StorageError("readonly", path, str(error))
    return StorageError("io", path, str(error))


def translated_os(error: OSError, path: Path) -> StorageError:
    """The same for the operating system's own errors."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return StorageError("full", path, str(error))
    if error.errno in (errno.EROFS, errno.EACCES, errno.EPERM):
        return StorageError("readonly", path, str(error))
    return StorageError("io", path, str(error))


class Database:
    """A connection with nested transactions and known errors."""

    def __init__(self, path: Path, config: StorageConfig) -> None:
        self.path = path
        self._thread = threading.get_ident()
        self._depth = 0
        self._counts: dict[tuple[str, tuple[Value, ...]], int] = {}
        self._counted_at = -1
        self._open: sqlite3.Connection | None = None
        connection: sqlite3.Connection | None = None
        try:
            connection = sqlite3.connect(
                path,
                timeout=config.busy_ms / 1000,
                isolation_level=None,
                check_same_thread=True,
                cached_statements=256,
            )
            connection.row_factory = sqlite3.Row
            _apply_pragmas(connection, config)
        except sqlite3.Error as error:
            if connection is not None:
                connection.close()
            raise translated(error, path) from error
        self._open = connection

    @property
    def is_open(self) -> bool:
        """False after `close`."""
        return self._open is not None

    @property
    def connection(self) -> sqlite3.Connection:
        """The raw connection; asserts the thread.

        Raises:
            EngineClosed: after `close`.
        """
        require(threading.get_ident() == self._thread, "timeline.db is used on a foreign thread")
        if self._open is None:
            raise EngineClosed(str(self.path))
        return self._open

    def execute(self, sql: str, values: Sequence[Value] = ()) -> sqlite3.Cursor:
        """Runs one statement."""
        try:
            return self.connection.execute(sql, values)
        except sqlite3.Error as error:
            raise translated(error, self.path) from error

    def execute_many(self, sql: str, rows: Iterable[Sequence[Value]]) -> None:
        """Runs one statement for many rows."""
        try:
            self.connection.executemany(sql, rows)
        except sqlite3.Error as error:
            raise translated(error, self.path) from error

    def rows(self, sql: str, values: Sequence[Value] = ()) -> list[Row]:
        """All rows of a query."""
        try:
            return self.connection.execute(sql, values).fetchall()
        except sqlite3.Error as error:
            raise translated(error, self.path) from error

    def row(self, sql: str, values: Sequence[Value] = ()) -> Row | None:
        """The first row, or None."""
        try:
            found: Row | None = self.connection.execute(sql, values).fetchone()
        except sqlite3.Error as error:
            raise translated(error, self.path) from error
        return found

    def number(self, sql: str, values: Sequence[Value] = ()) -> int:
        """The first column of the first row as an integer; 0 when there is none."""
        found = self.row(sql, values)
        return int(found[0] or 0) if found is not None else 0

    def counted(self, sql: str, values: tuple[Value, ...] = ()) -> int:
        """As `number`, for what every search asks: kept until this connection writes, and it alone does."""
        if self.connection.in_transaction:
            return self.number(sql, values)  # a rollback would leave no sign
        if self._counted_at != self.connection.total_changes:
            self._counts.clear()
            self._counted_at = self.connection.total_changes
        key = (sql, values)
        if key not in self._counts:
            self._counts[key] = self.number(sql, values)
        return self._counts[key]

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """Commits on leaving, rolls back on any exception; an inner one joins the outer."""
        if self._depth:
            self._depth += 1
            try:
                yield
            finally:
                self._depth -= 1
            return
        self.execute("BEGIN IMMEDIATE")
        self._depth = 1
        try:
            yield
            self.execute("COMMIT")
        except BaseException:
            if self.connection.in_transaction:
                self.connection.rollback()
            raise
        finally:
            self._depth = 0

    def meta(self, key: str) -> str | None:
        """A value of the engine's own small settings."""
        found = self.row("SELECT value FROM meta WHERE key = ?", (key,))
        return str(found[0]) if found is not None else None

    def set_meta(self, key: str, value: str) -> None:
        """Writes one."""
        self.execute(
            "INSERT INTO meta(key, value) VALUES(?, ?)"
            " ON CONFLICT(key) DO UPDATE SET value = excluded.value",
            (key, value),
        )

    def file_bytes(self) -> int:
        """Size on disk, write-ahead log included."""
        files = (self.path, self.path.with_name(self.path.name + "-wal"))
        return sum(f.stat().st_size for f in files if f.exists())

    def close(self) -> None:
        """Idempotent."""
        if self._open is not None:
            connection = self.connection
            self._open = None
            connection.close()


def _apply_pragmas(connection: sqlite3.Connection, config: StorageConfig) -> None:
    """Every default that matters is said; `journal_mode` first, it is what finds a file that is no database."""
    for pragma in (
        "journal_mode = WAL",
        "synchronous = FULL",
        "foreign_keys = ON",
        "secure_delete = ON",
        "temp_store = MEMORY",
        "trusted_schema = OFF",
        f"cache_size = -{config.cache_kib}",
    ):
        connection.execute(f"PRAGMA {pragma}")
