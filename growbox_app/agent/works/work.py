"""What all known kinds of work have in common: stages, calls that follow by rule, what came of calls, what the model may do. Pure.

A kind is a subclass, and overrides what is its own: `_open` looks around before the model's first word, `_searched`, `_ran` and `_follow` say what
follows from a result, `_stage` where the work stands, `_look_tools` what can be looked at, `_sentence` and `_last_sentence` what the model is
told; `_fields` is what those sentences name. Sentences are in `resources/prompts/<language>/stages.toml`, by kind and stage.

Owned by the turn that runs it. Source: design 5.1.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from growbox_app.agent.attempts import CHANGES, Attempts
from growbox_app.agent.drafts import Draft
from growbox_app.agent.kinds import Request
from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.readings import FAILURE_CHARACTERS_MAX, decisive, printed
from growbox_app.agent.survey import Survey
from growbox_app.executors.call_grammar import Narrowing
from growbox_app.executors.syntax import BROKEN

WISH_CHARACTERS_MAX, TRIED_CHARACTERS_MAX = 400, 120
LOOKS_MAX = 4
"""Looks of the model before it has to go on."""
HEAD_LINES = 12
OPENED_MAX = 3
"""Files that are read before the model's first word."""
NAMES_SOUGHT_MAX = 2
LOOK_TOKENS = 160
LOOKING = frozenset({"code_search", "file_list", "file_read", "code_outline"})
RAN = "exit code"
"""How the result of a command begins that did run."""
HEAT_STEP, HEAT_MAX = 0.3, 0.9
_OPTIONAL = frozenset({"path", "first", "last"})
Tools = Mapping[str, Sequence[str] | None]
"""Tools, and the files that each may name; None: any."""


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


