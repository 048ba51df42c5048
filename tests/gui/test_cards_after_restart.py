"""The cards of an answer after the window was closed and opened again: what was undone, allowed or cut off, and what trouble there was."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from growbox_app.api import (
    Problem,
    ProblemCode,
    ToolCalled,
)
from growbox_app.approval_face import ApprovalEnded
from growbox_app.text import tr
from memory.values import NodeStatus, Role
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.test_approvals import EDIT, asked, called, edit_approval, found, newest
from ui.panels.notes import NoteLine
from ui.panels.tool_card import ToolCard

CUT_OFF = {
    "en": "GrowBox ended while this ran; a part of it may have been done.",
    "zh": "执行过程中 GrowBox 退出了，可能已完成其中一部分。",
}
SAID = "GrowBox ended while it waited for your decision, and nothing of this was done: Edit src/loader.py"


@asynccontextmanager
async def restarted(desk: Desk, folder: Path) -> AsyncIterator[Desk]:
    """Another window on what is stored."""
    desk.window.keep()
    again = Desk(folder, desk.assistant)
    await again.open()
    try:
        assert again.window.flow.shown is not desk.window.flow.shown
        yield again
    finally:
        await again.close()


async def click(desk: Desk, line: NoteLine) -> None:
    assert line.restore_button is not None
    QTest.mouseClick(line.restore_button, Qt.MouseButton.LeftButton)
    await desk.settle()


# -- undone -----------------------------------------------------------------------------------
async def test_an_undone_call_is_undone_after_a_restart(desk: Desk, tmp_path: Path) -> None:
    card = await called(desk, EDIT)
    QTest.mouseClick(card.undo_button, Qt.MouseButton.LeftButton)
    await desk.settle()
    async with restarted(desk, tmp_path) as again:
        (shown,) = found(again, ToolCard)
        assert shown.undo_button.text() == tr("agent.undone")
        assert not shown.undo_button.isEnabled()
        assert not newest(again).undo_button.isEnabled()
    await click(desk, found(desk, NoteLine)[-1])
    async with restarted(desk, tmp_path) as again:
        (shown,) = found(again, ToolCard)
        assert shown.undo_button.text() == tr("agent.undo")
        assert shown.undo_button.isEnabled()
        assert newest(again).undo_button.isEnabled()


async def test_undoing_an_answer_shows_at_each_of_its_calls_and_at_later_answers(
    desk: Desk, tmp_path: Path
) -> None:
    def calls(*names: str) -> list[ToolCalled]:
        return [
            ToolCalled(
                call_id=at, name="file_edit", arguments=k, result="ok", ok=True, checkpoint=k
            )
            for at, k in enumerate(names)
        ]

    await desk.open()
    for names in (("k1",), ("k2", "k3"), ("k4",)):
        desk.assistant.tool_calls += calls(*names)
        desk.ask("Do it")
        await desk.settle()
    view = desk.window.conversation_panel.view
    second = view.view_of(3)
    assert second is not None
    second.undo_button.click()
    await desk.settle()

    def stand(shown: Desk) -> list[bool]:
        views = shown.window.conversation_panel.view.visible_views()
        cards = [card for at in sorted(views) for card in views[at].findChildren(ToolCard)]
        return [card.undo_button.isEnabled() for card in cards]

    assert stand(desk) == [True, False, False, False]
    async with restarted(desk, tmp_path) as again:
        assert stand(again) == [True, False, False, False]


# -- allowed, not allowed ---------------------------------------------------------------------
@pytest.mark.parametrize("allowed", [True, False])
async def test_what_the_user_said_stands_behind_its_call_as_before(
    desk: Desk, tmp_path: Path, allowed: bool
) -> None:
    card = await asked(desk, edit_approval())
    card.once_button.click() if allowed else card.deny()
    await desk.settle()
    live = desk.window.conversation_panel.transcript_text()
    words = "You allowed: " if allowed else "You did not allow: "
    assert f"{words}Edit src/loader.py" in live
    async with restarted(desk, tmp_path) as again:
        assert again.window.conversation_panel.transcript_text() == live
        (line,) = found(again, NoteLine)
        assert line.y() > found(again, ToolCard)[0].y()
        assert line.again_button is None


# -- cut off ----------------------------------------------------------------------------------
def killed(desk: Desk, *kept: ToolCalled | ApprovalEnded) -> None:
    """What the store has of an answer when GrowBox was killed; without `kept`, while its approval was open."""
    assistant = desk.assistant
    conversation = assistant.add_conversation("Loader", [("Fix the loader", "")])
    desk.state.keep_last_conversation(conversation.id)
    answer = [n for n in assistant._nodes.values() if n.conversation_id == conversation.id][-1]
    assert answer.role is Role.ASSISTANT
    notes = kept or (edit_approval().ended("exit"),)
    assistant.add_calls(answer.id, *notes, status=NodeStatus.CANCELLED)


async def test_an_approval_that_a_kill_cut_off_is_named_and_can_be_asked_again(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    killed(desk)
    await desk.open()
    assert SAID in desk.window.conversation_panel.transcript_text()
    (line,) = found(desk, NoteLine)
    assert line.again_button is not None
    assert line.again_button.text() == "Ask again"
    view = newest(desk)
    line.again_button.setFocus()
    QTest.mouseClick(line.again_button, Qt.MouseButton.LeftButton)
    assert QApplication.focusWidget() is view
    assert line.again_button.isHidden()
    await desk.settle()
    assert assistant.answered_again == [view.message.node_id]
    assert desk.window.flow.shown.messages[-2].text == "Fix the loader"
    assert line.again_button.isHidden()


async def test_only_the_newest_answer_is_asked_for_again(desk: Desk, tmp_path: Path) -> None:
    killed(desk)
    await desk.open()
    (line,) = found(desk, NoteLine)
    desk.ask("Something else")
    await desk.settle()
    assert line.again_button is not None
    assert line.again_button.isHidden()
    async with restarted(desk, tmp_path) as again:
        view = again.window.conversation_panel.view.view_of(1)
        assert view is not None
        (line,) = view.findChildren(NoteLine)
        assert line.again_button is not None
        assert line.again_button.isHidden()


async def test_an_answer_wished_again_and_taken_back_is_offered_again(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    killed(desk)
    other = assistant.add_conversation("Other", [("q", "a")])
    await desk.open()
    loader = (await assistant.library.conversations())[-1]
    desk.window.open_conversation(other.id)
    await desk.settle()
    approval = edit_approval()
    assistant.tool_calls.append(EDIT)
    assistant.approval = approval
    desk.ask("Wait")
    await desk.until(lambda: desk.window.flow.shown.waits)
    desk.window.open_conversation(loader.id)
    await desk.until(lambda: bool(found(desk, NoteLine)))
    (line,) = found(desk, NoteLine)
    assert line.again_button is not None
    line.again_button.click()
    assert line.again_button.isHidden()
    desk.window.conversation_panel.queue_row.dropped.emit(0)
    assert not line.again_button.isHidden()
    await assistant.stop()
    await desk.settle()


RAN = ToolCalled(
    call_id=1,
    name="shell",
    arguments="make all " + "LONG=1 " * 60,
    result="",
    ok=False,
    checkpoint="k1",
    cut_off="exit",
)


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_a_call_that_a_kill_cut_off_says_so_and_is_undone(
    desk: Desk, assistant: ScriptedAssistant, language: str
) -> None:
    await assistant.change_setting("general.language", language)
    killed(desk, RAN, edit_approval().ended("user", allowed=True))
    await desk.open()
    (card,) = found(desk, ToolCard)
    said = card._cut_off
    assert said.text() == CUT_OFF[language]
    assert said.isVisible()
    assert card.rect().contains(said.geometry())
    assert said.height() >= said.heightForWidth(said.width())
    assert card._target.text().startswith("make all LONG=1")
    assert card._target.text().endswith("…")  # and with it all that came behind
    assert CUT_OFF[language].rstrip(".。") in card.accessibleName()
    assert CUT_OFF[language].rstrip(".。") in desk.window.conversation_panel.transcript_text()
    assert not card.fold_button.isVisible()
    card.toggle()
    assert not card.unfolded
    assert newest(desk).undo_button.isEnabled()
    QTest.mouseClick(card.undo_button, Qt.MouseButton.LeftButton)
    await desk.settle()
    assert assistant.restored == [("k1", False)]
    assert card.undo_button.text() == tr("agent.undone")
    assert not newest(desk).undo_button.isEnabled()


async def test_the_question_of_a_call_that_a_kill_cut_off_can_be_asked_again(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    killed(desk, RAN)
    await desk.open()
    (card,) = found(desk, ToolCard)
    view = newest(desk)
    assert card.again_button.isVisible()
    assert card.again_button.text() == "Ask again"
    assert card.rect().contains(card.again_button.geometry())
    card.again_button.setFocus()
    QTest.keyClick(card.again_button, Qt.Key.Key_Space)
    assert QApplication.focusWidget() is view
    await desk.settle()
    assert assistant.answered_again == [view.message.node_id]
    assert card.again_button.isHidden()
    assert card.undo_button.isVisible()


async def test_what_the_user_stopped_is_not_offered_again(desk: Desk) -> None:
    killed(desk, replace(RAN, cut_off="stop"))
    await desk.open()
    (card,) = found(desk, ToolCard)
    assert card._cut_off.isVisible()
    assert card.again_button.isHidden()


async def test_a_call_that_had_its_end_says_nothing_of_the_kind(desk: Desk) -> None:
    card = await called(desk, EDIT)
    assert not card._cut_off.isVisible()
    assert card.fold_button.isVisible()


# -- trouble ----------------------------------------------------------------------------------
async def test_trouble_stands_in_its_place_as_it_was_told(desk: Desk, tmp_path: Path) -> None:
    fields = {"host": "example.org", "tokens": "4,096"}
    desk.assistant.notices += [
        Problem(code=ProblemCode.ENGINE_RESTARTED, detail="signal 11"),
        Problem(code=ProblemCode.ENDPOINT_SHORTENED, fields=fields),
    ]
    await called(desk, EDIT)
    live = desk.window.conversation_panel.transcript_text()
    assert "was started again" in live
    assert "example.org holds only 4,096 tokens" in live
    async with restarted(desk, tmp_path) as again:
        assert again.window.conversation_panel.transcript_text() == live
