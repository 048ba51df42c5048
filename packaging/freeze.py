"""`dev.py build`: the frozen app folder and the packages of this platform, in `dist/`.

Standard library only; PyInstaller, the icons and the notices run in `.venv`. The folder `dist/GrowBox` is made beside itself
and renamed at the end, so Ctrl-C leaves the old one or none. Models are plain files in it: hard links to the downloaded ones
where the file system allows it.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import subprocess
import sys
import tomllib
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import linux
from console import Trouble, console, stream_lines
from environment import one_at_a_time
from folders import ROOT, cache_path, models_path, venv_python

PLATFORM: str = sys.platform  # a variable, so that mypy reads the branches of every platform
DIST = ROOT / "dist"
FLAVOURS = {
    "full": ("standard", "embedding"),
    "light": ("light", "embedding"),
    "slim": ("embedding",),
}
"""Which models each flavour brings. *slim* has no chat model; the embedding model is in no hub, so every flavour has it."""

_TABLE_ROWS = 24


def parse(arguments: Sequence[str]) -> argparse.Namespace:
    """`--flavour full|light|slim`, `--app-only`."""
    parser = argparse.ArgumentParser(prog="dev.py build", description=__doc__)
    parser.add_argument("--flavour", choices=sorted(FLAVOURS), default="full")
    parser.add_argument(
        "--app-only", action="store_true", help="only the folder dist/GrowBox, no packages"
    )
    return parser.parse_args(arguments)


def build(flavour: str, *, app_only: bool) -> list[Path]:
    """Makes the app folder and this platform's packages; returns what was made.

    Raises:
        Trouble: a step failed; the sentence names its log.
    """
    with one_at_a_time("build"):
        return _build(cache_path() / "build", flavour, app_only=app_only)


def _build(work: Path, flavour: str, *, app_only: bool) -> list[Path]:
    shutil.rmtree(work / "dist", ignore_errors=True)
    _in_venv("icons", "packaging/icons.py", work / "facts")
    _pyinstaller(work)
    made = _application(work)
    _strip(made)
    _add_facts(made, flavour, work / "facts")
    app = _publish(made)
    console.say(size_table(app))
    return [app] if app_only else [app, *_packages(app, flavour)]


def version() -> str:
    """GrowBox's version."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    return str(project["version"])


def _pyinstaller(work: Path) -> None:
    console.say("Freezing: PyInstaller reads the program twice, one to three minutes.")
    _in_venv(
        "pyinstaller",
        *("-m", "PyInstaller", "--noconfirm", "--log-level", "WARN"),
        *("--distpath", work / "dist", "--workpath", work / "work", "packaging/growbox.spec"),
        GROWBOX_BUILD_FACTS=str(work / "facts"),
    )


def _in_venv(name: str, *arguments: str | Path, **variables: str) -> None:
    log = cache_path() / "logs" / f"build-{name}.log"
    # In our folders only: PyInstaller keeps a cache of its own in the user's.
    environment = {**os.environ, "PYINSTALLER_CONFIG_DIR": str(cache_path() / "build"), **variables}
    environment["PYTHONPATH"] = str(ROOT)
    os.chdir(ROOT)
    if (
        stream_lines([venv_python(), *arguments], log=log, environment=environment, on_line=_ignore)
        != 0
    ):
        tail = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()[-12:]
        raise Trouble(
            f"The build stopped in {name}. The end of {log}:\n"
            + "\n".join(f"  {line}" for line in tail)
        )


def _application(work: Path) -> Path:
    name = "GrowBox.app" if PLATFORM == "darwin" else "GrowBox"
    return work / "dist" / name


def content(app: Path) -> Path:
    """The folder beside the program where plain files go."""
    return app / "Contents" / "Resources" if app.suffix == ".app" else app


def _strip(app: Path) -> None:
    """Symbols out of the libraries: 30 MB. Not OpenBLAS and its like in `numpy.libs`: stripping breaks them."""
    program = shutil.which("strip")
    if PLATFORM != "linux" or program is None:
        return
    libraries = [
        path
        for path in app.rglob("*.so*")
        if path.is_file() and not path.is_symlink() and "numpy.libs" not in path.parts
    ]
    for library in libraries:
        subprocess.run(
            [program, "--strip-unneeded", str(library)], check=False, stderr=subprocess.DEVNULL
        )


def _add_facts(app: Path, flavour: str, facts: Path) -> None:
    place = content(app)
    (place / "VERSION").write_text(f"{version()}\n", encoding="utf-8")
    shutil.copyfile(ROOT / "LICENSE", place / "LICENSE")
    internal = place if app.suffix == ".app" else place / "_internal"
    _in_venv(
        "notices",
        *("-P", "-m", "growbox_app.notices"),
        *("--json", internal / "notices.json", "--text", place / "NOTICES.txt"),
        *("--system", facts / "system.json"),
        *("--only", *(facts / "distributions.txt").read_text(encoding="utf-8").split()),
    )
    _add_models(place / "models", flavour)


