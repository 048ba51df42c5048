"""Work on code that has tests: code that is wrong, and code that is not there yet. Pure."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from typing_extensions import override

from growbox_app.agent.attempts import CHANGES
from growbox_app.agent.drafts import Draft
from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.readings import (
    asserted,
    body_of,
    called_in,
    case_begins,
    checks_of,
    failed_at,
    head_of,
    is_better,
    is_comment,
    places_in,
    tally,
    whole_of,
)
from growbox_app.agent.survey import is_test
from growbox_app.agent.works.work import (
    OPENED_MAX,
    RAN,
    TRIED_CHARACTERS_MAX,
    WISH_CHARACTERS_MAX,
    Stage,
    Tools,
)
from growbox_app.agent.works.writing import Writing, likeliest
from growbox_app.executors.call_grammar import Passages
from growbox_app.executors.syntax import BROKEN

DRAFTS_MAX = 3
DRAFTED_LINES_MAX, DRAFTED_CHECKS_MAX = 40, 8
_DEFINES = re.compile(r"\s*(?:async\s+)?(?:def|class|function|func|fn)\b")


@dataclass
class Tested(Writing):
    """The tests run behind each change; one that brings nothing, or breaks the file, is taken back: the next one would build on it.

    `_failing` is how many tests failed and passed at last, `_last` the last edit with its file and that file's text before it, `_vain` what was
    taken back.
    """

    _failing: tuple[int, int] | None = None
    _last: tuple[ToolCall, str, str] | None = None
    _taken_back: bool = False
    _vain: str = ""
    _whole: bool = True

    @override
    def took(
        self,
        call: ToolCall,
        *,
        ok: bool,
        text: str,
        path: str = "",
        before: str | None = None,
        by_rule: bool = False,
    ) -> None:
        """A change by rule is the way back, and none of the model's."""
        if by_rule and call.name in CHANGES:
            self._restored(ok=ok)
            self._settle()
        else:
            super().took(call, ok=ok, text=text, path=path, before=before, by_rule=by_rule)

    def _restored(self, *, ok: bool) -> None:
        """A file that is again as it was at first is not a changed one."""
        self._taken_back = ok
        if ok:
            self._whole = True
            for path in [p for p in self._changed if self._texts.get(p) == self._first.get(p)]:
                del self._changed[path]

    @override
    def _wrote(self, call: ToolCall, path: str, before: str | None, text: str) -> None:
        self._taken_back = False
        self._last = None if before is None else (call, path, before)
        self._whole = BROKEN not in text
        super()._wrote(call, path, before, text)
        if not self._whole:
            self._take_back()

    @override
    def _follow(self, path: str) -> None:
        self._check()

    @override
    def _ran(self, *, ok: bool, text: str) -> None:
        super()._ran(ok=ok, text=text)
        if self._changed and not ok and text.startswith(RAN):
            now = tally(text)
            if self._failing is None or is_better(now, self._failing):
                self._failing = now
            else:
                self._take_back()

    def _take_back(self) -> None:
        """Writes the file as it was before the last edit, by the same hands as any change."""
        if self._last is None:
            return
        (call, path, before), self._last = self._last, None
        self._vain = call.arguments.get("new", "")
        self._made.clear()
        self._attempts.took_back(call, path)
        self._queue.clear()
        self._call("file_write", path=path, content=before)

    @override
    def _editable(self) -> tuple[str, ...]:
        """Tests stay as they are, but for those that the work itself has written."""
        return tuple(path for path in self._texts if not is_test(path) or path in self._changed)

    @override
    def _sentence(self) -> str:
        back = self.stage is Stage.EDIT and self._taken_back
        return f"{self.request.kind}_back" if back else super()._sentence()

    @override
    def _fields(self) -> dict[str, str]:
        return super()._fields() | {
            "path": ", ".join(self._new_paths() or self._editable()),
            "tried": " ".join(self._vain.split())[:TRIED_CHARACTERS_MAX],
        }


