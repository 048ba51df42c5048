"""The searching itself: files of a folder, line by line, as ripgrep would. Runs in a child process (`child_process.py`).

What `.gitignore` leaves out, links, binary files, files of more than `text_files.FILE_BYTES_MAX` and sensitive files are not
searched.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
from pathspec import GitIgnoreSpec

from growbox_app.executors.answers import CallFailed, Reason
from growbox_app.executors.paths import is_sensitive
from growbox_app.executors.text_files import is_temporary, read_bytes, text_file
from growbox_app.ingest.walk import FoundFile, walk

MATCHES_PER_FILE_MAX = 20
REGEX_LINE_CHARACTERS_MAX = 4_000
_REPORT_FILES = 200


class Search(msgspec.Struct, frozen=True):
    """What to look for, and where. `place` is a file or folder as the system has it; `files` are patterns as in `.gitignore`."""

    place: bytes
    pattern: str
    regex: bool
    files: tuple[str, ...]
    context: int


class Line(msgspec.Struct, frozen=True):
    """A line of a file, from 1; one that matches, or one of its neighbours."""

    number: int
    text: str
    matches: bool
    at: int = 0


class FileMatches(msgspec.Struct, frozen=True):
    """Matches in one file. `searched` counts files up to here; without `path` nothing else is said."""

    path: bytes = b""
    lines: tuple[Line, ...] = ()
    more: int = 0
    searched: int = 0


def search(request: bytes) -> Iterator[bytes]:
    """Frames of `FileMatches`, file by file, the last one without a path."""
    wanted = msgspec.msgpack.decode(request, type=Search)
    finder = _finder(wanted)
    place = Path(os.fsdecode(wanted.place))
    spec = GitIgnoreSpec.from_lines(wanted.files) if wanted.files else None
    searched = 0
    for found in walk([place]):
        if not isinstance(found, FoundFile) or is_temporary(found.path.name):
            continue
        if is_sensitive(found.path):
            continue
        if spec is not None and not spec.match_file(_inside(found.path, place)):
            continue
        searched += 1
        matches = _in_file(found.path, finder, wanted.context, searched)
        if matches is not None:
            yield msgspec.msgpack.encode(matches)
        elif searched % _REPORT_FILES == 0:
            yield msgspec.msgpack.encode(FileMatches(searched=searched))
    yield msgspec.msgpack.encode(FileMatches(searched=searched))


def compiled(pattern: str) -> re.Pattern[str]:
    """A regular expression; without capitals in it, case does not count.

    Raises:
        CallFailed: it is none.
    """
    try:
        return re.compile(pattern, re.NOFLAG if _minds_case(pattern) else re.IGNORECASE)
    except (re.error, OverflowError, RecursionError) as error:
        raise CallFailed(
            f"not a regular expression: {error}; leave regex out to search the text as it is",
            Reason.BAD_PATTERN,
        ) from error


def _minds_case(pattern: str) -> bool:
    """A capital that is no class (as in an escape) says that case counts."""
    return any(character.isupper() for character in re.sub(r"\\.", "", pattern))


def _finder(wanted: Search) -> Callable[[str], int]:
    """Where a line matches, -1 where it does not."""
    if wanted.regex:
        expression = compiled(wanted.pattern)

        def find(line: str) -> int:
            match = expression.search(line, 0, REGEX_LINE_CHARACTERS_MAX)
            return -1 if match is None else match.start()

        return find
    if any(character.isupper() for character in wanted.pattern):
        return lambda line: line.find(wanted.pattern)
    needle = wanted.pattern.lower()
    return lambda line: line.lower().find(needle)


def _inside(path: Path, place: Path) -> str:
    return path.name if path == place else path.relative_to(place).as_posix()


def _in_file(
    path: Path, find: Callable[[str], int], context: int, searched: int
) -> FileMatches | None:
    try:
        text = text_file(read_bytes(path, path.name)).text
    except (CallFailed, FileNotFoundError):
        return None
    lines = text.split("\n")
    hits = {at: where for at, line in enumerate(lines) if (where := find(line)) >= 0}
    if not hits:
        return None
    kept = dict(list(hits.items())[:MATCHES_PER_FILE_MAX])
    around = sorted(
        {
            at
            for hit in kept
            for at in range(max(hit - context, 0), min(hit + context + 1, len(lines)))
        }
    )
    return FileMatches(
        path=os.fsencode(path),
        lines=tuple(
            Line(number=at + 1, text=_window(lines[at], kept.get(at, 0)), matches=at in kept)
            for at in around
        ),
        more=len(hits) - len(kept),
        searched=searched,
    )


LINE_CHARACTERS_MAX = 200


def _window(line: str, at: int) -> str:
    """The part of a long line around the match."""
    line = line.encode("utf-8", "replace").decode()
    if len(line) <= LINE_CHARACTERS_MAX:
        return line
    start = max(min(at - LINE_CHARACTERS_MAX // 4, len(line) - LINE_CHARACTERS_MAX), 0)
    end = start + LINE_CHARACTERS_MAX
    return ("…" if start else "") + line[start:end] + ("…" if end < len(line) else "")
