"""The async door to the memory engine: one storage thread, a priority queue, and the driver of request generators.

Owns the storage thread; every `memory` object lives and dies on it. Each step of a generator runs there; what it asks for
(embeddings, verdicts, texts) is awaited outside, so the thread never waits for a model. A crash leaves what the engine committed.

Source: design section 3.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import queue
import threading
from collections.abc import Awaitable, Callable
from enum import IntEnum
from typing import TYPE_CHECKING, Any, Protocol, TypeVar, cast

from growbox_app.problems import guarded
from memory.errors import EngineClosed
from memory.requests import (
    Judgement,
    Matrix,
    NeedEmbeddings,
    NeedText,
    NeedVerdicts,
    Operation,
    Reply,
    Request,
    Written,
    Yield,
)

if TYPE_CHECKING:  # imported on the storage thread: a third of a second, most of it numpy
    from memory.engine import MemoryEngine

T = TypeVar("T")


class Priority(IntEnum):
    """Order of service on the storage thread; lower first."""

    TURN = 0
    PANEL = 1
    BACKGROUND = 2


class Oracle(Protocol):
    """Answers what a generator asks for; None means unknown and teaches nothing."""

    async def embed(self, request: NeedEmbeddings) -> Matrix | None:
        """float32[len(texts), dimension], L2-normalised."""
        ...

    async def judge(self, request: NeedVerdicts) -> Judgement | None:
        """One verdict per candidate."""
        ...

    async def write(self, request: NeedText) -> Written | None:
        """One text per field."""
        ...


class _Finished:
    def __init__(self, value: object) -> None:
        self.value = value


class MemoryService:
    """Runs calls on the storage thread and gives their results back on the event loop."""

    def __init__(self, oracle: Oracle) -> None:
        self._oracle = oracle
        self._loop = asyncio.get_running_loop()
        self._queue: queue.PriorityQueue[tuple[int, int, Callable[[], None] | None]] = (
            queue.PriorityQueue()
        )
        self._order = itertools.count()
        self._thread = threading.Thread(target=self._serve, name="storage", daemon=True)
        self._thread.start()
        self._engine: MemoryEngine | None = None

    async def open(self, factory: Callable[[], MemoryEngine]) -> None:
        """Opens the engine on the storage thread.

        Raises:
            MemoryEngineError: what `MemoryEngine.open` raises.
        """
        self._engine = await self._submit(Priority.TURN, factory)

    def call(
        self, work: Callable[[MemoryEngine], T], priority: Priority = Priority.TURN
    ) -> Awaitable[T]:
        """Runs `work(engine)` on the storage thread."""
        return self._submit(priority, lambda: work(self._opened()))

    async def for_face(self, work: Callable[[MemoryEngine], T]) -> T:
        """The same for a person who looks on or changes something, behind the turn.

        Raises:
            ProblemError: the memory could not do it.
        """
        return await guarded(self.call(work, Priority.PANEL))

    async def drive(
        self,
        operation: Callable[[MemoryEngine], Operation[T]],
        priority: Priority = Priority.TURN,
    ) -> T:
        """Runs a request generator to its end.

        Cancelling the awaiting task closes the generator on the storage thread.
        """
        generator = await self.call(operation, priority)
        reply: Reply = None
        try:
            while True:
                step = await self._submit(priority, _stepper(generator, reply))
                if isinstance(step, _Finished):
                    return cast("T", step.value)
                reply = await self._answer(step)
        finally:
            self._post(priority, generator.close)

    async def close(self) -> None:
        """Closes the engine after everything queued before, and ends the thread. Idempotent."""
        if not self._thread.is_alive():
            return
        engine, self._engine = self._engine, None
        if engine is not None:
            await self._submit(Priority.BACKGROUND, engine.close)
        self._queue.put((Priority.BACKGROUND + 1, next(self._order), None))
        await asyncio.to_thread(self._thread.join)

    async def _answer(self, request: Request) -> Reply:
        match request:
            case NeedEmbeddings():
                return await self._oracle.embed(request)
            case NeedVerdicts():
                return await self._oracle.judge(request)
            case NeedText():
                return await self._oracle.write(request)
            case Yield():
                return None

    def _opened(self) -> MemoryEngine:
        if self._engine is None:
            raise EngineClosed("the memory is not open")
        return self._engine

    def _post(self, priority: Priority, work: Callable[[], object]) -> None:
        def run() -> None:
            work()

        self._queue.put((priority, next(self._order), run))

    def _submit(self, priority: Priority, work: Callable[[], T]) -> asyncio.Future[T]:
        future: asyncio.Future[T] = self._loop.create_future()

        def run() -> None:
            try:
                result = work()
            except BaseException as error:  # noqa: BLE001 - handed to whoever awaits
                self._tell(future, error=error)
            else:
                self._tell(future, result=result)

        self._queue.put((priority, next(self._order), run))
        return future

    def _tell(
        self,
        future: asyncio.Future[Any],
        *,
        result: object = None,
        error: BaseException | None = None,
    ) -> None:
        def deliver() -> None:
            if future.done():
                return
            if error is not None:
                future.set_exception(error)
            else:
                future.set_result(result)

        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody awaits any more
            self._loop.call_soon_threadsafe(deliver)

    def _serve(self) -> None:
        while True:
            work = self._queue.get()[2]
            if work is None:
                return
            work()


def _stepper(generator: Operation[T], reply: Reply) -> Callable[[], Request | _Finished]:
    def step() -> Request | _Finished:
        try:
            return generator.send(reply)
        except StopIteration as stop:
            return _Finished(stop.value)

    return step
