"""The user's hand in a call: other text in a change, another command, a part of it only – judged again, done, told, and kept."""

from __future__ import annotations

import asyncio
import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from growbox_app.api import (
    AskRequest,
    ToolCalled,
    ToolStarted,
    TurnEvent,
    TurnFinished,
)
from growbox_app.approval_face import (
    Approval,
    ApprovalAnswer,
    ApprovalAsked,
    ApprovalEnded,
)
from growbox_app.assistant import GrowBox
from growbox_app.executors.base import FileChange
from growbox_app.hunks import apply, editable, hunks_of
from memory.values import NodeStatus
from tests.unit.test_hands import EDIT, TEXT, call, called, project, run, yes

__all__ = ["project"]
posix = pytest.mark.skipif(sys.platform == "win32", reason="a POSIX shell")


def change(before: bytes | None, after: bytes | None) -> FileChange:
    return FileChange(path=Path("a.txt"), before=before, after=after)


# -- the text of a hunk -----------------------------------------------------------------------
@pytest.mark.parametrize(
    ("before", "after", "text", "wanted"),
    [
        (b"a\nb\nc\n", b"a\nB\nc\n", "a\nX\nY\nc", b"a\nX\nY\nc\n"),
        (b"a\r\nb\r\n", b"a\r\nB\r\n", "a\nX", b"a\r\nX\r\n"),
        (b"a\nb", b"a\nB", "a\nX", b"a\nX"),
        (None, b"new\n", "other\nlines", b"other\nlines\n"),
        (b"a\nb\n", b"a\n", "", b""),
        ("甲\n".encode(), "乙\n".encode(), "丙", "丙\n".encode()),
    ],
)
def test_another_text_stands_in_the_place_of_a_hunk(
    before: bytes | None, after: bytes, text: str, wanted: bytes
) -> None:
    assert apply(change(before, after), {0}, {0: text}).after == wanted


def test_only_the_edited_hunk_is_another() -> None:
    lines = [b"%d\n" % number for number in range(60)]
    before = b"".join(lines)
    after = before.replace(b"\n3\n", b"\nthree\n").replace(b"\n50\n", b"\nfifty\n")
    whole = change(before, after)
    assert len(hunks_of(whole)) == 2
    edited = apply(whole, {0, 1}, {1: "here"}).after
    assert edited is not None
    assert b"\nthree\n" in edited
    assert b"fifty" not in edited
    assert edited.endswith(b"46\nhere\n54\n55\n56\n57\n58\n59\n")
    assert apply(whole, {0}, {1: "here"}) == apply(whole, {0})


def test_what_is_no_utf8_or_goes_away_is_not_edited() -> None:
    assert editable(change(b"a\n", "中\n".encode()))
    assert not editable(change(b"a\n", "中\n".encode("gbk")))
    assert not editable(change(b"a\n", None))
    assert not editable(change(None, b"\0"))


# -- through the whole application ------------------------------------------------------------
def test_the_users_text_is_what_is_written_and_what_the_model_hears(
    tmp_path: Path, project: Path
) -> None:
    async def body(app: GrowBox) -> None:
        def edit(approval: Approval) -> ApprovalAnswer:
            (hunk,) = approval.hunks
            assert hunk.editable
            text = hunk.text.replace("2", "zwei")
            return replace(yes(approval), texts={hunk.index: text})

        done = called(await call(app, project, "file_edit", EDIT, edit))
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT.replace("two", "zwei")
        assert done.edited
        assert "The user changed this" in done.output
        assert "+zwei" in done.output
        report = await app.restore(done.checkpoint)
        assert report.is_done
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT

    run(tmp_path, body)


def test_a_part_is_named_as_a_part(tmp_path: Path, project: Path) -> None:
    before = "".join(f"line {number}\n" for number in range(60))
    wanted = before.replace("line 3\n", "LINE 3\n").replace("line 50\n", "LINE 50\n")

    async def body(app: GrowBox) -> None:
        (project / "b.txt").write_text(before, encoding="utf-8")
        write = {"path": "b.txt", "content": wanted}
        done = called(
            await call(
                app,
                project,
                "file_write",
                write,
                lambda approval: replace(yes(approval), hunks=frozenset({1})),
            )
        )
        assert not done.edited
        assert "+LINE 50" in done.output
        assert "+LINE 3\n" not in done.output

    run(tmp_path, body)


