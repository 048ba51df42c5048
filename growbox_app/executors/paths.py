"""Names from a model to resolved paths in the workspace, and back. Looks at the disk, changes nothing; any thread.

A path is resolved with every link before it is compared with the workspace, so `..`, links and absolute names cannot lead out.
The policy judges the resolved path again; `unmoved` is asked right before a change, because a link may have been put in the way since.
"""

from __future__ import annotations

import difflib
import os
import re
import sys
from pathlib import Path

from growbox_app.executors.answers import CallFailed, Reason
from growbox_app.executors.base import Workspace
from growbox_app.safety.sensitive import sensitive

NAMES_MAX = 1_000
NAME_BYTES_MAX = 255
_GIT = ".git"


def root_of(workspace: Workspace) -> Path:
    """The project's folder, resolved.

    Raises:
        CallFailed: no folder is open, or it is gone.
    """
    if workspace.root is None:
        raise CallFailed("no project folder is open; ask the user to add one", Reason.NO_FOLDER)
    root = _resolved(workspace.root)
    if not root.is_dir():
        raise CallFailed("the project folder is not there any more", Reason.NO_FOLDER)
    return root


def readable_path(name: str, workspace: Workspace) -> Path:
    """The path that may be read under this name.

    Raises:
        CallFailed: it lies outside the project and of the folders that may be read.
    """
    root = root_of(workspace)
    path = _named(name, root)
    if any(_inside(path, folder) for folder in (root, *map(_resolved, workspace.readable))):
        return path
    raise CallFailed(
        f"{_short(name)} is outside the project folder; use a path inside it", Reason.OUTSIDE
    )


def writable_path(name: str, workspace: Workspace) -> Path:
    """The path that may be written under this name.

    Raises:
        CallFailed: it lies outside the project, or among git's own files.
    """
    root = root_of(workspace)
    path = _named(name, root)
    if path == root or not _inside(path, root):
        raise CallFailed(
            f"{_short(name)} is outside the project folder; only files inside it can be changed",
            Reason.OUTSIDE,
        )
    if _GIT in (part.lower() for part in path.relative_to(root).parts):
        raise CallFailed("git's own files are not edited; use the git tools", Reason.GIT_FILES)
    return path


def shown(path: Path, workspace: Workspace) -> str:
    """How a path is named to model and reader: from the project's folder on, with forward slashes."""
    if workspace.root is not None:
        root = _resolved(workspace.root)
        if _inside(path, root):
            return path.relative_to(root).as_posix()
    return path.as_posix()


def is_sensitive(path: Path) -> bool:
    """Whether a file is left out where it was not named itself: keys, credentials, what the policy would deny."""
    return sensitive(str(path), platform=sys.platform) is not None


def unmoved(path: Path) -> bool:
    """Whether a resolved path still leads where it did: no link was put in its way."""
    return _resolved(path) == path


def no_such(path: Path, name: str, thing: str = "file") -> CallFailed:
    """The failure for a path that does not exist, with the nearest names there are."""
    near = _near(path)
    hint = f"; there is {', '.join(near)}" if near else "; file_list shows what there is"
    return CallFailed(f"there is no {thing} {_short(name)}{hint}", Reason.NOT_THERE)


def _near(path: Path) -> list[str]:
    """Names in the same folder that look like the one asked for."""
    try:
        with os.scandir(path.parent) as entries:
            names = [entry.name for _, entry in zip(range(NAMES_MAX), entries, strict=False)]
    except OSError:
        return []
    return difflib.get_close_matches(path.name, names, n=3, cutoff=0.6)


def _named(name: str, root: Path) -> Path:
    name = name.strip()
    if not name:
        name = "."
    if "\0" in name:
        raise CallFailed("a path cannot hold a NUL character", Reason.BAD_PATH)
    if any(len(os.fsencode(part)) > NAME_BYTES_MAX for part in re.split(r"[/\\]", name)):
        raise CallFailed("the path is too long", Reason.BAD_PATH)
    if sys.platform == "win32" and name[:2].replace("/", "\\") == "\\\\":
        # Even looking at such a path would send the user's credentials to another machine.
        raise CallFailed("a network path is not read or written", Reason.BAD_PATH)
    return _resolved(root / name)


def _resolved(path: Path) -> Path:
    try:
        return path.resolve()
    except (OSError, RuntimeError, ValueError) as error:  # a loop of links, a name too long
        raise CallFailed(f"{_short(str(path))} is no usable path", Reason.BAD_PATH) from error


def _inside(path: Path, folder: Path) -> bool:
    return path.is_relative_to(folder)


def _short(name: str) -> str:
    return repr(name if len(name) <= 120 else f"{name[:120]}…")
