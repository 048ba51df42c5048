"""Background tasks, played by a script."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from growbox_app.task_face import BackgroundTask, TaskOutput, TasksChanged, TaskState
from memory.values import ConversationId


class ScriptedTasks:
    """Implements `growbox_app.task_face.BackgroundTasks`. A task that is stopped is *stopping* until `end` is called."""

    def __init__(self, tell: Callable[[TasksChanged], None]) -> None:
        self._tell = tell
        self.tasks: dict[int, BackgroundTask] = {}
        self.outputs: dict[int, TaskOutput] = {}
        self.asked: list[int] = []

    def begin(
        self, command: str, conversation_id: ConversationId, *, began_at_ms: int, seconds: float = 5
    ) -> int:
        """Another task; its number."""
        number = len(self.tasks) + 1
        self.tasks[number] = BackgroundTask(
            number=number,
            conversation_id=conversation_id,
            command=command,
            folder=Path("/home/ada/growbox"),
            began_at_ms=began_at_ms,
            seconds=seconds,
            state=TaskState.RUNNING,
        )
        self._tell(TasksChanged())
        return number

    def say(self, number: int, head: str, *, left_out: int = 0, tail: str = "") -> None:
        """What a task has said so far."""
        self.outputs[number] = TaskOutput(head=head, left_out=left_out, tail=tail)

    def listen(self, number: int, port: int) -> None:
        """A task answers on a port."""
        self._change(replace(self.tasks[number], port=port))

    def end(self, number: int, code: int) -> None:
        """A task is over."""
        task = self.tasks[number]
        ended = TaskState.STOPPED if task.state is TaskState.STOPPING else TaskState.ENDED
        self._change(replace(task, state=ended, code=code))

    def _change(self, task: BackgroundTask) -> None:
        self.tasks[task.number] = task
        self._tell(TasksChanged())

    def listed(self) -> tuple[BackgroundTask, ...]:
        return tuple(self.tasks[number] for number in sorted(self.tasks, reverse=True))

    def output(self, number: int) -> TaskOutput:
        return self.outputs.get(number, TaskOutput())

    def stop(self, number: int) -> None:
        self.asked.append(number)
        if not self.tasks[number].state.is_over:
            self._change(replace(self.tasks[number], state=TaskState.STOPPING))

    def stop_all(self) -> None:
        for number, task in self.tasks.items():
            if not task.state.is_over:
                self.stop(number)
