"""The child process that reads files: whatever a hostile file does to a parser, it does it there.

Frames are msgpack over a pipe; nothing is pickled. One file at a time. A file that takes longer than `READ_S_MAX` or kills the process
costs that process and is left out; the next file gets a new one. The child ends when its pipe ends, has the lowest priority, and
a bound on its memory where the system has one. Parsing holds the interpreter lock, which is the other reason why it is not a thread.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import multiprocessing
import os
import queue
import sys
import threading
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import msgspec

from growbox_app.ingest.report import SkipReason

READ_S_MAX = 180.0
"""Books take long: pypdf reads some twenty pages a second, at the lowest priority beside a busy model."""
ADDRESS_SPACE_BYTES_MAX = 4 << 30
_JOIN_S = 2.0


class ReadRequest(msgspec.Struct, frozen=True):
    """A file to be read. `path` is as the system has it; `place` begins the context of each passage."""

    path: bytes
    place: str
    known_hash: str
    characters_max: int


class ReadReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """Its text and cuts (end, context); none when the hash is the known one, or for a `reason`."""

    content_hash: str = ""
    text: str = ""
    cuts: tuple[tuple[int, str], ...] = ()
    reason: SkipReason | None = None


# -- the child ----------------------------------------------------------------------------------


def main(connection: Connection[bytes, bytes]) -> None:
    """Entry of the child process; ends when the pipe ends."""
    _be_humble()
    requests: queue.SimpleQueue[ReadRequest] = queue.SimpleQueue()
    threading.Thread(target=_listen, args=(connection, requests), daemon=True).start()
    while True:
        reply = read(requests.get())
        try:
            connection.send_bytes(msgspec.msgpack.encode(reply))
        except OSError:
            os._exit(0)


def read(request: ReadRequest) -> ReadReply:
    """Reads one file."""
    from growbox_app.ingest.cutting import cuts_of
    from growbox_app.ingest.reading import Unreadable, content_hash, read_bytes, text_of

    path = Path(os.fsdecode(request.path))
    try:
        data = read_bytes(path)
        found = content_hash(data)
        if found == request.known_hash:
            return ReadReply(content_hash=found)
        text = text_of(data, path.name)
    except Unreadable as error:
        return ReadReply(reason=error.reason)
    cuts = cuts_of(text, request.place, request.characters_max)
    return ReadReply(
        content_hash=found, text=text, cuts=tuple((cut.end, cut.context) for cut in cuts)
    )


def _listen(connection: Connection[bytes, bytes], requests: queue.SimpleQueue[ReadRequest]) -> None:
    """Takes requests off the pipe; its end ends the process, whatever the main thread does."""
    try:
        while True:
            requests.put(msgspec.msgpack.decode(connection.recv_bytes(), type=ReadRequest))
    except (EOFError, OSError, msgspec.MsgspecError):
        os._exit(0)


def _be_humble() -> None:
    """Lowest priority, deaf to the terminal's Ctrl-C, silent, and bounded."""
    import signal

    import psutil

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)  # parsers tell the terminal what they think of a file
    if sys.platform == "win32":
        psutil.Process().nice(psutil.IDLE_PRIORITY_CLASS)
        return
    import resource

    with contextlib.suppress(OSError):
        os.nice(19)
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_AS, (ADDRESS_SPACE_BYTES_MAX,) * 2)
    # A file that kills the process is expected trouble: no traceback, no core.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)


# -- the parent's end ---------------------------------------------------------------------------


class ReaderProcess:
    """Reads files in a child that is started with the first one. One caller; event-loop thread."""

    def __init__(self, *, read_s_max: float = READ_S_MAX) -> None:
        self._read_s_max = read_s_max
        self._process: SpawnProcess | None = None
        self._pipe: Connection[bytes, bytes] | None = None
        self._closed = False
        self._changing = threading.Lock()
        """Held while the child is started: `close` may come at any moment."""

    async def read(self, request: ReadRequest) -> ReadReply:
        """Reads a file; a child that dies or hangs over it is a reason, never an error."""
        return await asyncio.to_thread(self._exchange, request)

    async def close(self) -> None:
        """Ends the child, also in the middle of a file. Idempotent."""
        await asyncio.to_thread(self._close)

    def _exchange(self, request: ReadRequest) -> ReadReply:
        pipe = self._begun()
        if pipe is None:
            return ReadReply(reason=SkipReason.DAMAGED)
        try:
            pipe.send_bytes(msgspec.msgpack.encode(request))
            if pipe.poll(self._read_s_max):
                return msgspec.msgpack.decode(pipe.recv_bytes(), type=ReadReply)
            reason = SkipReason.TOO_SLOW
        except (EOFError, OSError, msgspec.MsgspecError):
            reason = SkipReason.DAMAGED
        self._end()
        return ReadReply(reason=reason)

    def _begun(self) -> Connection[bytes, bytes] | None:
        """The pipe to a running child; None once this is closed."""
        with self._changing:
            if self._pipe is None and not self._closed:
                context = multiprocessing.get_context("spawn")
                self._pipe, theirs = context.Pipe(duplex=True)
                self._process = context.Process(
                    target=main, args=(theirs,), name="growbox-reader", daemon=True
                )
                self._process.start()
                theirs.close()
            return self._pipe

    def _close(self) -> None:
        with self._changing:
            self._closed = True
        self._end()

    def _end(self) -> None:
        with self._changing:
            process, pipe = self._process, self._pipe
            self._process = self._pipe = None
        if process is not None:
            process.kill()
            process.join(_JOIN_S)
            with contextlib.suppress(ValueError):  # the system has not let go of it yet
                process.close()
        if pipe is not None:
            pipe.close()
