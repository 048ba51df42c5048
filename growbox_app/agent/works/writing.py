"""Work whose end is a changed file: a rename, changed settings, a script. Code that has tests is in `tested.py`. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from typing_extensions import override

from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.readings import meant, script_begins, values_in, wants_several
from growbox_app.agent.survey import PYTHON, is_test
from growbox_app.agent.works.work import (
    LOOK_TOKENS,
    LOOKS_MAX,
    OPENED_MAX,
    Move,
    Stage,
    Tools,
    Work,
)
from growbox_app.executors.call_grammar import Narrowing, Passages

CHECKS_MAX = 4
"""Failed checks before the work is given up, and said to be."""
PASSAGE_LINES_MAX = 400
EDIT_TOKENS, WRITE_TOKENS = 400, 800
_RUNNERS = {".py": PYTHON, ".sh": "sh", ".js": "node"}


def likeliest(starts: Sequence[int], *meant_first: Collection[int]) -> Sequence[int]:
    """Of the lines that can be changed those of the first of these groups that has any; all where none has."""
    chosen = ([at for at in starts if at in group] for group in meant_first)
    return next((found for found in chosen if found), starts)


class Writing(Work):
    """A look where nothing is known that could be changed, an edit until its check holds or there were too many, then the answer.

    A kind says by `_editable` and `_new_paths` which files may be changed or written, by `_edit_tools` with what, by `_passages` which lines.
    """

    def _check(self) -> None:
        """Runs the tests, if there are any."""
        command = self._test_command or self._command_of_new_test()
        if command:
            self._call("shell", command=command)

    @property
    def _test_command(self) -> str:
        return self.request.command or self.survey.test_command

    def _command_of_new_test(self) -> str:
        """How a test is run that the work itself brought into a project without tests."""
        test = next((p for p in self._changed if is_test(p) and p.endswith(".py")), "")
        if not test:
            return ""
        module = test.removesuffix(".py").replace("/", ".")
        return f"{PYTHON} -m unittest {module}"

    # -- where the work stands --------------------------------------------------------------------
    @override
    def _settle(self) -> None:
        """Where no change is left to be tried, it ends."""
        super()._settle()
        edits = not self._queue and self.stage in (Stage.EDIT, Stage.TEST)
        if edits and not self._edit_tools():
            self.stage = Stage.ANSWER

    @override
    def _stage(self) -> Stage:
        if self._is_given_up:
            return Stage.ANSWER
        if not self._changed:
            return Stage.LOOK if self._needs_look() else Stage.EDIT
        return Stage.EDIT if self._failed_checks else self._stage_of_changed()

    def _stage_of_changed(self) -> Stage:
        """Where the work stands when a file is changed, and nothing speaks against it."""
        return Stage.ANSWER

    @property
    def _is_given_up(self) -> bool:
        return self._failed_checks >= CHECKS_MAX

    def _needs_look(self) -> bool:
        """Nothing is known that could be changed, and there may be something."""
        if self._new_paths() or self._editable():
            return False
        return bool(self._unread()) and self._looks <= LOOKS_MAX

    # -- what the model may do ----------------------------------------------------------------------
    @override
    def _move(self) -> Move:
        return self._edit() if self.stage in (Stage.EDIT, Stage.TEST) else super()._move()

    def _edit(self) -> Move:
        tools = self._edit_tools()
        narrowed = self._narrowed(tools, must_call=True)
        few = self.stage is Stage.TEST  # each further line of a test is another chance to be wrong
        narrowed = replace(narrowed, begins=self._begins(), few_lines=few)
        writes = tools.keys() & {"file_write", "file_append"} and self.stage is not Stage.TEST
        return Move(narrowed=narrowed, tokens=WRITE_TOKENS if writes else EDIT_TOKENS)

    @override
    def _narrowed(self, tools: Tools, *, must_call: bool) -> Narrowing:
        narrowed = super()._narrowed(tools, must_call=must_call)
        passages = self._edit_passages(narrowed.paths.get("file_edit", ()))
        return replace(narrowed, passages=passages)

    def _edit_tools(self) -> Tools:
        """Tools that can change something now."""
        editable, new = self._editable(), self._new_paths()
        passages = self._edit_passages(editable)
        tools: dict[str, Sequence[str] | None] = {}
        if passages:
            tools["file_edit"] = tuple(passages)
        if new or not editable:
            tools["file_write"] = new or None
        return tools

    def _reading(self) -> Tools:
        """Another file may be read before a change."""
        unread = self._unread() if self._looks < LOOKS_MAX + OPENED_MAX else ()
        return {"file_read": unread} if unread else {}

    def _begins(self) -> Mapping[str, Mapping[str, str]]:
        """How new text begins, as far as that follows from the wish."""
        return {}

    def _editable(self) -> tuple[str, ...]:
        """Files that may be changed."""
        return tuple(self._texts)

    def _new_paths(self) -> tuple[str, ...]:
        """Files that may be written as a whole."""
        return tuple(path for path in self.request.new_files if not is_test(path))

    def _edit_passages(self, editable: Sequence[str]) -> Mapping[str, Passages]:
        """The files of these in which a line is left to be changed."""
        found = {path: self._passages(path) for path in editable}
        return {path: passages for path, passages in found.items() if passages.starts}

    def _passages(self, path: str) -> Passages:
        text = self._texts[path]
        lines = text.split("\n")[:PASSAGE_LINES_MAX]
        places = Counter(line.strip() for line in text.split("\n"))
        starts = [
            at
            for at, line in enumerate(lines)
            if line.strip() and not self._attempts.is_spent(path, line)
        ]
        # A line that stands at several places names none of them.
        starts = [at for at in starts if places[lines[at].strip()] == 1] or starts
        return Passages(
            lines=lines,
            starts=starts,
            tried=self._attempts.edits_of(path),
            dead_ends=self._attempts.dead_ends_of(path),
        )

    # -- what is said to the model --------------------------------------------------------------------
    @override
    def _sentence(self) -> str:
        again = self.stage is Stage.EDIT and self._failed_checks
        return f"{self.request.kind}_again" if again else super()._sentence()

    @override
    def _unchanged_sentence(self) -> str:
        return "unchanged"


@dataclass
class Rename(Writing):
    """A name becomes another one in every file: the search for it is made again behind each change, until it finds nothing."""

    _left: tuple[str, ...] = ()

    @override
    def _open(self) -> None:
        for name in self.request.names[:1]:
            self._call("code_search", pattern=name)

    @override
    def _follow(self, path: str) -> None:
        self._open()

    @override
    def _searched(self, call: ToolCall, text: str) -> None:
        names = self.request.names
        if names and call.arguments.get("pattern") == names[0]:
            before, self._left = self._left, tuple(self._matched(text))
            if before and not self._left:
                self._check()

    @override
    def _stage(self) -> Stage:
        if self._is_given_up:
            return Stage.ANSWER
        if self._left:
            return Stage.EDIT
        if self._changed:
            return Stage.ANSWER
        return Stage.LOOK if self._looks <= LOOKS_MAX else Stage.ENOUGH

    @override
    def _editable(self) -> tuple[str, ...]:
        return self._left

    @override
    def _edit(self) -> Move:
        move = super()._edit()
        return replace(move, narrowed=replace(move.narrowed, fixed={"every": "true"}))

    @override
    def _edit_passages(self, editable: Sequence[str]) -> Mapping[str, Passages]:
        names = self.request.names
        becomes = names[1] if len(names) == 2 else ""
        name = Passages(lines=names[:1], starts=(0,), becomes=becomes)
        left = [path for path in editable if not self._attempts.is_spent(path, names[0])]
        return dict.fromkeys(left, name)

    @override
    def _last_sentence(self) -> str:
        return "gave_up" if self._changed and self._left else super()._last_sentence()

    @override
    def _fields(self) -> dict[str, str]:
        old = self.request.names[0] if self.request.names else ""
        return super()._fields() | {"old": old, "files": ", ".join(self._left)}


class Change(Writing):
    """Settings get another value, those that are named; more of them as long as the wish names what is nowhere yet."""

    @override
    def _searched(self, call: ToolCall, text: str) -> None:
        if not self._changed:
            for path in self._matched(text)[: OPENED_MAX - 1]:
                if path not in self._texts:
                    self._read(path)

    @override
    def _stage_of_changed(self) -> Stage:
        return Stage.ENOUGH if self._may_want_more() else Stage.ANSWER

    def _may_want_more(self) -> bool:
        """Whether a change of settings can be but a part of what was asked; what it names is there, before or since."""
        values = values_in(self._wish)
        there = "\n".join([*filter(None, self._first.values()), *self._made]).lower()
        missing = any(value not in there for value in values)
        return missing if values else wants_several(self._wish)

    @property
    def _wish(self) -> str:
        """What was asked without the files that it names."""
        text = self.request.text
        for path in self.request.files:
            text = text.replace(path, " ").replace(PurePosixPath(path).name, " ")
        return text

    @override
    def _look_tools(self) -> Tools:
        if not self._changed:
            return super()._look_tools()
        edited = self._edit_passages(tuple(self._texts))
        return {"file_edit": tuple(edited), "file_read": self._unread()}

    @override
    def _edit_tools(self) -> Tools:
        return {**super()._edit_tools(), **self._reading()}

    @override
    def _passages(self, path: str) -> Passages:
        """The settings that are named; of those that are changed none, unless there is no other."""
        found = super()._passages(path)
        left = [at for at in found.starts if not self._attempts.is_made(path, found.lines[at])]
        likely = likeliest(found.starts, meant(self._wish, found.lines, left), left)
        return replace(found, starts=likely, keeps_keys=True)

    @override
    def _last_sentence(self) -> str:
        sentence = super()._last_sentence()
        return "done_change" if sentence == "done" and any(self._made) else sentence


@dataclass
class Script(Writing):
    """A script is written as a whole, with its data in view, and run; one that failed is written anew."""

    _passed: bool = False

    @override
    def _open(self) -> None:
        for path in self.request.files[:OPENED_MAX]:
            self._head(path)

    @override
    def _follow(self, path: str) -> None:
        runner = _RUNNERS.get(PurePosixPath(path).suffix)
        if runner:
            self._call("shell", command=self.request.command or f"{runner} {path}")

    @override
    def _ran(self, *, ok: bool, text: str) -> None:
        super()._ran(ok=ok, text=text)
        if self._changed:
            self._passed = ok

    @override
    def _needs_look(self) -> bool:
        return False

    @override
    def _stage_of_changed(self) -> Stage:
        return Stage.ANSWER if self._passed else Stage.VERIFY

    @override
    def _move(self) -> Move:
        if self.stage is not Stage.VERIFY:
            return super()._move()
        narrowed = Narrowing(tools=frozenset({"shell"}), must_call=True)
        return Move(narrowed=narrowed, tokens=LOOK_TOKENS)

    @override
    def _new_paths(self) -> tuple[str, ...]:
        return self.request.new_files or tuple(self._changed)

    @override
    def _edit_passages(self, editable: Sequence[str]) -> Mapping[str, Passages]:
        return {}

    @override
    def _begins(self) -> Mapping[str, Mapping[str, str]]:
        scripts = [path for path in self._new_paths() if path.endswith(".py")]
        text = script_begins(self.request.files) if scripts else ""
        return {"file_write": {"content": text}} if text else {}

    @override
    def _last_sentence(self) -> str:
        sentence = super()._last_sentence()
        return "done_script" if sentence == "done" and self._printed else sentence
