"""Server-sent events out of a stream of bytes: cut anywhere, also inside a character; bounded.

Pure. Tolerant of what servers do: `data:` with or without a blank, CRLF, comments as keep-alive, a bare JSON object as a line,
`error:` as llama.cpp says it, no newline at the end.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

LINE_BYTES_MAX = 1 << 20
"""No honest piece of an answer is longer."""
_BREAK = re.compile(rb"\r\n|\n|\r(?!$)")
DONE = "[DONE]"


class StreamError(Exception):
    """The bytes are no stream of events. `reason` is a key of `endpoint.reason`."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class EventReader:
    """Reads one answer. `done` is True after `[DONE]`."""

    def __init__(self) -> None:
        self._bytes = b""
        self._data = ""
        self.done = False

    def feed(self, chunk: bytes) -> Iterator[dict[str, Any]]:
        """The JSON objects that are whole now.

        Raises:
            StreamError: a line that is too long, or no JSON.
        """
        *lines, self._bytes = _BREAK.split(self._bytes + chunk)
        if len(self._bytes) > LINE_BYTES_MAX:
            raise StreamError("long_line")
        for line in lines:
            yield from self._line(line)

    def finish(self) -> Iterator[dict[str, Any]]:
        """What a last line without an end holds."""
        line, self._bytes = self._bytes.rstrip(b"\r"), b""
        yield from self._line(line)
        yield from self._line(b"")

    def _line(self, line: bytes) -> Iterator[dict[str, Any]]:
        if self.done:
            return
        if len(line) > LINE_BYTES_MAX:
            raise StreamError("long_line")
        text = line.decode("utf-8", "replace").lstrip("\ufeff")
        if not text:
            if self._data:
                raise StreamError("not_json")
            return
        name, _, value = text.partition(":")
        if text.startswith("{"):
            value = text
        elif name == "error":
            value = f'{{"error": {value.strip() or "{}"}}}'
        elif name != "data":
            return
        yield from self._take(value.strip())

    def _take(self, value: str) -> Iterator[dict[str, Any]]:
        """One line of data; JSON that goes on in the next line waits for it."""
        if value == DONE:
            self.done = True
            return
        self._data += value
        if not self._data:
            return
        if len(self._data) > LINE_BYTES_MAX:
            raise StreamError("long_line")
        try:
            parsed = json.loads(self._data)
        except ValueError:
            self._data += "\n"
            return
        self._data = ""
        if isinstance(parsed, dict):
            yield parsed
