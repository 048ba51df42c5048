"""Sleep: dreams and rehearses in turn, until nothing is left, somebody wakes it, or its time is used up.

It always ends: a node is read twice at most, then its debt is paid or put aside, and only another judge opens it again – which is
looked for once, when a sleep begins. A judge who stays away ends it, with the time after which to try again, doubled with each
failure in a row; so does a pointer store that cannot be written. Source: design 4.6, G29, without the defect 1.12-7.
"""

from __future__ import annotations

from dataclasses import dataclass

from memory.events import RestProgress
from memory.requests import Operation
from memory.rest.dream import Dreamer
from memory.rest.rehearse import Rehearser
from memory.rest_values import Cause, DreamReport, RehearsalReport, RestOutcome, SleepReport
from memory.storage.stores import Stores

_FAILED = frozenset({RestOutcome.JUDGE_OUT, RestOutcome.SUGGESTS, RestOutcome.PARTLY})


@dataclass(slots=True)
class _Tally:
    """One sleep so far. `failures` are visits in a row without the judge."""

    started_s: float
    visits: int = 0
    rehearsals: int = 0
    judged: int = 0
    answered: int = 0
    discoveries: int = 0
    cleared: int = 0
    unclear: int = 0
    failures: int = 0
    rehearsed: bool = False
    outcome: RestOutcome | None = None


class Sleeper:
    """Sleeps. Failures in a row are remembered from sleep to sleep, not over a restart."""

    def __init__(self, stores: Stores, dreamer: Dreamer, rehearser: Rehearser) -> None:
        self._stores = stores
        self._config = stores.config.rest
        self._dreamer = dreamer
        self._rehearser = rehearser
        self._failed = 0
        self._woken = False

    def wake(self) -> None:
        """A running sleep ends before its next visit; one that begins later is not concerned."""
        self._woken = True

    def sleep(self, budget_s: float | None) -> Operation[SleepReport]:
        """One sleep."""
        self._woken = False
        self._dreamer.new_round()
        tally = _Tally(self._stores.clock.monotonic_s())
        budget = self._config.sleep_s if budget_s is None else budget_s
        yield from self._dreamer.reopen()
        while tally.outcome is None:
            if self._woken:
                tally.outcome = RestOutcome.WOKEN
            elif self._elapsed_s(tally) >= budget:
                tally.outcome = RestOutcome.BUDGET
            else:
                yield from self._step(tally)
        return self._report(tally, tally.outcome)

    def _step(self, tally: _Tally) -> Operation[None]:
        """A visit to a debt and a rehearsal; where no debt can be read, the end."""
        fragment = self._dreamer.next()
        if fragment is not None:
            report = yield from self._dreamer.visit()
            self._count_visit(tally, report)
        elif self._stores.pointers.ledger().fragments:
            tally.outcome = RestOutcome.PARTLY
        if tally.outcome is None and not self._woken:
            yield from self._rehearse(tally, resting=fragment is None)

    def _count_visit(self, tally: _Tally, report: DreamReport) -> None:
        tally.visits += 1
        tally.judged += report.judged
        tally.answered += report.answered
        tally.unclear += report.unclear
        tally.discoveries += len(report.discoveries)
        tally.cleared += report.outcome is RestOutcome.DONE
        self._count_failure(tally, report.outcome)

    def _count_failure(self, tally: _Tally, outcome: RestOutcome) -> None:
        if outcome is RestOutcome.SUGGESTS:
            tally.outcome = outcome
        elif outcome is RestOutcome.JUDGE_OUT:
            tally.failures += 1
            if tally.failures >= self._config.failures_max:
                tally.outcome = outcome
        else:
            tally.failures = 0

    def _rehearse(self, tally: _Tally, *, resting: bool) -> Operation[None]:
        """One rehearsal, as long as there is something new; without debts it decides when the sleep ends."""
        ended = tally.rehearsed or tally.rehearsals >= self._config.rehearsals_per_sleep
        if not ended:
            report = yield from self._rehearser.once()
            self._count_rehearsal(tally, report)
        elif resting and not self._stores.pointers.ledger().fragments:
            busy = tally.visits or tally.rehearsals
            tally.outcome = RestOutcome.DONE if busy else RestOutcome.EMPTY

    def _count_rehearsal(self, tally: _Tally, report: RehearsalReport) -> None:
        tally.rehearsed = report.outcome is RestOutcome.EMPTY
        self._count_failure(tally, report.outcome)
        if tally.rehearsed:
            return
        tally.rehearsals += 1
        tally.judged += report.judged
        tally.discoveries += len(report.found)
        self._stores.sink.emit(
            RestProgress(
                activity=Cause.REHEARSAL,
                judged=report.judged,
                discoveries=len(report.found),
                debts_open=len(self._stores.pointers.ledger().fragments),
            )
        )

    # --- its end

    def _elapsed_s(self, tally: _Tally) -> float:
        return self._stores.clock.monotonic_s() - tally.started_s

    def _report(self, tally: _Tally, outcome: RestOutcome) -> SleepReport:
        return SleepReport(
            outcome=outcome,
            visits=tally.visits,
            rehearsals=tally.rehearsals,
            judged=tally.judged,
            answered=tally.answered,
            discoveries=tally.discoveries,
            cleared=tally.cleared,
            unclear=tally.unclear,
            debts_open=len(self._stores.pointers.ledger().fragments),
            elapsed_s=self._elapsed_s(tally),
            retry_after_s=self._back_off(tally, outcome),
        )

    def _back_off(self, tally: _Tally, outcome: RestOutcome) -> float:
        """What was woken or ran out of time has not failed; a sleep that brought answers begins the row anew."""
        if outcome not in _FAILED:
            self._failed = 0 if tally.answered or outcome is RestOutcome.DONE else self._failed
            return 0.0
        self._failed = 1 if tally.answered else self._failed + 1
        doubled = self._config.retry_first_s * 2.0 ** min(self._failed - 1, 32)
        return min(self._config.retry_max_s, doubled)
