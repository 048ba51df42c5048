"""Markdown as plain values: `parse` text into blocks, `StreamingMarkdown` for an answer that is still being written.

Owns no widget. Raw HTML is kept as the text it is, images become links: nothing here can make a view fetch or run anything.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from typing import TypeAlias

from markdown_it import MarkdownIt
from markdown_it.tree import SyntaxTreeNode


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """A run of text in one style. `link` is the address it opens, or empty."""

    text: str
    bold: bool = False
    italic: bool = False
    struck: bool = False
    code: bool = False
    link: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Paragraph:
    """Flowing text. `depth` is the indentation, `marker` the bullet or number before a list item, `quote` the quote depth."""

    spans: tuple[Span, ...]
    depth: int = 0
    marker: str = ""
    quote: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Heading:
    """A heading of level 1 to 6."""

    level: int
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Code:
    """A code block; `closed` is False while its end has not been written yet."""

    language: str
    text: str
    closed: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """A table; every row has as many cells as the head. `aligned` holds `left`, `center` or `right`."""

    head: tuple[tuple[Span, ...], ...]
    rows: tuple[tuple[tuple[Span, ...], ...], ...]
    aligned: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """A thematic break."""


Block: TypeAlias = Paragraph | Heading | Code | Table | Rule


@dataclass(frozen=True, slots=True, kw_only=True)
class _Place:
    depth: int = 0
    quote: int = 0
    marker: str = ""


@cache
def _parser() -> MarkdownIt:
    return MarkdownIt("commonmark", {"html": False, "linkify": False}).enable(
        ["table", "strikethrough"]
    )


def parse(source: str) -> tuple[Block, ...]:
    """The blocks of a whole Markdown text, in order."""
    tree = SyntaxTreeNode(_parser().parse(source))
    return tuple(_blocks(tree.children, _Place()))


def _blocks(nodes: list[SyntaxTreeNode], place: _Place) -> Iterator[Block]:
    for node in nodes:
        yield from _block(node, place)
        if place.marker:
            place = _Place(depth=place.depth, quote=place.quote)


def _block(node: SyntaxTreeNode, place: _Place) -> Iterator[Block]:
    match node.type:
        case "heading":
            yield Heading(level=int(node.tag[1:]), spans=_spans(node))
        case "fence" | "code_block":
            if place.marker:
                yield Paragraph(spans=(), depth=place.depth, marker=place.marker, quote=place.quote)
            language = node.info.strip().split(maxsplit=1)[0] if node.info.strip() else ""
            yield Code(language=language, text=node.content.rstrip("\n"))
        case "hr":
            yield Rule()
        case "table":
            yield _table(node)
        case "bullet_list" | "ordered_list":
            yield from _list(node, place)
        case "blockquote":
            yield from _blocks(node.children, _Place(depth=place.depth, quote=place.quote + 1))
        case _:
            yield Paragraph(
                spans=_spans(node), depth=place.depth, marker=place.marker, quote=place.quote
            )


def _list(node: SyntaxTreeNode, place: _Place) -> Iterator[Block]:
    start = int(node.attrs.get("start", 1))
    for index, item in enumerate(node.children):
        marker = f"{start + index}." if node.type == "ordered_list" else "•"
        inside = _Place(depth=place.depth + 1, quote=place.quote, marker=marker)
        if item.children:
            yield from _blocks(item.children, inside)
        else:
            yield Paragraph(spans=(), depth=inside.depth, marker=marker, quote=inside.quote)


def _table(node: SyntaxTreeNode) -> Table:
    lines = [row for part in node.children for row in part.children]
    cells = [tuple(_spans(cell) for cell in row.children) for row in lines]
    aligned = tuple(
        str(cell.attrs.get("style", "")).removeprefix("text-align:") or "left"
        for cell in lines[0].children
    )
    return Table(head=cells[0], rows=tuple(cells[1:]), aligned=aligned)


def _spans(node: SyntaxTreeNode) -> tuple[Span, ...]:
    spans: list[Span] = []
    for child in node.children:
        if child.type == "inline":
            _inline(child.children, Span(text=""), spans)
    if not node.children and node.content:
        spans.append(Span(text=node.content.rstrip("\n")))
    return tuple(spans)


def _inline(nodes: list[SyntaxTreeNode], style: Span, spans: list[Span]) -> None:
    for node in nodes:
        match node.type:
            case "strong":
                _inline(node.children, _styled(style, bold=True), spans)
            case "em":
                _inline(node.children, _styled(style, italic=True), spans)
            case "s":
                _inline(node.children, _styled(style, struck=True), spans)
            case "link":
                _inline(node.children, _styled(style, link=str(node.attrs.get("href", ""))), spans)
            case "image":
                label = node.content or str(node.attrs.get("src", ""))
                spans.append(_styled(style, text=label, link=str(node.attrs.get("src", ""))))
            case "code_inline":
                spans.append(_styled(style, text=node.content, code=True))
            case "softbreak" | "hardbreak":
                spans.append(_styled(style, text="\n"))
            case _:
                spans.append(_styled(style, text=node.content))


def _styled(style: Span, **changes: str | bool) -> Span:
    values = {"text": style.text, "bold": style.bold, "italic": style.italic}
    values |= {"struck": style.struck, "code": style.code, "link": style.link}
    values |= changes
    return Span(
        text=str(values["text"]),
        bold=bool(values["bold"]),
        italic=bool(values["italic"]),
        struck=bool(values["struck"]),
        code=bool(values["code"]),
        link=str(values["link"]),
    )


_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})(.*)$")


class StreamingMarkdown:
    """Splits an answer, while it is written, into finished blocks and an unfinished tail.

    A block is finished at a blank line outside a code fence that is followed by a line without indentation (an indented line may still
    belong to a list item), or at the end of a fence. Each text is looked at once: feeding is linear in the answer's length.
    """

    def __init__(self) -> None:
        self.finished: list[Block] = []
        self._lines: list[str] = []
        self._partial = ""
        self._fence = ""
        self._blank = False

    def feed(self, text: str) -> None:
        """Takes more of the answer."""
        *lines, self._partial = (self._partial + text).split("\n")
        for line in lines:
            self._take_line(line)
        if self._blank and not self._fence and self._partial[:1].strip():
            self._finish()

    def _take_line(self, line: str) -> None:
        if self._fence:
            self._lines.append(line)
            if line.strip().startswith(self._fence) and not line.strip().strip(self._fence[0]):
                self._fence = ""
                self._finish()
            return
        if self._blank and line[:1].strip():
            self._finish()
        opened = _FENCE.match(line)
        if opened:
            self._finish()
            self._fence = opened.group(1)
        self._blank = not line.strip()
        self._lines.append(line)

    def _finish(self) -> None:
        source = "\n".join(self._lines)
        self._lines = []
        self._blank = False
        if source.strip():
            self.finished.extend(parse(source))

    @property
    def tail(self) -> Paragraph | Code | None:
        """What is unfinished, as plain text (or as code inside an open fence); None when there is nothing."""
        text = "\n".join([*self._lines, self._partial])
        if not text.strip():
            return None
        if self._fence:
            body = "\n".join([*self._lines[1:], self._partial])
            language = self._lines[0].strip().lstrip("`~").strip()
            return Code(language=language, text=body, closed=False)
        return Paragraph(spans=(Span(text=text.strip("\n")),))
