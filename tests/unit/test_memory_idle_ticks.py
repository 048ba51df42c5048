"""Ten thousand idle ticks on a fake clock, with a judge that fails three times in ten: nothing grows without bound."""

from __future__ import annotations

import gc
from dataclasses import replace
from random import Random

import pytest

from memory.config import StorageConfig
from memory.events import Event
from memory.requests import Judgement, NeedVerdicts, Verdict
from memory.rest_values import Experience, ExperienceSource
from memory.values import Depth, NodeId
from tests.fakes.judge import ScriptedJudge
from tests.fakes.memory_world import NO_HOST, MemoryWorld

REST = replace(NO_HOST.rest, retry_max_s=2_400.0)
TICKS, SETTLED, TICK_S = 10_000, 4_000, 30.0


class FailingJudge(ScriptedJudge):
    """Out, or unsure of a text, three times in ten; of a few texts it is never sure."""

    def __init__(self) -> None:
        super().__init__()
        self.chance = Random(3)
        self.answered: set[NodeId] = set()

    def __call__(self, request: NeedVerdicts) -> Judgement | None:
        if self.chance.random() < 0.3:
            return None
        judgement = super().__call__(request)
        if judgement is not None:
            for (node_id, _), verdict in zip(request.candidates, judgement.verdicts, strict=True):
                if verdict is not Verdict.UNKNOWN:
                    self.answered.add(node_id)
        return judgement

    def verdict(self, text: str) -> Verdict:
        return Verdict.UNKNOWN if self.chance.random() < 0.3 else super().verdict(text)


class Host:
    """Sleeps when the back-off allows it, as the idle worker does, and turns the flywheel."""

    def __init__(self, world: MemoryWorld) -> None:
        self.world = world
        self.next_s = 0.0
        self.sleeps = 0

    def tick(self) -> None:
        self.world.clock.advance(TICK_S)
        if self.world.clock.monotonic_s() < self.next_s:
            return
        report = self.world.rest(self.world.engine.sleep())
        self.world.rest(self.world.engine.flywheel())
        self.world.engine.fatigue()
        self.sleeps += 1
        wait_s = max(480.0, report.retry_after_s)
        self.next_s = self.world.clock.monotonic_s() + wait_s


def forget(_event: Event) -> None:
    """A sink that keeps nothing: what grows is the engine's own."""


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_ten_thousand_idle_ticks_leave_nothing_that_grows(tmp_path):
    world = MemoryWorld(
        tmp_path / "m", replace(NO_HOST, storage=StorageConfig(cache_kib=512), rest=REST)
    )
    debts = [world.owe(f"where is the {w} {w}house?", notes=24) for w in ("zebra", "okapi", "lynx")]
    gaps = {seq for d in debts for seq in range(d.first_seq, d.last_seq + 1)}
    texts = {seq: world.engine.node_at(seq).content for seq in gaps}
    for n in range(5):
        world.engine.record_experience(
            Experience(
                source=ExperienceSource.EXECUTOR,
                operation="shell",
                context=f"cargo build release {n}",
                outcome="exit 0",
                success=True,
            )
        )
    judge = FailingJudge()
    judge.unknown = {"n7x", "n23x"}
    judge.yes = {"n20x"}
    world.judge = judge
    world.events.emit = forget
    host = Host(world)
    for _ in range(SETTLED):
        host.tick()
    settled, objects = sizes(world), held_objects()
    for _ in range(TICKS - SETTLED):
        host.tick()
    assert sizes(world) == settled
    assert held_objects() - objects < 1_000
    assert host.sleeps > 100
    ledger = world.engine.ledger()
    assert ledger.open == (), "what the judge is never sure of is owed no more"
    assert all(d.remaining >= 2 for d in ledger.unclear)
    assert ledger.unclear_notes < 24
    deep = {
        seq
        for s in world.engine.stains().spans
        if s.depth is Depth.DEEP
        for seq in range(s.first_seq, s.last_seq + 1)
    }
    assert {world.engine.node_at(seq).id for seq in deep & gaps} <= judge.answered
    assert not any("n7x" in texts[seq] or "n23x" in texts[seq] for seq in deep & gaps)
    records = dict(world.engine._stores.pointers.records())
    assert not [key for key in records if key.startswith("v:")]
    assert world.engine.audit(fix=False, full=True).findings == ()
    world.engine.close()


def sizes(world: MemoryWorld) -> dict[str, int]:
    """Rows of every table, and of the pointer store."""
    database = world.engine._stores.database
    tables = [
        r[0]
        for r in database.rows("SELECT name FROM sqlite_master WHERE type = 'table'")
        if not r[0].startswith(("lexical", "sqlite"))
    ]
    rows = {t: database.number(f"SELECT count(*) FROM {t}") for t in tables}
    rows.pop("fatigue_history")  # bounded by a day
    return rows | {"pointers": sum(1 for _ in world.engine._stores.pointers.records())}


def held_objects() -> int:
    gc.collect()
    return len(gc.get_objects())
