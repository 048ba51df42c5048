"""ask_user, finish, tool_search, memory_note – and what all descriptions cost."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from growbox_app.executors.ask_user import AskUser
from growbox_app.executors.base import CallContext, Executor
from growbox_app.executors.code_outline import CodeOutline
from growbox_app.executors.code_search import CodeSearch
from growbox_app.executors.file_edit import FileEdit
from growbox_app.executors.file_list import FileList
from growbox_app.executors.file_read import FileRead
from growbox_app.executors.file_write import FileWrite
from growbox_app.executors.finish import Finish
from growbox_app.executors.git_commit import GitCommit
from growbox_app.executors.git_diff import GitDiff
from growbox_app.executors.git_status import GitStatus
from growbox_app.executors.memory_note import CHARACTERS_MAX, MemoryNote
from growbox_app.executors.registry import Registry
from growbox_app.executors.shell import Shell
from growbox_app.executors.task_board import TaskBoard
from growbox_app.executors.task_list import TaskList
from growbox_app.executors.task_start import TaskStart
from growbox_app.executors.task_wait import TaskWait
from growbox_app.executors.tool_search import ToolSearch, by_words
from growbox_app.executors.web_fetch import WebFetch
from growbox_app.memory_service import MemoryService
from memory.values import ConversationId, Node, NodeKind
from tests.fakes.memory_world import NO_HOST, MemoryWorld
from tests.unit.executor_world import call, called, context_of, failed

BOARD = TaskBoard()
ALL: tuple[Executor, ...] = (
    FileRead(), FileList(), FileWrite(), FileEdit(), CodeSearch(), CodeOutline(), Shell(), TaskStart(BOARD), TaskWait(BOARD),
    TaskList(BOARD), GitStatus(), GitDiff(), GitCommit(), AskUser(), Finish(), WebFetch(allowed=lambda: True),
)  # fmt: skip


def test_a_question_and_a_summary_are_given_on_as_they_are() -> None:
    for executor, name in ((AskUser(), "question"), (Finish(), "summary")):
        assert executor.ends_turn
        result = call(executor, None, **{name: " 为什么？\nSecond line. "})
        assert (result.text, result.summary) == ("为什么？\nSecond line.", "为什么？")
        failed(executor, None, **{name: "  "})


def search(*tools: Executor) -> tuple[ToolSearch, list[str]]:
    loaded: list[str] = []
    found = ToolSearch(
        lambda wish: by_words(wish, tools),
        describe=lambda tool: f"<{tool.name}>",
        load=loaded.extend,
    )
    return found, loaded


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("commit my changes", "git_commit"),
        ("outline of functions", "code_outline"),
        ("list background tasks", "task_list"),
        ("GIT DIFF", "git_diff"),
    ],
)
def test_tools_are_found_by_words(query: str, best: str) -> None:
    executor, loaded = search(*ALL)
    result = call(executor, None, query=query)
    assert loaded[0] == best
    assert len(loaded) <= 3
    assert result.text.startswith(f"you can call these now:\n<{best}>")


def test_no_tool_found_is_said() -> None:
    executor, loaded = search(GitDiff(), GitCommit())
    assert call(executor, None, query="天气").text.startswith("no such tool")
    assert call(search()[0], None, query="git").text.startswith("no such tool")
    assert loaded == []


async def noted(folder: Path, text: str, *, paused: bool = False) -> tuple[bool, Node | None]:
    """Whether a note was taken, and the last node of the memory."""
    service = MemoryService(None)  # type: ignore[arg-type]
    world: list[MemoryWorld] = []
    try:
        await service.open(lambda: world.append(MemoryWorld(folder, NO_HOST)) or world[0].engine)
        conversation = await service.call(lambda engine: engine.create_conversation(title="c"))
        context: CallContext = context_of(None, conversation=conversation.id)
        result = await called(MemoryNote(service, paused=lambda: paused), context, text=text)
        return result.ok, await service.call(lambda engine: engine.node_at(1))
    finally:
        await service.close()


def test_a_note_is_a_node_of_the_memory(tmp_path: Path) -> None:
    ok, node = asyncio.run(noted(tmp_path / "m", " The server's name is Luna. "))
    assert ok
    assert node is not None
    assert (node.kind, node.content) == (NodeKind.NOTE, "The server's name is Luna.")
    assert node.conversation_id != ConversationId("")


@pytest.mark.parametrize(
    ("text", "paused"), [("", False), ("x" * (CHARACTERS_MAX + 1), False), ("fact", True)]
)
def test_notes_that_are_not_taken(tmp_path: Path, text: str, paused: bool) -> None:
    ok, node = asyncio.run(noted(tmp_path / "m", text, paused=paused))
    assert not ok
    assert node is None


def test_descriptions_are_short_and_the_grammar_takes_all_parameters() -> None:
    for executor in ALL:
        words = executor.description.split()
        assert len(words) <= 20, executor.name
        for parameter in executor.parameters.values():
            assert len(parameter.description.split()) <= 14, executor.name
    listed = Registry(ALL).tool_list()
    assert len(listed) < 4_500  # characters: about 1,000 tokens for all of them
    assert Registry(ALL).grammar()
