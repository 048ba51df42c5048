"""The executor `memory_search`: a second look into memory, in the model's own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from growbox_app.executors.answers import CallFailed, Reason, summary
from growbox_app.executors.base import (
    CORE_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    Plan,
    Risk,
)
from growbox_app.memory_service import MemoryService
from memory.recall.dates import period
from memory.values import NodeKind, ProjectId, RecallQuery, Scope

PAGES_MAX = 4
NOTHING_MORE = (
    "Nothing more was found. Answer the question now, with the notes above and what you know."
)
"""A small model takes a bare "nothing found" for the answer, although the notes of the turn stand before it."""

KINDS: Mapping[str, frozenset[NodeKind]] = {
    "message": frozenset({NodeKind.MESSAGE}),
    "document": frozenset({NodeKind.DOCUMENT, NodeKind.CHUNK}),
    "note": frozenset({NodeKind.NOTE}),
    "tool_result": frozenset({NodeKind.TOOL_RESULT}),
}
DATES = "a day such as 2025-03-12, yesterday, last week, March"


class MemorySearch:
    """Implements `Executor`."""

    name = "memory_search"
    description = "Searches all earlier conversations and notes on this computer."
    parameters: Mapping[str, Parameter] = {
        "query": Parameter(description="what to look for, in a few words"),
        "kind": Parameter(description="only these", required=False, choices=tuple(KINDS)),
        "since": Parameter(description="not older, such as last week", required=False),
        "until": Parameter(description="not newer, such as 2025-03-12", required=False),
    }
    risk = Risk.SAFE
    window_min = CORE_WINDOW_MIN

    def __init__(
        self,
        memory: MemoryService,
        *,
        paused: Callable[[], bool],
        now_ms: Callable[[], int],
        scope: Callable[[ProjectId | None], Scope] = lambda _project_id: Scope.ALL,
    ) -> None:
        """Takes the memory, whether it is paused, the time that "last week" is before, and how far it reaches in a project."""
        self._scope = scope
        self._memory = memory
        self._paused = paused
        self._now_ms = now_ms

    async def plan(
        self,
        arguments: Mapping[str, str],
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> Plan | ExecutorResult:
        """Touches nothing outside the memory; a date that is none is said at once."""
        detail = {"query": arguments.get("query", ""), "kind": arguments.get("kind", "").strip()}
        if detail["kind"] not in ("", *KINDS):
            return _failed(f"kind is one of {', '.join(KINDS)}")
        for name in ("since", "until"):
            words = arguments.get(name, "").strip()
            found = period(words, self._now_ms()) if words else None
            if words and found is None:
                return _failed(f"{name} is not understood; write {DATES}")
            if found is not None:
                moment = found.since_ms if name == "since" else found.until_ms
                detail[name] = str(moment)
        return Plan(detail=detail)

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Recalls; what is already in the prompt is not repeated."""
        if self._paused():
            return CallFailed("memory is paused by the user", Reason.PAUSED).result()
        query = RecallQuery(
            text=plan.detail["query"],
            project_id=context.project_id,
            scope=self._scope(context.project_id),
            exclude=context.exclude | context.resident,
            pages_max=PAGES_MAX,
            kinds=KINDS.get(plan.detail["kind"], frozenset()),
            since_ms=_moment(plan, "since"),
            until_ms=_moment(plan, "until"),
        )
        result = await self._memory.drive(lambda engine: engine.recall(query))
        count = len(result.pages)
        told = summary("memories", count=count) if count else summary("no_memories")
        return ExecutorResult(
            ok=True,
            text=f"{count} notes found" if count else NOTHING_MORE,
            summary=told,
            pages=result.pages,
        )


def _moment(plan: Plan, name: str) -> int | None:
    return int(plan.detail[name]) if name in plan.detail else None


def _failed(text: str) -> ExecutorResult:
    return CallFailed(text, Reason.ARGUMENTS).result()
