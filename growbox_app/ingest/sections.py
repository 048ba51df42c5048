"""Sections of a text: where each begins, and the path of headings or names above it. Pure."""

from __future__ import annotations

import re
from typing import NamedTuple

_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_HEADING = re.compile(r" {0,3}(#{1,6})[ \t]+(.*?)[ \t]*#*[ \t]*$")
_UNDERLINE = re.compile(r" {0,3}=+[ \t]*$")
_TITLE_CHARACTERS_MAX = 80


class Section(NamedTuple):
    """Begins at `start`; `path` is outermost first."""

    start: int
    path: tuple[str, ...]


def headings(text: str) -> list[Section]:
    """The sections of a Markdown text. A heading in a fenced block is none."""
    sections = [Section(0, ())]
    path: list[tuple[int, str]] = []
    fence = ""
    at = before_at = 0
    before = ""
    for line in text.splitlines(keepends=True):
        bare = line.rstrip("\r\n")
        fenced, fence = _in_fence(bare, fence)
        level, title, start = 0, "", at
        if not fenced:
            if (match := _HEADING.match(bare)) is not None:
                level, title = len(match[1]), match[2]
            elif _UNDERLINE.match(bare) and before.strip() and not _HEADING.match(before):
                level, title, start = 1, before.strip(), before_at
        if level:
            path = [(above, name) for above, name in path if above < level]
            path.append((level, title[:_TITLE_CHARACTERS_MAX]))
            sections.append(Section(start, tuple(name for _, name in path)))
        before, before_at = ("" if fenced else bare), at
        at += len(line)
    return _distinct(sections)


def _in_fence(line: str, fence: str) -> tuple[bool, str]:
    """Whether a line belongs to a fenced block, and the fence that is open behind it."""
    match = _FENCE.match(line)
    if fence:
        closes = match is not None and match[1].startswith(fence) and not line.strip(" `~\t")
        return True, "" if closes else fence
    return (True, match[1]) if match is not None else (False, "")


def _distinct(sections: list[Section]) -> list[Section]:
    """Of two that begin together the later one holds."""
    return list({section.start: section for section in sections}.values())
