"""The idle worker: when it sleeps, what ends it, and that it never does what the user does not want."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from growbox_app.api import RestChanged
from growbox_app.assistant import GrowBox
from growbox_app.rest.schedule import RestPhase, RestReason, Seen, plan
from memory.rest_values import JournalFilter, JournalKind, RestOutcome
from tests.fakes.application import ask, run_application, scripted
from tests.fakes.clock import FakeClock
from tests.fakes.resting import QuietMachine, owe, trusted

NOW = Seen(now_s=1000.0, sleep_at_s=900.0, debts=3)
SETTINGS = {"models.prewarm": False, "memory.search_past": False}


@pytest.mark.parametrize(
    ("changes", "phase", "reason"),
    [
        ({}, RestPhase.SLEEPING, RestReason.DEBTS),
        ({"enabled": False}, RestPhase.AWAKE, RestReason.OFF),
        ({"foreground": True}, RestPhase.AWAKE, RestReason.FOREGROUND),
        ({"on_battery": True}, RestPhase.AWAKE, RestReason.POWER),
        ({"busy": True}, RestPhase.AWAKE, RestReason.BUSY),
        ({"ready": False}, RestPhase.AWAKE, RestReason.NO_MODEL),
        ({"trusted": False}, RestPhase.AWAKE, RestReason.SUGGESTS),
        ({"trusted": False, "goals_left": True}, RestPhase.LEARNING, RestReason.GOALS),
        ({"debts": 0}, RestPhase.AWAKE, RestReason.RESTED),
        ({"debts": 0, "fatigue": 0.5}, RestPhase.SLEEPING, RestReason.TIRED),
        ({"debts": 0, "fatigue": 0.49}, RestPhase.AWAKE, RestReason.RESTED),
        ({"debts": 0, "fatigue": 0.9, "slept_since_use": True}, RestPhase.AWAKE, RestReason.RESTED),
        ({"debts": 0, "goals_left": True}, RestPhase.LEARNING, RestReason.GOALS),
        ({"retry_at_s": 1200.0}, RestPhase.SLEEPING, RestReason.BACKING_OFF),
    ],
)
def test_what_comes_next(changes: dict[str, object], phase: RestPhase, reason: RestReason) -> None:
    coming = plan(replace(NOW, **changes))  # type: ignore[arg-type]
    assert (coming.phase, coming.reason) == (phase, reason)


def test_when_it_comes() -> None:
    assert plan(NOW).in_s == 0
    assert plan(replace(NOW, sleep_at_s=1240.0)).in_s == 240
    assert plan(replace(NOW, sleep_at_s=1240.0, retry_at_s=1300.0)).in_s == 300


def _make(folder: Path, clock: FakeClock, machine: QuietMachine) -> Callable[[], GrowBox]:
    return lambda: scripted(folder, clock=clock, machine=machine, calibration=trusted)


def _run(folder: Path, body: Callable[[GrowBox, FakeClock, QuietMachine], object]) -> None:
    clock, machine = FakeClock(), QuietMachine()

    async def whole(app: GrowBox) -> None:
        await app._engine.ready()
        await body(app, clock, machine)  # type: ignore[misc]

    run_application(_make(folder, clock, machine), whole, SETTINGS)


def test_it_sleeps_when_nobody_is_there_and_the_ledger_is_empty_afterwards(tmp_path: Path) -> None:
    async def body(app: GrowBox, clock: FakeClock, _machine: QuietMachine) -> None:
        assert await owe(app) == 1
        await _tick(app)
        status = app.rest.status()
        assert (status.phase, status.coming) == (RestPhase.AWAKE, RestPhase.SLEEPING)
        assert (status.reason, status.debts) == (RestReason.DEBTS, 1)
        assert 0 < status.in_s <= 480
        clock.advance(481)
        await _tick(app)
        assert (await app.mind.ledger()).open == ()
        entries = (await app.rest.journal(JournalFilter())).entries
        assert entries
        assert app.rest.status().news == (await app.rest.journal(JournalFilter())).unseen > 0
        await app.rest.mark_journal_seen()
        assert app.rest.status().news == 0

    _run(tmp_path, body)


def test_input_puts_it_off_and_power_forbids_it(tmp_path: Path) -> None:
    async def body(app: GrowBox, clock: FakeClock, machine: QuietMachine) -> None:
        await owe(app)
        clock.advance(470)
        app.rest.activity()
        clock.advance(20)
        await _tick(app)
        assert len((await app.mind.ledger()).open) == 1
        clock.advance(481)
        machine.battery = True
        await _tick(app)
        assert app.rest.status().reason is RestReason.POWER
        assert len((await app.mind.ledger()).open) == 1
        await app.change_setting("rest.on_battery", True)
        await _tick(app)
        assert (await app.mind.ledger()).open == ()

    _run(tmp_path, body)


def test_any_input_ends_a_sleep_that_nobody_asked_for(tmp_path: Path) -> None:
    async def body(app: GrowBox, clock: FakeClock, _machine: QuietMachine) -> None:
        await owe(app, notes=300)
        clock.advance(481)
        seen: list[RestPhase] = []

        def listen(event: object) -> None:
            if isinstance(event, RestChanged):
                seen.append(event.status.phase)
                if event.status.phase is RestPhase.SLEEPING and event.status.judged:
                    app.rest.activity()

        app.subscribe(listen)
        await _tick(app)
        assert RestPhase.SLEEPING in seen
        debts = (await app.mind.ledger()).open
        assert debts
        assert debts[0].remaining < 300  # what was answered stays paid
        assert app.rest.status().phase is RestPhase.AWAKE
        assert app.rest.status().in_s > 0

    _run(tmp_path, body)


def test_a_question_goes_before_a_sleep_that_the_user_asked_for(tmp_path: Path) -> None:
    async def body(app: GrowBox, _clock: FakeClock, _machine: QuietMachine) -> None:
        await owe(app, notes=40)
        begun = asyncio.Event()
        app.subscribe(lambda event: begun.set() if isinstance(event, RestChanged) else None)
        sleeping = asyncio.ensure_future(app.rest.sleep())  # noqa: TID251 - awaited below
        await begun.wait()
        app.rest.activity()  # the mouse moves: the user asked for it, so it goes on
        assert app.rest.status().asked
        finished = await ask(app, "hello there")
        assert finished.problem is None
        assert await sleeping is None
        report = await app.rest.sleep()
        assert report is not None
        assert report.outcome is RestOutcome.DONE
        assert (await app.mind.ledger()).open == ()

    _run(tmp_path, body)


def test_dream_pays_one_debt_and_everything_can_be_undone(tmp_path: Path) -> None:
    async def body(app: GrowBox, _clock: FakeClock, _machine: QuietMachine) -> None:
        await owe(app)
        debt = (await app.mind.ledger()).open[0]
        report = await app.rest.dream(debt.id)
        assert report is not None
        assert report.outcome is RestOutcome.DONE
        assert (await app.mind.ledger()).open == ()
        for entry in (await app.rest.journal(JournalFilter())).entries:
            assert await app.rest.undo(entry.id)
        assert [d.id for d in (await app.mind.ledger()).open] == [debt.id]
        assert (await app.mind.audit(fix=False)).findings == ()

    _run(tmp_path, body)


def test_off_is_off(tmp_path: Path) -> None:
    async def body(app: GrowBox, clock: FakeClock, _machine: QuietMachine) -> None:
        await owe(app)
        await app.change_setting("rest.enabled", False)
        clock.advance(10_000)
        await _tick(app)
        assert app.rest.status().reason is RestReason.OFF
        assert len((await app.mind.ledger()).open) == 1
        nap = await app.rest.nap()
        assert nap.blocks == 0
        assert len((await app.mind.ledger()).open) == 1

    _run(tmp_path, body)


def test_what_one_model_has_no_clear_answer_to_is_owed_to_another(tmp_path: Path) -> None:
    vague = replace(trusted("", "", ""), name="vague", yes=2.0, no=-1.0)
    now = [vague]
    clock, machine = FakeClock(), QuietMachine()

    async def body(app: GrowBox) -> None:
        await app._engine.ready()
        assert await owe(app) == 1
        clock.advance(481)
        await _tick(app)
        ledger = await app.mind.ledger()
        assert (ledger.open, ledger.unclear_notes) == ((), 12)
        status = app.rest.status()
        assert (status.debts, status.unclear) == (0, 1)
        await _tick(app)
        now[0] = trusted("", "", "")
        await _tick(app)
        assert (await app.mind.ledger()).unclear, "it is not asked all the time"
        clock.advance(601)
        await _tick(app)
        await _tick(app)
        ledger = await app.mind.ledger()
        assert (ledger.open, ledger.unclear, ledger.cleared) == ((), (), 1)
        entries = (await app.rest.journal(JournalFilter())).entries
        assert {JournalKind.PUT_ASIDE, JournalKind.REOPENED} <= {e.kind for e in entries}

    def make() -> GrowBox:
        return scripted(tmp_path, clock=clock, machine=machine, calibration=lambda *_words: now[0])

    run_application(make, body, SETTINGS)


async def _tick(app: GrowBox) -> None:
    """A look; where the worker's own was under way, that one ends first."""
    await app.rest.worker.tick()
    while app.rest.status().phase is not RestPhase.AWAKE:
        await asyncio.sleep(0)


def test_it_rests_when_its_goals_bring_nothing_new(tmp_path: Path) -> None:
    async def body(app: GrowBox, clock: FakeClock, _machine: QuietMachine) -> None:
        await owe(app)
        clock.advance(481)
        for _ in range(12):
            await _tick(app)
        entries = (await app.rest.journal(JournalFilter())).entries
        assert JournalKind.KNOWLEDGE in {e.kind for e in entries}, "a conclusion can be tested"
        assert app.rest.status().reason is RestReason.RESTED

    _run(tmp_path, body)
