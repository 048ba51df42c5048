"""The Linux packages of the frozen app: a portable tarball, a Debian package and, where its tool exists, an AppImage.

The templates are in `packaging/linux/`. Same app folder, same bytes: names sorted, owner root, modes 755 and 644, times from
SOURCE_DATE_EPOCH or the app's VERSION file. Each package is written beside its place and renamed at the end; what a stopped
build leaves is a folder `.packing-*` beside the target, which the next build removes. User data is never part of a package.
"""

from __future__ import annotations

import gzip
import io
import os
import platform
import re
import shutil
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import linux_depends
import linux_tree
from console import Trouble, console, span

_DEBIAN_MACHINES = {"x86_64": "amd64", "aarch64": "arm64"}
# Models do not compress; what does is a fifth of the bytes.
_GZIP_LEVEL = 1
_REPORT_EVERY_S = 5.0
_MIB = 1 << 20

_RECOMMENDS = ("fonts-noto-cjk | fonts-wqy-microhei | fonts-wqy-zenhei", "xdg-utils")
_MODELS = {
    "full": "This package brings the standard model along.",
    "light": "This package brings the small model along.",
    "slim": "This package brings no chat model along: the first start offers to fetch one.",
}


def make_tarball(app: Path, target: Path) -> None:
    """Writes the portable `.tar.gz`: the app folder, as `GrowBox/`, with what adds it to a user's menu.

    Args:
        app: the frozen app folder.
        target: the file to make; an old one is replaced.
    """
    moment = linux_tree.moment(app)
    with _workspace(target) as workspace:
        extras = workspace / "extras"
        linux_tree.stage_desktop_files(extras / "share")
        linux_tree.copy(
            linux_tree.TEMPLATES / "install-menu-entry.sh", extras / "install-menu-entry.sh", 0o755
        )
        members = {**linux_tree.members(app), **linux_tree.members(extras)}
        unfinished = workspace / target.name
        with unfinished.open("wb") as stream:
            _write_tar(stream, members, moment)
        _put_in_place(unfinished, target)


def make_deb(app: Path, target: Path, *, version: str, flavour: str) -> None:
    """Writes the Debian package: the app in /opt/growbox, commands in /usr/bin, and what the desktop needs to know of it.

    Args:
        app: the frozen app folder.
        target: the file to make; an old one is replaced.
        version: GrowBox's version.
        flavour: which model comes along: `full`, `light` or `slim`.

    Raises:
        Trouble: dpkg-deb is missing or refuses.
    """
    if shutil.which("dpkg-deb") is None:
        raise Trouble("dpkg-deb is missing, so no .deb can be made. Install the package `dpkg`.")
    with _workspace(target) as workspace:
        root = workspace / "root"
        linux_tree.stage_system(root, app, version)
        _stage_control(root, app, version, flavour=flavour)
        linux_tree.open_folders(root)
        unfinished = workspace / target.name
        # Models do not compress; of the rest, xz leaves a fifth less than gzip.
        compression = ("-Zxz", "-z3") if flavour == "slim" else ("-Zgzip", "-z1")
        command = ["dpkg-deb", "--root-owner-group", *compression, "--build"]
        command += [str(root), str(unfinished)]
        _run(command, target, {"SOURCE_DATE_EPOCH": str(linux_tree.moment(app))})
        _put_in_place(unfinished, target)


def make_appimage(app: Path, target: Path, *, version: str) -> bool:
    """Writes the AppImage when `appimagetool` is on PATH.

    Args:
        app: the frozen app folder.
        target: the file to make; an old one is replaced.
        version: GrowBox's version.

    Returns:
        Whether the tool is here and the file was made.

    Raises:
        Trouble: the tool refused.
    """
    if shutil.which("appimagetool") is None:
        return False
    with _workspace(target) as workspace:
        root = workspace / "GrowBox.AppDir"
        linux_tree.stage_system(root, app, version)
        (root / "AppRun").symlink_to("opt/growbox/GrowBox")
        for name in ("growbox.desktop", "growbox.svg"):
            shutil.copy2(next((root / "usr" / "share").rglob(name)), root / name)
        (root / ".DirIcon").symlink_to("growbox.svg")
        linux_tree.open_folders(root)
        unfinished = workspace / target.name
        environment = {"ARCH": platform.machine(), "SOURCE_DATE_EPOCH": str(linux_tree.moment(app))}
        command = ["appimagetool", "--no-appstream", str(root), str(unfinished)]
        _run(command, target, environment)
        _put_in_place(unfinished, target)
    return True


