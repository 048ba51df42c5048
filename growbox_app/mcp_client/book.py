"""The servers that the user has set up, and the tools they named when they were last asked: two JSON files in the data folder.

Written whole and atomically. Event-loop thread; the files are small. A file that cannot be read means no servers; tools that are not
known are learned when the server is next asked. Secrets are in neither file.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

import msgspec

from growbox_app.files import write_atomically
from growbox_app.mcp_client.values import SERVERS_MAX, ServerSpec, ToolSpec, problem_of_spec

T = TypeVar("T")


class ServerBook:
    """Servers by name."""

    def __init__(self, data_path: Path) -> None:
        self._servers_path = data_path / "mcp_servers.json"
        self._tools_path = data_path / "mcp_tools.json"
        specs = _read(self._servers_path, list[ServerSpec]) or []
        good = [spec for spec in specs if problem_of_spec(spec) is None][:SERVERS_MAX]
        self._specs = {spec.name: spec for spec in good}
        known = _read(self._tools_path, dict[str, list[ToolSpec]]) or {}
        self._tools = {name: tuple(known.get(name, ())) for name in self._specs}

    @property
    def specs(self) -> tuple[ServerSpec, ...]:
        """All servers, by name."""
        return tuple(self._specs[name] for name in sorted(self._specs))

    def get(self, name: str) -> ServerSpec | None:
        """A server."""
        return self._specs.get(name)

    def tools(self, name: str) -> tuple[ToolSpec, ...]:
        """What a server offers, as far as it is known."""
        return self._tools.get(name, ())

    def put(self, spec: ServerSpec) -> None:
        """Sets a server up, or changes it. Another place means other tools.

        Raises:
            OSError: the file cannot be written; nothing has changed.
        """
        before = self._specs.get(spec.name)
        self._write_specs({**self._specs, spec.name: spec})
        if before is None or replace(before, safe_tools=spec.safe_tools) != spec:
            self.learn(spec.name, ())

    def remove(self, name: str) -> None:
        """Forgets a server and its tools.

        Raises:
            OSError: the file cannot be written; nothing has changed.
        """
        self._write_specs({n: spec for n, spec in self._specs.items() if n != name})
        self.learn(name, ())

    def learn(self, name: str, tools: Sequence[ToolSpec]) -> None:
        """Keeps what a server offers.

        Raises:
            OSError: the file cannot be written; the tools are then known until the end of this run.
        """
        if tuple(tools) == self._tools.get(name, ()):
            return
        if tools:
            self._tools[name] = tuple(tools)
        else:
            self._tools.pop(name, None)
        write_atomically(self._tools_path, msgspec.json.encode(self._tools))

    def _write_specs(self, specs: dict[str, ServerSpec]) -> None:
        ordered = [specs[name] for name in sorted(specs)]
        write_atomically(
            self._servers_path, msgspec.json.format(msgspec.json.encode(ordered), indent=1)
        )
        self._specs = specs


def _read(path: Path, kind: type[T]) -> T | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=kind)
    except (OSError, msgspec.MsgspecError):
        return None
