"""Bubblewrap: on Linux, a command that can write only in the project, sees no secrets and no network. Any thread.

Background commands are not confined: a server that nobody can reach is none. Only where it is installed and works: some systems forbid the namespaces it needs, which is tried once. Nothing is bundled.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path

_TRY_S = 5.0
_HIDDEN = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".config/gcloud", ".local/share/keyrings", ".password-store")  # fmt: skip

_CACHE = "/tmp/cache"  # noqa: S108 - inside; compilers want one that they can write
_SESSION, _DOCKER = Path("/run/user"), "/run/docker.sock"
"""Sockets need no network: the keyring and other services of the session, and a door to root."""


class Sandbox:
    """Whether commands are confined in this run, found out once. What is judged and what is run ask the same object."""

    def __init__(self, private: Sequence[Path] = ()) -> None:
        """Takes the folders to hide. Confines nothing until it is opened."""
        self._private = tuple(private)
        self._tool: str | None = None

    def open(self) -> None:
        """Confines from now on, where this machine can. Blocks for a moment."""
        self._tool = bubblewrap()

    @property
    def is_active(self) -> bool:
        """Whether commands are confined."""
        return self._tool is not None

    def confine(self, words: list[str], root: Path) -> list[str]:
        """The words that run a command in the sandbox of a project, or as they are."""
        if self._tool is None:
            return words
        return confined(words, root, tool=self._tool, private=self._private)


@cache
def bubblewrap() -> str | None:
    """The tool, where it is installed and works. Blocks for a moment the first time."""
    tool = shutil.which("bwrap")
    if not sys.platform.startswith("linux") or tool is None or not Path(tool).is_absolute():
        return None
    try:
        done = subprocess.run(  # noqa: S603 - fixed words
            confined(["true"], Path("/"), tool=tool, private=()),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_TRY_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return tool if done.returncode == 0 else None


def confined(words: Sequence[str], root: Path, *, tool: str, private: Sequence[Path]) -> list[str]:
    """The words that run a command confined to a project.

    Args:
        words: the command.
        root: the project's folder, the only one that can be written beside a fresh `/tmp`.
        tool: bubblewrap.
        private: folders that the command shall find empty, GrowBox's own data first.
    """
    place = str(root)
    private = [folder.resolve() for folder in private]
    hidden = [Path.home() / name for name in _HIDDEN]
    empty = [str(folder) for folder in (*hidden, _SESSION, *private) if folder.is_dir()]
    mounts = ["--ro-bind", "/", "/", "--dev", "/dev", "--proc", "/proc", "--tmpfs", "/tmp"]  # noqa: S108 - inside
    if Path(_DOCKER).exists():
        mounts += ["--ro-bind", "/dev/null", _DOCKER]
    for folder in empty:
        mounts += ["--tmpfs", folder]
    if root != Path("/"):
        mounts += ["--bind", place, place, *_repository(root / ".git")]
    for inner in private:  # in the project: hidden again
        if inner.is_dir() and inner.is_relative_to(root) and root != Path("/"):
            mounts += ["--tmpfs", str(inner)]
    mounts += ["--setenv", "XDG_CACHE_HOME", _CACHE]
    apart = ["--unshare-net", "--unshare-pid", "--unshare-ipc", "--die-with-parent"]
    return [tool, *apart, *mounts, "--chdir", place, "--", *words]


def _repository(folder: Path) -> list[str]:
    """A repository can be worked with, but what git would run outside of the sandbox stays as it is: hooks, and the settings that name them.

    The folder is a mount of its own, so that it cannot be moved away and another put in its place.
    """
    if folder.is_symlink() or not folder.is_dir():
        return []
    hooks, settings = str(folder / "hooks"), str(folder / "config")
    mounts = ["--bind", str(folder), str(folder)]
    mounts += ["--ro-bind", hooks, hooks] if Path(hooks).is_dir() else ["--tmpfs", hooks]
    return [*mounts, "--ro-bind", settings, settings] if Path(settings).is_file() else mounts
