"""What is stored with an answer about its calls, and when: consent, a call that runs, trouble, also where the turn ended first.

Old traces load.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from growbox_app.agent.hands import Deed
from growbox_app.agent.outcomes import Outcomes
from growbox_app.agent.prompts import BROKEN_OFF_CHARACTERS, prompt
from growbox_app.agent.protocol import ToolCall
from growbox_app.agent.turn import ASKED_CHARACTERS, Trace, Turn, decode_trace, encode_trace
from growbox_app.api import (
    AskRequest,
    Notice,
    Problem,
    ProblemCode,
    ToolCalled,
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
from growbox_app.executors.base import CallContext
from memory.errors import StorageError
from memory.values import (
    Conversation,
    ConversationId,
    Node,
    NodeId,
    NodeKind,
    NodeStatus,
    Role,
)
from tests.fakes.application import ask
from tests.unit.test_hands import EDIT, TEXT, call, no, project, run, yes

__all__ = ["project"]

WAIT_S = 10
Store = Callable[[ToolCalled], Awaitable[None]]
posix = pytest.mark.skipif(sys.platform == "win32", reason="commands for a Unix shell")


def ended(call_id: int, number: int) -> ApprovalEnded:
    return ApprovalEnded(id=number, allowed=True, by="user", call_id=call_id)


def ended_call(call_id: int) -> ToolCalled:
    return ToolCalled(name="shell", arguments="make", result="", ok=True, call_id=call_id)


async def stored(app: GrowBox) -> tuple[ToolCalled | ApprovalEnded | Problem, ...]:
    (conversation,) = await app.library.conversations()
    return app.calls_of((await app.library.messages(conversation.id))[-1])


def test_a_trace_from_before_has_calls_and_no_approvals() -> None:
    old = json.loads(encode_trace(Trace(calls=(ended_call(0), ended_call(0)))))
    del old["approvals"]
    trace = decode_trace(json.dumps(old))
    assert trace.notes() == (ended_call(0), ended_call(0))


def test_each_call_stands_before_its_approvals_and_one_that_never_ended_at_the_end() -> None:
    approvals = (ended(1, 1), ended(2, 2), ended(2, 3), ended(4, 4))
    trace = Trace(calls=(ended_call(1), ended_call(2), ended_call(3)), approvals=approvals)
    assert decode_trace(encode_trace(trace)).notes() == (
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
        assert isinstance(done, ToolCalled)
        assert isinstance(over, ApprovalEnded)
        assert [over, done] == told
        assert (over.executor, over.by, over.allowed) == ("file_edit", "user", False)
        assert over.what == done.arguments

    run(tmp_path, first)
    run(tmp_path, second)


def test_a_yes_is_stored_before_anything_runs(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        opened = await app.library.open_project(project)
        wish = json.dumps({"name": "file_edit", "arguments": EDIT})
        seen: list[str] = []
        async for event in app.ask(AskRequest(text=f"call:{wish}", project_id=opened.id)):
            if isinstance(event, ApprovalAsked | ApprovalEnded):
                (kept,) = await stored(app)  # and no call: nothing has begun
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
        opened = await app.library.open_project(project)
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
        opened = await app.library.open_project(project)
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
        (conversation,) = await app.library.conversations()
        answer = (await app.library.messages(conversation.id))[-1]
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


# -- a call that runs -------------------------------------------------------------------------
GO = "while [ ! -e go ]; do sleep 0.02; done"
CUT = f"echo half > a.txt; touch there; {GO}"


async def shell(app: GrowBox, folder: Path, command: str, events: list[TurnEvent]) -> None:
    """A turn whose model runs a command, to which the user says yes."""
    opened = await app.library.open_project(folder)
    wish = json.dumps({"name": "shell", "arguments": {"command": command}}, ensure_ascii=False)
    async for event in app.ask(AskRequest(text=f"call:{wish}", project_id=opened.id)):
        events.append(event)
        if isinstance(event, ApprovalAsked):
            app.answer_approval(yes(event.approval))


async def until_there(folder: Path) -> None:
    async with asyncio.timeout(WAIT_S):
        while not (folder / "there").exists():
            await asyncio.sleep(0.01)


def check_undone(tmp_path: Path, project: Path, *, cut_off: str) -> None:
    """After a restart the call is there with the way back."""

    async def body(app: GrowBox) -> None:
        kept, _ = await stored(app)
        assert isinstance(kept, ToolCalled)
        assert (kept.ok, kept.cut_off) == (False, cut_off)
        assert (await app.restore(kept.checkpoint)).is_done
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT
        assert not (project / "there").exists()

    run(tmp_path, body)


@posix
def test_a_call_is_stored_as_begun_while_it_runs_and_then_as_it_ended(
    tmp_path: Path, project: Path
) -> None:
    async def body(app: GrowBox) -> None:
        events: list[TurnEvent] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(shell(app, project, CUT, events))
            await until_there(project)
            begun, said = await stored(app)
            assert isinstance(begun, ToolCalled)
            assert (begun.name, begun.arguments) == ("shell", CUT)
            assert (begun.cut_off, begun.ok, begun.result) == ("exit", False, "")
            assert isinstance(said, ApprovalEnded)
            (project / "go").touch()
        (done,) = [event for event in events if isinstance(event, ToolCalled)]
        assert (done.cut_off, done.ok, done.checkpoint) == ("", True, begun.checkpoint)
        assert await stored(app) == (done, said)

    run(tmp_path, body)


@posix
def test_a_call_that_the_user_stopped_is_undone_after_a_restart(
    tmp_path: Path, project: Path
) -> None:
    async def body(app: GrowBox) -> None:
        events: list[TurnEvent] = []
        async with asyncio.TaskGroup() as group:
            group.create_task(shell(app, project, CUT, events))
            await until_there(project)
            await app.stop()
        (done,) = [event for event in events if isinstance(event, ToolCalled)]
        assert done.checkpoint
        kept, _ = await stored(app)
        assert kept == done

    run(tmp_path, body)
    check_undone(tmp_path, project, cut_off="")


@posix
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_model_is_told_once_what_was_broken_off(
    tmp_path: Path, project: Path, language: str
) -> None:
    """The turn after it reads of the call that may be half done; the one after that does not hear of it again."""
    command = f"{CUT}; echo {'好' if language == 'zh' else 'well'}"
    said = prompt(language, "broken_off").split("{")[0]

    async def told(app: GrowBox, conversation_id: ConversationId) -> list[str]:
        blocks = await app._memory.call(lambda engine: engine.blocks(conversation_id))
        return [block.text for block in blocks if said in block.text]

    async def body(app: GrowBox) -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(shell(app, project, command, []))
            await until_there(project)
            await app.stop()
        (conversation,) = await app.library.conversations()
        assert await told(app, conversation.id) == []
        await ask(app, "and now", conversation.id, project_id=conversation.project_id)
        (block,) = await told(app, conversation.id)
        assert block.startswith("[result of shell]\n")
        assert "touch there" in block
        assert len(block) < 2 * BROKEN_OFF_CHARACTERS + len(said)
        await ask(app, "and then", conversation.id, project_id=conversation.project_id)
        assert await told(app, conversation.id) == [block]

    run(tmp_path, body)


@posix
def test_a_call_whose_turn_was_cancelled_under_it_says_so_and_is_undone(
    tmp_path: Path, project: Path
) -> None:
    async def body(app: GrowBox) -> None:
        asking = asyncio.get_running_loop().create_task(shell(app, project, CUT, []))
        await until_there(project)
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        kept, _ = await stored(app)
        assert isinstance(kept, ToolCalled)
        assert kept.cut_off == "stop"

    run(tmp_path, body)
    check_undone(tmp_path, project, cut_off="stop")


def test_a_call_under_which_the_turn_failed_is_told_as_it_is_stored(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise StorageError("full", tmp_path)

    async def body(app: GrowBox) -> None:
        monkeypatch.setattr(Outcomes, "keep", full)
        events = await call(app, project, "file_edit", EDIT, yes)
        end = events[-1]
        assert isinstance(end, TurnFinished)
        assert end.problem is not None
        assert end.problem.code is ProblemCode.DISK_FULL
        (done,) = [event for event in events if isinstance(event, ToolCalled)]
        assert (done.cut_off, bool(done.checkpoint)) == ("stop", True)
        kept, _, problem = await stored(app)
        assert (kept, problem) == (done, end.problem)
        assert (project / "a.txt").read_text(encoding="utf-8") != TEXT
        assert (await app.restore(done.checkpoint)).is_done
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT

    run(tmp_path, body)


async def deed_of(app: GrowBox, folder: Path, wish: ToolCall, store: Store) -> Deed:
    """A call that needs no consent, outside of any turn."""
    opened = await app.library.open_project(folder)
    scene = CallContext(
        conversation_id=ConversationId("c"),
        project_id=opened.id,
        exclude=frozenset(),
        resident=frozenset(),
        workspace=await app.library.workspace(opened.id),
    )
    registry = app._registry().for_window(16384, in_project=True)
    return Deed(id=1, call=wish, registry=registry, scene=scene, answer_id=NodeId("n"), store=store)


def test_only_what_changes_something_is_stored_as_begun_and_once(
    tmp_path: Path, project: Path
) -> None:
    async def body(app: GrowBox) -> None:
        begun: list[ToolCalled] = []

        async def store(call: ToolCalled) -> None:
            assert (project / "a.txt").read_text(encoding="utf-8") == TEXT
            begun.append(call)

        wishes = (
            ToolCall(name="file_read", arguments={"path": "a.txt"}),
            ToolCall(name="code_search", arguments={"pattern": "two"}),
            ToolCall(name="file_edit", arguments=EDIT),
        )
        for wish in wishes:
            deed = await deed_of(app, project, wish, store)
            events = [event async for event in app._hands().perform(deed)]
            assert isinstance(events[-1], ToolCalled)
            assert events[-1].ok
        assert [(call.name, call.cut_off) for call in begun] == [("file_edit", "exit")]
        assert begun[0].checkpoint

    run(tmp_path, body, agent__mode="auto")


def test_what_cannot_be_stored_as_begun_does_not_run(tmp_path: Path, project: Path) -> None:
    async def body(app: GrowBox) -> None:
        async def store(_: ToolCalled) -> None:
            raise StorageError("full", tmp_path)

        wish = ToolCall(name="file_edit", arguments=EDIT)
        deed = await deed_of(app, project, wish, store)
        with pytest.raises(StorageError):
            async for _ in app._hands().perform(deed):
                pass
        assert (project / "a.txt").read_text(encoding="utf-8") == TEXT
        assert await app._checkpoints.diff(deed.checkpoint) == ()

    run(tmp_path, body, agent__mode="auto")


def test_a_call_that_the_store_has_as_begun_reads_as_cut_off_and_old_ones_do_not() -> None:
    begun = replace(ended_call(1), ok=False, checkpoint="k1", cut_off="exit")
    written = encode_trace(Trace(calls=(begun,)))
    assert decode_trace(written).notes() == (begun,)
    old = json.loads(written)
    del old["calls"][0]["cut_off"]
    assert decode_trace(json.dumps(old)).notes() == (replace(begun, cut_off=""),)


# -- trouble ----------------------------------------------------------------------------------
RESTARTED = Problem(code=ProblemCode.ENGINE_RESTARTED)
SHORTENED = Problem(
    code=ProblemCode.ENDPOINT_SHORTENED, fields={"host": "h", "tokens": "4,096"}, detail="d"
)


def a_turn() -> Turn:
    conversation = Conversation(
        id=ConversationId("c"), title="", project_id=None, created_at_ms=0, updated_at_ms=0
    )
    node = Node(
        id=NodeId("n"), seq=1, kind=NodeKind.MESSAGE, role=Role.USER, content="q", created_at_ms=0
    )
    return Turn(conversation=conversation, question=node, answer=node, cancelled=asyncio.Event())


def test_trouble_stands_where_it_was_told() -> None:
    turn = a_turn()
    turn.tell(RESTARTED)
    turn.keep(replace(ended_call(1), ok=False, cut_off="exit"))
    turn.keep(ended_call(1))
    turn.keep(ended(1, 1))
    turn.tell(SHORTENED)
    turn.tell(RESTARTED)
    turn.keep(ended_call(2))
    turn.tell(SHORTENED)
    assert decode_trace(encode_trace(turn.trace())).notes() == (
        RESTARTED,
        ended_call(1),
        ended(1, 1),
        SHORTENED,
        RESTARTED,
        ended_call(2),
        SHORTENED,
    )


def test_trouble_of_old_traces_stands_at_the_end_and_that_of_other_versions_nowhere() -> None:
    old = json.loads(encode_trace(Trace(calls=(ended_call(1),))))
    old["notices"] = ["engine_restarted", "of_tomorrow", "engine_died"]
    assert decode_trace(json.dumps(old)).notes() == (
        ended_call(1),
        RESTARTED,
        Problem(code=ProblemCode.ENGINE_DIED),
    )


def test_trouble_is_stored_as_it_was_told(tmp_path: Path) -> None:
    told: list[Problem] = []

    async def first(app: GrowBox) -> None:
        async for event in app.ask(AskRequest(text="die say:9 a b c")):
            told.extend([event.problem] if isinstance(event, Notice) else [])
        assert told == [RESTARTED]

    async def second(app: GrowBox) -> None:
        assert await stored(app) == tuple(told)

    run(tmp_path, first)
    run(tmp_path, second)
