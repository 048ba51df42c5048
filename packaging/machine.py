"""Does this machine have what GrowBox needs from its system: Qt's libraries, a compiler, a CJK font, a virtual display?

Checks by loading and looking, not by asking a package manager. On Debian and Ubuntu, as root, missing packages are installed;
otherwise set-up prints one command.
"""

from __future__ import annotations

import ctypes
import importlib.util
import os
import platform
import shutil
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from console import Trouble, console, output_of, stream_lines
from folders import cache_path

# What PySide6's xcb platform plugin and QtGui link against and the wheel does not bring (seen with ldd).
QT_LIBRARIES = (
    ("libEGL.so.1", "libegl1", "libglvnd-egl", "libglvnd"),
    ("libGL.so.1", "libgl1", "libglvnd-glx", "libglvnd"),
    ("libxkbcommon.so.0", "libxkbcommon0", "libxkbcommon", "libxkbcommon"),
    ("libxkbcommon-x11.so.0", "libxkbcommon-x11-0", "libxkbcommon-x11", "libxkbcommon-x11"),
    ("libX11-xcb.so.1", "libx11-xcb1", "libX11-xcb", "libx11"),
    ("libxcb-cursor.so.0", "libxcb-cursor0", "xcb-util-cursor", "xcb-util-cursor"),
    ("libxcb-icccm.so.4", "libxcb-icccm4", "xcb-util-wm", "xcb-util-wm"),
    ("libxcb-image.so.0", "libxcb-image0", "xcb-util-image", "xcb-util-image"),
    ("libxcb-keysyms.so.1", "libxcb-keysyms1", "xcb-util-keysyms", "xcb-util-keysyms"),
    ("libxcb-randr.so.0", "libxcb-randr0", "libxcb", "libxcb"),
    ("libxcb-render.so.0", "libxcb-render0", "libxcb", "libxcb"),
    (
        "libxcb-render-util.so.0",
        "libxcb-render-util0",
        "xcb-util-renderutil",
        "xcb-util-renderutil",
    ),
    ("libxcb-shape.so.0", "libxcb-shape0", "libxcb", "libxcb"),
    ("libxcb-shm.so.0", "libxcb-shm0", "libxcb", "libxcb"),
    ("libxcb-sync.so.1", "libxcb-sync1", "libxcb", "libxcb"),
    ("libxcb-xfixes.so.0", "libxcb-xfixes0", "libxcb", "libxcb"),
    ("libxcb-xkb.so.1", "libxcb-xkb1", "libxcb", "libxcb"),
    ("libxcb-glx.so.0", "libxcb-glx0", "libxcb", "libxcb"),
    ("libfontconfig.so.1", "libfontconfig1", "fontconfig", "fontconfig"),
    ("libfreetype.so.6", "libfreetype6", "freetype", "freetype2"),
    ("libdbus-1.so.3", "libdbus-1-3", "dbus-libs", "dbus"),
    ("libglib-2.0.so.0", "libglib2.0-0", "glib2", "glib2"),
    ("libwayland-client.so.0", "libwayland-client0", "libwayland-client", "wayland"),
    ("libwayland-cursor.so.0", "libwayland-cursor0", "libwayland-cursor", "wayland"),
)
_MANAGERS = (
    ("apt-get", "apt-get install -y --no-install-recommends"),
    ("dnf", "dnf install -y"),
    ("pacman", "pacman -S --needed --noconfirm"),
)


@dataclass(frozen=True)
class Need:
    """Something from the system. `packages`: its name for apt, dnf and pacman. Not `required`: nice to have."""

    what: str
    packages: tuple[str, str, str]
    is_here: Callable[[], bool]
    required: bool = True


def needs(*, display: bool, compiler: bool, tests: bool) -> list[Need]:
    """What this Linux machine must have for what is about to happen."""
    version = f"{sys.version_info.major}.{sys.version_info.minor}"
    found = [
        Need("Python's venv module", (f"python{version}-venv", "python3-pip", "python"), _has_venv),
    ]
    if compiler:
        found.append(Need("a C++ compiler", ("g++", "gcc-c++", "gcc"), has_compiler))
    if display:
        found += [
            Need(soname, (apt, dnf, pacman), partial(_loads, soname))
            for soname, apt, dnf, pacman in QT_LIBRARIES
        ]
        found.append(
            Need("fontconfig", ("fontconfig",) * 3, partial(_on_path, "fc-list"), required=False)
        )
        fonts = ("fonts-noto-cjk", "google-noto-sans-cjk-fonts", "noto-fonts-cjk")
        found.append(Need("a font with Chinese characters", fonts, _has_cjk_font, required=False))
    if tests:
        virtual = ("xvfb", "xorg-x11-server-Xvfb", "xorg-server-xvfb")
        xauth = ("xauth", "xorg-x11-xauth", "xorg-xauth")
        found += [
            Need("a virtual display", virtual, partial(_on_path, "xvfb-run"), required=False),
            Need("xauth", xauth, partial(_on_path, "xauth"), required=False),
            Need("strace", ("strace",) * 3, partial(_on_path, "strace"), required=False),
            Need("dpkg-deb", ("dpkg",) * 3, partial(_on_path, "dpkg-deb"), required=False),
            Need(
                "desktop-file-validate",
                ("desktop-file-utils",) * 3,
                partial(_on_path, "desktop-file-validate"),
                required=False,
            ),
        ]
    return found


