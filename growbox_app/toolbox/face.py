"""Tools as a face sees them: plain values, and the protocol of what can be done with them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from growbox_app.mcp_client.values import ServerSpec, ServerStatus
from growbox_app.routing.lessons import Counsel
from memory.values import ProjectId


@dataclass(frozen=True, slots=True, kw_only=True)
class Remembered:
    """What tool memory holds of one kind of call in one project. `failing` is the probability that the next one fails."""

    tool: str
    shape: str
    project: ProjectId | None
    counsel: Counsel
    failing: float
    worked: int
    failed: int
    why: str = ""


class Tools(Protocol):
    """What a face can do with tools. Every `async` method may raise `ProblemError`."""

    def servers(self) -> tuple[ServerStatus, ...]:
        """The servers that the user has set up, and how they are doing. Watch `ToolsChanged`."""
        ...

    async def has_keyring(self) -> bool:
        """Whether this computer can keep secrets; where not, they can be kept until GrowBox ends."""
        ...

    async def save_server(self, spec: ServerSpec, secrets: Mapping[str, str]) -> None:
        """Sets a server up, or changes it; a secret without a value keeps the one it has."""
        ...

    async def remove_server(self, name: str) -> None:
        """Forgets a server, its tools and its secrets."""
        ...

    async def mark_safe(self, name: str, tool: str, *, safe: bool) -> None:
        """Lets a tool of a server run unasked, or not any more."""
        ...

    async def check_server(self, name: str) -> ServerStatus | None:
        """Starts a server and asks what it offers; how it went is in the status."""
        ...

    def remembered(self) -> tuple[Remembered, ...]:
        """What tool memory holds, the most failing first."""
        ...

    async def forget(self, item: Remembered | None) -> None:
        """Forgets one of these; None: all that was learned about tools."""
        ...
