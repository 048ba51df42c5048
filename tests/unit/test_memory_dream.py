"""Dreams and sleep: what is paid, what never is, in which order, and that it ends."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.config import LearningConfig, RestConfig, StorageConfig
from memory.events import RestProgress
from memory.requests import NeedEmbeddings, NeedVerdicts
from memory.rest_values import Cause, JournalFilter, JournalKind, RestOutcome
from memory.storage.database import Database
from memory.storage.schema import MIGRATIONS, migrate
from memory.values import BlockKind, DebtState, Depth
from tests.fakes.driver import drive
from tests.fakes.memory_world import NO_HOST, MemoryWorld


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    yield world
    world.engine.close()


def stored(world: MemoryWorld) -> tuple:
    """All that learning has written, byte for byte."""
    pointers = world.engine._stores.pointers
    return dict(pointers.records()), pointers.counts(), world.engine._stores.log.last_id()


def deep(world: MemoryWorld) -> set[int]:
    """Places that are stained deep."""
    spans = [s for s in world.engine.stains().spans if s.depth is Depth.DEEP]
    return {seq for s in spans for seq in range(s.first_seq, s.last_seq + 1)}


def test_a_dream_pays_a_debt_and_points_from_its_entry(world):
    debt = world.owe()
    world.judge.yes = {"n7x"}
    report = world.rest(world.engine.dream())
    assert (report.outcome, report.debt_id) == (RestOutcome.DONE, debt.id)
    assert (report.judged, report.answered, report.remaining) == (20, 20, 0)
    assert report.discoveries == (world.notes[7].id,)
    assert world.engine.ledger().open == ()
    assert world.engine.ledger().cleared == 1
    entry = world.engine.node_at(debt.entry_seq)
    targets = {e.target_id: e for e in world.engine.neighbourhood(entry.id).leaving}
    assert [s.text for s in targets[world.notes[7].id].positive] == [
        "what is the zebra machine title??"
    ]


def test_an_empty_ledger_is_nothing_to_dream_of(world):
    assert world.rest(world.engine.dream()).outcome is RestOutcome.EMPTY
    assert world.rest(world.engine.dream("7-1")).outcome is RestOutcome.EMPTY


def test_a_large_debt_is_paid_in_visits_and_goes_to_the_end_of_the_queue(world):
    large = world.owe(notes=100)
    small = world.owe("where is the quagga label?", notes=4)
    report = world.rest(world.engine.dream())
    assert (report.outcome, report.judged, report.remaining) == (RestOutcome.PARTLY, 64, 36)
    first, second = world.engine.ledger().open
    assert (first.id, second.id) == (small.id, large.id)
    assert (second.state, second.remaining) == (DebtState.STARTED, 36)
    world.reopen()
    assert [d.id for d in world.engine.ledger().open] == [small.id, large.id]
    world.judge.read.clear()
    assert world.rest(world.engine.dream(large.id)).outcome is RestOutcome.DONE
    assert len(world.judge.read) == 36


def test_no_node_is_paid_twice_over_visits_and_restarts(world):
    world.owe(notes=150)
    while world.engine.ledger().open:
        world.rest(world.engine.dream())
        world.reopen()
    assert len(world.judge.read) == len(set(world.judge.read)) == 150


def test_the_best_span_is_read_first(world):
    conversation = world.conversation()
    fact = world.say("heron", conversation)
    for n in range(200):
        world.say("zebra machine list" if n == 40 else f"filler{n}x lorem{n}y", conversation)
    asked = world.say("what is the zebra machine title?", conversation)
    world.digest()
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    again = world.say("what is the zebra machine title??", conversation)
    world.search(again.content, question_id=again.id)
    world.judge.read.clear()
    world.rest(world.engine.dream())
    assert "zebra machine list" in world.judge.read[:8]


def test_only_answered_nodes_are_stained(world):
    world.owe()
    world.judge.unknown = {"n3x", "n11x"}
    report = world.rest(world.engine.dream())
    assert (report.outcome, report.answered, report.unclear) == (RestOutcome.UNSURE, 18, 2)
    assert report.judged == 22, "what is unknown is looked at twice"
    unsure = {world.notes[3].seq, world.notes[11].seq}
    assert deep(world) & {n.seq for n in world.notes} == {n.seq for n in world.notes} - unsure


@pytest.mark.parametrize("how", ["out", "suggests"])
def test_a_judge_who_does_not_answer_changes_no_byte(world, how):
    world.owe()
    world.judge.out = how == "out"
    world.judge.trusted = how != "suggests"
    before = stored(world)
    outcome = world.rest(world.engine.dream()).outcome
    expected = {"out": "judge_out", "suggests": "suggests"}[how]
    assert outcome == expected
    slept = world.rest(world.engine.sleep())
    assert (slept.outcome, slept.debts_open) == (RestOutcome(expected), 1)
    assert stored(world) == before


def test_a_judge_who_is_unsure_of_all_teaches_nothing_but_that(world):
    world.owe()
    world.judge.unknown = {"filler"}
    before = dict(world.engine._stores.pointers.records())
    dreamt = world.rest(world.engine.dream())
    assert (dreamt.outcome, dreamt.unclear) == (RestOutcome.UNSURE, 20)
    assert world.engine.ledger().open == ()
    after = dict(world.engine._stores.pointers.records())
    assert {k for k in after if after[k] != before.get(k)} == {"s:fragments"}
    assert deep(world) & {n.seq for n in world.notes} == set()


def test_a_debt_over_what_can_be_no_answer_is_cleared_without_a_judge(world):
    conversation = world.conversation()
    fact = world.say("heron", conversation)
    hidden = [world.say(f"which {n}?", conversation) for n in range(3)]
    stored_branch = world.say("filler on a branch", conversation)
    asked = world.say("what is the zebra machine title?", conversation)
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    again = world.say("what is the zebra machine title??", conversation)
    world.search(again.content, question_id=again.id)
    assert world.engine.ledger().open[0].size == len(hidden) + 1
    world.engine._stores.database.execute(
        "UPDATE nodes SET branch_active = 0 WHERE id = ?", (stored_branch.id,)
    )
    world.judge.out = True
    assert world.rest(world.engine.dream()).outcome is RestOutcome.DONE
    assert world.engine.ledger().open == ()
    assert stored_branch.seq not in deep(world)


def test_what_a_bounded_book_forgets_is_not_paid_again(tmp_path):
    config = replace(NO_HOST, learning=LearningConfig(intervals_max=2, clusters_max=1))
    world = MemoryWorld(tmp_path / "m", config)
    world.owe(notes=100)
    world.judge.unknown = {f"n{n}x" for n in range(0, 100, 10)}
    world.rest(world.engine.sleep())
    again = list(world.judge.read)
    known = [t for t in again if not any(word in t for word in world.judge.unknown)]
    assert len(known) == len(set(known)) == 90
    assert world.engine.ledger().unclear[0].remaining == 10
    world.engine.close()


def test_progress_is_told(world):
    world.owe(notes=20)
    world.rest(world.engine.dream())
    told = world.events.of(RestProgress)
    assert [(e.judged, e.remaining, e.debts_open) for e in told] == [
        (8, 12, 1),
        (16, 4, 1),
        (20, 0, 0),
    ]
    assert {e.activity for e in told} == {Cause.DREAM}


# --- sleep


def test_sleep_empties_the_ledger_and_ends(world):
    for word in ("zebra", "quagga", "okapi"):
        world.owe(f"what is the {word} machine title?", notes=70)
    world.judge.yes = {"n69x"}
    report = world.rest(world.engine.sleep())
    assert (report.outcome, report.debts_open, report.cleared) == (RestOutcome.DONE, 0, 3)
    assert report.answered == 210 == report.judged
    assert report.visits == 6
    assert report.retry_after_s == 0.0
    assert world.rest(world.engine.sleep()).judged == 0


def test_sleep_with_nothing_to_do_ends_at_once(world):
    assert world.rest(world.engine.sleep()).outcome is RestOutcome.EMPTY


def test_sleep_is_woken_before_its_next_visit(world):
    world.owe(notes=100)
    operation = world.engine.sleep()
    judged = 0

    def judge(request):
        nonlocal judged
        judged += len(request.candidates)
        world.engine.wake()
        return world.judge(request)

    report = drive(operation, world.embedder, judge)
    assert (report.outcome, judged) == (RestOutcome.WOKEN, 64)
    assert world.engine.ledger().open[0].remaining == 36


def test_sleep_ends_when_its_time_is_used_up(world):
    world.owe(notes=200)

    def slow(request):
        world.clock.advance(100.0)
        return world.judge(request)

    report = drive(world.engine.sleep(budget_s=500.0), world.embedder, slow)
    assert (report.outcome, report.visits) == (RestOutcome.BUDGET, 1)
    assert report.elapsed_s >= 500.0


def test_failures_in_a_row_are_tried_again_later_and_later(world):
    world.owe()
    world.judge.out = True
    waits = [world.rest(world.engine.sleep()).retry_after_s for _ in range(12)]
    assert waits[:4] == [60.0, 120.0, 240.0, 480.0]
    assert waits[-1] == RestConfig().retry_max_s
    world.judge.out = False
    assert world.rest(world.engine.sleep()).retry_after_s == 0.0
    world.owe("where is the quagga label?")
    world.judge.out = True
    assert world.rest(world.engine.sleep()).retry_after_s == 60.0


def test_what_cannot_be_folded_ends_a_sleep_and_is_tried_again_later(world, monkeypatch):
    world.owe()
    monkeypatch.setattr(world.engine._stores.pointers, "catch_up", lambda: (0, ()))
    world.rest(world.engine.dream())
    slept = world.rest(world.engine.sleep())
    assert (slept.outcome, slept.debts_open) == (RestOutcome.PARTLY, 1)
    assert slept.retry_after_s > 0
    monkeypatch.undo()
    assert world.rest(world.engine.sleep()).debts_open == 0


def test_a_sleep_closed_at_any_request_loses_and_repeats_nothing(world):
    world.owe(notes=40)
    closed = 0
    while world.engine.ledger().open:
        operation = world.engine.sleep()
        reply = None
        for _ in range(12 + closed % 7):
            try:
                request = operation.send(reply)
            except StopIteration:
                break
            reply = None
            if isinstance(request, NeedVerdicts):
                reply = world.judge(request)
            elif isinstance(request, NeedEmbeddings):
                reply = world.embedder.embed(request.texts, request.kind)
        operation.close()
        closed += 1
        assert closed < 60
        world.reopen()
    paid = [e for e in world.engine.journal(JournalFilter(limit=100)).entries if e.no_count]
    assert sum(e.no_count for e in paid if e.cause is Cause.DREAM) >= 40
    seqs = [n.seq for e in paid if e.cause is Cause.DREAM for n in e.no]
    assert len(seqs) == len(set(seqs))
    assert world.engine.audit(fix=False, full=True).findings == ()


# --- nap


def test_a_nap_clears_the_working_set_and_the_caches_and_nothing_else(world):
    world.owe()
    conversation = world.conversation()
    world.engine.open_region(
        conversation, window_tokens=2000, system_tokens=10, reserve_tokens=10, tokenizer="t"
    )
    blocks = []
    for number in range(10):
        turn = world.engine.next_turn(conversation)
        node = world.say(f"turn {number}", conversation)
        blocks.append(
            world.engine.page_in(
                conversation,
                turn=turn,
                kind=BlockKind.USER,
                node_id=node.id,
                text=node.content,
                tokens=100,
            )
        )
    world.engine.pin(conversation, blocks[0].id, True)
    world.recall("zebra machine")
    before, ledger, nodes = stored(world), world.engine.ledger(), world.engine.statistics().nodes
    report = world.engine.nap()
    assert report.blocks == 3
    assert report.cached > 0
    kept = [b.id for b in world.engine.blocks(conversation)]
    assert kept == [blocks[0].id, *(b.id for b in blocks[4:])]
    assert stored(world) == before
    assert world.engine.ledger().open == ledger.open
    assert world.engine.statistics().nodes == nodes
    seen = world.engine.fatigue()
    assert (seen.miss, seen.eviction, seen.accesses) == (0.0, 0.0, 0)
    assert seen.debt > 0
    assert len(world.engine._recaller.cache) == len(world.engine._recaller.recent) == 0
    assert world.engine.audit(fix=False, full=True).findings == ()


# --- fatigue of the engine


def test_window_and_curve_of_the_meter_survive_a_restart(world):
    world.owe()
    world.recall("zebra machine title")
    before = world.engine.fatigue()
    assert before.accesses > 0
    world.reopen()
    after = world.engine.fatigue()
    assert (after.miss, after.eviction, after.accesses) == (
        before.miss,
        before.eviction,
        before.accesses,
    )
    assert after.history[:-1] == before.history[:-1]
    world.clock.advance(3600)
    assert len(world.engine.fatigue().history) == len(before.history) + 1


def test_the_curve_of_the_engine_is_bounded(world):
    for _ in range(1000):
        world.clock.advance(600)
        world.engine.fatigue()
    rows = world.engine._stores.database.number("SELECT count(*) FROM fatigue_history")
    assert rows == len(world.engine.fatigue().history) <= 289


# --- journal


def test_the_journal_says_what_was_read_concluded_and_pointed(world):
    debt = world.owe()
    world.judge.yes = {"n7x"}
    world.rest(world.engine.dream())
    page = world.engine.journal()
    assert [e.cause for e in page.entries] == [Cause.DREAM] * 3
    assert page.entries[0].kind is JournalKind.DEBT_CLEARED
    assert [e.kind for e in page.entries[1:]] == [JournalKind.READ] * 2
    assert {e.debt_id for e in page.entries} == {debt.id}
    assert {e.question for e in page.entries} == {"what is the zebra machine title??"}
    assert page.entries[0].judge.startswith("scripted")
    (find,) = world.engine.journal(JournalFilter(finds_only=True)).entries
    assert [n.node_id for n in find.yes] == [world.notes[7].id]
    assert [n.seq for n in find.sources] == [debt.entry_seq]
    assert (find.no_count, len(find.no)) == (7, 7)
    assert sum(e.no_count for e in page.entries) == 19
    assert world.engine.journal(JournalFilter(text="quagga")).entries == ()
    assert len(world.engine.journal(JournalFilter(text="ZEBRA")).entries) == 3
    first = world.engine.journal(JournalFilter(limit=2))
    rest = world.engine.journal(JournalFilter(limit=2, before_id=first.entries[-1].id))
    assert (first.more, rest.more) == (True, False)
    assert [*first.entries, *rest.entries] == list(page.entries)
    assert len(world.engine.journal(JournalFilter(causes=frozenset(Cause))).entries) > 3


def test_what_is_new_is_counted_until_it_was_seen(world):
    world.owe()
    assert world.engine.journal_unseen() == 0
    world.rest(world.engine.dream())
    assert world.engine.journal_unseen() == 3
    assert all(e.new for e in world.engine.journal().entries)
    world.engine.mark_journal_seen()
    world.reopen()
    assert world.engine.journal().unseen == 0
    assert not any(e.new for e in world.engine.journal().entries)


def test_undo_leaves_the_memory_as_if_it_had_never_been(world):
    world.owe()
    before = stored(world)
    world.judge.yes = {"n7x"}
    world.rest(world.engine.dream())
    entries = world.engine.journal().entries
    for entry in entries:
        assert world.engine.undo(entry.id)
        assert not world.engine.undo(entry.id)
        assert world.engine.audit(fix=False, full=True).findings == ()
    assert stored(world)[:2] == before[:2]
    assert all(e.undone for e in world.engine.journal().entries)
    assert world.engine.journal(JournalFilter(undone=False)).entries == ()
    assert not world.engine.undo(99_999)
    world.reopen()
    assert stored(world)[:2] == before[:2]


def test_no_dream_brings_back_what_was_undone(world):
    world.owe()
    world.judge.yes = {"n7x"}
    world.rest(world.engine.dream())
    (find,) = world.engine.journal(JournalFilter(finds_only=True)).entries
    world.engine.undo(find.id)
    report = world.rest(world.engine.dream())
    assert (report.outcome, report.discoveries) == (RestOutcome.DONE, ())
    assert world.engine.ledger().open == ()


def test_an_undo_that_was_cut_off_is_finished_at_the_next_start(world):
    world.owe()
    before = stored(world)
    world.rest(world.engine.dream())
    stores = world.engine._stores
    for entry in world.engine.journal().entries:
        with stores.database.transaction():
            assert stores.log.take_back(entry.id)
    world.reopen()
    assert stored(world)[:2] == before[:2]
    assert world.engine.audit(fix=False, full=True).findings == ()


def test_a_citation_that_is_taken_back_counts_no_hit(world):
    fact = world.say("heron")
    asked = world.say("what is the zebra machine title?")
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    (entry,) = world.engine.journal(JournalFilter(causes=frozenset({Cause.USER}))).entries
    assert world.engine.node(fact.id).hits == 1
    assert world.engine.undo(entry.id)
    assert world.engine.node(fact.id).hits == 0
    assert world.engine.statistics().jumps == 0


def test_what_was_learned_before_rest_came_keeps_its_cause(tmp_path):
    database = Database(tmp_path / "timeline.db", StorageConfig())
    migrate(database, migrations=MIGRATIONS[:2], backups_max=1)
    for kind in ("read", "used", "cited"):
        database.execute(
            "INSERT INTO learning_log(kind, created_at_ms, payload) VALUES(?, 1, '{}')", (kind,)
        )
    migrate(database, backups_max=1)
    rows = database.rows("SELECT kind, cause FROM learning_log ORDER BY id")
    assert [tuple(row) for row in rows] == [
        ("read", Cause.SEARCH),
        ("used", Cause.USER),
        ("cited", Cause.USER),
    ]
    assert database.number("SELECT count(*) FROM goals") == 3
    database.close()