def prepare(*, display: bool, compiler: bool, tests: bool = False) -> None:
    """Checks, installs when it may, and otherwise says the one command.

    Raises:
        Trouble: something required is missing.
    """
    if platform.system() != "Linux":
        if compiler and not has_compiler():
            raise Trouble(_compiler_elsewhere())
        return
    missing = [
        need
        for need in needs(display=display, compiler=compiler, tests=tests)
        if not need.is_here()
    ]
    if not missing:
        return
    if os.geteuid() == 0 and _on_path("apt-get") and not _was_in_vain(missing):
        _apt_install([need.packages[0] for need in missing])
        missing = [need for need in missing if not need.is_here()]
    required = [need.what for need in missing if need.required]
    if required:
        raise Trouble(
            f"Missing on this machine: {', '.join(required)}.\n{install_command(missing)}"
        )
    if missing:
        console.say(
            f"Nice to have: {', '.join(n.what for n in missing)}. {install_command(missing)}"
        )


def _was_in_vain(missing: Sequence[Need]) -> bool:
    """Whether this was tried before and only niceties are missing: an offline machine must not wait for apt at each start."""
    record = cache_path() / "apt-tried"
    wanted = " ".join(sorted(need.packages[0] for need in missing))
    tried = record.read_text(encoding="ascii") if record.exists() else ""
    record.parent.mkdir(parents=True, exist_ok=True)
    record.write_text(wanted, encoding="ascii")
    return tried == wanted and not any(need.required for need in missing)


def install_command(missing: Sequence[Need]) -> str:
    """The one command that installs what is missing, for the package manager that is here."""
    for column, (program, command) in enumerate(_MANAGERS):
        if _on_path(program):
            packages = sorted({need.packages[column] for need in missing})
            return f"Install it with:\n  sudo {command} {' '.join(packages)}"
    return "Install it with your system's package manager, then start again."


def _apt_install(packages: Sequence[str]) -> None:
    names = sorted(set(packages))
    console.say(f"Installing system packages: {' '.join(names)}")
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    log = cache_path() / "logs" / "apt.log"
    for command in (["update"], ["install", "-y", "--no-install-recommends", *names]):
        stream_lines(["apt-get", "-q", *command], log=log, environment=environment, on_line=_ignore)


def _ignore(_line: str) -> None:
    """Its own lines are only in the log; what counts is checked afterwards."""


def has_compiler() -> bool:
    """Is there a C and a C++ compiler?"""
    system = platform.system()
    if system == "Windows":
        return _on_path("cl") or _visual_studio()
    if system == "Darwin":
        return output_of(["xcode-select", "-p"]) is not None
    c = os.environ.get("CC", "").split()[:1] or ["cc", "gcc", "clang"]
    cpp = os.environ.get("CXX", "").split()[:1] or ["c++", "g++", "clang++"]
    return any(map(_on_path, c)) and any(map(_on_path, cpp))


def _visual_studio() -> bool:
    programs = os.environ.get("PROGRAMFILES(X86)", "")
    vswhere = Path(programs) / "Microsoft Visual Studio" / "Installer" / "vswhere.exe"
    component = "Microsoft.VisualStudio.Component.VC.Tools.x86.x64"
    return bool(
        output_of(
            [vswhere, "-products", "*", "-requires", component, "-property", "installationPath"]
        )
    )


def _compiler_elsewhere() -> str:
    if platform.system() == "Darwin":
        return "A C++ compiler is missing. Install it with:\n  xcode-select --install"
    return (
        "A C++ compiler is missing. Install it with:\n"
        "  winget install Microsoft.VisualStudio.2022.BuildTools --override "
        '"--wait --passive --add Microsoft.VisualStudio.Workload.VCTools --includeRecommended"'
    )


def has_display() -> bool:
    """Can a window open here?"""
    if platform.system() != "Linux" or os.environ.get("QT_QPA_PLATFORM"):
        return True
    return bool(os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"))


def _loads(soname: str) -> bool:
    try:
        ctypes.CDLL(soname)
    except OSError:
        return False
    return True


def _on_path(program: str) -> bool:
    return shutil.which(program) is not None


def _has_venv() -> bool:
    return all(importlib.util.find_spec(name) for name in ("venv", "ensurepip"))


def _has_cjk_font() -> bool:
    """Without fontconfig's program nobody knows, and a fresh system without it has no such font either."""
    fonts = output_of(["fc-list", ":lang=zh", "family"])
    return bool(fonts and fonts.strip())
