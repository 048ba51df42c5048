"""Stages in whole turns over a scripted engine: what is done by rule goes through the same hands, and a turn always ends."""

from __future__ import annotations

import json
from collections.abc import Collection
from pathlib import Path
from typing import Any

import pytest

from growbox_app.api import (
    AskRequest,
    ToolCalled,
    TurnEvent,
    TurnFinished,
)
from growbox_app.approval_face import ApprovalAnswer, ApprovalAsked
from growbox_app.assistant import GrowBox
from memory.values import NodeStatus
from tests.fakes import recording_engine
from tests.fakes.application import run_application, scripted

TEST = "import unittest\n\nimport sums\n\n\nclass Sums(unittest.TestCase):\n    def test(self):\n        self.assertEqual(sums.add(1, 2), 3)\n"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "sums.py").write_text("def add(a, b):\n    return a - b\n", encoding="utf-8")
    (folder / "test_sums.py").write_text(TEST, encoding="utf-8")
    return folder


def turn(
    tmp_path: Path,
    project: Path,
    text: str,
    *,
    allowed: bool = True,
    denied: Collection[str] = (),
    **options: object,
) -> list[TurnEvent]:
    """The events of one turn in the project; every consent is answered the same way, but for the `denied` tools."""
    events: list[TurnEvent] = []

    async def body(app: GrowBox) -> None:
        opened = await app.library.open_project(project)
        async for event in app.ask(AskRequest(text=text, project_id=opened.id)):
            events.append(event)
            if isinstance(event, ApprovalAsked):
                agreed = allowed and event.approval.executor not in denied
                app.answer_approval(ApprovalAnswer(id=event.approval.id, allowed=agreed))

    run_application(lambda: scripted(tmp_path, **options), body, {"models.context_tokens": 16384})
    return events


def calls(events: list[TurnEvent]) -> list[str]:
    return [event.name for event in events if isinstance(event, ToolCalled)]


def test_what_follows_by_rule_is_asked_about_and_shown_like_any_call(
    tmp_path: Path, project: Path
) -> None:
    events = turn(tmp_path, project, "The test fails, please fix the code")
    asked = [event.approval.executor for event in events if isinstance(event, ApprovalAsked)]
    assert asked == ["shell"]
    assert calls(events)[:2] == ["shell", "file_read"]
    assert set(calls(events)) == {"shell", "file_read"}
    last = events[-1]
    assert isinstance(last, TurnFinished)
    assert last.status is NodeStatus.COMPLETE
    assert last.answer.content


def test_a_no_to_what_follows_by_rule_is_heard(tmp_path: Path, project: Path) -> None:
    events = turn(tmp_path, project, "The test fails, please fix the code", allowed=False)
    (denied,) = [event for event in events if isinstance(event, ToolCalled) if not event.ok]
    assert denied.name == "shell"
    assert isinstance(events[-1], TurnFinished)
    assert events[-1].status is NodeStatus.COMPLETE


def test_without_guidance_nothing_is_done_by_rule(tmp_path: Path, project: Path) -> None:
    assert calls(turn(tmp_path, project, "The test fails, please fix it", guided=False)) == []


def test_the_grammar_narrows_while_the_prompt_stays(
    tmp_path: Path, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "prompts.jsonl"
    monkeypatch.setenv(recording_engine.PROMPTS, str(path))
    target = recording_engine.run
    turn(tmp_path / "a", project, "Where is `add` defined?", engine_target=target)
    turn(tmp_path / "b", project, "Set the sum in sums.py to 4", engine_target=target)
    sent: list[dict[str, Any]] = [json.loads(line) for line in path.read_text("utf-8").splitlines()]
    assert len({prompt["system"] for prompt in sent}) == 1
    grammars = [prompt["grammar"] for prompt in sent]
    assert any("It is in the file" in grammar for grammar in grammars)
    edit = next(grammar for grammar in grammars if "file-edit-place" in grammar)
    assert "return a - b" in edit
    assert "call-shell" not in edit
