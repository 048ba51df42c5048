"""A first look at a project's folder: which text files there are, and how its tests are run. Reads the disk; on any thread but the loop's.

Bounded: a folder of any size costs a fraction of a second. Only names, and the beginning of a few test files, are looked at.
"""

from __future__ import annotations

import itertools
import os
import re
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from growbox_app.executors.paths import is_sensitive
from growbox_app.ingest.ignoring import IGNORED_FOLDERS, Rules, rules_above

FILES_MAX = 200
"""More files than that are no choice to put before a model."""
SCANNED_MAX = 4_000
_BEGINNING = 4_096
_TESTS_READ_MAX = 4
_TEST = re.compile(r"(?:^|/)(?:test_[^/]*|[^/]*_test|[^/]*\.test|[^/]*\.spec)\.\w+$")
PYTHON = "python" if os.name == "nt" else "python3"


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """`files` are paths from the folder on, with forward slashes, sorted; not `whole`: there are more. `test_command` is empty where none is known."""

    files: tuple[str, ...] = ()
    whole: bool = True
    test_command: str = ""


def is_test(path: str) -> bool:
    """Whether a file holds tests, by its name."""
    return bool(_TEST.search(path)) or PurePosixPath(path).parts[0] in ("test", "tests")


def survey(root: Path) -> Survey:
    """Looks around in a folder."""
    found = list(itertools.islice(_walk(root), FILES_MAX + 1))
    files = tuple(sorted(found[:FILES_MAX]))
    return Survey(
        files=files, whole=len(found) <= FILES_MAX, test_command=_test_command(root, files)
    )


def _walk(root: Path) -> Iterator[str]:
    """Files level by level, without what is ignored, hidden or secret."""
    waiting: deque[tuple[Path, Rules]] = deque([(root, rules_above(root))])
    scanned = 0
    while waiting and scanned < SCANNED_MAX:
        folder, above = waiting.popleft()
        rules = above.within(folder)
        try:
            with os.scandir(folder) as entries:
                inside = sorted(itertools.islice(entries, SCANNED_MAX), key=lambda e: e.name)
        except OSError:
            continue
        for entry in inside:
            scanned += 1
            path = Path(entry.path)
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name.startswith(".") or rules.ignore(path.as_posix(), is_folder=is_folder):
                continue
            if is_folder and entry.name not in IGNORED_FOLDERS:
                waiting.append((path, rules))
            elif entry.is_file(follow_symlinks=False) and not is_sensitive(path):
                yield path.relative_to(root).as_posix()


def _test_command(root: Path, files: tuple[str, ...]) -> str:
    """How the tests of the project are run, by the files that say so."""
    tests = [file for file in files if _TEST.search(file) and file.endswith(".py")]
    if tests:
        begun = [_beginning(root / file) for file in tests[:_TESTS_READ_MAX]]
        if all("unittest" in text for text in begun) and "pytest" not in "".join(begun):
            return f"{PYTHON} -m unittest {_discovery(tests, files)}".rstrip()
        return f"{PYTHON} -m pytest -q"
    for name, command in (
        ("package.json", "npm test"),
        ("Cargo.toml", "cargo test"),
        ("go.mod", "go test ./..."),
    ):
        if name in files and (name != "package.json" or '"test"' in _beginning(root / name)):
            return command
    return ""


def _discovery(tests: list[str], files: tuple[str, ...]) -> str:
    """Unittest looks into packages only; tests in a plain folder are named to it."""
    folders = sorted({str(PurePosixPath(test).parent) for test in tests})
    if "." in folders:
        return ""
    first = folders[0].split("/")[0]
    return "" if f"{first}/__init__.py" in files else f"discover -s {first}"


def _beginning(path: Path) -> str:
    try:
        with path.open("rb") as file:
            return file.read(_BEGINNING).decode("utf-8", "replace")
    except OSError:
        return ""
