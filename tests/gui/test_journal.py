"""The dream journal in the window: days, filter, paging, notes, undo, the badge; proposed skills and permanent goals."""

from __future__ import annotations

from time import perf_counter

import pytest
from PySide6.QtCore import Qt
from PySide6.QtTest import QTest
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from growbox_app.api import Problem, ProblemCode
from growbox_app.rest.schedule import RestStatus
from memory.rest_values import Cause, JournalKind, JournalPage, ProposalState
from tests.fakes.assistant import START_MS
from tests.gui.conftest import Desk
from tests.gui.past import moment
from tests.gui.rest_past import DAY_MS, entries, entry, experiences, proposals
from ui.panels.journal_changes import JournalChanges
from ui.panels.journal_list import JournalList
from ui.panels.source_dialog import SourceDialog
from ui.theme import theme
from ui.view_models import journal


async def opened(desk: Desk) -> JournalChanges:
    """The journal of two days, open."""
    assistant = desk.assistant
    ids = [assistant.used(title).node_id for title in ("one", "two", "three")]
    assistant.rest.entries = entries(ids, "en", START_MS + 600_000)
    assistant.rest.known_proposals = list(proposals("en"))
    assistant.rest.known_experiences = experiences(ids, "en")
    await desk.open()
    desk.window.run_command("journal")
    await desk.settle()
    return desk.window.journal.page.changes


def listed(changes: JournalChanges) -> list[int]:
    return [shown.id for shown in changes.list.journal.entries]


def choose(changes: JournalChanges, entry_id: int) -> None:
    model = changes.list.journal
    changes.list.setCurrentIndex(model.index(model.row_of(entry_id)))


