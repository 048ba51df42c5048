"""`growbox rest`: ledger, fatigue and what comes next, in words."""

from __future__ import annotations

import pytest

from growbox_app import cli
from growbox_app.rest import words
from growbox_app.rest.schedule import RestPhase, RestReason, RestStatus
from growbox_app.text import tr
from memory.values import FatigueSnapshot, Fragment, LedgerSnapshot

FATIGUE = FatigueSnapshot(total=0.41, miss=0.5, eviction=0.25, debt=0.4, accesses=9)
NEXT = RestStatus(coming=RestPhase.SLEEPING, reason=RestReason.DEBTS, in_s=240.0, debts=23)


def debts(count: int) -> tuple[Fragment, ...]:
    return tuple(
        Fragment(entry_seq=at + 9, target_seq=at, query=f"q\n{at}", created_at_ms=0, remaining=8)
        for at in range(count)
    )


def test_the_summary_says_what_is_owed_and_what_comes() -> None:
    tr.use("en")
    ledger = LedgerSnapshot(open=debts(23), cleared=2, nodes=99)
    lines = words.summary(NEXT, ledger, FATIGUE, paused=False)
    assert lines[0] == "Fragment ledger: 23 open, 2 cleared, 184 notes unread."
    assert lines[1] == "  8 of 8 unread · q 0"
    assert lines[-3:] == [
        "  and 3 more",
        "Fatigue: 0.41 (misses 0.50, evictions 0.25, debts 0.40)",
        "Next: Sleeps in 4 min: 23 debts",
    ]
    assert len(lines) == 1 + 20 + 3
    vague = LedgerSnapshot(open=(), cleared=2, nodes=99, unclear=debts(2))
    lines = words.summary(NEXT, vague, FATIGUE, paused=False)
    assert lines[1] == "16 notes were read without a clear answer."


def test_what_runs_is_said_instead() -> None:
    tr.use("zh")
    ledger = LedgerSnapshot(open=(), cleared=0, nodes=0)
    status = RestStatus(phase=RestPhase.SLEEPING, judged=3)
    assert (
        words.summary(status, ledger, FATIGUE, paused=False)[-1] == "接下来：正在睡眠 · 读了 3 条"
    )
    tr.use("en")


def test_the_command_says_it_of_an_empty_memory(capsys: pytest.CaptureFixture[str]) -> None:
    tr.use("en")
    assert cli.main(["rest"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "Fragment ledger: 0 open, 0 cleared, 0 notes unread."
    assert lines[-1].startswith("Next: ")
