"""Consent as the faces see it: a call that waits for the user, and what he says of it. Pure."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from growbox_app.hunks import DiffHunk


@dataclass(frozen=True, slots=True, kw_only=True)
class CommandPart:
    """One command of a command line, with the worst that is known of it. `reason` is a key of `safety.reason`."""

    text: str
    risk: str
    reason: str
    details: Mapping[str, str] = field(default_factory=dict)


class ApprovalScope(StrEnum):
    """For how much an approval holds."""

    ONCE = "once"
    PATH = "path"
    """This path, or this command's shape, in this project."""
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """A call that waits for the user. `reason` is a key of `safety.reason`, with its fields in `details`.

    `scopes` are what an answer may choose; `hunks` can be accepted one by one, a `command` cannot: `parts` are what it is made
    of. `editable`: the user may give another command. `edited`: this is what he has made of the call; it is asked about again.
    """

    id: int
    call_id: int = 0
    executor: str
    arguments: str
    risk: str
    reason: str
    details: Mapping[str, str] = field(default_factory=dict)
    command: str = ""
    whole: str = ""
    """All arguments of a call that nothing else here shows, line by line."""
    cwd: str = ""
    paths: tuple[str, ...] = ()
    hunks: tuple[DiffHunk, ...] = ()
    scopes: tuple[ApprovalScope, ...] = (ApprovalScope.ONCE,)
    parts: tuple[CommandPart, ...] = ()
    editable: bool = False
    edited: bool = False

    def ended(self, by: str, *, allowed: bool = False) -> ApprovalEnded:
        """How it has ended."""
        return ApprovalEnded(
            id=self.id,
            allowed=allowed,
            by=by,
            call_id=self.call_id,
            executor=self.executor,
            what=self.command or self.arguments,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAnswer:
    """What the user says. `hunks` None accepts all; `word` goes to the model with a refusal.

    `texts` stand for the `text` of some accepted hunks, `command` for that of the call (empty: as it is). What was edited is
    judged again, and allowed once only.
    """

    id: int
    allowed: bool
    scope: ApprovalScope = ApprovalScope.ONCE
    hunks: frozenset[int] | None = None
    word: str = ""
    texts: Mapping[int, str] = field(default_factory=dict)
    command: str = ""

    @property
    def edits(self) -> bool:
        """Whether the call was changed, other than by leaving parts of it out."""
        return bool(self.texts or self.command)


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalAsked:
    """The turn waits for `Assistant.answer_approval`; without an answer the call is denied."""

    approval: Approval


@dataclass(frozen=True, slots=True, kw_only=True)
class ApprovalEnded:
    """An approval is over. `by`: user | timeout | stop | exit (GrowBox ended while it was open: nothing was done)."""

    id: int
    allowed: bool
    by: str
    call_id: int = 0
    executor: str = ""
    what: str = ""
