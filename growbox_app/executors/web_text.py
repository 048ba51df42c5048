"""A page as text to read: HTML as Markdown that keeps headings, lists, tables, links' words and code; anything else as it is.

Runs in a child process (`child_process.py`): the parser is native, and the page a stranger's. What a reader of the page would not see is
left out – scripts, what is hidden – and so is what stands around its content, where there is some. lxml is imported there only.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence

import msgspec

from growbox_app.executors.web_charset import page_text
from growbox_app.ingest.decoding import NotText

FEED_BYTES = 1 << 16
CONTENT_CHARACTERS_MIN = 200
"""Less content than this is none: the page is not built as it claims, and everything is shown."""
HTML_KINDS = frozenset({"text/html", "application/xhtml+xml"})
_HIDDEN, _AROUND, _CONTENT, _CODE = "hidden", "around", "content", "code"
_LEFT_OUT = (
    "script", "style", "template", "noscript", "svg", "math", "iframe", "object", "embed", "canvas", "audio", "video", "select", "button",
    "dialog", "textarea",
)  # fmt: skip
_SORTS = {
    **dict.fromkeys(_LEFT_OUT, _HIDDEN),
    **dict.fromkeys(("nav", "footer", "aside"), _AROUND),
    **dict.fromkeys(("main", "article"), _CONTENT),
    "pre": _CODE,
}
_BLOCKS = frozenset({
    "address", "article", "aside", "blockquote", "body", "caption", "center", "dd", "details", "div", "dl", "dt", "fieldset",
    "figcaption", "figure", "footer", "form", "h1", "h2", "h3", "h4", "h5", "h6", "header", "hr", "html", "li", "main", "nav", "ol", "p", "pre",
    "section", "summary", "table", "tbody", "tfoot", "thead", "title", "tr", "ul",
})  # fmt: skip
_HEADINGS = {f"h{level}": "#" * level + " " for level in range(1, 7)}
_CELLS = frozenset({"td", "th"})
_LISTS = frozenset({"ul", "ol"})
_PREFIXED = frozenset({*_HEADINGS, "li"})
_SPACES = re.compile(r"\s+")


class WebPage(msgspec.Struct, frozen=True):
    """A page as the child gets it."""

    body: bytes
    kind: str
    charset: str


class Readable(msgspec.Struct, frozen=True):
    """What it says. `text` is empty when there is nothing to read, `is_text` False when the bytes are none."""

    title: str = ""
    text: str = ""
    is_text: bool = True


def readable(request: bytes) -> Iterator[bytes]:
    """One frame: the `Readable` of a `WebPage`."""
    yield msgspec.msgpack.encode(read_page(msgspec.msgpack.decode(request, type=WebPage)))


def read_page(page: WebPage) -> Readable:
    """The text of a page."""
    try:
        text = page_text(page.body, page.charset)
    except NotText:
        return Readable(is_text=False)
    if page.kind in HTML_KINDS or (not page.kind and _looks_like_html(text)):
        return html_text(text)
    return Readable(text=text.strip())


def _looks_like_html(text: str) -> bool:
    head = text[:1_024].lstrip().lower()
    return head.startswith(("<!doctype html", "<html", "<head", "<body"))


def html_text(text: str) -> Readable:
    """HTML as Markdown."""
    from lxml import etree

    writer = _Writer()
    parser = etree.HTMLParser(
        target=writer, encoding="utf-8", no_network=True, remove_comments=True, remove_pis=True
    )
    data = text.encode("utf-8", "replace")
    if not data.strip():
        return Readable()
    for at in range(0, len(data), FEED_BYTES):
        parser.feed(data[at : at + FEED_BYTES])
    return parser.close()  # type: ignore[no-any-return]


class _Block(msgspec.Struct, frozen=True):
    """A piece of the text. `tight`: it stands close to one like it, as items of a list do and rows of a table."""

    text: str
    in_content: bool
    around: bool
    tight: bool


class _Writer:
    """Writes the text while the parser reads: what lxml calls a parser target.

    Every block is kept with where it stood, so that at the end the content alone can be taken, if there is some.
    """

    def __init__(self) -> None:
        self._open: list[tuple[str, str]] = []  # tag, and the sort that it counts as
        self._depth: Counter[str] = Counter()
        self._blocks: list[_Block] = []
        self._pieces: list[str] = []
        self._prefix = ""
        self._tight = False
        self._title = ""
        self._counters: list[int] = []  # of the lists that are open; -1: not numbered

    # -- what the parser calls ----------------------------------------------------------------------
    def start(self, tag: str, attributes: Mapping[str, str]) -> None:
        """An element begins."""
        if tag in _BLOCKS:
            self._end_block()
        sort = _sort(tag, attributes)
        self._open.append((tag, sort))
        self._depth[sort] += 1
        if not self._depth[_HIDDEN]:
            self._begin(tag, attributes)

    def end(self, tag: str) -> None:
        """An element ends, and whatever is still open in it."""
        while self._open:
            inner, sort = self._open.pop()
            if not self._depth[_HIDDEN]:
                self._finish(inner)
            self._depth[sort] -= 1
            if inner == tag:
                return

    def data(self, text: str) -> None:
        """Characters. Line ends of the source are spaces, but in code."""
        if not self._depth[_HIDDEN]:
            self._pieces.append(text if self._depth[_CODE] else _SPACES.sub(" ", text))

    def close(self) -> Readable:
        """The end of the page."""
        self._end_block()
        return Readable(title=self._title, text=self._chosen())

    # -- elements -----------------------------------------------------------------------------------
    def _begin(self, tag: str, attributes: Mapping[str, str]) -> None:
        if tag in _HEADINGS:
            self._prefix = _HEADINGS[tag]
        elif tag in _LISTS:
            self._counters.append(0 if tag == "ol" else -1)
        elif tag == "li":
            self._prefix, self._tight = self._bullet(), True
        elif tag in _CELLS and "".join(self._pieces).strip():
            self._pieces.append(" | ")
            self._tight = True
        elif tag == "br":
            self._pieces.append("\n")
        elif tag == "img" and (alt := attributes.get("alt", "").strip()):
            self._pieces.append(f"[{alt}]")
        elif tag == "code" and not self._depth[_CODE]:
            self._pieces.append("`")

    def _finish(self, tag: str) -> None:
        if tag == "title" and not self._title:
            self._title = " ".join("".join(self._pieces).split())
            self._pieces.clear()
        elif tag == "pre":
            self._end_code()
        elif tag == "code" and not self._depth[_CODE]:
            self._pieces.append("`")
        elif tag in _BLOCKS:
            self._end_block()
            if tag in _PREFIXED:
                self._prefix, self._tight = "", False
            elif tag in _LISTS and self._counters:
                self._counters.pop()

    def _bullet(self) -> str:
        indent = "  " * max(len(self._counters) - 1, 0)
        if not self._counters or self._counters[-1] < 0:
            return f"{indent}- "
        self._counters[-1] += 1
        return f"{indent}{self._counters[-1]}. "

    def _end_block(self) -> None:
        if self._depth[_CODE]:
            return  # whatever stands in code stays one block
        lines = (" ".join(line.split()) for line in "".join(self._pieces).split("\n"))
        text = "\n".join(line for line in lines if line)
        self._pieces.clear()
        if text:
            self._keep(self._prefix + text, tight=self._tight)
            self._prefix, self._tight = "", False

    def _end_code(self) -> None:
        code = "".join(self._pieces).strip("\n").rstrip()
        self._pieces.clear()
        if code:
            self._keep(f"```\n{code}\n```", tight=False)

    def _keep(self, text: str, *, tight: bool) -> None:
        in_content, around = bool(self._depth[_CONTENT]), bool(self._depth[_AROUND])
        self._blocks.append(_Block(text, in_content, around, tight))

    # -- what is shown ------------------------------------------------------------------------------
    def _chosen(self) -> str:
        inner = [block for block in self._blocks if not block.around]
        content = [block for block in inner if block.in_content]
        for blocks in (content, inner):
            if sum(len(block.text) for block in blocks) >= CONTENT_CHARACTERS_MIN:
                return _joined(blocks)
        return _joined(self._blocks)


def _sort(tag: str, attributes: Mapping[str, str]) -> str:
    """What an element counts as; empty for most."""
    style = "".join(attributes.get("style", "").lower().split())
    unseen = "hidden" in attributes or attributes.get("aria-hidden", "").lower() == "true"
    if unseen or "display:none" in style or "visibility:hidden" in style:
        return _HIDDEN
    return _SORTS.get(tag, "")


def _joined(blocks: Sequence[_Block]) -> str:
    """Blocks with an empty line between them, where they do not stand close."""
    pieces: list[str] = []
    for before, block in zip((None, *blocks), blocks, strict=False):
        if before is not None:
            pieces.append("\n" if before.tight and block.tight else "\n\n")
        pieces.append(block.text)
    return "".join(pieces)
