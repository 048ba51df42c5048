"""The stage machine of known kinds of work: what is looked at first, which calls make sense now, what follows from a result. Pure.

reproduce → look → edit → verify → answer. What follows by rule – running the tests after a change, searching a name that is to be
renamed – is called by the machine itself, through the same hands as any call; what needs language is left to the model, with few tools in view. The view
is narrowed through the grammar of a call only: the prompt's prefix never changes. Nothing here knows a task; a request of no known kind leaves the
model as free as it is without this.

Owned by the turn that runs it. Source: design 5.1.
"""

from __future__ import annotations

import re
from collections import Counter, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import PurePosixPath

from growbox_app.agent.attempts import CHANGES, Attempts
from growbox_app.agent.kinds import CHANGING, Kind, Request, understood
from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.readings import (
    DEFINED,
    FAILURE_CHARACTERS_MAX,
    asserted,
    body_of,
    called_in,
    case_begins,
    decisive,
    failed_at,
    is_better,
    is_comment,
    meant,
    only_match,
    printed,
    script_begins,
    tally,
    values_in,
    wants_several,
)
from growbox_app.agent.survey import PYTHON, Survey, is_test
from growbox_app.executors.call_grammar import Narrowing, Passages
from growbox_app.executors.syntax import BROKEN

WISH_CHARACTERS_MAX, TRIED_CHARACTERS_MAX = 400, 120
LOOKS_MAX = 4
"""Looks of the model before it has to go on."""
CHECKS_MAX = 4
"""Failed checks before the work is given up, and said to be."""
DESCRIBED_MAX, HEAD_LINES = 5, 12
OPENED_MAX = 3
"""Files that are read before the model's first word."""
PASSAGE_LINES_MAX = 400
LOOK_TOKENS, EDIT_TOKENS, WRITE_TOKENS = 160, 400, 800
_LOOKING = frozenset({"code_search", "file_list", "file_read", "code_outline"})
_RAN = "exit code"
"""How the result of a command begins that did run."""
_DENIED = "Not allowed: "
"""How the result begins of one that the policy denied; the reason follows."""
_OPTIONAL = frozenset({"path", "first", "last"})
_ERRORS = r"error|exception|fatal|fail|traceback|critical|错误|异常|失败"
_RUNNERS = {".py": PYTHON, ".sh": "sh", ".js": "node"}
_DEFINES = re.compile(r"\s*(?:async\s+)?(?:def|class|function|func|fn)\b")
_TRACE = re.compile(r'File "([^"\n]+)", line (\d+)|([\w./\\-]+\.\w{1,5}):(\d+)')
AROUND_LINES = 12
HEAT_STEP, HEAT_MAX = 0.3, 0.9


class Stage(StrEnum):
    """Where the work stands."""

    FREE = "free"
    LOOK = "look"
    ENOUGH = "enough"
    """Something was looked at: an answer is possible, another look, too."""
    EDIT = "edit"
    TEST = "test"
    """The code is there, its test is not."""
    VERIFY = "verify"
    ANSWER = "answer"


@dataclass(frozen=True, slots=True, kw_only=True)
class Move:
    """What the model may do next.

    `tokens`: the longest call (0: as long as an answer). `heat` is added to the temperature: what brought nothing is tried again with more
    freedom. `lead`: the words that an answer begins with; `echoes`: how its sentences do not begin.
    """

    narrowed: Narrowing = field(default_factory=Narrowing)
    may_call: bool = True
    tokens: int = 0
    heat: float = 0.0
    lead: str = ""
    echoes: tuple[str, ...] = ()


