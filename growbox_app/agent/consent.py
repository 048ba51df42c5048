"""What an approval shows of a plan, and what the user's answer makes of the plan. Pure, but for the time that comparing takes.

The user may leave hunks of a change out, write something else in their place, or give another command. The model is told what
was really done, for it would else go on from what it had wished.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from growbox_app.approval_face import ApprovalAnswer, CommandPart
from growbox_app.executors.base import FileChange, Plan, Workspace
from growbox_app.executors.paths import shown
from growbox_app.hunks import DiffHunk, apply, editable, hunks_of, unified
from growbox_app.safety.values import RANK, Decision, Verdict

DONE_CHARACTERS_MAX = 1_500
EDITED_COMMAND = "The user changed the command. What was run: {command}"
EDITED_CHANGE = "The user changed this before it was done. What was really done:\n{diff}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Taken:
    """A plan as the user wants it. `told` is for the model: empty when it is what it wished. `is_nothing`: no change is left."""

    plan: Plan
    told: str = ""
    is_nothing: bool = False


def hunks_for(changes: tuple[FileChange, ...]) -> tuple[DiffHunk, ...]:
    """All hunks of a plan, numbered through."""
    found: list[DiffHunk] = []
    for change in changes:
        may_edit = editable(change)
        for hunk in hunks_of(change):
            found.append(
                DiffHunk(
                    index=len(found),
                    path=str(change.path),
                    header=hunk.header,
                    lines=hunk.lines,
                    editable=may_edit and bool(hunk.lines),
                )
            )
    return tuple(found)


def parts_for(decision: Decision) -> tuple[CommandPart, ...]:
    """The commands of a command line, as a face shows them."""
    return tuple(
        CommandPart(text=part.text, risk=part.risk.value, reason=part.reason, details=part.details)
        for part in decision.parts
    )


def taken(plan: Plan, answer: ApprovalAnswer, workspace: Workspace) -> Taken:
    """The changes of a plan as the answer wants them."""
    if answer.hunks is None and not answer.texts:
        return Taken(plan=plan)
    changes = _narrowed(plan.changes, answer.hunks, answer.texts)
    diff = "".join(unified(change, shown(change.path, workspace)) for change in changes)
    if len(diff) > DONE_CHARACTERS_MAX:
        diff = diff[:DONE_CHARACTERS_MAX] + "…\n"
    return Taken(
        plan=replace(plan, changes=changes),
        told=EDITED_CHANGE.format(diff=diff.rstrip("\n")),
        is_nothing=bool(plan.changes) and not changes,
    )


def needs_asking_again(before: Decision, now: Decision) -> bool:
    """Whether an edited call is another one than the card showed: more dangerous, or for another reason."""
    riskier = RANK[now.risk] > RANK[before.risk]
    return now.verdict is Verdict.ASK and (riskier or now.reason != before.reason)


def _narrowed(
    changes: tuple[FileChange, ...], accepted: frozenset[int] | None, texts: Mapping[int, str]
) -> tuple[FileChange, ...]:
    """The changes with the accepted hunks only (None: all), and `texts` in some of them."""
    kept: list[FileChange] = []
    first = 0
    for change in changes:
        count = len(hunks_of(change))
        numbers = range(first, first + count)
        mine = frozenset(i - first for i in numbers if accepted is None or i in accepted)
        written = {i - first: texts[i] for i in numbers if i in texts} if editable(change) else {}
        first += count
        narrowed = apply(change, mine, written)
        if narrowed.after != change.before:
            kept.append(narrowed)
    return tuple(kept)
