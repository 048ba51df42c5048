"""Where the smoke test lets the app live: an empty home, an environment from nothing, a namespace without a network.

Linux: the test runs itself again inside fresh network, mount and process namespaces. Whatever is mounted or started there is
gone with the last process, also after kill -9. The app is bound read-only to a path with a space and Chinese characters and
runs as an ordinary user, when the test may arrange that. Standard library only.
"""

from __future__ import annotations

import errno
import os
import shutil
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from console import Trouble

HOME_NAME = "家 home 用户"
APP_FOLDER_NAME = "应用 app"
USER = 1000
"""The ordinary user that the app runs as when the test is root; the system need not know it."""
_NOWHERE = (
    (socket.AF_INET, ("127.0.0.1", 9)),
    (socket.AF_INET, ("192.0.2.1", 53)),
    (socket.AF_INET6, ("::1", 9)),
    (socket.AF_INET6, ("2001:db8::1", 53)),
)
"""Own machine and addresses set aside for documentation (RFC 5737, RFC 3849); connecting a datagram socket sends nothing."""
_NO_WAY = (errno.ENETUNREACH, errno.EADDRNOTAVAIL, errno.EHOSTUNREACH, errno.EAFNOSUPPORT)

Listing = Mapping[str, tuple[int, int, int]]


def pause(seconds: float) -> None:
    """Waits; an interruption ends it."""
    threading.Event().wait(seconds)


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """The app's world. All paths are the test's own; `inside` says how the app sees them.

    Attributes:
        root: `/`, or the folder of a whole system that the app is started in.
        app: the app folder as it is started.
        home: empty at the start.
        scratch: the test's own files; removed at its end.
        isolated: no network, own mounts.
        as_user: the app does not run as root.
    """

    root: Path
    app: Path
    home: Path
    scratch: Path
    isolated: bool
    as_user: bool

    @property
    def data(self) -> Path:
        """GrowBox's data folder inside the home."""
        if sys.platform == "win32":
            return self.home / "AppData" / "Local" / "GrowBox"
        if sys.platform == "darwin":
            return self.home / "Library" / "Application Support" / "GrowBox"
        return self.home / ".local" / "share" / "GrowBox"

    @property
    def temporary(self) -> Path:
        """The app's folder for temporary files. Short: a socket's path may not exceed about a hundred bytes."""
        return self.scratch / "tmp"

    @property
    def working(self) -> Path:
        """The app's working directory; nothing may appear in it."""
        return self.scratch / "cwd"

    @property
    def in_chroot(self) -> bool:
        """Whether the app sees another system than the test."""
        return self.root != Path("/")

    def inside(self, path: Path) -> str:
        """A path as the app sees it."""
        return str(Path("/") / path.relative_to(self.root)) if self.in_chroot else str(path)

    def make(self) -> None:
        """Makes home, folder for temporary files and working directory.

        Raises:
            Trouble: the home is not empty, or there is a Python where the app would find it.
        """
        folders = [self.temporary, self.working, self.scratch / "bin"]
        for folder in [*folders, self.home]:
            folder.mkdir(parents=True, exist_ok=True)
            if self.as_user:
                os.chown(folder, USER, USER)
        if any(self.home.iterdir()):
            raise Trouble(f"The home folder must be empty: {self.home}")
        for name in ("python", "python3"):
            if shutil.which(name, path=self._search_path(of_the_test=True)):
                raise Trouble(f"{name} is on the PATH of the app, so nothing would be proved.")

    def environment(self, display: str | None) -> dict[str, str]:
        """Everything that the app knows of its surroundings."""
        if sys.platform == "win32":
            kept = {
                name: os.environ[name] for name in ("SYSTEMROOT", "WINDIR") if name in os.environ
            }
            local = self.home / "AppData" / "Local"
            return kept | {
                "PATH": str(Path(os.environ.get("SYSTEMROOT", "C:\\Windows")) / "System32"),
                "USERPROFILE": str(self.home),
                "LOCALAPPDATA": str(local),
                "APPDATA": str(self.home / "AppData" / "Roaming"),
                "TEMP": str(self.temporary),
                "TMP": str(self.temporary),
            }
        variables = {
            "HOME": self.inside(self.home),
            "PATH": self._search_path(of_the_test=False),
            "LANG": "C.UTF-8" if sys.platform == "linux" else "en_US.UTF-8",
            "TMPDIR": self.inside(self.temporary),
        }
        return variables | ({"DISPLAY": display} if display else {})

    def _search_path(self, *, of_the_test: bool) -> str:
        """PATH: the ordinary one of another system, else an empty folder. `of_the_test`: as seen from outside."""
        if self.in_chroot:
            folders = [self.root / name for name in ("usr/local/bin", "usr/bin", "bin", "usr/sbin")]
        else:
            folders = [self.scratch / "bin"]
        return os.pathsep.join(str(f) if of_the_test else self.inside(f) for f in folders)

    def enter(self) -> list[str]:
        """The words before a command that make it run in the app's system as the app's user."""
        if not (self.in_chroot or self.as_user):
            return []
        user = [f"--userspec={USER}:{USER}", "--groups="] if self.as_user else []
        # `--skip-chdir` is allowed for the old root only, where the working directory stays the same.
        where = [str(self.root)] if self.in_chroot else ["--skip-chdir", "/"]
        return [tool("chroot"), *user, *where]

    def processes(self) -> dict[int, str]:
        """The app's living processes by id, with their names: those that were given our home."""
        mark = f"HOME={self.inside(self.home)}".encode()
        found = {}
        for folder in Path("/proc").glob("[0-9]*"):
            try:
                if mark not in (folder / "environ").read_bytes().split(b"\0"):
                    continue
                name, state = _name_and_state(folder)
            except OSError:  # it ended while we looked
                continue
            if state not in "ZX" and name not in ("strace", "chroot"):
                found[int(folder.name)] = name
        return found


