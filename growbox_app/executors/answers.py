"""What executors have in common about arguments and results: failures with a next step, numbers and booleans that came as text. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping

from growbox_app.executors.base import ExecutorResult

_NUMBER = re.compile(r"-?\d{1,9}")
_YES = frozenset({"true", "yes", "1", "on"})


class CallFailed(Exception):
    """A call that cannot be done. `text` tells the model what to do next, `summary` is the reader's line."""

    def __init__(self, text: str, summary: str = "") -> None:
        super().__init__(text)
        self.text = text
        self.summary = summary or text

    def result(self) -> ExecutorResult:
        """The failure as what the model gets."""
        return ExecutorResult(ok=False, text=self.text, summary=self.summary)


def number(arguments: Mapping[str, str], name: str, default: int) -> int:
    """An integer argument; the default when it is missing or empty.

    Raises:
        CallFailed: it is something else.
    """
    value = arguments.get(name, "").strip()
    if not value:
        return default
    if _NUMBER.fullmatch(value) is None:
        raise CallFailed(f"{name} must be a whole number, not {value[:40]!r}")
    return int(value)


def truth(arguments: Mapping[str, str], name: str) -> bool:
    """A boolean argument; False when it is missing."""
    return arguments.get(name, "").strip().lower() in _YES


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 line`, `2 lines`; `things` where an s is not enough."""
    return f"{count} {thing}" if count == 1 else f"{count} {things or thing + 's'}"


def cut_line(line: str, characters: int) -> str:
    """A line, shortened with a note on how much is missing."""
    if len(line) <= characters:
        return line
    return f"{line[:characters]}…[{len(line) - characters} more characters]"
