"""The folder trees that the Linux packages are made of: the app and what the desktop needs to know of it.

Files are linked where mode and disk allow, since models are gigabytes; modes are 755 and 644, whatever the builder's umask was.
The templates are in `packaging/linux/`.
"""

from __future__ import annotations

import gzip
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Mapping
from itertools import product
from pathlib import Path

from console import Trouble
from folders import ROOT, venv_python

TEMPLATES = Path(__file__).resolve().parent / "linux"
# Our drawings, and where an icon theme has them.
_ICONS = {"growbox": "apps/growbox", "growbox-document": "mimetypes/application-x-growbox"}
_METAINFO = "io.github.growbox.GrowBox.metainfo.xml"
# Of those that packaging/icons.py draws, the ones that hicolor has folders for.
_ICON_SIZES = (16, 24, 32, 48, 64, 128, 256, 512)


def moment(app: Path) -> int:
    """The time that everything in the packages carries, in seconds since 1970."""
    chosen = os.environ.get("SOURCE_DATE_EPOCH")
    return int(chosen) if chosen else int((app / "VERSION").stat().st_mtime)


def stage_system(root: Path, app: Path, version: str) -> None:
    """Lays everything out as it is on an installed system."""
    _stage_app(app, root / "opt" / "growbox")
    share = root / "usr" / "share"
    stage_desktop_files(share)
    values = {"VERSION": version, "DATE": time.strftime("%Y-%m-%d", time.gmtime(moment(app)))}
    write(share / "metainfo" / _METAINFO, filled(_METAINFO, values))
    manual = gzip.compress(filled("growbox.1", values).encode(), 9, mtime=0)
    _write_bytes(share / "man" / "man1" / "growbox.1.gz", manual)
    (share / "man" / "man1" / "growbox-cli.1.gz").symlink_to("growbox.1.gz")
    parts = (TEMPLATES / "copyright.head", app / "LICENSE", app / "NOTICES.txt")
    copyright_text = "".join(path.read_text(encoding="utf-8") for path in parts)
    write(share / "doc" / "growbox" / "copyright", copyright_text)
    changes = gzip.compress((ROOT / "CHANGELOG.md").read_bytes(), 9, mtime=0)
    _write_bytes(share / "doc" / "growbox" / "CHANGELOG.md.gz", changes)
    commands = root / "usr" / "bin"
    commands.mkdir(parents=True)
    (commands / "growbox").symlink_to("/opt/growbox/GrowBox")
    (commands / "growbox-cli").symlink_to("/opt/growbox/growbox-cli")


def _stage_app(app: Path, target: Path) -> None:
    """The app folder again, by hard links where mode and disk allow: models are gigabytes."""
    for name, path in sorted({".": app, **members(app)}.items()):
        place = target / name
        if path.is_symlink():
            place.symlink_to(path.readlink())
        elif path.is_dir():
            place.mkdir(parents=True, exist_ok=True)
        else:
            _link_or_copy(path, place)


def _link_or_copy(path: Path, place: Path) -> None:
    mode = mode_of(path)
    if path.stat().st_mode & 0o7777 == mode:
        try:
            place.hardlink_to(path)
        except OSError:  # another disk, or one without links
            shutil.copy2(path, place)
        return
    shutil.copy2(path, place)
    place.chmod(mode)


def stage_desktop_files(share: Path) -> None:
    """Menu entry, file type and icons, as they lie under a `share` folder."""
    copy(TEMPLATES / "growbox.desktop", share / "applications" / "growbox.desktop", 0o644)
    copy(TEMPLATES / "growbox.xml", share / "mime" / "packages" / "growbox.xml", 0o644)
    theme = share / "icons" / "hicolor"
    with tempfile.TemporaryDirectory() as drawn:
        _draw_icons(Path(drawn))
        for size, (source, place) in product(_ICON_SIZES, _ICONS.items()):
            picture = theme / f"{size}x{size}" / f"{place}.png"
            copy(Path(drawn) / f"{source}-{size}.png", picture, 0o644)
    for source, place in _ICONS.items():
        drawing = ROOT / "resources" / "icons" / f"{source}.svg"
        copy(drawing, theme / "scalable" / f"{place}.svg", 0o644)


def _draw_icons(folder: Path) -> None:
    """Renders the icon in all sizes; needs Qt, so it runs in the set-up Python."""
    environment = {**os.environ, "QT_QPA_PLATFORM": "offscreen"}
    command = [str(venv_python()), str(ROOT / "packaging" / "icons.py"), str(folder)]
    done = subprocess.run(
        command, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False
    )
    if done.returncode != 0:
        raise Trouble(f"The icons could not be drawn:\n{done.stderr.decode(errors='replace')}")


def members(folder: Path) -> dict[str, Path]:
    """Everything in a folder, folders too, by its name inside it."""
    return {path.relative_to(folder).as_posix(): path for path in folder.rglob("*")}


def open_folders(root: Path) -> None:
    """Lets everybody into every folder, whatever the builder's umask was."""
    for path in (root, *root.rglob("*")):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o755)


def mode_of(path: Path) -> int:
    """Readable by all, and executable when its owner may execute it: the builder's umask is nobody else's concern."""
    return 0o755 if path.stat().st_mode & 0o100 else 0o644


def filled(template: str, values: Mapping[str, str]) -> str:
    """A template's text, each `@NAME@` replaced."""
    text = (TEMPLATES / template).read_text(encoding="utf-8")
    return re.sub(r"@([A-Z_]+)@", lambda match: values[match[1]], text)


def write(path: Path, text: str) -> None:
    """Writes a file that everybody may read, and the folders above it."""
    _write_bytes(path, text.encode())


def _write_bytes(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    path.chmod(0o644)


def copy(source: Path, target: Path, mode: int) -> None:
    """Copies a file's content, and makes the folders above it."""
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copyfile(source, target)
    target.chmod(mode)