@dataclass  # without slots, for those would make each class anew, and `super()` in a kind would name the old one
class Work:
    """One request on its way through its stages.

    `_texts` are the files as far as they were read, `_changed` those that were changed, `_first` what they were before, `_made` the new lines.
    """

    request: Request
    survey: Survey
    stage: Stage = Stage.FREE
    _queue: deque[ToolCall] = field(default_factory=deque)
    _attempts: Attempts = field(default_factory=Attempts)
    _texts: dict[str, str] = field(default_factory=dict)
    _changed: dict[str, None] = field(default_factory=dict)
    _first: dict[str, str | None] = field(default_factory=dict)
    _made: dict[str, None] = field(default_factory=dict)
    _looks: int = 0
    _failures: int = 0
    _in_vain: int = 0
    _failed_checks: int = 0
    _failure: str = ""
    _printed: str = ""

    # -- what is done by rule ---------------------------------------------------------------------
    def start(self) -> None:
        """Before the model's first word."""
        self._open()
        if not self._queue:
            self._call("file_list")
        self.stage = self._stage()

    def next_call(self) -> ToolCall | None:
        """The call that follows by rule, if one does."""
        return self._queue.popleft() if self._queue else None

    def next_draft(self) -> Draft | None:
        """Code that is to be written in a prompt of its own, before the model is asked in the conversation."""
        return None

    def _open(self) -> None:
        """What is looked at first: the files that are named; where none is, the names."""
        for path in self.request.files[:OPENED_MAX]:
            self._read(path)
        if not self.request.files:
            for name in self.request.names[:NAMES_SOUGHT_MAX]:
                self._call("code_search", pattern=name)

    def _read(self, path: str) -> None:
        self._call("file_read", path=path)

    def _head(self, path: str) -> None:
        """The first lines of a file, which say what it is."""
        self._call("file_read", path=path, first="1", last=str(HEAD_LINES))

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
        changes = call.name in CHANGES
        good = ok and bool(path or not changes)  # a change that left its file as it was is none
        self._attempts.note(call)
        self._came(call, ok=good, text=text)
        if good and by_rule:
            self._followed(call)
        if good and changes:
            self._wrote(call, path, before, text)
        self._settle()

    def repeated(self, call: ToolCall) -> None:
        """The model made a call again that had brought nothing, or one that broke off: it is not offered any more."""
        self._in_vain += 1
        self._attempts.note(call)
        if call.name == "file_edit":
            self._attempts.spend(call)
        self._settle()

    def _came(self, call: ToolCall, *, ok: bool, text: str) -> None:
        """What a call's result says."""
        self._failures += not ok
        self._in_vain = 0 if ok else self._in_vain + 1
        self._failure = self._failure_in(call, text) or self._failure
        match call.name:
            case "shell":
                self._ran(ok=ok, text=text)
            case "file_edit" if not ok:
                self._attempts.spend(call)  # the same again would fail again
            case "code_search" if ok:
                self._looks += bool(self._matched(text)) or not text.startswith("no match")
                self._searched(call, text)
            case name if name in LOOKING:
                self._looks += ok
            case _:
                pass

    def _failure_in(self, call: ToolCall, text: str) -> str:
        """The failure that counts, in a result that may tell one."""
        return decisive(text) if call.name == "shell" else ""

    def _followed(self, call: ToolCall) -> None:
        """A call that follows by rule went well."""

    def _searched(self, call: ToolCall, text: str) -> None:
        """A search went well, though it may have found nothing."""

    def _matched(self, text: str) -> list[str]:
        """The files that a search has found."""
        return [line for line in text.split("\n") if line in self.survey.files]

    def _ran(self, *, ok: bool, text: str) -> None:
        """A command has ended; behind a change it is its check."""
        self._printed = printed(text) if ok else ""
        if self._changed:
            self._failed_checks = 0 if ok else self._failed_checks + 1

    def _wrote(self, call: ToolCall, path: str, before: str | None, text: str) -> None:
        """A file was changed: what it was before is not written again, and what follows from it is called."""
        self._changed[path] = None
        self._first.setdefault(path, before)
        self._made |= dict.fromkeys(_new_lines(call))
        self._attempts.changed(call, path)
        if BROKEN in text:
            self._failure = text.split(BROKEN, 1)[1].strip()[:FAILURE_CHARACTERS_MAX]
            self._failed_checks += 1
        else:
            self._follow(path)

    def _follow(self, path: str) -> None:
        """What is called behind a change that broke nothing."""

    # -- where the work stands --------------------------------------------------------------------
    def _settle(self) -> None:
        """While calls follow by rule, it stands where it stood."""
        if not self._queue:
            self.stage = self._stage()

    def _stage(self) -> Stage:
        raise NotImplementedError

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
            case stage:
                must = stage is Stage.LOOK
                narrowed = self._narrowed(self._look_tools(), must_call=must)
                return Move(narrowed=narrowed, tokens=LOOK_TOKENS if must else 0)

    def _look_tools(self) -> Tools:
        """Tools that can look at something now."""
        tools = {**dict.fromkeys(LOOKING), "file_read": self._unread()}
        if "" in self._attempts.texts_of("file_list"):
            del tools["file_list"]  # it has no argument that could be another one
        return tools

    def _narrowed(self, tools: Tools, *, must_call: bool) -> Narrowing:
        """Only where all files are known is one of them the only choice."""
        choices = {
            name: tuple(files)
            for name, files in tools.items()
            if files is not None and (name != "file_read" or self.survey.whole)
        }
        return Narrowing(
            tools=frozenset(tools) | self._asking(),
            paths=choices,
            optional=_OPTIONAL,
            must_call=must_call,
        )

    def _unread(self) -> tuple[str, ...]:
        looked = {*self._texts, *self._attempts.texts_of("file_read")}
        return tuple(file for file in self.survey.files if file not in looked)

    def _asking(self) -> frozenset[str]:
        asked = self._attempts.texts_of("ask_user")
        return frozenset({"ask_user"} if self._failures >= 2 and not asked else ())

    # -- what is said to the model --------------------------------------------------------------------
    def hint(self) -> tuple[str, Mapping[str, str]]:
        """The key of the next step's sentence and its fields; an empty key: nothing is said."""
        return ("", {}) if self.stage is Stage.FREE else (self._sentence(), self._fields())

    def _fields(self) -> dict[str, str]:
        """What sentences of any kind name."""
        return {
            "wish": self.request.text[:WISH_CHARACTERS_MAX],
            "failure": self._failure,
            "printed": self._printed,
            "lines": "`, `".join(line[:TRIED_CHARACTERS_MAX] for line in self._made),
            "changed": ", ".join(list(self._changed)[:OPENED_MAX]),
        }

    def _sentence(self) -> str:
        match self.stage:
            case Stage.ANSWER:
                return self._last_sentence()
            case Stage.ENOUGH:
                return "changed" if self._changed else self._unchanged_sentence()
            case stage:
                return f"{self.request.kind}_{stage}"

    def _last_sentence(self) -> str:
        """What an answer is to say."""
        if self._failed_checks:
            return "gave_up"
        return "done" if self._changed else self._unchanged_sentence()

    def _unchanged_sentence(self) -> str:
        return f"{self.request.kind}_enough"


def _new_lines(call: ToolCall) -> list[str]:
    """What an edit writes that was not there."""
    old = {" ".join(line.split()) for line in call.arguments.get("old", "").split("\n")}
    new = (" ".join(line.split()) for line in call.arguments.get("new", "").split("\n"))
    return [line for line in new if line and line not in old]
