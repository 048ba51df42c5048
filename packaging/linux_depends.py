"""What the Debian package depends on, from the files that are in it: a library that nobody brings ends the build, not the app."""

from __future__ import annotations

import platform
from pathlib import Path

import elf
from console import Trouble
from machine import QT_LIBRARIES

# Names that Debian changed: the new one first, since installing picks the first that exists.
_RENAMED = {"libglib2.0-0": "libglib2.0-0t64 | libglib2.0-0"}
# What the app may ask for besides Qt's libraries, and where Debian has it.
_OTHER_LIBRARIES = {
    "libdrm.so.2": "libdrm2",
    "libgcc_s.so.1": "libgcc-s1",
    "libgomp.so.1": "libgomp1",
    "libstdc++.so.6": "libstdc++6",
    "libxcb.so.1": "libxcb1",
    "libz.so.1": "zlib1g",
}
_GLIBC = frozenset(
    (
        "ld-linux-x86-64.so.2",
        "ld-linux-aarch64.so.1",
        "libc.so.6",
        "libdl.so.2",
        "libm.so.6",
        "libpthread.so.0",
        "librt.so.1",
    )
)


def depends(app: Path) -> str:
    """What the Debian package needs: this machine's glibc or a newer one, and libraries that the app does not bring along.

    Qt's are all named, also those that the app brings: their packages carry the data that the libraries read (fonts' and
    keyboards' configuration).

    Raises:
        Trouble: the app asks for a library that no known package has.
    """
    packages = {apt for _, apt, _, _ in QT_LIBRARIES}
    known = {**_OTHER_LIBRARIES, **{soname: apt for soname, apt, _, _ in QT_LIBRARIES}}
    for soname, user in sorted(missing_libraries(app).items()):
        if soname not in known:
            raise Trouble(f"{user} needs {soname}, which is neither bundled nor known here.")
        packages.add(known[soname])
    glibc = f"libc6 (>= {platform.libc_ver()[1]})"
    return ", ".join([glibc, *(_RENAMED.get(name, name) for name in sorted(packages))])


def missing_libraries(app: Path) -> dict[str, str]:
    """The sonames that the app's files need and that neither it nor glibc has; each with a file that needs it."""
    files = [path for path in app.rglob("*") if path.is_file() and path.suffix != ".gguf"]
    brought = {path.name for path in files}
    return {
        soname: path.name
        for path in files
        if not path.is_symlink()
        for soname in elf.needed(path)
        if soname not in brought and soname not in _GLIBC
    }
