"""The executor `file_edit`: one passage of a text file for another, found exactly or nearly (`passages.py`).

The plan holds the whole file before and after, in its own encoding and line ends; the reader may take a part of the change. The
result shows the new lines with their numbers, so that the next edit can be small, too.
"""

from __future__ import annotations

import asyncio
import difflib
from collections.abc import Mapping
from dataclasses import replace

from growbox_app.executors.answers import CallFailed, Reason, counted, cut_line, summary, truth
from growbox_app.executors.base import (
    CORE_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    FileChange,
    Parameter,
    ParameterKind,
    Plan,
    Risk,
)
from growbox_app.executors.changing import planned, written
from growbox_app.executors.passages import applied, replacements
from growbox_app.executors.paths import no_such, shown, writable_path
from growbox_app.executors.text_files import read_bytes, text_file

CONTEXT_LINES = 2
SHOWN_LINES_MAX = 24
SHOWN_CHARACTERS_MAX = 200
COMPARED_MAX = 1_000_000
"""Pairs of lines; a larger change is shown as one."""


class FileEdit:
    """Implements `Executor`."""

    name = "file_edit"
    description = "Replaces a few lines of a file: old must be copied from it, and be there once."
    parameters: Mapping[str, Parameter] = {
        "path": Parameter(description="file in the project"),
        "old": Parameter(description="the lines as they are", kind=ParameterKind.TEXT),
        "new": Parameter(description="what they become", kind=ParameterKind.TEXT),
        "every": Parameter(
            description="true: at all places", kind=ParameterKind.BOOLEAN, required=False
        ),
    }
    risk = Risk.REVERSIBLE
    window_min = CORE_WINDOW_MIN

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """Finds the passage and says what the file would become."""
        try:
            return await asyncio.to_thread(_plan, arguments, context)
        except CallFailed as failure:
            return failure.result()

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Writes what the plan holds, if the file is still what it was."""
        try:
            change, broken = await written(plan, context)
            name = shown(change.path, context.workspace)
            report = await asyncio.to_thread(_report, change, name)
        except CallFailed as failure:
            return failure.result()
        return replace(report, text=report.text + broken)


def _plan(arguments: Mapping[str, str], context: CallContext) -> Plan:
    name = arguments.get("path", "")
    path = writable_path(name, context.workspace)
    try:
        before = read_bytes(path, name)
    except (FileNotFoundError, NotADirectoryError):
        raise no_such(path, name) from None
    found = text_file(before)
    old, new = (arguments.get(key, "").replace("\r\n", "\n") for key in ("old", "new"))
    if not found.text:
        raise CallFailed("the file is empty; use file_write", Reason.TEXT_NOT_FOUND)
    if old == new:
        raise CallFailed("old and new are the same; nothing to change", Reason.NOTHING_TO_CHANGE)
    places = replacements(found.text, old, new, every=truth(arguments, "every"))
    after = found.encode(applied(found.text, places))
    if after == before:
        raise CallFailed(
            "the file would stay as it is; nothing to change", Reason.NOTHING_TO_CHANGE
        )
    return planned(FileChange(path=path, before=before, after=after), context)


def _report(change: FileChange, name: str) -> ExecutorResult:
    """The changed lines as they are now. Worked out from the bytes: the reader may have taken a part only."""
    old = text_file(change.before or b"").text.split("\n")
    new = text_file(change.after or b"").text.split("\n")
    changed = _changed(old, new)
    wanted = sorted(
        {
            at
            for first, last in changed
            for at in range(max(first - CONTEXT_LINES, 0), min(last + CONTEXT_LINES, len(new)))
        }
    )
    lines = [f"{at + 1}| {cut_line(new[at], SHOWN_CHARACTERS_MAX)}" for at in wanted]
    rest = len(lines) - SHOWN_LINES_MAX
    more = [f"[{counted(rest, 'more line')}]"] if rest > 0 else []
    places = counted(len(changed), "place")
    text = "\n".join([f"{name} changed at {places}. Now:", *lines[:SHOWN_LINES_MAX], *more])
    return ExecutorResult(
        ok=True,
        text=text,
        summary=summary("file_edit", path=name, count=len(changed)),
        outcome=f"{name}: {places}",
    )


def _changed(old: list[str], new: list[str]) -> list[tuple[int, int]]:
    """Ranges of new lines that differ. Only what lies between the common beginning and end is compared."""
    head, shorter = 0, min(len(old), len(new))
    while head < shorter and old[head] == new[head]:
        head += 1
    tail = 0
    while tail < shorter - head and old[-1 - tail] == new[-1 - tail]:
        tail += 1
    before, after = old[head : len(old) - tail], new[head : len(new) - tail]
    if len(before) * len(after) > COMPARED_MAX:
        return [(head, head + len(after))]
    blocks = difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes()
    return [(head + first, head + last) for tag, _, _, first, last in blocks if tag != "equal"]
