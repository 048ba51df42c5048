"""Background tasks as a face sees them: values, and what the window may ask for.

Everything here is called on the event-loop thread; nothing here blocks it. Snapshots are pulled when `TasksChanged` was told.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from memory.values import ConversationId


class TaskState(StrEnum):
    """How far a background task is."""

    RUNNING = "running"
    STOPPING = "stopping"
    STOPPED = "stopped"
    """Ended from outside, by the user or by the assistant."""
    ENDED = "ended"
    """By itself, with an exit code."""

    @property
    def is_over(self) -> bool:
        """Nothing of it runs any more."""
        return self in (TaskState.STOPPED, TaskState.ENDED)


@dataclass(frozen=True, slots=True, kw_only=True)
class BackgroundTask:
    """A command that was started to run on. `seconds` is how long it has run; `port` where it has been seen to listen."""

    number: int
    conversation_id: ConversationId
    command: str
    folder: Path
    began_at_ms: int
    seconds: float
    state: TaskState
    code: int | None = None
    port: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOutput:
    """The beginning and the end of what a task has said; `left_out` bytes between them are not kept."""

    head: str = ""
    left_out: int = 0
    tail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TasksChanged:
    """A background task began, is being stopped, listens or is over; pull `background_tasks.listed()`."""


class BackgroundTasks(Protocol):
    """The background tasks of this run of the application; they end with it."""

    def listed(self) -> tuple[BackgroundTask, ...]:
        """Those that run and the newest that are over, newest first."""
        ...

    def output(self, number: int) -> TaskOutput:
        """What a task has said so far; nothing for one that is not listed."""
        ...

    def stop(self, number: int) -> None:
        """Ends a task with everything it started, within a second or so; returns at once. One that is over or not listed stays so."""
        ...

    def stop_all(self) -> None:
        """Ends all that run."""
        ...
