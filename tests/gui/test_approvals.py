"""Calls of tools in the conversation: their cards, the card that asks for consent, and undoing."""

from __future__ import annotations

from pathlib import Path
from typing import TypeVar

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QLabel, QWidget

from growbox_app.api import (
    Problem,
    ProblemCode,
    ToolCalled,
    ToolStarted,
)
from growbox_app.approval_face import (
    Approval,
    ApprovalAnswer,
    ApprovalAsked,
    ApprovalEnded,
    ApprovalScope,
)
from growbox_app.hunks import DiffHunk
from growbox_app.text import tr
from memory.values import NodeId, Role
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.test_accessibility import nameless
from ui.panels.approval_card import ARMED_AFTER_MS, ApprovalCard
from ui.panels.folded_lines import HEAD_LINES, TAIL_LINES
from ui.panels.message import MessageView
from ui.panels.notes import NoteLine
from ui.panels.tool_card import ToolCard
from ui.view_models import wording
from ui.view_models.display import visible
from ui.view_models.markdown import StreamingMarkdown
from ui.view_models.transcript import Message, Transcript

Part = TypeVar("Part", bound=QWidget)
CONTROL = Qt.KeyboardModifier.ControlModifier
EDIT = ToolCalled(
    call_id=1,
    name="file_edit",
    arguments="src/loader.py",
    result="1 place",
    ok=True,
    output="12  return open(path)\n13  # done",
    seconds=0.24,
    checkpoint="k1",
    paths=("src/loader.py",),
)


def edit_approval(risk: str = "reversible") -> Approval:
    hunks = tuple(
        DiffHunk(
            index=at,
            path="/home/ada/growbox/src/loader.py",
            header=f"@@ -{at * 40 + 1},2 +{at * 40 + 1},2 @@",
            lines=(" def load(path):", "-    return None", "+    return open(path)"),
        )
        for at in range(2)
    )
    return Approval(
        id=7,
        executor="file_edit",
        arguments="src/loader.py",
        risk=risk,
        reason="changes",
        details={"path": "src/loader.py"},
        paths=("/home/ada/growbox/src/loader.py",),
        hunks=hunks,
        scopes=tuple(ApprovalScope),
    )


def command_approval() -> Approval:
    return Approval(
        id=8,
        executor="shell",
        arguments="rm -r build && make",
        risk="irreversible",
        reason="removes_folder",
        details={"path": "build"},
        command="rm -r build && make",
        cwd="/home/ada/growbox",
    )


async def asked(desk: Desk, approval: Approval, *, fresh: bool = False) -> ApprovalCard:
    """Asks a question whose answer waits for consent; returns the card, its first moments over unless told otherwise."""
    desk.assistant.tool_calls.append(EDIT)
    desk.assistant.approval = approval
    await desk.open()
    desk.ask("Fix the loader")
    await desk.until(lambda: bool(found(desk, ApprovalCard)))
    card = found(desk, ApprovalCard)[0]
    if fresh:
        card._arming.start()  # anew: a slow machine may have taken its first moments to get here
    else:
        card.arm()
    return card


def newest(desk: Desk) -> MessageView:
    view = desk.window.conversation_panel.view
    shown = view.view_of(len(view.transcript.messages) - 1)
    assert shown is not None
    return shown


def found(desk: Desk, kind: type[Part]) -> list[Part]:
    view = desk.window.conversation_panel.view
    shown = view.view_of(len(view.transcript.messages) - 1)
    return [part for part in shown.findChildren(kind) if part.isVisible()] if shown else []


def focus(widget: QWidget) -> None:
    widget.window().activateWindow()
    widget.setFocus()
    assert QApplication.focusWidget() is widget


# -- the view model ---------------------------------------------------------------------------
def live_transcript() -> Transcript:
    transcript = Transcript()
    transcript.messages.append(
        Message(
            node_id=NodeId("a"),
            role=Role.ASSISTANT,
            created_at_ms=0,
            stream=StreamingMarkdown(),
        )
    )
    return transcript


