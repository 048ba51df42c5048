"""Turns application events into Qt signals, at most ~30 batches a second.

Lives on the event-loop thread, like the events. Signals say what kind of thing changed; receivers then pull snapshots, so a merged or
missed event can never leave a wrong screen.
"""

from __future__ import annotations

from PySide6.QtCore import QObject, QTimer, Signal

from growbox_app.api import (
    AppEvent,
    Assistant,
    ConversationsChanged,
    DeepSearchChanged,
    MemoryChanged,
    RaiseWindow,
    RestChanged,
    StatusChanged,
    ToolsChanged,
)
from growbox_app.rest.schedule import RestStatus
from growbox_app.task_face import TasksChanged
from memory.events import Event
from memory.values import NodeId

BATCH_MS = 33


class Bridge(QObject):
    """Signals of one assistant.

    Signals: `status_changed()`, `conversations_changed()`, `memory_changed(tuple[Event, ...])`, `search_changed(DeepSearchChanged)`,
    `rest_changed(RestStatus)`, `tools_changed()`, `tasks_changed()`, `raise_requested()`.
    """

    status_changed = Signal()
    conversations_changed = Signal()
    memory_changed = Signal(object)
    search_changed = Signal(object)
    rest_changed = Signal(object)
    tools_changed = Signal()
    tasks_changed = Signal()
    raise_requested = Signal()

    def __init__(self, assistant: Assistant, parent: QObject | None = None) -> None:
        super().__init__(parent)
        self._status = False
        self._conversations = False
        self._tools = False
        self._tasks = False
        self._events: list[Event] = []
        self._searches: dict[NodeId, DeepSearchChanged] = {}
        self._rests: list[RestStatus] = []
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(BATCH_MS)
        self._timer.timeout.connect(self._flush)
        self._unsubscribe = assistant.subscribe(self._take)

    def close(self) -> None:
        """Stops listening."""
        self._unsubscribe()
        self._timer.stop()

    def _take(self, event: AppEvent) -> None:
        match event:
            case StatusChanged():
                self._status = True
            case ConversationsChanged():
                self._conversations = True
            case ToolsChanged():
                self._tools = True
            case TasksChanged():
                self._tasks = True
            case MemoryChanged():
                self._events.extend(event.events)
            case DeepSearchChanged():
                self._searches[event.search.answer_id] = event
            case RestChanged():
                self._take_rest(event.status)
            case RaiseWindow():
                self.raise_requested.emit()
                return
        if not self._timer.isActive():
            self._timer.start()

    def _take_rest(self, status: RestStatus) -> None:
        """Of many reports within one phase the last is enough; that a phase began or ended is never lost."""
        if self._rests and self._rests[-1].phase is status.phase:
            self._rests.pop()
        self._rests.append(status)

    def _flush(self) -> None:
        status, self._status = self._status, False
        conversations, self._conversations = self._conversations, False
        events, self._events = tuple(self._events), []
        searches, self._searches = self._searches, {}
        rests, self._rests = self._rests, []
        tools, self._tools = self._tools, False
        tasks, self._tasks = self._tasks, False
        if status:
            self.status_changed.emit()
        if tools:
            self.tools_changed.emit()
        if tasks:
            self.tasks_changed.emit()
        if conversations:
            self.conversations_changed.emit()
        if events:
            self.memory_changed.emit(events)
        for rest in rests:
            self.rest_changed.emit(rest)
        for change in searches.values():
            self.search_changed.emit(change)
