"""Rest and its journal in words: each reason, each ending, each kind of change, in both languages."""

from __future__ import annotations

from dataclasses import replace

import pytest

from growbox_app.api import UsedMemory
from growbox_app.models.catalogue import catalogue
from growbox_app.rest import words
from growbox_app.rest.schedule import RestPhase, RestReason, RestStatus
from growbox_app.text import tr
from memory.rest_values import (
    BACKGROUND,
    Cause,
    DreamReport,
    JournalKind,
    JournalNode,
    NapReport,
    RestOutcome,
    SleepReport,
)
from memory.values import DebtState, Fragment, LedgerSnapshot, NodeId, NodeKind, Way
from tests.fakes.assistant import START_MS
from tests.gui.rest_past import DAY_MS, entry
from ui.view_models import journal, ledger, rest, wording
from ui.view_models.rest import Judge

SLEEPS = RestStatus(coming=RestPhase.SLEEPING, reason=RestReason.DEBTS, in_s=221.0, debts=12)
RUNS = RestStatus(phase=RestPhase.DREAMING, judged=12, discoveries=2, remaining=48, debts=3)
NOTE = JournalNode(seq=7, title="# the heron", node_id=NodeId("n7"))


@pytest.fixture(autouse=True)
def _english() -> None:
    tr.use("en")


@pytest.mark.parametrize(
    ("status", "english", "chinese"),
    [
        (SLEEPS, "Sleeps in 4 min: 12 debts", "4 分钟后睡眠：还有 12 个未读碎片"),
        (replace(SLEEPS, debts=1, in_s=12.2), "Sleeps in 13 s: 1 debt", None),
        (replace(SLEEPS, in_s=0.0), "About to sleep: 12 debts", None),
        (replace(SLEEPS, in_s=7200.0), "Sleeps in 2.0 h: 12 debts", None),
        (
            replace(SLEEPS, reason=RestReason.TIRED, fatigue=0.611, in_s=240.0),
            "Sleeps in 4 min: fatigue 0.61",
            "4 分钟后睡眠：疲劳度 0.61",
        ),
        (
            replace(SLEEPS, reason=RestReason.BACKING_OFF, in_s=120.0),
            "Sleeps in 2 min: the last try failed",
            None,
        ),
        (
            replace(SLEEPS, coming=RestPhase.LEARNING, reason=RestReason.GOALS),
            "Works on its goals in 4 min",
            "4 分钟后处理长期目标",
        ),
        (
            RestStatus(reason=RestReason.RESTED),
            "Rested: nothing is owed and nothing is new",
            "休息好了：没有未读碎片，也没有新内容",
        ),
        (RestStatus(reason=RestReason.POWER), "On battery: no sleep", "使用电池：不睡眠"),
        (
            RestStatus(reason=RestReason.SUGGESTS),
            "This model judges too badly to pay debts. Choose another one.",
            None,
        ),
    ],
)
def test_what_comes_next_is_one_sentence(
    status: RestStatus, english: str, chinese: str | None
) -> None:
    assert words.coming(status, tr) == english
    if chinese is not None:
        tr.use("zh")
        assert words.coming(status, tr) == chinese


def test_a_paused_memory_is_not_called_a_setting_of_sleep() -> None:
    off = RestStatus(reason=RestReason.OFF)
    assert "switched off" in words.coming(off, tr)
    assert "paused" in words.coming(off, tr, paused=True)
    assert words.coming(SLEEPS, tr, paused=True) == words.coming(SLEEPS, tr)


def test_what_runs_is_said_with_its_figures() -> None:
    assert words.doing(RestStatus(), tr) == ""
    assert words.doing(RUNS, tr) == "Dreaming · 12 notes read · 2 found"
    assert words.doing(RestStatus(phase=RestPhase.LEARNING), tr) == "Working on its goals"
    assert rest.detail(replace(RUNS, asked=True)) == "48 unread here · 3 debts · you asked for it"
    assert wording.background(None, "Dreaming") == "Dreaming"
    assert wording.background(None) == "Background: idle"


