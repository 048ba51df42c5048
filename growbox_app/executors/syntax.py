"""Whether a change broke a file: Python, JSON and TOML that could be parsed before, and cannot be any more.

A small model sees at once what it would otherwise learn from a puzzling error three calls later. Parsing happens in a child process.
"""

from __future__ import annotations

import ast
import json
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath

import msgspec

from growbox_app.executors.answers import CallFailed
from growbox_app.executors.base import FileChange
from growbox_app.executors.child_process import ChildFailed, ChildTooSlow, frames
from growbox_app.executors.text_files import text_file

BYTES_MAX = 500_000
SECONDS_MAX = 5.0
BROKEN = "But the file is broken now:"


class _Question(msgspec.Struct, frozen=True):
    name: str
    before: bytes | None
    after: bytes


def complaint(change: FileChange, stopped: Callable[[], bool]) -> str:
    """A line for the model that begins with a line end; empty when nothing was broken, or it cannot be told. Blocking."""
    after = change.after
    if PurePath(change.path).suffix.lower() not in _PARSERS or not after or len(after) > BYTES_MAX:
        return ""
    question = _Question(name=change.path.name, before=change.before, after=after)
    replies = frames(
        check,
        msgspec.msgpack.encode(question),
        seconds=SECONDS_MAX,
        stopped=stopped,
        clock=time.monotonic,
    )
    try:
        said = next(replies, b"").decode("utf-8", "replace")
    except (ChildTooSlow, ChildFailed):
        return ""
    finally:
        replies.close()
    return f"\n{BROKEN} {said}" if said else ""


# -- the child ----------------------------------------------------------------------------------


def check(request: bytes) -> Iterator[bytes]:
    """One frame: what is wrong with the new text; empty when it is right, or the old one was wrong, too."""
    question = msgspec.msgpack.decode(request, type=_Question)
    parse = _PARSERS[PurePath(question.name).suffix.lower()]
    error = _error(parse, question.after)
    if error and question.before and _error(parse, question.before):
        error = ""
    yield error.encode("utf-8", "replace")


def _error(parse: Callable[[str], object], data: bytes) -> str:
    try:
        parse(text_file(data).text)
    except SyntaxError as error:
        return f"line {error.lineno}: {error.msg}"
    except (ValueError, RecursionError, MemoryError, CallFailed) as error:  # JSON, TOML; too deep
        return str(error) or "it cannot be parsed"
    return ""


_PARSERS: Mapping[str, Callable[[str], object]] = {
    ".py": ast.parse,
    ".pyi": ast.parse,
    ".json": json.loads,
    ".toml": tomllib.loads,
}
