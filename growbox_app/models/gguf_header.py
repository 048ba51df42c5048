"""Reads a GGUF header cheaply: is it GGUF, is it whole, what does it hold.

Owns nothing; reads at most the key-value part and the tensor table, never a weight. Any thread.
Source: the GGUF file format, version 2 and 3.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

MAGIC = b"GGUF"
_VERSIONS = (2, 3)
_STRING, _ARRAY = 8, 9
_SCALARS = {
    0: "B",
    1: "b",
    2: "H",
    3: "h",
    4: "I",
    5: "i",
    6: "f",
    7: "?",
    10: "Q",
    11: "q",
    12: "d",
}
_DEFAULT_ALIGNMENT = 32
_STRING_BYTES_MAX = 64 << 20
_COUNT_MAX = 1 << 24


class NotGguf(ValueError):
    """Another kind of file; `head` are its first bytes."""


class TruncatedGguf(ValueError):
    """GGUF, but cut short."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GgufHeader:
    """What the header says. `values` holds scalars and strings; arrays are skipped, their lengths are in `array_lengths`."""

    version: int
    tensors: int
    values: Mapping[str, str | int | float | bool]
    array_lengths: Mapping[str, int]
    bytes_min: int

    @property
    def architecture(self) -> str:
        """`qwen2`, `bert`, …; empty when not said."""
        return str(self.values.get("general.architecture", ""))

    @property
    def chat_template(self) -> str:
        """The Jinja source of the chat template; empty when there is none."""
        return str(self.values.get("tokenizer.chat_template", ""))


def read_header(path: Path) -> GgufHeader:
    """Reads the header and checks that the file reaches at least to its last tensor.

    Raises:
        NotGguf: no GGUF magic, or a version unknown here.
        TruncatedGguf: the file ends too early.
        OSError: cannot be read.
    """
    size = path.stat().st_size
    with path.open("rb") as stream:
        if stream.read(4) != MAGIC:
            stream.seek(0)
            raise NotGguf(f"starts with {stream.read(16)!r}")
        try:
            header = _read(stream)
        except (EOFError, struct.error) as error:
            raise TruncatedGguf(f"the header ends early, the file has {size} bytes") from error
    if size <= header.bytes_min and header.tensors:
        raise TruncatedGguf(f"{size} bytes, the last tensor begins at {header.bytes_min}")
    return header


def _read(stream: BinaryIO) -> GgufHeader:
    version, tensors, keys = _unpack(stream, "<IQQ")
    if version not in _VERSIONS:
        raise NotGguf(f"GGUF version {version}")
    if max(tensors, keys) > _COUNT_MAX:
        raise NotGguf(f"{tensors} tensors, {keys} keys")
    values: dict[str, str | int | float | bool] = {}
    lengths: dict[str, int] = {}
    for _ in range(keys):
        key = _read_string(stream).decode("utf-8", "replace")
        (kind,) = _unpack(stream, "<I")
        if kind == _ARRAY:
            lengths[key] = _skip_array(stream)
        elif kind == _STRING:
            values[key] = _read_string(stream).decode("utf-8", "replace")
        else:
            (values[key],) = _unpack(stream, "<" + _scalar(kind))
    last_offset = _last_tensor_offset(stream, tensors)
    alignment = int(values.get("general.alignment", _DEFAULT_ALIGNMENT)) or _DEFAULT_ALIGNMENT
    data_start = -(-stream.tell() // alignment) * alignment
    return GgufHeader(
        version=version,
        tensors=tensors,
        values=values,
        array_lengths=lengths,
        bytes_min=data_start + last_offset,
    )


def _last_tensor_offset(stream: BinaryIO, tensors: int) -> int:
    last = 0
    for _ in range(tensors):
        _read_string(stream)
        (dimensions,) = _unpack(stream, "<I")
        *_shape, _kind, offset = _unpack(stream, f"<{min(dimensions, 8)}QIQ")
        last = max(last, offset)
    return last


def _skip_array(stream: BinaryIO) -> int:
    kind, count = _unpack(stream, "<IQ")
    if kind == _ARRAY:
        raise NotGguf("nested arrays")
    if kind != _STRING:
        stream.seek(count * struct.calcsize("<" + _scalar(kind)), 1)
        return int(count)
    for _ in range(count):
        _read_string(stream)
    return int(count)


def _scalar(kind: int) -> str:
    try:
        return _SCALARS[kind]
    except KeyError:
        raise NotGguf(f"unknown value type {kind}") from None


def _read_string(stream: BinaryIO) -> bytes:
    (length,) = _unpack(stream, "<Q")
    if length > _STRING_BYTES_MAX:
        raise NotGguf(f"a string of {length} bytes")
    content = stream.read(length)
    if len(content) < length:
        raise EOFError
    return content


def _unpack(stream: BinaryIO, layout: str) -> tuple[int, ...]:
    size = struct.calcsize(layout)
    content = stream.read(size)
    if len(content) < size:
        raise EOFError
    return struct.unpack(layout, content)
