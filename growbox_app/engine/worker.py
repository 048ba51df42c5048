"""The engine process's loop: one thread decodes, one thread reads the pipe.

Owns the request queue. Priorities: control, then the foreground (chat, counting, query embedding, KV), then judging and
writing, then passage embedding, then warming; long passage jobs let higher ones in between batches, so indexing never runs beside a
decoding chat model. A running `Warm` gives way at once to anything the user may be waiting for: it is cut short, and what it
has decoded stays. Only passages wait for it, or one long book would keep every conversation cold. A running `Judge` gives way
to the foreground as fast, and goes on with its candidate afterwards; a `Write` begins again.
Cancel reaches a waiting request by dropping it and a running one by `Backend.abort`. When the pipe ends (the application
died) the reader thread ends the process at once, also in the middle of a prefill. Holds no truth: a crash loses nothing.
"""

from __future__ import annotations

import heapq
import itertools
import os
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Protocol

import msgspec

from growbox_app.engine import protocol as p


class Backend(Protocol):
    """What decodes. Two implementations: llama.cpp (`host.py`) and the tests' scripted one."""

    def load(self, request: p.Load, send: Callable[[p.Answer], None]) -> p.DoneLoad:
        """Loads the models. Raises EngineFault."""
        ...

    def work(
        self, request: p.Request, send: Callable[[p.Answer], None], breathe: Callable[[], None]
    ) -> p.Answer:
        """Answers any other request. `breathe` is called where higher requests may run in between."""
        ...

    def abort(self, on: bool) -> None:
        """Makes the running native call return soon (or lifts that). Thread-safe."""
        ...


_PRIORITY: dict[type, int] = {
    p.Load: 0,
    p.Stats: 0,
    p.Count: 1,
    p.Measure: 1,
    p.Chat: 1,
    p.SaveKv: 1,
    p.RestoreKv: 1,
    p.Judge: 2,
    p.Write: 2,
    p.Warm: 4,
}
_PASSAGES = 3
_GIVES_WAY: dict[type, int] = {
    p.Judge: _PRIORITY[p.Judge],
    p.Write: _PRIORITY[p.Write],
    p.Warm: _PASSAGES,
}


def priority_of(request: p.Request) -> int:
    """0 is served first."""
    if isinstance(request, p.Embed):
        return 1 if request.kind == "query" else _PASSAGES
    return _PRIORITY.get(type(request), 0)


class Worker:
    """Serves one pipe with one backend until shutdown."""

    def __init__(self, pipe: Connection, backend: Backend) -> None:
        self._pipe = pipe
        self._backend = backend
        self._lock = threading.Condition()
        self._queue: list[tuple[int, int, p.Request]] = []
        self._order = itertools.count()
        self._running: list[p.Request] = []
        self._cancelled: set[int] = set()
        self._ending = False
        self._send_lock = threading.Lock()

    def run(self) -> None:
        """Blocks until shutdown."""
        threading.Thread(target=self._read, name="pipe-reader", daemon=True).start()
        while True:
            with self._lock:
                self._lock.wait_for(lambda: self._queue or self._ending)
                if self._ending:
                    return
                request = self._take()
            self._serve(request)

    # -- reader thread ------------------------------------------------------------------------
    def _read(self) -> None:
        try:
            while True:
                self._accept(p.decode_request(self._pipe.recv_bytes()))
        except (EOFError, OSError, msgspec.DecodeError):
            # The application is gone. Nothing here is worth saving, and a native call may not return for
            # seconds, so the process ends without asking it.
            os._exit(0)

    def _accept(self, request: p.Request) -> None:
        with self._lock:
            if isinstance(request, p.Shutdown):
                self._ending = True
                self._backend.abort(True)
            elif isinstance(request, p.Cancel):
                self._cancel(request.target)
            else:
                entry = (priority_of(request), next(self._order), request)
                heapq.heappush(self._queue, entry)
                if priority_of(request) < self._gives_way():
                    self._backend.abort(True)
            self._lock.notify_all()

    def _gives_way(self) -> int:
        """What is more urgent than this cuts the running request short; 0: nothing does."""
        return _GIVES_WAY.get(type(self._running[-1]), 0) if self._running else 0

    def _cancel(self, target: int) -> None:
        known = [*map(_id, self._running), *(_id(entry[2]) for entry in self._queue)]
        if target in known:
            self._cancelled.add(target)
        if self._running and _id(self._running[-1]) == target:
            self._backend.abort(True)

    # -- decoding thread ----------------------------------------------------------------------
    def _take(self) -> p.Request:
        """Pops the most urgent request and marks it running, in one step under the lock: no cancel falls between.

        It must not find the abort that made room for it.
        """
        self._backend.abort(False)
        request = heapq.heappop(self._queue)[2]
        self._running.append(request)
        return request

    def _serve(self, request: p.Request) -> None:
        request_id = _id(request)
        try:
            if request_id in self._cancelled:
                raise p.EngineFault("cancelled")
            answer = self._work(request)
        except p.EngineFault as fault:
            answer = p.Failed(
                id=request_id, code=fault.code, fields=fault.fields, detail=fault.detail
            )
        finally:
            with self._lock:
                self._running.remove(request)
                self._cancelled.discard(request_id)
                self._backend.abort(False)
        self._send(answer)

    def _work(self, request: p.Request) -> p.Answer:
        if isinstance(request, p.Load):
            return self._backend.load(request, self._send)
        return self._backend.work(request, self._send, lambda: self._breathe(request))

    def _breathe(self, request: p.Request) -> None:
        """Serves what is more urgent than `request`; raises when `request` itself was cancelled meanwhile."""
        while True:
            with self._lock:
                if _id(request) in self._cancelled or self._ending:
                    raise p.EngineFault("cancelled")
                if not self._queue or self._queue[0][0] >= priority_of(request):
                    return
                urgent = self._take()
            self._serve(urgent)

    def _send(self, answer: p.Answer) -> None:
        with self._send_lock:
            try:
                self._pipe.send_bytes(p.encode(answer))
            except OSError:
                os._exit(0)


def _id(request: p.Request) -> int:
    return request.id if not isinstance(request, p.Cancel | p.Shutdown) else -1


def prepare_child() -> None:
    """Makes this process a child that ends with its parent and not by the terminal's Ctrl-C.

    Ctrl-C goes to the whole group; the parent decides what it means. On Linux the kernel kills this process when the parent
    dies, even if the reader thread cannot run; the pipe's end is what all platforms rely on.
    """
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if sys.platform != "linux":
        return
    import ctypes

    pr_set_pdeathsig = 1
    ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL, 0, 0, 0)