def test_what_runs_and_waits_is_replaced_in_its_place_by_how_it_ended() -> None:
    transcript = live_transcript()
    notes = transcript.messages[0].notes
    started = ToolStarted(call_id=1, name="file_edit", arguments="src/loader.py")
    approval = edit_approval()
    transcript.take(started)
    transcript.take(ApprovalAsked(approval=approval))
    assert notes == [started, approval]
    ended = approval.ended("user", allowed=True)
    transcript.take(ended)
    transcript.take(EDIT)
    assert notes == [EDIT, ended]
    transcript.take(ToolCalled(call_id=9, name="shell", arguments="", result="", ok=True))
    assert len(notes) == 3


def test_nothing_waits_behind_a_turn_that_broke() -> None:
    transcript = live_transcript()
    notes = transcript.messages[0].notes
    transcript.take(ToolStarted(call_id=1, name="shell", arguments="make"))
    transcript.take(ApprovalAsked(approval=command_approval()))
    transcript.abandon(Problem(code=ProblemCode.INTERNAL))
    call, over, _problem = notes
    assert isinstance(call, ToolCalled)
    assert not call.ok
    assert isinstance(over, ApprovalEnded)
    assert (over.allowed, over.by) == (False, "stop")
    assert "not finished" in wording.note(call)


@pytest.mark.parametrize(
    ("allowed", "by", "words"),
    [
        (True, "user", "You allowed: Edit src/loader.py"),
        (False, "user", "You did not allow: Edit src/loader.py"),
        (False, "timeout", "Nobody answered, so it was not done: Edit src/loader.py"),
        (False, "stop", "Stopped before you answered: Edit src/loader.py"),
        (
            False,
            "exit",
            "GrowBox ended while it waited for your decision, and nothing of this was done: Edit src/loader.py",
        ),
    ],
)
def test_the_line_of_an_approval_says_how_it_ended(allowed: bool, by: str, words: str) -> None:
    tr.use("en")
    assert wording.note(edit_approval().ended(by, allowed=allowed)) == words


def test_what_shows_nothing_is_written_out() -> None:
    assert visible("a\u202eb\x1b\u200b\tä中\n") == "a\\u{202e}b\\u{1b}\\u{200b}\tä中\n"


# -- the card that asks -----------------------------------------------------------------------
async def test_the_card_takes_no_focus_and_says_what_why_and_how_dangerous(desk: Desk) -> None:
    await desk.open()
    focus(desk.window.conversation_panel.input)
    card = await asked(desk, edit_approval())
    assert QApplication.focusWidget() is desk.window.conversation_panel.input
    assert card._title.text() == "Edit /home/ada/growbox/src/loader.py"
    assert card._risk.text() == "Risk: can be undone. It changes src/loader.py."
    assert "+    return open(path)" in card.hunks[1].lines.text.toPlainText()
    assert nameless(desk.window) == []
    card.deny()
    await desk.settle()


async def test_a_call_that_waits_is_not_said_to_be_in_progress(desk: Desk) -> None:
    card = await asked(desk, edit_approval())
    (call,) = found(desk, ToolCard)
    said = [label.text() for label in call.findChildren(QLabel)]
    assert tr("agent.verb.file_edit") in said
    assert tr("agent.running") not in said
    call.show_waiting(False)
    assert tr("agent.running") in [label.text() for label in call.findChildren(QLabel)]
    card.deny()
    await desk.settle()


async def test_nothing_allows_in_the_first_moments(desk: Desk) -> None:
    card = await asked(desk, edit_approval(), fresh=True)
    answers = desk.assistant.approval_answers
    assert card._arming.interval() == ARMED_AFTER_MS == 700
    focus(card)
    QTest.keyClick(card, Qt.Key.Key_Return)
    QTest.mouseClick(card.once_button, Qt.MouseButton.LeftButton)
    assert answers == []
    card._arming.timeout.emit()
    QTest.keyClick(card, Qt.Key.Key_Return)
    QTest.keyClick(card, Qt.Key.Key_Return)
    assert answers == [ApprovalAnswer(id=7, allowed=True)]
    await desk.settle()


