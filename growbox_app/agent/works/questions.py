"""Work that changes nothing: questions about the project, and a command that is to be run and no more. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import PurePosixPath

from typing_extensions import override

from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.readings import DEFINED, decisive, only_match, places_in
from growbox_app.agent.works.work import (
    LOOKING,
    LOOKS_MAX,
    NAMES_SOUGHT_MAX,
    RAN,
    Stage,
    Work,
)

DESCRIBED_MAX = 5
AROUND_LINES = 12
_ERRORS = r"error|exception|fatal|fail|traceback|critical|错误|异常|失败"
_DENIED = "Not allowed: "
"""How the result begins of one that the policy denied; the reason follows."""


@dataclass
class Question(Work):
    """A look is needed, more are possible; with what is asked for in view, or after some looks, comes the answer."""

    _found: bool = False

    @override
    def _stage(self) -> Stage:
        if not self._looks and self._failures < LOOKS_MAX:
            return Stage.LOOK
        return Stage.ENOUGH if self._looks < LOOKS_MAX and not self._found else Stage.ANSWER

    @override
    def _followed(self, call: ToolCall) -> None:
        self._found |= call.name in LOOKING and call.name != "code_search"


@dataclass
class Find(Question):
    """Where something is defined, or stands: by a search for definitions first, then for the bare word."""

    _only: tuple[str, str, str] | None = None

    @override
    def _open(self) -> None:
        for name in () if self.request.files else self.request.names[:NAMES_SOUGHT_MAX]:
            if name.isidentifier():
                self._call("code_search", pattern=DEFINED.format(name=name), regex="true")
            else:
                self._call("code_search", pattern=name)

    @override
    def _searched(self, call: ToolCall, text: str) -> None:
        self._only = only_match(text, self.survey.files)
        if not self._matched(text) and "regex" in call.arguments:
            for name in self.request.names[:NAMES_SOUGHT_MAX]:
                self._call("code_search", pattern=name)

    @override
    def _followed(self, call: ToolCall) -> None:
        self._found |= call.name == "code_search" and self._looks > 0

    @override
    def _last_sentence(self) -> str:
        sentence = super()._last_sentence()
        return "find_only" if self._only and sentence == "find_enough" else sentence

    @override
    def _fields(self) -> dict[str, str]:
        file, line, said = self._only or ("", "", "")
        return super()._fields() | {"file": file, "line": line, "said": said}


class Explain(Question):
    """Why something failed: the errors in a log, and the code that they name."""

    @override
    def _read(self, path: str) -> None:
        if _is_log(path):
            found = {"pattern": _ERRORS, "regex": "true", "context": "3"}
            self._call("code_search", path=path, **found)
        else:
            super()._read(path)

    @override
    def _failure_in(self, call: ToolCall, text: str) -> str:
        return decisive(text)

    @override
    def _searched(self, call: ToolCall, text: str) -> None:
        """The code that an error names last."""
        for file, line in reversed(places_in(text, self.survey.files)):
            if file not in self.request.files:
                first, last = max(int(line) - AROUND_LINES, 1), int(line) + AROUND_LINES
                self._call("file_read", path=file, first=str(first), last=str(last))
                return


class Summarise(Question):
    """What a folder is for: by how its files begin, what explains it first."""

    @override
    def _open(self) -> None:
        folder = self.request.folders[0] if self.request.folders else "."
        inside = [f for f in self.survey.files if folder == "." or f.startswith(folder + "/")]
        self._call("file_list", path=folder)
        described = sorted(inside, key=lambda f: (not _is_readme(f), f.count("/"), f))
        for path in described[:DESCRIBED_MAX]:
            self._head(path)


@dataclass
class Run(Work):
    """A command that is spelled out: it is run, and its end told. Were there no shell, the model would do what it can."""

    _outcome: str = ""
    _why: str = ""

    @override
    def _open(self) -> None:
        self._call("shell", command=self.request.command)

    @override
    def _ran(self, *, ok: bool, text: str) -> None:
        super()._ran(ok=ok, text=text)
        ended = "failed" if text.startswith(RAN) else "refused"
        self._outcome = "done" if ok else "denied" if text.startswith(_DENIED) else ended
        self._why = text.removeprefix(_DENIED).split(". ", 1)[0]

    @override
    def _stage(self) -> Stage:
        return Stage.ANSWER if self._outcome else Stage.FREE

    @override
    def _last_sentence(self) -> str:
        return "done_script" if self._printed else f"run_{self._outcome}"

    @override
    def _fields(self) -> dict[str, str]:
        return super()._fields() | {"why": self._why}


def _is_log(path: str) -> bool:
    return PurePosixPath(path).suffix in (".log", ".out") or "log" in PurePosixPath(path).name


def _is_readme(path: str) -> bool:
    return PurePosixPath(path).name.lower().startswith("readme")
