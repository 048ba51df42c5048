"""A tool of a server as an executor: of unknown risk unless the user said otherwise, its output a stranger's.

Named `server__tool`. Planning checks the arguments against the tool's schema and starts nothing. An outage of the server is a failed
result from which nothing is learned.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence

from growbox_app.executors.answers import CallFailed, counted
from growbox_app.executors.base import (
    CORE_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    Plan,
    Risk,
)
from growbox_app.mcp_client.output import fenced
from growbox_app.mcp_client.schemas import arguments_of, parameters_of, schema_of
from growbox_app.mcp_client.service import McpService
from growbox_app.mcp_client.values import McpTrouble, ServerStatus, ToolSpec
from growbox_app.mcp_client.words import trouble_words
from growbox_app.text import tr

NAME_CHARACTERS_MAX = 60
DESCRIPTION_CHARACTERS_MAX = 240
_STRANGE = re.compile(r"[^A-Za-z0-9_]+")


class McpTool:
    """Implements `Executor`."""

    window_min = CORE_WINDOW_MIN
    parameters: Mapping[str, Parameter]

    def __init__(
        self, service: McpService, server: str, tool: ToolSpec, *, name: str, safe: bool
    ) -> None:
        self._service = service
        self._server = server
        self._tool = tool
        self._schema = schema_of(tool.schema)
        self.name = name
        self.description = tool.description[:DESCRIPTION_CHARACTERS_MAX] or tool.name
        self.parameters = parameters_of(self._schema)
        self.risk = Risk.SAFE if safe else Risk.UNKNOWN

    async def plan(
        self,
        arguments: Mapping[str, str],
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> Plan | ExecutorResult:
        """The arguments as the server will get them."""
        try:
            wanted = arguments_of(self._schema, arguments)
        except CallFailed as failure:
            return failure.result()
        return Plan(
            detail={
                "arguments": json.dumps(wanted, ensure_ascii=False),
                "whole": json.dumps(wanted, ensure_ascii=False, indent=1) if wanted else "",
            }
        )

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Calls the tool."""
        arguments = json.loads(plan.detail["arguments"])
        try:
            outcome = await self._service.call(
                self._server, self._tool.name, arguments, context.cancelled
            )
        except McpTrouble as trouble:
            words = trouble_words(self._server, trouble.reason, trouble.detail)
            return ExecutorResult(ok=False, text=words, summary=words, teaches=False)
        lines = outcome.text.count("\n") + 1 if outcome.text else 0
        key = "mcp.answered" if outcome.ok else "mcp.answered_failure"
        said = "answered" if outcome.ok else "says that it failed"
        return ExecutorResult(
            ok=outcome.ok,
            text=fenced(self._server, outcome.text),
            summary=tr(f"{key}_{'one' if lines == 1 else 'many'}", lines=lines),
            outcome=f"{said}, {counted(lines, 'line')}",  # nothing of a stranger's words
        )


def tools_of(service: McpService, statuses: Sequence[ServerStatus]) -> tuple[McpTool, ...]:
    """Every known tool of every server, by name. Two that would get the same name are numbered."""
    found: dict[str, McpTool] = {}
    for status in statuses:
        server = status.spec.name
        for tool in sorted(status.tools, key=lambda tool: tool.name):
            plain = f"{server}__{_STRANGE.sub('_', tool.name)}"[:NAME_CHARACTERS_MAX]
            name, number = plain, 1
            while name in found:
                number += 1
                name = f"{plain}_{number}"
            found[name] = McpTool(
                service, server, tool, name=name, safe=tool.name in status.spec.safe_tools
            )
    return tuple(found[name] for name in sorted(found))
