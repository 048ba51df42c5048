"""The executor `file_list`: a folder as a small tree, without what `.gitignore` leaves out.

The tree is filled level by level until the limit, so that one deep folder never hides its neighbours; a folder that was not
looked into ends in `/…`. Links are shown and not followed.
"""

from __future__ import annotations

import asyncio
import os
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from growbox_app.executors.answers import CallFailed, Reason, number, summary
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
from growbox_app.executors.text_files import is_temporary, size
from growbox_app.ingest.ignoring import IGNORED_FOLDERS, Rules, rules_above

ENTRIES_MAX = 300
SCANNED_MAX = 20_000
"""Entries of one folder that are looked at."""
DEPTH_DEFAULT, DEPTH_MAX = 3, 12


class FileList:
    """Implements `Executor`."""

    name = "file_list"
    description = "Lists the files and folders of the project."
    parameters: Mapping[str, Parameter] = {
        "path": Parameter(description="folder; . is the project", required=False),
        "depth": Parameter(
            description="levels of folders", kind=ParameterKind.INTEGER, required=False
        ),
    }
    risk = Risk.SAFE
    window_min = CORE_WINDOW_MIN

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """Which folder."""
        name = arguments.get("path", "")
        try:
            depth = min(max(number(arguments, "depth", DEPTH_DEFAULT), 1), DEPTH_MAX)
            path = await asyncio.to_thread(_folder, name, context)
        except CallFailed as failure:
            return failure.result()
        return Plan(reads=(path,), detail={"depth": str(depth)})

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Walks."""
        path = plan.reads[0]
        try:
            return await asyncio.to_thread(_list, path, int(plan.detail["depth"]), context)
        except CallFailed as failure:
            return failure.result()


def _folder(name: str, context: CallContext) -> Path:
    path = readable_path(name, context.workspace)
    if not path.exists():
        raise no_such(path, name, "folder")
    if not path.is_dir():
        raise CallFailed(f"{name!r} is a file; use file_read", Reason.NOT_A_FOLDER)
    return path


@dataclass(slots=True)
class _Folder:
    path: Path
    depth: int
    rules: Rules
    lines: list[str | _Folder] = field(default_factory=list)
    label: str = ""
    entered: bool = False


def _list(path: Path, depth: int, context: CallContext) -> ExecutorResult:
    top = _Folder(path, 0, rules_above(path))
    waiting = deque([top])
    shown_entries = left_out = 0
    while waiting and not context.cancelled.is_set():
        folder = waiting.popleft()
        if folder.depth >= depth or shown_entries >= ENTRIES_MAX:
            continue
        entries = _entries(folder)
        folder.entered = True
        left = ENTRIES_MAX - shown_entries
        for entry in entries[:left]:
            below = _entry(entry, folder)
            folder.lines.append(below)
            if isinstance(below, _Folder):
                waiting.append(below)
        shown_entries += min(len(entries), left)
        if len(entries) > left:
            left_out += len(entries) - left
            folder.lines.append(f"[{len(entries) - left} more]")
    name = shown(path, context.workspace)
    lines = _rendered(top)
    text = "\n".join(lines) if lines else "(empty folder)"
    head = "" if name == "." else f"{name}/\n"
    return ExecutorResult(
        ok=True, text=head + text, summary=summary("entries", count=shown_entries)
    )


def _entries(folder: _Folder) -> list[os.DirEntry[str]]:
    """What is shown of a folder: files first, then folders, by name."""
    rules = folder.rules.within(folder.path)
    folder.rules = rules
    kept: list[tuple[bool, str, os.DirEntry[str]]] = []
    try:
        with os.scandir(folder.path) as entries:
            for _, entry in zip(range(SCANNED_MAX), entries, strict=False):
                is_folder = entry.is_dir(follow_symlinks=False)
                path = Path(entry.path).as_posix()
                if entry.name in IGNORED_FOLDERS or is_temporary(entry.name):
                    continue
                if not rules.ignore(path, is_folder=is_folder):
                    kept.append((is_folder, entry.name, entry))
    except OSError as error:
        folder.lines.append(f"[cannot be listed: {error.strerror}]")
    return [entry for _, _, entry in sorted(kept, key=lambda found: found[:2])]


def _entry(entry: os.DirEntry[str], parent: _Folder) -> str | _Folder:
    name = entry.name.encode("utf-8", "backslashreplace").decode()
    name = name.replace("\n", "\\n").replace("\r", "\\r")
    try:
        if entry.is_symlink():
            return f"{name} (link)"
        if entry.is_dir(follow_symlinks=False):
            return _Folder(Path(entry.path), parent.depth + 1, parent.rules, label=name)
        return f"{name} ({size(entry.stat(follow_symlinks=False).st_size)})"
    except OSError:
        return name


def _rendered(folder: _Folder) -> list[str]:
    lines: list[str] = []
    for line in folder.lines:
        indent = "  " * folder.depth
        if isinstance(line, str):
            lines.append(indent + line)
        else:
            lines.append(f"{indent}{line.label}/" + ("" if line.entered else "…"))
            lines += _rendered(line)
    return lines
