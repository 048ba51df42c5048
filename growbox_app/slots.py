"""Slots for long work: how much of a kind runs at once, and who waits comes next, first come first served.

Event-loop thread. A slot is given back however the work ends; whoever stops waiting loses only his place. Source: seed item M19,
sized to an application with one model: the rest of its kinds have their own limits (background tasks, servers of tools).
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
from collections.abc import AsyncGenerator
from enum import StrEnum


class LoopKind(StrEnum):
    """A kind of work that has slots."""

    ANSWER = "answer"
    """Questions that other programs ask; the user's own in the window do not queue behind them."""
    INGEST = "ingest"
    """Files on their way into the memory, from the window and from commands."""


SLOTS = {LoopKind.ANSWER: 1, LoopKind.INGEST: 1}
WAITING_MAX = 16


class SlotsFull(Exception):
    """So many wait already that this would not be reached in any sensible time."""


class Slots:
    """The slots of one application."""

    def __init__(self) -> None:
        self._running: collections.Counter[LoopKind] = collections.Counter()
        self._queues: dict[LoopKind, collections.deque[asyncio.Future[None]]] = {
            kind: collections.deque() for kind in LoopKind
        }

    @contextlib.asynccontextmanager
    async def queued(self, kind: LoopKind) -> AsyncGenerator[None, None]:
        """Waits for a slot, and holds it.

        Raises:
            SlotsFull: too many wait.
        """
        await self._take(kind)
        try:
            yield
        finally:
            self._give_back(kind)

    def waiting(self, kind: LoopKind) -> int:
        """How many wait."""
        return len(self._queues[kind])

    async def _take(self, kind: LoopKind) -> None:
        waiting = self._queues[kind]
        if self._running[kind] < SLOTS[kind] and not waiting:
            self._running[kind] += 1
            return
        if len(waiting) >= WAITING_MAX:
            raise SlotsFull
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in waiting:
                waiting.remove(turn)
            elif turn.done() and not turn.cancelled():
                self._give_back(kind)  # it was his a moment ago
            raise

    def _give_back(self, kind: LoopKind) -> None:
        """Hands the slot to who waits longest: it is never free in between."""
        waiting = self._queues[kind]
        while waiting:
            turn = waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                return
        self._running[kind] -= 1
