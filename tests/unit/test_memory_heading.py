"""What the judge reads of a node: measured forms, both languages, stable bytes."""

from __future__ import annotations

from datetime import datetime

import pytest

from memory.recall.heading import headed
from memory.values import Node, NodeId, NodeKind, Role

NOON_MS = int(datetime.fromisoformat("2023-05-08T12:00").timestamp() * 1000)  # local time
ASKED = {"en": "When did I meet Ann?", "zh": "我什么时候见到安娜的？"}


def node(text: str, kind: NodeKind = NodeKind.MESSAGE, role: Role = Role.USER) -> Node:
    return Node(id=NodeId("n"), seq=1, kind=kind, role=role, content=text, created_at_ms=NOON_MS)


@pytest.mark.parametrize(
    ("found", "language", "text"),
    [
        (node("Met Ann today"), "en", "[8 May, 2023] User: Met Ann today"),
        (node("Met Ann today"), "zh", "[2023年5月8日] 用户：Met Ann today"),
        (node("It rained", role=Role.ASSISTANT), "en", "[8 May, 2023] Assistant: It rained"),
        (node("下雨了", role=Role.ASSISTANT), "zh", "[2023年5月8日] 助手：下雨了"),
        (node("Bob: Met Ann today"), "en", "[8 May, 2023] Bob: Met Ann today"),
        (node("Met Ann", NodeKind.NOTE, Role.NONE), "en", "[8 May, 2023] Met Ann"),
        (node("2 failed", NodeKind.TOOL_RESULT, Role.TOOL), "zh", "[2023年5月8日] 2 failed"),
        (node("林浩，画家。", NodeKind.CHUNK, Role.NONE), "zh", "林浩，画家。"),
        (node("Ann is a painter.", NodeKind.DOCUMENT, Role.NONE), "en", "Ann is a painter."),
    ],
)
def test_what_was_said_is_headed_and_a_document_is_bare(found, language, text):
    assert headed(found, ASKED[language]) == text


def test_another_question_in_the_same_language_changes_no_byte():
    said = node("Met Ann today")
    assert len({headed(said, text) for text in (ASKED["en"], "Who is she?", "8080")}) == 1
