"""The registry of executors: the tool list of the prompt, the grammar of a call, and dispatch.

The list is sorted and fixed for a session, so that it never changes the prompt's prefix.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable, Mapping

from growbox_app.executors.base import CallContext, Executor, ExecutorResult

_LOG = logging.getLogger(__name__)

TRIGGER = "<tool_call>"
CLOSER = "</tool_call>"


class Registry:
    """Executors by name."""

    def __init__(self, executors: Iterable[Executor]) -> None:
        self._executors: Mapping[str, Executor] = {
            executor.name: executor for executor in sorted(executors, key=lambda e: e.name)
        }

    def for_window(self, tokens: int) -> Registry:
        """The executors that a window of so many tokens has room for."""
        return Registry(e for e in self._executors.values() if tokens >= e.window_min)

    @property
    def names(self) -> frozenset[str]:
        """Names of all executors."""
        return frozenset(self._executors)

    def tool_list(self) -> str:
        """One line of JSON per executor, sorted by name."""
        return "\n".join(
            json.dumps(
                {
                    "name": executor.name,
                    "description": executor.description,
                    "arguments": dict(executor.parameters),
                },
                ensure_ascii=False,
            )
            for executor in self._executors.values()
        )

    def grammar(self) -> str:
        """GBNF of one call of any executor, beginning with the trigger; empty without executors."""
        if not self._executors:
            return ""
        names = [name.replace("_", "-") for name in self._executors]
        lines = [f'root ::= "{TRIGGER}" [ \\n]? call [ \\n]? "{CLOSER}"']
        lines.append("call ::= " + " | ".join(f"call-{name}" for name in names))
        for name, executor in self._executors.items():
            arguments = ' ", " '.join(
                f'"\\"{parameter}\\": " string' for parameter in executor.parameters
            )
            head = f'"{{\\"name\\": \\"{name}\\", \\"arguments\\": {{"'
            lines.append(f'call-{name.replace("_", "-")} ::= {head} {arguments} "}}}}"')
        lines.append('string ::= "\\"" char{1,240} "\\""')
        lines.append('char ::= [^"\\\\\\x00-\\x1f] | "\\\\" ["\\\\/nt]')
        return "\n".join(lines)

    async def dispatch(
        self, name: str, arguments: Mapping[str, str], context: CallContext
    ) -> ExecutorResult:
        """Runs one call; an executor's bug becomes a failed result and a log entry, never a dead turn."""
        executor = self._executors.get(name)
        if executor is None:
            return ExecutorResult(
                ok=False, text=f"there is no tool {name!r}", summary="unknown tool"
            )
        try:
            return await executor.run(arguments, context)
        except Exception:  # noqa: BLE001 - executor boundary: one of the four places
            _LOG.exception("executor %s failed", name)
            return ExecutorResult(ok=False, text="the tool failed", summary="failed")
