"""The line under an answer about the search of the past, and what the reader does with a message: cite it, call it wrong, answer again."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QDropEvent, QMouseEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QDialog

from growbox_app.api import DeepSearchState, Problem, ProblemCode, ProblemError
from growbox_app.text import tr
from memory.values import NodeId, Role
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.past import search
from ui.panels.citing import carried, citation_of
from ui.panels.composer import Chip
from ui.panels.message import MessageView
from ui.panels.source_dialog import SourceDialog
from ui.view_models.enclosures import Citation
from ui.window_state import WindowState


async def answered(desk: Desk) -> MessageView:
    """Asks a question; returns its answer as it is shown."""
    await desk.open()
    desk.ask("Which database?")
    await desk.settle()
    return newest(desk)


def newest(desk: Desk) -> MessageView:
    view = desk.window.conversation_panel.view
    shown = view.view_of(len(view.transcript.messages) - 1)
    assert shown is not None
    return shown


async def tell(
    desk: Desk, state: DeepSearchState, answer_id: NodeId, *, found: bool = False
) -> None:
    memories = (desk.assistant.used("Loader notes", way="scan"),) if found else ()
    desk.assistant.tell_search(search(answer_id, state, memories))
    await desk.settle()


# -- the line ---------------------------------------------------------------------------------
async def test_a_running_search_is_one_quiet_line_that_can_be_stopped(desk: Desk) -> None:
    shown = await answered(desk)
    view = desk.window.conversation_panel.view
    before = (shown.height(), view.verticalScrollBar().value(), shown.y())
    focus = QApplication.focusWidget()
    assert shown.notice.isHidden()
    await tell(desk, DeepSearchState.RUNNING, shown.message.node_id)
    assert shown.notice.isVisible()
    assert shown.notice.text().startswith("Looking further back… ")
    assert shown.notice.text().endswith("96 notes")
    assert (shown.height(), view.verticalScrollBar().value(), shown.y()) == before
    assert QApplication.focusWidget() is focus
    assert desk.window.findChildren(QDialog) == []
    assert not shown.notice.further_button.isVisible()
    shown.notice.stop_button.click()
    assert not shown.notice.stop_button.isEnabled()
    await desk.settle()
    assert desk.assistant.searches_stopped == 1


async def test_a_paused_search_goes_on_when_told_to(desk: Desk) -> None:
    shown = await answered(desk)
    answer_id = shown.message.node_id
    await tell(desk, DeepSearchState.PAUSED, answer_id)
    assert shown.notice.text().endswith("96 notes. Keep going?")
    shown.notice.further_button.click()
    assert not shown.notice.further_button.isEnabled()
    await desk.settle()
    assert desk.assistant.searched_further == [answer_id]
    await tell(desk, DeepSearchState.RUNNING, answer_id)
    assert shown.notice.stop_button.isEnabled()
    await tell(desk, DeepSearchState.NOTHING, answer_id)
    assert shown.notice.text() == tr("search.nothing")
    visible = [button.isVisible() for button in shown.notice._buttons()]
    assert visible == [False, False, False, False]


async def test_what_was_found_is_opened_and_the_question_answered_again(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    shown = await answered(desk)
    answer_id = shown.message.node_id
    await tell(desk, DeepSearchState.FOUND, answer_id, found=True)
    assert shown.notice.title_button.text() == "Loader notes"
    shown.notice.title_button.click()
    await desk.settle()
    (dialog,) = desk.window.findChildren(SourceDialog)
    assert dialog.text.toPlainText() == "Loader notes"
    dialog.close()
    assistant.answers.append("DuckDB, as the loader notes say.")
    shown.notice.again_button.click()
    await desk.settle()
    assert assistant.answered_again == [answer_id]
    messages = desk.window.flow.shown.messages
    assert [message.role for message in messages] == [Role.USER, Role.ASSISTANT] * 2
    assert messages[-1].text == "DuckDB, as the loader notes say."
    assert shown.notice.isHidden()
    assert newest(desk).message is messages[-1]


async def test_answering_again_waits_its_turn_and_can_be_taken_back(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    shown = await answered(desk)
    panel = desk.window.conversation_panel
    await tell(desk, DeepSearchState.FOUND, shown.message.node_id, found=True)
    assistant.gate = asyncio.Event()
    desk.ask("Something else")
    await desk.until(lambda: desk.window.flow.shown.running)
    shown.notice.again_button.click()
    assert panel.queue_row.texts == ("Which database?",)
    panel.queue_row.withdrawn.emit(0)
    assert panel.queue_row.texts == ()
    assert panel.input.toPlainText() == ""
    assert shown.notice.again_button.isEnabled()
    shown.notice.again_button.click()
    assistant.gate.set()
    await desk.settle()
    assert assistant.answered_again == [shown.message.node_id]


async def test_a_refused_second_answer_is_said_and_may_be_asked_for_again(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    shown = await answered(desk)
    await tell(desk, DeepSearchState.FOUND, shown.message.node_id, found=True)

    async def refuse(_answer_id: NodeId):  # type: ignore[no-untyped-def]
        raise ProblemError(Problem(code=ProblemCode.ENGINE_GIVEN_UP, fields={"count": "3"}))
        yield

    answer_again, assistant.answer_again = assistant.answer_again, refuse  # type: ignore[method-assign]
    shown.notice.again_button.click()
    await desk.settle()
    assert desk.window.conversation_panel.problem_bar.isVisible()
    assert desk.window.conversation_panel.input.toPlainText() == ""
    assert shown.notice.again_button.isEnabled()
    assistant.answer_again = answer_again  # type: ignore[method-assign]


async def test_closing_forgets_a_second_answer_that_still_waits(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    shown = await answered(desk)
    await tell(desk, DeepSearchState.FOUND, shown.message.node_id, found=True)
    assistant.gate = asyncio.Event()
    desk.ask("Something else")
    await desk.until(lambda: desk.window.flow.shown.running)
    shown.notice.again_button.click()
    conversation_id = desk.window.flow.shown.conversation_id
    assert conversation_id is not None
    desk.window.keep()
    assert WindowState(tmp_path).draft(conversation_id) == ("", [])
    assistant.gate.set()


async def test_what_was_found_before_the_answer_is_in_its_trace_only(desk: Desk) -> None:
    shown = await answered(desk)
    await tell(desk, DeepSearchState.RUNNING, shown.message.node_id)
    await tell(desk, DeepSearchState.USED, shown.message.node_id, found=True)
    assert not shown.notice.isVisible()
    shown.memories_button.setChecked(True)
    assert shown.trace is not None
    assert "14 notes judged" in shown.trace.cost_text()


async def test_the_line_is_there_again_when_the_conversation_is_reopened(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    stored = assistant.add_conversation("S", [("one", "first"), ("two", "second")])
    other = assistant.add_conversation("Other", [("q", "a")])
    first, second = (
        n for n in await assistant.library.messages(stored.id) if n.role is Role.ASSISTANT
    )
    assistant.searches[first.id] = search(first.id, DeepSearchState.NOTHING)
    assistant.searches[second.id] = search(second.id, DeepSearchState.PAUSED)
    await desk.open()
    view = desk.window.conversation_panel.view
    for conversation in (stored, other, stored):
        desk.window.open_conversation(conversation.id)
        await desk.settle()
    early, late = view.view_of(1), view.view_of(3)
    assert early is not None
    assert late is not None
    assert late.notice.isVisible()
    assert late.notice.further_button.isVisible()
    assert not early.notice.isVisible()
    desk.window.open_conversation(other.id)
    await desk.settle()
    assert not newest(desk).notice.isVisible()
    await tell(desk, DeepSearchState.RUNNING, second.id)
    assert not newest(desk).notice.isVisible()


async def test_news_reaches_an_answer_whose_conversation_is_not_shown(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    other = assistant.add_conversation("Other", [("q", "a")])
    await desk.open()
    assistant.gate = asyncio.Event()
    desk.ask("Which database?")
    await desk.until(lambda: desk.window.flow.shown.running)
    running = desk.window.flow.shown
    desk.window.open_conversation(other.id)
    await desk.until(lambda: desk.window.flow.shown is not running)
    assistant.tell_search(search(running.messages[-1].node_id, DeepSearchState.RUNNING))
    await desk.until(lambda: running.messages[-1].search is not None)
    assistant.gate.set()
    await desk.settle()


async def test_the_trace_has_what_was_found_later_and_its_cost(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    assistant.memories = (assistant.used("a memory"),)
    shown = await answered(desk)
    await tell(desk, DeepSearchState.FOUND, shown.message.node_id, found=True)
    shown.memories_button.setChecked(True)
    assert shown.trace is not None
    rows = shown.trace.rows
    assert [row._memory.way for row in rows] == ["rag", "scan"]
    assert rows[1]._figures.text().startswith("scan · score 0.80 · meaning 0.74 · words 0.50")
    assert rows[1]._figures.toolTip() == tr("way_help.scan")
    assert "Looked further back: back to" in shown.trace.cost_text()
    await tell(desk, DeepSearchState.UNAVAILABLE, shown.message.node_id)
    assert tr("search.unavailable") in shown.trace.cost_text()
    rows[1].reject_button.click()
    await desk.settle()
    assert assistant.mind.rejected == [(shown.message.node_id, rows[1]._memory.node_id)]


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_an_answer_without_memories_still_shows_what_was_found(
    desk: Desk, assistant: ScriptedAssistant, language: str
) -> None:
    await assistant.change_setting("general.language", language)
    stored = assistant.add_conversation("S", [("one", "first")])
    answer = (await assistant.library.messages(stored.id))[1]
    found = (assistant.used("Loader notes", way="jump"),)
    assistant.searches[answer.id] = search(answer.id, DeepSearchState.FOUND, found)
    await desk.open()
    desk.window.open_conversation(stored.id)
    await desk.settle()
    shown = newest(desk)
    assert shown.memories_button.text() == tr("search.found_later")
    shown.memories_button.setChecked(True)
    assert shown.trace is not None
    assert len(shown.trace.rows) == 1


# -- "that's not it" ----------------------------------------------------------------------------
async def test_calling_an_answer_wrong_searches_everything_again(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    shown = await answered(desk)
    answer_id = shown.message.node_id
    shown.setFocus()
    assert shown.wrong_button.isVisible()
    shown.wrong_button.click()
    assert not shown.wrong_button.isEnabled()
    await tell(desk, DeepSearchState.RUNNING, answer_id)
    assert assistant.called_wrong == [answer_id]
    assert not shown.wrong_button.isEnabled()
    await tell(desk, DeepSearchState.NOTHING, answer_id)
    assert shown.wrong_button.isEnabled()
    question = desk.window.conversation_panel.view.view_of(0)
    assert question is not None
    question.setFocus()
    assert not question.wrong_button.isVisible()
    assert question.cite_button.isVisible()


async def test_what_is_asked_for_during_a_turn_is_done_after_it(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    shown = await answered(desk)
    answer_id = shown.message.node_id
    await tell(desk, DeepSearchState.PAUSED, answer_id)
    assistant.gate = asyncio.Event()
    desk.ask("Something else")
    await desk.until(lambda: desk.window.flow.shown.running)
    shown.wrong_button.click()
    shown.notice.further_button.click()
    assert not shown.wrong_button.isEnabled()
    await asyncio.sleep(0.01)
    assert (assistant.called_wrong, assistant.searched_further) == ([], [])
    assistant.gate.set()
    await desk.settle()
    assert (assistant.called_wrong, assistant.searched_further) == ([answer_id], [answer_id])


async def test_an_empty_answer_cannot_be_cited(desk: Desk, assistant: ScriptedAssistant) -> None:
    stored = assistant.add_conversation("S", [("one", "")])
    await desk.open()
    desk.window.open_conversation(stored.id)
    await desk.settle()
    shown = newest(desk)
    shown.setFocus()
    assert not shown.cite_button.isVisible()
    assert shown.wrong_button.isVisible()


async def test_what_cannot_be_done_is_said_and_can_be_tried_again(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    shown = await answered(desk)

    async def refuse(_answer_id: NodeId) -> None:
        raise ProblemError(Problem(code=ProblemCode.BUSY))

    assistant.wrong_answer = refuse  # type: ignore[method-assign]
    shown.setFocus()
    shown.wrong_button.click()
    await desk.settle()
    assert desk.window.conversation_panel.problem_bar.isVisible()
    assert shown.wrong_button.isEnabled()


async def test_actions_are_shown_with_the_focus_and_reached_by_tab(desk: Desk) -> None:
    shown = await answered(desk)
    assert not shown.copy_button.isVisible()
    shown.setFocus(Qt.FocusReason.TabFocusReason)
    assert shown.copy_button.isVisible()
    QTest.keyClick(shown, Qt.Key.Key_Tab)
    focused = QApplication.focusWidget()
    assert focused in (shown.wrong_button, shown.cite_button, shown.copy_button)
    assert shown.copy_button.isVisible()
    desk.window.conversation_panel.input.setFocus()
    assert not shown.copy_button.isVisible()


# -- citing -----------------------------------------------------------------------------------
async def test_a_cited_message_is_a_chip_and_goes_out_with_the_question(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    shown = await answered(desk)
    composer = desk.window.conversation_panel.composer
    question = desk.window.conversation_panel.view.view_of(0)
    assert question is not None
    for view in (shown, question, shown):
        view.cite_button.click()
    await desk.settle()
    chips = composer.chips.findChildren(Chip)
    texts = [chip.text() for chip in chips if not chip.isHidden()]
    assert texts[-2:] == ["You said: Which database?", "Which database?"]
    assert QApplication.focusWidget() is composer.field
    chips[-1]._remove.click()
    desk.ask("   ")
    assert composer.hint_text == tr("composer.empty")
    desk.ask("Are you sure?")
    await desk.settle()
    assert assistant.requests[-1].cited == (shown.message.node_id,)
    assert assistant.requests[-1].attachments == ()
    assert composer.enclosures == []


async def test_a_citation_is_part_of_the_draft(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    other = assistant.add_conversation("Other", [("q", "a")])
    shown = await answered(desk)
    conversation_id = desk.window.flow.shown.conversation_id
    assert conversation_id is not None
    shown.cite_button.click()
    desk.window.open_conversation(other.id)
    await desk.settle()
    composer = desk.window.conversation_panel.composer
    assert composer.enclosures == []
    kept = WindowState(tmp_path)
    desk.window.keep()
    wanted = Citation(node_id=shown.message.node_id, title="You said: Which database?")
    assert kept.draft(conversation_id) == ("", [wanted])


async def test_a_question_that_returns_brings_its_citations(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    shown = await answered(desk)
    shown.cite_button.click()
    assistant.fail_next = Problem(code=ProblemCode.MODEL_MISSING, fields={"model": "Qwen"})
    desk.ask("Are you sure?")
    await desk.settle()
    composer = desk.window.conversation_panel.composer
    assert composer.text() == "Are you sure?"
    assert composer.enclosures == [shown.citation()]


async def test_a_message_dropped_on_the_input_is_cited(desk: Desk) -> None:
    shown = await answered(desk)
    data = carried(shown.citation())
    assert citation_of(data) == shown.citation()
    drop = QDropEvent(
        QPointF(5, 5),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    composer = desk.window.conversation_panel.composer
    composer.field.dropEvent(drop)
    assert composer.enclosures == [shown.citation()]
    assert composer.text() == ""


async def test_a_short_pull_at_the_header_is_no_drag(desk: Desk) -> None:
    shown = await answered(desk)
    for kind, x in ((QEvent.Type.MouseButtonPress, 300), (QEvent.Type.MouseMove, 302)):
        place = QPointF(x, 20)
        held = Qt.MouseButton.LeftButton
        event = QMouseEvent(
            kind, place, shown.mapToGlobal(place), held, held, Qt.KeyboardModifier.NoModifier
        )
        QApplication.sendEvent(shown, event)
    assert shown._pressed == QPointF(300, 20)
    assert shown.citation().title == "You said: Which database?"
