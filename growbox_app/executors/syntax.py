"""Whether a change broke a file: Python, JSON and TOML that could be parsed before, and cannot be any more; and the one mistake that is mended.

A small model sees at once what it would otherwise learn from a puzzling error three calls later. Parsing happens in a child process.
"""

from __future__ import annotations

import ast
import json
import re
import time
import tomllib
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
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
    said = _asked(change, stopped)
    return f"\n{BROKEN} {said}" if said else ""


def mended(change: FileChange, stopped: Callable[[], bool]) -> FileChange:
    """Python with line ends inside strings, where the model meant escapes, with those, if it is right then; any other change as it is. Blocking.

    A model that writes code inside JSON forgets one of the two backslashes; no right program has a line end there.
    """
    after = change.after
    if PurePath(change.path).suffix.lower() not in _PYTHON or not after or len(after) > BYTES_MAX:
        return change
    found = text_file(after)
    text = escaped_line_ends(found.text)
    if text == found.text:
        return change
    wanted = replace(change, after=found.encode(text))
    return change if _asked(replace(wanted, before=None), stopped) != "" else wanted


def escaped_line_ends(text: str) -> str:
    """Python code with escapes for line ends inside strings of single quotation marks."""
    parts: list[str] = []
    at = 0
    while at < len(text):
        code = _CODE.match(text, at)
        assert code is not None
        quote = code.group(1)
        parts.append(code.group())
        at = code.end()
        if quote:
            inside = _INSIDE[quote].match(text, at)
            assert inside is not None
            parts.append(
                _LINE_END.sub(_escaped, inside.group()) if len(quote) == 1 else inside.group()
            )
            at = inside.end()
    return "".join(parts)


def _escaped(found: re.Match[str]) -> str:
    return found.group(1) or "\\n"


def _asked(change: FileChange, stopped: Callable[[], bool]) -> str | None:
    """What a child says is wrong with a change; None: it cannot be told."""
    after = change.after
    if PurePath(change.path).suffix.lower() not in _PARSERS or not after or len(after) > BYTES_MAX:
        return None
    question = _Question(name=change.path.name, before=change.before, after=after)
    replies = frames(
        check,
        msgspec.msgpack.encode(question),
        seconds=SECONDS_MAX,
        stopped=stopped,
        clock=time.monotonic,
    )
    try:
        return next(replies, b"").decode("utf-8", "replace")
    except (ChildTooSlow, ChildFailed):
        return None
    finally:
        replies.close()


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


_PYTHON = (".py", ".pyi")
_CODE = re.compile(r"(?:[^\"'#]+|#[^\n]*)*(\"{3}|'{3}|[\"'])?")
"""Up to the next string, with its opening quotation mark."""
_INSIDE = {
    quote: re.compile(rf"(?:\\.|(?!{quote}).)*(?:{quote})?", re.DOTALL)
    for quote in ('"', "'", '"""', "'''")
}
_LINE_END = re.compile(r"(\\.)|\n", re.DOTALL)
_PARSERS: Mapping[str, Callable[[str], object]] = {
    ".py": ast.parse,
    ".pyi": ast.parse,
    ".json": json.loads,
    ".toml": tomllib.loads,
}