def test_a_view_says_why_something_cannot_begin() -> None:
    free = rest.view(SLEEPS, Judge())
    assert (free.dream_hindrance, free.sleep_hindrance) == ("", "")
    nothing = rest.view(RestStatus(), Judge())
    assert (nothing.dream_hindrance, nothing.sleep_hindrance) == ("No debt is open.", "")
    for judge, wanted in (
        (Judge(ready=False), "Needs a model; none is loaded."),
        (Judge(trusted=False), tr("rest.untrusted")),
    ):
        view = rest.view(SLEEPS, judge)
        assert view.dream_hindrance == view.sleep_hindrance == wanted
    running = rest.view(RUNS, Judge(), ended="14:02 · Woken.")
    assert (running.runs, running.judged, running.unread) == (True, 12, 48)
    assert running.dream_hindrance == "Something runs already."
    assert running.ended == ""
    assert rest.view(SLEEPS, Judge(), ended="14:02 · Woken.").ended == "14:02 · Woken."


def test_endings_say_what_came_of_it() -> None:
    dream = DreamReport(outcome=RestOutcome.PARTLY, judged=12, discoveries=(NodeId("a"),))
    assert rest.dreamt(dream).endswith("waits its turn. 12 notes read · 1 found")
    empty = DreamReport(outcome=RestOutcome.EMPTY)
    assert rest.dreamt_all(empty, 3) == "No debt is left. 3 debts paid"
    assert rest.dreamt_all(replace(empty, outcome=RestOutcome.JUDGE_OUT), 0).startswith("The model")
    vague = DreamReport(outcome=RestOutcome.UNSURE, judged=4, unclear=2)
    assert rest.dreamt(vague).endswith("put aside. 4 notes read · 2 notes without a clear answer")
    over = SleepReport(outcome=RestOutcome.DONE, cleared=1, judged=9, unclear=1)
    assert rest.slept(over) == (
        "Slept until nothing was left to do. 1 debt paid · 9 notes read · 1 note without a clear answer"
    )
    sleep = SleepReport(
        outcome=RestOutcome.JUDGE_OUT, cleared=2, judged=1, rehearsals=1, retry_after_s=61.0
    )
    assert rest.slept(sleep) == (
        "Sleep ended: the model did not answer. 2 debts paid · 1 note read · 1 question rehearsed"
        " · Tries again in 61 s."
    )
    assert rest.slept_alone(RestPhase.SLEEPING, 2) == "Slept by itself. 2 debts paid"
    assert rest.slept_alone(RestPhase.LEARNING, 0) == "Worked on its goals."
    asked = RestStatus(reason=RestReason.FOREGROUND)
    assert rest.interrupted(asked) == "Woken by your question."
    assert rest.interrupted(SLEEPS) == "Woken."
    napped = rest.napped(NapReport(blocks=3, cached=1_400))
    assert napped == "Napped: 3 blocks left the region, 1,400 cached results cleared."


# -- the ledger -----------------------------------------------------------------------------------
def test_a_debt_without_an_answer_says_so_first() -> None:
    waiting = Fragment(entry_seq=9, target_seq=5, query="q", created_at_ms=START_MS, remaining=3)
    unsure = replace(waiting, remaining=2, state=DebtState.UNSURE)
    snapshot = LedgerSnapshot(open=(waiting,), cleared=0, nodes=0, unclear=(unsure,))
    shown = ledger.debts(snapshot, {})
    assert ledger.beyond(snapshot) == "2 notes were read without a clear answer."
    assert ledger.beyond(replace(snapshot, unclear=())) == ""
    assert ledger.facts(shown[0], START_MS).startswith("5 – 9 · 3 of 3 notes unread")
    assert ledger.describe(shown[0], START_MS).endswith("not begun")
    assert ledger.facts(shown[1], START_MS).startswith("read: 2 of 3 unclear · 5 – 9")
    assert ledger.describe(shown[1], START_MS).endswith("read, no clear answer")


# -- the journal ----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "what", "about"),
    [
        ({}, "Read 5 notes: nothing found", "Dream · question 1"),
        ({"yes": (NOTE,)}, "Read 6 notes: 1 find", "Dream · question 1"),
        (
            {"kind": JournalKind.DEBT_CLEARED, "undone": True},
            "Paid a debt. Read 5 notes: nothing found",
            "undone · Dream · question 1",
        ),
        (
            {"kind": JournalKind.PUT_ASIDE, "no_count": 0, "unclear_count": 2},
            "Read a debt to its end: 2 notes without a clear answer",
            "Dream · question 1",
        ),
        (
            {"kind": JournalKind.REOPENED, "no_count": 0},
            "Opened a debt again: another model judges now",
            "Dream · question 1",
        ),
        (
            {"kind": JournalKind.REHEARSED, "cause": Cause.REHEARSAL, "yes": (NOTE, NOTE)},
            "Rehearsed a question: 2 finds",
            "Rehearsal · question 1",
        ),
        (
            {"kind": JournalKind.POINTED, "cause": Cause.USER, "yes": (NOTE,), "no_count": 0},
            "You used or cited 1 note",
            "You · question 1",
        ),
        (
            {"kind": JournalKind.REFUSED, "cause": Cause.USER, "no_count": 1},
            "You refused 1 note",
            "You · question 1",
        ),
        (
            {
                "kind": JournalKind.KNOWLEDGE,
                "cause": Cause.FLYWHEEL,
                "record": "a\nb",
                "question": "",
            },
            "Concluded: a b",
            "Learning",
        ),
    ],
)
def test_a_change_is_a_sentence(fields: dict[str, object], what: str, about: str) -> None:
    made = entry(1, **fields)  # type: ignore[arg-type]
    assert (journal.what(made), journal.about(made)) == (what, about)


