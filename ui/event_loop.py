"""Runs asyncio on the Qt event loop; the only file that imports qasync.

The loop owns a few worker threads for `run_in_executor`: the default of qasync would start ten QThreads. Signals that ask the program
to end (Ctrl-C, a session manager's SIGTERM) become an ordinary call on the loop.
"""

from __future__ import annotations

import asyncio
import os
import signal
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

    Windows asks by closing the window, which needs nothing here.
    """
    if os.name == "nt":
        return
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        loop.add_signal_handler(number, callback)
