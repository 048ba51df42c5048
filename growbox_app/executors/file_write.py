"""The executor `file_write`: a new file, or an old one as a whole.

The plan holds the bytes before and after. An existing text keeps encoding, byte order mark and line ends; a new one is UTF-8 with
plain line feeds. A last line without its end gets one, unless the file had none before.
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
from growbox_app.executors.text_files import TextFile, read_bytes, text_file

CONTENT_CHARACTERS_MAX = 1_000_000


class FileWrite:
    """Implements `Executor`."""

    name = "file_write"
    description = "Writes a whole file, new or in place of the old one."
    parameters: Mapping[str, Parameter] = {
        "path": Parameter(description="file in the project"),
        "content": Parameter(description="the whole text", kind=ParameterKind.TEXT),
    }
    risk = Risk.REVERSIBLE
    window_min = CORE_WINDOW_MIN

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """What the file would become."""
        name, content = arguments.get("path", ""), arguments.get("content", "")
        try:
            return await asyncio.to_thread(_plan, name, content, context)
        except CallFailed as failure:
            return failure.result()

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Writes what the plan holds, if the file is still what it was."""
        try:
            change, broken = await written(plan, context)
        except CallFailed as failure:
            return failure.result()
        name = shown(change.path, context.workspace)
        new = change.before is None
        lines = (change.after or b"").count(b"\n")
        text = f"{name} {'created' if new else 'replaced'}, {counted(lines, 'line')}"
        key = "file_created" if new else "file_replaced"
        return ExecutorResult(
            ok=True, text=text + broken, summary=summary(key, path=name, count=lines)
        )


def _plan(name: str, content: str, context: CallContext) -> Plan | ExecutorResult:
    path = writable_path(name, context.workspace)
    if len(content) > CONTENT_CHARACTERS_MAX:
        raise CallFailed("the text is too long for one file; split it", Reason.TOO_LONG)
    existing: TextFile | None = None
    before: bytes | None = None
    try:
        before = read_bytes(path, name)
        existing = text_file(before)
    except FileNotFoundError:
        parent = next(folder for folder in path.parents if folder.exists())
        if not parent.is_dir():
            raise CallFailed(
                f"{shown(parent, context.workspace)} is a file, no folder", Reason.NOT_A_FOLDER
            ) from None
    after = _encoded(content, existing)
    if after == before:
        name = shown(path, context.workspace)
        text = f"{name} has exactly this text already"
        return ExecutorResult(ok=True, text=text, summary=summary("file_same", path=name))
    return planned(FileChange(path=path, before=before, after=after), context)


def _encoded(content: str, existing: TextFile | None) -> bytes:
    bare = existing is not None and existing.text != "" and not existing.text.endswith("\n")
    if content and not content.endswith("\n") and not bare:
        content += "\n"
    if existing is not None:
        return existing.encode(content)
    try:
        return content.encode()
    except UnicodeEncodeError as error:
        raise CallFailed(
            "the text holds half a character; write it again", Reason.ARGUMENTS
        ) from error
