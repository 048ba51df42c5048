"""What is stored with an answer about its calls: how the user's consent ended, also where the turn ended first; old traces load."""

from __future__ import annotations

import asyncio
import contextlib
import json
from pathlib import Path

from growbox_app.agent.turn import ASKED_CHARACTERS, Trace, decode_trace, encode_trace
from growbox_app.api import (
    Approval,
    ApprovalAnswer,
    ApprovalAsked,
    ApprovalEnded,
    AskRequest,
    ToolCalled,
)
from growbox_app.assistant import GrowBox
from memory.values import NodeStatus
from tests.unit.test_hands import EDIT, call, no, project, run, yes

__all__ = ["project"]


def ended(call_id: int, number: int) -> ApprovalEnded:
    return ApprovalEnded(id=number, allowed=True, by="user", call_id=call_id)


def ended_call(call_id: int) -> ToolCalled:
    return ToolCalled(name="shell", arguments="make", result="", ok=True, call_id=call_id)


async def stored(app: GrowBox) -> tuple[ToolCalled | ApprovalEnded, ...]:
    (conversation,) = await app.conversations()
    return app.calls_of((await app.messages(conversation.id))[-1])


def test_a_trace_from_before_has_calls_and_no_approvals() -> None:
    old = json.loads(encode_trace(Trace(calls=(ended_call(0), ended_call(0)))))
    del old["approvals"]
    trace = decode_trace(json.dumps(old))
    assert trace.calls_and_approvals() == (ended_call(0), ended_call(0))


def test_each_call_stands_before_its_approvals_and_one_that_never_ended_at_the_end() -> None:
    approvals = (ended(1, 1), ended(2, 2), ended(2, 3), ended(4, 4))
    trace = Trace(calls=(ended_call(1), ended_call(2), ended_call(3)), approvals=approvals)
    assert decode_trace(encode_trace(trace)).calls_and_approvals() == (
        ended_call(1),
        ended(1, 1),
        ended_call(2),
        ended(2, 2),
        ended(2, 3),
        ended_call(3),
        ended(4, 4),
    )


def test_what_the_user_said_is_stored_as_it_was_told(tmp_path: Path, project: Path) -> None:
    told: list[ToolCalled | ApprovalEnded] = []

    async def first(app: GrowBox) -> None:
        events = await call(app, project, "file_edit", EDIT, no)
        told.extend(e for e in events if isinstance(e, ToolCalled | ApprovalEnded))

    async def second(app: GrowBox) -> None:
        done, over = await stored(app)
        assert isinstance(over, ApprovalEnded)
        assert [over, done] == told
        assert (over.executor, over.by, over.allowed) == ("file_edit", "user", False)
        assert over.what == done.arguments

    run(tmp_path, first)
    run(tmp_path, second)


def test_a_yes_is_stored_before_anything_runs(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        opened = await app.open_project(project)
        wish = json.dumps({"name": "file_edit", "arguments": EDIT})
        seen: list[str] = []
        async for event in app.ask(AskRequest(text=f"call:{wish}", project_id=opened.id)):
            if isinstance(event, ApprovalAsked | ApprovalEnded):
                (kept,) = await stored(app)
                assert isinstance(kept, ApprovalEnded)
                seen.append(kept.by)
                assert "two" in (project / "a.txt").read_text(encoding="utf-8")
            if isinstance(event, ApprovalAsked):
                app.answer_approval(yes(event.approval))
        assert seen == ["exit", "user"]
        assert "two" not in (project / "a.txt").read_text(encoding="utf-8")

    run(tmp_path, body)


def test_a_long_command_is_kept_as_its_beginning(tmp_path: Path, project: Path) -> None:
    command = "unknown-program " + "x" * 2 * ASKED_CHARACTERS

    async def body(app: GrowBox) -> None:
        await call(app, project, "shell", {"command": command}, no)
        _, over = await stored(app)
        assert isinstance(over, ApprovalEnded)
        assert over.what == command[:ASKED_CHARACTERS]

    run(tmp_path, body)


def test_a_face_that_goes_away_while_it_is_asked_leaves_nothing_open(
    tmp_path: Path, project: Path
) -> None:
    async def body(app: GrowBox) -> None:
        opened = await app.open_project(project)
        wish = json.dumps({"name": "file_edit", "arguments": EDIT})
        events = app.ask(AskRequest(text=f"call:{wish}", project_id=opened.id))
        async with contextlib.aclosing(events):
            async for event in events:
                if isinstance(event, ApprovalAsked):
                    break
        (kept,) = await stored(app)
        assert isinstance(kept, ApprovalEnded)
        assert kept.by == "stop"

    run(tmp_path, body)


def test_a_question_that_was_cut_off_can_be_asked_again(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        opened = await app.open_project(project)
        wish = json.dumps({"name": "file_edit", "arguments": EDIT})
        asking = asyncio.Event()

        async def ask() -> None:
            async for event in app.ask(AskRequest(text=f"call:{wish}", project_id=opened.id)):
                if isinstance(event, ApprovalAsked):
                    asking.set()

        async with asyncio.TaskGroup() as group:
            group.create_task(ask())
            await asking.wait()
            await app.stop()
        (conversation,) = await app.conversations()
        answer = (await app.messages(conversation.id))[-1]
        assert answer.status is NodeStatus.CANCELLED
        assert [kept.by for kept in app.calls_of(answer) if isinstance(kept, ApprovalEnded)] == [
            "stop"
        ]
        asked: list[Approval] = []
        async for event in app.answer_again(answer.id):
            if isinstance(event, ApprovalAsked):
                asked.append(event.approval)
                app.answer_approval(ApprovalAnswer(id=event.approval.id, allowed=True))
        assert len(asked) == 1
        assert "two" not in (project / "a.txt").read_text(encoding="utf-8")

    run(tmp_path, body)
