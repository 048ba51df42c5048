"""Background work of the application: digesting new memories, and saving the KV image when idle.

Event-loop thread. Digesting runs whenever there is something to digest and the engine answers; an outage is answered by
waiting for the next event, never by a busy loop. Source: design 3 "Background is really background", 4.3, 4.6.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging

from growbox_app.api import AppEvent, EnginePhase, MemoryChanged, StatusChanged
from growbox_app.engine.kv_files import KvFiles
from growbox_app.engine.supervisor import EngineSupervisor
from growbox_app.memory_service import MemoryService, Priority
from growbox_app.tasks import TaskGroup
from memory.errors import MemoryEngineError
from memory.events import NodeRecorded

_LOG = logging.getLogger(__name__)

KV_IDLE_S = 60.0
RETRY_S = 5.0
"""While work is left but cannot go on (vector host restarting), look again this often."""


class Background:
    """The idle hands of one application."""

    def __init__(
        self, memory: MemoryService, engine: EngineSupervisor, kv: KvFiles, tasks: TaskGroup
    ) -> None:
        self._memory = memory
        self._engine = engine
        self._kv = kv
        self._tasks = tasks
        self._work = asyncio.Event()
        self._settled = asyncio.Event()
        self._kv_timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Starts digesting what an earlier run left."""
        self._work.set()
        self._tasks.start("digest", self._digest())

    def wake(self, event: AppEvent) -> None:
        """Listener: new nodes and a ready engine mean work."""
        if isinstance(event, MemoryChanged):
            if any(isinstance(change, NodeRecorded) for change in event.events):
                self._work.set()
        elif isinstance(event, StatusChanged) and self._engine.status.phase is EnginePhase.READY:
            self._work.set()

    def turn_ended(self) -> None:
        """Saves the warm context after a minute of quiet."""
        if self._kv_timer is not None:
            self._kv_timer.cancel()
        loop = asyncio.get_running_loop()
        self._kv_timer = loop.call_later(
            KV_IDLE_S, lambda: self._tasks.start("kv-save", self._kv.save())
        )

    async def settle(self, seconds: float) -> None:
        """Waits until nothing is left to digest, at most so long: a short-lived process leaves its memory indexed."""
        self._settled.clear()
        self._work.set()
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._settled.wait()

    def stop(self) -> None:
        """Forgets the timer; tasks are cancelled by their group."""
        if self._kv_timer is not None:
            self._kv_timer.cancel()

    async def _digest(self) -> None:
        while True:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(RETRY_S):
                    await self._work.wait()
            self._work.clear()
            self._settled.clear()
            try:
                while await self._memory.drive(lambda engine: engine.digest(), Priority.BACKGROUND):
                    pass
            except (
                MemoryEngineError
            ):  # a full disk: nothing is lost, and RETRY_S paces the next try
                _LOG.warning("digesting stopped", exc_info=True)
            if not self._work.is_set():
                self._settled.set()
