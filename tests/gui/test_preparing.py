"""The window says which conversation a question is likely in: when one is shown, and with the first letter typed."""

from __future__ import annotations

from pathlib import Path

import pytest

from growbox_app.api import EnginePhase, EngineStatus
from growbox_app.text import tr
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from ui.view_models import wording


async def test_showing_a_conversation_prepares_it(desk: Desk, assistant: ScriptedAssistant) -> None:
    older = assistant.add_conversation("Older", [("a", "b")])
    newer = assistant.add_conversation("Newer", [("c", "d")])
    desk.state.keep_last_conversation(older.id)
    await desk.open()
    assert assistant.prepared == [older.id]
    await desk.window.flow.open(newer)
    desk.window.new_conversation()
    assert assistant.prepared == [older.id, newer.id, None]


async def test_a_new_conversation_is_prepared_for_its_project(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    await desk.open()
    project = await assistant.library.open_project(tmp_path)
    assert (assistant.prepared[-1], assistant.prepared_in[-1]) == (None, None)
    count = len(assistant.prepared)
    desk.window.flow.choose_project(project.id)
    desk.window.flow.choose_project(project.id)
    assert assistant.prepared_in[count:] == [project.id]
    desk.window.conversation_panel.composer.insert_text("W")
    assert (assistant.prepared[-1], assistant.prepared_in[-1]) == (None, project.id)


async def test_the_first_letter_of_a_question_prepares_and_the_others_do_not(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    conversation = assistant.add_conversation("Only", [("a", "b")])
    desk.state.keep_last_conversation(conversation.id)
    await desk.open()
    assistant.prepared.clear()
    composer = desk.window.conversation_panel.composer
    composer.insert_text("W")
    composer.insert_text("hy?")
    assert assistant.prepared == [conversation.id]
    desk.window.conversation_panel.input.submit()
    await desk.settle()
    composer.insert_text("A")
    assert assistant.prepared == [conversation.id] * 2


@pytest.mark.parametrize("language", ["en", "zh"])
def test_a_template_that_rewrites_history_is_said(language: str) -> None:
    tr.use(language)
    ready = EngineStatus(phase=EnginePhase.READY, model_name="M", slow_processor=True)
    assert tr("engine.rewrites") not in wording.engine(ready)
    rewriting = EngineStatus(phase=EnginePhase.READY, model_name="M", prefix_stable=False)
    assert wording.engine(rewriting).endswith(f" · {tr('engine.rewrites')}")
    loading = EngineStatus(phase=EnginePhase.LOADING, model_name="M", prefix_stable=False)
    assert tr("engine.rewrites") not in wording.engine(loading)
