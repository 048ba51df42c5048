"""The arbiter: who may use the one background mind.

Three classes: foreground > sleep > flywheel. Invariants: at most one background call runs, and none while the foreground is
there; a running background call is not pre-empted by another one; a waiting call of a higher class bars those of lower ones;
within a class the first to come is the first served; the foreground never waits – it cancels what runs. Cancelling a waiting or
a running call gives its place on. Event-loop thread; holds no truth.

Source: design 4.6 "Arbiter"; seed items G26 and G27.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from enum import IntEnum
from typing import Any, TypeVar

from growbox_app.tasks import TaskGroup

T = TypeVar("T")


class Claim(IntEnum):
    """Classes of background work; lower ones go first."""

    SLEEP = 1
    FLYWHEEL = 2


class Interrupted(Exception):
    """The foreground came, and the background call ended where it was. What it had done stays done."""


@dataclass(slots=True, eq=False)
class _Waiting:
    claim: Claim
    order: int
    granted: asyncio.Future[None]


class Arbiter:
    """Hands out the background mind."""

    def __init__(self) -> None:
        self._tasks = TaskGroup()
        self._waiting: list[_Waiting] = []
        self._order = 0
        self._held = False
        self._running: asyncio.Task[Any] | None = None
        self._foreground = 0

    @property
    def foreground(self) -> bool:
        """Whether somebody waits for the model right now."""
        return self._foreground > 0

    @property
    def busy(self) -> bool:
        """Whether a background call runs or is about to."""
        return self._held

    def foreground_began(self) -> None:
        """Nothing runs in the background from now on; what runs is cancelled at once."""
        self._foreground += 1
        if self._running is not None:
            self._running.cancel()

    def foreground_ended(self) -> None:
        """One who waited has been served."""
        self._foreground -= 1
        self._grant()

    @contextlib.contextmanager
    def in_foreground(self) -> Iterator[None]:
        """The two around a piece of work."""
        self.foreground_began()
        try:
            yield
        finally:
            self.foreground_ended()

    async def run(self, claim: Claim, work: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Runs `work` when it is its turn.

        Raises:
            Interrupted: the foreground came while it ran.
        """
        await self._turn(claim)
        task = self._running = self._tasks.start(f"rest {claim.name.lower()}", work())
        if self.foreground:  # it came between the grant and now
            task.cancel()
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            ours = asyncio.current_task()
            if ours is not None and ours.cancelling():
                task.cancel()
                await asyncio.wait({task})
                raise
            raise Interrupted from None
        finally:
            self._running = None
            self._held = False
            self._grant()

    async def close(self) -> None:
        """Cancels what runs and waits for its end."""
        await self._tasks.cancel_all()

    async def _turn(self, claim: Claim) -> None:
        """Waits for the grant; a cancel behind the grant gives it on."""
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        mine = _Waiting(claim, self._order, future)
        self._order += 1
        self._waiting.append(mine)
        self._grant()
        try:
            await future
        except asyncio.CancelledError:
            if future.done() and not future.cancelled():
                self._held = False
            else:
                self._waiting.remove(mine)
            self._grant()
            raise

    def _grant(self) -> None:
        """Lets the next one run, if one may."""
        if self._held or self.foreground or not self._waiting:
            return
        first = min(self._waiting, key=lambda it: (it.claim, it.order))
        self._waiting.remove(first)
        self._held = True
        first.granted.set_result(None)
