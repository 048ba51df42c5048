"""From the storage thread to listeners on the event loop: coalesced, in order, at most ~30 batches a second.

A listener that raises is logged and dropped: one of the four places that may catch every exception.
"""

from __future__ import annotations

import asyncio
import collections
import contextlib
import logging
import threading
from collections.abc import Callable

from growbox_app.api import AppEvent, MemoryChanged, Unsubscribe
from memory.events import Event

_LOG = logging.getLogger(__name__)
INTERVAL_S = 1 / 30
EVENTS_MAX = 1000
"""More than this between two batches: the oldest detail is dropped; panels pull snapshots anyway."""


class EventFan:
    """Implements `memory.events.EventSink`; delivers on the loop it was made on."""

    def __init__(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._listeners: list[Callable[[AppEvent], None]] = []
        self._lock = threading.Lock()
        self._waiting: collections.deque[Event] = collections.deque(maxlen=EVENTS_MAX)
        self._scheduled = False

    def emit(self, event: Event, /) -> None:
        """Any thread. O(1)."""
        with self._lock:
            self._waiting.append(event)
            if self._scheduled:
                return
            self._scheduled = True
        with contextlib.suppress(RuntimeError):  # the loop is closed
            self._loop.call_soon_threadsafe(self._loop.call_later, INTERVAL_S, self._flush)

    def subscribe(self, listener: Callable[[AppEvent], None]) -> Unsubscribe:
        """Adds a listener; the result removes it again."""
        self._listeners.append(listener)

        def unsubscribe() -> None:
            with contextlib.suppress(ValueError):
                self._listeners.remove(listener)

        return unsubscribe

    def tell(self, event: AppEvent) -> None:
        """Delivers one event now, on the loop thread."""
        for listener in list(self._listeners):
            try:
                listener(event)
            except Exception:  # noqa: BLE001 - event fan-out: one of the four places
                _LOG.exception("a listener failed and was removed")
                self._listeners.remove(listener)

    def _flush(self) -> None:
        with self._lock:
            events = tuple(self._waiting)
            self._waiting.clear()
            self._scheduled = False
        if events:
            self.tell(MemoryChanged(events=events))