async def test_enter_allows_only_on_the_card_itself(desk: Desk) -> None:
    card = await asked(desk, edit_approval())
    assistant = desk.assistant
    focus(card.once_button)
    QTest.keyClick(card.once_button, Qt.Key.Key_Return)
    assert assistant.approval_answers == []
    focus(card)
    QTest.keyClick(card, Qt.Key.Key_Return)
    assert assistant.approval_answers == [ApprovalAnswer(id=7, allowed=True)]
    await desk.settle()
    assert found(desk, ApprovalCard) == []
    assert QApplication.focusWidget() is newest(desk)
    assert "You allowed: Edit src/loader.py" in desk.window.conversation_panel.transcript_text()


async def test_what_cannot_be_undone_wants_control_with_enter(desk: Desk) -> None:
    card = await asked(desk, command_approval())
    assert card.command.toPlainText() == "rm -r build && make"
    assert not card.path_button.isVisible()
    assert not card.project_button.isVisible()
    focus(card)
    QTest.keyClick(card, Qt.Key.Key_Return)
    assert desk.assistant.approval_answers == []
    QTest.keyClick(card, Qt.Key.Key_Return, CONTROL)
    assert desk.assistant.approval_answers == [ApprovalAnswer(id=8, allowed=True)]
    await desk.settle()


@pytest.mark.parametrize(
    ("button", "scope"),
    [("path_button", ApprovalScope.PATH), ("project_button", ApprovalScope.PROJECT)],
)
async def test_buttons_allow_for_more_than_once(
    desk: Desk, button: str, scope: ApprovalScope
) -> None:
    card = await asked(desk, edit_approval())
    QTest.mouseClick(getattr(card, button), Qt.MouseButton.LeftButton)
    assert desk.assistant.approval_answers == [ApprovalAnswer(id=7, allowed=True, scope=scope)]
    await desk.settle()


async def test_changes_can_be_left_out(desk: Desk) -> None:
    card = await asked(desk, edit_approval())
    card.hunks[0].box.setChecked(False)
    assert card.once_button.text() == tr("agent.allow_some")
    assert not card.project_button.isEnabled()
    card.hunks[1].box.setChecked(False)
    focus(card)
    QTest.keyClick(card, Qt.Key.Key_Return)
    assert desk.assistant.approval_answers == []
    card.hunks[1].box.setChecked(True)
    QTest.mouseClick(card.once_button, Qt.MouseButton.LeftButton)
    assert desk.assistant.approval_answers == [
        ApprovalAnswer(id=7, allowed=True, hunks=frozenset({1}))
    ]
    await desk.settle()


async def test_escape_denies_with_the_sentence(desk: Desk) -> None:
    card = await asked(desk, edit_approval())
    focus(card.word)
    QTest.keyClicks(card.word, "use pathlib")
    QTest.keyClick(card.word, Qt.Key.Key_Escape)
    assert desk.assistant.approval_answers == [
        ApprovalAnswer(id=7, allowed=False, word="use pathlib")
    ]
    await desk.settle()
    assert "You did not allow: Edit src/loader.py" in (
        desk.window.conversation_panel.transcript_text()
    )


async def test_sidebar_and_phase_line_say_where_something_waits(desk: Desk) -> None:
    card = await asked(desk, edit_approval())
    assert desk.window.conversation_panel.phase_text() == tr("agent.waits")
    tree = desk.window.sidebar.tree
    item = tree._find(desk.window.flow.shown.conversation_id)
    assert item is not None
    assert tr("agent.waits") in item.toolTip(0)
    card.deny()
    await desk.settle()
    item = tree._find(desk.window.flow.shown.conversation_id)
    assert item is not None
    assert tr("agent.waits") not in item.toolTip(0)
    assert item.icon(0).isNull()


async def test_an_open_approval_is_there_again_after_another_conversation(desk: Desk) -> None:
    other = desk.assistant.add_conversation("Other", [("q", "a")])
    await asked(desk, edit_approval())
    waiting = desk.window.flow.shown.conversation_id
    assert waiting is not None
    desk.window.open_conversation(other.id)
    await desk.until(lambda: desk.window.flow.shown.conversation_id == other.id)
    assert found(desk, ApprovalCard) == []
    desk.window.open_conversation(waiting)
    await desk.until(lambda: bool(found(desk, ApprovalCard)))
    again = found(desk, ApprovalCard)[0]
    assert not again.armed
    again.deny()
    await desk.settle()
    assert [answer.allowed for answer in desk.assistant.approval_answers] == [False]


