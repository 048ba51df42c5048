"""The one place that says whether a call may run: allow, ask or deny, with a reason.

A pure function of the plan, the user's rules and what the disk says about the plan's paths; the text of a file, a page, a tool or a
memory is not among its arguments, so nothing written there can grant anything. Each thing a call would do becomes a *finding*; the
worst one that no mode or grant settles decides. Adding something to a call can therefore only make the judgement stricter, and a
denial is never among what a grant settles. Any thread; may walk a folder (see `disk.py`), so not on the window's.

The plan may grow old while the user is asked: judge again right before the run. A path that has become a link since is a denial.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from growbox_app.executors.base import Plan, Risk
from growbox_app.safety.disk import RememberingDisk
from growbox_app.safety.network import host_of, host_problem
from growbox_app.safety.places import Places, denied
from growbox_app.safety.shell import judge_command, judge_parts
from growbox_app.safety.values import (
    RANK,
    Decision,
    Finding,
    Grant,
    GrantKind,
    Mode,
    Part,
    PlannedCall,
    Rules,
    Verdict,
    worst,
)
from growbox_app.safety.windows import judge_windows_command


def decide(call: PlannedCall, rules: Rules) -> Decision:
    """Judges a planned call."""
    rules = replace(rules, disk=RememberingDisk(rules.disk))
    findings = tuple(_findings(call, rules))
    decision = _judged(findings, rules)
    changes = dict.fromkeys(
        Path(finding.covers[0].value) for finding in findings if finding.reason == "changes"
    )
    return replace(decision, changes=tuple(changes), parts=_parts(call.plan, decision, rules))


def _parts(plan: Plan, decision: Decision, rules: Rules) -> tuple[Part, ...]:
    """Only for a reader who is asked: the verdict comes from the whole."""
    places = Places(rules)
    cwd = str(plan.cwd) if plan.cwd else places.root
    asked = decision.verdict is Verdict.ASK and plan.command and cwd is not None
    if not asked or rules.platform == "win32":
        return ()
    assert cwd is not None
    return tuple(_part(text, findings) for text, findings in judge_parts(plan.command, cwd, rules))


def _part(text: str, findings: Sequence[Finding]) -> Part:
    if not findings:
        return Part(text=text, risk=Risk.SAFE, reason=Risk.SAFE.value)
    found = max(findings, key=lambda finding: (finding.denied, RANK[finding.risk]))
    return Part(text=text, risk=found.risk, reason=found.reason, details=found.details)


def _judged(findings: Sequence[Finding], rules: Rules) -> Decision:
    risk = worst(finding.risk for finding in findings)
    standing = [finding for finding in findings if not _settled(finding, rules)]
    if not standing:
        granted = risk in (Risk.IRREVERSIBLE, Risk.UNKNOWN) or (
            risk is Risk.REVERSIBLE and rules.mode is Mode.MANUAL
        )
        return Decision(
            verdict=Verdict.ALLOW, reason="granted" if granted else risk.value, risk=risk
        )
    decisive = max(standing, key=lambda finding: (finding.denied, RANK[finding.risk]))
    if rules.mode is Mode.READ_ONLY and not decisive.denied:
        return Decision(verdict=Verdict.DENY, reason="read_only_mode", risk=risk)
    return Decision(
        verdict=Verdict.DENY if decisive.denied else Verdict.ASK,
        reason=decisive.reason,
        risk=risk,
        details=decisive.details,
        path_grants=() if decisive.denied else _grants(standing, by_path=True),
        project_grants=() if decisive.denied else _grants(standing, by_path=False),
    )


def _grants(findings: Sequence[Finding], *, by_path: bool) -> tuple[Grant, ...]:
    """What would settle all findings at once; nothing when one of them cannot be settled so."""
    wanted: dict[Grant, None] = {}
    for finding in findings:
        covers = [g for g in finding.covers if (g.kind is GrantKind.PATH) is by_path]
        if not covers:
            return ()
        wanted[covers[0]] = None
    return tuple(wanted)


def _settled(finding: Finding, rules: Rules) -> bool:
    if finding.denied:
        return False
    if finding.risk is Risk.SAFE:
        return True
    if rules.mode is Mode.READ_ONLY:
        return False
    if rules.mode is Mode.AUTO and finding.risk is Risk.REVERSIBLE:
        return True
    return any(_granted(wanted, rules, exact=finding.exact) for wanted in finding.covers)


def _granted(wanted: Grant, rules: Rules, *, exact: bool) -> bool:
    if exact or wanted.kind is not GrantKind.PATH:
        return wanted in rules.grants
    places = Places(rules)
    return any(
        grant.kind is GrantKind.PATH and places.reaches(grant.value, wanted.value)
        for grant in rules.grants
    )


def _findings(call: PlannedCall, rules: Rules) -> Iterator[Finding]:
    """All that speaks against a call. The declared risk counts where nothing in the plan says as much."""
    by_executor = Grant(kind=GrantKind.EXECUTOR, value=call.executor)
    planned = tuple(_planned(call, rules, by_executor))
    yield from planned
    seen = worst(finding.risk for finding in planned)
    if not call.plan.command and RANK[call.risk] > RANK[seen]:
        yield Finding(
            reason="declared",
            risk=call.risk,
            covers=(by_executor,),
            details={"executor": call.executor},
        )


def _planned(call: PlannedCall, rules: Rules, by_executor: Grant) -> Iterator[Finding]:
    plan, places = call.plan, Places(rules)
    for path in map(str, plan.reads):
        yield from _swapped(places, path)
        yield from places.reads(path)
    for path in (str(change.path) for change in plan.changes):
        yield from _swapped(places, path)
        yield from places.writes(path, by_executor)
    for host in plan.hosts:
        yield from _judge_host(host, rules)
    if plan.command:
        judge = judge_windows_command if rules.platform == "win32" else judge_command
        yield from judge(plan.command, str(plan.cwd) if plan.cwd else places.root, rules)


def _swapped(places: Places, path: str) -> Iterator[Finding]:
    if places.swapped(path):
        yield denied("swapped", path)


def _judge_host(target: str, rules: Rules) -> Iterator[Finding]:
    if rules.offline:
        yield Finding(
            reason="offline", risk=Risk.IRREVERSIBLE, denied=True, details={"host": target}
        )
    problem = host_problem(target)
    if problem is not None:
        yield Finding(
            reason=f"host_{problem}",
            risk=Risk.IRREVERSIBLE,
            denied=True,
            details={"host": target},
        )
        return
    host = (host_of(target) or target).casefold().rstrip(".")
    yield Finding(
        reason="host",
        risk=Risk.IRREVERSIBLE,
        covers=(Grant(kind=GrantKind.HOST, value=host),),
        details={"host": host},
    )
