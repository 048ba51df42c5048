"""SIGKILL at 18 random moments of a sleep with a scripted judge, and at two with the light model: it goes on where it was, nothing is lost, nothing that was durable is paid twice."""

from __future__ import annotations

import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from memory.rest_values import Cause, JournalFilter, RestOutcome
from tests.crash.rest_child import key
from tests.fakes.driver import drive
from tests.fakes.memory_world import MemoryWorld

ROOT = Path(__file__).resolve().parents[2]
KILLS, DEBTS, NOTES = 18, 12, 90
ANIMALS = [
    "zebra",
    "quagga",
    "okapi",
    "gazelle",
    "ibis",
    "lynx",
    "otter",
    "panda",
    "koala",
    "quokka",
    "wombat",
    "tapir",
]


def start(folder: Path, seed: int, judge: str) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "tests.crash.rest_child", str(folder), str(seed), judge]
    return subprocess.Popen(arguments, cwd=ROOT, stdout=subprocess.PIPE, text=True)


def killed(process: subprocess.Popen[str], batches: int, seconds: float) -> list[list[str]]:
    """Kills it so long after so many batches; returns all that it had said."""
    assert process.stdout is not None
    lines = [process.stdout.readline().split()]
    while lines[-1][0] != "done" and sum(line[0] == "paid" for line in lines) < batches:
        lines.append(process.stdout.readline().split())
    threading.Event().wait(seconds)
    process.kill()
    process.wait(30)
    lines += [line.split() for line in process.stdout if line.endswith("\n")]
    process.stdout.close()
    assert lines[0] == ["open"]
    return lines


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_sleep_goes_on_without_loss_or_double_payment(tmp_path):
    paid = kill_often(tmp_path / "m", "scripted", kills=KILLS, batches_max=8, seconds_max=0.05)
    assert len(paid) > 8 * KILLS


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.model
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_sleep_of_the_real_judge_that_is_killed_goes_on_too(tmp_path):
    paid = kill_often(tmp_path / "m", "model", kills=2, batches_max=4, seconds_max=0.5)
    assert paid


def kill_often(
    folder: Path, judge_kind: str, *, kills: int, batches_max: int, seconds_max: float
) -> list[tuple[str, str]]:
    """Kills a sleep that often, lets another one end by itself, and looks what was paid; returns what the killed ones had paid."""
    world = MemoryWorld(folder)
    owed = set()
    for animal in ANIMALS[:DEBTS]:
        debt = world.owe(f"where is the {animal} {animal}house?", notes=NOTES)
        owed |= {(key(debt.query), node.id) for node in world.notes}
    world.engine.close()
    chance = random.Random(11)
    paid: list[tuple[str, str]] = []
    for number in range(kills):
        process = start(folder, number, judge_kind)
        lines = killed(process, 1 + chance.randrange(batches_max), chance.uniform(0, seconds_max))
        for kind, *words in lines[1:]:
            if kind == "paid":
                paid += [(words[0], node_id) for node_id in words[1:]]
    assert len(paid) == len(set(paid)), "paid twice"
    world = MemoryWorld(folder)
    world.judge.yes = {"n3x", "n77x"}
    try:
        assert world.engine.audit(fix=False, full=True).findings == ()
        last: list[tuple[str, str]] = []

        def judge(request):
            last.extend((key(request.query), node_id) for node_id, _ in request.candidates)
            return world.judge(request)

        report = drive(world.engine.sleep(), world.embedder, judge)
        assert report.outcome in (RestOutcome.DONE, RestOutcome.EMPTY)
        assert world.engine.ledger().open == ()
        assert not set(last) & set(paid), "paid twice"
        in_journal = answered(world)
        assert owed <= in_journal
        assert set(paid) <= in_journal
        assert world.engine.audit(fix=False, full=True).findings == ()
        return paid
    finally:
        world.engine.close()


def answered(world: MemoryWorld) -> set[tuple[str, str]]:
    """What dreams have answered, by question, each once."""
    page = world.engine.journal(JournalFilter(limit=10_000, nodes_max=100))
    entries = [e for e in page.entries if e.cause is Cause.DREAM]
    found = [(key(e.question), node.node_id) for e in entries for node in (*e.no, *e.yes)]
    assert len(found) == len(set(found)), "two entries for one payment"
    return set(found)
