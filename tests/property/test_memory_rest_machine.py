"""Rest as a state machine: dreams, sleep, rehearsal and undo under a judge who fails three times in ten.

A model keeps what the judge has answered. After each step the pointer store is the fold of the log without what was undone,
nothing is stained and no debt is cleared that was not answered, none is put aside that a judge has not looked at twice, nobody but the user has refused anything, and – until something
is undone – nothing is paid twice. Machines with a planted bug prove that these checks can fail.
"""

from __future__ import annotations

import shutil
import tempfile
from collections import Counter
from dataclasses import replace
from pathlib import Path
from random import Random

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory.config import LearningConfig
from memory.requests import Judgement, NeedVerdicts, Verdict
from memory.rest_values import BACKGROUND, Cause, JournalFilter, RestOutcome
from memory.storage.pointer_fold import apply
from memory.storage.pointer_records import EMPTY, Record
from memory.storage.reading_fold import answered
from memory.values import Depth, ExactQuery, NodeId
from tests.fakes.driver import drive
from tests.fakes.memory_world import NO_HOST, MemoryWorld

CONFIG = replace(
    NO_HOST,
    learning=LearningConfig(fragments_max=6),
    rest=replace(NO_HOST.rest, dream_nodes=7, dream_batch=3, dream_spans=4, failures_max=2),
)
SETTINGS = settings(
    max_examples=10,
    stateful_step_count=16,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
QUESTIONS = ("zebra title?", "quagga label?", "okapi name?")
FAILING = 0.3


class Judge:
    """Fails three times in ten: out, or unsure of a node. Knows what it has answered, and to which question."""

    def __init__(self) -> None:
        self.name = "failing"
        self.chance = Random(1)
        self.yes: set[NodeId] = set()
        self.answered: set[tuple[str, NodeId]] = set()
        self.by_judge: dict[str, set[tuple[str, NodeId]]] = {"failing": set(), "other": set()}
        self.unsure: Counter[tuple[str, str, NodeId]] = Counter()
        self.twice: set[tuple[str, NodeId]] = set()

    def __call__(self, request: NeedVerdicts) -> Judgement | None:
        if self.chance.random() < FAILING:
            return None
        verdicts = []
        for node_id, _ in request.candidates:
            key = (word_of(request.query), node_id)
            if self.chance.random() < FAILING:
                verdicts.append(Verdict.UNKNOWN)
                self.unsure[(self.name, *key)] += 1
                continue
            self.twice |= {key} & self.by_judge[self.name]
            self.by_judge[self.name].add(key)
            self.answered.add(key)
            verdicts.append(Verdict.YES if node_id in self.yes else Verdict.NO)
        return Judgement(judge=self.name, trusted=True, verdicts=tuple(verdicts))


def word_of(question: str) -> str:
    """Which animal it is about: each is a cluster of its own."""
    return question.split()[0]


class RestMachine(RuleBasedStateMachine):
    """Rests as a host lets it."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="growbox-rest-"))
        self.world = MemoryWorld(self.folder / "m", CONFIG)
        self.judge = Judge()
        self.world.judge = self.judge
        self.conversation = self.world.conversation()
        self.facts: dict[int, NodeId] = {}
        self.undone: set[int] = set()
        self.seen: dict[tuple[str, int, int], set[NodeId]] = {}
        self.say(3)

    def teardown(self) -> None:
        self.world.engine.close()
        shutil.rmtree(self.folder)

    @property
    def stores(self):
        return self.world.engine._stores

    # -- steps

    @rule(count=st.integers(1, 12))
    def say(self, count: int) -> None:
        for _ in range(count):
            node = self.world.say(f"fact{len(self.facts)}x stands", self.conversation)
            self.facts[node.seq] = node.id

    @rule(question=st.sampled_from(QUESTIONS), data=st.data())
    def owe(self, question: str, data) -> None:
        """A jump over what lies between a question and the memory pinned to it."""
        target = data.draw(st.sampled_from(list(self.facts.values())))
        asked = self.world.say(question, self.conversation)
        engine = self.world.engine
        engine.learn_cited(query=question, question_id=asked.id, target_id=target)
        exact = engine.search_exactly(
            ExactQuery(text=question, question_id=asked.id, judgements_max=1)
        )
        drive(exact, self.world.embedder, _sure)
        self.note_debts()

    @rule(which=st.sampled_from(["next", "any"]), data=st.data())
    def dream(self, which: str, data) -> None:
        ledger = self.world.engine.ledger()
        every = [d.id for d in (*ledger.open, *ledger.unclear)]
        debt = data.draw(st.sampled_from(every)) if every and which == "any" else None
        self.draw_yes(data)
        report = self.world.rest(self.world.engine.dream(debt))
        assert report.judged <= CONFIG.rest.dream_nodes
        assert report.answered <= report.judged
        if report.outcome is RestOutcome.EMPTY:
            assert debt is None
            assert not ledger.open

    @rule(data=st.data())
    def sleep(self, data) -> None:
        self.draw_yes(data)
        report = self.world.rest(self.world.engine.sleep())
        assert report.debts_open == len(self.world.engine.ledger().open)
        assert (report.retry_after_s > 0) == (report.outcome is RestOutcome.JUDGE_OUT)
        ends = {RestOutcome.DONE, RestOutcome.EMPTY, RestOutcome.JUDGE_OUT}
        assert report.outcome in ends, "every sleep empties the ledger, or the judge was out"
        assert bool(report.debts_open) == (report.outcome is RestOutcome.JUDGE_OUT)

    @rule(name=st.sampled_from(["failing", "other"]))
    def load_a_judge(self, name: str) -> None:
        """What another judge has put aside is owed again."""
        self.judge.name = name
        before = len(self.world.engine.ledger().open)
        opened = self.world.rest(self.world.engine.reopen_debts())
        ledger = self.stores.pointers.ledger()
        assert len(ledger.fragments) == before + opened

    @rule()
    def rehearse(self) -> None:
        self.world.rest(self.world.engine.rehearse())

    def draw_yes(self, data) -> None:
        self.judge.yes = data.draw(st.sets(st.sampled_from(list(self.facts.values())), max_size=2))
        self.judge.chance = Random(data.draw(st.integers(0, 9)))

    @precondition(lambda self: self.entries())
    @rule(data=st.data())
    def undo(self, data) -> None:
        entry = data.draw(st.sampled_from(self.entries()))
        assert self.world.engine.undo(entry)
        self.undone.add(entry)
        self.forget_payments()

    @rule()
    def undo_everything(self) -> None:
        for entry in self.entries():
            assert self.world.engine.undo(entry)
            self.undone.add(entry)
        self.forget_payments()
        assert self.world.engine.audit(fix=False, full=True).findings == ()
        assert self.world.engine.journal(JournalFilter(undone=False)).entries == ()

    @rule()
    def nap(self) -> None:
        before = self.records()
        self.world.engine.nap()
        assert self.records() == before

    @rule()
    def reopen(self) -> None:
        self.world.reopen()

    @rule()
    def lose_the_pointers(self) -> None:
        before = self.records()
        self.world.engine.close()
        shutil.rmtree(self.world.path / "pointers")
        self.world.engine = self.world._open()
        assert self.records() == before

    # -- the model

    def entries(self) -> list[int]:
        page = self.world.engine.journal(JournalFilter(undone=False, limit=1000))
        return [entry.id for entry in page.entries]

    def records(self) -> dict[str, Record]:
        return dict(self.stores.pointers.records())

    def note_debts(self) -> None:
        for debt in self.world.engine.ledger().open:
            gap = range(debt.first_seq, debt.last_seq + 1)
            name = (word_of(debt.query), debt.entry_seq, debt.target_seq)
            self.seen[name] = {self.facts[seq] for seq in gap if seq in self.facts}

    def forget_payments(self) -> None:
        """What was undone may be paid again, and finds that were undone are passed over."""
        self.judge.answered.clear()
        self.judge.by_judge = {"failing": set(), "other": set()}
        self.judge.twice.clear()
        self.seen.clear()
        self.note_debts()

    # -- what holds

    @invariant()
    def the_store_is_the_fold_without_what_was_undone(self) -> None:
        records: dict[str, Record] = {}
        for event in self.stores.log.after(0, 100_000):
            if event.id not in self.undone:
                whole = replace(event, undone=False)
                records.update(apply(whole, lambda k: records.get(k, EMPTY), CONFIG.learning))
        assert self.records() == {k: r for k, r in records.items() if r != EMPTY}

    @invariant()
    def deep_is_only_what_was_answered(self) -> None:
        if self.undone:
            return  # what is stained still was answered before the model forgot
        answered = {node_id for _, node_id in self.judge.answered}
        for span in self.world.engine.stains().spans:
            if span.depth is Depth.DEEP:
                inside = range(span.first_seq, span.last_seq + 1)
                stained = {self.facts[seq] for seq in inside if seq in self.facts}
                assert stained <= answered

    @invariant()
    def no_debt_is_cleared_unpaid(self) -> None:
        if self.undone:
            return
        held = self.world.engine.ledger().open
        open_now = {(word_of(d.query), d.entry_seq, d.target_seq) for d in held}
        aside = self.unclear_facts()
        for name, facts in self.seen.items():
            facts = facts - aside.get(name, set())
            if name not in open_now and len(held) < CONFIG.learning.fragments_max:
                assert {(name[0], fact) for fact in facts} <= self.judge.answered

    @invariant()
    def put_aside_is_only_what_was_looked_at_twice(self) -> None:
        if self.undone:
            return
        for fragment in self.stores.pointers.ledger().unclear:
            word = word_of(self.stores.log.texts([fragment.query])[fragment.query])
            judges = {judge.split()[0] for judge in fragment.judges}
            for fact in self.unclear_facts()[(word, *fragment.name)]:
                assert any(self.judge.unsure[(judge, word, fact)] > 1 for judge in judges)

    def unclear_facts(self) -> dict[tuple[str, int, int], set[NodeId]]:
        found = {}
        for fragment in self.stores.pointers.ledger().unclear:
            word = word_of(self.stores.log.texts([fragment.query])[fragment.query])
            left = fragment.remaining(answered(self.stores.pointers.cluster(fragment.query)))
            facts = {self.facts[s] for a, b in left for s in range(a, b + 1) if s in self.facts}
            found[(word, *fragment.name)] = facts
        return found

    @invariant()
    def nothing_is_paid_twice(self) -> None:
        assert not self.judge.twice

    @invariant()
    def nobody_has_refused_anything(self) -> None:
        assert not [key for key in self.records() if key.startswith("v:")]
        for record in self.records().values():
            assert not any(edge.negative for edge in record.edges.values())

    @invariant()
    def background_is_in_the_journal(self) -> None:
        events = self.stores.log.after(0, 100_000)
        known = {e.id for e in events if e.cause in BACKGROUND and e.kind != "undo"}
        page = self.world.engine.journal(JournalFilter(limit=1000))
        assert {entry.id for entry in page.entries} == known
        assert {entry.cause for entry in page.entries} <= {Cause.DREAM, Cause.REHEARSAL}


def _sure(request: NeedVerdicts) -> Judgement:
    """Only says who judges: a jump needs no verdict."""
    unknown = (Verdict.UNKNOWN,) * len(request.candidates)
    return Judgement(judge="failing", trusted=True, verdicts=unknown)


TestRest = RestMachine.TestCase
TestRest.settings = SETTINGS


def _clears_at_once(self, visit):
    self._court.settle(visit.run, (visit.fragment.gap,), ())
    return self._report(visit, RestOutcome.DONE)


def _reads_all(self, fragment):
    return ()


def _gives_up_at_once(self, visit):
    visit.looks.twice |= visit.run.seen
    return []


BUGS = {
    "a visit clears what it has not read": ("memory.rest.dream.Dreamer._finish", _clears_at_once),
    "an undo is only noted": (
        "memory.storage.pointer_store.PointerStore._fold_anew",
        lambda self: self._note(self._log.last_id(), self._counts()) or (),
    ),
    "one look is taken for two": ("memory.rest.dream.Dreamer._unsure", _gives_up_at_once),
    "what was read is read again": ("memory.rest.dream.Dreamer._covered", _reads_all),
}


@pytest.mark.parametrize("bug", BUGS)
def test_the_machine_catches_a_planted_bug(bug: str) -> None:
    quiet = settings(
        SETTINGS,
        print_blob=False,
        database=None,
        derandomize=True,
        max_examples=60,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(*BUGS[bug])
        with pytest.raises(BaseException) as caught:  # noqa: PT011 - any failure will do
            run_state_machine_as_test(RestMachine, settings=quiet)
    assert not isinstance(caught.value, KeyboardInterrupt | SystemExit)
