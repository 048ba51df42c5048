"""The user's git, called so that looking changes nothing and runs nothing: no locks, no pagers, no external diff programs.

Blocking; any thread. Configuration and identity are the user's own. Repositories above the project's folder count, but only
what lies in the folder is looked at or committed.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from growbox_app.executors.answers import CallFailed, Reason
from growbox_app.executors.processes import environment, program

SECONDS_MAX = 30.0
OUTPUT_BYTES_MAX = 20_000_000
COMMIT_HOOKS = ("pre-commit", "prepare-commit-msg", "commit-msg", "post-commit")
_QUIET = (
    "--no-pager",
    "--no-optional-locks",
    "-c",
    "core.quotePath=false",
    "-c",
    "color.ui=false",
    "-c",
    "core.fsmonitor=false",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What git said."""

    code: int
    output: bytes
    errors: str

    def names(self) -> list[str]:
        """Output with NUL after each name."""
        return [os.fsdecode(name) for name in self.output.split(b"\0") if name]


def words(root: Path, arguments: Sequence[str]) -> list[str]:
    """The words that run git.

    Raises:
        CallFailed: there is no git.
    """
    tool = program("git", root)
    if tool is None:
        raise CallFailed("git is not installed on this computer; go on without it", Reason.NO_GIT)
    return [tool, *_QUIET, *arguments]


def ask(root: Path, *arguments: str, given: bytes = b"") -> Answer:
    """Runs git in a folder.

    Raises:
        CallFailed: there is no git, or it takes too long.
    """
    try:
        done = subprocess.run(  # noqa: S603 - words of ours; names from the model stand behind --
            words(root, arguments),
            cwd=root,
            env=environment(root),
            input=given,
            capture_output=True,
            timeout=SECONDS_MAX,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise CallFailed(f"git took longer than {SECONDS_MAX:g} s", Reason.TIME) from error
    except OSError as error:
        raise CallFailed(
            f"git could not be started: {error.strerror}", Reason.CANNOT_START
        ) from error
    errors = done.stderr[-2_000:].decode("utf-8", "replace").strip()
    return Answer(code=done.returncode, output=done.stdout[:OUTPUT_BYTES_MAX], errors=errors)


def told(root: Path, *arguments: str, given: bytes = b"") -> Answer:
    """As `ask`, for what has to succeed.

    Raises:
        CallFailed: also when git refuses; with its own words.
    """
    answer = ask(root, *arguments, given=given)
    if answer.code != 0:
        raise CallFailed(f"git: {answer.errors or f'exit code {answer.code}'}"[:800], Reason.GIT)
    return answer


def require_repository(root: Path) -> None:
    """Looks whether the folder is under git.

    Raises:
        CallFailed: it is not.
    """
    answer = ask(root, "rev-parse", "--is-inside-work-tree")
    if answer.code != 0 or answer.output.strip() != b"true":
        if "dubious ownership" in answer.errors:
            raise CallFailed(
                "the repository belongs to another user; git does not touch it",
                Reason.OTHERS_REPOSITORY,
            )
        raise CallFailed("the project folder is no git repository", Reason.NO_REPOSITORY)


def base(root: Path) -> str:
    """What the working tree is compared with: the last commit, or nothing at all before the first."""
    if ask(root, "rev-parse", "--verify", "--quiet", "HEAD").code == 0:
        return "HEAD"
    return told(root, "hash-object", "-t", "tree", "--stdin").output.decode().strip()


def changed(root: Path, *places: str) -> list[str]:
    """Files that git knows and that differ from `base`, by their path in the folder."""
    plain = ("--name-only", "--no-renames", "--no-ext-diff", "--relative")
    return told(root, "diff", "-z", *plain, base(root), "--", *places).names()


def new(root: Path, *places: str) -> list[str]:
    """Files that git does not know, by their path in the folder; ignored ones left out."""
    return told(root, "ls-files", "-z", "--others", "--exclude-standard", "--", *places).names()


def commit_hooks(root: Path) -> list[Path]:
    """Programs that a commit would run."""
    folder = root / os.fsdecode(told(root, "rev-parse", "--git-path", "hooks").output.rstrip(b"\n"))
    found = [folder / name for name in COMMIT_HOOKS]
    return [path for path in found if path.is_file() and os.access(path, os.X_OK)]


def pathspecs(names: Sequence[str], root: Path) -> list[str]:
    """Resolved paths as pathspecs that mean exactly these; all of the folder when there are none."""
    return [f":(literal){Path(name).relative_to(root).as_posix()}" for name in names] or ["."]
