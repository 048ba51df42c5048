"""Prompt files of `resources/prompts/<language>/`, and the rendering of blocks.

Everything here is a pure function of its arguments: no clock, no counter, so a rendered block never changes a byte.
"""

from __future__ import annotations

import datetime
import re
from functools import cache

from growbox_app.executors.memory_get import handle
from growbox_app.paths import resources_path
from memory.values import Node, Page, Role

_CHINESE = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_ABOUT = re.compile(r'[\s"<>]+')
ABOUT_CHARACTERS_MAX = 120
BROKEN_OFF_CHARACTERS = 200
_CLOSING = re.compile(r"<(/?\s*memory)", re.IGNORECASE)


@cache
def prompt(language: str, name: str) -> str:
    """The text of a prompt file, `name` without suffix."""
    path = resources_path() / "prompts" / language / f"{name}.md"
    return path.read_text(encoding="utf-8").strip()


def prompt_language(text: str) -> str:
    """The prompt language of a conversation, by its first question."""
    return "zh" if _CHINESE.search(text) else "en"


def system_prompt(
    language: str,
    *,
    tools: str,
    instructions: str,
    in_project: bool = False,
    deferred: str = "",
    head: str = "system",
) -> str:
    """The byte-stable head of a conversation. `tools` is empty where the window is too small for them, `deferred` names further ones."""
    parts = [prompt(language, head)]
    if in_project:
        parts.append(prompt(language, "project"))
    if tools:
        about = prompt(language, "tools")
        parts.append((about.splitlines()[-1] if in_project else about) + "\n" + tools)
    if deferred:
        parts.append(prompt(language, "deferred").format(names=deferred))
    if instructions.strip():
        parts.append(instructions.strip())
    return "\n\n".join(parts)


def stamp(at_ms: int) -> str:
    """Full local time stamp, `2026-11-30 09:41:07 +08:00`."""
    moment = datetime.datetime.fromtimestamp(at_ms / 1000, tz=datetime.UTC).astimezone()
    return moment.isoformat(sep=" ", timespec="seconds")


def local_date(at_ms: int) -> str:
    """Local date, YYYY-MM-DD."""
    return stamp(at_ms)[:10]


def memory_block(page: Page, text: str) -> str:
    """A paged-in memory under its loud header. `text` is the node's content or its head…tail; a passage says what it is of.

    The closing tag inside the content is defused, so that a memory cannot end its own block.
    """
    node = page.node
    speaker = {Role.USER: "user", Role.ASSISTANT: "assistant"}.get(node.role, node.kind.value)
    about = (
        f' about="{_ABOUT.sub(" ", node.context)[:ABOUT_CHARACTERS_MAX]}"' if node.context else ""
    )
    header = (
        f'<memory time="{stamp(node.created_at_ms)}" from="{speaker}"{about} found-by="{page.way}">'
    )
    safe = _CLOSING.sub("<\u200b\\1", text)
    return f"{header}\n{safe}\n</memory>\n"


def question_block(question: Node, text: str) -> str:
    """A question under its time stamp; the current time stands here and never in the prefix."""
    return f"[{stamp(question.created_at_ms)}]\n{text}"


def cut_line(language: str, characters: int) -> str:
    """Stands where a text is not shown in full, in a window that has no room to read on."""
    return prompt(language, "cut").format(characters=f"{characters:,}")


def broken_off(language: str, arguments: str) -> str:
    """What is said of the last call of a turn that did not come to its end, in the place of its result."""
    shown = " ".join(arguments.split())[:BROKEN_OFF_CHARACTERS]
    return prompt(language, "broken_off").format(arguments=shown)


def cut_reference(language: str, characters: int, node: Node, part: int) -> str:
    """The same, with the call that reads on from there."""
    fields = {"characters": f"{characters:,}", "id": handle(node), "part": part}
    return prompt(language, "cut_reference").format(**fields)


def tool_result_block(name: str, text: str) -> str:
    """The result of a tool call; data, not the user's words."""
    return f"[result of {name}]\n{text}\n"


def hint_block(text: str) -> str:
    """What makes sense next; GrowBox's own words, not the user's."""
    return f"[{text}]\n"
