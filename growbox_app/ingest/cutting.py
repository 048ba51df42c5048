"""Where a document is cut, and what stands above each passage: code at definitions, Markdown at headings, the rest at sentences or lines.

Pure. Small neighbours share a passage, large sections are divided. The passages join to the text, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import PurePath

from growbox_app.ingest.sections import Section, headings
from memory.rest.chunking import chunk_end
from memory.values import Cut

SMALL_CHARACTERS = 400
"""A shorter section is joined with its neighbours: too little in it to be found by."""
TINY_CHARACTERS = 100
"""A section of such a size, a heading perhaps, is joined even with one that has to be divided then."""
CONTEXT_CHARACTERS_MAX = 240
_MARKDOWN = frozenset({".md", ".markdown", ".mdown", ".mkd", ".qmd", ".rmd", ".docx"})
_PROSE = frozenset({"", ".txt", ".text", ".rst", ".adoc", ".tex", ".org", ".pdf"}) | _MARKDOWN


def cuts_of(text: str, name: str, characters_max: int) -> tuple[Cut, ...]:
    """The cuts of a document.

    Args:
        text: all of it.
        name: of the file, with its folder perhaps: its suffix says what it is, and it begins every context.
        characters_max: size of a passage.
    """
    if not text:
        return ()
    suffix = PurePath(name).suffix.lower()
    if len(text) <= characters_max:
        return (Cut(end=len(text), context=name[:CONTEXT_CHARACTERS_MAX]),)
    lines = suffix not in _PROSE
    if suffix in _MARKDOWN:
        sections = headings(text)
    elif lines:
        sections = _definitions(text, name, characters_max)
    else:
        sections = [Section(0, ())]
    return tuple(_cuts(text, name, sections, characters_max, lines=lines))


def _definitions(text: str, name: str, characters_max: int) -> list[Section]:
    from growbox_app.ingest import definitions  # grammars, which only code needs

    if not definitions.knows(name):
        return [Section(0, ())]
    return definitions.definitions(text, name, characters_max)


def _cuts(
    text: str, name: str, sections: Sequence[Section], most: int, *, lines: bool
) -> Iterator[Cut]:
    for start, end, path in _packed(text, sections, most):
        context = " › ".join((name, *path))[:CONTEXT_CHARACTERS_MAX]
        at = start
        while at < end:
            at = _next_end(text, at, end, most, lines=lines)
            yield Cut(end=at, context=context)


def _next_end(text: str, at: int, end: int, most: int, *, lines: bool) -> int:
    """The end of the passage that begins at `at`, in a section that ends at `end`; the last two share what is left."""
    left = end - at
    if left <= most:
        return end
    limit = most if left > most + most // 2 else left * 2 // 3
    return chunk_end(text, at, limit, lines=lines)


def _packed(
    text: str, sections: Sequence[Section], most: int
) -> Iterator[tuple[int, int, tuple[str, ...]]]:
    """Sections as (start, end, path), small ones joined with what follows while that fits."""
    ends = [section.start for section in sections[1:]] + [len(text)]
    start, path = 0, sections[0].path
    until = 0
    for section, end in zip(sections, ends, strict=True):
        size, more = until - start, end - section.start
        if not _belongs(size, more, most):
            yield start, until, path
            start, path = section.start, section.path
        elif size < TINY_CHARACTERS or not text[start:until].strip():
            path = section.path
        elif more >= TINY_CHARACTERS and text[section.start : end].strip():
            path = _common(path, section.path)
        until = end
    yield start, until, path


def _belongs(size: int, more: int, most: int) -> bool:
    """Whether so much more is put to what is already together."""
    if size + more <= most:
        return size < SMALL_CHARACTERS or more < TINY_CHARACTERS
    return size < TINY_CHARACTERS


def _common(first: tuple[str, ...], second: tuple[str, ...]) -> tuple[str, ...]:
    """What stands above both."""
    same = 0
    for one, other in zip(first, second, strict=False):
        if one != other:
            break
        same += 1
    return first[:same]
