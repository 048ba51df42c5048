"""What was typed, sent or attached is never lost: restarts, closing, refusals, taking back, switching away."""

import asyncio
from pathlib import Path

import pytest

from growbox_app.api import Attachment, EnginePhase, EngineStatus, Problem, ProblemCode
from growbox_app.text import tr
from memory.values import ConversationId, NodeId
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from ui.window_state import NEW_CONVERSATION

CHIP = Attachment(node_id=NodeId("chip"), name="chip.txt", size_bytes=3)


async def running_turn(desk: Desk, assistant: ScriptedAssistant) -> ConversationId:
    """A first question whose answer is held by the gate."""
    await desk.open()
    assistant.gate = asyncio.Event()
    desk.ask("first")
    await desk.until(lambda: desk.window.flow.shown.running)
    shown = desk.window.flow.shown.conversation_id
    assert shown is not None
    return shown


def release(assistant: ScriptedAssistant) -> None:
    assert assistant.gate is not None
    assistant.gate.set()


@pytest.mark.parametrize("with_last", [False, True])
async def test_a_new_conversations_draft_survives_a_restart(
    desk: Desk, assistant: ScriptedAssistant, with_last: bool
) -> None:
    stored = assistant.add_conversation("Old", [("q", "a")])
    desk.state.keep_draft(NEW_CONVERSATION, "half a question", [CHIP])
    desk.state.keep_last_conversation(stored.id if with_last else "")
    await desk.open()
    assert (desk.window.flow.shown.conversation_id == stored.id) is with_last
    desk.window.new_conversation()
    composer = desk.window.conversation_panel.composer
    assert (composer.text(), composer.enclosures) == ("half a question", [CHIP])


