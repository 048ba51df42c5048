"""An executor: one ability of the agent, with its name, typed parameters, and the plan that a policy judges before it runs.

A call has two steps. `plan` looks and changes nothing: it says which files, command or hosts the call touches, and what a file
would become. The policy (`growbox_app.safety`) judges the plan, the user may be asked and may narrow it, and `run` does what
the plan says – not what the arguments said.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from memory.values import ConversationId, Node, NodeId, Page, ProjectId

CORE_WINDOW_MIN = 4096
"""Below this window the list of tools would cost more than it brings: there are none."""
FULL_WINDOW_MIN = 8192
"""Below this window only core tools are shown."""


class Risk(StrEnum):
    """What a call may do to the user's world. Unknown is treated as irreversible."""

    SAFE = "safe"
    REVERSIBLE = "reversible"
    IRREVERSIBLE = "irreversible"
    UNKNOWN = "unknown"


class ParameterKind(StrEnum):
    """What a parameter may hold."""

    STRING = "string"
    """One line."""
    TEXT = "text"
    """Many lines."""
    INTEGER = "integer"
    """A whole number that is not negative."""
    NUMBER = "number"
    """Any number."""
    BOOLEAN = "boolean"


@dataclass(frozen=True, slots=True, kw_only=True)
class Parameter:
    """One argument of a call. `choices` are the only values allowed (empty: any)."""

    description: str
    kind: ParameterKind = ParameterKind.STRING
    required: bool = True
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """Where a call may act: the project's folder (None: no file on disk may be touched), and folders that may only be read."""

    root: Path | None = None
    readable: tuple[Path, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Where a call comes from. `resident` are nodes that already stand in the prompt; `cancelled` is the user's stop."""

    conversation_id: ConversationId
    project_id: ProjectId | None
    exclude: frozenset[NodeId]
    resident: frozenset[NodeId]
    workspace: Workspace = Workspace()
    cancelled: asyncio.Event = field(default_factory=asyncio.Event)


@dataclass(frozen=True, slots=True, kw_only=True)
class FileChange:
    """What a file would become: `before` None means that it does not exist, `after` None that it goes. Bytes, as on disk."""

    path: Path
    before: bytes | None
    after: bytes | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What a call would do. Paths are absolute and resolved, links included; `detail` is the executor's own, for `run`.

    `command` is for a shell, in `cwd`; `hosts` are asked over the network.
    """

    reads: tuple[Path, ...] = ()
    changes: tuple[FileChange, ...] = ()
    command: str = ""
    cwd: Path | None = None
    hosts: tuple[str, ...] = ()
    detail: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorResult:
    """What came of a call: English text for the model, one line for the user in his language, memories that were found.

    `outcome` is the line by which lessons and memory remember the call, in English as well: they are read by the model, and outlive a
    change of the language. Empty: the first line of `text`.

    `part_of` is the node that `text` is a part of: such a result may be long, and needs no node of its own. `teaches` is False when a
    failure says nothing about the call: an outage, a stop.
    """

    ok: bool
    text: str
    summary: str
    outcome: str = ""
    pages: tuple[Page, ...] = ()
    part_of: Node | None = None
    teaches: bool = True

    def remembered(self) -> str:
        """The line by which the call is remembered."""
        return self.outcome or self.text.split("\n", 1)[0]


class Executor(Protocol):
    """One ability. Below `window_min` tokens of context window the model is not told of it. Source: design 4.3, 5.2.

    One whose good result is the turn's answer has an attribute `ends_turn`, which is True. One that runs its command in a sandbox
    says so with `is_confined`, asked at each call. One that the user may switch off says with `is_offered`, asked at each turn, whether
    the model is told of it.
    """

    name: str
    description: str
    parameters: Mapping[str, Parameter]
    risk: Risk
    window_min: int

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """What the call would do; a result when it cannot be done at all. Changes nothing."""
        ...

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Does what the plan says. Known trouble is a result with `ok=False`."""
        ...
