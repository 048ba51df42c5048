"""The user's view of the background tasks: implements `growbox_app.task_face.BackgroundTasks` over the board of the executors.

Event-loop thread; stopping works off it. While a task runs it is looked at twice a second, otherwise nothing happens here. A crash
leaves nothing: the tasks end with the process (`growbox_app/executors/processes.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from growbox_app.executors.task_board import DoneWhen, Task, TaskBoard
from growbox_app.task_face import BackgroundTask, TaskOutput, TasksChanged, TaskState
from growbox_app.tasks import TaskGroup
from memory.ports import Clock
from memory.values import ConversationId

LOOK_S = 0.5


class TaskRoom:
    """Lists tasks, shows what they say, stops them; `tell` hears of every change."""

    def __init__(
        self, board: TaskBoard, clock: Clock, tell: Callable[[TasksChanged], None]
    ) -> None:
        self._board, self._clock, self._tell = board, clock, tell
        self._began_ms: dict[int, int] = {}
        self._said: tuple[tuple[TaskState, int | None], ...] = ()
        self._work = TaskGroup()
        self._watcher: asyncio.Task[None] | None = None
        board.changed = self._changed

    def listed(self) -> tuple[BackgroundTask, ...]:
        """See `BackgroundTasks.listed`."""
        return tuple(self._shown(task) for task in reversed(self._board.after(0)))

    def output(self, number: int) -> TaskOutput:
        """See `BackgroundTasks.output`."""
        task = self._find(number)
        if task is None:
            return TaskOutput()
        head, left_out, tail = task.command.output.parts()
        return TaskOutput(head=head, left_out=left_out, tail=tail)

    def stop(self, number: int) -> None:
        """See `BackgroundTasks.stop`."""
        task = self._find(number)
        if task is not None:
            self._work.start(f"stop task {number}", self._board.stop_gently(task))

    def stop_all(self) -> None:
        """See `BackgroundTasks.stop_all`."""
        for task in self._board.after(0):
            self.stop(task.number)

    async def forget(self, conversation_id: ConversationId) -> None:
        """Ends what a conversation has started and takes it off the list; returns when nothing of it runs."""
        await self._board.forget(conversation_id)

    async def close(self) -> None:
        """Looks and tells no more, and ends what still runs. Idempotent."""
        self._board.changed = lambda: None
        await self._work.cancel_all()
        await asyncio.to_thread(self._board.close)

    def _find(self, number: int) -> Task | None:
        return next((task for task in self._board.after(0) if task.number == number), None)

    def _shown(self, task: Task) -> BackgroundTask:
        return BackgroundTask(
            number=task.number,
            conversation_id=task.conversation_id,
            command=task.words,
            folder=task.root,
            began_at_ms=self._began_ms[task.number],
            seconds=task.seconds or task.command.seconds,
            state=_state(task),
            code=task.command.code(),
            port=_port(task),
        )

    def _changed(self) -> None:
        now_ms = self._clock.now_ms()
        # Those the board has forgotten go from here, too.
        self._began_ms = {
            task.number: self._began_ms.get(task.number, now_ms) for task in self._board.after(0)
        }
        self._said = self._states()
        self._tell(TasksChanged())
        if self._watcher is None or self._watcher.done():
            self._watcher = self._work.start("watch tasks", self._watch())

    def _states(self) -> tuple[tuple[TaskState, int | None], ...]:
        return tuple((_state(task), _port(task)) for task in self._board.after(0))

    async def _watch(self) -> None:
        while not all(state.is_over for state, _port in self._said):
            await asyncio.sleep(LOOK_S)
            found = self._states()
            if found != self._said:
                self._said = found
                self._tell(TasksChanged())


def _state(task: Task) -> TaskState:
    if task.over():
        return TaskState.STOPPED if task.stopped else TaskState.ENDED
    return TaskState.STOPPING if task.stopped else TaskState.RUNNING


def _port(task: Task) -> int | None:
    return int(task.target) if task.ready and task.done_when is DoneWhen.PORT else None