def test_a_change_says_how_it_was_and_is() -> None:
    found = entry(1, yes=(NOTE,), sources=(NOTE,), kind=JournalKind.DEBT_CLEARED)
    before, after = journal.before_and_after(found)
    assert before == "Questions like this did not lead to these notes."
    assert after == "Questions like this lead to them from 1 note. The debt is paid."
    undone = journal.before_and_after(replace(found, undone=True))
    assert undone == (before, "Undone: it is as before again.")
    assert "not read again" in journal.before_and_after(entry(2))[1]
    aside = entry(3, kind=JournalKind.PUT_ASIDE, no_count=0, unclear_count=2)
    before, after = journal.before_and_after(aside)
    assert before.startswith("The debt is owed")
    assert "a search reads these notes as before" in after
    again = journal.before_and_after(replace(aside, kind=JournalKind.REOPENED))
    assert again == (after, before)
    learned = replace(found, kind=JournalKind.KNOWLEDGE)
    assert "recalled like others" in journal.before_and_after(learned)[1]


def test_the_parts_of_a_change_lead_to_its_notes() -> None:
    gone = replace(NOTE, node_id=None)
    made = entry(1, yes=(NOTE,), no=(gone,), no_count=10, unclear=(NOTE,), unclear_count=1)
    parts = {part.heading: part for part in journal.parts(made)}
    assert parts["Found"].notes == (("the heron", NodeId("n7")),)
    assert parts["Read, not relevant"].notes == (("the heron (not there any more)", None),)
    assert parts["Read, no clear answer"].notes == parts["Found"].notes
    assert parts["Read, not relevant"].text == "and 9 more"
    assert "Pointers start at" not in parts


def test_a_judge_is_named_by_its_model() -> None:
    model = catalogue()[0]
    assert journal.judge_name(f"{model.sha256[:16]}-en-e5992880-1b2c3d4e") == model.name
    assert journal.judge_name("scripted-zh-e5992880-scripted t1 h1") == "scripted"
    assert journal.judge_name("plain") == "plain"


def test_days_have_names_near_by() -> None:
    names = [journal.day_name(START_MS - days * DAY_MS, START_MS) for days in (0, 1, 2)]
    assert names[:2] == ["Today", "Yesterday"]
    assert names[2] == wording.day(START_MS - 2 * DAY_MS, START_MS)


def test_each_filter_asks_for_its_causes() -> None:
    assert journal.wanted("all", " x ", 7).causes == BACKGROUND
    assert (journal.wanted("all", " x ", 7).text, journal.wanted("all", "x", 7).before_id) == (
        "x",
        7,
    )
    assert journal.wanted("finds", "").finds_only
    assert journal.wanted("own", "").causes == {Cause.USER, Cause.SEARCH}
    assert {journal.wanted(at, "").limit for at in journal.FILTERS} == {journal.PAGE}


# -- conclusions in an answer ---------------------------------------------------------------------
def test_a_conclusion_is_called_one_where_it_was_used() -> None:
    plain = UsedMemory(
        node_id=NodeId("a"),
        way=Way.RAG,
        score=0.5,
        similarity=None,
        lexical=None,
        reason="gate",
        title="t",
        excerpt="e",
        created_at_ms=START_MS,
        conversation_id=None,
    )
    concluded, skill = (replace(plain, kind=kind) for kind in (NodeKind.KNOWLEDGE, NodeKind.SKILL))
    line = wording.memories_line((plain, concluded, skill))
    assert line.startswith("used 3 memories · 1 conclusion · 1 skill · ")
    assert wording.memory_figures(concluded).startswith("conclusion · ")
    assert wording.memory_figures(skill).startswith("skill · ")
    assert "conclusion" not in wording.memories_line((plain,)) + wording.memory_figures(plain)
