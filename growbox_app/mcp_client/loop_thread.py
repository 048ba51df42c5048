"""A thread with an event loop of its own, for work that must not disturb the window's: the SDK's, and what strangers make it do.

Started when it is first needed; a daemon, so that it never keeps the application alive. Whoever waits for its work is on another
loop, and may stop waiting at any time: the work is then cancelled, and nobody waits for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar

T = TypeVar("T")
CLOSE_S = 2.0
_TALKATIVE = ("mcp", "httpx2", "httpcore2", "anyio")
"""They log what servers say, and addresses, which may be private."""


class LoopThread:
    """The thread. `run` is for one event-loop thread; so is `close`."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    def run(self, work: Coroutine[Any, Any, T]) -> asyncio.Future[T]:
        """Runs work there; the future is this loop's."""
        loop = self._loop or self._start()
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    def _start(self) -> asyncio.AbstractEventLoop:
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.CRITICAL)
        self._loop = asyncio.SelectorEventLoop()  # not the window's kind, whatever that is
        self._thread = threading.Thread(
            target=_run, args=(self._loop,), name="mcp-loop", daemon=True
        )
        self._thread.start()
        return self._loop

    async def close(self) -> None:
        """Ends the loop, waiting a moment for what runs there. Idempotent."""
        loop, thread = self._loop, self._thread
        self._loop = self._thread = None
        if loop is None or thread is None:
            return
        with contextlib.suppress(RuntimeError):
            loop.call_soon_threadsafe(loop.stop)
        await asyncio.to_thread(thread.join, CLOSE_S)


def _run(loop: asyncio.AbstractEventLoop) -> None:
    asyncio.set_event_loop(loop)
    try:
        loop.run_forever()
        tasks = asyncio.all_tasks(loop)
        for task in tasks:
            task.cancel()
        gathered = asyncio.gather(*tasks, return_exceptions=True)
        with contextlib.suppress(TimeoutError):
            loop.run_until_complete(_within(gathered))
        loop.run_until_complete(loop.shutdown_asyncgens())
    finally:
        loop.close()


async def _within(gathered: asyncio.Future[list[Any]]) -> None:
    async with asyncio.timeout(CLOSE_S / 2):
        await gathered
