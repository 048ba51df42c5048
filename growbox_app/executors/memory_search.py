"""The executor `memory_search`: a second look into memory, in the model's own words."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from growbox_app.executors.base import CORE_WINDOW_MIN, CallContext, ExecutorResult, Risk
from growbox_app.memory_service import MemoryService
from memory.values import RecallQuery

PAGES_MAX = 4
NOTHING_MORE = (
    "Nothing more was found. Answer the question now, with the notes above and what you know."
)
"""A small model takes a bare "nothing found" for the answer, although the notes of the turn stand before it."""


class MemorySearch:
    """Implements `Executor`."""

    name = "memory_search"
    description = "Searches all earlier conversations and notes on this computer."
    parameters: Mapping[str, str] = {"query": "what to look for, in a few words"}
    risk = Risk.SAFE
    window_min = CORE_WINDOW_MIN

    def __init__(self, memory: MemoryService, *, paused: Callable[[], bool]) -> None:
        """Takes the memory, and whether the user has paused it (asked at each call)."""
        self._memory = memory
        self._paused = paused

    async def run(self, arguments: Mapping[str, str], context: CallContext) -> ExecutorResult:
        """Recalls; what is already in the prompt is not repeated."""
        if self._paused():
            return ExecutorResult(ok=False, text="memory is paused by the user", summary="0")
        query = RecallQuery(
            text=arguments.get("query", ""),
            project_id=context.project_id,
            exclude=context.exclude | context.resident,
            pages_max=PAGES_MAX,
        )
        result = await self._memory.drive(lambda engine: engine.recall(query))
        if not result.pages:
            return ExecutorResult(ok=True, text=NOTHING_MORE, summary="0")
        return ExecutorResult(
            ok=True,
            text=f"{len(result.pages)} notes found",
            summary=str(len(result.pages)),
            pages=result.pages,
        )
