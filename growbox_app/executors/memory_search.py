"""The executor `memory_search`: a second look into memory, in the model's own words."""

from __future__ import annotations

from collections.abc import Mapping

from growbox_app.executors.base import CallContext, ExecutorResult, Risk
from growbox_app.memory_service import MemoryService
from memory.values import RecallQuery

PAGES_MAX = 4


class MemorySearch:
    """Implements `Executor`."""

    name = "memory_search"
    description = "Searches all earlier conversations and notes on this computer."
    parameters: Mapping[str, str] = {"query": "what to look for, in a few words"}
    risk = Risk.SAFE

    def __init__(self, memory: MemoryService) -> None:
        self._memory = memory

    async def run(self, arguments: Mapping[str, str], context: CallContext) -> ExecutorResult:
        """Recalls; what is already in the prompt is not repeated."""
        query = RecallQuery(
            text=arguments.get("query", ""),
            project_id=context.project_id,
            exclude=context.exclude | context.resident,
            pages_max=PAGES_MAX,
        )
        result = await self._memory.drive(lambda engine: engine.recall(query))
        if not result.pages:
            return ExecutorResult(ok=True, text="nothing found", summary="0")
        return ExecutorResult(ok=True, text="", summary=str(len(result.pages)), pages=result.pages)
