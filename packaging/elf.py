"""Which shared libraries an ELF file asks the loader for: the little of the format that it takes, for 64-bit little-endian files.

Source: System V ABI, "Dynamic Section".
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_MAGIC = b"\x7fELF\x02\x01"  # 64 bit, little-endian
_HEADER = struct.Struct("<32xQ14xHH6x")  # program header offset, size of one, count
_SEGMENT = struct.Struct("<I4xQQ8xQ16x")  # type, offset, address, size in the file
_DYNAMIC = struct.Struct("<qQ")  # tag, value
_LOAD, _DYNAMIC_SEGMENT = 1, 2
_NEEDED, _STRING_TABLE = 1, 5


def needed(path: Path) -> list[str]:
    """The sonames in a program's or library's dynamic section; empty for what is no such file."""
    with path.open("rb") as stream:
        if stream.read(len(_MAGIC)) != _MAGIC:
            return []
        segments = list(_segments(stream))
        entries = [
            entry
            for kind, offset, _, size in segments
            if kind == _DYNAMIC_SEGMENT
            for entry in _DYNAMIC.iter_unpack(_read(stream, offset, size))
        ]
        tables = [value for tag, value in entries if tag == _STRING_TABLE]
        if not tables:
            return []
        start = _file_offset(segments, tables[0])
        return [_string(stream, start + value) for tag, value in entries if tag == _NEEDED]


def _segments(stream: BinaryIO) -> Iterator[tuple[int, int, int, int]]:
    """Type, offset in the file, address in memory and size in the file of each segment."""
    table, size, count = _HEADER.unpack(_read(stream, 0, _HEADER.size))
    for index in range(count):
        yield _SEGMENT.unpack(_read(stream, table + index * size, _SEGMENT.size))


def _file_offset(segments: list[tuple[int, int, int, int]], address: int) -> int:
    for kind, offset, start, size in segments:
        if kind == _LOAD and start <= address < start + size:
            return address - start + offset
    raise ValueError(f"no segment holds the address {address:#x}")


def _read(stream: BinaryIO, offset: int, size: int) -> bytes:
    stream.seek(offset)
    return stream.read(size)


def _string(stream: BinaryIO, offset: int) -> str:
    return _read(stream, offset, 256).split(b"\0", 1)[0].decode()
