"""The library of the whole application over a scripted engine: projects, moving, export, and forgetting to the last byte."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from growbox_app.api import (
    AskRequest,
    ProblemCode,
    ProblemError,
)
from growbox_app.approval_face import ApprovalAnswer, ApprovalAsked
from growbox_app.assistant import GrowBox
from growbox_app.library_face import ForgetState
from growbox_app.projects import FolderLevel
from growbox_app.relay import AskRelay, export_of
from growbox_app.safety.values import Mode
from growbox_app.task_face import TaskState
from memory.values import ConversationId
from tests.fakes.application import Body, ask, run_application, scripted

SECRET = "the Aldermoor vault opens with twelve Elstern"
NEEDLES = ("Aldermoor", "aldermoor", "Elstern", "elstern")
WAIT_S = 60


def run(tmp_path: Path, body: Body, *, undo_s: float = 0.0) -> None:
    run_application(
        lambda: scripted(tmp_path, undo_s=undo_s), body, {"models.context_tokens": 16384}
    )


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not condition():
            await asyncio.sleep(0.01)


def left_in(folder: Path) -> list[str]:
    return [
        str(path.relative_to(folder))
        for path in sorted(folder.rglob("*"))
        if path.is_file() and any(needle.encode() in path.read_bytes() for needle in NEEDLES)
    ]


async def told(app: GrowBox, folder: Path) -> ConversationId:
    """A conversation with a call, so that checkpoints, audit log and experience know of it."""
    project = await app.library.open_project(folder)
    wish = {"path": "elstern.txt", "content": f"{SECRET}\n"}
    call = json.dumps({"name": "file_write", "arguments": wish})
    conversation = None
    async for event in app.ask(AskRequest(text=f"call:{call}", project_id=project.id)):
        if isinstance(event, ApprovalAsked):
            app.answer_approval(ApprovalAnswer(id=event.approval.id, allowed=True))
        conversation = getattr(event, "conversation", conversation)
    assert conversation is not None
    await ask(app, SECRET, conversation.id)
    await app.settle(5)
    return conversation.id


def test_a_deleted_conversation_is_in_no_byte_of_the_data_folder(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()

    async def body(app: GrowBox) -> None:
        conversation = await told(app, folder)
        kept = await ask(app, "a shed needs paint")
        assert left_in(tmp_path / "data")
        await app.library.forget(conversation)
        await until(lambda: app.library.forgettings()[-1].state is ForgetState.DONE)
        report = app.library.forgettings()[-1].report
        assert report is not None
        assert report.searched
        assert report.left == ()
        assert left_in(tmp_path / "data") == []
        assert [c.id for c in await app.library.conversations()] == [kept.answer.conversation_id]
        assert await app.library.search("Aldermoor") == ()
        app.library.dismiss(conversation)
        assert app.library.forgettings() == ()
        assert (await ask(app, "and again?")).problem is None

    run(tmp_path, body)
    assert left_in(tmp_path / "data") == []
    assert (folder / "elstern.txt").is_file(), "the user's own files are theirs"


@pytest.mark.skipif(sys.platform == "win32", reason="a command for a Unix shell")
def test_the_background_tasks_of_a_deleted_conversation_are_stopped_and_not_listed(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()

    async def start(app: GrowBox) -> ConversationId:
        project = await app.library.open_project(folder)
        wish = {"name": "task_start", "arguments": {"command": "echo Aldermoor; sleep 300"}}
        conversation = None
        request = AskRequest(text=f"call:{json.dumps(wish)}", project_id=project.id)
        async for event in app.ask(request):
            conversation = getattr(event, "conversation", conversation)
            if isinstance(event, ApprovalAsked):
                app.answer_approval(ApprovalAnswer(id=event.approval.id, allowed=True))
        assert conversation is not None
        return conversation.id

    async def body(app: GrowBox) -> None:
        gone, kept = await start(app), await start(app)
        tasks = app.background_tasks
        (of_gone,) = app._board.of(gone)
        await app.library.forget(gone)
        await until(lambda: app.library.forgettings()[-1].state is ForgetState.DONE)
        assert of_gone.command.code() is not None
        assert [(task.conversation_id, task.state) for task in tasks.listed()] == [
            (kept, TaskState.RUNNING)
        ]
        await app.library.forget(kept)
        await app.library.keep(kept)
        assert [task.state for task in tasks.listed()] == [TaskState.RUNNING]

    run(tmp_path, body, undo_s=0.3)


def test_it_can_be_taken_back(tmp_path):
    async def body(app: GrowBox) -> None:
        finished = await ask(app, SECRET)
        conversation = finished.answer.conversation_id
        await app.library.forget(conversation)
        assert await app.library.conversations() == ()
        assert app.library.forgettings()[0].state is ForgetState.WAITING
        assert app.library.forgettings()[0].preview.messages == 2
        await app.library.keep(conversation)
        assert app.library.forgettings() == ()
        assert [c.id for c in await app.library.conversations()] == [conversation]
        assert len(await app.library.search("Aldermoor")) >= 1

    run(tmp_path, body, undo_s=600)


def test_a_program_that_ends_during_the_undo_goes_on_at_its_next_start(tmp_path):
    async def first(app: GrowBox) -> None:
        finished = await ask(app, SECRET)
        await app.library.forget(finished.answer.conversation_id)

    async def second(app: GrowBox) -> None:
        assert await app.library.conversations() == ()
        await until(lambda: any(f.state is ForgetState.DONE for f in app.library.forgettings()))

    run(tmp_path, first, undo_s=600)
    assert left_in(tmp_path / "data")
    run(tmp_path, second)
    assert left_in(tmp_path / "data") == []


def test_a_question_asked_meanwhile_waits_and_is_answered(tmp_path):
    async def body(app: GrowBox) -> None:
        finished = await ask(app, SECRET)
        await app.library.forget(finished.answer.conversation_id)
        for number in range(5):
            assert (await ask(app, f"question {number}")).problem is None
        await until(lambda: app.library.forgettings()[-1].state is ForgetState.DONE)

    run(tmp_path, body)


def test_projects_leave_the_list_and_come_back_with_their_conversations(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()

    async def body(app: GrowBox) -> None:
        project = await app.library.open_project(folder)
        finished = await ask(app, "the kettle is blue", project_id=project.id)
        await app.library.remove_project(project.id)
        assert await app.library.projects() == ()
        assert (await app.library.workspace(project.id)).root is None
        assert len(await app.library.search("kettle")) >= 1
        again = await app.library.open_project(folder)
        assert again.id == project.id
        stored = (await app.library.conversations())[0]
        assert (stored.id, stored.project_id) == (finished.answer.conversation_id, project.id)
        view = await app.library.project(project.id)
        assert (view.holdings.conversations, view.holdings.messages) == (1, 2)

    run(tmp_path, body)


def test_a_project_has_its_own_mode_folders_and_grants(tmp_path):
    folder, more = tmp_path / "project", tmp_path / "more"
    folder.mkdir()
    more.mkdir()

    async def body(app: GrowBox) -> None:
        project = await app.library.open_project(folder)
        await app.library.add_folder(project.id, more)
        await app.library.set_mode(project.id, Mode.READ_ONLY)
        view = await app.library.project(project.id)
        assert [f.level for f in view.rules.folders] == [
            FolderLevel.WRITABLE,
            FolderLevel.READ_ONLY,
        ]
        workspace = await app.library.workspace(project.id)
        assert app.library.mode(project.id, workspace) is Mode.READ_ONLY
        assert app.library.mode(None, workspace) is Mode.MANUAL
        more.rmdir()
        assert (await app.library.project(project.id)).missing == {more}
        for wide, code in (
            (Path("/"), ProblemCode.FOLDER_TOO_WIDE),
            (tmp_path / "nowhere", ProblemCode.NO_PROJECT_FOLDER),
        ):
            with pytest.raises(ProblemError) as caught:
                await app.library.add_folder(project.id, wide)
            assert caught.value.problem.code is code

    run(tmp_path, body)


def test_a_conversation_moves_with_everything_said_in_it(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()

    async def body(app: GrowBox) -> None:
        project = await app.library.open_project(folder)
        finished = await ask(app, "the kettle is blue")
        conversation = finished.answer.conversation_id
        await app.library.move_conversation(conversation, project.id)
        assert (await app.library.conversations())[0].project_id == project.id
        assert {n.project_id for n in await app.library.messages(conversation)} == {project.id}
        await app.library.move_conversation(conversation, None)
        assert (await app.library.project(project.id)).holdings.conversations == 0

    run(tmp_path, body)


def test_export_writes_one_file_or_many(tmp_path):
    async def body(app: GrowBox) -> None:
        first = (await ask(app, "the kettle is blue")).answer.conversation_id
        await ask(app, "the shed is green")
        one = tmp_path / "one.md"
        assert await app.library.export([first], one) == (one,)
        assert "the kettle is blue" in one.read_text(encoding="utf-8")
        frame = {"wish": "export", "folder": str(tmp_path / "all"), "title": ""}
        paths = await export_of(app, frame)
        assert sorted(Path(path).name for path in paths) == [
            "the kettle is blue.md",
            "the shed is green.md",
        ]
        only = await export_of(app, frame | {"title": "SHED", "folder": str(tmp_path / "some")})
        assert [Path(path) for path in only] == [tmp_path / "some" / "the shed is green.md"]
        assert await export_of(app, frame | {"title": "nowhere"}) == ()
        (tmp_path / "file").write_text("in the way", encoding="utf-8")
        with pytest.raises(ProblemError) as caught:
            await app.library.export([first], tmp_path / "file" / "x.md")
        assert caught.value.problem.code is ProblemCode.EXPORT_FAILED

    run(tmp_path, body)


def test_a_second_instance_can_export_through_the_running_one(tmp_path):
    async def body(app: GrowBox) -> None:
        await ask(app, "the kettle is blue")
        relay = AskRelay(app, asyncio.get_running_loop(), lambda: None)
        replies: list[dict[str, object]] = []
        wish = {"wish": "export", "folder": str(tmp_path / "out"), "title": ""}
        await asyncio.to_thread(relay.handle, wish, replies.append)
        file = tmp_path / "out" / "the kettle is blue.md"
        assert replies == [{"done": True, "exported": [str(file)]}]
        assert file.is_file()
        lost = wish | {"project": str(tmp_path / "nowhere")}
        await asyncio.to_thread(relay.handle, lost, replies.append)
        assert "problem" in replies[-1]

    run(tmp_path, body)
