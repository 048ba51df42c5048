"""Runs asyncio on the Qt event loop; the only file that imports qasync.

The loop owns a few worker threads for `run_in_executor`: the default of qasync would start ten QThreads. Signals that ask the program
to end (Ctrl-C, a session manager's SIGTERM) become an ordinary call on the loop.
"""

from __future__ import annotations

import asyncio
import signal
import sys
from collections.abc import Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

from PySide6.QtWidgets import QApplication
from qasync import QEventLoop

WORKERS = 4
Result = TypeVar("Result")


def new_event_loop(application: QApplication) -> asyncio.AbstractEventLoop:
    """An asyncio loop driven by the application's event loop."""
    loop: asyncio.AbstractEventLoop = QEventLoop(application)
    loop.set_default_executor(ThreadPoolExecutor(WORKERS, thread_name_prefix="window"))
    return loop


def run(application: QApplication, work: Coroutine[object, object, Result]) -> Result:
    """Runs `work` to its end on the Qt loop, then closes the loop."""
    loop = new_event_loop(application)
    asyncio.set_event_loop(loop)
    try:
        return loop.run_until_complete(work)
    finally:
        loop.run_until_complete(loop.shutdown_asyncgens())
        loop.close()
        asyncio.set_event_loop(None)


def on_end_signal(callback: Callable[[], None]) -> None:
    """Calls `callback` on the loop when the system asks the program to end.

    A terminal that closes asks too, unless it was told not to (nohup). Windows asks by closing the window, which needs nothing here.
    """
    if sys.platform == "win32":
        return
    loop = asyncio.get_running_loop()
    wanted = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        wanted.append(signal.SIGHUP)
    for number in wanted:
        loop.add_signal_handler(number, callback)
