"""An event sink that remembers."""

from __future__ import annotations

from typing import TypeVar

from memory.events import Event

E = TypeVar("E")


class EventRecorder:
    """Implements `memory.events.EventSink`."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    def emit(self, event: Event, /) -> None:
        self.events.append(event)

    def of(self, kind: type[E]) -> list[E]:
        """Those of one kind, in order."""
        return [event for event in self.events if isinstance(event, kind)]
