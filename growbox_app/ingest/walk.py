"""Finding the files of an ingest, lazily, so that a caller can stop between any two. Reads folders only; any thread.

Symbolic links are not followed (a loop is therefore impossible), and nothing that is no regular file is opened. What is left out
for a reason a person should know is yielded as well.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Generator, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from growbox_app.ingest.ignoring import IGNORED_FOLDERS, Rules, is_private, rules_above
from growbox_app.ingest.report import SkippedFile, SkipReason

FILES_MAX = 200_000
"""More in one ingest is a mistake (somebody dropped a whole disk); what was found so far is taken."""
_REPARSE_POINT = 0x400  # FILE_ATTRIBUTE_REPARSE_POINT: on Windows also a junction, which is no symbolic link to Python 3.11


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundFile:
    """A regular file. `uri` names it in the memory; `size_bytes` and `changed_ns` are its stamp."""

    path: Path
    uri: str
    size_bytes: int
    changed_ns: int


@dataclass(frozen=True, slots=True)
class Ignored:
    """Something that nobody wants; a folder counts once."""


@dataclass(frozen=True, slots=True)
class WholeFolder:
    """This folder, which was asked for, was read to its end."""

    uri: str


Found: TypeAlias = FoundFile | SkippedFile | Ignored | WholeFolder


def uri_of(path: Path) -> str:
    """How the memory names a file: its path; bytes of it that are no text are escaped."""
    return os.fsencode(path).decode("utf-8", "backslashreplace")


def walk(paths: Sequence[Path], *, excluded: Sequence[Path] = ()) -> Iterator[Found]:
    """Everything that the paths lead to, in a stable order; each file once.

    Args:
        paths: files and folders that the user named. A file is taken whatever `.gitignore` says.
        excluded: folders that are never entered (GrowBox's own).
    """
    seen: set[str] = set()
    own = {_real(path) for path in excluded}
    for found in _walk_all(paths, own):
        if isinstance(found, FoundFile):
            if found.uri in seen:
                continue
            if len(seen) >= FILES_MAX:
                yield SkippedFile(path=found.uri, reason=SkipReason.TOO_MANY)
                return
            seen.add(found.uri)
        yield found


def _walk_all(paths: Sequence[Path], own: set[Path]) -> Iterator[Found]:
    for named in paths:
        path = _real(named)
        try:
            status = path.lstat()
        except (OSError, ValueError):
            yield SkippedFile(path=uri_of(named), reason=SkipReason.MISSING)
            continue
        if stat.S_ISDIR(status.st_mode):
            whole = yield from _walk_folder(path, rules_above(path), own)
            if whole:
                yield WholeFolder(uri_of(path))
        else:
            yield _file(path, status)


def _real(path: Path) -> Path:
    try:
        return path.expanduser().resolve()
    except (OSError, RuntimeError, ValueError):  # a loop of links, no home, a NUL in the name
        return path


def _walk_folder(folder: Path, outer: Rules, own: set[Path]) -> Generator[Found, None, bool]:
    """Yields what is in a folder and below; returns whether all of it could be listed."""
    whole = True
    waiting = [(folder, outer)]
    while waiting:
        place, above = waiting.pop()
        try:
            entries = sorted(os.scandir(place), key=lambda entry: os.fsencode(entry.name))
        except OSError:
            whole = False
            yield SkippedFile(path=uri_of(place), reason=SkipReason.UNREADABLE)
            continue
        rules = above.within(place)
        below: list[tuple[Path, Rules]] = []
        for entry in entries:
            path = Path(entry.path)
            if path in own:
                yield Ignored()
            elif (found := _judge(entry, path, rules)) is not None:
                yield found
            else:
                below.append((path, rules))
        waiting += reversed(below)
    return whole


def _judge(entry: os.DirEntry[str], path: Path, rules: Rules) -> Found | None:
    """What is to be said of an entry; None for a folder that is to be entered."""
    try:
        status = entry.stat(follow_symlinks=False)
    except OSError:
        return SkippedFile(path=uri_of(path), reason=SkipReason.UNREADABLE)
    is_folder = stat.S_ISDIR(status.st_mode)
    if entry.name in IGNORED_FOLDERS or rules.ignore(path.as_posix(), is_folder=is_folder):
        return Ignored()
    if entry.is_symlink() or getattr(status, "st_file_attributes", 0) & _REPARSE_POINT:
        return SkippedFile(path=uri_of(path), reason=SkipReason.LINK)
    if is_folder:
        return None
    if is_private(entry.name):
        return SkippedFile(path=uri_of(path), reason=SkipReason.PRIVATE)
    return _file(path, status)


def _file(path: Path, status: os.stat_result) -> Found:
    if not stat.S_ISREG(status.st_mode):
        return SkippedFile(path=uri_of(path), reason=SkipReason.SPECIAL)
    return FoundFile(
        path=path,
        uri=uri_of(path),
        size_bytes=status.st_size,
        changed_ns=status.st_mtime_ns,
    )
