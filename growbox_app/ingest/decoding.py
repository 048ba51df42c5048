"""Bytes to text: a byte order mark, UTF-8, GB18030, or a Western code page – or none, which is said. Pure.

Line ends and everything else stay as they are; only the byte order mark goes.
"""

from __future__ import annotations

import codecs

_MARKS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
)
SNIFFED_BYTES = 8_192
_COMMON_PAIRS_MIN = 0.6
_CONTROLS_MAX = 0.01
_GB2312_FIRST = (
    0xA1  # Source: GB 2312: both bytes of its characters are at least this, also inside GB18030
)
_CONTROLS = frozenset(range(32)) - {0x09, 0x0A, 0x0C, 0x0D, 0x1B} | {0x7F}


class NotText(Exception):
    """The bytes are no text; `binary` tells a program's file from text in an unknown encoding."""

    def __init__(self, *, binary: bool) -> None:
        super().__init__("binary" if binary else "encoding")
        self.binary = binary


def decode(data: bytes) -> str:
    """The text of a file.

    Raises:
        NotText: it has none, or in an encoding that cannot be told.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _strictly(data[len(mark) :], encoding)
    if b"\0" in data[:SNIFFED_BYTES]:
        raise NotText(binary=True)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError:
        text = _old(data)
    if "\0" in text:
        raise NotText(binary=True)
    return text


def _strictly(data: bytes, encoding: str) -> str:
    try:
        return data.decode(encoding)
    except UnicodeDecodeError as error:
        raise NotText(binary=False) from error


def _old(data: bytes) -> str:
    """Text from before UTF-8: Chinese, or Western."""
    controls = sum(byte in _CONTROLS for byte in data[:SNIFFED_BYTES])
    if controls > _CONTROLS_MAX * min(len(data), SNIFFED_BYTES):
        raise NotText(binary=True)
    if _looks_chinese(data[:SNIFFED_BYTES]):
        return _strictly(data, "gb18030")
    try:
        return data.decode("cp1252")
    except UnicodeDecodeError:
        return _strictly(data, "latin-1")


def _looks_chinese(head: bytes) -> bool:
    """Whether the bytes above ASCII come in pairs of GB 2312: an accented letter of a Western text mostly stands before ASCII."""
    pairs = common = at = 0
    while at < len(head) - 1:
        if head[at] < 0x80:
            at += 1
            continue
        pairs += 1
        common += head[at] >= _GB2312_FIRST and head[at + 1] >= _GB2312_FIRST
        at += 2
    return pairs > 0 and common >= _COMMON_PAIRS_MIN * pairs
