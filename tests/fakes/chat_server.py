"""A server of the OpenAI protocol by script, on loopback, byte by byte: also for what no honest server sends.

Each request is answered by the next script (the last one stays); `requests` has what was asked: path, headers, JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from growbox_app.tasks import TaskGroup

Script = Callable[["Answering"], Awaitable[None]]


@dataclass
class Asked:
    """One request."""

    method: str
    path: str
    headers: dict[str, str]
    body: dict[str, Any]

    @property
    def messages(self) -> list[dict[str, Any]]:
        return self.body["messages"]


class Answering:
    """One answer on its way."""

    def __init__(self, asked: Asked, writer: asyncio.StreamWriter) -> None:
        self.asked = asked
        self._writer = writer

    async def head(
        self, status: int = 200, kind: str = "text/event-stream", **headers: str
    ) -> None:
        lines = [f"HTTP/1.1 {status} Said", f"Content-Type: {kind}", "Connection: close"]
        lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
        await self.raw(("\r\n".join(lines) + "\r\n\r\n").encode())

    async def raw(self, data: bytes) -> None:
        self._writer.write(data)
        await self._writer.drain()

    async def event(self, value: object) -> None:
        await self.raw(b"data: " + json.dumps(value).encode() + b"\n\n")

    async def done(self) -> None:
        await self.raw(b"data: [DONE]\n\n")


@dataclass
class ChatServer:
    """Runs while its context is open."""

    scripts: Sequence[Script]
    url: str = ""
    requests: list[Asked] = field(default_factory=list)
    asked: asyncio.Event = field(default_factory=asyncio.Event)
    closed: asyncio.Event = field(default_factory=asyncio.Event)
    """Set when a client has gone away in the middle."""
    tasks: TaskGroup = field(default_factory=TaskGroup)

    def connected(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.tasks.start("connection", self.serve(reader, writer))

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            await self._serve(reader, writer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
            method, path, _ = head[0].split(" ", 2)
            pairs = (line.split(": ", 1) for line in head[1:] if line)
            headers = {name.lower(): value for name, value in pairs}
            length = int(headers.get("content-length", "0"))
            body = json.loads(await reader.readexactly(length)) if length else {}
            asked = Asked(method=method, path=path, headers=headers, body=body)
            self.requests.append(asked)
            self.asked.set()
            script = self.scripts[min(len(self.requests), len(self.scripts)) - 1]
            self.tasks.start("gone", self._watch(reader))
            await script(Answering(asked, writer))
        finally:
            writer.close()
            await writer.wait_closed()

    async def _watch(self, reader: asyncio.StreamReader) -> None:
        with contextlib.suppress(ConnectionError):
            await reader.read()
        self.closed.set()


@contextlib.asynccontextmanager
async def chat_server(
    *scripts: Script, tls: ssl.SSLContext | None = None
) -> AsyncIterator[ChatServer]:
    """A running server."""
    server = ChatServer(scripts=scripts)
    listening = await asyncio.start_server(server.connected, "127.0.0.1", 0, ssl=tls)
    port = listening.sockets[0].getsockname()[1]
    server.url = f"{'https' if tls else 'http'}://127.0.0.1:{port}/v1"
    try:
        yield server
    finally:
        listening.close()
        await server.tasks.cancel_all()


def delta(text: str, finish: str | None = None, **more: object) -> dict[str, Any]:
    """A chunk of text."""
    choice = {"index": 0, "delta": {"content": text} | more, "finish_reason": finish}
    return {"id": "c", "object": "chat.completion.chunk", "choices": [choice]}


def says(*texts: str, usage: dict[str, Any] | None = None, **more: object) -> Script:
    """A script that streams these texts as an honest server does."""

    async def script(answering: Answering) -> None:
        await answering.head()
        for text in texts:
            await answering.event(delta(text))
        await answering.event(delta("", "stop") | more)
        if usage is not None:
            await answering.event({"choices": [], "usage": usage} | more)
        await answering.done()

    return script


def calls(name: str, *pieces: str) -> Script:
    """A script that streams one native tool call, its arguments in pieces."""

    async def script(answering: Answering) -> None:
        await answering.head()
        first = {"index": 0, "id": "x", "type": "function", "function": {"name": name}}
        await answering.event(delta("", tool_calls=[first]))
        for piece in pieces:
            part = {"index": 0, "function": {"arguments": piece}}
            await answering.event(delta("", tool_calls=[part]))
        await answering.event(delta("", "tool_calls"))
        await answering.done()

    return script


def refuses(status: int, body: object, **headers: str) -> Script:
    """A script that answers with an error."""

    async def script(answering: Answering) -> None:
        await answering.head(status, "application/json", **headers)
        await answering.raw(body if isinstance(body, bytes) else json.dumps(body).encode())

    return script


def sends(*pieces: bytes, kind: str = "text/event-stream") -> Script:
    """A script that sends just these bytes."""

    async def script(answering: Answering) -> None:
        await answering.head(kind=kind)
        for piece in pieces:
            await answering.raw(piece)
            await asyncio.sleep(0.01)

    return script


async def hangs(answering: Answering) -> None:
    """A script that begins and never goes on."""
    await answering.head()
    await answering.event(delta("so far "))
    await asyncio.Event().wait()


async def silent(_answering: Answering) -> None:
    """A script that takes the question and says nothing at all."""
    await asyncio.Event().wait()
