"""Which files of a folder nobody wants: `.gitignore` as git reads it, and a short built-in list. Reads files; any thread.

The nearest `.gitignore` that says anything about a path decides; those between the folder and the root of its repository count too,
and so does the repository's own `info/exclude`.
"""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pathspec import GitIgnoreSpec

IGNORED_FOLDERS = frozenset(
    {
        ".git",
        ".hg",
        ".svn",
        ".venv",
        ".tox",
        ".mypy_cache",
        ".pytest_cache",
        ".ruff_cache",
        "__pycache__",
        "node_modules",
    }
)
"""What tools keep beside the text that a person wrote; ignored everywhere."""
PRIVATE_FILES = (
    ".env",
    ".env.*",
    ".netrc",
    ".pgpass",
    "id_rsa*",
    "id_ed25519*",
    "id_ecdsa*",
    "*.pem",
    "*.key",
    "*.p12",
    "*.pfx",
    "*.kdbx",
)
"""Secrets by name: never taken along with a folder, only when they are named themselves."""
RULES_BYTES_MAX = 1_000_000


def is_private(name: str) -> bool:
    """Whether a file's name says that it holds secrets."""
    return any(fnmatch.fnmatch(name.lower(), pattern) for pattern in PRIVATE_FILES)


@dataclass(frozen=True, slots=True)
class Rules:
    """The rules that hold in a folder: its own, then those above, nearest first."""

    folder: str = ""
    spec: GitIgnoreSpec = field(default_factory=lambda: GitIgnoreSpec.from_lines([]))
    above: Rules | None = None

    def ignore(self, path: str, *, is_folder: bool) -> bool:
        """Whether a path in this folder, or below it, is ignored.

        Args:
            path: absolute, with forward slashes.
            is_folder: a folder's rules may end in a slash.
        """
        rules: Rules | None = self
        while rules is not None:
            inside = path[len(rules.folder) :].lstrip("/") + ("/" if is_folder else "")
            said = rules.spec.check_file(inside).include
            if said is not None:
                return bool(said)
            rules = rules.above
        return False

    def within(self, folder: Path) -> Rules:
        """The rules of a folder just below."""
        lines = _lines(folder / ".gitignore")
        return Rules(folder.as_posix(), _spec(lines), self) if lines else self


def rules_above(folder: Path) -> Rules:
    """The rules that hold for a folder from outside it: those of its repository, if it is in one."""
    chain: list[Path] = []
    for parent in (folder, *folder.parents):
        chain.append(parent)
        if (parent / ".git").exists():
            break
    else:
        return Rules()
    top = chain[-1]
    rules = Rules(top.as_posix(), _spec(_lines(top / ".git" / "info" / "exclude")))
    for parent in reversed(chain[1:]):
        rules = rules.within(parent)
    return rules


def _lines(path: Path) -> list[str]:
    try:
        with path.open("rb") as stream:
            return stream.read(RULES_BYTES_MAX).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _spec(lines: Sequence[str]) -> GitIgnoreSpec:
    """A line that is no pattern is left out, as git does."""
    return GitIgnoreSpec.from_lines([line for line in lines if _is_pattern(line)])


def _is_pattern(line: str) -> bool:
    try:
        GitIgnoreSpec.from_lines([line])
    except (ValueError, re.error):
        return False
    return True
