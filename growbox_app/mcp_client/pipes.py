"""A server that is a program of this computer: started, spoken to over its pipes line by line, and surely ended.

It gets a process group of its own (`growbox_app/executors/process_group.py`), an environment without our secrets, and a moment to end.
On the loop of `LoopThread`; three daemon threads read and write the pipes, so that nothing a server does or leaves undone can block
the loop. Invariants: a line and the lines that wait are bounded; a server that floods is ended; when this application ends in whatever
way, so does the server.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import shutil
import threading
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from growbox_app.executors.process_group import ProcessGroup
from growbox_app.executors.processes import environment
from growbox_app.mcp_client.output import one_line
from growbox_app.mcp_client.values import McpTrouble
from growbox_app.tasks import TaskGroup

if TYPE_CHECKING:
    from mcp.client import Transport
    from mcp.client._transport import TransportStreams

MESSAGE_BYTES_MAX = 32_000_000
LINES_WAITING_MAX = 64
LINES_MAX, LINES_WINDOW_S = 3_000, 10.0
"""More lines than this in so many seconds, and a server is not answering but flooding."""
ERRORS_BYTES_MAX = 4_000
GRACE_S, POLL_S = 0.3, 0.01
LAST_WORDS_S = 0.5
"""How long the end of what it says waits for the end of its complaints, which tell why."""
_READ_BYTES = 65_536


class ServerProcess:
    """A running server. Made and used on the loop's thread."""

    def __init__(
        self,
        words: Sequence[str],
        variables: Mapping[str, str],
        cwd: Path,
        *,
        on_end: Callable[[], None],
    ) -> None:
        """Starts it; `on_end` is called on the loop when it says no more.

        Raises:
            McpTrouble: there is no such program, or it does not start.
        """
        self.lines: asyncio.Queue[bytes | None] = asyncio.Queue()
        """What it says; None at its end."""
        self.flooded = False
        self._on_end = on_end
        self._errors = b""
        self._loop = asyncio.get_running_loop()
        self._room = threading.Semaphore(LINES_WAITING_MAX)
        self._outbox: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._ended = False
        variables = environment() | dict(variables)
        program = shutil.which(words[0], path=variables.get("PATH"))
        if program is None:
            raise McpTrouble("not_found", words[0])
        try:
            words = [program, *words[1:]]
            self._group = ProcessGroup(words, cwd, variables, spoken_to=True)
        except (OSError, ValueError) as error:
            raise McpTrouble("cannot_start", one_line(str(error))) from error
        self._process = self._group.process
        self._complaining = self._thread(self._read_errors)
        self._thread(self._read)
        self._thread(self._write)

    @property
    def pid(self) -> int:
        """Its process, and its group."""
        return self._process.pid

    def errors(self) -> str:
        """The end of what it complained about."""
        return one_line(self._errors.decode("utf-8", "replace"))

    def send(self, line: bytes) -> None:
        """Says a line to it; never blocks."""
        self._outbox.put(line + b"\n")

    def taken(self) -> None:
        """A line of `lines` was used: there is room for one more."""
        self._room.release()

    # -- the threads ----------------------------------------------------------------------------
    @staticmethod
    def _thread(work: Callable[[], None]) -> threading.Thread:
        thread = threading.Thread(target=work, name="mcp-pipe", daemon=True)
        thread.start()
        return thread

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        buffer = bytearray()
        count, since = 0, time.monotonic()
        with stream, contextlib.suppress(OSError, ValueError):
            while data := os.read(stream.fileno(), _READ_BYTES):
                *lines, rest = data.split(b"\n")
                for line in lines:
                    self._hand_on(bytes(buffer) + line)
                    buffer.clear()
                buffer += rest
                count += len(lines)
                now = time.monotonic()
                if now - since > LINES_WINDOW_S:
                    count, since = 0, now
                if len(buffer) > MESSAGE_BYTES_MAX or count > LINES_MAX:
                    self.flooded = True
                    break
        if not self.flooded:
            self._complaining.join(LAST_WORDS_S)
        self._post(None)

    def _hand_on(self, line: bytes) -> None:
        if line.strip():
            self._room.acquire()
            self._post(line)

    def _post(self, line: bytes | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self.lines.put_nowait, line)
            if line is None:
                self._loop.call_soon_threadsafe(self._on_end)

    def _read_errors(self) -> None:
        stream = self._process.stderr
        assert stream is not None
        with stream, contextlib.suppress(OSError, ValueError):
            while data := os.read(stream.fileno(), _READ_BYTES):
                self._errors = (self._errors + data)[-ERRORS_BYTES_MAX:]

    def _write(self) -> None:
        stream = self._process.stdin
        assert stream is not None
        with contextlib.suppress(OSError, ValueError):
            while (line := self._outbox.get()) is not None:
                stream.write(line)
                stream.flush()
        with contextlib.suppress(OSError, ValueError):
            stream.close()

    # -- the end --------------------------------------------------------------------------------
    async def close(self) -> None:
        """Closes its input, gives it a moment, and ends it with everything it started."""
        self._outbox.put(None)
        try:
            for _ in range(round(GRACE_S / POLL_S)):
                if self._process.poll() is not None:
                    break
                await asyncio.sleep(POLL_S)
        finally:
            self.end()

    def end(self) -> None:
        """Ends it at once. Idempotent."""
        if self._ended:
            return
        self._ended = True
        self._group.end()
        self._outbox.put(None)
        for _ in range(LINES_WAITING_MAX):  # the reader may wait for room
            self._room.release()


def transport(process: ServerProcess) -> Transport:
    """The pipes as the SDK's streams; the end of the server is the end of its stream."""
    return _streams(process)


async def _until_closed(work: Awaitable[None]) -> None:
    """The other side of a stream may be gone: the session has ended."""
    import anyio

    with contextlib.suppress(anyio.ClosedResourceError, anyio.BrokenResourceError):
        await work


@contextlib.asynccontextmanager
async def _streams(process: ServerProcess) -> AsyncGenerator[TransportStreams, None]:
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp.types import jsonrpc_message_adapter

    to_us, read_stream = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    write_stream, from_us = anyio.create_memory_object_stream[SessionMessage](0)

    async def read() -> None:
        async with to_us:
            while (line := await process.lines.get()) is not None:
                process.taken()
                try:
                    message = jsonrpc_message_adapter.validate_json(line, by_name=False)
                except ValueError:
                    continue  # some servers print to their output what belongs into a log
                await to_us.send(SessionMessage(message))

    async def write() -> None:
        async with from_us:
            async for wrapped in from_us:
                process.send(
                    wrapped.message.model_dump_json(by_alias=True, exclude_unset=True).encode()
                )

    tasks = TaskGroup()
    tasks.start("mcp read", _until_closed(read()))
    tasks.start("mcp write", _until_closed(write()))
    try:
        yield read_stream, write_stream
    finally:
        await tasks.cancel_all()
        for stream in (read_stream, write_stream, to_us, from_us):
            stream.close()
