"""Decisions about the assistant's calls in words, and which of them a filter keeps. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence

from growbox_app.audit_log import Decided
from growbox_app.text import tr
from ui.view_models import wording
from ui.view_models.display import visible

ALL, ALLOWED, DENIED = "all", "allowed", "denied"
OUTCOMES = (ALL, ALLOWED, DENIED)
_FIELD = re.compile(r"\{(\w+)\}")


def filtered(found: Sequence[Decided], words: str, outcome: str) -> tuple[Decided, ...]:
    """Those with all the words in what is shown of them, and with this outcome."""
    wanted = words.casefold().split()
    return tuple(
        decided
        for decided in found
        if outcome in (ALL, ALLOWED if decided.allowed else DENIED)
        and all(word in _haystack(decided) for word in wanted)
    )


def _haystack(decided: Decided) -> str:
    return f"{decided.executor} {call(decided)} {outcome(decided)} {reason(decided)}".casefold()


def call(decided: Decided) -> str:
    """What would be done to what."""
    verb = wording.named("agent.verb", decided.executor)
    return f"{verb} {visible(decided.command or ', '.join(decided.targets))}".strip()


def outcome(decided: Decided) -> str:
    """Whether it was done, and who said so."""
    ending = "allowed" if decided.allowed else "denied"
    return tr(f"decisions.by_{decided.by}_{ending}")


def reason(decided: Decided) -> str:
    """Why the policy said what it said; the log has the targets, but not each field of the sentence."""
    known = {"command": decided.command, "executor": decided.executor}
    if decided.targets:
        known |= dict.fromkeys(("path", "host"), decided.targets[0])
    words = decided.command.split()
    if words:
        known["program"] = words[0]
    sentence = tr(f"safety.reason.{decided.reason}")
    return visible(_FIELD.sub(lambda field: known.get(field[1]) or "…", sentence))