def debian_version(version: str) -> str:
    """GrowBox's version as Debian sorts it: 1.0rc1 comes before 1.0."""
    return re.sub(r"\.?(a|b|rc|dev)(?=\d)", r"~\1", version)


@contextmanager
def _workspace(target: Path) -> Iterator[Path]:
    """A folder on the target's disk, so that files can be linked into it and the result renamed out of it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    for stale in target.parent.glob(".packing-*"):
        shutil.rmtree(stale, ignore_errors=True)
    folder = Path(tempfile.mkdtemp(prefix=".packing-", dir=target.parent))
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _put_in_place(unfinished: Path, target: Path) -> None:
    unfinished.chmod(0o644)
    unfinished.replace(target)
    console.say(f"{target.name}: {target.stat().st_size / _MIB:.0f} MiB")


# -- the tarball --------------------------------------------------------------------------------


def _write_tar(stream: BinaryIO, members: Mapping[str, Path], moment: int) -> None:
    meter = _Meter(sum(path.lstat().st_size for path in members.values()))
    with (
        gzip.GzipFile("", "wb", _GZIP_LEVEL, stream, mtime=moment) as packed,
        tarfile.open(fileobj=packed, mode="w") as archive,
    ):
        archive.addfile(_entry("GrowBox", linux_tree.TEMPLATES, moment))
        for name in sorted(members):
            entry = _entry(f"GrowBox/{name}", members[name], moment)
            if not entry.isreg():
                archive.addfile(entry)
                continue
            with members[name].open("rb") as meter.stream:
                archive.addfile(entry, meter)


def _entry(name: str, path: Path, moment: int) -> tarfile.TarInfo:
    entry = tarfile.TarInfo(name)
    entry.mtime, entry.uname, entry.gname = moment, "root", "root"
    if path.is_symlink():
        entry.type, entry.mode, entry.linkname = tarfile.SYMTYPE, 0o777, str(path.readlink())
    elif path.is_dir():
        entry.type, entry.mode = tarfile.DIRTYPE, 0o755
    else:
        entry.mode, entry.size = linux_tree.mode_of(path), path.stat().st_size
    return entry


class _Meter:
    """Hands file content to the archive and says now and then how far packing is."""

    def __init__(self, total_bytes: int) -> None:
        self.stream: BinaryIO = io.BytesIO()
        self._total = total_bytes
        self._done = 0
        self._started_s = self._reported_s = time.monotonic()

    def read(self, size: int = -1) -> bytes:
        """Reads from the file whose turn it is."""
        content = self.stream.read(size)
        self._done += len(content)
        now = time.monotonic()
        if self._done and now - self._reported_s >= _REPORT_EVERY_S:
            self._reported_s = now
            left_s = (now - self._started_s) * (self._total - self._done) / self._done
            percent = 100 * self._done // self._total
            console.progress(f"packing {percent} %, about {span(left_s)} left")
        return content


# -- the Debian package's own files -------------------------------------------------------------


def _stage_control(root: Path, app: Path, version: str, *, flavour: str) -> None:
    files = [path for path in root.rglob("*") if path.is_file() and not path.is_symlink()]
    values = {
        "VERSION": debian_version(version),
        "ARCHITECTURE": _DEBIAN_MACHINES.get(platform.machine(), platform.machine()),
        "INSTALLED_KIB": str(sum(-(-path.stat().st_size // 1024) for path in files)),
        "DEPENDS": linux_depends.depends(app),
        "RECOMMENDS": ", ".join(_RECOMMENDS),
        "MODELS": _MODELS[flavour],
    }
    linux_tree.write(root / "DEBIAN" / "control", linux_tree.filled("control", values))
    for script in ("postinst", "postrm"):
        linux_tree.copy(linux_tree.TEMPLATES / "refresh-caches.sh", root / "DEBIAN" / script, 0o755)
    overrides = root / "usr" / "share" / "lintian" / "overrides" / "growbox"
    linux_tree.copy(linux_tree.TEMPLATES / "lintian-overrides", overrides, 0o644)


def _run(command: Sequence[str], target: Path, environment: Mapping[str, str]) -> None:
    console.say(f"Packing {target.name} …")
    done = subprocess.run(
        command,
        env={**os.environ, **environment},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    if done.returncode != 0:
        raise Trouble(f"{command[0]} refused to make {target.name}:\n{done.stdout.strip()}")
