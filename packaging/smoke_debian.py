#!/usr/bin/env python3
"""Do the Linux packages work on a Debian 12 that has nothing? Installs them in fresh minimal systems and smoke-tests them there.

  sudo python3 packaging/smoke_debian.py --folder FOLDER [--deb FILE] [--tarball FILE] [--mirror URL]

FOLDER keeps `base.tar` (made by debootstrap once, from the mirror that this machine's apt is set up for) and the reports. Each
package gets a fresh system: the .deb is installed by apt, must show in the menu, is started the way the menu starts it, removed
and purged; the user's data must survive. The tarball is unpacked where only the .deb's dependencies were installed. Only apt uses
the network; the app has none (see `smoke_test.py`). The systems are removed at the end.
"""

from __future__ import annotations

import argparse
import configparser
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from console import Trouble, console, output_of
from smoke_report import Report
from smoke_surroundings import HOME_NAME, Listing, differences, listing, tool

SUITE = "bookworm"
_INSTALLED = Path("opt/growbox")
_MENU_ENTRY = Path("usr/share/applications/growbox.desktop")
_SEARCH = ("usr/local/bin", "usr/bin", "bin", "usr/local/sbin", "usr/sbin", "sbin")
_IN_SYSTEM = 'mount -t proc proc "$1/proc" && mount --rbind /dev "$1/dev" && exec chroot "$@"'
"""Run in a mount namespace of its own, so that the mounts are gone with the command."""
_APT_OPTIONS = ("-q", "-y", "--no-install-recommends")
"""Without what is only recommended: the dependencies must be enough."""
_TAIL_CHARACTERS = 1500
_STOPPED = 130


def main(arguments: Sequence[str]) -> int:
    """Runs what was asked for; returns 0 when all steps passed."""
    parser = argparse.ArgumentParser(
        prog="smoke_debian.py", description="Packages on a bare Debian."
    )
    parser.add_argument("--folder", type=Path, required=True, help="for systems and reports")
    parser.add_argument("--deb", type=Path, help="the Debian package (also names the dependencies)")
    parser.add_argument("--tarball", type=Path, help="the portable archive")
    parser.add_argument("--mirror", help="Debian mirror, if not the one of this machine's apt")
    options = parser.parse_args(arguments)
    report = Report(deb=str(options.deb), tarball=str(options.tarball), suite=SUITE)
    folder = options.folder.resolve()
    signal.signal(signal.SIGTERM, _stop)
    try:
        _run(report, _plan(options, folder))
    except Trouble as trouble:
        console.say(str(trouble))
        return 1
    except KeyboardInterrupt:
        console.say("Stopped.")
        return _STOPPED
    finally:
        folder.mkdir(parents=True, exist_ok=True)
        report.write(folder / "debian.json")
        for name in ("deb", "tarball"):
            shutil.rmtree(folder / name, ignore_errors=True)
    console.say("passed" if report.ok else "FAILED")
    return 0 if report.ok else 1


Plan = Sequence[tuple[str, Callable[[], str]]]


def _run(report: Report, plan: Plan) -> None:
    for name, step in plan:
        if not report.run(name, step):
            return


def _plan(options: argparse.Namespace, folder: Path) -> Plan:
    if os.geteuid() != 0:
        raise Trouble("Making a system needs root.")
    if options.deb is None:
        raise Trouble("--deb is needed: it also says what the tarball depends on.")
    base = Base(folder / "base.tar", options.mirror)
    plan = [("minimal Debian", base.make)]
    plan += Package(base, folder, options.deb.resolve()).plan()
    if options.tarball:
        plan += Portable(base, folder, options.deb.resolve(), options.tarball.resolve()).plan()
    return plan


class Base:
    """A minimal Debian as an archive."""

    def __init__(self, archive: Path, mirror: str | None) -> None:
        self._archive = archive
        self._mirror = mirror

    def make(self) -> str:
        """Makes it unless it is there."""
        if self._archive.exists():
            return f"{self._archive.stat().st_size / 1e6:.0f} MB, made before"
        root = self._archive.with_name("base")
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        sources = _sources(self._mirror)
        mirror = sources[0].split()[1]
        _call([tool("debootstrap"), "--variant=minbase", SUITE, str(root), mirror])
        _write_apt_settings(root, sources)
        _call([*_in(root), "apt-get", "-q", "update"])
        _call([*_in(root), "apt-get", "clean"])
        part = self._archive.with_suffix(".part")
        _call([tool("tar"), "-C", str(root), "-cf", str(part), "."])
        shutil.rmtree(root)
        part.rename(self._archive)
        return f"{self._archive.stat().st_size / 1e6:.0f} MB from {SUITE}"

    def unpack(self, root: Path) -> None:
        """A fresh system in a folder."""
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        _call([tool("tar"), "-C", str(root), "-xpf", str(self._archive)])
        _share_name_service(root)


