"""The executor `git_commit`: commits named files, or everything that changed in the project's folder.

Exactly the files of the plan are committed, whatever else is staged stays staged, and nothing is pushed. Sensitive files
are only taken when they are named, which the policy then denies. The user's hooks run, as they would for the user: skipping them would
let through what they are there to stop. But they are programs, so the plan names them as its command, and the policy asks.
"""

from __future__ import annotations

import asyncio
import json
import os
import shlex
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from growbox_app.executors.answers import CallFailed, Reason, counted, summary
from growbox_app.executors.base import (
    FULL_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    ParameterKind,
    Plan,
    Risk,
)
from growbox_app.executors.git_cli import (
    ask,
    changed,
    commit_hooks,
    new,
    own_programs,
    pathspecs,
    require_repository,
    told,
    without_filters,
    words,
)
from growbox_app.executors.paths import is_sensitive, root_of, writable_path
from growbox_app.executors.processes import Command, Ended, Ending

SECONDS_MAX = 300
NAMES_SHOWN_MAX = 20


class GitCommit:
    """Implements `Executor`."""

    name = "git_commit"
    description = "Commits changed files to git."
    parameters: Mapping[str, Parameter] = {
        "message": Parameter(description="what changed and why", kind=ParameterKind.TEXT),
        "paths": Parameter(
            description="only these files, one per line", kind=ParameterKind.TEXT, required=False
        ),
    }
    risk = Risk.REVERSIBLE
    window_min = FULL_WINDOW_MIN

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """Which files, and which hooks would run."""
        try:
            return await asyncio.to_thread(_plan, arguments, context)
        except CallFailed as failure:
            return failure.result()

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Commits. What was announced to git for it is taken back when it fails."""
        assert plan.cwd is not None
        root, detail = plan.cwd, plan.detail
        fresh, files = json.loads(detail["new"]), json.loads(detail["files"])
        try:
            if await asyncio.to_thread(_hooks, root) != plan.command:
                raise CallFailed(
                    "the hooks changed in the meantime; nothing was committed", Reason.CHANGED
                )
            with tempfile.TemporaryDirectory(prefix="growbox-commit-") as folder:
                listed = await asyncio.to_thread(_prepare, Path(folder), files, detail["message"])
                await asyncio.to_thread(_announce, root, fresh)
                committed = False
                try:
                    ended = await Command(words(root, listed), root).finish(
                        seconds=SECONDS_MAX, cancelled=context.cancelled
                    )
                    committed = ended.code == 0
                finally:
                    if not committed:
                        _withdraw(root, fresh)
            return await asyncio.to_thread(_result, root, ended, files)
        except CallFailed as failure:
            return failure.result()


def _plan(arguments: Mapping[str, str], context: CallContext) -> Plan | ExecutorResult:
    message = arguments.get("message", "").strip()
    if not message:
        raise CallFailed("message is empty; say what changed", Reason.ARGUMENTS)
    root = root_of(context.workspace)
    require_repository(root)
    named = [name.strip() for name in arguments.get("paths", "").split("\n") if name.strip()]
    named = [str(writable_path(name, context.workspace)) for name in named]
    places = pathspecs(named, root)
    fresh = new(root, *places)
    files = sorted({*changed(root, *places, options=without_filters(root)), *fresh})
    if not named:
        files = [name for name in files if not is_sensitive(root / name)]
    fresh = [name for name in fresh if name in files]
    if not files:
        return ExecutorResult(
            ok=True,
            text="nothing changed, nothing to commit",
            summary=summary("nothing_to_commit"),
        )
    return Plan(
        # Of a link git takes the link, not what it leads to.
        reads=tuple(path for name in files if not (path := root / name).is_symlink()),
        command=_hooks(root),
        cwd=root,
        detail={"message": message, "files": json.dumps(files), "new": json.dumps(fresh)},
    )


def _hooks(root: Path) -> str:
    """The programs that a commit would run, as a command line."""
    hooks = [shlex.quote(str(path.resolve())) for path in commit_hooks(root)]
    return "; ".join([*hooks, *own_programs(root, commits=True)])


def _prepare(folder: Path, files: Sequence[str], message: str) -> list[str]:
    """The words of the commit; list and message are files, for both may be longer than a command line."""
    listed, said = folder / "files", folder / "message"
    listed.write_bytes(_listed(files))
    said.write_text(message + "\n", encoding="utf-8", errors="replace")
    return [
        "--literal-pathspecs",
        "commit",
        "--only",
        "--quiet",
        f"--file={said}",
        f"--pathspec-from-file={listed}",
        "--pathspec-file-nul",
    ]


def _listed(files: Sequence[str]) -> bytes:
    return b"\0".join(os.fsencode(name) for name in files)


def _announce(root: Path, fresh: Sequence[str]) -> None:
    """Makes git know new files, without their content: a commit of named files takes only those it knows."""
    if fresh:
        told(root, *_about("add", "--intent-to-add"), given=_listed(fresh))


def _withdraw(root: Path, fresh: Sequence[str]) -> None:
    if fresh:
        ask(root, *_about("reset", "--quiet"), given=_listed(fresh))


def _about(*command: str) -> list[str]:
    return ["--literal-pathspecs", *command, "--pathspec-from-file=-", "--pathspec-file-nul"]


def _result(root: Path, ended: Ended, files: Sequence[str]) -> ExecutorResult:
    if ended.ending is not Ending.EXIT or ended.code != 0:
        why = ended.output or ended.ending
        raise CallFailed(f"not committed:\n{why}", Reason.NOT_COMMITTED)
    head = told(root, "log", "-1", "--format=%h %s").output.decode("utf-8", "replace").strip()
    names = [name.encode("utf-8", "backslashreplace").decode() for name in files[:NAMES_SHOWN_MAX]]
    more = " …" if len(files) > NAMES_SHOWN_MAX else ""
    text = f"committed {head}\n{counted(len(files), 'file')}: {', '.join(names)}{more}"
    return ExecutorResult(ok=True, text=text, summary=head)
