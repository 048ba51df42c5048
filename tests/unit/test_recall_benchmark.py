"""The parts of the recall benchmark that choose and count, without its data."""

from __future__ import annotations

from memory.requests import NeedVerdicts, Verdict
from memory.values import NodeId
from tests.benchmarks.recall_data import Question
from tests.benchmarks.recall_gate import Gated, auc, gate_figures
from tests.benchmarks.recall_learning import Asked, mixed, paraphrases
from tests.benchmarks.recall_learning_world import GoldJudge


def asked(text: str) -> Asked:
    return Asked(world="w", text=text, question=Question(text=text, gold=frozenset({"1:1"})))


def test_one_question_more_or_less_moves_no_other():
    rows = [asked(f"question {n}") for n in range(30)]
    order = mixed(rows)
    assert order != rows
    assert mixed(rows[::-1]) == order
    assert mixed(rows[1:]) == [row for row in order if row is not rows[0]]


def test_the_paraphrases_are_questions_of_their_own():
    found = paraphrases()
    assert all(len(key) == 16 and int(key, 16) >= 0 for key in found)
    assert len(set(found.values())) == len(found)


def test_the_gold_judge_knows_the_evidence_and_counts():
    judge = GoldJudge()
    request = NeedVerdicts(query="q", candidates=((NodeId("a"), "x"), (NodeId("b"), "y")))
    reply = judge(request, frozenset({NodeId("b")}))
    assert reply.verdicts == (Verdict.NO, Verdict.YES)
    assert judge.spent.passes == 2


def test_auc_is_the_chance_that_a_right_row_has_more():
    assert auc([(0.9, True), (0.1, False)]) == 1.0
    assert auc([(0.1, True), (0.9, False)]) == 0.0
    assert auc([(0.5, True), (0.5, False), (0.9, True)]) == 0.75


def test_gate_figures_tell_missed_from_shown():
    def row(certainty: float, *, shown: bool) -> Gated:
        return Gated(certainty=certainty, best_score=1.0, passed=certainty >= 0.5, shown=shown)

    rows = [
        row(0.2, shown=False),
        row(0.8, shown=False),
        row(0.9, shown=True),
        row(0.4, shown=True),
    ]
    assert gate_figures("x", rows) == {
        "x_gate_auc": 0.75,
        "x_gate_auc_score": 0.5,
        "x_gate_falls_missed": 0.5,
        "x_gate_falls_shown": 0.5,
    }
    assert gate_figures("x", rows[2:]) == {}
