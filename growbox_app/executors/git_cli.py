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
COMMIT_HOOKS = (
    "pre-commit",
    "prepare-commit-msg",
    "commit-msg",
    "post-commit",
    "post-index-change",
    "reference-transaction",
)
_FILTERS = r"^filter\..*\.(clean|process)$"
_PROGRAMS_OF_COMMITS = rf"{_FILTERS}|^gpg\.(.*\.)?program$"
OWN_FILES_ONLY = "--ignore-submodules=dirty"
"""git would look into a repository within, with the settings of that one."""
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


def changed(root: Path, *places: str, options: Sequence[str] = ()) -> list[str]:
    """Files that git knows and that differ from `base`, by their path in the folder."""
    plain = ("--name-only", "--no-renames", "--no-ext-diff", "--relative", OWN_FILES_ONLY)
    return told(root, *options, "diff", "-z", *plain, base(root), "--", *places).names()


def new(root: Path, *places: str) -> list[str]:
    """Files that git does not know, by their path in the folder; ignored ones left out."""
    return told(root, "ls-files", "-z", "--others", "--exclude-standard", "--", *places).names()


def commit_hooks(root: Path) -> list[Path]:
    """Programs that a commit would run."""
    folder = root / os.fsdecode(told(root, "rev-parse", "--git-path", "hooks").output.rstrip(b"\n"))
    found = [folder / name for name in COMMIT_HOOKS]
    return [path for path in found if path.is_file() and os.access(path, os.X_OK)]


def own_programs(root: Path, *, commits: bool = False) -> list[str]:
    """Programs that the repository's own settings have git run: over files that changed, even to look at them, and to sign.

    They may be another's than the user's: a command in the sandbox can make a repository, or send git to other settings.

    Raises:
        CallFailed: git cannot tell.
    """
    return [value for _, value in _own(root, _PROGRAMS_OF_COMMITS if commits else _FILTERS)]


def require_programs(root: Path, known: str) -> None:
    """Looks whether these are still the programs that looking would run.

    Raises:
        CallFailed: they are others.
    """
    if "; ".join(own_programs(root)) != known:
        raise CallFailed("the repository's settings changed in the meantime", Reason.CHANGED)


def without_filters(root: Path) -> list[str]:
    """Options with which git runs no program of the repository's own over its files; some may then look changed that are not.

    Raises:
        CallFailed: git cannot tell.
    """
    filters = dict.fromkeys(key.rpartition(".")[0] for key, _ in _own(root, _FILTERS))
    settings = ("clean=", "process=", "required=false")
    return [word for name in filters for it in settings for word in ("-c", f"{name}.{it}")]


def _own(root: Path, keys: str) -> list[tuple[str, str]]:
    answer = ask(root, "config", "--show-scope", "-z", "--includes", "--get-regexp", keys)
    if answer.code not in (0, 1):  # 1: there is none
        raise CallFailed(f"git: {answer.errors or answer.code}"[:800], Reason.GIT)
    names = answer.names()
    found = [
        (scope, *entry.partition("\n")[::2])
        for scope, entry in zip(names[::2], names[1::2], strict=True)
    ]
    return [(key, value) for scope, key, value in found if scope in {"local", "worktree"}]


def pathspecs(names: Sequence[str], root: Path) -> list[str]:
    """Resolved paths as pathspecs that mean exactly these; all of the folder when there are none."""
    return [f":(literal){Path(name).relative_to(root).as_posix()}" for name in names] or ["."]
