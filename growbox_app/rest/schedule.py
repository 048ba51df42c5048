"""When the background sleeps, and why it does not: a pure decision from what is seen, and the status that faces show.

Source: design 4.6 "Idle worker"; seed items G30 to G32.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

TIRED = 0.5
"""From this fatigue on a sleep is worth its time without debts. Source: design 4.6."""


class RestPhase(StrEnum):
    """What the background mind does."""

    AWAKE = "awake"
    DREAMING = "dreaming"
    SLEEPING = "sleeping"
    LEARNING = "learning"


class RestReason(StrEnum):
    """Why nothing begins, or what does."""

    OFF = "off"
    """The user does not want it."""
    FOREGROUND = "foreground"
    """Somebody waits for the model."""
    POWER = "power"
    """On battery."""
    BUSY = "busy"
    """The machine works for somebody else."""
    NO_MODEL = "no_model"
    BACKING_OFF = "backing_off"
    """The last try failed."""
    SUGGESTS = "suggests"
    """The loaded model judges too badly to pay debts."""
    RESTED = "rested"
    """Nothing is owed and nothing is new."""
    DEBTS = "debts"
    TIRED = "tired"
    GOALS = "goals"


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """What the decision rests on. Seconds on the monotonic clock; `news` counts what happened since the last sleep or turn.

    `sleep_at_s` is when the last input was `sleep_after_s` ago; `retry_at_s` when a failed try may be repeated.
    """

    now_s: float
    sleep_at_s: float
    retry_at_s: float = 0.0
    enabled: bool = True
    foreground: bool = False
    on_battery: bool = False
    busy: bool = False
    ready: bool = True
    trusted: bool = True
    debts: int = 0
    fatigue: float = 0.0
    slept_since_use: bool = False
    goals_left: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RestPlan:
    """What begins, and when: `phase` AWAKE means that nothing does, and `reason` says why. `in_s` is 0 for now."""

    phase: RestPhase
    reason: RestReason
    in_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class RestStatus:
    """What the background mind does, or what comes next: `coming` in `in_s` seconds, because of `reason`.

    `judged`, `discoveries` and `remaining` are those of the visit that runs, `debts` (and those put aside as `unclear`) and `fatigue`
    of the last look, `news` the
    journal's entries that the user has not seen. `asked` tells that the user began what runs.
    """

    phase: RestPhase = RestPhase.AWAKE
    asked: bool = False
    coming: RestPhase = RestPhase.AWAKE
    reason: RestReason = RestReason.RESTED
    in_s: float = 0.0
    debts: int = 0
    unclear: int = 0
    fatigue: float = 0.0
    judged: int = 0
    discoveries: int = 0
    remaining: int = 0
    news: int = 0


def plan(seen: Seen) -> RestPlan:
    """What happens next if nothing else does."""
    hindrance = _hindrance(seen)
    if hindrance is not None:
        return RestPlan(phase=RestPhase.AWAKE, reason=hindrance)
    wanted = _wanted(seen)
    if wanted is None:
        return RestPlan(phase=RestPhase.AWAKE, reason=_idle_reason(seen))
    phase, reason = wanted
    at_s = max(seen.sleep_at_s, seen.retry_at_s)
    if seen.retry_at_s > max(seen.now_s, seen.sleep_at_s):
        reason = RestReason.BACKING_OFF
    return RestPlan(phase=phase, reason=reason, in_s=max(0.0, at_s - seen.now_s))


def _hindrance(seen: Seen) -> RestReason | None:
    hindrances = (
        (not seen.enabled, RestReason.OFF),
        (seen.foreground, RestReason.FOREGROUND),
        (not seen.ready, RestReason.NO_MODEL),
        (seen.on_battery, RestReason.POWER),
        (seen.busy, RestReason.BUSY),
    )
    return next((reason for holds, reason in hindrances if holds), None)


def _wanted(seen: Seen) -> tuple[RestPhase, RestReason] | None:
    """Sleep goes before the flywheel. A tired memory that has slept since it was last used gains nothing by more sleep."""
    if seen.trusted and seen.debts:
        return RestPhase.SLEEPING, RestReason.DEBTS
    if seen.trusted and seen.fatigue >= TIRED and not seen.slept_since_use:
        return RestPhase.SLEEPING, RestReason.TIRED
    if seen.goals_left:
        return RestPhase.LEARNING, RestReason.GOALS
    return None


def _idle_reason(seen: Seen) -> RestReason:
    return RestReason.SUGGESTS if seen.debts and not seen.trusted else RestReason.RESTED
