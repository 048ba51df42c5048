"""Where a document is cut: greedy, at the best boundary below the limit. Pure.

The concatenation of the chunks is the original, byte for byte; nothing is trimmed. Boundaries, best first: a Markdown heading, a
blank line, a sentence end or line end, white space, anywhere. Source: design 4.5, seed item G19.
"""

from __future__ import annotations

import re

_HEADING = re.compile(r"\n(?=#{1,6} )")
_BLANK = re.compile(r"\n[ \t]*\n+")
_SENTENCE = re.compile(r"[。！？!?；;]+[”’」）\"')]*|\.(?=\s)|\n")
_SPACE = re.compile(r"\s+")
_KEEP_SHARE = 0.5  # a boundary in the first half would make a needlessly small chunk


def chunk_end(text: str, start: int, limit: int) -> int:
    """The end (exclusive, in characters) of the chunk that begins at `start`; at most `limit` characters on."""
    if len(text) - start <= limit:
        return len(text)
    window = text[start : start + limit]
    least = int(limit * _KEEP_SHARE)
    for boundary in (_HEADING, _BLANK, _SENTENCE, _SPACE):
        ends = [match.end() for match in boundary.finditer(window) if match.end() > least]
        if ends:
            return start + ends[-1]
    return start + limit


def chunk_bounds(text: str, start: int, limit: int, count: int) -> list[tuple[int, int]]:
    """The next `count` chunks from `start`, as (start, end) in characters."""
    bounds: list[tuple[int, int]] = []
    while start < len(text) and len(bounds) < count:
        end = chunk_end(text, start, limit)
        bounds.append((start, end))
        start = end
    return bounds
