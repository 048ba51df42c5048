"""The executor `file_read`: lines of a text file, numbered, so that a small model can speak of them.

A part is bounded in lines and characters; the last line of a result says how to read on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from growbox_app.executors.answers import CallFailed, Reason, counted, cut_line, number, summary
from growbox_app.executors.base import (
    CORE_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    ParameterKind,
    Plan,
    Risk,
)
from growbox_app.executors.paths import no_such, readable_path, shown
from growbox_app.executors.text_files import read_bytes, text_file

LINES_MAX = 200
CHARACTERS_MAX = 8_000
"""About 2,500 tokens of code: a third of the default window."""
LINE_CHARACTERS_MAX = 500


class FileRead:
    """Implements `Executor`."""

    name = "file_read"
    description = "Shows a text file with line numbers."
    parameters: Mapping[str, Parameter] = {
        "path": Parameter(description="file in the project"),
        "first": Parameter(description="first line", kind=ParameterKind.INTEGER, required=False),
        "last": Parameter(description="last line", kind=ParameterKind.INTEGER, required=False),
    }
    risk = Risk.SAFE
    window_min = CORE_WINDOW_MIN

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """Which file, which lines."""
        try:
            first, last = number(arguments, "first", 1), number(arguments, "last", 0)
            name = arguments.get("path", "")
            path = await asyncio.to_thread(_existing, name, context)
        except CallFailed as failure:
            return failure.result()
        return Plan(reads=(path,), detail={"first": str(first), "last": str(last)})

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Reads the lines."""
        path = plan.reads[0]
        name = shown(path, context.workspace)
        first, last = int(plan.detail["first"]), int(plan.detail["last"])
        try:
            return await asyncio.to_thread(_read, path, name, first, last)
        except FileNotFoundError:
            return no_such(path, name).result()
        except CallFailed as failure:
            return failure.result()


def _existing(name: str, context: CallContext) -> Path:
    path = readable_path(name, context.workspace)
    if not path.exists():
        raise no_such(path, name)
    return path


def _read(path: Path, name: str, first: int, last: int) -> ExecutorResult:
    found = text_file(read_bytes(path, name))
    lines = found.text.removesuffix("\n").split("\n") if found.text else []
    if not lines:
        return ExecutorResult(ok=True, text=f"{name} is empty", summary=_told(name, 1, 0, 0))
    first = max(first, 1)
    if first > len(lines):
        raise CallFailed(f"{name} has only {counted(len(lines), 'line')}", Reason.NO_SUCH_LINE)
    last = min(last if last >= first else len(lines), len(lines))
    part = _part(lines, first, last)
    end = first + len(part) - 1
    whole = first == 1 and end == len(lines)
    notes = "" if found.encoding == "utf-8" else f", {found.encoding}"
    of = counted(len(lines), "line") if whole else f"lines {first}-{end} of {len(lines)}"
    rest = "" if end == len(lines) else f"\n[read on with first={end + 1}]"
    return ExecutorResult(
        ok=True,
        text=f"{name}: {of}{notes}\n" + "\n".join(part) + rest,
        summary=_told(name, first, end, len(lines)),
    )


def _told(name: str, first: int, end: int, lines: int) -> str:
    """Which lines of how many, for the user."""
    if first == 1 and end == lines:
        return summary("file_read", path=name, count=lines)
    if first == end:
        return summary("file_line", path=name, line=first, lines=lines)
    return summary("file_lines", path=name, first=first, last=end, lines=lines)


def _part(lines: list[str], first: int, last: int) -> list[str]:
    """Numbered lines, as many as the limits allow; at least one."""
    part: list[str] = []
    characters = 0
    for at in range(first, min(last, first + LINES_MAX - 1) + 1):
        line = f"{at}| {cut_line(lines[at - 1], LINE_CHARACTERS_MAX)}"
        characters += len(line) + 1
        if part and characters > CHARACTERS_MAX:
            break
        part.append(line)
    return part
