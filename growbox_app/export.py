"""A conversation as a Markdown file: what was said, by whom and when, what an answer leant on, and what was done for it.

Pure. The text of messages is put in as it is (it is Markdown already); headings of the file are of the first and second level, so that
those of messages stand below. Secrets that can be told by their look are hidden: an export leaves the machine.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from datetime import UTC, datetime, tzinfo

from growbox_app.agent.turn import decode_trace
from growbox_app.api import ToolCalled
from growbox_app.audit_log import redacted
from growbox_app.text import tr
from memory.values import Conversation, Node, NodeStatus, Project, Role

NAME_CHARACTERS_MAX = 80
_NOT_IN_NAMES = re.compile(r'[\x00-\x1f<>:"/\\|?*]+')
_RESERVED = re.compile(r"(?i)(con|prn|aux|nul|com\d|lpt\d)(\..*)?$")


def markdown_of(
    conversation: Conversation,
    messages: Sequence[Node],
    project: Project | None = None,
    *,
    zone: tzinfo | None = None,
) -> str:
    """The file's text.

    Args:
        conversation: whose messages they are.
        messages: in order.
        project: the one it belongs to.
        zone: of the times shown; None: this machine's.
    """
    title = " ".join(conversation.title.split()) or tr("conversation.untitled")
    facts = [tr("export.begun", when=_when(conversation.created_at_ms, zone))]
    if project is not None:
        facts.append(tr("export.project", name=project.name))
    parts = [f"# {title}", " · ".join(facts)]
    for message in messages:
        parts += _message(message, zone)
    return redacted("\n\n".join(parts)) + "\n"


def _message(message: Node, zone: tzinfo | None) -> list[str]:
    who = tr("role.user") if message.role is Role.USER else tr("role.assistant")
    parts = [f"## {who} · {_when(message.created_at_ms, zone)}"]
    trace = decode_trace(message.trace)
    parts += [
        f"- `{_line(call.name)}` {_line(call.arguments)} – {_came_to(call)}" for call in trace.calls
    ]
    parts.append(message.content.strip() or tr("export.empty"))
    if message.status in (NodeStatus.CANCELLED, NodeStatus.FAILED, NodeStatus.PARTIAL):
        parts.append(f"*({tr(f'answer.{message.status.value}')})*")
    if trace.memories:
        titles = "; ".join(_line(memory.title) for memory in trace.memories)
        parts.append(f"> {tr('export.memories')}: {titles}")
    return parts


def _came_to(call: ToolCalled) -> str:
    if call.cut_off:
        return tr("agent.cut_off_exit" if call.cut_off == "exit" else "agent.cut_off_stop")
    return _line(call.result)


def _line(text: str) -> str:
    return " ".join(text.split())


def _when(moment_ms: int, zone: tzinfo | None) -> str:
    return datetime.fromtimestamp(moment_ms / 1000, UTC).astimezone(zone).strftime("%Y-%m-%d %H:%M")


def file_name(conversation: Conversation) -> str:
    """A name for the file that every system takes."""
    title = _NOT_IN_NAMES.sub(" ", conversation.title)
    name = " ".join(title.split())[:NAME_CHARACTERS_MAX].strip(" .")
    if not name or _RESERVED.match(name):
        name = f"GrowBox {name}".strip()
    return f"{name}.md"


def file_names(conversations: Sequence[Conversation]) -> list[str]:
    """Names of which no two are the same, also where case makes no difference."""
    taken: set[str] = set()
    names: list[str] = []
    for conversation in conversations:
        name = file_name(conversation)
        stem, number = name.removesuffix(".md"), 2
        while name.casefold() in taken:
            name = f"{stem} ({number}).md"
            number += 1
        taken.add(name.casefold())
        names.append(name)
    return names
