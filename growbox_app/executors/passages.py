"""Finding the passage that an edit means, in a text whose lines end in line feeds. Pure.

A small model copies a passage nearly: with the line numbers it was shown, another indentation, other spaces or quotes. Each step is
laxer than the one before and must match exactly one place; none of them accepts other words. What is not found, or found more than
once, is answered with the places that come nearest, so that the next try can copy them.
"""

from __future__ import annotations

import difflib
import heapq
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import pairwise

from growbox_app.executors.answers import CallFailed, Reason, cut_line

CANDIDATES_MAX = 3
PLACES_MAX = 8
_COMPARED_LINES_MAX = 40
"""Places of a long file that are compared in full; the others share too few words."""
_CANDIDATE_LINES_MAX = 12
_ALIKE_MIN = 0.4
_SHOWN_CHARACTERS_MAX = 160
_NUMBERED = re.compile(r"^\s*\d+\| ?")
_SPACES = re.compile(r"\s+")
_INDENT = re.compile(r"[ \t]*")
_WORD = re.compile(r"\w+")
_PLAIN = str.maketrans({"“": '"', "”": '"', "‘": "'", "’": "'", "–": "-", "—": "-", "\u00a0": " "})


@dataclass(frozen=True, slots=True, kw_only=True)
class Replacement:
    """One place and what stands there afterwards. `start` and `end` are characters of the text."""

    start: int
    end: int
    new: str


def replacements(text: str, old: str, new: str, *, every: bool) -> list[Replacement]:
    """Where `old` stands and what comes in its place; several places only with `every`.

    Raises:
        CallFailed: no place, or several; the message shows the nearest ones.
    """
    if not old.strip():
        raise CallFailed(
            "old is empty; copy the lines to be replaced from the file", Reason.ARGUMENTS
        )
    old, new = _same_last_end(old, new)
    found = _exact(text, old, new)
    if not found and _is_numbered(old):
        old = _without_numbers(old)
        new = _without_numbers(new) if _is_numbered(new) else new
        found = _exact(text, old, new)
    for step in (_by_lines_right, _by_lines, _within_line):
        found = found or step(text, old, new)
    if not found:
        raise CallFailed(_not_found(text, old), Reason.TEXT_NOT_FOUND)
    if len(found) > 1 and not every:
        raise CallFailed(_ambiguous(text, found), Reason.PLACES, count=len(found))
    return found


def applied(text: str, found: list[Replacement]) -> str:
    """The text with all replacements made. They do not overlap and ascend."""
    parts: list[str] = []
    at = 0
    for one in found:
        parts += [text[at : one.start], one.new]
        at = one.end
    return "".join(parts) + text[at:]


def line_of(text: str, at: int) -> int:
    """The number of the line that holds a character, from 1."""
    return text.count("\n", 0, at) + 1


# -- the steps ----------------------------------------------------------------------------------


def _same_last_end(old: str, new: str) -> tuple[str, str]:
    """A last line end that only one of the two has is a slip of the pen: it would glue two lines together, or part them."""
    if old.endswith("\n") and new and not new.endswith("\n"):
        return old, new + "\n"
    if new.endswith("\n") and not old.endswith("\n"):
        return old, new.removesuffix("\n")
    return old, new


def _exact(text: str, old: str, new: str) -> list[Replacement]:
    found: list[Replacement] = []
    at = text.find(old)
    while at >= 0:
        found.append(Replacement(start=at, end=at + len(old), new=new))
        at = text.find(old, at + len(old))
    return found


def _is_numbered(passage: str) -> bool:
    lines = [line for line in passage.split("\n") if line.strip()]
    numbered = bool(lines) and all(_NUMBERED.match(line) for line in lines)
    return numbered and bool(_without_numbers(passage).strip())


def _without_numbers(passage: str) -> str:
    return "\n".join(_NUMBERED.sub("", line, count=1) for line in passage.split("\n"))


def _by_lines_right(text: str, old: str, new: str) -> list[Replacement]:
    """Whole lines, whatever white space ends them."""
    return _lines_alike(text, old, new, str.rstrip)


def _by_lines(text: str, old: str, new: str) -> list[Replacement]:
    """Whole lines, whatever their indentation, spacing and quotes."""
    return _lines_alike(text, old, new, _plain)


def _plain(line: str) -> str:
    return _SPACES.sub(" ", line.translate(_PLAIN)).strip()


def _lines_alike(text: str, old: str, new: str, key: Callable[[str], str]) -> list[Replacement]:
    lines, wanted = text.split("\n"), _trimmed(old.split("\n"))
    keys, wanted_keys = [key(line) for line in lines], [key(line) for line in wanted]
    starts = _line_starts(lines)
    found: list[Replacement] = []
    at = 0
    while at <= len(keys) - len(wanted):
        if keys[at] == wanted_keys[0] and keys[at : at + len(wanted)] == wanted_keys:
            last = at + len(wanted) - 1
            place = lines[at : last + 1]
            end = starts[last] + len(lines[last])
            fresh = "\n".join(_reindented(_trimmed(new.split("\n")), wanted, place))
            if not new.strip():
                fresh, end = "", min(end + 1, len(text))
            found.append(Replacement(start=starts[at], end=end, new=fresh))
            at += len(wanted)
        else:
            at += 1
    return found


