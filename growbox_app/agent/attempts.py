"""What was tried in one piece of work: no call, no text and no change of a line is made twice. Pure; owned by the work.

The grammar of the next call is narrowed by it, so that a small model cannot go in a circle by writing the same again.

Source: design 5.1.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.readings import own_beginning

CHANGES = frozenset({"file_edit", "file_write", "file_append"})
"""Tools that change a file."""
TRIES_MAX = 2
"""Edits of one line that were taken back before it is left alone."""
_MAIN = {
    "code_search": "pattern",
    "code_outline": "path",
    "file_list": "path",
    "shell": "command",
    "file_write": "content",
    "file_append": "text",
    "ask_user": "question",
}
"""The parameter of a tool whose text makes it another call."""
Line = tuple[str, str]
"""A file, and a line of it without its indentation."""


@dataclass(slots=True)
class Attempts:
    """The calls so far, and what came of edits; a line is named by its file and its text without indentation."""

    _texts: dict[str, dict[str, None]] = field(default_factory=dict)
    _edits: dict[Line, dict[str, None]] = field(default_factory=dict)
    _dead_ends: dict[Line, dict[str, None]] = field(default_factory=dict)
    _spent: set[Line] = field(default_factory=set)
    _made: set[Line] = field(default_factory=set)

    def note(self, call: ToolCall) -> None:
        """A call was made: it is none that the grammar knows any more."""
        arguments = call.arguments
        main = "path" if call.name == "file_read" else _MAIN.get(call.name)
        if main is not None:
            self._texts.setdefault(call.name, {})[arguments.get(main, "")] = None
        elif call.name == "file_edit":
            self._bar(arguments.get("path", ""), arguments.get("old", ""), arguments.get("new", ""))

    def spend(self, call: ToolCall) -> None:
        """The line of this edit is not offered until its file has changed."""
        first = call.arguments.get("old", "").strip().split("\n", 1)[0]
        self._spent.add((call.arguments.get("path", ""), first.strip()))

    def took_back(self, call: ToolCall, path: str) -> None:
        """An edit brought nothing: its line is changed in another way, and after some tries not at all."""
        line, new = call.arguments.get("old", "").strip(), call.arguments.get("new", "")
        dead = self._dead_ends.setdefault((path, line), {})
        begun = own_beginning(new.strip(), line, words=1)
        # The first time two words are barred, the second time the whole direction.
        if not any(other.startswith(begun) for other in dead):
            begun = own_beginning(new.strip(), line, words=2)
        dead[begun] = None
        if len(self._edits.get((path, line), ())) >= TRIES_MAX:
            self.spend(call)

    def changed(self, call: ToolCall, path: str) -> None:
        """A file is another one: its lines may be tried again, looks and commands too; the way back is not."""
        self._spent = {spent for spent in self._spent if spent[0] != path}
        for name in _MAIN.keys() - CHANGES:
            self._texts.pop(name, None)
        if call.name == "file_edit":
            old, new = call.arguments.get("old", ""), call.arguments.get("new", "")
            self._bar(path, new, old)
            self._made.add((path, new.strip()))

    def _bar(self, path: str, old: str, new: str) -> None:
        self._edits.setdefault((path, old.strip()), {})[new] = None

    # -- what is left -----------------------------------------------------------------------------
    @property
    def barred(self) -> Mapping[str, Mapping[str, Sequence[str]]]:
        """For a tool and its main parameter the texts that are not written again."""
        return {name: {_MAIN[name]: tuple(t)} for name, t in self._texts.items() if name in _MAIN}

    def texts_of(self, tool: str) -> Collection[str]:
        """Texts of a tool's main parameter so far; empty while it was not called."""
        return self._texts.get(tool, {}).keys()

    def is_spent(self, path: str, line: str) -> bool:
        """Whether a line is not to be offered now."""
        return (path, line.strip()) in self._spent

    def is_made(self, path: str, line: str) -> bool:
        """Whether a line is what an edit of this work made it."""
        return (path, line.strip()) in self._made

    def edits_of(self, path: str) -> Mapping[str, Sequence[str]]:
        """For lines of a file what they have been or were to become."""
        return {line: tuple(texts) for (file, line), texts in self._edits.items() if file == path}

    def dead_ends_of(self, path: str) -> Mapping[str, Sequence[str]]:
        """For lines of a file how changes began that were taken back."""
        return {line: tuple(b) for (file, line), b in self._dead_ends.items() if file == path}
