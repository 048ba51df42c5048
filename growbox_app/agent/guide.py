"""The stage machine beside one turn: looks at the project before it, tells it what became of each call, and says what comes next.

The stages (`stages.py`, `works/`) decide and are pure; what touches the disk is here. Event-loop thread, the disk on others. Holds no truth:
a crash loses the stage, and the next turn begins with a new one.
"""

from __future__ import annotations

import asyncio
import re
import tomllib
from collections.abc import Mapping
from dataclasses import replace
from functools import cache, partial
from pathlib import Path

from growbox_app.agent import stages, survey
from growbox_app.agent.deep_search import cites_the_past
from growbox_app.agent.drafts import Draft
from growbox_app.agent.hands import Deed
from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.works.work import Move, Work
from growbox_app.executors.answers import CallFailed
from growbox_app.executors.base import Workspace
from growbox_app.executors.paths import shown
from growbox_app.executors.text_files import read_bytes, text_file
from growbox_app.paths import resources_path

ANSWER_NOW = Move(may_call=False)
ECHO_CHARACTERS, ECHO_MIN, ECHO_BYTES_MIN = 16, 2, 14
_TAGS = (
    "finish",
    "shell",
    "tool",
    "code_",
    "file_",
    "memory_",
    "task_",
    "git_",
    "function",
    "note>",
)
_SHOWN = ("[", *(f"{number}|" for number in range(1, 10)), *(f"<{name}" for name in _TAGS))
"""How hints and lines of files begin as the model is shown them, and calls that come too late, as it makes them up."""
_SENTENCE = re.compile(r"[.!?。！？：:\n]\s*")
NO_CALL = ToolCall(name="", arguments={})


class Guide:
    """The stages of one turn; `work` None: it is of no known kind, and as free as can be."""

    def __init__(self, language: str, work: Work | None = None) -> None:
        self._language = language
        self._work = work

    @property
    def move(self) -> Move:
        """What the model may do next."""
        if self._work is None:
            return Move()
        move = self._work.move()
        key, fields = self._work.hint()
        opening = hints(self._language).get(f"{key}_opening", "").format(**fields)
        narrowed = replace(move.narrowed, opening=opening)
        return replace(move, lead=opening, echoes=echoes(self._language, key), narrowed=narrowed)

    def next_call(self) -> ToolCall | None:
        """The call that follows by rule."""
        return self._work.next_call() if self._work is not None else None

    @property
    def language(self) -> str:
        """The prompt's language."""
        return self._language

    def next_draft(self) -> Draft | None:
        """Code that is to be written in a prompt of its own."""
        return self._work.next_draft() if self._work is not None else None

    @property
    def hint(self) -> str:
        """The next step in a sentence, in the prompt's language; empty when there is nothing to say."""
        key, fields = self._work.hint() if self._work is not None else ("", {})
        return hints(self._language)[key].format(**fields) if key else ""

    def repeated(self, call: ToolCall) -> None:
        """The model made the same call again and was not heard."""
        if self._work is not None:
            self._work.repeated(call)

    async def took(self, deed: Deed, *, by_rule: bool) -> None:
        """A call has ended."""
        result, work = deed.result, self._work
        if work is None or result is None:
            return
        workspace = deed.scene.workspace
        if result.ok and deed.call.name == "file_read":
            for path in deed.plan.reads:
                work.saw(shown(path, workspace), await asyncio.to_thread(_text, path))
        changed, before = "", None
        for change in deed.plan.changes if result.ok else ():
            changed = shown(change.path, workspace)
            before = None if change.before is None else text_file(change.before).text
            work.saw(changed, text_file(change.after or b"").text)
        came = partial(work.took, deed.call, ok=result.ok, text=result.text)
        came(path=changed, before=before, by_rule=by_rule)


async def guide_for(text: str, language: str, workspace: Workspace) -> Guide:
    """The guide of a turn that begins with this request."""
    if workspace.root is None:
        return Guide(language)
    found = await asyncio.to_thread(survey.survey, workspace.root)
    work = stages.begin(text, found, about_the_past=cites_the_past(text))
    return Guide(language, work)


@cache
def hints(language: str) -> Mapping[str, str]:
    """The sentences of `resources/prompts/<language>/stages.toml`."""
    path = resources_path() / "prompts" / language / "stages.toml"
    return {key: str(text) for key, text in tomllib.loads(path.read_text("utf-8")).items()}


@cache
def echoes(language: str, key: str) -> tuple[str, ...]:
    """How no sentence of an answer behind this hint begins: as what the model is told does; small models repeat that instead of doing it."""
    told = hints(language)
    others = (text for name, text in told.items() if not name.endswith("_opening"))
    long = (words for text in others for words in _begun(text) if _is_long(words))
    return tuple(dict.fromkeys((*_begun(told[key]), *long, *_SHOWN))) if key else ()


def _begun(text: str) -> list[str]:
    """How sentences begin, as far as they are the hint's own."""
    parts = (part.split("{", 1)[0].strip() for part in _SENTENCE.split(text))
    limit = ECHO_CHARACTERS
    return [p[: limit if p.isascii() else limit // 2] for p in parts if len(p) > ECHO_MIN]


def _is_long(words: str) -> bool:
    """Whether nobody begins a sentence so by chance."""
    return len(words.encode()) >= ECHO_BYTES_MIN


def _text(path: Path) -> str:
    """Read once more: what the model saw of it may be a part. Gone meanwhile: empty."""
    try:
        return text_file(read_bytes(path, path.name)).text
    except (OSError, CallFailed):
        return ""


def told(call: ToolCall) -> str:
    """A call that followed by rule, as the model is told of it."""
    arguments = call.arguments
    about = arguments.get("path") or arguments.get("command") or ""
    if not about and "regex" not in arguments:
        about = arguments.get("pattern", "")
    return f"{call.name} {about}".strip()
