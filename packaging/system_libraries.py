"""The notices of the libraries that a Linux build takes from its own system: package, version and copyright file, as Debian has them.

Standard library only. On a system without dpkg the libraries are named and the text says where they came from.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path

_DOCUMENTS = Path("/usr/share/doc")
_LICENCES_SHOWN = 6


def notices_of(libraries: Iterable[Path]) -> list[dict[str, str]]:
    """One notice (name, version, licence, text) per package that a library belongs to, sorted by name."""
    found = sorted({path.resolve() for path in libraries})
    if shutil.which("dpkg") is None:
        return [_unpackaged(path) for path in found]
    packages = {path: _package(path) for path in found}
    known = sorted({name for name in packages.values() if name})
    return [
        *map(_packaged, known),
        *(_unpackaged(path) for path, name in packages.items() if not name),
    ]


def _package(path: Path) -> str:
    """The package that a file belongs to; empty for none. A merged /usr is known to dpkg by the older name, too."""
    for name in (str(path), str(path).removeprefix("/usr")):
        owner = _output("dpkg", "-S", name).partition(": ")[0]
        if owner:
            return owner.split(",")[0].split(":")[0]
    return ""


def _packaged(name: str) -> dict[str, str]:
    file = _DOCUMENTS / name / "copyright"
    text = file.read_text(encoding="utf-8", errors="replace").strip() if file.exists() else ""
    version = _output("dpkg-query", "-W", "-f", "${Version}", name)
    return {"name": name, "version": version, "licence": licences_in(text), "text": text or name}


def licences_in(copyright_text: str) -> str:
    """The names of a copyright file in Debian's machine-readable format, in their order; else where to look."""
    names = dict.fromkeys(re.findall(r"^License:[ \t]+(\S.*)$", copyright_text, re.MULTILINE))
    shown = list(names)[:_LICENCES_SHOWN]
    return ", ".join(shown) or "see its text"


def _unpackaged(path: Path) -> dict[str, str]:
    words = f"{path.name}, as it is on the machine that made this build."
    return {"name": path.name, "version": "", "licence": "see its text", "text": words}


def _output(*command: str) -> str:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stdout.strip() if done.returncode == 0 else ""
