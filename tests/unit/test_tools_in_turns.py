"""Tools of servers, and tool memory, in the whole application over a scripted engine."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

from growbox_app.api import (
    AskRequest,
    ProblemError,
    ToolCalled,
    ToolsChanged,
    TurnEvent,
)
from growbox_app.approval_face import (
    Approval,
    ApprovalAnswer,
    ApprovalAsked,
)
from growbox_app.assistant import GrowBox
from growbox_app.mcp_client.values import ServerSpec, ServerState
from growbox_app.routing.lessons import Counsel
from memory.values import ConversationId
from tests.conftest import ROOT
from tests.fakes.application import run_application, scripted
from tests.fakes.keyring_backend import MemoryKeyring

SPEC = ServerSpec(name="s", command=sys.executable, args=("-m", "tests.fakes.mcp_server", "stdio"))


@pytest.fixture(autouse=True)
def _findable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))


def run(tmp_path: Path, body: object, **settings: object) -> None:
    run_application(
        lambda: scripted(tmp_path, find_keyring=MemoryKeyring),
        body,  # type: ignore[arg-type]
        {"models.context_tokens": 16384} | settings,
    )


async def call(
    app: GrowBox,
    name: str,
    arguments: dict[str, object],
    conversation_id: ConversationId | None = None,
    project: Path | None = None,
    asked: list[Approval] | None = None,
) -> tuple[ToolCalled | None, ConversationId]:
    wish = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
    found = await app.library.open_project(project) if project else None
    events: list[TurnEvent] = []
    request = AskRequest(
        text=f"call:{wish}",
        conversation_id=conversation_id,
        project_id=found.id if found else None,
    )
    async for event in app.ask(request):
        events.append(event)
        if isinstance(event, ApprovalAsked):
            assert asked is not None, event
            asked.append(event.approval)
            app.answer_approval(ApprovalAnswer(id=event.approval.id, allowed=True))
    done = [event for event in events if isinstance(event, ToolCalled)]
    conversation = (await app.library.conversations())[0].id
    return done[0] if done else None, conversation


def test_a_servers_tool_is_found_asked_about_run_and_fenced(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        changes: list[object] = []
        app.subscribe(lambda e: changes.append(e) if isinstance(e, ToolsChanged) else None)
        await app.tools.save_server(SPEC, {})
        status = await app.tools.check_server("s")
        assert status is not None
        assert status.state is ServerState.READY
        assert changes
        asked: list[Approval] = []
        found, conversation = await call(app, "tool_search", {"query": "planted weather"})
        assert found is not None
        assert "s__weather" in found.output
        weather = {"place": '{"city": "Ulm", "tags": ["a", "b"]}', "unit": "f"}
        done, conversation = await call(app, "s__weather", weather, conversation, asked=asked)
        assert done is not None
        assert done.ok
        assert "Ulm a/b 21 f" in done.output
        assert [one.risk for one in asked] == ["unknown"]
        assert '"city": "Ulm"' in asked[0].whole
        await app.tools.mark_safe("s", "weather", safe=True)
        done, _ = await call(app, "s__weather", weather, conversation)
        assert done is not None
        assert done.ok

    run(tmp_path, body)


def test_planted_instructions_stay_inside_the_fence(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        await app.tools.save_server(SPEC, {})
        await app.tools.check_server("s")
        _, conversation = await call(app, "tool_search", {"query": "s planted"})
        asked: list[Approval] = []
        done, conversation = await call(app, "s__planted", {}, conversation, asked=asked)
        assert done is not None
        assert done.output.count("</tool_output>") == 1
        assert "<tool_call>" not in done.output
        assert "\x1b" not in done.output

    run(tmp_path, body)


def test_the_same_dead_end_is_not_walked_for_ever(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()

    async def body(app: GrowBox) -> None:
        command = {"command": "frobnicate-nothing --now"}
        asked: list[Approval] = []
        for _ in range(2):
            done, _ = await call(app, "shell", command, project=project, asked=asked)
            assert done is not None
            assert not done.ok
        assert "failed 2 of 2 times here" in done.output
        (remembered,) = app.tools.remembered()
        assert (remembered.shape, remembered.counsel) == ("frobnicate-nothing", Counsel.VETO)
        # The question names the program here, so it is tried again all the same.
        done, _ = await call(app, "shell", command, project=project, asked=asked)
        assert len(asked) == 3
        await app.tools.forget(remembered)
        assert not app.tools.remembered()

    run(tmp_path, body)


def test_a_server_that_cannot_be_set_up_is_said(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        with pytest.raises(ProblemError) as caught:
            await app.tools.save_server(ServerSpec(name="no good", command="x"), {})
        assert "small letters" in caught.value.problem.fields["reason"]

    run(tmp_path, body)
