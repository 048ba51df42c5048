"""The approval card's hand in the call: editing, the parts of a command, many and long changes, and what else waits for the user."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication

from growbox_app.api import (
    ToolCalled,
)
from growbox_app.approval_face import (
    Approval,
    ApprovalAnswer,
    ApprovalScope,
    CommandPart,
)
from growbox_app.audit_log import Decided
from growbox_app.hunks import DiffHunk
from growbox_app.mind_face import JudgeSkill
from growbox_app.text import tr
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.test_accessibility import nameless
from tests.gui.test_approvals import EDIT, asked, command_approval, focus, found, newest
from ui.notifications import Notifier
from ui.panels.approval_card import HUNKS_SHOWN
from ui.panels.decisions_dialog import DecisionsDialog
from ui.panels.folded_lines import HERE_LINES_MAX
from ui.panels.tool_card import ToolCard
from ui.panels.whole_text import WholeText
from ui.view_models import decisions, wording
from ui.view_models.display import editable, plain
from ui.view_models.transcript import first_checkpoint

PATH = "/home/ada/growbox/src/loader.py"


def hunk(index: int, *lines: str, may_edit: bool = True) -> DiffHunk:
    return DiffHunk(
        index=index,
        path=PATH,
        header=f"@@ -{index + 1},1 +{index + 1},1 @@",
        lines=lines or (" def load(path):", "-    return None", "+    return open(path)"),
        editable=may_edit,
    )


def change(*hunks: DiffHunk) -> Approval:
    return Approval(
        id=7,
        executor="file_edit",
        arguments="src/loader.py",
        risk="reversible",
        reason="changes",
        details={"path": PATH},
        paths=(PATH,),
        hunks=hunks,
        scopes=tuple(ApprovalScope),
    )


def command(text: str, *parts: CommandPart, edited: bool = False) -> Approval:
    return Approval(
        id=8,
        executor="shell",
        arguments=text,
        risk="unknown",
        reason="unlisted_program",
        details={"program": "curious"},
        command=text,
        cwd="/home/ada/growbox",
        parts=parts,
        editable=True,
        edited=edited,
    )


# -- editing ----------------------------------------------------------------------------------
async def test_a_change_is_written_anew_before_it_is_allowed(desk: Desk) -> None:
    card = await asked(desk, change(hunk(0), hunk(1)))
    QTest.mouseClick(card.edit_button, Qt.MouseButton.LeftButton)
    first, second = (view.field for view in card.hunks)
    assert first is not None
    assert second is not None
    assert desk.window.focusWidget() is first
    assert first.toPlainText() == "def load(path):\n    return open(path)"
    assert card.once_button.text() == tr("agent.allow")
    first.setPlainText("def load(path):\n    return path.read_text()")
    assert card.once_button.text() == tr("agent.allow_edited")
    assert not card.path_button.isEnabled()
    assert not card.project_button.isEnabled()
    assert nameless(desk.window) == []
    QTest.mouseClick(card.once_button, Qt.MouseButton.LeftButton)
    assert desk.assistant.approval_answers == [
        ApprovalAnswer(
            id=7, allowed=True, texts={0: "def load(path):\n    return path.read_text()"}
        )
    ]
    await desk.settle()


async def test_escape_in_a_field_takes_the_edits_back_and_denies_nothing(desk: Desk) -> None:
    card = await asked(desk, change(hunk(0)))
    card.edit(True)
    field = card.hunks[0].field
    assert field is not None
    field.setPlainText("something else")
    QTest.keyClick(field, Qt.Key.Key_Escape)
    assert not card.editing
    assert desk.assistant.approval_answers == []
    assert card.hunks[0].lines.isVisible()
    QTest.mouseClick(card.once_button, Qt.MouseButton.LeftButton)
    assert desk.assistant.approval_answers == [ApprovalAnswer(id=7, allowed=True)]
    await desk.settle()


async def test_enter_in_a_field_is_a_line_and_allows_nothing(desk: Desk) -> None:
    card = await asked(desk, change(hunk(0)))
    card.edit(True)
    field = card.hunks[0].field
    assert field is not None
    for modifier in (Qt.KeyboardModifier.NoModifier, Qt.KeyboardModifier.ControlModifier):
        QTest.keyClick(field, Qt.Key.Key_Return, modifier)
    assert desk.assistant.approval_answers == []
    assert field.toPlainText().startswith("\n")
    card.deny()
    await desk.settle()


async def test_a_change_left_out_takes_its_edit_with_it(desk: Desk) -> None:
    card = await asked(desk, change(hunk(0), hunk(1)))
    card.edit(True)
    field = card.hunks[0].field
    assert field is not None
    field.setPlainText("x")
    card.hunks[0].box.setChecked(False)
    assert not field.isEnabled()
    card.allow(ApprovalScope.ONCE)
    assert desk.assistant.approval_answers == [
        ApprovalAnswer(id=7, allowed=True, hunks=frozenset({1}))
    ]
    await desk.settle()


async def test_another_command_is_given_and_none_is_not_allowed(desk: Desk) -> None:
    card = await asked(desk, command("curious --all"))
    card.edit(True)
    field = card.command_field
    assert field is not None
    assert not card.command.isVisible()
    field.setPlainText("  ")
    assert not card.once_button.isEnabled()
    field.setPlainText("curious --some")
    card.allow(ApprovalScope.ONCE)
    assert desk.assistant.approval_answers == [
        ApprovalAnswer(id=8, allowed=True, command="curious --some")
    ]
    await desk.settle()


async def test_what_is_asked_about_again_says_whose_it_is(desk: Desk) -> None:
    card = await asked(desk, command("curious --all", edited=True))
    assert card._risk.text().startswith(tr("agent.edited_again"))
    card.deny()
    await desk.settle()


@pytest.mark.parametrize("text", ["a\u202eb", "a\u00a0b", "a\x1b[1mb"])
async def test_what_a_field_would_lose_or_hide_is_not_edited(desk: Desk, text: str) -> None:
    assert not editable(text)
    card = await asked(desk, change(hunk(0, f"+{text}"), hunk(1, "+plain", may_edit=False)))
    assert not card.edit_button.isVisible()
    card.deny()
    await desk.settle()


# -- the parts of a command -------------------------------------------------------------------
async def test_each_command_of_a_line_has_its_risk_and_why(desk: Desk) -> None:
    parts = (
        CommandPart(text="cat a.txt", risk="safe", reason="safe"),
        CommandPart(
            text="rm -r \u202ebuild",
            risk="irreversible",
            reason="removes_folder",
            details={"path": "build"},
        ),
    )
    card = await asked(desk, command("cat a.txt && rm -r \u202ebuild", *parts))
    safe, dangerous = card.parts.views
    assert safe.text.toPlainText() == "cat a.txt"
    assert safe.words.text() == tr("safety.reason.safe")
    assert dangerous.text.toPlainText() == "rm -r \\u{202e}build"
    assert "cannot be undone" in dangerous.words.text()
    assert card.command.toPlainText() == "cat a.txt && rm -r \\u{202e}build"
    card.deny()
    await desk.settle()


async def test_of_many_commands_no_dangerous_one_is_folded(desk: Desk) -> None:
    harmless = [CommandPart(text=f"cat {n}", risk="safe", reason="safe") for n in range(20)]
    last = CommandPart(
        text="x", risk="unknown", reason="unlisted_program", details={"program": "x"}
    )
    card = await asked(desk, command("…", *harmless, last))
    shown = [view for view in card.parts.views if not view.isHidden()]
    assert len(shown) == 9
    assert shown[-1] is card.parts.views[-1]
    QTest.mouseClick(card.parts.all_button, Qt.MouseButton.LeftButton)
    assert not any(view.isHidden() for view in card.parts.views)
    card.deny()
    await desk.settle()


async def test_one_command_alone_is_not_said_twice(desk: Desk) -> None:
    card = await asked(desk, command_approval())
    assert not card.parts.isVisible()
    card.deny()
    await desk.settle()


# -- much of it -------------------------------------------------------------------------------
async def test_a_change_of_thousands_of_lines_opens_in_a_window(desk: Desk) -> None:
    lines = tuple(f"+row {at}" for at in range(HERE_LINES_MAX * 10))
    card = await asked(desk, change(hunk(0, *lines)))
    view = card.hunks[0]
    assert view.lines.text.document().blockCount() < 100
    assert not card.edit_button.isVisible()
    QTest.mouseClick(view.lines.all_button, Qt.MouseButton.LeftButton)
    whole = next(w for w in QApplication.topLevelWidgets() if isinstance(w, WholeText))
    assert whole.text.blockCount() == len(lines)
    whole.close()
    card.deny()
    await desk.settle()


async def test_a_place_names_its_file_only_where_the_title_does_not(desk: Desk) -> None:
    card = await asked(desk, change(hunk(2)))
    assert card.hunks[0].box.accessibleName() == "line 3"
    card.deny()
    await desk.settle()
    other = replace(hunk(1), path="/home/ada/growbox/src/main.py")
    card = await asked(desk, change(hunk(0), other))
    assert card.hunks[1].box.accessibleName() == "/home/ada/growbox/src/main.py · line 2"
    card.deny()
    await desk.settle()


async def test_many_changes_are_left_out_together(desk: Desk) -> None:
    card = await asked(desk, change(*(hunk(at) for at in range(HUNKS_SHOWN + 20))))
    assert len(card.hunks) == HUNKS_SHOWN
    assert card.chosen() is None
    assert card.rest is not None
    assert card.rest.box.accessibleName() == "20 more changes"
    card.rest.box.setChecked(False)
    assert card.chosen() == frozenset(range(HUNKS_SHOWN))
    card.deny()
    await desk.settle()


async def test_one_very_long_line_is_cut_until_it_is_wanted(desk: Desk) -> None:
    card = await asked(desk, change(hunk(0, "+" + "x" * 300_000)))
    lines = card.hunks[0].lines
    assert len(lines.text.toPlainText()) < 2_000
    assert lines.all_button.text() == tr("agent.show_whole")
    card.deny()
    await desk.settle()


def test_the_codes_of_a_terminal_are_left_out() -> None:
    assert plain("\x1b[1;31mred\x1b[0m \x1b]0;title\x07x\x1b]8;;http://a\x1b\\y\x1b(B") == "red xy"


async def test_a_narrow_card_has_its_buttons_below_each_other(desk: Desk) -> None:
    card = await asked(desk, change(hunk(0)))
    desk.window.resize(desk.window.minimumSize())
    shown = (card.once_button, card.path_button, card.project_button)
    await desk.until(lambda: card.path_button.y() > card.once_button.y())
    await desk.until(lambda: all(b.width() >= b.sizeHint().width() for b in shown))
    card.deny()
    await desk.settle()


# -- after a restart, and back ----------------------------------------------------------------
async def test_calls_are_shown_again_and_can_be_undone(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    other = assistant.add_conversation("Other", [("q", "a")])
    assistant.tool_calls.append(EDIT)
    await desk.open()
    desk.ask("Fix the loader")
    await desk.settle()
    first = desk.window.flow.shown
    assert first.conversation_id is not None
    desk.window.open_conversation(other.id)
    await desk.until(lambda: desk.window.flow.shown is not first)
    desk.window.open_conversation(first.conversation_id)
    await desk.until(lambda: bool(found(desk, ToolCard)))
    assert desk.window.flow.shown is not first  # read from the store, not kept
    (card,) = found(desk, ToolCard)
    card.toggle()
    assert card.output.text.toPlainText() == EDIT.output
    QTest.mouseClick(card.undo_button, Qt.MouseButton.LeftButton)
    await desk.settle()
    assert assistant.restored == [("k1", False)]


async def test_a_whole_answer_is_undone_with_its_first_change(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    for number in (1, 2, 3):
        assistant.tool_calls.append(
            ToolCalled(
                call_id=number,
                name="file_edit",
                arguments="a",
                result="1 place",
                ok=True,
                checkpoint=f"k{number}" if number > 1 else "",
                edited=number == 3,
            )
        )
    await desk.open()
    desk.ask("Do it")
    await desk.settle()
    view = newest(desk)
    assert first_checkpoint(view.message.notes) == "k2"
    QTest.mouseClick(view.undo_button, Qt.MouseButton.LeftButton)
    await desk.settle()
    assert assistant.restored == [("k2", False)]
    assert not view.undo_button.isEnabled()
    cards = found(desk, ToolCard)
    assert [card.undo_button.isEnabled() for card in cards] == [True, False, False]
    assert tr("agent.edited") in cards[2]._target.text()
    assert tr("agent.edited") not in cards[1]._target.text()


async def test_an_answer_that_changed_nothing_has_nothing_to_undo(desk: Desk) -> None:
    await desk.open()
    desk.ask("Hello")
    await desk.settle()
    assert not newest(desk).undo_button.isVisible()


# -- calling the user -------------------------------------------------------------------------
async def test_a_notification_names_neither_file_nor_command_and_can_be_off(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    said: list[tuple[str, str]] = []
    wanted = [True]
    notifier = Notifier(desk.window, lambda: wanted[0], send=lambda *said_: said.append(said_))
    await desk.open()
    desk.window.hide()
    notifier.approval_asked(command_approval())
    assert said == [(tr("notify.title"), tr("notify.approval", what="Run"))]
    wanted[0] = False
    notifier.approval_asked(command_approval())
    assert len(said) == 1


async def test_a_window_in_front_needs_no_notification(desk: Desk) -> None:
    said: list[tuple[str, str]] = []
    notifier = Notifier(desk.window, lambda: True, send=lambda *said_: said.append(said_))
    await desk.open()
    focus(desk.window.conversation_panel.input)
    notifier.approval_asked(command_approval())
    assert said == []


async def test_without_a_tray_and_a_desktop_nothing_happens(desk: Desk) -> None:
    await desk.open()
    desk.window.hide()
    desk.window.notifier.approval_asked(command_approval())
    desk.window.notifier.over()


# -- the queue --------------------------------------------------------------------------------
async def test_follow_ups_wait_behind_an_approval_and_are_edited_or_dropped(desk: Desk) -> None:
    card = await asked(desk, change(hunk(0)))
    panel = desk.window.conversation_panel
    for text in ("second", "third", "fourth"):
        desk.ask(text)
    assert panel.queue_row.texts == ("second", "third", "fourth")
    panel.queue_row.dropped.emit(1)
    assert panel.queue_row.texts == ("second", "fourth")
    assert panel.composer.text() == ""
    panel.queue_row.withdrawn.emit(1)
    assert panel.composer.text() == "fourth"
    card.allow(ApprovalScope.ONCE)
    await desk.settle()
    assert [request.text for request in desk.assistant.requests] == ["Fix the loader", "second"]


# -- the log ----------------------------------------------------------------------------------
DECIDED = (
    Decided(
        executor="shell",
        targets=(),
        command="rm -r build",
        verdict="ask",
        reason="removes_folder",
        by="user",
        allowed=False,
        at_ms=1,
    ),
    Decided(
        executor="file_edit",
        targets=(PATH,),
        verdict="ask",
        reason="changes",
        by="user",
        allowed=True,
        at_ms=2,
    ),
    Decided(
        executor="file_read",
        targets=("/etc/\u202eshadow",),
        verdict="deny",
        reason="sensitive",
        by="policy",
        allowed=False,
        at_ms=3,
    ),
)


def test_decisions_are_filtered_by_their_words_and_outcome() -> None:
    tr.use("en")
    assert decisions.filtered(DECIDED, "", "all") == DECIDED
    assert decisions.filtered(DECIDED, "BUILD rm", "all") == DECIDED[:1]
    assert decisions.filtered(DECIDED, "", "allowed") == DECIDED[1:2]
    assert decisions.filtered(DECIDED, "not allow", "denied") == DECIDED[:1]
    assert decisions.call(DECIDED[2]) == "Read /etc/\\u{202e}shadow"
    assert decisions.reason(DECIDED[1]) == f"It changes {PATH}."
    assert "{" not in decisions.reason(DECIDED[0])


async def test_the_log_is_listed_filtered_and_saved(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    assistant.decided = list(DECIDED)
    await desk.open()
    desk.window.run_command("decisions")
    await desk.settle()
    dialog = next(w for w in QApplication.topLevelWidgets() if isinstance(w, DecisionsDialog))
    assert dialog.table.topLevelItemCount() == 3
    dialog.outcome.setCurrentIndex(decisions.OUTCOMES.index("denied"))
    dialog.words.setText("read")
    assert dialog.shown == DECIDED[2:]
    assert nameless(dialog) == []
    target = tmp_path / "log.jsonl"
    desk.window.decisions.save(dialog.shown, target)
    await desk.settle()
    assert target.read_bytes().count(b"\n") == 1
    desk.window.decisions.save(dialog.shown, target / "below a file.jsonl")
    await desk.settle()
    assert desk.window.conversation_panel.problem_bar.isVisible()
    dialog.close()


# -- the judge --------------------------------------------------------------------------------
async def test_the_measured_judge_is_named_where_it_matters(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    skill = JudgeSkill(language="en", auc=0.62, auc_low=0.5, auc_high=0.7, trusted=False)
    blank = JudgeSkill(language="zh", auc=None, auc_low=None, auc_high=None, trusted=False)
    assistant.mind.skills = (skill, blank)
    await desk.open()
    words = wording.judge(assistant.mind.skills, "M")
    assert (
        words
        == "Judge: M · English: AUC 0.62, only suggests · Chinese: not measured, only suggests"
    )
    assert "AUC 0.62" in desk.window.panels.ledger.judge.text()
    assert "AUC 0.62" in desk.window.conversation_panel.view.judge
    assert wording.judge((), "M") == ""
