"""The executor `code_outline`: what a source file defines, with line numbers; headings of a Markdown file.

tree-sitter parses natively, so it does that in a child process. Of a file with too many definitions the inner ones are left out.
"""

from __future__ import annotations

import asyncio
import os
import re
import time
from bisect import bisect_right
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from growbox_app.executors.answers import CallFailed, Reason, cut_line, summary
from growbox_app.executors.base import (
    FULL_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    Plan,
    Risk,
)
from growbox_app.executors.child_process import ChildFailed, ChildTooSlow, frames
from growbox_app.executors.paths import no_such, readable_path, shown
from growbox_app.executors.text_files import read_bytes, text_file
from growbox_app.ingest.sections import Section, headings

ENTRIES_MAX = 150
SECONDS_MAX = 20.0
SIGNATURE_CHARACTERS_MAX = 120
_MARKDOWN = (".md", ".markdown")
_ASIDE = re.compile(r"\s*(#|//|/\*|\*|@|\[|--)")


class Entry(msgspec.Struct, frozen=True):
    """A definition: its lines, from 1, how deep it stands, and its first line."""

    first: int
    last: int
    depth: int
    text: str


class CodeOutline:
    """Implements `Executor`."""

    name = "code_outline"
    description = "Lists the functions and classes of a source file with their lines."
    parameters: Mapping[str, Parameter] = {"path": Parameter(description="source file")}
    risk = Risk.SAFE
    window_min = FULL_WINDOW_MIN

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """Which file."""
        name = arguments.get("path", "")
        try:
            path = await asyncio.to_thread(_existing, name, context)
        except CallFailed as failure:
            return failure.result()
        return Plan(reads=(path,))

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Parses."""
        path = plan.reads[0]
        try:
            return await asyncio.to_thread(_outline, path, shown(path, context.workspace), context)
        except CallFailed as failure:
            return failure.result()


def _existing(name: str, context: CallContext) -> Path:
    path = readable_path(name, context.workspace)
    if not path.exists():
        raise no_such(path, name)
    if path.is_dir():
        raise CallFailed("this is a folder; name one source file", Reason.NOT_A_FILE)
    return path


def _outline(path: Path, name: str, context: CallContext) -> ExecutorResult:
    replies = frames(
        outline,
        os.fsencode(path),
        seconds=SECONDS_MAX,
        stopped=context.cancelled.is_set,
        clock=time.monotonic,
    )
    try:
        reply = next(replies, b"")
    except (ChildTooSlow, ChildFailed) as error:
        raise CallFailed(
            "the file could not be parsed; use file_read", Reason.NO_OUTLINE
        ) from error
    finally:
        replies.close()
    if not reply:
        raise CallFailed("stopped by the user", Reason.STOPPED)
    kind, body = reply[:1], reply[1:]
    if kind == b"!":
        raise CallFailed(body.decode(), Reason.NO_OUTLINE)
    entries = msgspec.msgpack.decode(body, type=list[Entry])
    told = summary("definitions", path=name, count=len(entries))
    if not entries:
        return ExecutorResult(ok=True, text=f"{name} defines nothing", summary=told)
    lines = [f"{e.first}-{e.last}| {'  ' * e.depth}{e.text}" for e in _fitting(entries)]
    left = len(entries) - len(lines)
    more = [f"[{left} inner ones not shown]"] if left else []
    return ExecutorResult(ok=True, text="\n".join([name, *lines, *more]), summary=told)


def _fitting(entries: list[Entry]) -> list[Entry]:
    """As many levels as there is room for; at least one, cut."""
    for depth in range(max(entry.depth for entry in entries), 0, -1):
        kept = [entry for entry in entries if entry.depth <= depth]
        if len(kept) <= ENTRIES_MAX:
            return kept
    return [entry for entry in entries if entry.depth == 0][:ENTRIES_MAX]


# -- the child ----------------------------------------------------------------------------------


def outline(request: bytes) -> Iterator[bytes]:
    """One frame: `+` and the entries, or `!` and why there are none."""
    path = Path(os.fsdecode(request))
    try:
        text = text_file(read_bytes(path, path.name)).text
        entries = _entries(text, _sections(text, path.name))
    except CallFailed as failure:
        yield b"!" + failure.text.encode("utf-8", "replace")
    except FileNotFoundError:
        yield b"!the file is gone"
    else:
        yield b"+" + msgspec.msgpack.encode(entries)


def _sections(text: str, name: str) -> list[Section]:
    from growbox_app.ingest import definitions  # grammars, which only this child needs

    if definitions.knows(name):
        return definitions.definitions(text, name, whole_characters=0)
    if name.lower().endswith(_MARKDOWN):
        return headings(text)
    raise CallFailed(
        "no grammar for this kind of file; use file_read or code_search", Reason.NO_OUTLINE
    )


def _entries(text: str, sections: list[Section]) -> list[Entry]:
    """One for each section that begins a definition, which ends where something outside it begins."""
    lines = text.split("\n")
    starts = _line_starts(lines)
    entries: list[Entry] = []
    for section, end in _ended(sections, len(text)):
        begin = bisect_right(starts, section.start) - 1
        last = max(bisect_right(starts, max(end - 1, section.start)) - 1, begin)
        first = _named_line(lines, section.path[-1], begin, last)
        signature = cut_line(lines[first].strip().rstrip(" {:"), SIGNATURE_CHARACTERS_MAX)
        entries.append(
            Entry(first=first + 1, last=last + 1, depth=len(section.path) - 1, text=signature)
        )
    return sorted(entries, key=lambda entry: (entry.first, entry.depth))


def _ended(sections: list[Section], whole: int) -> Iterator[tuple[Section, int]]:
    """Definitions and their ends, innermost first. A section that returns to what is around it begins none."""
    unfinished: list[Section] = []
    before: tuple[str, ...] = ()
    for section in sections:
        path = section.path
        returns = len(path) < len(before) and before[: len(path)] == path
        around = len(path) if returns else len(path) - 1
        while unfinished and not _holds(unfinished[-1].path, path[: max(around, 0)]):
            yield unfinished.pop(), section.start
        if path and not returns:
            unfinished.append(section)
        before = path
    for section in reversed(unfinished):
        yield section, whole


def _holds(outer: tuple[str, ...], around: tuple[str, ...]) -> bool:
    return around[: len(outer)] == outer


def _line_starts(lines: list[str]) -> list[int]:
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return starts


def _named_line(lines: list[str], name: str, first: int, last: int) -> int:
    """The line of a definition that has its name, behind comments and decorators."""
    word = re.compile(rf"(?<!\w){re.escape(name)}(?!\w)")
    for at in range(first, last + 1):
        if word.search(lines[at]) and not _ASIDE.match(lines[at]):
            return at
    return first
