"""What the background does and what comes next, in words; both faces use it."""

from __future__ import annotations

from growbox_app.rest.schedule import RestPhase, RestReason, RestStatus
from growbox_app.text import Translator, tr
from memory.values import FatigueSnapshot, LedgerSnapshot

_DEBTS_SHOWN = 20
_QUESTION_CHARACTERS = 80
_SECONDS_MAX = 90
_MINUTES_MAX = 90


def counted(translate: Translator, key: str, count: int) -> str:
    """The sentence `<key>_one` or `<key>_many` with its number."""
    return translate(f"{key}_one" if count == 1 else f"{key}_many", count=f"{count:,}")


def span(translate: Translator, seconds: float) -> str:
    """A time to wait. Minutes are rounded up: what is said to begin in 4 minutes does not begin in 3."""
    whole = max(1, -int(-seconds // 1))
    if whole < _SECONDS_MAX:
        return translate("unit.seconds", count=whole)
    minutes = -(-whole // 60)
    if minutes < _MINUTES_MAX:
        return translate("unit.minutes", count=minutes)
    return translate("unit.hours", count=f"{whole / 3600:.1f}")


def coming(status: RestStatus, translate: Translator, *, paused: bool = False) -> str:
    """What happens next and when, or why nothing does."""
    if status.coming is RestPhase.AWAKE:
        off = paused and status.reason is RestReason.OFF
        return translate("rest.reason_paused" if off else f"rest.reason_{status.reason}")
    verb = "learns" if status.coming is RestPhase.LEARNING else "sleeps"
    key = f"rest.{verb}_in" if status.in_s > 0 else f"rest.{verb}_now"
    return translate(key, time=span(translate, status.in_s), why=_why(status, translate))


def _why(status: RestStatus, translate: Translator) -> str:
    match status.reason:
        case RestReason.TIRED:
            return translate("rest.tired", total=f"{status.fatigue:.2f}")
        case RestReason.BACKING_OFF:
            return translate("rest.backing_off")
        case _:
            return counted(translate, "rest.debts", status.debts)


def doing(status: RestStatus, translate: Translator) -> str:
    """`Dreaming · 12 notes read · 2 found`; empty while nothing runs."""
    if status.phase is RestPhase.AWAKE:
        return ""
    parts = [translate(f"rest.{status.phase}")]
    if status.judged:
        parts.append(counted(translate, "rest.read", status.judged))
    if status.discoveries:
        parts.append(counted(translate, "rest.found", status.discoveries))
    return " · ".join(parts)


def summary(
    status: RestStatus, ledger: LedgerSnapshot, fatigue: FatigueSnapshot, *, paused: bool
) -> list[str]:
    """Ledger, fatigue and what is next, a fact a line."""
    lines = [
        tr(
            "cli.rest.ledger",
            open=f"{len(ledger.open):,}",
            cleared=f"{ledger.cleared:,}",
            left=f"{ledger.remaining:,}",
        )
    ]
    for debt in ledger.open[:_DEBTS_SHOWN]:
        question = " ".join(debt.query.split())[:_QUESTION_CHARACTERS]
        left, size = f"{debt.remaining:,}", f"{debt.size:,}"
        lines.append(tr("cli.rest.debt", left=left, size=size, question=question))
    if len(ledger.open) > _DEBTS_SHOWN:
        lines.append(tr("cli.rest.more", count=f"{len(ledger.open) - _DEBTS_SHOWN:,}"))
    if ledger.unclear:
        lines.append(counted(tr, "cli.rest.unclear", ledger.unclear_notes))
    parts = {"total": fatigue.total, "miss": fatigue.miss, "eviction": fatigue.eviction}
    figures = {name: f"{value:.2f}" for name, value in (parts | {"debt": fatigue.debt}).items()}
    what = doing(status, tr) or coming(status, tr, paused=paused)
    return [*lines, tr("cli.rest.fatigue", **figures), tr("cli.rest.next", what=what)]
