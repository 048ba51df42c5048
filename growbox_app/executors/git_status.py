"""The executor `git_status`: the branch and what changed since the last commit, in words."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from pathlib import Path

from growbox_app.executors.answers import CallFailed, summary
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
    own_programs,
    require_programs,
    require_repository,
    told,
)
from growbox_app.executors.paths import root_of

FILES_MAX = 100
_STATES = {"?": "new", "A": "new, added", "D": "deleted", "R": "renamed", "C": "copied"}


class GitStatus:
    """Implements `Executor`."""

    name = "git_status"
    description = "Shows the git branch and the changed files."
    parameters: Mapping[str, Parameter] = {}
    risk = Risk.SAFE
    window_min = FULL_WINDOW_MIN

    async def plan(
        self,
        arguments: Mapping[str, str],  # noqa: ARG002 - the protocol's
        context: CallContext,
    ) -> Plan | ExecutorResult:
        """Which folder."""
        try:
            root = await asyncio.to_thread(root_of, context.workspace)
            programs = await asyncio.to_thread(own_programs, root)
        except CallFailed as failure:
            return failure.result()
        return Plan(reads=(root,), command="; ".join(programs), cwd=root)

    async def run(
        self,
        plan: Plan,
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> ExecutorResult:
        """Asks git."""
        try:
            return await asyncio.to_thread(_status, plan.reads[0], plan.command)
        except CallFailed as failure:
            return failure.result()


def _status(root: Path, programs: str) -> ExecutorResult:
    require_repository(root)
    require_programs(root, programs)
    plain = ("--porcelain=v1", "--branch", "-z", "--no-renames", OWN_FILES_ONLY)
    answer = told(root, "status", *plain, "--", ".")
    branch, *entries = answer.names()
    lines = [_line(entry) for entry in entries]
    more = [f"[{len(lines) - FILES_MAX} more]"] if len(lines) > FILES_MAX else []
    head = f"branch {branch.removeprefix('## ')}"
    text = "\n".join([head, *(lines[:FILES_MAX] or ["nothing changed"]), *more])
    return ExecutorResult(ok=True, text=text, summary=summary("changed_files", count=len(lines)))


def _line(entry: str) -> str:
    """An entry of git's as words: its first letter is what is staged, the second what is not."""
    staged, unstaged, name = entry[0], entry[1], entry[3:]
    name = name.encode("utf-8", "backslashreplace").decode().replace("\n", "\\n")
    if "U" in (staged, unstaged) or staged + unstaged in {"AA", "DD"}:
        return f"conflict: {name}"
    state = _STATES.get(staged if staged != " " else unstaged, "changed")
    return f"{state}: {name}"
