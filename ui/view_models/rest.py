"""Rest in words: what runs, what comes next, why something cannot be begun, and how the last one ended."""

from __future__ import annotations

from dataclasses import dataclass

from growbox_app.rest import words
from growbox_app.rest.schedule import RestPhase, RestReason, RestStatus
from growbox_app.text import tr
from memory.rest_values import DreamReport, NapReport, RestOutcome, SleepReport
from ui.view_models import wording

_ALONE = {RestPhase.DREAMING: RestPhase.SLEEPING}
"""Nobody dreams alone but in sleep."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judge:
    """Whether a model is loaded, and whether its verdicts may teach."""

    ready: bool = True
    trusted: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class RestView:
    """What the panels show of rest. A hindrance is why a button cannot be pressed, empty when it can."""

    headline: str
    detail: str = ""
    ended: str = ""
    runs: bool = False
    judged: int = 0
    unread: int = 0
    dream_hindrance: str = ""
    sleep_hindrance: str = ""
    judge_hindrance: str = ""


def view(status: RestStatus, judge: Judge, *, paused: bool = False, ended: str = "") -> RestView:
    """The whole view of one moment."""
    runs = status.phase is not RestPhase.AWAKE
    unfit = judge_hindrance(judge)
    said = words.doing(status, tr) if runs else words.coming(status, tr, paused=paused)
    # The reason that stands in the headline already is not said once more.
    busy = tr("rest.running") if runs else ""
    owing = "" if status.debts else tr("rest.no_debts")
    return RestView(
        headline=said,
        detail=detail(status) if runs else "",
        ended="" if runs else ended,
        runs=runs,
        judged=status.judged,
        unread=status.remaining,
        dream_hindrance=busy or unfit or owing,
        sleep_hindrance=busy or unfit,
        judge_hindrance="" if status.reason is RestReason.NO_MODEL and not runs else unfit,
    )


def judge_hindrance(judge: Judge) -> str:
    """Why nothing can be read of the past now."""
    if not judge.ready:
        return tr("rest.no_model")
    return "" if judge.trusted else tr("rest.untrusted")


def detail(status: RestStatus) -> str:
    """`48 unread here · 3 debts · you asked for it`."""
    parts = []
    if status.remaining:
        parts.append(wording.counted("rest.left", status.remaining))
    if status.debts:
        parts.append(wording.counted("rest.debts", status.debts))
    if status.asked:
        parts.append(tr("rest.asked_by_you"))
    return " · ".join(parts)


def _facts(judged: int, found: int) -> list[str]:
    parts = [wording.counted("rest.read", judged)] if judged else []
    return [*parts, wording.counted("rest.found", found)] if found else parts


def _unclear(count: int) -> list[str]:
    return [wording.counted("rest.unclear", count)] if count else []


def _line(head: str, facts: list[str]) -> str:
    return f"{head} {' · '.join(facts)}".strip()


def dreamt(report: DreamReport) -> str:
    """How a visit to a debt ended."""
    facts = [*_facts(report.judged, len(report.discoveries)), *_unclear(report.unclear)]
    return _line(tr(f"rest.ended_dream_{report.outcome}"), facts)


def dreamt_all(report: DreamReport, paid: int) -> str:
    """How the visits to all debts ended; the report is that of the last one."""
    empty = report.outcome in (RestOutcome.EMPTY, RestOutcome.DONE)
    head = tr("rest.ended_all_empty" if empty else f"rest.ended_dream_{report.outcome}")
    return _line(head, [wording.counted("rest.paid", paid)] if paid > 0 else [])


def slept(report: SleepReport) -> str:
    """How a sleep ended."""
    facts = [wording.counted("rest.paid", report.cleared)] if report.cleared else []
    facts += [*_facts(report.judged, report.discoveries), *_unclear(report.unclear)]
    if report.rehearsals:
        facts.append(wording.counted("rest.rehearsed", report.rehearsals))
    if report.retry_after_s > 0:
        facts.append(tr("rest.retry", time=words.span(tr, report.retry_after_s)))
    return _line(tr(f"rest.ended_sleep_{report.outcome}"), facts)


def slept_alone(phase: RestPhase, paid: int) -> str:
    """What ended without that anybody had asked for it."""
    facts = [wording.counted("rest.paid", paid)] if paid > 0 else []
    return _line(tr(f"rest.ended_alone_{_ALONE.get(phase, phase)}"), facts)


def interrupted(status: RestStatus) -> str:
    """Why what was asked for has no report."""
    asked = status.reason is RestReason.FOREGROUND
    return tr("rest.ended_by_question" if asked else "rest.ended_by_input")


def napped(report: NapReport) -> str:
    """What a nap has cleared."""
    blocks, cached = wording.number(report.blocks), wording.number(report.cached)
    return tr("rest.ended_nap", blocks=blocks, cached=cached)
