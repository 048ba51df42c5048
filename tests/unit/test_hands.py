"""The agent's hands in the whole application over a scripted engine: read, ask, refuse, narrow, save, put back, stop."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
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
    ApprovalScope,
)
from growbox_app.assistant import GrowBox
from growbox_app.library_face import ForgetState
from growbox_app.text import catalogue
from memory.rest_values import ExperienceSource
from memory.values import NodeStatus
from tests.fakes.application import Body, run_application, scripted

Say = Callable[[Approval], ApprovalAnswer]
TEXT = "one\ntwo\nthree\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "项目"
    folder.mkdir()
    (folder / "a.txt").write_text(TEXT, encoding="utf-8")
    return folder


def run(tmp_path: Path, body: Body, **settings: object) -> None:
    wanted = {key.replace("__", "."): value for key, value in settings.items()}
    run_application(lambda: scripted(tmp_path), body, {"models.context_tokens": 16384} | wanted)


def yes(approval: Approval) -> ApprovalAnswer:
    return ApprovalAnswer(id=approval.id, allowed=True)


def no(approval: Approval) -> ApprovalAnswer:
    return ApprovalAnswer(id=approval.id, allowed=False, word="use another name")


async def call(
    app: GrowBox, folder: Path, name: str, arguments: dict[str, str], say: Say | None = None
) -> list[TurnEvent]:
    """A turn whose model makes one call."""
    project = await app.library.open_project(folder)
    wish = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    events: list[TurnEvent] = []
    async for event in app.ask(AskRequest(text=f"call:{wish}", project_id=project.id)):
        events.append(event)
        if isinstance(event, ApprovalAsked):
            assert say is not None, event
            app.answer_approval(say(event.approval))
    return events


def called(events: list[TurnEvent]) -> ToolCalled:
    return next(event for event in events if isinstance(event, ToolCalled))


EDIT = {"path": "a.txt", "old": "two", "new": "2"}


def test_reading_asks_nobody(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        events = await call(app, project, "file_read", {"path": "a.txt"})
        assert any(isinstance(event, ToolStarted) for event in events)
        done = called(events)
        assert done.ok
        assert "two" in done.output
        assert not done.checkpoint

    run(tmp_path, body)


def test_an_edit_is_shown_first_and_can_be_put_back(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        seen: list[Approval] = []

        def look(approval: Approval) -> ApprovalAnswer:
            seen.append(approval)
            assert (project / "a.txt").read_text(encoding="utf-8") == TEXT
            return yes(approval)

        done = called(await call(app, project, "file_edit", EDIT, look))
        assert done.ok
        assert (project / "a.txt").read_text(encoding="utf-8") == "one\n2\nthree\n"
        (approval,) = seen
        assert any(line.startswith("-two") for hunk in approval.hunks for line in hunk.lines)
        report = await app.restore(done.checkpoint)
        assert report.is_done
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT

    run(tmp_path, body)


def test_a_no_changes_nothing_and_reaches_the_model(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        events = await call(app, project, "file_edit", EDIT, no)
        done = called(events)
        assert not done.ok
        assert "use another name" in done.output
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT
        assert [e.allowed for e in events if isinstance(e, ApprovalEnded)] == [False]

    run(tmp_path, body)


def test_a_yes_for_the_path_is_not_asked_again(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        def for_path(approval: Approval) -> ApprovalAnswer:
            assert ApprovalScope.PATH in approval.scopes
            return ApprovalAnswer(id=approval.id, allowed=True, scope=ApprovalScope.PATH)

        assert called(await call(app, project, "file_edit", EDIT, for_path)).ok
        again = EDIT | {"old": "2", "new": "zwei"}
        assert called(await call(app, project, "file_edit", again)).ok
        assert "zwei" in (project / "a.txt").read_text(encoding="utf-8")

    run(tmp_path, body)


def test_some_hunks_only(tmp_path: Path, project: Path) -> None:
    body_text = "".join(f"line {number}\n" for number in range(60))

    async def body(app: GrowBox) -> None:
        (project / "b.txt").write_text(body_text, encoding="utf-8")
        wanted = body_text.replace("line 3\n", "LINE 3\n").replace("line 50\n", "LINE 50\n")

        def second(approval: Approval) -> ApprovalAnswer:
            assert len(approval.hunks) == 2
            return ApprovalAnswer(id=approval.id, allowed=True, hunks=frozenset({1}))

        write = {"path": "b.txt", "content": wanted}
        assert called(await call(app, project, "file_write", write, second)).ok
        assert (project / "b.txt").read_text(encoding="utf-8") == body_text.replace(
            "line 50\n", "LINE 50\n"
        )

    run(tmp_path, body)


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("shell", {"command": "rm -rf /"}),
        ("shell", {"command": "cat ~/.ssh/id_rsa"}),
        ("file_write", {"path": "../outside.txt", "content": "x"}),
        ("file_read", {"path": "/etc/shadow"}),
    ],
)
def test_what_is_denied_is_not_even_asked(
    tmp_path: Path, project: Path, name: str, arguments: dict[str, str]
) -> None:
    async def body(app: GrowBox) -> None:
        done = called(await call(app, project, name, arguments))
        assert not done.ok
        assert not (tmp_path / "outside.txt").exists()

    run(tmp_path, body, agent__mode="auto")


@pytest.mark.parametrize(("word", "language"), [("hello", "en"), ("你好", "zh")])
@pytest.mark.parametrize("window", ["en", "zh"])
def test_what_is_denied_is_said_in_the_language_of_the_question(
    tmp_path: Path, project: Path, word: str, language: str, window: str
) -> None:
    async def body(app: GrowBox) -> None:
        done = called(await call(app, project, "shell", {"command": f"sudo echo {word}"}))
        key = "safety.reason.privilege"
        assert catalogue(language)[key].format(program="sudo").rstrip(".。") in done.output
        assert done.result == catalogue(window)[key].format(program="sudo")

    run(tmp_path, body, general__language=window)


def test_read_only_never_asks(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        assert not called(await call(app, project, "file_edit", EDIT)).ok
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT

    run(tmp_path, body, agent__mode="read_only")


def test_a_stop_while_the_user_is_asked_ends_the_turn(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        opened = await app.library.open_project(project)
        wish = json.dumps({"name": "file_edit", "arguments": EDIT})
        last: TurnEvent | None = None
        async for event in app.ask(AskRequest(text=f"call:{wish}", project_id=opened.id)):
            last = event
            if isinstance(event, ApprovalAsked):
                asyncio.get_running_loop().call_soon(asyncio.ensure_future, app.stop())  # noqa: TID251
        assert isinstance(last, TurnFinished)
        assert last.status is NodeStatus.CANCELLED
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT

    run(tmp_path, body)


def test_without_a_project_there_are_no_hands(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        wish = json.dumps({"name": "shell", "arguments": {"command": "ls"}})
        events = [event async for event in app.ask(AskRequest(text=f"call:{wish}"))]
        assert not [event for event in events if isinstance(event, ToolStarted)]

    run(tmp_path, body)


def test_finish_is_the_answer(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        events = await call(app, project, "finish", {"summary": "all done"})
        last = events[-1]
        assert isinstance(last, TurnFinished)
        assert last.answer.content == "all done"
        assert last.status is NodeStatus.COMPLETE

    run(tmp_path, body)


def test_what_a_call_came_to_is_an_experience(tmp_path: Path, project: Path) -> None:
    """What was done is, with the question and the answer it rests on; what was only read, or refused, is not."""

    async def body(app: GrowBox) -> None:
        await call(app, project, "file_read", {"path": "a.txt"})
        await call(app, project, "file_edit", EDIT, no)
        assert await app.rest.experiences() == ()
        text = {"path": "b.txt", "content": "token=sk-abcdefghijklmnopqrstuv"}
        events = await call(app, project, "file_write", text, yes)
        (kept,) = await app.rest.experiences()
        answer = next(e.answer for e in events if isinstance(e, TurnFinished))
        assert kept.source is ExperienceSource.EXECUTOR
        assert kept.success
        assert kept.operation == "file_write"
        assert "b.txt" in kept.outcome
        assert kept.node_ids == (answer.reply_to, answer.id)
        assert "sk-abc" not in kept.outcome + kept.context
        await app.change_setting("memory.paused", True)
        await call(app, project, "file_edit", EDIT, yes)
        assert len(await app.rest.experiences()) == 1
        assert answer.conversation_id is not None
        await app.library.forget(answer.conversation_id)
        while not any(f.state is ForgetState.DONE for f in app.library.forgettings()):
            await asyncio.sleep(0.01)
        assert await app.rest.experiences() == ()

    run_application(lambda: scripted(tmp_path, undo_s=0.0), body, {"models.context_tokens": 16384})