class Package:
    """The .deb: installed, in the menu, used, removed, purged."""

    def __init__(self, base: Base, folder: Path, deb: Path) -> None:
        self._base = base
        self._root = folder / "deb"
        self._deb = deb
        self._report = folder / "smoke-deb.json"
        self._home = self._root / "home" / HOME_NAME
        self._kept: Listing = {}

    def plan(self) -> Plan:
        """The steps."""
        return [
            (".deb installed", self._install),
            (".deb brings no Python", lambda: no_python(self._root)),
            (".deb in the menu", lambda: menu_entry(self._root)),
            (".deb smoke test", self._use),
            (".deb removed", lambda: self._remove("remove")),
            (".deb installed again", self._put_in),
            (".deb purged", lambda: self._remove("purge")),
        ]

    def _install(self) -> str:
        self._base.unpack(self._root)
        return self._put_in()

    def _put_in(self) -> str:
        shutil.copy(self._deb, self._root / "growbox.deb")
        before = _packages(self._root)
        _call([*_in(self._root), "apt-get", "install", *_APT_OPTIONS, "/growbox.deb"])
        (self._root / "growbox.deb").unlink()
        if not (self._root / _INSTALLED / "GrowBox").is_file():
            raise Trouble(f"/{_INSTALLED}/GrowBox was not installed.")
        came = _packages(self._root) - before - {"growbox"}
        return f"with {len(came)} dependencies"

    def _use(self) -> str:
        said = _smoke(
            self._root, f"/{_INSTALLED}", self._report, home=self._home, start_by="growbox"
        )
        self._kept = listing(self._home)
        if not any(name.endswith("timeline.db") for name in self._kept):
            raise Trouble("The home holds no data after the smoke test.")
        return said

    def _remove(self, how: str) -> str:
        _call([*_in(self._root), "apt-get", how, "-q", "-y", "growbox"])
        left = [place for place in (_INSTALLED, _MENU_ENTRY) if (self._root / place).exists()]
        left += [
            Path(folder) / "growbox"
            for folder in _SEARCH
            if (self._root / folder / "growbox").is_symlink()
        ]
        left += sorted(p.relative_to(self._root) for p in self._root.glob("usr/share/*/growbox*"))
        if left:
            raise Trouble(f"Still there after apt-get {how}: {', '.join(map(str, left))}")
        if how == "purge" and "growbox" in _packages(self._root):
            raise Trouble("dpkg still knows growbox after the purge.")
        changed = differences(self._kept, listing(self._home))
        if changed:
            raise Trouble(f"The user's data changed: {', '.join(changed[:5])}")
        return f"program gone, {len(self._kept)} files of the user as before"


class Portable:
    """The tarball, unpacked by a user on a system that has the dependencies only."""

    def __init__(self, base: Base, folder: Path, deb: Path, tarball: Path) -> None:
        self._base = base
        self._root = folder / "tarball"
        self._deb = deb
        self._tarball = tarball
        self._report = folder / "smoke-tarball.json"

    def plan(self) -> Plan:
        """The steps."""
        return [
            ("tarball unpacked", self._unpack),
            ("tarball's system has no Python", lambda: no_python(self._root)),
            (
                "tarball smoke test",
                lambda: _smoke(self._root, "/opt/便携 portable/GrowBox", self._report),
            ),
        ]

    def _unpack(self) -> str:
        self._base.unpack(self._root)
        depends = output_of([tool("dpkg-deb"), "-f", self._deb, "Depends"])
        if not depends or not depends.strip():
            raise Trouble("The package names no dependencies.")
        _call([*_in(self._root), "apt-get", "satisfy", *_APT_OPTIONS, depends.strip()])
        place = self._root / "opt" / "便携 portable"
        place.mkdir(parents=True)
        _call([tool("tar"), "-C", str(place), "-xf", str(self._tarball)])
        names = sorted(path.name for path in place.iterdir())
        if names != ["GrowBox"]:
            raise Trouble(f"The archive should hold one folder, GrowBox; it holds {names}.")
        return f"{self._tarball.stat().st_size / 1e6:.0f} MB archive"


def no_python(root: Path) -> str:
    """No interpreter where programs are looked for.

    Raises:
        Trouble: there is one.
    """
    found = sorted(
        {str(path.relative_to(root)) for f in _SEARCH for path in root.glob(f"{f}/python*")}
    )
    if found:
        raise Trouble(f"There is a Python: {', '.join(found)}")
    return f"none in {len(_SEARCH)} folders"