async def test_follow_ups_that_wait_are_drafts_after_closing(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    conversation_id = await running_turn(desk, assistant)
    composer = desk.window.conversation_panel.composer
    composer.show_enclosures([CHIP])
    desk.ask("second")
    desk.ask("third")
    composer.show_text("fourth")
    desk.window.keep()
    release(assistant)
    await desk.settle()
    assert [request.text for request in assistant.requests] == ["first"]
    assert desk.state.draft(conversation_id) == ("second\n\nthird\n\nfourth", [CHIP])


async def test_a_question_refused_while_closing_is_a_draft(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    assistant.fail_next = Problem(code=ProblemCode.BUSY)
    desk.ask("too late")
    desk.window.keep()
    await desk.settle()
    assert desk.state.draft(NEW_CONVERSATION) == ("too late", [])


async def test_a_follow_up_typed_before_the_first_answer_moves_with_the_conversation(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    desk.ask("first")
    desk.window.conversation_panel.composer.show_text("typed meanwhile")
    desk.window.flow.keep_draft()
    await desk.settle()
    conversation_id = desk.window.flow.shown.conversation_id
    assert conversation_id is not None
    assert desk.state.draft(conversation_id) == ("typed meanwhile", [])
    assert desk.state.draft(NEW_CONVERSATION) == ("", [])


@pytest.mark.parametrize("what", ["models", "messages"])
async def test_what_cannot_be_read_at_the_start_is_said_and_the_window_works(
    desk: Desk, assistant: ScriptedAssistant, what: str
) -> None:
    stored = assistant.add_conversation("Old", [("q", "a")])
    desk.state.keep_last_conversation(stored.id)
    problem = Problem(code=ProblemCode.MODEL_MISSING, fields={"model": "of-old-days"})
    if what == "models":
        assistant.fail_models = problem
    else:
        assistant.library.fail_messages = problem
    await desk.open()
    assert "of-old-days" in desk.window.conversation_panel.problem_text()
    desk.ask("still there?")
    await desk.settle()
    assert "You said: still there?" in desk.window.conversation_panel.transcript_text()


async def test_what_is_typed_before_the_memory_is_open_stays_in_the_input(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    stored = assistant.add_conversation("Old", [("q", "a")])
    desk.state.keep_last_conversation(stored.id)
    desk.window.show()
    desk.window.conversation_panel.composer.show_text("typed early")
    desk.window.run_command("new_conversation")
    assert assistant.requests == []
    await desk.open()
    assert desk.window.conversation_panel.composer.text() == "typed early"
    assert desk.window.flow.shown.conversation_id == stored.id


async def test_a_question_sent_before_the_memory_is_open_begins_a_conversation(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    stored = assistant.add_conversation("Old", [("q", "a")])
    desk.state.keep_last_conversation(stored.id)
    desk.window.show()
    desk.window.conversation_panel.composer.show_text("asked early")
    desk.window.run_command("send")
    desk.window.flow.submit()
    await desk.open()
    assert [request.text for request in assistant.requests] == ["asked early"]
    assert assistant.requests[0].conversation_id is None
    assert desk.window.flow.shown.conversation_id != stored.id
    assert desk.window.conversation_panel.composer.text() == ""


async def test_a_question_that_broke_something_returns_to_the_input(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()

    async def broken(_request: object) -> object:
        raise ZeroDivisionError
        yield

    assistant.ask = broken  # type: ignore[method-assign, assignment]
    desk.ask("boom")
    await desk.settle()
    assert [type(error) for error in desk.failures] == [ZeroDivisionError]
    desk.failures.clear()
    assert desk.window.conversation_panel.input.toPlainText() == "boom"


async def test_a_working_model_is_not_covered_by_the_models_page(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    assistant.selected = "standard"
    await desk.open()
    assert desk.window.pages.currentWidget() is desk.window.conversation_panel
    assistant.status = EngineStatus(phase=EnginePhase.STOPPED)
    await desk.window.setup.update()
    assert desk.window.pages.currentWidget() is desk.window.first_run_page


async def test_taking_back_adds_to_what_is_typed(desk: Desk, assistant: ScriptedAssistant) -> None:
    await running_turn(desk, assistant)
    panel = desk.window.conversation_panel
    panel.composer.show_enclosures([CHIP])
    desk.ask("second")
    other = Attachment(node_id=NodeId("other"), name="other.txt", size_bytes=4)
    panel.composer.show_text("typed")
    panel.composer.show_enclosures([other])
    panel.queue_row.withdrawn.emit(0)
    assert panel.composer.text() == "typed\n\nsecond"
    assert panel.composer.enclosures == [other, CHIP]
    release(assistant)
    await desk.settle()
    assert len(assistant.requests) == 1


async def test_taking_back_from_elsewhere_goes_to_its_own_conversation(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    conversation_id = await running_turn(desk, assistant)
    panel = desk.window.conversation_panel
    desk.ask("second")
    panel.composer.show_text("typed before leaving")
    desk.window.new_conversation()
    panel.queue_row.withdrawn.emit(0)
    assert panel.composer.text() == ""
    assert desk.state.draft(conversation_id)[0] == "second\n\ntyped before leaving"
    release(assistant)
    await desk.settle()


async def test_signs_without_a_word_are_a_hint(desk: Desk, assistant: ScriptedAssistant) -> None:
    await desk.open()
    desk.ask("?!…")
    await desk.settle()
    assert assistant.requests == []
    assert desk.window.conversation_panel.composer.hint_text == tr("composer.empty")
    assert desk.window.conversation_panel.composer.text() == "?!…"


async def test_an_empty_follow_up_does_not_hold_the_queue(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await running_turn(desk, assistant)
    desk.ask("refused")
    desk.ask("third")
    assistant.fail_next = Problem(code=ProblemCode.EMPTY_QUESTION)
    release(assistant)
    await desk.settle()
    assert [request.text for request in assistant.requests] == ["first", "third"]
    assert desk.window.conversation_panel.composer.text() == "refused"


async def test_a_question_waits_while_another_face_asks(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    desk.window.flow._retry.setInterval(0)
    assistant.fail_next = Problem(code=ProblemCode.BUSY)
    desk.ask("patient")
    await desk.until(lambda: bool(assistant.requests))
    await desk.settle()
    assert "You said: patient" in desk.window.conversation_panel.transcript_text()


async def test_opening_the_shown_conversation_again_shows_its_waiting_answer(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    stored = assistant.add_conversation("Stored", [("q", "a")])
    await running_turn(desk, assistant)
    window = desk.window
    window.open_conversation(stored.id)
    await desk.until(lambda: window.flow.shown.conversation_id == stored.id)
    desk.ask("follow-up")
    asked_in = window.flow.shown
    await window.flow.open(stored)
    assert window.flow.shown is asked_in
    release(assistant)
    await desk.settle()
    assert "You said: follow-up" in window.conversation_panel.transcript_text()


async def test_a_file_that_cannot_be_read_stops_the_question_that_needs_it(
    desk: Desk,
    assistant: ScriptedAssistant,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("content", encoding="utf-8")
    await desk.open()

    def denied(_path: Path) -> bytes:
        raise PermissionError(13, "denied")

    monkeypatch.setattr(Path, "read_bytes", denied)
    desk.window.flow.attach_files([note])
    desk.ask("summarise")
    await desk.settle()
    composer = desk.window.conversation_panel.composer
    assert assistant.requests == []
    assert composer.text() == "summarise"
    assert composer.hint_text == tr("composer.not_text")


async def test_an_attachment_stays_with_its_conversation(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    stored = assistant.add_conversation("Stored", [("q", "a")])
    await desk.open()
    desk.window.open_conversation(stored.id)
    await desk.settle()
    assistant.attach_gate = asyncio.Event()
    panel = desk.window.conversation_panel
    panel.composer.large_text.emit("x" * 10_000)
    desk.window.new_conversation()
    assistant.attach_gate.set()
    await desk.settle()
    assert panel.composer.enclosures == []
    assert [item.size_bytes for item in desk.state.draft(stored.id)[1]] == [10_000]


async def test_a_question_sent_while_attaching_keeps_conversation_text_and_file(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    stored = assistant.add_conversation("Stored", [("q", "a")])
    await desk.open()
    desk.window.open_conversation(stored.id)
    await desk.settle()
    assistant.attach_gate = asyncio.Event()
    composer = desk.window.conversation_panel.composer
    composer.large_text.emit("x" * 10_000)
    desk.ask("what is it?")
    desk.window.new_conversation()
    composer.show_text("another thought")
    assistant.attach_gate.set()
    await desk.settle()
    (request,) = assistant.requests
    assert (request.text, request.conversation_id) == ("what is it?", stored.id)
    assert [item.size_bytes for item in request.attachments] == [10_000]
    assert composer.text() == "another thought"


async def test_questions_go_in_order_also_behind_one_that_waits_for_its_file(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    assistant.attach_gate = asyncio.Event()
    panel = desk.window.conversation_panel
    panel.composer.large_text.emit("x" * 10_000)
    desk.ask("with the file")
    desk.ask("without")
    assert panel.queue_row.texts == ("with the file", "without")
    assistant.attach_gate.set()
    await desk.settle()
    assert [request.text for request in assistant.requests] == ["with the file", "without"]


@pytest.mark.parametrize("way", ["withdraw", "close"])
async def test_a_question_that_waits_for_its_file_can_be_taken_back(
    desk: Desk, assistant: ScriptedAssistant, way: str
) -> None:
    await desk.open()
    assistant.attach_gate = asyncio.Event()
    panel = desk.window.conversation_panel
    panel.composer.large_text.emit("x" * 10_000)
    desk.ask("with the file")
    if way == "withdraw":
        panel.queue_row.withdrawn.emit(0)
    else:
        desk.window.keep()
    assistant.attach_gate.set()
    await desk.settle()
    desk.window.flow.keep_draft()
    text, attachments = desk.state.draft(NEW_CONVERSATION)
    assert assistant.requests == []
    assert (text, [item.size_bytes for item in attachments]) == ("with the file", [10_000])


async def test_a_suggestion_does_not_replace_what_is_typed(desk: Desk) -> None:
    await desk.open()
    panel = desk.window.conversation_panel
    panel.composer.show_text("My words. ")
    button = panel.empty_state.buttons[0]
    button.click()
    assert panel.composer.text() == f"My words. {button.text()}"


async def test_a_follow_up_that_starts_does_not_move_the_reader(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    stored = assistant.add_conversation("Long", [("q", "line\n\n" * 40)] * 5)
    await desk.open()
    desk.window.open_conversation(stored.id)
    await desk.settle()
    view = desk.window.conversation_panel.view
    assistant.gate = asyncio.Event()
    desk.ask("first")
    await desk.until(lambda: desk.window.flow.shown.running)
    assert view.following
    desk.ask("second")
    view.scroll_to(2)
    release(assistant)
    await desk.settle()
    assert len(assistant.requests) == 2
    assert not view.following
    desk.ask("third")
    await desk.settle()
    assert view.following
