"""The executor `git_diff`: what changed since the last commit, staged or not. External diff programs are not run.

Sensitive files are left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from growbox_app.executors.answers import CallFailed, Reason, summary
from growbox_app.executors.base import (
    FULL_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    Plan,
    Risk,
)
from growbox_app.executors.git_cli import (
    OWN_FILES_ONLY,
    base,
    changed,
    new,
    own_programs,
    pathspecs,
    require_programs,
    require_repository,
    told,
)
from growbox_app.executors.paths import is_sensitive, readable_path, root_of
from growbox_app.executors.processes import Output

NEW_NAMES_MAX = 30


class GitDiff:
    """Implements `Executor`."""

    name = "git_diff"
    description = "Shows what changed since the last git commit."
    parameters: Mapping[str, Parameter] = {
        "path": Parameter(description="only this file or folder", required=False)
    }
    risk = Risk.SAFE
    window_min = FULL_WINDOW_MIN

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """Which file or folder of the project."""
        name = arguments.get("path", "")
        try:
            root = await asyncio.to_thread(root_of, context.workspace)
            path = await asyncio.to_thread(readable_path, name, context.workspace)
            if not path.is_relative_to(root):
                raise CallFailed("path is outside the project folder", Reason.OUTSIDE)
            programs = await asyncio.to_thread(own_programs, root)
        except CallFailed as failure:
            return failure.result()
        return Plan(reads=(path,), command="; ".join(programs), cwd=root)

    async def run(
        self,
        plan: Plan,
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> ExecutorResult:
        """Asks git."""
        assert plan.cwd is not None
        try:
            return await asyncio.to_thread(_diff, plan.cwd, plan.reads[0], plan.command)
        except CallFailed as failure:
            return failure.result()


def _diff(root: Path, path: Path, programs: str) -> ExecutorResult:
    require_repository(root)
    require_programs(root, programs)
    where = pathspecs([] if path == root else [str(path)], root)
    secret = [name for name in changed(root, *where) if is_sensitive(root / name)]
    without = [f":(exclude,literal){name}" for name in secret]
    plain = ("--no-ext-diff", "--no-textconv", "--relative", OWN_FILES_ONLY)
    diff = told(root, "diff", *plain, base(root), "--", *where, *without).output
    added = [name for name in new(root, *where) if not is_sensitive(root / name)]
    output = Output()
    output.add(diff)
    files = diff.count(b"\ndiff --git ") + diff.startswith(b"diff --git ")
    shown = [name.encode("utf-8", "backslashreplace").decode() for name in added[:NEW_NAMES_MAX]]
    more = " …" if len(added) > NEW_NAMES_MAX else ""
    notes = [f"new files, not in the diff: {', '.join(shown)}{more}"] if added else []
    text = "\n".join([output.text() or "nothing changed", *notes])
    return ExecutorResult(ok=True, text=text, summary=summary("changed_files", count=files))
