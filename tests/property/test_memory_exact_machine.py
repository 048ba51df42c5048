"""The exact layer as a state machine: what no sequence of questions, answers, outages and restarts may break.

After each step the pointer store is the fold of the log, nothing has outgrown its bound, and nothing is stained that the judge
did not answer. A judge who is out, unsure of everything or not trusted changes no byte. What a search skipped was answered for
its cluster of questions before; whatever is on the timeline is found by a forced search. Machines with a planted bug prove that
these checks can fail.
"""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from pathlib import Path

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
from memory.recall.exact_run import Court
from memory.recall.past_scan import PastScan
from memory.requests import Judgement, NeedVerdicts, Verdict
from memory.storage import intervals, reading_fold
from memory.values import Depth, NodeId
from tests.fakes.memory_world import NO_HOST, MemoryWorld

LIMITS = LearningConfig(
    clusters_max=3,
    intervals_max=2,
    yes_max=4,
    fragments_max=3,
    anchors_max=2,
    anchor_window=1,
    edges_per_source=3,
    sources_per_target=2,
    judges_per_cluster=2,
)
SETTINGS = settings(
    max_examples=12,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
QUESTIONS = ("zebra title", "quagga label", "okapi name", "gazelle sign")
WORDINGS = [*QUESTIONS, "Title: zebra!", "label (quagga)"]
JUDGES = ("first", "second")


def cluster_of(wording: str) -> str:
    """The question that a wording restates."""
    return next(q for q in QUESTIONS if q.split()[0] in wording)


class Judge:
    """Says what the test drew, and remembers what it said."""

    def __init__(self) -> None:
        self.answered: dict[tuple[str, str, NodeId], set[Verdict]] = {}
        self.plan("first", {}, trusted=True)

    def plan(
        self,
        name: str,
        verdicts: dict[NodeId, Verdict],
        *,
        trusted: bool,
        batches: int = 1000,
        default: Verdict = Verdict.NO,
    ) -> None:
        """From now on; after so many batches it is out."""
        self.name, self.verdicts, self.trusted, self.default = name, verdicts, trusted, default
        self.batches = batches
        self.read: list[NodeId] = []

    def __call__(self, request: NeedVerdicts) -> Judgement | None:
        if self.batches <= 0:
            return None
        self.batches -= bool(request.candidates)
        verdicts = []
        for node_id, _ in request.candidates:
            verdict = self.verdicts.get(node_id, self.default)
            verdicts.append(verdict)
            self.read.append(node_id)
            if self.trusted:
                key = (cluster_of(request.query), self.name, node_id)
                self.answered.setdefault(key, set()).add(verdict)
        return Judgement(judge=self.name, trusted=self.trusted, verdicts=tuple(verdicts))


class ExactMachine(RuleBasedStateMachine):
    """Searches as a host makes them."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="growbox-exact-"))
        self.world = MemoryWorld(self.folder / "m", replace(NO_HOST, learning=LIMITS))
        self.judge = self.world.judge = Judge()
        self.conversation = self.world.conversation()
        self.facts: dict[NodeId, int] = {}
        self.asked: list[NodeId] = []
        self.vetoed: set[tuple[str, NodeId]] = set()
        for _ in range(6):
            self.say()

    def teardown(self) -> None:
        self.world.engine.close()
        shutil.rmtree(self.folder)

    @property
    def pointers(self):
        return self.world.engine._stores.pointers

    def stored(self):
        records = dict(self.pointers.records())
        return records, self.pointers.counts(), self.world.engine._stores.log.last_id()

    # -- steps

    @rule()
    def say(self) -> None:
        node = self.world.say(f"fact{len(self.facts)}x stands", self.conversation)
        self.facts[node.id] = node.seq

    @rule(wording=st.sampled_from(WORDINGS))
    def ask(self, wording: str) -> None:
        self.asked.append(self.world.say(f"what is the {wording}?", self.conversation).id)

    @rule(
        wording=st.sampled_from(WORDINGS),
        judge=st.sampled_from(JUDGES),
        most=st.sampled_from([3, 8, 100]),
        batches=st.sampled_from([1, 2, 1000]),
        forced=st.booleans(),
        data=st.data(),
    )
    def search(self, wording, judge, most, batches, forced, data) -> None:
        verdicts = data.draw(
            st.dictionaries(st.sampled_from(list(self.facts)), st.sampled_from(Verdict), max_size=4)
        )
        rejected = data.draw(st.frozensets(st.sampled_from(list(self.facts)), max_size=2))
        self.judge.plan(judge, verdicts, trusted=True, batches=batches)
        result = self.world.search(
            wording,
            question_id=self.asked[-1] if self.asked else None,
            judgements_max=most,
            forced=forced,
            rejected=rejected,
        )
        assert result.judged == len(self.judge.read) <= most
        assert len(self.judge.read) == len(set(self.judge.read))
        assert not rejected & {page.node.id for page in result.pages}
        assert not rejected & set(self.judge.read)

    @rule(
        wording=st.sampled_from(WORDINGS),
        how=st.sampled_from(["out", "unsure", "suggests"]),
        forced=st.booleans(),
    )
    def search_in_vain(self, wording: str, how: str, forced: bool) -> None:
        before = self.stored()
        self.judge.plan(
            "first",
            {},
            trusted=how != "suggests",
            batches=0 if how == "out" else 1000,
            default=Verdict.UNKNOWN if how == "unsure" else Verdict.NO,
        )
        self.world.search(wording, forced=forced, judgements_max=100, before_seq=self.top())
        assert self.stored() == before

    @rule(wording=st.sampled_from(WORDINGS), judge=st.sampled_from(JUDGES))
    def skips_only_what_was_answered(self, wording: str, judge: str) -> None:
        known = {
            node_id
            for (question, name, node_id), verdicts in self.judge.answered.items()
            if (question, name) == (cluster_of(wording), judge) and verdicts - {Verdict.UNKNOWN}
        }
        self.judge.plan(judge, {}, trusted=True)
        result = self.world.search(wording, judgements_max=1000, before_seq=self.top())
        assert result.complete
        vetoed = {node for question, node in self.vetoed if question == cluster_of(wording)}
        assert set(self.facts) - vetoed <= known | set(self.judge.read)

    @rule(wording=st.sampled_from(WORDINGS), data=st.data())
    def nothing_is_out_of_reach(self, wording: str, data) -> None:
        fact = data.draw(st.sampled_from(list(self.facts)))
        if (cluster_of(wording), fact) in self.vetoed:
            return
        self.judge.plan("first", {fact: Verdict.YES}, trusted=True)
        before = self.top()
        result = self.world.search(wording, judgements_max=1000, before_seq=before, forced=True)
        assert [page.node.id for page in result.pages] == [fact]

    @precondition(lambda self: self.asked)
    @rule(wording=st.sampled_from(WORDINGS), data=st.data())
    def cite(self, wording: str, data) -> None:
        fact = data.draw(st.sampled_from(list(self.facts)))
        self.world.recall(wording)
        self.world.engine.learn_cited(query=wording, question_id=self.asked[-1], target_id=fact)
        self.vetoed.discard((cluster_of(wording), fact))

    @rule(wording=st.sampled_from(WORDINGS), data=st.data())
    def refuse(self, wording: str, data) -> None:
        fact = data.draw(st.sampled_from(list(self.facts)))
        self.world.recall(wording)
        self.world.engine.learn_not_relevant(query=wording, memory_id=fact)
        self.vetoed.add((cluster_of(wording), fact))

    @rule()
    def reopen(self) -> None:
        self.world.reopen()

    @rule()
    def lose_the_pointers(self) -> None:
        before = dict(self.pointers.records())
        self.world.engine.close()
        shutil.rmtree(self.world.path / "pointers")
        self.world.engine = self.world._open()
        assert dict(self.pointers.records()) == before

    def top(self) -> int:
        """From here a search begins: it goes on with none."""
        return self.world.engine._stores.timeline.last_seq() + 2

    # -- what holds

    @invariant()
    def the_store_is_the_fold_of_the_log(self) -> None:
        assert dict(self.pointers.records()) == self.pointers.expected()

    @invariant()
    def nothing_outgrows_its_bound(self) -> None:
        for _, record in self.pointers.records():
            assert len(record.edges) <= LIMITS.edges_per_source
            assert len(record.sources) <= LIMITS.sources_per_target
            assert len(record.clusters) <= LIMITS.clusters_max
            assert len(record.fragments) <= LIMITS.fragments_max
            assert len(record.anchors) <= LIMITS.anchors_max
            assert len(record.books) <= LIMITS.judges_per_cluster
            for book in record.books.values():
                assert len(book.no) <= LIMITS.intervals_max
                assert len(book.yes) <= LIMITS.yes_max
                assert len(book.asked) <= LIMITS.yes_max
        clusters = sum(key.startswith("q:") for key, _ in self.pointers.records())
        assert clusters <= LIMITS.clusters_max

    @invariant()
    def deep_is_only_what_was_answered(self) -> None:
        answered = {
            self.facts[node_id]
            for (_, _, node_id), verdicts in self.judge.answered.items()
            if verdicts - {Verdict.UNKNOWN}
        }
        facts = set(self.facts.values())
        for span in self.world.engine.stains().spans:
            if span.depth is Depth.DEEP:
                seqs = set(range(span.first_seq, span.last_seq + 1))
                assert seqs & facts <= answered

    @invariant()
    def debts_lie_between_their_ends(self) -> None:
        ledger = self.world.engine.ledger()
        assert len(ledger.open) == self.world.engine.statistics().fragments
        for debt in ledger.open:
            assert 0 < debt.remaining <= debt.size == abs(debt.entry_seq - debt.target_seq) - 1


TestExact = ExactMachine.TestCase
TestExact.settings = SETTINGS


def _spans_everything(no, dead):
    seqs = [*no, *dead]
    return ((min(seqs), max(seqs)),) if no else ()


def _trusts_everyone(self, run, reply):
    judgement = _HEAR(self, run, reply)
    run.trusted = judgement is not None
    return judgement


_HEAR = Court._hear


def _skips_any_stain(self, stores, walk, run, floor):
    _SCAN(self, stores, walk, run, floor)
    clusters = stores.pointers.clusters()
    read = (reading_fold.answered(stores.pointers.cluster(c)) for c in clusters)
    self._known = intervals.united(*read)


_SCAN = PastScan.__init__

BUGS = {
    "an unknown in the middle is stained": ("memory.recall.exact_run._spans", _spans_everything),
    "stains hold for every question": (
        "memory.recall.past_scan.PastScan.__init__",
        _skips_any_stain,
    ),
    "intervals are not bounded": ("memory.storage.intervals.bounded", lambda found, _limit: found),
    "an untrusted judge teaches": ("memory.recall.exact_run.Court._hear", _trusts_everyone),
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
            run_state_machine_as_test(ExactMachine, settings=quiet)
    assert not isinstance(caught.value, KeyboardInterrupt | SystemExit)
