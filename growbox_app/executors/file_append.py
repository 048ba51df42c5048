"""The executor `file_append`: more text at the end of a file, or a new file. The smallest change there is: nothing has to be copied.

The plan holds the whole file before and after, in its own encoding and line ends.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from growbox_app.executors.answers import CallFailed, Reason, counted, summary
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
from growbox_app.executors.paths import shown, writable_path
from growbox_app.executors.text_files import read_bytes, text_file


class FileAppend:
    """Implements `Executor`."""

    name = "file_append"
    description = "Adds lines at the end of a file."
    parameters: Mapping[str, Parameter] = {
        "path": Parameter(description="file in the project"),
        "text": Parameter(description="the new lines", kind=ParameterKind.TEXT),
    }
    risk = Risk.REVERSIBLE
    window_min = CORE_WINDOW_MIN

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """What the file would become."""
        try:
            return await asyncio.to_thread(_plan, arguments, context)
        except CallFailed as failure:
            return failure.result()

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Writes what the plan holds, if the file is still what it was."""
        try:
            change, broken = await written(plan, context)
        except CallFailed as failure:
            return failure.result()
        name = shown(change.path, context.workspace)
        lines = (change.after or b"").count(b"\n") - (change.before or b"").count(b"\n")
        text = f"{name}: {counted(lines, 'line')} added at the end"
        return ExecutorResult(
            ok=True, text=text + broken, summary=summary("file_append", path=name, count=lines)
        )


def _plan(arguments: Mapping[str, str], context: CallContext) -> Plan:
    name, added = arguments.get("path", ""), arguments.get("text", "").replace("\r\n", "\n")
    path = writable_path(name, context.workspace)
    if not added.strip():
        raise CallFailed("text is empty; give the lines to add", Reason.ARGUMENTS)
    before: bytes | None = None
    try:
        before = read_bytes(path, name)
    except FileNotFoundError:
        if not path.parent.is_dir():
            raise CallFailed("there is no such folder; use file_write", Reason.NOT_THERE) from None
    existing = text_file(before or b"")
    if existing.text and not existing.text.endswith("\n"):
        added = "\n" + added
    if not added.endswith("\n"):
        added += "\n"
    after = existing.encode(existing.text + added)
    return planned(FileChange(path=path, before=before, after=after), context)