@dataclass
class Fix(Tested):
    """A failing test is made to pass: it is run, the code that its failure names is read, and changed where that is most likely wrong."""

    _first_failure: str = ""
    _suspects: frozenset[str] = frozenset()
    _drafts: int = 0

    @override
    def _open(self) -> None:
        if self._test_command:
            self._call("shell", command=self._test_command)
        super()._open()

    @override
    def _came(self, call: ToolCall, *, ok: bool, text: str) -> None:
        super()._came(call, ok=ok, text=text)
        if call.name == "shell":
            self._first_failure = self._first_failure or self._failure
        elif call.name == "file_edit" and not ok:
            self._drafts = DRAFTS_MAX  # the user, or the policy, said no

    # -- the function that fails, in a prompt of its own ------------------------------------------
    @override
    def next_draft(self) -> Draft | None:
        if self.stage is not Stage.EDIT or self._drafts >= DRAFTS_MAX:
            return None
        files = [path for path in self._editable() if path.endswith(".py") and not is_test(path)]
        found = [draft for path in files if (draft := self._draft(path)) is not None]
        if len(found) != 1:
            return None
        self._drafts += 1
        return found[0]

    def _draft(self, path: str) -> Draft | None:
        lines = self._texts[path].split("\n")
        place = whole_of(self._suspects, lines)
        if place is None or place[1] - place[0] > DRAFTED_LINES_MAX:
            return None
        lines = lines[slice(*place)]
        tests = (text for test, text in self._texts.items() if is_test(test))
        checks = [check for text in tests for check in checks_of(self._suspects, text)]
        code = "\n".join(lines)
        tried = [self._vain] if self._taken_back and self._vain.startswith(lines[0]) else []
        return Draft(
            path=path,
            code=code,
            begins=head_of(lines),
            checks=checks[:DRAFTED_CHECKS_MAX],
            tried=tried or ([code] if self._drafts else []),
            failure=self._failure if self._drafts else "",
        )

    @override
    def _failure_in(self, call: ToolCall, text: str) -> str:
        return failed_at(text) if call.name == "shell" else ""

    @override
    def _ran(self, *, ok: bool, text: str) -> None:
        super()._ran(ok=ok, text=text)
        if not self._changed and not ok:
            self._failing = tally(text) if text.startswith(RAN) else None
            self._suspects = called_in(text)
            self._read_suspects(text)

    def _read_suspects(self, text: str) -> None:
        """What a failure names, and what a test that it names is a test of."""
        queued = {call.arguments.get("path") for call in self._queue}
        files = dict.fromkeys(file for file, _ in places_in(text, self.survey.files))
        named = list(reversed(files))
        tested = [path for test in named if is_test(test) for path in self._tested_by(test)]
        for path in dict.fromkeys([*tested, *named]):
            if path not in queued and len(self._queue) < OPENED_MAX:
                self._read(path)

    def _tested_by(self, test: str) -> list[str]:
        stem = PurePosixPath(test).stem.removeprefix("test_").removesuffix("_test")
        return [
            file
            for file in self.survey.files
            if PurePosixPath(file).stem == stem and not is_test(file)
        ]

    @override
    def _edit_tools(self) -> Tools:
        return {**super()._edit_tools(), **self._reading()}

    @override
    def _passages(self, path: str) -> Passages:
        """Code that the failure names, a body before its head; any code before comments."""
        found = super()._passages(path)
        code = {at for at in found.starts if not is_comment(found.lines[at])}
        body = code & body_of(self._suspects, found.lines)
        inside = {at for at in body if not _DEFINES.match(found.lines[at])}
        return replace(found, starts=likeliest(found.starts, inside, body, code), in_block=True)

    @override
    def _fields(self) -> dict[str, str]:
        first = self._first_failure or self.request.text[:WISH_CHARACTERS_MAX]
        return super()._fields() | {"first": first, "wanted": self._wanted() or first}

    @override
    def _last_sentence(self) -> str:
        sentence = super()._last_sentence()
        return "done_change" if sentence == "done" and any(self._made) else sentence

    def _wanted(self) -> str:
        """What has to be right: where it failed at first, and where it does since."""
        told = dict.fromkeys(filter(None, map(asserted, (self._first_failure, self._failure))))
        return " ; ".join(told)