def menu_entry(root: Path) -> str:
    """The menu entry is valid and shown: its program and icon exist, nothing hides it.

    Raises:
        Trouble: a desktop would not show it.
    """
    path = root / _MENU_ENTRY
    if not path.is_file():
        raise Trouble(f"There is no /{_MENU_ENTRY}.")
    parser = configparser.RawConfigParser(strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read(path, encoding="utf-8")
    entry = dict(parser["Desktop Entry"])
    if entry.get("Type") != "Application" or {"NoDisplay", "Hidden", "OnlyShowIn"} & entry.keys():
        raise Trouble("The menu entry would not be shown.")
    if "Name[zh_CN]" not in entry and "Comment[zh_CN]" not in entry:
        raise Trouble("The menu entry has no Chinese words.")
    for key in ("Exec", "TryExec"):
        program = entry.get(key, "").split(" ")[0]
        if key in entry and not _resolves(root, program):
            raise Trouble(f"{key}={program} names no program of this system.")
    icons = list(root.glob(f"usr/share/icons/hicolor/*/apps/{entry.get('Icon')}.*"))
    if not icons:
        raise Trouble(f"There is no icon {entry.get('Icon')!r}.")
    return f"{entry['Name']}, {entry['Exec']}, {len(icons)} icons, {_validated(path)}"


def _validated(path: Path) -> str:
    program = shutil.which("desktop-file-validate")
    if program is None:
        return "desktop-file-validate is not here"
    done = subprocess.run([program, str(path)], capture_output=True, text=True, check=False)
    said = (done.stdout + done.stderr).strip()
    if done.returncode != 0:
        raise Trouble(f"The menu entry is not valid: {said}")
    return "valid" if not said else f"valid ({said})"


def _resolves(root: Path, program: str) -> bool:
    """Whether a name or absolute path is an executable of that system; links are read as that system reads them."""
    places = (
        [program.lstrip("/")] if program.startswith("/") else [f"{f}/{program}" for f in _SEARCH]
    )
    for place in places:
        path = root / place
        if path.is_symlink():
            target = path.readlink()
            path = root / str(target).lstrip("/") if target.is_absolute() else path.parent / target
        if path.is_file() and os.access(path, os.X_OK):
            return True
    return False


def _smoke(
    root: Path, app: str, report: Path, *, home: Path | None = None, start_by: str | None = None
) -> str:
    script = Path(__file__).with_name("smoke_test.py")
    words = [
        sys.executable,
        str(script),
        app,
        "--root",
        str(root),
        "--report",
        str(report),
        "--trace",
    ]
    words += ["--home", str(home)] if home else []
    words += ["--start-by", start_by] if start_by else []
    process = subprocess.Popen(words)
    try:
        code = process.wait()
    finally:
        if process.poll() is None:
            process.terminate()  # it clears up
            process.wait()
    if code != 0:
        raise Trouble(f"The smoke test failed; its report is {report}.")
    return "all steps passed"


def _sources(mirror: str | None) -> list[str]:
    """Lines for sources.list: what this machine's apt uses for the suite, its updates and its security fixes."""
    if mirror is not None:
        return [f"deb {mirror} {SUITE} main"]
    known = output_of(
        [
            tool("apt-get"),
            "indextargets",
            "--format",
            "deb $(REPO_URI) $(RELEASE) $(COMPONENT)",
            "Created-By: Packages",
        ]
    )
    lines = [line for line in (known or "").splitlines() if line.split()[2].startswith(SUITE)]
    lines.sort(key=lambda line: line.split()[2] != SUITE)
    if not lines or lines[0].split()[2] != SUITE:
        raise Trouble(f"This machine's apt knows no {SUITE}. Name a Debian mirror with --mirror.")
    return sorted(set(lines), key=lines.index)


def _write_apt_settings(root: Path, sources: Sequence[str]) -> None:
    """The new system fetches packages as this machine does."""
    apt = root / "etc" / "apt"
    (apt / "sources.list").write_text("\n".join(sources) + "\n", encoding="utf-8")
    settings = output_of([tool("apt-config"), "dump"]) or ""
    lines = [line for line in settings.splitlines() if line.startswith("Acquire::")]
    (apt / "apt.conf.d" / "90host").write_text("\n".join(lines) + "\n", encoding="utf-8")
    _share_name_service(root)


def _share_name_service(root: Path) -> None:
    for name in ("etc/resolv.conf", "etc/hosts"):
        if (Path("/") / name).exists():
            (root / name).unlink(missing_ok=True)
            shutil.copy(Path("/") / name, root / name)


def _in(root: Path) -> list[str]:
    """The words before a command that run it in another system, with what packages expect there."""
    names = [tool("unshare"), "--mount", "--pid", "--fork", "--kill-child"]
    return [*names, tool("sh"), "-c", _IN_SYSTEM, "sh", str(root)]


def _call(words: Sequence[str]) -> None:
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}
    environment["PATH"] = f"{environment.get('PATH', '')}:/usr/sbin:/sbin"
    done = subprocess.run(
        list(words),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    if done.returncode != 0:
        said = done.stdout.decode(errors="replace").strip()[-_TAIL_CHARACTERS:]
        raise Trouble(f"`{' '.join(words[-4:])}` failed ({done.returncode}):\n{said}")


def _packages(root: Path) -> set[str]:
    """Names of the packages that a system's dpkg knows."""
    status = (root / "var/lib/dpkg/status").read_text(encoding="utf-8")
    return {
        line.removeprefix("Package: ")
        for line in status.splitlines()
        if line.startswith("Package: ")
    }


def _stop(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
