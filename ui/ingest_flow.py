"""Adds dropped and chosen files to the memory, one wish after the other, and shows it in the line over the input.

Event-loop thread. What was added before a stop, a failure or the end of the window stays; the same wish again goes on from there.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path

from PySide6.QtCore import QObject, Signal

from growbox_app.api import Assistant, ProblemError, Progress
from growbox_app.tasks import TaskGroup
from memory.values import ProjectId
from ui.panels.ingest_progress import IngestBar

BOOKS = frozenset({".pdf", ".docx"})
ATTACHED_FILES_MAX = 5
ATTACHED_BYTES_MAX = 256_000
"""A larger text would stand in the prompt with its two ends only; in the memory each part of it can be found."""


def belongs_in_memory(paths: Sequence[Path]) -> bool:
    """Whether dropped files are for the memory: a folder, a book, a large file, or many. A few small texts go with the message."""
    return len(paths) > ATTACHED_FILES_MAX or any(_is_for_memory(path) for path in paths)


def is_book(path: Path) -> bool:
    """Whether a file is no plain text, but one that the memory can read."""
    return path.suffix.lower() in BOOKS


def _is_for_memory(path: Path) -> bool:
    try:
        large = path.is_dir() or path.stat().st_size > ATTACHED_BYTES_MAX
    except (OSError, ValueError):
        return False  # attaching it says what is wrong
    return large or is_book(path)


class IngestFlow(QObject):
    """The running ingest and those that wait.

    Signals: `trouble(Problem)`.
    """

    trouble = Signal(object)

    def __init__(
        self,
        assistant: Assistant,
        bar: IngestBar,
        *,
        tasks: TaskGroup,
        project: Callable[[], ProjectId | None],
    ) -> None:
        super().__init__(bar)
        self._assistant = assistant
        self._bar = bar
        self._tasks = tasks
        self._project = project
        self._waiting: list[tuple[tuple[Path, ...], ProjectId | None]] = []
        self._running: asyncio.Task[None] | None = None
        self._open = False
        bar.stop_wanted.connect(self.stop)

    def add(self, paths: Sequence[Path]) -> None:
        """Adds files and folders, after those that are being added; they belong to the project that is open."""
        if not paths:
            return
        self._waiting.append((tuple(paths), self._project()))
        self._next()

    def begin(self) -> None:
        """The memory is open: what was dropped before is added now."""
        self._open = True
        self._next()

    def _next(self) -> None:
        if self._open and self._waiting and self._running is None:
            self._running = self._tasks.start("ingest", self._run())

    def stop(self) -> None:
        """Ends the running one, and drops those that wait."""
        self._waiting.clear()
        task, self._running = self._running, None
        if task is not None:
            task.cancel()

    async def _run(self) -> None:
        try:
            while self._waiting:
                paths, project_id = self._waiting.pop(0)
                self._show(Progress(step="ingest_finding", done=0, total=0, detail="0"))
                report = await self._assistant.ingest(paths, self._show, project_id=project_id)
                self._bar.show_report(report)
        except ProblemError as error:
            self._bar.hide()
            self._waiting.clear()
            self.trouble.emit(error.problem)
        except asyncio.CancelledError:
            self._bar.show_stopped()
            raise
        finally:
            if (
                self._running is asyncio.current_task()
            ):  # not one that began while this one was ending
                self._running = None

    def _show(self, progress: Progress) -> None:
        self._bar.show_progress(progress, len(self._waiting))
