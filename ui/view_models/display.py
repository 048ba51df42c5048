"""Makes stored text safe to lay out.

Qt lays out one line at a time and freezes on very long ones (1 MB on one line: 18 s and more), so long lines are broken for display only;
the stored text is never changed.
"""

from __future__ import annotations

import re
import unicodedata

LINE_CHARACTERS_MAX = 2_000
MESSAGE_CHARACTERS_MAX = 60_000
# Control, format, surrogate, private, unassigned, line and paragraph separators.
_UNSEEN = ("Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp")


def broken_lines(text: str, width: int = LINE_CHARACTERS_MAX) -> str:
    """The text with no line longer than `width` characters."""
    if len(text) <= width:
        return text
    return "\n".join(
        piece
        for line in text.split("\n")
        for piece in ([line[start : start + width] for start in range(0, len(line), width)] or [""])
    )


def head(text: str, limit: int = MESSAGE_CHARACTERS_MAX) -> tuple[str, bool]:
    """The first part of a long text, and whether something was left out."""
    return (text, False) if len(text) <= limit else (text[:limit], True)


def visible(text: str) -> str:
    """The text with every character that shows nothing, or moves others, written as its number.

    What the user is asked to allow must look like what would run.
    """
    return "".join(
        character
        if character in "\t\n" or unicodedata.category(character) not in _UNSEEN
        else f"\\u{{{ord(character):x}}}"
        for character in text
    )


_ESCAPES = re.compile(
    r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[P^_X][^\x1b]*\x1b\\|[ -/]*[0-~])"
)


def plain(text: str) -> str:
    """Output without the escape codes of a terminal: colours, cursor moves, titles, links."""
    return _ESCAPES.sub("", text)


def editable(text: str) -> bool:
    """Whether a text field gives back what it was given: it keeps nothing that shows nothing, and makes plain spaces of hard ones."""
    return visible(text) == text and "\u00a0" not in text


def one_line(text: str, limit: int = 120) -> str:
    """White space folded, cut with an ellipsis."""
    folded = " ".join(text[: limit * 4].split())
    return folded if len(folded) <= limit else folded[: limit - 1] + "…"


def title_line(text: str, limit: int = 120) -> str:
    """A stored text as a one-line title, without the commonest Markdown marks."""
    plain = text[: limit * 4].replace("**", "").replace("`", "").lstrip("#>- \n\t")
    return one_line(plain, limit)
