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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import PurePosixPath

from growbox_app.agent.kinds import CHANGING, Kind, Request, understood
from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.survey import PYTHON, Survey, is_test
from growbox_app.executors.call_grammar import Narrowing, Passages
from growbox_app.executors.syntax import BROKEN

WISH_CHARACTERS_MAX = 400
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
_OPTIONAL = frozenset({"path", "first", "last"})
_ERRORS = r"error|exception|fatal|fail|traceback|critical|错误|异常|失败"
_RUNNERS = {".py": PYTHON, ".sh": "sh", ".js": "node"}
_TRACE = re.compile(r'File "([^"\n]+)", line (\d+)|([\w./\\-]+\.\w{1,5}):(\d+)')
_NUMBER = re.compile(r"^\d+[:|-] ?")
_ERROR = re.compile(
    r"\w*(?:Error|Exception)\b.*[:：]|\berror\b *(?:\[\w+\])?:|\bpanic|\bfatal|错误|异常",
    re.IGNORECASE,
)
FAILURE_CHARACTERS_MAX = 200
AROUND_LINES = 12
HEAT_STEP, HEAT_MAX = 0.3, 0.9
_DEFINED = r"(?:\b(?:def|class|function|func|fn|struct|interface|enum|type|const|let|var)\s+{name}\b|^\s*{name}\s*(?::[^=]+)?=)"
"""A definition, in the languages that people mostly write."""


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
    freedom. `lead`: the words that an answer begins with.
    """

    narrowed: Narrowing = field(default_factory=Narrowing)
    may_call: bool = True
    tokens: int = 0
    heat: float = 0.0
    lead: str = ""


@dataclass(slots=True)
class Work:
    """One request on its way through its stages."""

    request: Request
    survey: Survey
    stage: Stage = Stage.FREE
    _queue: deque[ToolCall] = field(default_factory=deque)
    _texts: dict[str, str] = field(default_factory=dict)
    _changed: dict[str, None] = field(default_factory=dict)
    _left: tuple[str, ...] = ()
    _looks: int = 0
    _failures: int = 0
    _in_vain: int = 0
    _found: bool = False
    _failure: str = ""
    _failed_checks: int = 0
    _passed: bool = False
    _spent: set[tuple[str, str]] = field(default_factory=set)

    # -- what is done by rule ---------------------------------------------------------------------
    def next_call(self) -> ToolCall | None:
        """The call that follows by rule, if one does."""
        return self._queue.popleft() if self._queue else None

    def _open(self) -> None:
        """What is looked at before the model's first word."""
        request, kind = self.request, self.request.kind
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
            pattern = _DEFINED.format(name=name)
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
        self, call: ToolCall, *, ok: bool, text: str, path: str = "", by_rule: bool = False
    ) -> None:
        """A call has ended, with this for the model; `path` is what it changed."""
        kind = self.request.kind
        self._failures += not ok
        self._in_vain = 0 if ok else self._in_vain + 1
        if call.name == "shell" or kind is Kind.EXPLAIN:
            self._failure = _decisive(text) or self._failure
        match call.name:
            case "shell":
                self._ran(ok=ok, text=text)
            case "file_edit" | "file_write" | "file_append":
                self._wrote(path or call.arguments.get("path", ""), ok=ok)
                if call.name == "file_edit" and not ok:
                    self._spend(call)  # the same again would fail again
                if BROKEN in text:
                    self._failure = text.split(BROKEN, 1)[1].strip()[:FAILURE_CHARACTERS_MAX]
                    self._failed_checks += 1
                    self._queue.clear()  # it would only fail
            case "code_search" if ok:
                self._searched(call, text)
                self._found |= by_rule and kind is Kind.FIND and self._looks > 0
            case name if name in _LOOKING:
                self._looks += ok
                self._found |= ok and kind in (Kind.EXPLAIN, Kind.SUMMARISE) and by_rule
            case _:
                pass
        if not self._queue:
            self.stage = self._stage()

    def repeated(self, call: ToolCall) -> None:
        """The model made a call again that had brought nothing: an edit of this passage is not offered any more."""
        self._in_vain += 1
        self._spend(call)

    def _spend(self, call: ToolCall) -> None:
        old = call.arguments.get("old", "").strip()
        self._spent.add((call.arguments.get("path", ""), old.split("\n", 1)[0].strip()))

    def _ran(self, *, ok: bool, text: str) -> None:
        if self._changed:
            self._failed_checks = 0 if ok else self._failed_checks + 1
            self._passed = ok
            return
        if self.request.kind is Kind.FIX and not ok:
            self._read_suspects(text)

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

    def _wrote(self, path: str, *, ok: bool) -> None:
        if not ok:
            return
        self._changed[path] = None
        self._spent = {spent for spent in self._spent if spent[0] != path}
        kind = self.request.kind
        if kind is Kind.RENAME and self.request.names:
            self._call("code_search", pattern=self.request.names[0])
        elif kind is Kind.SCRIPT and PurePosixPath(path).suffix in _RUNNERS:
            runner = _RUNNERS[PurePosixPath(path).suffix]
            self._call("shell", command=self.request.command or f"{runner} {path}")
        elif kind is Kind.FIX or (kind is Kind.ADD and not self._lacks_test()):
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
        if kind is Kind.OTHER:
            return Stage.FREE
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
        if self._failed_checks:
            return Stage.EDIT
        if kind is Kind.ADD and self._lacks_test():
            return Stage.TEST
        if kind is Kind.SCRIPT and not self._passed:
            return Stage.VERIFY
        return Stage.ENOUGH if kind is Kind.CHANGE else Stage.ANSWER

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
        return replace(self._move(), heat=heat)

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
        paths: dict[str, Sequence[str]] = {"file_read": self._unread()}
        passages: Mapping[str, Passages] = {}
        if self.request.kind is Kind.CHANGE and self._changed:
            tools = {"file_edit", "file_read"}
            paths["file_edit"] = tuple(self._texts)
            passages = self._passages(self._texts)
        narrowed = Narrowing(
            tools=frozenset(tools | self._asking()),
            paths=self._known(paths),
            passages=passages,
            optional=_OPTIONAL,
            must_call=must,
        )
        return Move(narrowed=narrowed, tokens=LOOK_TOKENS if must else 0)

    def _edit(self) -> Move:
        kind, tools = self.request.kind, {"file_edit"}
        editable = self._editable()
        paths: dict[str, Sequence[str]] = {"file_edit": editable}
        if kind in (Kind.FIX, Kind.CHANGE) and self._looks < LOOKS_MAX + OPENED_MAX:
            tools.add("file_read")
            paths["file_read"] = self._unread()
        new = self._new_paths()
        if new or not editable:
            tools.add("file_write")
            paths |= {"file_write": new} if new else {}
        if kind is Kind.ADD:
            tools.add("file_append")
            paths["file_append"] = editable
        if kind is Kind.SCRIPT:
            tools.discard("file_edit")
        narrowed = Narrowing(
            tools=frozenset(tools | self._asking()),
            paths=self._known(paths),
            passages=self._edit_passages(editable),
            optional=_OPTIONAL,
            fixed={"every": "true"} if kind is Kind.RENAME else {},
            must_call=True,
        )
        writes = tools & {"file_write", "file_append"}
        return Move(narrowed=narrowed, tokens=WRITE_TOKENS if writes else EDIT_TOKENS)

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
            return tests or self._test_place()
        return tuple(path for path in new if path not in tests)

    def _test_place(self) -> tuple[str, ...]:
        """Where the project's own habit puts the test of what was changed."""
        changed = next((path for path in self._changed if path.endswith(".py")), "")
        if not changed:
            return ()
        others = [file for file in self.survey.files if is_test(file)]
        folder = str(PurePosixPath(others[0]).parent) if others else "."
        name = f"test_{PurePosixPath(changed).stem}.py"
        place = name if folder == "." else f"{folder}/{name}"
        return (place,) if place not in self.survey.files else ()

    def _edit_passages(self, editable: Sequence[str]) -> Mapping[str, Passages]:
        if self.request.kind is Kind.RENAME:
            name = Passages(lines=self.request.names[:1], starts=(0,))
            return dict.fromkeys(editable, name)
        return self._passages({path: self._texts[path] for path in editable})

    def _passages(self, texts: Mapping[str, str]) -> Mapping[str, Passages]:
        found: dict[str, Passages] = {}
        for path, text in texts.items():
            lines = text.split("\n")[:PASSAGE_LINES_MAX]
            places = Counter(line.strip() for line in text.split("\n"))
            starts = [
                at
                for at, line in enumerate(lines)
                if line.strip() and (path, line.strip()) not in self._spent
            ]
            # A line that stands at several places names none of them.
            starts = [at for at in starts if places[lines[at].strip()] == 1] or starts
            keeps = self.request.kind is Kind.CHANGE
            found[path] = Passages(lines=lines, starts=starts, keeps_keys=keeps)
        return found

    def _unread(self) -> tuple[str, ...]:
        return tuple(file for file in self.survey.files if file not in self._texts)

    def _known(self, paths: Mapping[str, Sequence[str]]) -> Mapping[str, Sequence[str]]:
        """Only where all files are known is one of them the only choice."""
        return {
            name: tuple(files)
            for name, files in paths.items()
            if name != "file_read" or self.survey.whole
        }

    def _asking(self) -> set[str]:
        return {"ask_user"} if self._failures >= 2 else set()

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
            "path": ", ".join(self._new_paths()) or ", ".join(self._editable()),
            "module": self._module(),
            "failure": self._failure,
            "wish": self.request.text[:WISH_CHARACTERS_MAX],
        }
        kind = self.request.kind.value
        match self.stage:
            case Stage.ANSWER if self._failed_checks:
                return "gave_up", fields
            case Stage.EDIT if self._failed_checks:
                return f"{kind}_again", fields
            case Stage.ENOUGH if self._changed:
                return "changed", fields
            case Stage.ANSWER if self._changed:
                return "done", fields
            case Stage.ANSWER | Stage.ENOUGH if self.request.kind in CHANGING:
                return "unchanged", fields
            case Stage.ANSWER:
                return f"{kind}_enough", fields
            case stage:
                return f"{kind}_{stage.value}", fields

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


def _decisive(text: str) -> str:
    """The last line that names an error; small models find it only when it stands at the end."""
    lines = [_NUMBER.sub("", line).strip() for line in text.split("\n")]
    return next((line for line in reversed(lines) if _ERROR.search(line)), "")[
        :FAILURE_CHARACTERS_MAX
    ]


def _is_log(path: str) -> bool:
    return PurePosixPath(path).suffix in (".log", ".out") or "log" in PurePosixPath(path).name


def _is_readme(path: str) -> bool:
    return PurePosixPath(path).name.lower().startswith("readme")