@dataclass(slots=True)
class Work:
    """One request on its way through its stages."""

    request: Request
    survey: Survey
    stage: Stage = Stage.FREE
    _queue: deque[ToolCall] = field(default_factory=deque)
    _texts: dict[str, str] = field(default_factory=dict)
    _changed: dict[str, None] = field(default_factory=dict)
    _first: dict[str, str | None] = field(default_factory=dict)
    _left: tuple[str, ...] = ()
    _looks: int = 0
    _failures: int = 0
    _in_vain: int = 0
    _found: bool = False
    _failure: str = ""
    _first_failure: str = ""
    _failed_checks: int = 0
    _passed: bool = False
    _attempts: Attempts = field(default_factory=Attempts)
    _last: tuple[ToolCall, str, str] | None = None
    _taken_back: bool = False
    _vain: str = ""
    _printed: str = ""
    _outcome: str = ""
    _why: str = ""
    _made: dict[str, None] = field(default_factory=dict)
    _whole: bool = True
    _failing: tuple[int, int] | None = None
    _suspects: frozenset[str] = frozenset()
    _only: tuple[str, str, str] | None = None

    # -- what is done by rule ---------------------------------------------------------------------
    def next_call(self) -> ToolCall | None:
        """The call that follows by rule, if one does."""
        return self._queue.popleft() if self._queue else None

    def _open(self) -> None:
        """What is looked at before the model's first word."""
        request, kind = self.request, self.request.kind
        if kind is Kind.RUN:
            self._call("shell", command=request.command)
            return
        if kind is Kind.FIX and self._test_command:
            self._call("shell", command=self._test_command)
        if kind is Kind.SUMMARISE:
            self._survey_folder()
        elif kind is Kind.RENAME or (kind is not Kind.SCRIPT and not request.files):
            for name in request.names[: 1 if kind is Kind.RENAME else 2]:
                self._search(name)
        elif kind is not Kind.FIND:
            for path in request.files[:OPENED_MAX]:
                self._read(path)
        if not self._queue:
            self._call("file_list")

    def _read(self, path: str) -> None:
        kind = self.request.kind
        if kind is Kind.SCRIPT:
            self._head(path)
        elif kind is Kind.EXPLAIN and _is_log(path):
            found = {"pattern": _ERRORS, "regex": "true", "context": "3"}
            self._call("code_search", path=path, **found)
        else:
            self._call("file_read", path=path)

    def _search(self, name: str) -> None:
        """Where a name is defined comes before where it is used."""
        if self.request.kind is Kind.FIND and name.isidentifier():
            pattern = DEFINED.format(name=name)
            self._call("code_search", pattern=pattern, regex="true")
        else:
            self._call("code_search", pattern=name)

    def _survey_folder(self) -> None:
        folder = self.request.folders[0] if self.request.folders else "."
        inside = [f for f in self.survey.files if folder == "." or f.startswith(folder + "/")]
        self._call("file_list", path=folder)
        described = sorted(inside, key=lambda f: (not _is_readme(f), f.count("/"), f))
        for path in described[:DESCRIBED_MAX]:
            self._head(path)

    def _head(self, path: str) -> None:
        """The first lines of a file, which say what it is."""
        self._call("file_read", path=path, first="1", last=str(HEAD_LINES))

    @property
    def _test_command(self) -> str:
        return self.request.command or self.survey.test_command

    def _call(self, name: str, **arguments: str) -> None:
        self._queue.append(ToolCall(name=name, arguments=arguments))

    # -- what came of a call ------------------------------------------------------------------------
    def saw(self, path: str, text: str) -> None:
        """A file was read, or is now like this."""
        self._texts[path] = text

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
        """A call has ended, with this for the model; `path` is what it changed, `before` that file's text until then."""
        if by_rule and call.name in CHANGES:
            self._taken_back = ok
            self._restored(ok=ok)
        else:
            changes = call.name in CHANGES
            self._attempts.note(call)
            self._came(call, ok=ok and bool(path or not changes), text=text, by_rule=by_rule)
            if changes and ok and path:
                self._wrote(call, path, before, text)
        self._settle()

    def _restored(self, *, ok: bool) -> None:
        """A file that is again as it was at first is not a changed one."""
        if ok:
            self._whole = True
            for path in [p for p in self._changed if self._texts.get(p) == self._first.get(p)]:
                del self._changed[path]

    def _came(self, call: ToolCall, *, ok: bool, text: str, by_rule: bool) -> None:
        """What a call's result says; one that left a file as it was is none that went well."""
        kind = self.request.kind
        self._failures += not ok
        self._in_vain = 0 if ok else self._in_vain + 1
        if call.name == "shell" or kind is Kind.EXPLAIN:
            read = failed_at if kind is Kind.FIX else decisive
            self._failure = read(text) or self._failure
            self._first_failure = self._first_failure or self._failure
        match call.name:
            case "shell":
                self._ran(ok=ok, text=text)
            case "file_edit" if not ok:
                self._attempts.spend(call)  # the same again would fail again
            case "code_search" if ok:
                self._searched(call, text)
                self._found |= by_rule and kind is Kind.FIND and self._looks > 0
            case name if name in _LOOKING:
                self._looks += ok
                self._found |= ok and kind in (Kind.EXPLAIN, Kind.SUMMARISE) and by_rule
            case _:
                pass

    def repeated(self, call: ToolCall) -> None:
        """The model made a call again that had brought nothing, or one that broke off: it is not offered any more."""
        self._in_vain += 1
        self._attempts.note(call)
        if call.name == "file_edit":
            self._attempts.spend(call)
        self._settle()

    def _settle(self) -> None:
        """Where the work stands now; where no change is left to be tried, it ends."""
        if self._queue:
            return
        self.stage = self._stage()
        if self.stage in (Stage.EDIT, Stage.TEST) and not self._edit_tools():
            self.stage = Stage.ANSWER

    def _ran(self, *, ok: bool, text: str) -> None:
        self._printed = printed(text) if ok else ""
        ended = "failed" if text.startswith(_RAN) else "refused"
        self._outcome = "done" if ok else "denied" if text.startswith(_DENIED) else ended
        self._why = text.removeprefix(_DENIED).split(". ", 1)[0]
        if self._changed:
            self._passed = ok
            self._failed_checks = 0 if ok else self._failed_checks + 1
            if not ok and text.startswith(_RAN):
                self._compare(tally(text))
        elif self.request.kind is Kind.FIX and not ok:
            self._failing = tally(text) if text.startswith(_RAN) else None
            self._suspects = called_in(text)
            self._read_suspects(text)

    def _compare(self, now: tuple[int, int]) -> None:
        """A change that brought nothing does not stay: the next one would build on it."""
        if self._failing is None or is_better(now, self._failing):
            self._failing = now
        else:
            self._take_back()

    def _take_back(self) -> None:
        """Writes the file as it was before the last edit, by the same hands as any change."""
        if self._last is None or self.request.kind not in (Kind.FIX, Kind.ADD):
            return
        (call, path, before), self._last = self._last, None
        self._vain = call.arguments.get("new", "")
        self._attempts.took_back(call, path)
        self._queue.clear()
        self._call("file_write", path=path, content=before)

    def _read_suspects(self, text: str) -> None:
        """What a failure names, and what a test that it names is a test of."""
        queued = {call.arguments.get("path") for call in self._queue}
        named = self._named_in(text)
        tested = [path for test in named if is_test(test) for path in self._tested_by(test)]
        for path in dict.fromkeys([*tested, *named]):
            if path not in queued and len(self._queue) < OPENED_MAX:
                self._call("file_read", path=path)

    def _named_in(self, text: str) -> list[str]:
        found: dict[str, None] = {}
        for match in _TRACE.finditer(text):
            name = (match.group(1) or match.group(3)).replace("\\", "/")
            for file in self.survey.files:
                if name == file or name.endswith("/" + file) or PurePosixPath(file).name == name:
                    found[file] = None
        return list(reversed(found))

    def _tested_by(self, test: str) -> list[str]:
        stem = PurePosixPath(test).stem.removeprefix("test_").removesuffix("_test")
        return [
            file
            for file in self.survey.files
            if PurePosixPath(file).stem == stem and not is_test(file)
        ]

    def _wrote(self, call: ToolCall, path: str, before: str | None, text: str) -> None:
        """A file was changed: what it was before is not written again, and what follows from it is called."""
        self._changed[path] = None
        self._first.setdefault(path, before)
        self._made[" ".join(call.arguments.get("new", "").split())] = None
        self._taken_back = False
        self._attempts.changed(call, path)
        self._last = None if before is None else (call, path, before)
        self._whole = BROKEN not in text
        if not self._whole:
            self._failure = text.split(BROKEN, 1)[1].strip()[:FAILURE_CHARACTERS_MAX]
            self._failed_checks += 1
            self._take_back()
        else:
            self._follow(path)

    def _follow(self, path: str) -> None:
        """What is called behind a change."""
        kind = self.request.kind
        if kind is Kind.RENAME and self.request.names:
            self._call("code_search", pattern=self.request.names[0])
        elif kind is Kind.SCRIPT and PurePosixPath(path).suffix in _RUNNERS:
            runner = _RUNNERS[PurePosixPath(path).suffix]
            self._call("shell", command=self.request.command or f"{runner} {path}")
        elif kind is Kind.ADD and self._lacks_test():
            place = self._test_place()
            if place in self.survey.files and place not in self._texts:
                self._call("file_read", path=place)
        elif kind in (Kind.FIX, Kind.ADD):
            self._check()

    def _check(self) -> None:
        command = self._test_command or self._command_of_new_test()
        if command:
            self._call("shell", command=command)

    def _command_of_new_test(self) -> str:
        """How a test is run that the work itself brought into a project without tests."""
        test = next((p for p in self._changed if is_test(p) and p.endswith(".py")), "")
        if not test:
            return ""
        module = test.removesuffix(".py").replace("/", ".")
        return f"{PYTHON} -m unittest {module}"

    def _searched(self, call: ToolCall, text: str) -> None:
        matched = [line for line in text.split("\n") if line in self.survey.files]
        self._looks += bool(matched) or not text.startswith("no match")
        self._only = only_match(text, self.survey.files)
        if self.request.kind is Kind.RENAME and self.request.names:
            if call.arguments.get("pattern") == self.request.names[0]:
                before, self._left = self._left, tuple(matched)
                if before and not matched:
                    self._check()
        elif self.request.kind is Kind.CHANGE and not self._changed:
            for path in matched[: OPENED_MAX - 1]:
                if path not in self._texts:
                    self._call("file_read", path=path)
        elif self.request.kind is Kind.EXPLAIN:
            self._read_around(text)
        elif self.request.kind is Kind.FIND and not matched and "regex" in call.arguments:
            for name in self.request.names[:2]:
                self._call("code_search", pattern=name)

    def _read_around(self, text: str) -> None:
        """The code that an error names last."""
        for match in reversed(list(_TRACE.finditer(text))):
            name = (match.group(1) or match.group(3)).replace("\\", "/")
            line = int(match.group(2) or match.group(4))
            files = [f for f in self._named_in(match.group()) if f not in self.request.files]
            if files and name:
                first, last = str(max(line - AROUND_LINES, 1)), str(line + AROUND_LINES)
                self._call("file_read", path=files[0], first=first, last=last)
                return

    # -- where the work stands --------------------------------------------------------------------
    def _lacks_test(self) -> bool:
        return self.request.wants_test and not any(is_test(path) for path in self._changed)

    def _stage(self) -> Stage:
        kind = self.request.kind
        if kind is Kind.RUN:
            return Stage.ANSWER if self._outcome else Stage.FREE
        if kind in (Kind.FIND, Kind.EXPLAIN, Kind.SUMMARISE):
            if not self._looks and self._failures < LOOKS_MAX:
                return Stage.LOOK
            return Stage.ENOUGH if self._looks < LOOKS_MAX and not self._found else Stage.ANSWER
        if self._failed_checks >= CHECKS_MAX:
            return Stage.ANSWER
        if kind is Kind.RENAME:
            return self._rename_stage()
        if not self._changed:
            return Stage.LOOK if self._needs_look() else Stage.EDIT
        if kind is Kind.ADD and self._lacks_test() and self._whole:
            return Stage.TEST
        if self._failed_checks:
            return Stage.EDIT
        if kind is Kind.SCRIPT and not self._passed:
            return Stage.VERIFY
        return Stage.ENOUGH if kind is Kind.CHANGE and self._may_want_more() else Stage.ANSWER

    def _may_want_more(self) -> bool:
        """Whether a change of settings can be but a part of what was asked; what it names is there, before or since."""
        values = values_in(self._wish)
        there = "\n".join([*filter(None, self._first.values()), *self._made]).lower()
        missing = any(value not in there for value in values)
        return missing if values else wants_several(self._wish)

    def _needs_look(self) -> bool:
        """Nothing is known that could be changed, and there may be something."""
        if self.request.kind is Kind.SCRIPT or self._new_paths() or self._editable():
            return False
        return bool(self._unread()) and self._looks <= LOOKS_MAX

    def _rename_stage(self) -> Stage:
        if self._left:
            return Stage.EDIT
        if self._changed:
            return Stage.ANSWER
        return Stage.LOOK if self._looks <= LOOKS_MAX else Stage.ENOUGH

    # -- what the model may do ----------------------------------------------------------------------
    def move(self) -> Move:
        """What makes sense now."""
        heat = min(HEAT_STEP * (self._in_vain + self._failed_checks), HEAT_MAX)
        move = self._move()
        narrowed = replace(move.narrowed, tried=self._attempts.barred)
        return replace(move, heat=heat, narrowed=narrowed)

    def _move(self) -> Move:
        match self.stage:
            case Stage.FREE:
                return Move()
            case Stage.ANSWER:
                return Move(may_call=False)
            case Stage.LOOK:
                return self._look(must=True)
            case Stage.ENOUGH:
                return self._look(must=False)
            case Stage.VERIFY:
                tools = frozenset({"shell"})
                return Move(narrowed=Narrowing(tools=tools, must_call=True), tokens=LOOK_TOKENS)
            case _:
                return self._edit()

    def _look(self, *, must: bool) -> Move:
        tools = set(_LOOKING)
        if "" in self._attempts.texts_of("file_list"):
            tools.discard("file_list")  # it has no argument that could be another one
        paths: dict[str, Sequence[str]] = {"file_read": self._unread()}
        passages: Mapping[str, Passages] = {}
        if self.request.kind is Kind.CHANGE and self._changed:
            tools = {"file_edit", "file_read"}
            passages = self._edit_passages(tuple(self._texts))
            paths["file_edit"] = tuple(passages)
        narrowed = Narrowing(
            tools=frozenset(tools | self._asking()),
            paths=self._known(paths),
            passages=passages,
            optional=_OPTIONAL,
            must_call=must,
        )
        return Move(narrowed=narrowed, tokens=LOOK_TOKENS if must else 0)

    def _edit(self) -> Move:
        tools = self._edit_tools()
        paths = dict(tools)
        paths |= dict.fromkeys(self._asking())
        known = {name: files for name, files in paths.items() if files is not None}
        narrowed = Narrowing(
            tools=frozenset(paths),
            paths=self._known(known),
            passages=self._edit_passages(known.get("file_edit", ())),
            begins=self._begins(),
            optional=_OPTIONAL,
            fixed={"every": "true"} if self.request.kind is Kind.RENAME else {},
            must_call=True,
        )
        writes = tools.keys() & {"file_write", "file_append"} and self.stage is not Stage.TEST
        return Move(narrowed=narrowed, tokens=WRITE_TOKENS if writes else EDIT_TOKENS)

    def _edit_tools(self) -> Mapping[str, Sequence[str] | None]:
        """Tools that can change something now, and the files that each may name (None: any)."""
        kind, editable, new = self.request.kind, self._editable(), self._new_paths()
        place = self._appended()
        if place:
            return {"file_append": (place,)}
        tools: dict[str, Sequence[str] | None] = {}
        passages = self._edit_passages(editable)
        if kind is not Kind.SCRIPT and passages:
            tools["file_edit"] = tuple(passages)
        if kind in (Kind.FIX, Kind.CHANGE) and self._looks < LOOKS_MAX + OPENED_MAX:
            tools |= {"file_read": self._unread()} if self._unread() else {}
        if new or not editable:
            tools["file_write"] = new or None
        if kind is Kind.ADD and editable:
            tools["file_append"] = editable
        return tools

    def _appended(self) -> str:
        """The file at whose end a new function, or a test beside others, belongs; empty where that is not known."""
        if self.request.kind is not Kind.ADD:
            return ""
        if self.stage is Stage.TEST:
            place = self._test_place()
            return place if place in self._texts else ""
        files = [path for path in self.request.files if path in self._texts and not is_test(path)]
        name = self._new_name
        if not name or len(files) != 1 or not files[0].endswith(".py"):
            return ""
        known = any(body_of([name], text.split("\n")) for text in self._texts.values())
        return "" if known else files[0]

    @property
    def _new_name(self) -> str:
        return self.request.signature.partition("(")[0]

    def _begins(self) -> Mapping[str, Mapping[str, str]]:
        """How new text begins, as far as that follows from the wish."""
        if self.request.kind is Kind.SCRIPT:
            scripts = [path for path in self._new_paths() if path.endswith(".py")]
            text = script_begins(self.request.files) if scripts else ""
            return {"file_write": {"content": text}} if text else {}
        if self.request.kind is not Kind.ADD or not self._new_name:
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
        if not place.endswith(".py") or not self._module():
            return {}
        old = self._texts.get(place, "")
        unittest = "import unittest" in old if old else "pytest" not in self._test_command
        text = case_begins(self._module(), self._new_name, unittest=unittest, is_new=not old)
        return {"file_append": {"text": text}} if old else {"file_write": {"content": text}}

    def _editable(self) -> tuple[str, ...]:
        kind = self.request.kind
        if kind is Kind.RENAME:
            return self._left
        read = tuple(self._texts)
        if self.stage is Stage.TEST:
            return tuple(path for path in read if is_test(path))
        if kind in (Kind.FIX, Kind.ADD):
            return tuple(path for path in read if not is_test(path) or path in self._changed)
        return read

    def _new_paths(self) -> tuple[str, ...]:
        """Files that may be written as a whole."""
        new = self.request.new_files
        if self.request.kind is Kind.SCRIPT:
            return new or tuple(self._changed)
        tests = tuple(path for path in new if is_test(path))
        if self.stage is Stage.TEST:
            place = self._test_place()
            return tests or ((place,) if place and place not in self.survey.files else ())
        return tuple(path for path in new if path not in tests)

    def _test_place(self) -> str:
        """Where the project's own habit puts the test of what was changed; empty where that is not known."""
        changed = next((path for path in self._changed if path.endswith(".py")), "")
        if not changed:
            return ""
        others = [file for file in self.survey.files if is_test(file)]
        folder = str(PurePosixPath(others[0]).parent) if others else "."
        name = f"test_{PurePosixPath(changed).stem}.py"
        return name if folder == "." else f"{folder}/{name}"

    def _edit_passages(self, editable: Sequence[str]) -> Mapping[str, Passages]:
        """The files of these in which a line is left to be changed."""
        names = self.request.names
        if self.request.kind is Kind.RENAME:
            becomes = names[1] if len(names) == 2 else ""
            name = Passages(lines=names[:1], starts=(0,), becomes=becomes)
            left = [path for path in editable if not self._attempts.is_spent(path, names[0])]
            return dict.fromkeys(left, name)
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
            starts=self._likely(path, lines, starts),
            keeps_keys=self.request.kind is Kind.CHANGE,
            in_block=self.request.kind is Kind.FIX,
            tried=self._attempts.edits_of(path),
            dead_ends=self._attempts.dead_ends_of(path),
        )

    def _likely(self, path: str, lines: Sequence[str], starts: Sequence[int]) -> Sequence[int]:
        """Of the lines that can be changed those that are most likely meant: settings that are named, code that a failure names."""
        better: tuple[Collection[int], ...] = ()
        if self.request.kind is Kind.CHANGE:
            left = [at for at in starts if not self._attempts.is_made(path, lines[at])]
            better = (meant(self._wish, lines, left), left)
        elif self.request.kind is Kind.FIX:
            code = {at for at in starts if not is_comment(lines[at])}
            body = code & body_of(self._suspects, lines)
            better = ({at for at in body if not _DEFINES.match(lines[at])}, body, code)
        chosen = ([at for at in starts if at in some] for some in better)
        return next((found for found in chosen if found), starts)

    @property
    def _wish(self) -> str:
        """What was asked without the files that it names."""
        text = self.request.text
        for path in self.request.files:
            text = text.replace(path, " ").replace(PurePosixPath(path).name, " ")
        return text

    def _unread(self) -> tuple[str, ...]:
        looked = {*self._texts, *self._attempts.texts_of("file_read")}
        return tuple(file for file in self.survey.files if file not in looked)

    def _known(self, paths: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
        """Only where all files are known is one of them the only choice."""
        return {
            name: tuple(files)
            for name, files in paths.items()
            if name != "file_read" or self.survey.whole
        }

    def _asking(self) -> set[str]:
        asked = self._attempts.texts_of("ask_user")
        return {"ask_user"} if self._failures >= 2 and not asked else set()

    # -- what is said to the model --------------------------------------------------------------------
    def hint(self) -> tuple[str, Mapping[str, str]]:
        """The key of the next step's sentence and its fields; an empty key: nothing is said."""
        if self.stage is Stage.FREE:
            return "", {}
        names = self.request.names
        fields = {
            "old": names[0] if names else "",
            "new": names[1] if len(names) > 1 else "",
            "files": ", ".join(self._left),
            "path": self._appended() or ", ".join(self._new_paths() or self._editable()),
            **dict(zip(("file", "line", "said"), self._only or ("", "", ""), strict=True)),
            "module": self._module(),
            "signature": self.request.signature,
            "failure": self._failure,
            "first": self._first_failure or self.request.text[:WISH_CHARACTERS_MAX],
            "printed": self._printed,
            "why": self._why,
            "lines": "`, `".join(line[:TRIED_CHARACTERS_MAX] for line in self._made),
            "changed": ", ".join(list(self._changed)[:OPENED_MAX]),
            "wanted": self._wanted(),
            "tried": " ".join(self._vain.split())[:TRIED_CHARACTERS_MAX],
            "wish": self.request.text[:WISH_CHARACTERS_MAX],
        }
        return self._sentence(), fields

    def _wanted(self) -> str:
        """What has to be right: where it failed at first, and where it does since."""
        told = dict.fromkeys(filter(None, map(asserted, (self._first_failure, self._failure))))
        return " ; ".join(told) or self._first_failure or self.request.text[:WISH_CHARACTERS_MAX]

    def _sentence(self) -> str:
        kind = self.request.kind.value
        match self.stage:
            case Stage.EDIT if self._taken_back:
                return f"{kind}_back"
            case Stage.EDIT if self._failed_checks:
                return f"{kind}_again"
            case Stage.TEST if self._taken_back:
                return "add_test_back"
            case Stage.EDIT if self._appended():
                return "add_append"
            case Stage.ENOUGH if self._changed:
                return "changed"
            case Stage.ANSWER:
                return self._last_sentence()
            case Stage.ENOUGH if self.request.kind in CHANGING:
                return "unchanged"
            case stage:
                return f"{kind}_{stage.value}"

    def _last_sentence(self) -> str:
        if self.request.kind is Kind.RUN:
            return "done_script" if self._printed else f"run_{self._outcome}"
        if self._failed_checks or (self._changed and self._left):
            return "gave_up"
        if self._changed:
            return self._done_sentence()
        if self.request.kind in CHANGING:
            return "unchanged"
        one = self._only is not None and self.request.kind is Kind.FIND
        return "find_only" if one else f"{self.request.kind.value}_enough"

    def _done_sentence(self) -> str:
        if self.request.kind is Kind.SCRIPT and self._printed:
            return "done_script"
        return "done_change" if self.request.kind is Kind.CHANGE and any(self._made) else "done"

    def _module(self) -> str:
        """How a test imports what was changed."""
        changed = next((path for path in self._changed if path.endswith(".py")), "")
        return changed.removesuffix(".py").replace("/", ".")


def begin(text: str, survey: Survey, *, about_the_past: bool = False) -> Work | None:
    """The work that a request asks for, before anything was done.

    Returns:
        None when it is of no known kind; a question about what was said before is for the memory and not for the project.
    """
    work = Work(understood(text, survey.files), survey)
    kind = work.request.kind
    if kind is Kind.OTHER or (about_the_past and kind not in CHANGING):
        return None
    work._open()
    work.stage = work._stage()
    return work


def _is_log(path: str) -> bool:
    return PurePosixPath(path).suffix in (".log", ".out") or "log" in PurePosixPath(path).name


def _is_readme(path: str) -> bool:
    return PurePosixPath(path).name.lower().startswith("readme")
