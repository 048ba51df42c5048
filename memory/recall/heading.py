"""What the judge reads of a node: its content, and before it when and by whom it was said. Pure.

"When did I meet Ann?" has no answer in "Met Ann today", so whatever was said or noted at some time is headed by it:
`[8 May, 2023] User: …`, `[2023年5月8日] 用户：…`, in the language of the question, which is the judge's. A line of a transcript names its
speaker itself (`[8 May, 2023] Ann: …`). A passage of a document is bare: its time is that of a file, and who asks when
something happened must not be told when it was saved.

These are the two forms that the judge was measured on (`tests/benchmarks/judge_data.py`): English on headed lines of
conversations, Chinese on bare passages of documents. What a text is decides, not its language: a Chinese message without its
day could never answer 什么时候. One node gives the same bytes at all times, in one language and time zone.

Where a judge was unsure, sleep lets it look again at the text among its neighbours (`in_context`): the end of what was said before
it, the beginning of what was said after it; a passage of a document below what stands above it. "Yes, twice" says nothing alone.
"""

from __future__ import annotations

import re
from dataclasses import replace
from datetime import date, datetime
from typing import Final

from memory.text import is_unspaced, speaker
from memory.values import Node, NodeKind, Role

HEADING_VERSION: Final = "1"
"""A verdict on another form of the text does not count."""
_HAN = re.compile("[\u3400-\u4dbf\u4e00-\u9fff]")
_MONTHS: Final = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)  # the C library's names would follow the system's language
# Characters of a neighbour: three short texts are read in one window of the judge.
_AROUND, _AROUND_UNSPACED = 160, 60
_BARE: Final = frozenset({NodeKind.DOCUMENT, NodeKind.CHUNK})
_SPEAKERS: Final = {
    Role.USER: ("User: ", "用户："),
    Role.ASSISTANT: ("Assistant: ", "助手："),
}


def headed(node: Node, question: str) -> str:
    """The text of a node for a judge who is asked this question."""
    if node.kind in _BARE:
        return node.content
    chinese = _HAN.search(question) is not None
    day = datetime.fromtimestamp(node.created_at_ms / 1000).date()  # noqa: DTZ006 - local time is what people mean
    who = ""
    if node.kind is NodeKind.MESSAGE and not speaker(node.content):
        who = _SPEAKERS.get(node.role, ("", ""))[chinese]
    return f"[{_date(day, chinese=chinese)}] {who}{node.content}"


def in_context(node: Node, before: Node | None, after: Node | None, question: str) -> str:
    """The text of a node for a second look: with what its neighbours add to its meaning, and no more of them than that."""
    if node.kind in _BARE:
        return f"{node.context}: {node.content}" if node.context else node.content
    parts = [headed(node, question)]
    if before is not None:
        parts.insert(0, headed(_excerpt(before, end=True), question))
    if after is not None:
        parts.append(headed(_excerpt(after, end=False), question))
    return "\n".join(parts)


def _excerpt(node: Node, *, end: bool) -> Node:
    text, limit = node.content, _AROUND_UNSPACED if is_unspaced(node.content) else _AROUND
    if len(text) <= limit:
        return node
    return replace(node, content=f"…{text[-limit:]}" if end else f"{text[:limit]}…")


def _date(day: date, *, chinese: bool) -> str:
    if chinese:
        return f"{day.year}年{day.month}月{day.day}日"
    return f"{day.day} {_MONTHS[day.month - 1]}, {day.year}"
