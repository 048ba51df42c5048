"""Reading a project's files for a checkpoint, and putting them back. Blocking; one thread at a time per object.

Reading changes nothing. What is found unchanged (size, times, inode) since it was last read is not read again. Symbolic links
are never followed, a repository's own `.git` is never entered and never written. Every file is put back through a temporary
file beside it and a rename: a crash leaves the old one or the new one, and perhaps a `.growbox-….tmp`.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import stat
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeAlias

from growbox_app.ingest.ignoring import IGNORED_FOLDERS, Rules, rules_above
from growbox_app.shadow.values import (
    ABSENT,
    FOLDER_MODE,
    LINK_MODE,
    STAMP_MODE,
    CheckpointLimits,
    Entry,
    SkipReason,
    Snapshot,
)
from memory.ports import Clock

KeepBlob: TypeAlias = Callable[[bytes], bytes]
"""Stores a content and returns its name."""
_Stamp: TypeAlias = tuple[int, int, int, int, int]
_SETTLED_NS = 2_000_000_000  # the coarsest file time (FAT): a younger file may change again without its stamp showing it
_REPARSE_POINT = (
    0x400  # FILE_ATTRIBUTE_REPARSE_POINT: a junction is no symbolic link to Python 3.11
)
_TOOL_MARKERS = ("CACHEDIR.TAG", "pyvenv.cfg")
_BUILD_FILES = frozenset({"Cargo.toml", "pom.xml", "build.sbt"})


@dataclass(slots=True)
class _Reading:
    """One pass over a folder."""

    keep: KeepBlob
    ends_at_s: float
    named: frozenset[bytes]
    entries: dict[bytes, Entry] = field(default_factory=dict)
    skipped: dict[bytes, SkipReason] = field(default_factory=dict)
    bytes: int = 0


class ProjectFolder:
    """The files of one project. Paths are bytes below its root, with forward slashes."""

    def __init__(
        self,
        root: Path,
        clock: Clock,
        *,
        limits: CheckpointLimits,
        excluded: Sequence[Path] = (),
    ) -> None:
        self.root = root
        self._clock = clock
        self._limits = limits
        self._excluded = {os.path.realpath(path) for path in excluded}
        self._known: dict[bytes, tuple[_Stamp, bytes]] = {}

    def forget(self) -> None:
        """Reads everything anew next time; for when contents have left the store."""
        self._known.clear()

    def read(
        self, keep: KeepBlob, *, named: Iterable[bytes] = (), watched: Iterable[bytes] = ()
    ) -> Snapshot:
        """What the folder holds now.

        Args:
            keep: stores what was read.
            named: paths that are looked at first, whatever the rules say, and saved up to a larger size.
            watched: the same, but in no hurry: they were saved before.
        """
        first, later = (
            frozenset(path for path in p if not _is_git(path)) for p in (named, watched)
        )
        reading = _Reading(keep, self._clock.monotonic_s() + self._limits.seconds, first | later)
        for path in sorted(first):
            self._read_named(path, reading)
        self._walk(b"", rules_above(self.root).within(self.root), reading)
        for path in sorted(later - reading.entries.keys()):
            self._read_named(path, reading)
        return Snapshot(entries=reading.entries, skipped=reading.skipped, named=reading.named)

    def now(self, path: bytes) -> Entry:
        """What is at a path at this moment, read again."""
        ends_at_s = self._clock.monotonic_s() + self._limits.seconds
        reading = _Reading(_name_of_blob, ends_at_s, frozenset({path}))
        self._known.pop(path, None)
        self._read_named(path, reading)
        return reading.entries.get(path, ABSENT)

    def absolute(self, path: bytes) -> Path:
        """A path of this project for the rest of the application."""
        return Path(self._full(path))

    def relative(self, path: Path) -> bytes | None:
        """A path as a key, None when it is not in this project."""
        resolved = Path(os.path.realpath(path.parent), path.name)
        try:
            parts = resolved.relative_to(self.root).parts
        except ValueError:
            return None
        return b"/".join(os.fsencode(part) for part in parts) or None

    # --- reading

    def _full(self, path: bytes) -> str:
        return os.path.join(self.root, os.fsdecode(path)) if path else str(self.root)  # noqa: PTH118 - names that are no text

    def _read_named(self, path: bytes, reading: _Reading) -> None:
        full = self._full(path)
        if not self._is_inside(path):
            return
        try:
            status = os.lstat(full)
        except (OSError, ValueError):
            return
        if stat.S_ISDIR(status.st_mode):
            self._walk(path, None, reading)
        else:
            self._take(path, status, reading)

    def _walk(self, top: bytes, rules: Rules | None, reading: _Reading) -> None:
        """Every file below a folder; `rules` None takes ignored ones too."""
        waiting = [(top, rules)]
        while waiting:
            folder, above = waiting.pop()
            try:
                with os.scandir(self._full(folder)) as listing:
                    found = sorted(listing, key=lambda item: item.name)
            except OSError:
                reading.skipped[folder] = SkipReason.UNREADABLE
                continue
            here = above.within(Path(self._full(folder))) if above and folder != top else above
            if not found and folder:
                reading.entries.setdefault(folder, Entry(FOLDER_MODE, b""))
            names = {item.name for item in found}
            for item in found:
                path = _join(folder, item.name)
                if path in reading.entries or _is_git(path):
                    continue
                if len(reading.entries) >= self._limits.files:
                    reading.skipped[b""] = SkipReason.TOO_MANY
                    return
                below = self._visit(path, item, reading, here, names)
                if below:
                    waiting.append((path, here))

    def _visit(
        self,
        path: bytes,
        item: os.DirEntry[str],
        reading: _Reading,
        rules: Rules | None,
        beside: set[str],
    ) -> bool:
        """Takes what is no folder; whether it is a folder to go into."""
        try:
            status = item.stat(follow_symlinks=False)
        except OSError:
            reading.skipped[path] = SkipReason.UNREADABLE
            return False
        is_folder = stat.S_ISDIR(status.st_mode)
        if getattr(status, "st_file_attributes", 0) & _REPARSE_POINT and is_folder:
            reading.skipped[path] = SkipReason.SPECIAL
        elif (
            rules is not None
            and path not in reading.named
            and self._is_ignored(item, rules, beside, is_folder=is_folder)
        ):
            reading.skipped[path] = SkipReason.IGNORED
        elif is_folder:
            return True
        else:
            self._take(path, status, reading)
        return False

    def _is_ignored(
        self, item: os.DirEntry[str], rules: Rules, beside: set[str], *, is_folder: bool
    ) -> bool:
        if is_folder and (
            item.name in IGNORED_FOLDERS
            or (item.name == "target" and beside & _BUILD_FILES)
            or any(os.path.lexists(os.path.join(item.path, name)) for name in _TOOL_MARKERS)  # noqa: PTH118
            or os.path.realpath(item.path) in self._excluded
        ):
            return True
        return rules.ignore(item.path.replace(os.sep, "/"), is_folder=is_folder)

    def _take(self, path: bytes, status: os.stat_result, reading: _Reading) -> None:
        if stat.S_ISLNK(status.st_mode):
            with contextlib.suppress(OSError):
                target = os.fsencode(os.readlink(self._full(path)))  # noqa: PTH115 - as bytes
                reading.entries[path] = Entry(LINK_MODE, reading.keep(target))
            return
        if not stat.S_ISREG(status.st_mode):
            reading.skipped[path] = SkipReason.SPECIAL
            return
        mode = stat.S_IFREG | stat.S_IMODE(status.st_mode) & 0o777
        sha, reason = self._content(path, status, reading)
        if reason is None:
            reading.entries[path] = Entry(mode, sha)
        else:
            reading.skipped[path] = reason
            stamp = f"{_stamp_of(status)} {mode}".encode()
            reading.entries[path] = Entry(STAMP_MODE, _hex(stamp))

    def _content(
        self, path: bytes, status: os.stat_result, reading: _Reading
    ) -> tuple[bytes, SkipReason | None]:
        stamp = _stamp_of(status)
        known = self._known.get(path)
        if known is not None and known[0] == stamp:
            return known[1], None
        is_named = path in reading.named
        if status.st_size > (self._limits.named_bytes if is_named else self._limits.file_bytes):
            return b"", SkipReason.TOO_BIG
        is_late = self._clock.monotonic_s() > reading.ends_at_s
        if is_late or reading.bytes + status.st_size > self._limits.bytes:
            return b"", SkipReason.TOO_MANY
        try:
            content = Path(self._full(path)).read_bytes()
        except OSError:
            return b"", SkipReason.UNREADABLE
        reading.bytes += len(content)
        sha = reading.keep(content)
        newest = max(status.st_mtime_ns, status.st_ctime_ns)
        if (
            newest + _SETTLED_NS < self._clock.now_ms() * 1_000_000
            and reading.keep is not _name_of_blob
        ):
            self._known[path] = (stamp, sha)
        return sha, None

    # --- writing

    def write(self, path: bytes, entry: Entry, content: bytes) -> None:
        """Makes a path what an entry says.

        Raises:
            OSError: refused; the old file is still there.
        """
        if not self._is_inside(path) or _is_git(path):
            raise PermissionError(f"not written through a link or into a repository: {path!r}")
        full = self._full(path)
        if entry.mode == FOLDER_MODE:
            os.makedirs(full, exist_ok=True)  # noqa: PTH103
            return
        parent = os.path.dirname(full)  # noqa: PTH120
        os.makedirs(parent, exist_ok=True)  # noqa: PTH103
        temporary = os.path.join(parent, f".growbox-{os.getpid()}.tmp")  # noqa: PTH118
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)  # noqa: PTH108
        if entry.mode == LINK_MODE:
            os.symlink(os.fsdecode(content), temporary)  # noqa: PTH211
        else:
            _write_file(temporary, content, stat.S_IMODE(entry.mode))
        _replace(temporary, full)

    def remove(self, path: bytes) -> None:
        """Removes a file, link or empty folder, then the folders that this empties.

        Raises:
            OSError: refused.
        """
        if not self._is_inside(path) or _is_git(path):
            raise PermissionError(f"not removed through a link or from a repository: {path!r}")
        full = self._full(path)
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.lstat(full).st_mode):
                os.rmdir(full)  # noqa: PTH106
            else:
                _make_writable(full)
                os.unlink(full)  # noqa: PTH108
        parent = path.rpartition(b"/")[0]
        with contextlib.suppress(OSError):  # not empty
            while parent:
                os.rmdir(self._full(parent))  # noqa: PTH106
                parent = parent.rpartition(b"/")[0]

    def _is_inside(self, path: bytes) -> bool:
        """Whether no folder on the way is a link (or anything but a folder)."""
        parent = path.rpartition(b"/")[0]
        while parent:
            try:
                status = os.lstat(self._full(parent))
            except FileNotFoundError:
                pass
            except (OSError, ValueError):
                return False
            else:
                if not stat.S_ISDIR(status.st_mode):
                    return False
            parent = parent.rpartition(b"/")[0]
        return True


def _write_file(path: str, content: bytes, mode: int) -> None:
    descriptor = os.open(
        path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600
    )
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content)
        stream.flush()
        os.fsync(stream.fileno())
    os.chmod(path, mode)  # noqa: PTH101


def _replace(temporary: str, full: str) -> None:
    try:
        if os.path.isdir(full) and not os.path.islink(full):  # noqa: PTH112, PTH114
            os.rmdir(full)  # noqa: PTH106 - empty by now, or refused
        elif os.path.lexists(full):
            _make_writable(full)
        os.replace(temporary, full)  # noqa: PTH105
    except OSError:
        with contextlib.suppress(OSError):
            os.unlink(temporary)  # noqa: PTH108
        raise


def _make_writable(full: str) -> None:
    """Windows neither replaces nor removes a read-only file."""
    if os.name == "nt":
        os.chmod(full, stat.S_IWRITE)  # noqa: PTH101


def _join(folder: bytes, name: str) -> bytes:
    return folder + b"/" + os.fsencode(name) if folder else os.fsencode(name)


def _is_git(path: bytes) -> bool:
    """A repository's own files; Windows and macOS see `.GIT` as the same."""
    return any(part.lower() == b".git" for part in path.split(b"/"))


def _stamp_of(status: os.stat_result) -> _Stamp:
    return (
        status.st_size,
        status.st_mtime_ns,
        status.st_ctime_ns,
        status.st_ino,
        status.st_dev,
    )


def _hex(content: bytes) -> bytes:
    return hashlib.sha1(content, usedforsecurity=False).hexdigest().encode()


def _name_of_blob(content: bytes) -> bytes:
    """A content's name in git, nothing stored."""
    return _hex(b"blob %d\0" % len(content) + content)
