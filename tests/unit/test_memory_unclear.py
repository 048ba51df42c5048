"""Debts to which the judge has no clear answer: a second look among the neighbours, then they are put aside, until somebody else reads."""

from __future__ import annotations

import pytest

from memory.requests import Verdict
from memory.rest_values import JournalFilter, JournalKind, RestOutcome
from memory.values import DebtState, Depth
from tests.fakes.driver import drive
from tests.fakes.judge import HEADER
from tests.fakes.memory_world import MemoryWorld
from tests.unit.test_forgetting import silent

QUESTION = "what is the zebra machine title??"


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    yield world
    world.engine.close()


def unclear_world(world: MemoryWorld, *words: str):
    """A debt that was slept over; of these words the judge is not sure."""
    debt = world.owe()
    world.judge.unknown = set(words)
    report = world.rest(world.engine.sleep())
    assert (report.outcome, report.debts_open) == (RestOutcome.DONE, 0)
    world.judge.read.clear()
    return debt


def deep(world: MemoryWorld) -> set[int]:
    spans = [s for s in world.engine.stains().spans if s.depth is Depth.DEEP]
    return {seq for s in spans for seq in range(s.first_seq, s.last_seq + 1)}


def words_read(world: MemoryWorld) -> list[list[str]]:
    """What the judge read, a text a list of its lines without headers."""
    return [[HEADER.sub("", line) for line in text.split("\n")] for text in world.judge.headed]


# --- the second look


def test_the_second_look_is_at_the_text_among_its_neighbours(world):
    world.owe()
    world.judge.unknown = {"n7x"}
    world.judge.headed.clear()
    world.rest(world.engine.dream())
    *first, again = words_read(world)
    contents = [note.content for note in world.notes]
    assert [contents[7]] in first
    assert again == contents[6:9]


def test_its_yes_counts_as_any_other(world):
    debt = world.owe()
    world.judge.unknown = {"n7x"}
    first = world.judge.verdict

    def verdict(text: str) -> Verdict:
        return Verdict.YES if "\n" in text else first(text)

    world.judge.verdict = verdict
    report = world.rest(world.engine.dream())
    assert (report.outcome, report.answered) == (RestOutcome.DONE, 20)
    assert report.discoveries == (world.notes[7].id,)
    entry = world.engine.node_at(debt.entry_seq)
    assert world.notes[7].id in {e.target_id for e in world.engine.neighbourhood(entry.id).leaving}
    assert world.notes[7].seq in deep(world)
    assert world.engine.ledger().unclear == ()


def test_a_neighbour_that_answers_by_itself_is_left_out(world):
    world.owe()
    world.judge.unknown = {"n7x"}
    world.judge.yes = {"n6x"}
    world.judge.headed.clear()
    world.rest(world.engine.dream())
    assert words_read(world)[-1] == [world.notes[7].content, world.notes[8].content]


def test_long_neighbours_are_cut_and_so_are_chinese_ones(world):
    conversation = world.conversation()
    fact = world.say("heron", conversation)
    world.say("lead " * 100 + "close", conversation)
    world.say("unsure here", conversation)
    world.say("开头" + "很长的话" * 60, conversation)
    asked = world.say("what is the zebra machine title?", conversation)
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    again = world.say(QUESTION, conversation)
    world.search(again.content, question_id=again.id)
    world.judge.unknown = {"unsure here"}
    world.judge.headed.clear()
    world.rest(world.engine.dream())
    before, text, after = words_read(world)[-1]
    assert text == "unsure here"
    assert (before[0], before[-5:], len(before)) == ("…", "close", 161)
    assert (after[:3], after[-1], len(after)) == ("开头很", "…", 61)


def test_nobody_is_looked_at_a_third_time(world):
    world.owe(notes=100)
    world.judge.unknown = {"filler"}
    visits = 0
    while world.engine.ledger().open:
        report = world.rest(world.engine.dream())
        assert report.judged <= 64
        visits += 1
    assert (visits, len(world.judge.read)) == (4, 200)
    assert report.unclear == 100


# --- put aside


def test_it_is_owed_no_more_and_says_how_much_is_unclear(world):
    debt = unclear_world(world, "n3x", "n11x")
    ledger = world.engine.ledger()
    assert (ledger.open, ledger.cleared, ledger.unclear_notes) == ((), 0, 2)
    (aside,) = ledger.unclear
    assert (aside.id, aside.remaining, aside.state) == (debt.id, 2, DebtState.UNSURE)
    assert world.engine.fatigue().debt == 0.0
    assert world.engine.statistics().fragments == 0
    world.reopen()
    assert world.engine.ledger().unclear == ledger.unclear