def _add_models(folder: Path, flavour: str) -> None:
    """Puts the flavour's verified models into the app."""
    folder.mkdir()
    for word in FLAVOURS[flavour]:
        source = models_path() / _model_file(word)
        try:
            os.link(source.resolve(), folder / source.name)
        except OSError:
            shutil.copyfile(source, folder / source.name)
        (folder / source.name).chmod(0o644)


def _model_file(word: str) -> str:
    """The file of a tier, or of the embedding model, in the catalogue."""
    catalogue = tomllib.loads((ROOT / "resources" / "models.toml").read_text(encoding="utf-8"))
    for model in catalogue["model"]:
        tier = "embedding" if model["purpose"] == "embedding" else model["tier"]
        if tier == word:
            return str(model["file"])
    raise Trouble(f"The catalogue has no {word} model.")


def _publish(made: Path) -> Path:
    """Moves the finished folder to where it is looked for."""
    DIST.mkdir(exist_ok=True)
    target = DIST / made.name
    fresh = DIST / f".{made.name}.new"
    shutil.rmtree(fresh, ignore_errors=True)
    shutil.copytree(made, fresh, symlinks=True, copy_function=_link_or_copy)
    shutil.rmtree(target, ignore_errors=True)
    fresh.replace(target)
    shutil.rmtree(made)
    return target


def _link_or_copy(source: str, target: str) -> None:
    try:
        os.link(source, target, follow_symlinks=False)
    except OSError:
        shutil.copy2(source, target, follow_symlinks=False)


def _packages(app: Path, flavour: str) -> list[Path]:
    if PLATFORM == "linux":
        return _linux_packages(app, flavour)
    console.say(
        "docs/packaging.md says how the installer of this platform is made from that folder."
    )
    return []


def _linux_packages(app: Path, flavour: str) -> list[Path]:
    machine = platform.machine()
    tarball = DIST / f"growbox-{version()}-linux-{machine}-{flavour}.tar.gz"
    linux.make_tarball(app, tarball)
    if shutil.which("dpkg-deb") is None:
        console.say("No dpkg-deb here, so no .deb.")
        return [tarball]
    deb = DIST / f"growbox_{version()}_{_debian_machine(machine)}-{flavour}.deb"
    linux.make_deb(app, deb, version=version(), flavour=flavour)
    appimage = DIST / f"GrowBox-{version()}-{machine}-{flavour}.AppImage"
    made = [appimage] if linux.make_appimage(app, appimage, version=version()) else []
    return [tarball, deb, *made]


def _debian_machine(machine: str) -> str:
    return {"x86_64": "amd64", "aarch64": "arm64"}.get(machine, machine)


# --- what it weighs


def size_bytes(app: Path) -> int:
    """The app without its models."""
    return sum(sizes(app).values())


def sizes(app: Path) -> Counter[str]:
    """Bytes by part (library or package), models left out; links count nothing."""
    found: Counter[str] = Counter()
    for path in content(app).rglob("*"):
        parts = path.relative_to(content(app)).parts
        if path.is_file() and not path.is_symlink() and parts[0] != "models":
            found[_part(parts)] += path.stat().st_size
    return found


def _part(parts: tuple[str, ...]) -> str:
    inner = parts[1:] if parts[0] == "_internal" else parts
    if inner[0] == "PySide6" and len(inner) > 1:
        return (
            f"Qt: {inner[-1]}"
            if inner[-1].startswith(("libQt6", "libicu", "Qt"))
            else "Qt: the rest"
        )
    if inner[0] == "llama_cpp" and "ggml-cpu-" in inner[-1]:
        return "llama.cpp: CPU variants"
    return inner[0]


def size_table(app: Path) -> str:
    """The parts by size, biggest first, and the sum."""
    found = sizes(app)
    biggest = found.most_common(_TABLE_ROWS)
    rest = sum(found.values()) - sum(size for _name, size in biggest)
    rows = [
        *biggest,
        (f"{len(found) - len(biggest)} smaller parts", rest),
        ("sum without models", sum(found.values())),
    ]
    return "\n".join(f"  {size / 1e6:7.1f} MB  {name}" for name, size in rows)


def report(made: Sequence[Path]) -> str:
    """What was made, with sizes and how to try it."""
    lines = [f"  {path} ({_bytes_of(path) / 1e6:.0f} MB)" for path in made]
    return "\n".join(
        ["Made:", *lines, f"Try it: python3 packaging/smoke_test.py {json.dumps(str(made[0]))}"]
    )


def _bytes_of(path: Path) -> int:
    files = (
        [path]
        if path.is_file()
        else [p for p in path.rglob("*") if p.is_file() and not p.is_symlink()]
    )
    return sum(file.stat().st_size for file in files)


def _ignore(_line: str) -> None:
    """The line is in the log."""
