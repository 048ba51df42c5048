"""Code that is written in a small prompt of its own, and becomes a call of file_edit that takes the way of every call.

Alone with a function and what tests say of it, a small model is right far more often than in the middle of a long conversation, where it
copies the line that is wrong. The prompt holds the function, the checks, and why the last try failed; a grammar binds the answer to the function's
name. Code in the prompt is data: all that can come of it is other code for the same place. Holds no truth; event-loop thread, the
writing is the engine's background context, and the conversation's cache stays as it is.
"""

from __future__ import annotations

import textwrap
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from growbox_app.agent.protocol import ToolCall
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineDied
from growbox_app.engine.supervisor import EngineSupervisor
from growbox_app.executors import gbnf
from growbox_app.paths import resources_path

DRAFT_TOKENS = 400
MORE_LINES = 12
"""Lines that a function may have more than before."""
RETRY_HEAT = 0.7
"""The temperature of a second try; the first is greedy."""
_FENCE = "```"


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A function of a file that is to be written anew.

    `code` is all of it as it stands there, `begins` the beginning of it that stays, both with their indentation; `checks` are what tests say of it.
    `tried` is not written again; `failure` says why the last of them is wrong.
    """

    path: str
    code: str
    begins: str
    checks: Sequence[str]
    tried: Sequence[str] = ()
    failure: str = ""


@cache
def _sentences(language: str) -> Mapping[str, str]:
    path = resources_path() / "prompts" / language / "draft.toml"
    return {key: str(text) for key, text in tomllib.loads(path.read_text("utf-8")).items()}


def request(request_id: int, language: str, draft: Draft) -> p.Write:
    """What the engine is asked."""
    said = _sentences(language)
    wrong = textwrap.dedent((draft.tried or [draft.code])[-1])
    parts = [said["code"], f"{_FENCE}python\n{wrong}\n{_FENCE}\n"]
    if draft.failure:
        parts += [said["failure"], draft.failure, "\n"]
    checks = "\n".join(draft.checks)
    parts += [said["checks"], f"{_FENCE}python\n{checks}\n{_FENCE}\n"] if checks else []
    return p.Write(
        id=request_id,
        messages=(
            p.Message(role="system", parts=(said["head"],)),
            p.Message(role="user", parts=(*parts, said["again" if draft.tried else "wish"])),
        ),
        max_tokens=DRAFT_TOKENS,
        grammar=grammar(draft),
        temperature=RETRY_HEAT if draft.tried else 0.0,
    )


def grammar(draft: Draft) -> str:
    """GBNF of the function in a fenced block, from its beginning on."""
    opening = gbnf.literal(f"{_FENCE}python\n{_beginning(draft)}")
    lines = draft.code.count("\n") + MORE_LINES
    return (
        f'root ::= {opening} line ("\\n" more){{0,{lines}}} "\\n{_FENCE}"\n'
        'line ::= [^`\\n]+\nmore ::= ("    " [^`\\n]+)?\n'
    )


def taken(text: str, draft: Draft) -> ToolCall | None:
    """The call that puts a draft in its place; None where it is none, or nothing new."""
    body = text.removeprefix(f"{_FENCE}python\n")
    body, fence, _ = body.rpartition(f"\n{_FENCE}")
    if not fence or not body.startswith(_beginning(draft)):
        return None
    new = _indented(body.rstrip(), _indentation(draft.code))
    known = {_bare(code) for code in (draft.code, *draft.tried)}
    if _bare(new) in known:
        return None
    arguments = {"path": draft.path, "old": draft.code, "new": new}
    return ToolCall(name="file_edit", arguments=arguments)


async def write(engine: EngineSupervisor, draft: Draft, language: str) -> ToolCall | None:
    """Has a draft written; None where nothing came of it, also for an outage: then the conversation goes on without."""
    if _FENCE in "\n".join((draft.code, *draft.checks)):
        return None
    try:
        client = engine.client
        asked = request(client.next_id(), language, draft)
        done = await client.request(asked, p.DoneWrite)
    except (EngineDied, p.EngineFault):
        return None
    return taken(done.text, draft) if done.complete else None


def _beginning(draft: Draft) -> str:
    """`begins` as it stands in the prompt: not indented."""
    cut = len(_indentation(draft.code))
    return "\n".join(line[cut:] for line in draft.begins.split("\n"))


def _indentation(code: str) -> str:
    return code[: len(code) - len(code.lstrip())]


def _indented(code: str, by: str) -> str:
    return textwrap.indent(code, by)


def _bare(code: str) -> str:
    """Equal for code that differs in blanks and empty lines only."""
    return "\n".join(line.rstrip() for line in textwrap.dedent(code).split("\n") if line.strip())