class Add(Tested):
    """New code: at the end of its file where that is known, then its test where the wish asks for one, then all tests."""

    @override
    def _follow(self, path: str) -> None:
        if not self._lacks_test():
            self._check()
            return
        place = self._test_place()
        if place in self.survey.files and place not in self._texts:
            self._read(place)

    def _lacks_test(self) -> bool:
        return self.request.wants_test and not any(is_test(path) for path in self._changed)

    @override
    def _stage(self) -> Stage:
        written = self._changed and self._whole and not self._is_given_up
        return Stage.TEST if written and self._lacks_test() else super()._stage()

    # -- where it goes, and how it begins -----------------------------------------------------------
    @override
    def _edit_tools(self) -> Tools:
        place, editable = self._appended(), self._editable()
        if place:
            return {"file_append": (place,)}
        appended: Tools = {"file_append": editable} if editable else {}
        return {**super()._edit_tools(), **appended}

    def _appended(self) -> str:
        """The file at whose end a new function, or a test beside others, belongs; empty where that is not known."""
        if self.stage is Stage.TEST:
            place = self._test_place()
            return place if place in self._texts else ""
        files = [path for path in self.request.files if path in self._texts and not is_test(path)]
        name = self._name
        if not name or len(files) != 1 or not files[0].endswith(".py"):
            return ""
        known = any(body_of([name], text.split("\n")) for text in self._texts.values())
        return "" if known else files[0]

    @property
    def _name(self) -> str:
        """The name of the new function; empty where it has none."""
        return self.request.signature.partition("(")[0]

    @override
    def _begins(self) -> Mapping[str, Mapping[str, str]]:
        if not self._name:
            return {}
        if self.stage is Stage.TEST:
            return self._test_begins()
        if not self._appended():
            return {}
        signature = self.request.signature
        head = f"{signature}:\n    " if signature.endswith(")") else f"{signature}("
        return {"file_append": {"text": f"\n\ndef {head}"}}

    def _test_begins(self) -> Mapping[str, Mapping[str, str]]:
        place = self._test_place()
        if not place.endswith(".py"):
            return {}
        module = self._changed_code.removesuffix(".py").replace("/", ".")
        old = self._texts.get(place, "")
        unittest = "import unittest" in old if old else "pytest" not in self._test_command
        text = case_begins(module, self._name, unittest=unittest, is_new=not old)
        return {"file_append": {"text": text}} if old else {"file_write": {"content": text}}

    @override
    def _editable(self) -> tuple[str, ...]:
        if self.stage is not Stage.TEST:
            return super()._editable()
        return tuple(path for path in self._texts if is_test(path))

    @override
    def _new_paths(self) -> tuple[str, ...]:
        if self.stage is not Stage.TEST:
            return super()._new_paths()
        tests = tuple(path for path in self.request.new_files if is_test(path))
        place = self._test_place()
        return tests or ((place,) if place and place not in self.survey.files else ())

    def _test_place(self) -> str:
        """Where the project's own habit puts the test of what was changed; empty where that is not known."""
        if not self._changed_code:
            return ""
        others = [file for file in self.survey.files if is_test(file)]
        folder = str(PurePosixPath(others[0]).parent) if others else "."
        name = f"test_{PurePosixPath(self._changed_code).stem}.py"
        return name if folder == "." else f"{folder}/{name}"

    @property
    def _changed_code(self) -> str:
        return next((path for path in self._changed if path.endswith(".py")), "")

    # -- what is said to the model --------------------------------------------------------------------
    @override
    def _sentence(self) -> str:
        if self.stage is Stage.TEST and self._taken_back:
            return "add_test_back"
        sentence = super()._sentence()
        return "add_append" if sentence == "add_edit" and self._appended() else sentence

    @override
    def _fields(self) -> dict[str, str]:
        fields = super()._fields() | {"signature": self.request.signature}
        return fields | {"path": self._appended() or fields["path"]}
