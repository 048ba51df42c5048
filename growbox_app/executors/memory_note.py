"""The executor `memory_note`: stores a fact in memory, in the model's words, as a note of the conversation and its project."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from growbox_app.executors.answers import CallFailed, Reason
from growbox_app.executors.base import (
    FULL_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    ParameterKind,
    Plan,
    Risk,
)
from growbox_app.memory_service import MemoryService
from memory.values import NodeDraft, NodeKind, Role

CHARACTERS_MAX = 2_000
"""A note is a fact; a text is a file."""


class MemoryNote:
    """Implements `Executor`."""

    name = "memory_note"
    description = "Remembers a fact for later conversations."
    parameters: Mapping[str, Parameter] = {
        "text": Parameter(
            description="the fact in full sentences, with names", kind=ParameterKind.TEXT
        )
    }
    risk = Risk.REVERSIBLE
    window_min = FULL_WINDOW_MIN

    def __init__(self, memory: MemoryService, *, paused: Callable[[], bool]) -> None:
        """Takes the memory, and whether the user has paused it (asked at each call)."""
        self._memory = memory
        self._paused = paused

    async def plan(
        self,
        arguments: Mapping[str, str],
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> Plan | ExecutorResult:
        """Touches nothing outside the memory."""
        text = arguments.get("text", "").strip()
        if not text:
            return CallFailed("text is empty", Reason.ARGUMENTS).result()
        if len(text) > CHARACTERS_MAX:
            limit = f"a note has at most {CHARACTERS_MAX} characters; keep to the fact"
            return CallFailed(limit, Reason.TOO_LONG).result()
        return Plan(detail={"text": text})

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Stores it; durable when it returns. While memory is paused, nothing is stored."""
        if self._paused():
            return CallFailed("memory is paused by the user", Reason.PAUSED).result()
        draft = NodeDraft(
            kind=NodeKind.NOTE,
            role=Role.NONE,
            content=plan.detail["text"],
            conversation_id=context.conversation_id,
            project_id=context.project_id,
        )
        await self._memory.call(lambda engine: engine.record(draft))
        return ExecutorResult(ok=True, text="noted", summary=plan.detail["text"].split("\n", 1)[0])