def _trimmed(lines: list[str]) -> list[str]:
    """Without blank lines at both ends; all of them blank: one."""
    first, last = 0, len(lines)
    while first < last - 1 and not lines[first].strip():
        first += 1
    while last - 1 > first and not lines[last - 1].strip():
        last -= 1
    return lines[first:last]


def _line_starts(lines: list[str]) -> list[int]:
    starts, at = [], 0
    for line in lines:
        starts.append(at)
        at += len(line) + 1
    return starts


def _reindented(new: list[str], old: list[str], place: list[str]) -> list[str]:
    """New lines with the indentation of the place instead of that of the passage as it was quoted."""
    indents = dict(zip(map(_indent, old), map(_indent, place), strict=True))
    if all(quoted == real for quoted, real in indents.items()):
        return new
    unit = _unit(old + new)
    real_unit = "\t" if any("\t" in real for real in indents.values()) else unit
    base, real_base = _indent(old[0]), _indent(place[0])
    fresh: list[str] = []
    for line in new:
        indent = _indent(line)
        if not line.strip():
            fresh.append("")
        elif indent in indents:
            fresh.append(indents[indent] + line[len(indent) :])
        elif indent.startswith(base):
            inner = indent[len(base) :].replace(unit, real_unit)
            fresh.append(real_base + inner + line[len(indent) :])
        else:
            fresh.append(line)
    return fresh


def _indent(line: str) -> str:
    match = _INDENT.match(line)
    return match.group() if match is not None else ""


def _unit(lines: list[str]) -> str:
    """The smallest step of indentation."""
    widths = sorted({len(_indent(line)) for line in lines if line.strip()})
    steps = [b - a for a, b in pairwise(widths)]
    return " " * min(steps, default=4)


def _within_line(text: str, old: str, new: str) -> list[Replacement]:
    """A piece of one line, whatever its spacing."""
    words = old.split()
    if "\n" in old.strip("\n"):
        return []
    pattern = r"[ \t]+".join(re.escape(word) for word in words)
    fresh = new.strip("\n").strip()
    return [
        Replacement(start=match.start(), end=match.end(), new=fresh)
        for match in re.finditer(pattern, text)
    ]


# -- what to say when it fails ------------------------------------------------------------------


def _ambiguous(text: str, found: list[Replacement]) -> str:
    lines = [str(line_of(text, one.start)) for one in found[:PLACES_MAX]]
    more = "" if len(found) <= PLACES_MAX else " …"
    return (
        f"old stands at {len(found)} places, lines {', '.join(lines)}{more}; "
        "add a line before or after it, or set every to true"
    )


def _not_found(text: str, old: str) -> str:
    near = _nearest(text, _trimmed(old.split("\n")))
    if not near:
        return "old is not in the file and nothing is like it; read the file, then copy the lines"
    return "old is not in the file. Nearest, to copy from:\n" + "\n--\n".join(near)


def _nearest(text: str, wanted: list[str]) -> list[str]:
    """The passages most like the wanted one, with line numbers."""
    lines = text.split("\n")
    goal = "\n".join(map(_plain, wanted))
    scored: list[tuple[float, int]] = []
    for at in _promising(lines, wanted):
        place = "\n".join(_plain(line) for line in lines[at : at + len(wanted)])
        ratio = difflib.SequenceMatcher(None, goal, place, autojunk=False).ratio()
        if ratio >= _ALIKE_MIN:
            scored.append((ratio, at))
    chosen: list[int] = []
    for _, at in sorted(scored, key=lambda one: (-one[0], one[1])):
        if all(abs(at - other) >= len(wanted) for other in chosen):
            chosen.append(at)
    return ["\n".join(_numbered(lines, at, len(wanted))) for at in chosen[:CANDIDATES_MAX]]


def _promising(lines: list[str], wanted: list[str]) -> list[int]:
    """Where passages begin that share most words with the wanted one; few enough to be compared in full."""
    goal = set(_WORD.findall(" ".join(wanted[:_CANDIDATE_LINES_MAX]).lower()))
    shared = [len(goal & set(_WORD.findall(line.lower()))) for line in lines]
    window = min(len(wanted), _CANDIDATE_LINES_MAX)
    sums = _window_sums(shared, window)
    return [
        at for total, at in heapq.nlargest(_COMPARED_LINES_MAX, sums, key=lambda s: s[0]) if total
    ]


def _window_sums(values: list[int], window: int) -> Iterator[tuple[int, int]]:
    total = sum(values[:window])
    for at in range(len(values)):
        yield total, at
        total -= values[at]
        total += values[at + window] if at + window < len(values) else 0


def _numbered(lines: list[str], at: int, count: int) -> Iterator[str]:
    for number in range(at, min(at + count, at + _CANDIDATE_LINES_MAX, len(lines))):
        yield f"{number + 1}| {cut_line(lines[number], _SHOWN_CHARACTERS_MAX)}"
