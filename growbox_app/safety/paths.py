"""Paths as text, on any platform: what makes a name treacherous, and whether a path lies in a folder.

Pure. Rules of Windows are applied for `platform="win32"` wherever the program runs, so that they can be tested anywhere.
"""

from __future__ import annotations

import ntpath
import posixpath
import re
import unicodedata
from types import ModuleType

SLASHES = frozenset("／＼⁄∕⧸⧵∖﹨⟋⟍")
"""Characters that look like a separator and are none – or are one, to a program that folds widths."""
DEVICES = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$", "clock$"]
    + [f"{port}{digit}" for port in ("com", "lpt") for digit in "0123456789¹²³"]
)
SHORT_NAME = re.compile(r"~\d+(\.|$)")


def flavour(platform: str) -> ModuleType:
    """The path module of a platform."""
    return ntpath if platform == "win32" else posixpath


def folded(name: str) -> str:
    """A name as the laxest file system compares it: width, case and composition do not count."""
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", name).casefold())


def strange_characters(text: str) -> bool:
    """Whether there are characters a reader cannot see or that turn the text around: controls, formats, other spaces."""
    return any(
        unicodedata.category(character) in {"Cc", "Cf", "Cs", "Zl", "Zp"} for character in text
    )


def hazard(path: str, platform: str) -> str | None:
    """Why a path cannot be trusted to mean what it shows, in one word."""
    if "\0" in path:
        return "nul"
    if strange_characters(path):
        return "invisible"
    if SLASHES & set(path):
        return "lookalike"
    parts = re.split(r"[/\\]", path) if platform == "win32" else path.split("/")
    if any(part not in {".", ".."} and set(folded(part)) == {"."} for part in parts):
        return "lookalike"
    return _windows_hazard(path, parts) if platform == "win32" else None


def _windows_hazard(path: str, parts: list[str]) -> str | None:
    drive, rest = ntpath.splitdrive(path)
    if path[:2].replace("/", "\\") == "\\\\":
        return "unc"
    if drive and not rest.startswith(("/", "\\")):
        return "drive_relative"
    if ":" in rest or len(drive) > 2:
        return "stream"
    for part in parts:
        if part in {".", "..", drive}:
            continue
        if folded(part).split(".")[0].rstrip() in DEVICES:
            return "device"
        if part != part.rstrip(". "):
            return "trailing"
        if SHORT_NAME.search(part):
            return "short_name"
    return None


def comparable(path: str, platform: str) -> str:
    """A normal path in the form in which the platform's file system compares it (macOS and Windows: without case)."""
    normal = str(flavour(platform).normpath(path))
    if platform == "win32":
        return unicodedata.normalize("NFC", normal).replace("\\", "/").casefold()
    if platform == "darwin":
        return unicodedata.normalize("NFC", normal).casefold()
    return normal


def inside(path: str, folder: str, platform: str) -> bool:
    """Whether a path is a folder or lies in it. Both are resolved already."""
    inner, outer = comparable(path, platform), comparable(folder, platform)
    return inner == outer or inner.startswith(outer.rstrip("/") + "/")


def joined(folder: str, path: str, platform: str) -> str:
    """An absolute path, still with its links: `..` is left to whoever follows them."""
    return str(flavour(platform).join(folder, path))