# -- the list -------------------------------------------------------------------------------------
def test_changes_stand_under_their_days(qtbot: QtBot, qtmodeltester: ModelTester) -> None:
    shown = JournalList()
    qtbot.addWidget(shown)
    made = tuple(entry(9 - at, START_MS - (at // 2) * DAY_MS) for at in range(5))
    shown.show_entries(made[:3], START_MS)
    shown.journal.append(made[3:])
    model = shown.journal
    rows = [model.index(at).data(Qt.ItemDataRole.UserRole) for at in range(model.rowCount())]
    days = [at for at, row in enumerate(rows) if isinstance(row, str)]
    assert days == [0, 3, 6]
    assert (rows[0], rows[3]) == ("Today", "Yesterday")
    assert model.entries == made
    qtmodeltester.check(model)
    assert not model.flags(model.index(0)) & Qt.ItemFlag.ItemIsSelectable
    assert model.index(1).data(Qt.ItemDataRole.AccessibleTextRole).startswith("Read 5 notes")
    for name in ("light", "dark"):
        theme.use(name)
        shown.viewport().grab()


def test_ten_thousand_changes_do_not_freeze(qtbot: QtBot) -> None:
    changes = JournalChanges()
    qtbot.addWidget(changes)
    changes.resize(900, 600)
    changes.show()
    made = tuple(entry(20_000 - at, START_MS - at * 600_000) for at in range(10_000))
    page = JournalPage(entries=made, more=False, unseen=0)
    began = perf_counter()
    changes.show_page(page, START_MS)
    changes.grab()
    changes.list.scrollToBottom()
    changes.grab()
    assert perf_counter() - began < 3.0
    assert changes.list.journal.rowCount() > 10_000


async def test_older_ones_are_loaded_when_asked_for(desk: Desk) -> None:
    count = journal.PAGE + 30
    desk.assistant.rest.entries = [entry(at, moment(at)) for at in range(1, count + 1)]
    await desk.open()
    desk.window.run_command("journal")
    await desk.settle()
    changes = desk.window.journal.page.changes
    assert listed(changes) == list(range(count, 30, -1))
    assert not changes.older_button.isHidden()
    changes.older_button.click()
    changes.older_button.click()  # a second wish while the first is on its way
    await desk.settle()
    assert listed(changes) == list(range(count, 0, -1))
    assert changes.older_button.isHidden()


async def test_the_filter_and_the_search_are_asked_for(desk: Desk) -> None:
    changes = await opened(desk)
    assert listed(changes) == [6, 5, 4, 2, 1]
    changes.filter_box.setCurrentIndex(list(journal.FILTERS).index("own"))
    changes.filter_box.activated.emit(0)
    await desk.settle()
    assert listed(changes) == [3]
    changes.filter_box.setCurrentIndex(0)
    changes.search_field.setText("nightly")
    changes._timer.timeout.emit()
    await desk.settle()
    assert listed(changes) == [5]
    changes.search_field.setText("zebra")
    changes._timer.timeout.emit()
    await desk.settle()
    assert changes.empty_text() == "No change fits this filter."
    assert changes.list.isHidden()


async def test_an_empty_journal_says_what_will_stand_there(desk: Desk) -> None:
    await desk.open()
    desk.window.run_command("journal")
    await desk.settle()
    page = desk.window.journal.page
    assert page.changes.empty_text().startswith("Nothing yet.")
    assert not page.skills.empty.isHidden()
    page.left.emit()
    assert desk.window.pages.currentWidget() is desk.window.conversation_panel


# -- the badge ------------------------------------------------------------------------------------
async def test_the_badge_counts_what_is_new_until_it_was_seen(desk: Desk) -> None:
    desk.assistant.rest.entries = [entry(1, new=True), entry(2, new=True)]
    await desk.open()
    button = desk.window.sidebar.journal_button
    assert button.text() == "Journal"
    desk.assistant.rest.tell(RestStatus(news=2))
    await desk.settle()
    assert button.text() == "Journal •2"
    assert button.accessibleName() == "Journal, 2 new"
    assert desk.assistant.rest.seen == 0
    button.click()
    await desk.settle()
    assert desk.assistant.rest.seen == 1
    assert button.text() == "Journal"
    changes = desk.window.journal.page.changes
    assert [shown.new for shown in changes.list.journal.entries] == [True, True]


async def test_what_happens_while_the_journal_is_open_joins_it(desk: Desk) -> None:
    changes = await opened(desk)
    choose(changes, 2)
    rest = desk.assistant.rest
    rest.entries.append(entry(7, START_MS + 700_000, new=True))
    rest.tell(RestStatus(news=1))
    await desk.settle()
    assert listed(changes)[:2] == [7, 6]
    chosen = changes.list.entry()
    assert chosen is not None
    assert chosen.id == 2
    assert rest.seen == 2


# -- one change -------------------------------------------------------------------------------------
async def test_a_change_opens_its_notes(desk: Desk) -> None:
    changes = await opened(desk)
    choose(changes, 6)
    links = [link for box in changes.detail.boxes for link in box.links]
    assert [link.isEnabled() for link in links] == [True, True, True, False, True]
    links[0].click()
    await desk.settle()
    dialog = desk.window.findChild(SourceDialog)
    assert dialog is not None
    assert dialog.text.toPlainText() == "one"
    dialog.close()


async def test_undo_shows_what_it_did(desk: Desk) -> None:
    changes = await opened(desk)
    choose(changes, 6)
    detail = changes.detail
    assert detail.undo_button.accessibleName() == "Undo: Paid a debt. Read 12 notes: 2 finds"
    changes.list.setFocus()
    QTest.keyClick(changes.list, Qt.Key.Key_Return)
    assert desk.window.focusWidget() is detail.undo_button
    detail.undo_button.click()
    await desk.settle()
    assert next(shown for shown in desk.assistant.rest.entries if shown.id == 6).undone
    assert not detail.undo_button.isEnabled()
    assert detail.undo_button.text() == "undone"
    assert detail.trouble.isHidden()
    shown = changes.list.entry()
    assert shown is not None
    assert shown.undone


async def test_an_undo_that_fails_says_why(desk: Desk) -> None:
    changes = await opened(desk)
    choose(changes, 6)
    desk.assistant.rest.fail = Problem(code=ProblemCode.DISK_FULL)
    changes.detail.undo_button.click()
    await desk.settle()
    assert "full" in changes.detail.trouble.text()
    assert changes.detail.undo_button.isEnabled()
    desk.assistant.rest.fail = None
    desk.assistant.rest.entries = []
    changes.detail.undo_button.click()
    await desk.settle()
    assert changes.detail.trouble.text().startswith("This was undone already")
    choose(changes, 5)
    assert changes.detail.trouble.isHidden()


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_the_page_follows_the_language(desk: Desk, language: str) -> None:
    changes = await opened(desk)
    await desk.assistant.change_setting("general.language", language)
    desk.window.apply_settings()
    await desk.settle()
    first = changes.list.journal.index(0).data(Qt.ItemDataRole.UserRole)
    assert first in ("Today", "今天")
    texts = (changes.filter_box.itemText(1), desk.window.journal.page.tabs.tabText(1))
    assert texts == (("Finds only", "Skills •1") if language == "en" else ("只看找到的", "技能 •1"))


async def test_a_wide_page_puts_the_change_beside_the_list(desk: Desk) -> None:
    changes = await opened(desk)
    assert changes.splitter.orientation() is Qt.Orientation.Vertical
    desk.window.resize(1800, 900)
    await desk.settle()
    assert changes.splitter.orientation() is Qt.Orientation.Horizontal


# -- skills ---------------------------------------------------------------------------------------
async def test_a_proposal_shows_what_it_rests_on_and_takes_an_answer(desk: Desk) -> None:
    await opened(desk)
    skills = desk.window.journal.page.skills
    card = skills.cards[0]
    assert card.accept_button.accessibleName() == "Accept: Wait for the rebuild"
    card.why_button.setChecked(True)
    await desk.settle()
    assert len(card.boxes) == 3
    card.boxes[0].links[0].click()
    await desk.settle()
    dialog = desk.window.findChild(SourceDialog)
    assert dialog is not None
    dialog.close()
    card.accept_button.click()
    await desk.settle()
    assert desk.assistant.rest.known_proposals[0].state is ProposalState.ACCEPTED
    assert skills.cards[0].accept_button.isHidden()
    assert skills.cards[0]._facts.text().startswith("accepted · seen to work 3 times")
    assert desk.window.journal.page.tabs.tabText(1) == "Skills"


async def test_a_proposal_can_be_rejected_and_may_rest_on_nothing_any_more(desk: Desk) -> None:
    await opened(desk)
    desk.assistant.rest.known_experiences = ()
    card = desk.window.journal.page.skills.cards[0]
    card.why_button.setChecked(True)
    await desk.settle()
    assert len(card.boxes) == 1
    card.reject_button.click()
    await desk.settle()
    assert desk.assistant.rest.known_proposals[0].state is ProposalState.REJECTED


# -- goals ----------------------------------------------------------------------------------------
async def test_goals_are_added_reworded_switched_off_and_removed(desk: Desk) -> None:
    await opened(desk)
    goals, rest = desk.window.journal.page.goals, desk.assistant.rest
    assert [row.remove_button.isHidden() for row in goals.rows] == [True, True, True]
    assert not goals.add_button.isEnabled()
    goals.field.setText("What is the heron?")
    QTest.keyClick(goals.field, Qt.Key.Key_Return)
    await desk.settle()
    row = goals.rows[3]
    assert (row.goal.text, goals.field.text()) == ("What is the heron?", "")
    row.reword_button.click()
    row.editor.setText("Where is it?")
    QTest.keyClick(row.editor, Qt.Key.Key_Escape)
    assert row.editor.isHidden()
    row.reword_button.click()
    row.editor.setText("Where is it?")
    QTest.keyClick(row.editor, Qt.Key.Key_Return)
    await desk.settle()
    assert rest.known_goals[3].text == "Where is it?"
    goals.rows[0].check.click()
    await desk.settle()
    assert not rest.known_goals[0].enabled
    goals.rows[3].remove_button.click()
    await desk.settle()
    assert len(rest.known_goals) == len(goals.rows) == 3


async def test_a_goal_too_many_is_refused_in_words(desk: Desk) -> None:
    await opened(desk)
    for at in range(21):
        await desk.assistant.rest.add_goal(f"goal {at}")
    goals = desk.window.journal.page.goals
    goals.field.setText("one more")
    goals.add_button.click()
    await desk.settle()
    assert goals.refusal.text().startswith("Not added")
    assert goals.field.text() == "one more"
    goals.field.setText("one more!")
    assert goals.refusal.isHidden()


async def test_a_conclusion_leads_to_the_record(desk: Desk) -> None:
    changes = await opened(desk)
    choose(changes, 4)
    shown = changes.list.entry()
    assert shown is not None
    assert (shown.cause, shown.kind) == (Cause.FLYWHEEL, JournalKind.KNOWLEDGE)
    links = [link for box in changes.detail.boxes for link in box.links]
    assert links[0].accessibleName() == "Open the conclusion"
    links[0].click()
    await desk.settle()
    dialog = desk.window.findChild(SourceDialog)
    assert dialog is not None
    dialog.close()
