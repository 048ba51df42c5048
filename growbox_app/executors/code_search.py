"""The executor `code_search`: where a text stands in the project, with file, line and neighbouring lines.

Plain text unless `regex` is true: small models write brackets and dots and mean them. The search runs in a child process with a
time limit; what it found until then is shown.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from growbox_app.executors.answers import CallFailed, Reason, counted, number, summary, truth
from growbox_app.executors.base import (
    CORE_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    ParameterKind,
    Plan,
    Risk,
)
from growbox_app.executors.child_process import ChildFailed, ChildTooSlow, frames
from growbox_app.executors.code_matching import FileMatches, Search, compiled, search
from growbox_app.executors.paths import no_such, readable_path, shown

MATCHES_MAX = 60
CHARACTERS_MAX = 8_000
SECONDS_MAX = 20.0
PATTERN_CHARACTERS_MAX = 400
PATTERN_SHOWN_MAX = 60
CONTEXT_MAX = 5


class CodeSearch:
    """Implements `Executor`."""

    name = "code_search"
    description = "Finds a text in the files of the project."
    parameters: Mapping[str, Parameter] = {
        "pattern": Parameter(description="text of one line"),
        "path": Parameter(description="file or folder", required=False),
        "files": Parameter(description="such as *.py", required=False),
        "regex": Parameter(
            description="true: pattern is a regular expression",
            kind=ParameterKind.BOOLEAN,
            required=False,
        ),
        "context": Parameter(
            description="lines around each match", kind=ParameterKind.INTEGER, required=False
        ),
    }
    risk = Risk.SAFE
    window_min = CORE_WINDOW_MIN

    def __init__(self, *, seconds_max: float = SECONDS_MAX) -> None:
        """Takes the time limit."""
        self._seconds_max = seconds_max

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """Where to search."""
        try:
            return await asyncio.to_thread(_plan, arguments, context)
        except CallFailed as failure:
            return failure.result()

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Searches."""
        detail = plan.detail
        wanted = Search(
            place=os.fsencode(plan.reads[0]),
            pattern=detail["pattern"],
            regex=detail["regex"] == "true",
            files=tuple(detail["files"].split()),
            context=int(detail["context"]),
        )
        return await asyncio.to_thread(self._search, wanted, context)

    def _search(self, wanted: Search, context: CallContext) -> ExecutorResult:
        found = frames(
            search,
            msgspec.msgpack.encode(wanted),
            seconds=self._seconds_max,
            stopped=context.cancelled.is_set,
            clock=time.monotonic,
        )
        report = _Report(context)
        try:
            for frame in found:
                if not report.add(msgspec.msgpack.decode(frame, type=FileMatches)):
                    break
        except ChildTooSlow:
            report.note = (
                f"[not all was searched within {self._seconds_max:g} s; name a folder or files]"
            )
        except ChildFailed:
            report.note = "[the search broke off]"
        finally:
            found.close()
        return report.result(wanted)


def _plan(arguments: Mapping[str, str], context: CallContext) -> Plan:
    pattern, regex = arguments.get("pattern", ""), truth(arguments, "regex")
    if not pattern.strip():
        raise CallFailed("pattern is empty; give a word to look for", Reason.ARGUMENTS)
    if "\n" in pattern.strip("\n"):
        raise CallFailed("search for one line only", Reason.ARGUMENTS)
    if len(pattern) > PATTERN_CHARACTERS_MAX:
        raise CallFailed("pattern is too long; give a few words", Reason.TOO_LONG)
    pattern = pattern.strip("\n")
    if regex:
        compiled(pattern)
    name = arguments.get("path", "")
    path = readable_path(name, context.workspace)
    if not path.exists():
        raise no_such(path, name, "file or folder")
    lines = min(max(number(arguments, "context", 0), 0), CONTEXT_MAX)
    return Plan(
        reads=(path,),
        detail={
            "pattern": pattern,
            "regex": "true" if regex else "false",
            "files": arguments.get("files", "").replace(",", " "),
            "context": str(lines),
        },
    )


class _Report:
    """Collects matches until a limit."""

    def __init__(self, context: CallContext) -> None:
        self.note = ""
        self._context = context
        self._lines: list[str] = []
        self._characters = 0
        self._matches = self._files = self._searched = 0

    def add(self, found: FileMatches) -> bool:
        """Takes the matches of a file; False when it is enough."""
        self._searched = found.searched
        if not found.path:
            return True
        self._files += 1
        for line in self._rendered(found):
            self._lines.append(line)
            self._characters += len(line) + 1
        self._matches += sum(line.matches for line in found.lines) + found.more
        if self._characters < CHARACTERS_MAX and self._matches < MATCHES_MAX:
            return True
        self.note = "[there may be more; name a folder or files, or a longer text]"
        return False

    def _rendered(self, found: FileMatches) -> Iterator[str]:
        yield (
            shown(Path(os.fsdecode(found.path)), self._context.workspace)
            .encode("utf-8", "backslashreplace")
            .decode()
        )
        before = 0
        for line in found.lines:
            if before and line.number > before + 1 and not all(one.matches for one in found.lines):
                yield "--"
            yield f"{line.number}{':' if line.matches else '-'} {line.text}"
            before = line.number
        if found.more:
            yield f"[{found.more} more in this file]"

    def result(self, wanted: Search) -> ExecutorResult:
        if self._context.cancelled.is_set():
            self.note = "[stopped by the user]"
        if not self._lines:
            hint = "" if self.note else "; try a shorter word"
            text = f"no match in {counted(self._searched, 'file')}{hint}"
            told = summary("no_match", files=summary("files", count=self._searched))
            text = "\n".join(filter(None, (text, self.note)))
            return ExecutorResult(ok=not self.note, text=text, summary=told)
        head = f"{counted(self._matches, 'match', 'matches')} in {counted(self._files, 'file')}"
        text = "\n".join([head, *self._lines, *([self.note] if self.note else [])])
        told = summary(
            "code_search",
            pattern=wanted.pattern[:PATTERN_SHOWN_MAX],
            matches=summary("matches", count=self._matches),
            files=summary("files", count=self._files),
        )
        return ExecutorResult(ok=True, text=text, summary=told)
