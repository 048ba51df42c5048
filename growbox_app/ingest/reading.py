"""A file's content as text: plain text in its encoding, PDF, DOCX. Pure but for reading the file; meant for the reader process.

Everything is bounded: bytes read, bytes a compressed part may unfold to, characters of the result.
"""

from __future__ import annotations

import hashlib
import io
import os
import struct
import zipfile
import zlib
from pathlib import Path, PurePath

from growbox_app.ingest.decoding import NotText, decode
from growbox_app.ingest.report import SkipReason
from memory.text import storable

TEXT_BYTES_MAX = 20_000_000
"""Of a plain file: 200,000 lines are about 8 MB; a larger one is data, not text."""
BOOK_BYTES_MAX = 100_000_000
"""Of a PDF or DOCX, pictures included."""
UNFOLDED_BYTES_MAX = 200_000_000
"""What the parts of a DOCX may unfold to in all."""
CHARACTERS_MAX = 20_000_000
VERSION = "1"
"""Of how files are read and cut: with another one, every file is read again."""

_PARSER_TROUBLE = (
    ArithmeticError,
    AssertionError,
    AttributeError,
    LookupError,
    MemoryError,
    NotImplementedError,
    OSError,
    RecursionError,
    RuntimeError,
    SyntaxError,
    TypeError,
    ValueError,
    struct.error,
    zipfile.BadZipFile,
    zlib.error,
)
"""What a parser of a third party raises on a file made to hurt, beside its own errors (lxml's are `SyntaxError`s)."""


class Unreadable(Exception):
    """The file has no text that could be kept."""

    def __init__(self, reason: SkipReason) -> None:
        super().__init__(reason.value)
        self.reason = reason


def read_bytes(path: Path) -> bytes:
    """A file's bytes, never more than its kind may have.

    Raises:
        Unreadable: too large, or the system refuses.
    """
    most = BOOK_BYTES_MAX if path.suffix.lower() in (".pdf", ".docx") else TEXT_BYTES_MAX
    try:
        with path.open("rb") as stream:
            if os.fstat(stream.fileno()).st_size > most:
                raise Unreadable(SkipReason.TOO_LARGE)
            data = stream.read(most + 1)  # a file may say less than it gives
    except FileNotFoundError as error:
        raise Unreadable(SkipReason.MISSING) from error
    except OSError as error:
        raise Unreadable(SkipReason.UNREADABLE) from error
    if len(data) > most:
        raise Unreadable(SkipReason.TOO_LARGE)
    return data


def content_hash(data: bytes) -> str:
    """By which the same content is known again."""
    return f"{VERSION}:{hashlib.blake2b(data, digest_size=16).hexdigest()}"


def text_of(data: bytes, name: str) -> str:
    """The text of a file's bytes.

    Args:
        data: all of them.
        name: whose suffix says how to read them; a PDF is known by its first bytes as well.

    Raises:
        Unreadable: there is no text, or none that can be got.
    """
    suffix = PurePath(name).suffix.lower()
    if data.startswith(b"%PDF-"):
        text = _pdf(data)
    elif suffix == ".docx":
        text = _docx(data)
    else:
        try:
            text = decode(data)
        except NotText as error:
            reason = SkipReason.BINARY if error.binary else SkipReason.ENCODING
            raise Unreadable(reason) from error
    if not text.strip():
        raise Unreadable(SkipReason.NO_TEXT)
    return storable(text)


def _pdf(data: bytes) -> str:
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError, PyPdfError

    pages: list[str] = []
    left = CHARACTERS_MAX
    try:
        reader = PdfReader(io.BytesIO(data))
        if reader.is_encrypted and not reader.decrypt(""):
            raise Unreadable(SkipReason.ENCRYPTED)
        for page in reader.pages:
            text = page.extract_text().replace("\0", "")
            pages.append(text[:left])
            left -= len(text)
            if left <= 0:
                break
    except (
        DependencyError,
        FileNotDecryptedError,
    ) as error:  # a cipher that pypdf leaves to others
        raise Unreadable(SkipReason.ENCRYPTED) from error
    except (PyPdfError, *_PARSER_TROUBLE) as error:
        raise Unreadable(SkipReason.DAMAGED) from error
    return "\n\n".join(page for page in pages if page.strip())


def _docx(data: bytes) -> str:
    """Paragraphs as lines, headings and tables as in Markdown."""
    import docx
    from docx.opc.exceptions import OpcError

    if data.startswith(
        b"\xd0\xcf\x11\xe0"
    ):  # an OLE file: what Office makes of a DOCX with a password
        raise Unreadable(SkipReason.ENCRYPTED)
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as parts:
            if sum(part.file_size for part in parts.infolist()) > UNFOLDED_BYTES_MAX:
                raise Unreadable(SkipReason.TOO_LARGE)
        document = docx.Document(io.BytesIO(data))
        blocks = [_block(item) for item in document.iter_inner_content()]
    except (OpcError, *_PARSER_TROUBLE) as error:
        raise Unreadable(SkipReason.DAMAGED) from error
    return "\n\n".join(block for block in blocks if block)[:CHARACTERS_MAX]


def _block(item: object) -> str:
    from docx.table import Table
    from docx.text.paragraph import Paragraph

    if isinstance(item, Table):
        rows = (" | ".join(" ".join(cell.text.split()) for cell in row.cells) for row in item.rows)
        return "\n".join(rows)
    assert isinstance(item, Paragraph)
    text = item.text.strip()
    style = (item.style.name if item.style is not None else None) or ""
    word, _, level = style.rpartition(" ")
    if text and word == "Heading" and level.isdigit():
        return f"{'#' * min(6, int(level))} {text}"
    return f"# {text}" if text and style == "Title" else text
