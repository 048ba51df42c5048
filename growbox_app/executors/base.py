"""An executor: one ability of the agent, with its name, typed parameters and risk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
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


@dataclass(frozen=True, slots=True, kw_only=True)
class CallContext:
    """Where a call comes from. `resident` are nodes that already stand in the prompt."""

    conversation_id: ConversationId
    project_id: ProjectId | None
    exclude: frozenset[NodeId]
    resident: frozenset[NodeId]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExecutorResult:
    """What came of a call: text for the model, one line for the reader, memories that were found.

    `part_of` is the node that `text` is a part of: such a result may be long, and needs no node of its own.
    """

    ok: bool
    text: str
    summary: str
    pages: tuple[Page, ...] = ()
    part_of: Node | None = None


class Executor(Protocol):
    """One ability. `parameters` maps each parameter (all are strings, all required) to its description.

    Below `window_min` tokens of context window the model is not told of it. Source: design 4.3.
    """

    name: str
    description: str
    parameters: Mapping[str, str]
    risk: Risk
    window_min: int

    async def run(self, arguments: Mapping[str, str], context: CallContext) -> ExecutorResult:
        """Does it. Known trouble is a result with `ok=False`."""
        ...