def test_nothing_is_stained_or_refused_and_a_search_reads_it_still(world):
    unclear_world(world, "n3x", "n11x")
    unsure = {world.notes[3].seq, world.notes[11].seq}
    assert not deep(world) & unsure
    assert not [k for k in dict(world.engine._stores.pointers.records()) if k.startswith("v:")]
    world.judge.unknown = set()
    world.judge.yes = {"n3x"}
    result = world.search(QUESTION, before_seq=world.notes[-1].seq + 1)
    assert [page.node.id for page in result.pages] == [world.notes[3].id]
    assert (world.engine.ledger().unclear, world.engine.ledger().cleared) == ((), 1)


def test_what_a_search_reads_clears_it(world):
    unclear_world(world, "n3x", "n11x")
    world.judge.unknown = set()
    world.search(QUESTION, before_seq=world.notes[-1].seq + 1)
    ledger = world.engine.ledger()
    assert (ledger.unclear, ledger.cleared) == ((), 1)


def test_the_same_judge_is_not_asked_again(world):
    unclear_world(world, "n3x")
    report = world.rest(world.engine.sleep())
    assert (report.outcome, world.judge.read) == (RestOutcome.EMPTY, [])
    again = world.say(QUESTION)
    world.search(again.content, question_id=again.id)
    assert world.engine.ledger().open == ()


def test_the_user_may_have_it_read_again(world):
    debt = unclear_world(world, "n3x", "n11x")
    last = world.engine._stores.log.last_id()
    report = world.rest(world.engine.dream(debt.id))
    assert (report.outcome, report.judged, report.unclear) == (RestOutcome.UNSURE, 4, 2)
    assert world.engine._stores.log.last_id() == last, "nothing new is nothing to write"
    world.judge.unknown = {"n3x"}
    report = world.rest(world.engine.dream(debt.id))
    assert (report.outcome, report.answered, report.unclear) == (RestOutcome.UNSURE, 1, 1)
    world.judge.unknown = set()
    assert world.rest(world.engine.dream(debt.id)).outcome is RestOutcome.DONE
    ledger = world.engine.ledger()
    assert (ledger.unclear, ledger.cleared) == ((), 1)


def test_another_judge_opens_it_again(world):
    debt = unclear_world(world, "n3x", "n11x")
    assert world.rest(world.engine.reopen_debts()) == 0
    world.judge.name = "other"
    world.judge.out = True
    assert world.rest(world.engine.reopen_debts()) == 0
    world.judge.out, world.judge.trusted = False, False
    assert world.rest(world.engine.reopen_debts()) == 0
    world.judge.trusted = True
    assert world.rest(world.engine.reopen_debts()) == 1
    assert [d.id for d in world.engine.ledger().open] == [debt.id]
    assert world.engine.ledger().open[0].state is DebtState.STARTED
    report = world.rest(world.engine.sleep())
    assert (report.outcome, report.unclear) == (RestOutcome.DONE, 2)
    world.judge.name = "scripted"
    assert world.rest(world.engine.reopen_debts()) == 0, "that one has read it before"


def test_a_sleep_under_another_judge_reads_what_the_last_one_put_aside(world):
    unclear_world(world, "n3x")
    world.judge.name, world.judge.unknown = "other", set()
    report = world.rest(world.engine.sleep())
    assert (report.outcome, report.answered, report.cleared) == (RestOutcome.DONE, 1, 1)
    assert world.engine.ledger().unclear == ()


def test_a_judge_who_goes_out_in_between_puts_nothing_aside(world):
    world.owe()
    world.judge.unknown = {"n3x", "n11x"}

    def judge(request):
        return None if world.judge.batches == 3 else world.judge(request)

    report = drive(world.engine.dream(), world.embedder, judge)
    assert (report.outcome, report.answered) == (RestOutcome.PARTLY, 18)
    world.judge.out = True
    assert world.rest(world.engine.dream()).outcome is RestOutcome.JUDGE_OUT
    assert len(world.engine.ledger().open) == 1
    world.judge.out = False
    world.judge.read.clear()
    assert world.rest(world.engine.dream()).outcome is RestOutcome.UNSURE
    assert len(world.judge.read) == 2, "the first look is remembered"


