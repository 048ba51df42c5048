"""An executor: one ability of the agent, with its name, typed parameters and risk."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Protocol

from memory.values import ConversationId, NodeId, Page, ProjectId


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
    """What came of a call: text for the model, one line for the reader, memories that were found."""

    ok: bool
    text: str
    summary: str
    pages: tuple[Page, ...] = ()


class Executor(Protocol):
    """One ability. `parameters` maps each parameter (all are strings, all required) to its description."""

    name: str
    description: str
    parameters: Mapping[str, str]
    risk: Risk

    async def run(self, arguments: Mapping[str, str], context: CallContext) -> ExecutorResult:
        """Does it. Known trouble is a result with `ok=False`."""
        ...
