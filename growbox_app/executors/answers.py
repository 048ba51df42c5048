"""What executors have in common about arguments and results: failures with a next step, numbers and booleans that came as text.

Two readers, two texts: what the model gets is English and says what to do next; the line of the tool card is the user's, in his
language. Pure but for the translations; any thread.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import StrEnum

from growbox_app.executors.base import ExecutorResult
from growbox_app.text import tr

_NUMBER = re.compile(r"-?\d{1,9}")
_YES = frozenset({"true", "yes", "1", "on"})


class Reason(StrEnum):
    """Why a call was not done, as far as the user need tell it apart: the sentence `tool.failed.<reason>`."""

    ARGUMENTS = "arguments"
    """Missing, empty, or not what the tool can take; the model's mistake."""
    BAD_PATH = "bad_path"
    BAD_PATTERN = "bad_pattern"
    BROKEN = "broken"
    CANNOT_START = "cannot_start"
    CHANGED = "changed"
    ENCODING = "encoding"
    FLOOD = "flood"
    GIT = "git"
    GIT_FILES = "git_files"
    NO_FOLDER = "no_folder"
    NO_GIT = "no_git"
    NO_MEMORY = "no_memory"
    NO_OUTLINE = "no_outline"
    NO_REPOSITORY = "no_repository"
    NO_SUCH_LINE = "no_such_line"
    NO_TASK = "no_task"
    NO_TOOL = "no_tool"
    NOT_A_FILE = "not_a_file"
    NOT_A_FOLDER = "not_a_folder"
    NOT_COMMITTED = "not_committed"
    NOT_LOADED = "not_loaded"
    NOT_TEXT = "not_text"
    NOT_THERE = "not_there"
    NOTHING_TO_CHANGE = "nothing_to_change"
    OTHERS_REPOSITORY = "others_repository"
    OUTSIDE = "outside"
    PAUSED = "paused"
    PLACES = "places"
    STOPPED = "stopped"
    TEXT_NOT_FOUND = "text_not_found"
    TIME = "time"
    TOO_LARGE = "too_large"
    TOO_LONG = "too_long"
    TOO_MANY_TASKS = "too_many_tasks"
    UNREADABLE = "unreadable"
    UNWRITABLE = "unwritable"
    WEB_ADDRESS = "web_address"
    WEB_BROKEN = "web_broken"
    WEB_CERTIFICATE = "web_certificate"
    WEB_ELSEWHERE = "web_elsewhere"
    WEB_EMPTY = "web_empty"
    WEB_LARGE = "web_large"
    WEB_LOCAL = "web_local"
    WEB_NO_HOST = "web_no_host"
    WEB_OFF = "web_off"
    WEB_REDIRECTS = "web_redirects"
    WEB_SLOW = "web_slow"
    WEB_STATUS = "web_status"
    WEB_TYPE = "web_type"
    WEB_UNREACHABLE = "web_unreachable"

    def line(self, **fields: object) -> str:
        """The user's line."""
        return tr(f"tool.failed.{self}", **fields)


class CallFailed(Exception):
    """A call that cannot be done. `text` tells the model what to do next, `reason` and the fields of its sentence tell the user."""

    def __init__(self, text: str, reason: Reason, **fields: object) -> None:
        super().__init__(text)
        self.text = text
        self._reason = reason
        self._fields = fields

    def result(self) -> ExecutorResult:
        """The failure as what comes of the call."""
        return ExecutorResult(ok=False, text=self.text, summary=self._reason.line(**self._fields))


def summary(key: str, **fields: object) -> str:
    """The user's line of a call that was done: `tool.summary.<key>`; with a `count`, its form for one or for many."""
    if "count" in fields:
        key = f"{key}_one" if fields["count"] == 1 else f"{key}_many"
    return tr(f"tool.summary.{key}", **fields)


def number(arguments: Mapping[str, str], name: str, default: int) -> int:
    """An integer argument; the default when it is missing or empty.

    Raises:
        CallFailed: it is something else.
    """
    value = arguments.get(name, "").strip()
    if not value:
        return default
    if _NUMBER.fullmatch(value) is None:
        raise CallFailed(f"{name} must be a whole number, not {value[:40]!r}", Reason.ARGUMENTS)
    return int(value)


def truth(arguments: Mapping[str, str], name: str) -> bool:
    """A boolean argument; False when it is missing."""
    return arguments.get(name, "").strip().lower() in _YES


def counted(count: int, thing: str, things: str = "") -> str:
    """`1 line`, `2 lines`, for the model; `things` where an s is not enough."""
    return f"{count} {thing}" if count == 1 else f"{count} {things or thing + 's'}"


def cut_line(line: str, characters: int) -> str:
    """A line, shortened with a note on how much is missing."""
    if len(line) <= characters:
        return line
    return f"{line[:characters]}…[{len(line) - characters} more characters]"
