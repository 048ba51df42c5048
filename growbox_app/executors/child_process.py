"""One piece of work in a child process of its own: what cannot be interrupted in a thread, or may crash natively, happens there.

Regular expressions hold the interpreter lock for as long as they like, and so do parsers. Frames are bytes over a pipe; nothing of
the user's is pickled. The child ends when its pipe ends, and is killed when the caller stops asking.
"""

from __future__ import annotations

import contextlib
import logging
import multiprocessing
import os
import sys
import threading
from collections.abc import Callable, Generator, Iterator
from multiprocessing.connection import Connection

_POLL_S = 0.1
_JOIN_S = 2.0
_FRAME, _END = b"f", b"e"

Work = Callable[[bytes], Iterator[bytes]]
"""A function of a module: a request in, frames out."""


class ChildFailed(Exception):
    """The child died."""


class ChildTooSlow(Exception):
    """The time was up; the frames that came are all there will be."""


def frames(
    work: Work,
    request: bytes,
    *,
    seconds: float,
    stopped: Callable[[], bool],
    clock: Callable[[], float],
) -> Generator[bytes, None, None]:
    """What `work(request)` yields in a child. Blocks between frames; ends early when `stopped()`.

    Raises:
        ChildTooSlow: it took longer than `seconds`.
        ChildFailed: it died.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=True)
    process = context.Process(
        target=_serve, args=(theirs, work, request), name="growbox-work", daemon=True
    )
    process.start()
    theirs.close()
    deadline = clock() + seconds
    try:
        while not stopped():
            left = deadline - clock()
            if left <= 0:
                raise ChildTooSlow
            if ours.poll(min(left, _POLL_S)):
                frame = ours.recv_bytes()
                if frame[:1] == _END:
                    return
                yield frame[1:]
    except (EOFError, OSError) as error:
        raise ChildFailed from error
    finally:
        process.kill()
        process.join(_JOIN_S)
        with contextlib.suppress(ValueError):  # the system has not let go of it yet
            process.close()
        ours.close()


def _serve(connection: Connection[bytes, bytes], work: Work, request: bytes) -> None:
    """Entry of the child."""
    _be_humble()
    threading.Thread(target=_end_with, args=(connection,), daemon=True).start()
    with contextlib.suppress(OSError):
        for frame in work(request):
            connection.send_bytes(_FRAME + frame)
        connection.send_bytes(_END)


def _end_with(connection: Connection[bytes, bytes]) -> None:
    """The pipe's end ends the process, whatever the main thread does."""
    with contextlib.suppress(EOFError, OSError):
        connection.recv_bytes()
    os._exit(0)


def _be_humble() -> None:
    """Deaf to the terminal's Ctrl-C, silent, behind the model in the queue for the processor, and no core left of a crash."""
    import signal

    signal.signal(signal.SIGINT, signal.SIG_IGN)
    logging.disable(logging.CRITICAL)
    if sys.platform != "win32":
        import resource

        with contextlib.suppress(OSError):
            os.nice(5)
        with contextlib.suppress(OSError, ValueError):
            resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
