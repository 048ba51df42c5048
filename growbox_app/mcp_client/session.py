"""One connection to one server: opened, asked for its tools, called, closed. On the loop of `LoopThread`.

The SDK wants a connection to begin and end in one task, which is `_serve`; calls come from others. Invariants: a closed session
answers nothing any more; whatever a server does, `open`, `call` and `close` end in bounded time, with `McpTrouble` where it was the
server.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from growbox_app.mcp_client.output import one_line, text_of
from growbox_app.mcp_client.schemas import SCHEMA_CHARACTERS_MAX
from growbox_app.mcp_client.values import McpTrouble, Outcome, ServerSpec, ToolSpec
from growbox_app.tasks import TaskGroup
from growbox_app.version import version

if TYPE_CHECKING:
    from mcp.client import Client, Transport
    from mcp.types import ListToolsResult

    from growbox_app.mcp_client.pipes import ServerProcess

OPEN_S, CALL_S, PING_S, CLOSE_S = 75.0, 120.0, 3.0, 3.0
HANDSHAKE_S = 30.0
"""For each of the two ways to greet a server: some take long to start, at the lowest priority."""
TOOLS_MAX, PAGES_MAX = 200, 20
DESCRIPTION_CHARACTERS_MAX = 400
NAME_CHARACTERS_MAX = 128


class Session:
    """A connection. One use: open, calls, close."""

    def __init__(self, spec: ServerSpec, secrets: Mapping[str, str]) -> None:
        """Takes the server, and its secrets by name."""
        self._spec = spec
        self._secrets = secrets
        self._tasks = TaskGroup()
        self._closing = asyncio.Event()
        self._ready: asyncio.Future[tuple[ToolSpec, ...]] = (
            asyncio.get_running_loop().create_future()
        )
        self._client: Client | None = None
        self._process: ServerProcess | None = None
        self._doubtful = False
        self._trouble: McpTrouble | None = None

    @property
    def alive(self) -> bool:
        """Whether a call can be made."""
        return self._client is not None and self._trouble is None

    async def open(self) -> tuple[ToolSpec, ...]:
        """Connects, and asks for the tools.

        Raises:
            McpTrouble: it did not work.
        """
        self._tasks.start("mcp serve", self._serve())
        try:
            async with asyncio.timeout(OPEN_S):
                return await asyncio.shield(self._ready)
        except TimeoutError as error:
            detail = self._process.errors() if self._process is not None else ""
            await self.close()
            raise McpTrouble("slow", detail) from error
        except BaseException:
            await self.close()
            raise

    async def call(self, tool: str, arguments: Mapping[str, object], seconds: float) -> Outcome:
        """Calls a tool.

        Raises:
            McpTrouble: there was no answer.
        """
        if self._doubtful and not await self._answers():
            await self.close()
            raise McpTrouble("hung")
        if self._client is None or self._trouble is not None:
            raise self._trouble or McpTrouble("ended")
        try:
            return await self._called(self._client, tool, arguments, seconds)
        except asyncio.CancelledError:
            self._doubtful = True  # it may still be at work on that
            self._tasks.start("mcp doubt", self._end_if_deaf())
            raise

    async def _called(
        self, client: Client, tool: str, arguments: Mapping[str, object], seconds: float
    ) -> Outcome:
        from mcp.shared.exceptions import MCPError
        from mcp.types import CallToolRequest, CallToolRequestParams, CallToolResult
        from pydantic import ValidationError

        params = CallToolRequestParams(name=tool, arguments=dict(arguments))
        try:
            # Not `call_tool`: that runs the server's own output schema, with its expressions.
            result = await client.session.send_request(
                CallToolRequest(params=params),
                CallToolResult,
                request_read_timeout_seconds=seconds,
            )
        except MCPError as error:
            return await self._refused(error.code, error.message, seconds)
        except ValidationError as error:
            raise McpTrouble("protocol") from error
        text = text_of(result.content, result.structured_content)
        return Outcome(ok=not result.is_error, text=text)

    async def _refused(self, code: int, message: str, seconds: float) -> Outcome:
        """An error of the protocol: the server's own answer, unless it is the connection's."""
        from mcp.types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        if code == REQUEST_TIMEOUT:
            await self.close()
            raise McpTrouble("hung", f"{seconds:.0f} s")
        if code == CONNECTION_CLOSED:
            self._note(self._why_ended(one_line(message)))
            await self.close()
            assert self._trouble is not None
            raise self._trouble
        return Outcome(ok=False, text=one_line(message))

    async def _answers(self) -> bool:
        """Whether a server that was interrupted still listens."""
        from mcp.shared.exceptions import MCPError
        from mcp.types import REQUEST_TIMEOUT

        if self._client is None:
            return False
        try:
            async with asyncio.timeout(PING_S):
                await self._client.send_ping()
        except TimeoutError:
            return False
        except MCPError as error:
            return error.code != REQUEST_TIMEOUT and self._trouble is None
        finally:
            self._doubtful = False
        return True

    async def _end_if_deaf(self) -> None:
        """A server that goes on with what nobody waits for is ended; it is not seen to otherwise before the next call."""
        if self._doubtful and not await self._answers():
            self._note(McpTrouble("hung"))
            self._closing.set()
            if self._process is not None:
                self._process.end()

    async def close(self) -> None:
        """Ends it, within seconds. Idempotent."""
        self._client = None
        self._closing.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await self._tasks.cancel_all()
        if self._process is not None:
            self._process.end()

    # -- the connection's own task ----------------------------------------------------------------
    async def _serve(self) -> None:
        try:
            async with self._connected() as client:
                tools = await self._list(client)
                self._client = client
                if not self._ready.done():
                    self._ready.set_result(tools)
                await self._closing.wait()
        except asyncio.CancelledError:
            raise
        except BaseException as error:  # noqa: BLE001 - handed to whoever awaits, as trouble
            self._note(self._why(error))
        finally:
            self._client = None
            if self._process is not None:
                self._process.end()

    @contextlib.asynccontextmanager
    async def _connected(self) -> AsyncGenerator[Client, None]:
        from mcp.client import Client
        from mcp.types import Implementation

        async with Client(
            self._transport(),
            client_info=Implementation(name="GrowBox", version=version()),
            read_timeout_seconds=HANDSHAKE_S,
            cache=None,
        ) as client:
            yield client

    def _transport(self) -> Transport:
        from growbox_app.mcp_client import pipes, web

        if self._spec.is_remote:
            return web.transport(self._spec.url, self._secrets)
        words = [self._spec.command, *self._spec.args]
        self._process = pipes.ServerProcess(
            words, self._secrets, Path.home(), on_end=self._process_ended
        )
        return pipes.transport(self._process)

    async def _list(self, client: Client) -> tuple[ToolSpec, ...]:
        """What the server offers: a bounded number, each bounded."""
        from mcp.types import PaginatedRequestParams

        found: dict[str, ToolSpec] = {}
        cursor: str | None = None
        for _ in range(PAGES_MAX):
            params = PaginatedRequestParams(cursor=cursor) if cursor else None
            page = await client.session.list_tools(params=params)
            for tool in _tools(page):
                found.setdefault(tool.name, tool)
            cursor = page.next_cursor
            if not cursor or len(found) >= TOOLS_MAX:
                break
        return tuple(found.values())[:TOOLS_MAX]

    def _process_ended(self) -> None:
        self._note(self._why_ended(""))
        self._closing.set()

    def _note(self, trouble: McpTrouble) -> None:
        self._trouble = self._trouble or trouble
        if not self._ready.done():
            self._ready.set_exception(self._trouble)
            self._ready.exception()  # nobody may wait any more

    def _why(self, error: BaseException) -> McpTrouble:
        inner = error
        while isinstance(inner, BaseExceptionGroup):
            inner = inner.exceptions[0]
        if isinstance(inner, McpTrouble):
            return inner
        if _is_timeout(inner):
            return McpTrouble("slow", self._process.errors() if self._process else "")
        return self._why_ended(one_line(f"{inner}"))

    def _why_ended(self, said: str) -> McpTrouble:
        if self._process is None:
            return McpTrouble("unreachable", said)
        if self._process.flooded:
            return McpTrouble("flood")
        return McpTrouble("ended", self._process.errors() or said)


def _is_timeout(error: BaseException) -> bool:
    from mcp.shared.exceptions import MCPError
    from mcp.types import REQUEST_TIMEOUT

    return isinstance(error, MCPError) and error.code == REQUEST_TIMEOUT


def _tools(page: ListToolsResult) -> list[ToolSpec]:
    """Tools with a name that can be kept."""
    import json

    found = []
    for tool in page.tools:
        if not tool.name or len(tool.name) > NAME_CHARACTERS_MAX:
            continue
        schema = json.dumps(tool.input_schema, ensure_ascii=False)
        found.append(
            ToolSpec(
                name=tool.name,
                description=one_line(
                    tool.description or tool.title or "", DESCRIPTION_CHARACTERS_MAX
                ),
                schema=schema if len(schema) <= SCHEMA_CHARACTERS_MAX else "",
            )
        )
    return found
