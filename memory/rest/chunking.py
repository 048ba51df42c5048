"""Where a document is cut: at the best boundary below the limit. Pure.

The concatenation of the chunks is the original, byte for byte; nothing is trimmed. Boundaries, best first: a Markdown heading, a
blank line, a sentence end or line end, white space, anywhere. Among equally good ones the words around them choose, not their
distance from the last cut, so that after a change in a text the cuts behind it soon fall where they fell before, and the chunks
there are the same. Source: design 4.5, seed item G19; the choice is content-defined chunking by local minimum.
"""

from __future__ import annotations

import re
import zlib
from collections.abc import Sequence

from memory.errors import require
from memory.values import Cut

_HEADING = re.compile(r"\n(?=#{1,6} )")
_BLANK = re.compile(r"\n[ \t]*(?:\r?\n)+")
_SENTENCE = re.compile(
    r"[。！？!?；;]+[”’」）\"')]*|(?<!\b\d)(?<!\b\d\d)\.(?=\s)|\n"
)  # "3. " begins an item
_SPACE = re.compile(r"\s+")
_LINE = re.compile(r"\n")
_OF_PROSE = (_HEADING, _BLANK, _SENTENCE, _SPACE)
_OF_LINES = (_BLANK, _LINE, _SPACE)
_KEEP_SHARE = 0.5  # a boundary in the first half would make a needlessly small chunk
_AROUND = 16  # characters on each side of a boundary that choose it


def chunk_end(text: str, start: int, limit: int, *, lines: bool = False) -> int:
    """The end (exclusive, in characters) of the chunk that begins at `start`; at most `limit` characters on.

    Args:
        text: the whole document.
        start: in characters.
        limit: in characters, at least 1.
        lines: the text is made of lines, not of sentences (source code, data).
    """
    if len(text) - start <= limit:
        return len(text)
    window = text[start : start + limit]
    least = int(limit * _KEEP_SHARE)
    end = start + limit
    for boundary in _OF_LINES if lines else _OF_PROSE:
        ends = [match.end() for match in boundary.finditer(window) if match.end() > least]
        if ends:
            end = start + min(ends, key=lambda end: (_lot(text, start + end), -end))
            break
    parted = text[end - 1] == "\r" and text[end : end + 1] == "\n" and end - start > 1
    return end - parted


def _lot(text: str, at: int) -> int:
    """A number that depends only on the words around a place."""
    around = text[max(0, at - _AROUND) : at + _AROUND]
    return zlib.crc32(around.encode("utf-8", "surrogatepass"))


def chunk_bounds(text: str, start: int, limit: int, count: int) -> list[tuple[int, int]]:
    """The next `count` chunks from `start`, as (start, end) in characters."""
    bounds: list[tuple[int, int]] = []
    while start < len(text) and len(bounds) < count:
        end = chunk_end(text, start, limit)
        bounds.append((start, end))
        start = end
    return bounds


def check_cuts(text: str, cuts: Sequence[Cut], limit: int) -> None:
    """The laws that whoever chooses the cuts could break: nothing lost, nothing too long.

    Raises:
        InvariantError: the passages do not join to the text, or one is empty or longer than `limit` characters.
    """
    if not cuts:
        return
    ends = [cut.end for cut in cuts]
    sizes = [end - start for start, end in zip([0, *ends], ends, strict=False)]
    require(ends[-1] == len(text), "cuts that do not end where the text does")
    require(all(0 < size <= limit for size in sizes), "a passage of a forbidden size")
