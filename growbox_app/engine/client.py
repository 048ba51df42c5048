"""The application's end of the engine process.

Owns the child process, its pipe and a reader thread; every public method runs on the event-loop thread. A request is
answered, fails with `EngineFault`, or – when the process died – with `EngineDied`. The client restarts nothing by itself:
`growbox_app.engine.supervisor` decides.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import multiprocessing
import threading
from collections.abc import AsyncGenerator, Callable
from multiprocessing.connection import Connection
from multiprocessing.process import BaseProcess
from typing import TypeAlias, TypeVar

from growbox_app.engine import protocol as p

Target: TypeAlias = Callable[[Connection], None]
END_S = 2.0
"""How long the process may take to end when asked; then it is killed. It holds nothing worth waiting for."""

T = TypeVar("T", bound=p.Answer)


class EngineDied(Exception):
    """The engine process ended while a request was open. `exit_code` is negative for a signal."""

    def __init__(self, exit_code: int | None) -> None:
        super().__init__(f"engine process ended with {exit_code}")
        self.exit_code = exit_code


class EngineClient:
    """One running engine process."""

    def __init__(self, target: Target, *, on_death: Callable[[int | None], None]) -> None:
        """Starts the process (does not block on it).

        Args:
            target: entry of the child process; importable, takes the pipe.
            on_death: called once on the loop thread when the process ends without having been asked to.
        """
        self._loop = asyncio.get_running_loop()
        self._on_death = on_death
        self._ids = itertools.count(1)
        self._open: dict[int, asyncio.Queue[p.Answer | EngineDied]] = {}
        self._ending = False
        context = multiprocessing.get_context("spawn")
        self._pipe, child = context.Pipe()
        self._process: BaseProcess = context.Process(
            target=target, args=(child,), name="growbox-engine", daemon=True
        )
        self._process.start()
        child.close()
        self._reader = threading.Thread(target=self._read, name="engine-reader", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int | None:
        """Process id of the engine."""
        return self._process.pid

    @property
    def alive(self) -> bool:
        """False once the process has ended."""
        return not self._ending and self._process.is_alive()

    def next_id(self) -> int:
        """An id for a request."""
        return next(self._ids)

    async def request(self, request: p.Request, kind: type[T]) -> T:
        """Sends a request and waits for its final answer, ignoring progress.

        Raises:
            EngineFault: the engine refused it.
            EngineDied: the process ended.
        """
        async with contextlib.aclosing(self.stream(request)) as answers:
            async for answer in answers:
                if isinstance(answer, kind):
                    return answer
        raise EngineDied(self._process.exitcode)

    async def stream(self, request: p.Request) -> AsyncGenerator[p.Answer, None]:
        """Sends a request and yields every frame up to and with the final one.

        Leaving early (also by cancellation) cancels the request in the engine.

        Raises:
            EngineFault: the engine refused it.
            EngineDied: the process ended.
        """
        request_id: int = request.id  # type: ignore[union-attr]
        queue: asyncio.Queue[p.Answer | EngineDied] = asyncio.Queue()
        self._open[request_id] = queue
        finished = False
        try:
            self._send(request)
            while not finished:
                answer = await queue.get()
                if isinstance(answer, EngineDied):
                    finished = True
                    raise answer
                finished = not isinstance(answer, p.LoadProgress | p.PrefillProgress | p.Delta)
                if isinstance(answer, p.Failed):
                    raise p.EngineFault(answer.code, answer.detail, **answer.fields)
                yield answer
        finally:
            self._open.pop(request_id, None)
            if not finished:
                self.cancel(request_id)

    def cancel(self, request_id: int) -> None:
        """Asks the engine to stop a request; its stream still ends with a final frame."""
        with contextlib.suppress(EngineDied):
            self._send(p.Cancel(target=request_id))

    def kill(self) -> None:
        """Ends the process the hard way."""
        self._process.kill()

    async def close(self) -> None:
        """Ends the process and waits for it. Idempotent."""
        if not self._ending:
            self._ending = True
            with contextlib.suppress(OSError):
                self._pipe.send_bytes(p.encode(p.Shutdown()))
        await asyncio.to_thread(self._wait_or_kill)
        # The process is gone, so the reader ends by itself; a pipe that is closed under it raises what no reader expects.
        await asyncio.to_thread(self._reader.join, END_S)
        self._pipe.close()
        await asyncio.to_thread(self._reader.join)

    def _wait_or_kill(self) -> None:
        self._process.join(END_S)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()

    def _send(self, request: p.Request) -> None:
        try:
            self._pipe.send_bytes(p.encode(request))
        except OSError as error:
            raise EngineDied(self._process.exitcode) from error

    # -- reader thread ------------------------------------------------------------------------
    def _read(self) -> None:
        try:
            while True:
                answer = p.decode_answer(self._pipe.recv_bytes())
                self._loop.call_soon_threadsafe(self._deliver, answer)
        except (EOFError, OSError):
            self._process.join(END_S)
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            self._loop.call_soon_threadsafe(self._died)

    def _deliver(self, answer: p.Answer) -> None:
        queue = self._open.get(answer.id)
        if queue is not None:
            queue.put_nowait(answer)

    def _died(self) -> None:
        exit_code = self._process.exitcode
        for queue in self._open.values():
            queue.put_nowait(EngineDied(exit_code))
        if not self._ending:
            self._ending = True
            self._on_death(exit_code)
