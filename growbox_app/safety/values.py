"""The values of a judgement: what is judged, by which rules, and what came out.

Immutable. Text that the model, a file, a page or a memory brought is never among the rules: only the user's own choices are.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from pathlib import Path

from growbox_app.executors.base import Plan, Risk, Workspace
from growbox_app.safety.disk import Disk, RealDisk


class Verdict(StrEnum):
    """What happens to a call. Deny beats ask, ask beats allow."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"


class Mode(StrEnum):
    """How much the user wants to be asked.

    Manual: everything that is not a safe read. Auto: what is irreversible or not understood. Read-only: nothing is asked, only
    safe reads run.
    """

    MANUAL = "manual"
    AUTO = "auto"
    READ_ONLY = "read_only"


class GrantKind(StrEnum):
    """What the user may allow for a whole project instead of once."""

    PATH = "path"
    EXECUTOR = "executor"
    COMMAND = "command"
    HOST = "host"


@dataclass(frozen=True, slots=True, kw_only=True)
class Grant:
    """One permission of one project: a path (a folder includes what is in it), an executor, a command's shape or a host."""

    kind: GrantKind
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedCall:
    """A call as the policy sees it: who would run it, the risk it declares, and what it would do."""

    executor: str
    risk: Risk
    plan: Plan


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """What the user has decided, and the world in which it holds.

    `confined`: commands run in a sandbox that can write only in the project and has no network. `private`: folders that are
    nobody's business, GrowBox's own data first. `disk` answers where a path leads; all else is in the values.
    """

    workspace: Workspace
    mode: Mode = Mode.MANUAL
    grants: frozenset[Grant] = frozenset()
    offline: bool = True
    confined: bool = False
    private: tuple[Path, ...] = ()
    home: Path = field(default_factory=Path.home)
    platform: str = sys.platform
    disk: Disk = field(default_factory=RealDisk)

    def granting(self, grants: Iterable[Grant]) -> Rules:
        """The same rules after the user said yes for the whole project."""
        return replace(self, grants=self.grants | frozenset(grants))


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One reason not to run a call unasked. `denied` stands whatever was granted; any of `covers` settles it otherwise.

    `exact`: a grant for the folder that a path lies in does not reach it.
    """

    reason: str
    risk: Risk
    denied: bool = False
    covers: tuple[Grant, ...] = ()
    exact: bool = False
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One command of a command line and the worst that was found about it; `reason` and `details` as in a decision."""

    text: str
    risk: Risk
    reason: str
    details: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """The judgement. `reason` is the key `safety.reason.<reason>` of the translations, `details` are its fields.

    `changes` are files that are known to change, whatever else may: the checkpoint keeps these even when they are ignored.
    `path_grants` and `project_grants` are what "this path" and "whole project" would grant; empty: only once is possible.
    `parts` are the commands of a command line that is asked about.
    """

    verdict: Verdict
    reason: str
    risk: Risk
    details: Mapping[str, str] = field(default_factory=dict)
    changes: tuple[Path, ...] = ()
    path_grants: tuple[Grant, ...] = ()
    project_grants: tuple[Grant, ...] = ()
    parts: tuple[Part, ...] = ()


RANK = {Risk.SAFE: 0, Risk.REVERSIBLE: 1, Risk.IRREVERSIBLE: 2, Risk.UNKNOWN: 3}
"""The order of risks; unknown is treated as irreversible and stands above it, so that its reason is the one shown."""


def worst(risks: Iterable[Risk]) -> Risk:
    """The highest risk; safe when there is none."""
    return max(risks, key=RANK.__getitem__, default=Risk.SAFE)