def _name_and_state(folder: Path) -> tuple[str, str]:
    name, _, rest = (folder / "stat").read_text(errors="replace").partition("(")[2].rpartition(")")
    return name, rest.split()[0]


def tool(name: str) -> str:
    """A program of this machine.

    Raises:
        Trouble: it is not here.
    """
    search = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    found = shutil.which(name, path=search)
    if found is None:
        raise Trouble(f"The program {name!r} is needed for this test. Install it and start again.")
    return found


def namespace_command() -> list[str]:
    """The words that start a command with no network, its own mounts and its own process ids.

    Raises:
        Trouble: this system does not let us.
    """
    words = [tool("unshare"), "--net", "--mount", "--pid", "--fork", "--kill-child", "--mount-proc"]
    if os.geteuid() != 0:
        words[1:1] = ["--user", "--map-root-user"]
    # Also when the test is killed outright, nothing of it goes on.
    words = [tool("setpriv"), "--pdeathsig", "KILL", *words]
    done = subprocess.run([*words, "true"], capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise Trouble(
            f"This system lets us make no namespace without a network ({done.stderr.strip()}). "
            "Run the test as root, or with --no-isolation."
        )
    return words


def prove_no_way_out() -> str:
    """Says how it is known that nothing can be reached.

    Raises:
        Trouble: something can.
    """
    routes = Path("/proc/net/route").read_text().splitlines()[1:]
    if routes:
        raise Trouble(f"The namespace has a route: {routes[0]}")
    for family, address in _NOWHERE:
        try:
            with socket.socket(family, socket.SOCK_DGRAM) as probe:
                probe.connect(address)
        except OSError as error:
            if error.errno in _NO_WAY:
                continue
            raise
        raise Trouble(f"The namespace can reach {address[0]}.")
    return f"no route, loopback down, {len(_NOWHERE)} addresses unreachable"


def mount(source: str, target: Path, *options: str) -> bool:
    """Mounts inside our own mount namespace; whether it was allowed."""
    words = [tool("mount"), *options, source, str(target)]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def private_x_sockets() -> None:
    """Our display's socket must not collide with one of the machine's."""
    folder = Path("/tmp/.X11-unix")  # noqa: S108 - where X clients look
    folder.mkdir(mode=0o1777, exist_ok=True)
    if not mount("tmpfs", folder, "-t", "tmpfs", "-o", "mode=1777"):
        raise Trouble("The folder of X sockets cannot be mounted over.")


def furnish_root(root: Path) -> None:
    """Gives another system what every running one has: /proc, /dev, /sys and the X socket.

    Raises:
        Trouble: a mount was refused.
    """
    x_sockets = root / "tmp" / ".X11-unix"
    x_sockets.mkdir(mode=0o1777, parents=True, exist_ok=True)
    wanted = (
        ("proc", root / "proc", ("-t", "proc")),
        ("/dev", root / "dev", ("--rbind",)),
        ("/sys", root / "sys", ("--rbind",)),
        ("/tmp/.X11-unix", x_sockets, ("--bind",)),  # noqa: S108 - where X clients look
    )
    for source, target, options in wanted:
        if not mount(source, target, *options):
            raise Trouble(f"{target} cannot be mounted.")


def bind_read_only(source: Path, target: Path) -> bool:
    """Shows a folder at a second place where nobody can write; whether that was allowed."""
    target.mkdir(parents=True, exist_ok=True)
    return mount(str(source), target, "--bind") and mount(
        str(target), target, "-o", "remount,ro,bind"
    )


def listing(folder: Path, without: Sequence[Path] = ()) -> Listing:
    """Size, time of change and mode of everything below a folder, links not followed."""
    found: dict[str, tuple[int, int, int]] = {}

    def look(place: Path) -> None:
        for entry in os.scandir(place):
            path = Path(entry.path)
            if path in without:
                continue
            facts = entry.stat(follow_symlinks=False)
            changed = 0 if entry.is_dir(follow_symlinks=False) else facts.st_mtime_ns
            found[str(path.relative_to(folder))] = (
                facts.st_size if changed else 0,
                changed,
                facts.st_mode,
            )
            if entry.is_dir(follow_symlinks=False):
                look(path)

    look(folder)
    return found


def differences(before: Listing, after: Listing) -> list[str]:
    """What came, went or changed."""
    return sorted(
        name for name in before.keys() | after.keys() if before.get(name) != after.get(name)
    )


def wait_until(holds: Callable[[], bool], *, seconds: float, every_s: float = 0.05) -> bool:
    """Waits until something holds; whether it did in time."""
    ticks = max(1, round(seconds / every_s))
    for _ in range(ticks):
        if holds():
            return True
        pause(every_s)
    return holds()