def test_an_edit_that_leaves_nothing_does_nothing(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        def undo(approval: Approval) -> ApprovalAnswer:
            return replace(yes(approval), texts={0: TEXT.rstrip("\n")})

        done = called(await call(app, project, "file_edit", EDIT, undo))
        assert not done.ok
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT

    run(tmp_path, body)


@posix
def test_another_command_runs_and_the_model_hears_which(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        def edit(approval: Approval) -> ApprovalAnswer:
            assert approval.editable
            return replace(yes(approval), command="touch b.txt")

        done = called(await call(app, project, "shell", {"command": "touch a1.txt"}, edit))
        assert done.ok
        assert (project / "b.txt").exists()
        assert not (project / "a1.txt").exists()
        assert "touch b.txt" in done.output
        assert done.arguments == "touch b.txt"
        noted = [(entry.command, entry.allowed) for entry in await app.decisions(10)]
        assert {("touch a1.txt", True), ("touch b.txt", True)} <= set(noted)

    run(tmp_path, body)


@posix
def test_a_command_that_becomes_dangerous_is_asked_about_again(
    tmp_path: Path, project: Path
) -> None:
    async def body(app: GrowBox) -> None:
        seen: list[Approval] = []

        def edit(approval: Approval) -> ApprovalAnswer:
            seen.append(approval)
            if len(seen) == 1:
                return replace(yes(approval), command="some-program --all")
            return ApprovalAnswer(id=approval.id, allowed=False)

        done = called(await call(app, project, "shell", {"command": "touch b.txt"}, edit))
        assert not done.ok
        assert [approval.edited for approval in seen] == [False, True]
        assert seen[1].command == "some-program --all"
        assert [part.reason for part in seen[1].parts] == ["unlisted_program"]

    run(tmp_path, body)


@posix
def test_an_edited_command_is_denied_like_any_other(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        def edit(approval: Approval) -> ApprovalAnswer:
            return replace(yes(approval), command="cat ~/.ssh/id_rsa > b.txt")

        done = called(await call(app, project, "shell", {"command": "touch b.txt"}, edit))
        assert not done.ok
        assert not (project / "b.txt").exists()

    run(tmp_path, body)


@posix
def test_the_parts_of_a_command_say_what_each_does(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        seen: list[Approval] = []

        def no(approval: Approval) -> ApprovalAnswer:
            seen.append(approval)
            return ApprovalAnswer(id=approval.id, allowed=False)

        command = "cat a.txt && rm -r build; curious | wc -l > count.txt"
        (project / "build").mkdir()
        await call(app, project, "shell", {"command": command}, no)
        parts = [(part.text, part.risk, part.reason) for part in seen[0].parts]
        assert parts[:4] == [
            ("cat a.txt", "safe", "safe"),
            ("rm -r build", "irreversible", "removes_folder"),
            ("curious", "unknown", "unlisted_program"),
            ("wc -l", "safe", "safe"),
        ]
        assert parts[4][0] == "> count.txt"

    run(tmp_path, body)


# -- kept with the answer ---------------------------------------------------------------------
def test_calls_stand_with_their_answer_after_a_restart(tmp_path: Path, project: Path) -> None:
    kept: list[object] = []

    async def first(app: GrowBox) -> None:
        events = await call(app, project, "file_edit", EDIT, yes)
        kept.append(called(events))

    async def second(app: GrowBox) -> None:
        (conversation,) = await app.library.conversations()
        answer = (await app.library.messages(conversation.id))[-1]
        again, over = app.calls_of(answer)
        assert isinstance(again, ToolCalled)
        assert isinstance(over, ApprovalEnded)
        assert again == kept[0]
        assert await app.undone([again.checkpoint]) == frozenset()
        assert (await app.restore(again.checkpoint)).is_done
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT

    async def third(app: GrowBox) -> None:
        assert isinstance(kept[0], ToolCalled)
        assert await app.undone([kept[0].checkpoint]) == {kept[0].checkpoint}

    run(tmp_path, first)
    run(tmp_path, second)
    run(tmp_path, third)


def test_a_long_output_is_kept_as_its_ends(tmp_path: Path, project: Path) -> None:
    (project / "long.txt").write_text("".join(f"row {n}\n" for n in range(9000)), encoding="utf-8")

    async def body(app: GrowBox) -> None:
        events = await call(app, project, "code_search", {"pattern": "row"})
        shown = called(events).output
        (conversation,) = await app.library.conversations()
        (again,) = app.calls_of((await app.library.messages(conversation.id))[-1])
        assert isinstance(again, ToolCalled)
        assert len(again.output) < 8_100
        assert again.output.startswith(shown[:1000])
        assert again.output.endswith(shown[-1000:])

    run(tmp_path, body)


def test_what_the_memory_said_is_not_kept_beside_it(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        events = await call(app, project, "memory_search", {"query": "anything"})
        assert called(events).output
        (conversation,) = await app.library.conversations()
        (again,) = app.calls_of((await app.library.messages(conversation.id))[-1])
        assert isinstance(again, ToolCalled)
        assert (again.name, again.output) == ("memory_search", "")

    run(tmp_path, body)


# -- stopping ---------------------------------------------------------------------------------
async def stopped_in(app: GrowBox, folder: Path, wish: dict[str, object]) -> float:
    """Seconds from the user's stop to the end of a turn, while its tool runs."""
    opened = await app.library.open_project(folder)
    request = AskRequest(text=f"call:{json.dumps(wish)}", project_id=opened.id)
    loop = asyncio.get_running_loop()
    told = 0.0
    last: TurnEvent | None = None

    async def stop() -> None:
        nonlocal told
        while not (folder / "started").exists():
            await asyncio.sleep(0.01)
        told = loop.time()
        await app.stop()

    async with asyncio.TaskGroup() as group:
        async for event in app.ask(request):
            last = event
            if isinstance(event, ApprovalAsked):
                app.answer_approval(yes(event.approval))
            if isinstance(event, ToolStarted):
                group.create_task(stop())
        assert isinstance(last, TurnFinished)
        assert last.status is NodeStatus.CANCELLED
        return loop.time() - told


@posix
@pytest.mark.parametrize(
    "wish",
    [
        {"name": "shell", "arguments": {"command": "touch started; sleep 30"}},
        {"name": "shell", "arguments": {"command": "trap '' TERM; touch started; sleep 30"}},
    ],
    ids=["sleep", "deaf"],
)
def test_a_stop_ends_a_running_tool_within_a_second(
    tmp_path: Path, project: Path, wish: dict[str, object]
) -> None:
    async def body(app: GrowBox) -> None:
        assert await stopped_in(app, project, wish) < 1.5  # a second, and a busy machine

    run(tmp_path, body)
