"""Supervised background tasks: references are kept, errors surface, everything is cancelled on exit.

The only place that creates asyncio tasks, and one of the four places that may catch every exception.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from typing import Any

_LOG = logging.getLogger(__name__)


class TaskGroup:
    """The tasks of one owner, on one event loop."""

    def __init__(self, on_error: Callable[[str, BaseException], None] | None = None) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._on_error = on_error

    def start(self, name: str, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        """Runs `work` in the background under a name that shows in errors."""
        task = asyncio.get_running_loop().create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._finished)
        return task

    def _finished(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if task.cancelled():
            return
        error = task.exception()
        if error is not None:
            _LOG.error("task %s failed", task.get_name(), exc_info=error)
            if self._on_error is not None:
                self._on_error(task.get_name(), error)

    async def cancel_all(self) -> None:
        """Cancels every task and waits until each has ended."""
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