async def test_stop_ends_the_waiting(desk: Desk) -> None:
    await asked(desk, edit_approval())
    desk.window.flow.stop()
    await desk.settle()
    assert desk.assistant.approval_answers == []
    assert "Stopped before you answered" in desk.window.conversation_panel.transcript_text()


# -- the card of a call -----------------------------------------------------------------------
async def called(desk: Desk, call: ToolCalled) -> ToolCard:
    desk.assistant.tool_calls.append(call)
    await desk.open()
    desk.ask("Fix the loader")
    await desk.settle()
    (card,) = found(desk, ToolCard)
    return card


async def test_a_call_is_one_line_that_unfolds_its_output(desk: Desk) -> None:
    card = await called(desk, EDIT)
    folded = card.height()
    assert card._verb.text() == "Edit"
    assert card._target.text() == "src/loader.py · 1 place"
    assert card._figures.text() == "0.2 s"
    assert not card.unfolded
    focus(card.fold_button)
    QTest.keyClick(card.fold_button, Qt.Key.Key_Return)
    await desk.until(lambda: card.height() > folded)
    assert card.output.text.toPlainText() == EDIT.output
    QTest.mouseClick(card, Qt.MouseButton.LeftButton, pos=card._verb.geometry().center())
    await desk.until(lambda: card.height() == folded)


async def test_long_output_is_cut_in_the_middle_until_it_is_wanted(desk: Desk) -> None:
    lines = [f"line {at}" for at in range(100)]
    card = await called(
        desk,
        ToolCalled(name="shell", arguments="make", result="", ok=False, output="\n".join(lines)),
    )
    card.toggle()
    shown = card.output.text.toPlainText().split("\n")
    assert shown == [*lines[:HEAD_LINES], "⋯", *lines[-TAIL_LINES:]]
    assert card.output.all_button.text() == "Show the 80 lines left out"
    assert not card.undo_button.isVisible()
    QTest.mouseClick(card.output.all_button, Qt.MouseButton.LeftButton)
    assert card.output.text.toPlainText().split("\n") == lines
    assert not card.output.all_button.isVisible()


async def test_a_change_is_undone_and_brought_back(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    card = await called(desk, EDIT)
    QTest.mouseClick(card.undo_button, Qt.MouseButton.LeftButton)
    await desk.settle()
    assert assistant.restored == [("k1", False)]
    assert not card.undo_button.isEnabled()
    assert card.undo_button.text() == tr("agent.undone")
    assert "1 file is as it was before." in desk.window.conversation_panel.transcript_text()
    line = found(desk, NoteLine)[-1]
    assert line.restore_button is not None
    QTest.mouseClick(line.restore_button, Qt.MouseButton.LeftButton)
    await desk.settle()
    assert assistant.restored[-1] == ("u1", False)
    assert wording.note(newest(desk).message.notes[-1]) == "1 file is changed again."
    assert card.undo_button.isEnabled()
    assert newest(desk).message.undone == {"u1"}


async def test_what_others_changed_since_is_overwritten_only_when_told_so(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    assistant.conflicts = (Path("src/loader.py"),)
    card = await called(desk, EDIT)
    QTest.mouseClick(card.undo_button, Qt.MouseButton.LeftButton)
    await desk.settle()
    line = found(desk, NoteLine)[-1]
    assert wording.note(newest(desk).message.notes[-1]) == (
        "Not undone: somebody else has changed this since: src/loader.py"
    )
    assert card.undo_button.isEnabled()
    assert line.restore_button is not None
    QTest.mouseClick(line.restore_button, Qt.MouseButton.LeftButton)
    await desk.settle()
    assert assistant.restored[-1] == ("k1", True)
    assert not card.undo_button.isEnabled()


async def test_a_change_that_could_not_be_undone_can_be_tried_again(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    assistant.fail_restore = Problem(code=ProblemCode.DISK_FULL, fields={"path": "/"})
    card = await called(desk, EDIT)
    QTest.mouseClick(card.undo_button, Qt.MouseButton.LeftButton)
    await desk.settle()
    assert card.undo_button.isEnabled()
    assert desk.window.conversation_panel.problem_bar.isVisible()