# --- journal, undo, forgetting


def test_the_journal_says_it_and_undo_takes_it_back(world):
    world.owe()
    before = dict(world.engine._stores.pointers.records())
    world.judge.unknown = {"n3x", "n11x"}
    world.rest(world.engine.sleep())
    (entry,) = [e for e in world.engine.journal().entries if e.kind is JournalKind.PUT_ASIDE]
    unsure = [world.notes[3].id, world.notes[11].id]
    assert [n.node_id for n in entry.unclear] == unsure
    assert (entry.unclear_count, entry.no_count, entry.yes) == (2, 0, ())
    assert entry.judge.startswith("scripted")
    assert world.engine.undo(entry.id)
    assert world.engine.audit(fix=False, full=True).findings == ()
    (debt,) = world.engine.ledger().open
    assert (debt.remaining, world.engine.ledger().unclear) == (2, ())
    world.rest(world.engine.sleep())
    assert world.engine.ledger().unclear_notes == 2
    for made in world.engine.journal(JournalFilter(undone=False)).entries:
        world.engine.undo(made.id)
    assert dict(world.engine._stores.pointers.records()) == before


def test_an_answer_that_is_taken_back_is_owed_though_the_rest_was_put_aside(world):
    debt = unclear_world(world, "n3x")
    first = [e for e in world.engine.journal().entries if e.kind is JournalKind.READ][-1]
    assert world.engine.undo(first.id)
    ledger = world.engine.ledger()
    assert [d.id for d in ledger.open] == [debt.id]
    assert (ledger.open[0].remaining, ledger.unclear) == (first.no_count + 1, ())
    world.judge.unknown = {"n3x"}
    assert world.rest(world.engine.sleep()).unclear == 1
    assert world.engine.audit(fix=False, full=True).findings == ()


def test_that_it_was_opened_again_can_be_undone_too(world):
    unclear_world(world, "n3x")
    before = dict(world.engine._stores.pointers.records())
    world.judge.name = "other"
    world.rest(world.engine.reopen_debts())
    entry = world.engine.journal().entries[0]
    assert (entry.kind, entry.undone) == (JournalKind.REOPENED, False)
    assert world.engine.undo(entry.id)
    assert dict(world.engine._stores.pointers.records()) == before
    assert world.engine.audit(fix=False, full=True).findings == ()


def test_the_fold_gives_the_same_anew(world):
    unclear_world(world, "n3x", "n11x")
    world.judge.name = "other"
    world.rest(world.engine.sleep())
    before = dict(world.engine._stores.pointers.records())
    assert before["s:fragments"].unclear[0].judges[0].startswith("scripted")
    world.engine._stores.pointers.rebuild()
    assert dict(world.engine._stores.pointers.records()) == before


def test_forgetting_the_conversation_forgets_it(world):
    unclear_world(world, "n3x", "n11x")
    for conversation in world.engine.conversations():
        world.engine.forgetting.ask(conversation.id)
        world.rest(world.engine.forgetting.run(conversation.id, silent))
    ledger = world.engine.ledger()
    assert (ledger.open, ledger.unclear) == ((), ())
    assert not [e for e in world.engine.journal().entries if e.kind is JournalKind.PUT_ASIDE]
    assert world.engine.audit(fix=False, full=True).findings == ()


def test_forgetting_one_end_of_it_leaves_no_trace_of_the_debt(world):
    elsewhere, here = world.conversation(), world.conversation()
    fact = world.say("heron", elsewhere)
    for n in range(4):
        world.say(f"filler n{n}x", here)
    asked = world.say("what is the zebra machine title?", here)
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    again = world.say(QUESTION, here)
    world.search(again.content, question_id=again.id)
    world.judge.unknown = {"n2x"}
    assert world.rest(world.engine.dream()).unclear == 1
    world.engine.forgetting.ask(elsewhere)
    world.rest(world.engine.forgetting.run(elsewhere, silent))
    ledger = world.engine.ledger()
    assert (ledger.open, ledger.unclear) == ((), ())
    (event,) = [e for e in world.engine._stores.log.after(0, 999) if e.id == _last(world)]
    assert (event.reading.debt, event.reading.unclear, event.reading.judge) == (None, (), "")
    assert world.engine.audit(fix=False, full=True).findings == ()


def _last(world: MemoryWorld) -> int:
    return world.engine._stores.log.last_id()
