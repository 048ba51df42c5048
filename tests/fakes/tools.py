"""Servers of tools and what was learned, played by a script."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from growbox_app.api import Problem, ProblemError
from growbox_app.mcp_client.values import ServerSpec, ServerState, ServerStatus, ToolSpec
from growbox_app.toolbox.face import Remembered

OFFERED = (
    ToolSpec(name="list_issues", description="Lists the issues of a repository"),
    ToolSpec(name="open_issue", description="Opens a new issue, with a title and a text"),
)


class ScriptedTools:
    """Implements `growbox_app.toolbox.face.Tools`. A server whose command is `broken` fails."""

    def __init__(self, changed: Callable[[], None]) -> None:
        self._changed = changed
        self.statuses: dict[str, ServerStatus] = {}
        self.secrets: dict[str, str] = {}
        self.lessons: list[Remembered] = []
        self.keyring = True
        self.fail: Problem | None = None

    def servers(self) -> tuple[ServerStatus, ...]:
        return tuple(self.statuses[name] for name in sorted(self.statuses))

    async def has_keyring(self) -> bool:
        return self.keyring

    async def save_server(self, spec: ServerSpec, secrets: Mapping[str, str]) -> None:
        if self.fail is not None:
            raise ProblemError(self.fail)
        self.secrets |= secrets
        self.statuses[spec.name] = ServerStatus(spec=spec, state=ServerState.ASLEEP)
        self._changed()

    async def remove_server(self, name: str) -> None:
        self.statuses.pop(name, None)
        self._changed()

    async def mark_safe(self, name: str, tool: str, *, safe: bool) -> None:
        status = self.statuses[name]
        tools = status.spec.safe_tools | {tool} if safe else status.spec.safe_tools - {tool}
        self.statuses[name] = replace(status, spec=replace(status.spec, safe_tools=tools))
        self._changed()

    async def check_server(self, name: str) -> ServerStatus | None:
        spec = self.statuses[name].spec
        found = ServerStatus(spec=spec, state=ServerState.READY, tools=OFFERED)
        if spec.command == "broken":
            found = ServerStatus(
                spec=spec, state=ServerState.FAILED, reason="ended", detail="no licence found"
            )
        self.statuses[name] = found
        self._changed()
        return found

    def remembered(self) -> tuple[Remembered, ...]:
        return tuple(self.lessons)

    async def forget(self, item: Remembered | None) -> None:
        self.lessons = [] if item is None else [one for one in self.lessons if one != item]
