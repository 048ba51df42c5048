"""A conversation as Markdown: what stands in the file, and names that every system takes."""

from __future__ import annotations

from datetime import UTC

import pytest

from growbox_app.agent.turn import Trace, encode_trace
from growbox_app.api import ToolCalled, UsedMemory
from growbox_app.export import file_name, file_names, markdown_of
from growbox_app.text import tr
from memory.values import (
    Conversation,
    ConversationId,
    Node,
    NodeId,
    NodeKind,
    NodeStatus,
    Project,
    ProjectId,
    Role,
    Way,
)

AT_MS = 1_762_180_920_000  # 3 Nov 2025, 14:42 UTC


@pytest.fixture(autouse=True)
def english():
    tr.use("en")


def talk(title: str = "Fix CI") -> Conversation:
    return Conversation(
        id=ConversationId(f"c-{title}"),
        title=title,
        project_id=ProjectId("p"),
        created_at_ms=AT_MS,
        updated_at_ms=AT_MS,
    )


def node(role: Role, content: str, **fields: object) -> Node:
    return Node(
        id=NodeId(f"n-{content[:4]}"),
        seq=1,
        kind=NodeKind.MESSAGE,
        role=role,
        content=content,
        created_at_ms=AT_MS,
        **fields,
    )


def test_the_file_says_who_said_what_when_and_why():
    memory = UsedMemory(
        node_id=NodeId("n"),
        way=Way.RAG,
        score=0.9,
        similarity=None,
        lexical=None,
        reason="gate",
        title="cache\nnotes",
        excerpt="…",
        created_at_ms=AT_MS,
        conversation_id=None,
    )
    call = ToolCalled(name="shell", arguments="pytest -q", result="2 passed", ok=True)
    cut = ToolCalled(name="shell", arguments="make", result="", ok=False, cut_off="exit")
    trace = encode_trace(Trace(memories=(memory,), calls=(call, cut)))
    messages = (
        node(Role.USER, "Why does CI fail?"),
        node(Role.ASSISTANT, "# The key\n\nIt changed.", trace=trace),
        node(Role.ASSISTANT, "half a", status=NodeStatus.CANCELLED),
        node(Role.ASSISTANT, "", status=NodeStatus.FAILED, trace="{broken"),
    )
    project = Project(id=ProjectId("p"), name="growbox", path="/p", created_at_ms=0)
    assert markdown_of(talk(), messages, project, zone=UTC) == (
        "# Fix CI\n\n"
        "Begun on 2025-11-03 14:42 · Project: growbox\n\n"
        "## You · 2025-11-03 14:42\n\n"
        "Why does CI fail?\n\n"
        "## GrowBox · 2025-11-03 14:42\n\n"
        "- `shell` pytest -q – 2 passed\n\n"
        "- `shell` make – GrowBox ended while this ran; a part of it may have been done.\n\n"
        "# The key\n\nIt changed.\n\n"
        "> Memories used: cache notes\n\n"
        "## GrowBox · 2025-11-03 14:42\n\n"
        "half a\n\n*(stopped)*\n\n"
        "## GrowBox · 2025-11-03 14:42\n\n"
        "*(no text)*\n\n*(not finished)*\n"
    )


def test_secrets_do_not_leave_in_an_export():
    text = markdown_of(talk(), [node(Role.USER, "use token=abcdef0123456789 please")], zone=UTC)
    assert "abcdef0123456789" not in text


@pytest.mark.parametrize(
    ("title", "name"),
    [
        ("Fix CI", "Fix CI.md"),
        ("a/b\\c: what? *now*", "a b c what now.md"),
        ("修复 CI：缓存", "修复 CI：缓存.md"),
        ("", "GrowBox.md"),
        ("..", "GrowBox.md"),
        ("CON", "GrowBox CON.md"),
        ("nul.txt", "GrowBox nul.txt.md"),
        ("two\nlines", "two lines.md"),
        ("x" * 200, "x" * 80 + ".md"),
    ],
)
def test_names_that_every_system_takes(title, name):
    assert file_name(talk(title)) == name


def test_no_two_files_have_one_name():
    names = file_names([talk("Plan"), talk("plan"), talk("Plan"), talk("Other")])
    assert names == ["Plan.md", "plan (2).md", "Plan (3).md", "Other.md"]
