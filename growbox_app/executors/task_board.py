"""Commands that run in the background of a conversation: a bounded number, each with a sign by which it counts as done.

Event-loop thread. A task ends with the application (`processes.py`), by `task_wait` with stop, by the user, by itself, or when its
conversation is deleted. Tasks of one conversation are not seen from another; the user sees all (`growbox_app/task_room.py`).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

from growbox_app.executors.answers import CallFailed, Reason, summary
from growbox_app.executors.processes import Command
from memory.values import ConversationId

RUNNING_MAX = 6
KEPT_MAX = 20
"""Tasks that are over, with their output."""
OUTPUT_CHARACTERS_MAX = 4_000
_POLL_FIRST_S, _POLL_S = 0.05, 1.0
_CONNECT_S = 0.5


class DoneWhen(StrEnum):
    """The sign by which a task counts as done."""

    EXIT = "exit"
    FILE = "file"
    PORT = "port"


@dataclass(slots=True, kw_only=True)
class Task:
    """A background command in the folder `root`. `target` is the file or port of `done_when`; `ready` once it was seen."""

    number: int
    conversation_id: ConversationId
    words: str
    root: Path
    command: Command
    done_when: DoneWhen = DoneWhen.EXIT
    target: str = ""
    ready: bool = False
    stopped: bool = False
    seconds: float = field(default=0.0)

    async def look(self) -> bool:
        """Whether it is done or over."""
        if self.over():
            return True
        if not self.ready:
            self.ready = await self._sign()
        return self.ready

    def over(self) -> bool:
        """Whether it runs no more."""
        if self.command.code() is None:
            return False
        if not self.seconds:
            self.seconds = self.command.seconds
            self.command.end()  # what it left running, too
        return True

    async def _sign(self) -> bool:
        match self.done_when:
            case DoneWhen.EXIT:
                return False
            case DoneWhen.FILE:
                return await asyncio.to_thread(Path(self.target).exists)
            case DoneWhen.PORT:
                return await _answers(int(self.target))

    def state(self) -> str:
        """What the model is told of it."""
        code = self.command.code()
        if self.stopped:
            return "stopped"
        if code is not None:
            return f"ended, exit code {code}, after {self.seconds or self.command.seconds:.0f} s"
        sign = f"ready ({self.done_when} {self.target})" if self.ready else "running"
        return f"{sign}, {self.command.seconds:.0f} s"

    def line(self) -> str:
        """What the user is told of it."""
        code = self.command.code()
        seconds = f"{self.seconds or self.command.seconds:.0f}"
        if self.stopped:
            return summary("task_stopped", number=self.number)
        if code is not None:
            return summary("task_ended", number=self.number, code=code, seconds=seconds)
        key = "task_ready" if self.ready else "task_running"
        return summary(key, number=self.number, seconds=seconds)

    def output(self) -> str:
        """The end of what it said."""
        text = self.command.output.text()
        if len(text) <= OUTPUT_CHARACTERS_MAX:
            return text or "(no output)"
        return f"[…]{text[-OUTPUT_CHARACTERS_MAX:]}"


async def _answers(port: int) -> bool:
    """Whether something listens on a port of this machine."""
    for host in ("127.0.0.1", "::1"):
        try:
            async with asyncio.timeout(_CONNECT_S):
                _, writer = await asyncio.open_connection(host, port)
        except OSError:  # refused, and the time-out
            continue
        writer.close()
        return True
    return False


class TaskBoard:
    """The tasks of this application. `changed` hears that one began or was stopped; that one ended by itself is seen by looking."""

    def __init__(self) -> None:
        self.changed: Callable[[], None] = lambda: None
        self._tasks: dict[int, Task] = {}
        self._last = 0

    def start(
        self,
        words: Sequence[str],
        cwd: Path,
        *,
        shown: str,
        conversation_id: ConversationId,
        sign: tuple[DoneWhen, str],
    ) -> Task:
        """Starts a task.

        Raises:
            CallFailed: too many run, or it cannot be started.
        """
        running = [task for task in self._tasks.values() if task.command.code() is None]
        if len(running) >= RUNNING_MAX:
            raise CallFailed(
                f"{RUNNING_MAX} tasks run already; end one with task_wait and stop",
                Reason.TOO_MANY_TASKS,
            )
        self._forget_old()
        command = Command(words, cwd)
        self._last += 1
        task = Task(
            number=self._last,
            conversation_id=conversation_id,
            words=shown,
            root=cwd,
            command=command,
            done_when=sign[0],
            target=sign[1],
        )
        self._tasks[task.number] = task
        self.changed()
        return task

    def _forget_old(self) -> None:
        over = [task for task in self._tasks.values() if task.command.code() is not None]
        for task in over[: max(len(over) - KEPT_MAX, 0)]:
            task.command.end()
            del self._tasks[task.number]

    def find(self, number: int, conversation_id: ConversationId) -> Task:
        """A task of a conversation.

        Raises:
            CallFailed: it has no such task.
        """
        task = self._tasks.get(number)
        if task is None or task.conversation_id != conversation_id:
            numbers = [str(one.number) for one in self.of(conversation_id)]
            there = f"there are {', '.join(numbers)}" if numbers else "none was started"
            raise CallFailed(f"there is no task {number}; {there}", Reason.NO_TASK)
        return task

    def of(self, conversation_id: ConversationId) -> tuple[Task, ...]:
        """The tasks of a conversation, oldest first."""
        return tuple(t for t in self._tasks.values() if t.conversation_id == conversation_id)

    @property
    def newest(self) -> int:
        """The number of the last task; 0 before the first."""
        return self._last

    def after(self, number: int) -> tuple[Task, ...]:
        """The tasks that were started after this one."""
        return tuple(task for task in self._tasks.values() if task.number > number)

    def running_in(self, root: Path) -> Task | None:
        """A task that still runs in a project, the newest."""
        here = (t for t in reversed(self._tasks.values()) if t.root == root)
        return next((task for task in here if task.command.code() is None), None)

    async def wait(self, task: Task, *, seconds: float, cancelled: asyncio.Event) -> None:
        """Waits until a task is done or over, the time is up, or the user stops the waiting."""
        loop = asyncio.get_running_loop()
        deadline, pause = loop.time() + seconds, _POLL_FIRST_S
        while not (await task.look() or cancelled.is_set()):
            left = deadline - loop.time()
            if left <= 0:
                return
            await asyncio.sleep(min(pause, left))
            pause = min(pause * 1.5, _POLL_S)

    def stop(self, task: Task) -> None:
        """Ends a task with everything it started."""
        _end(task)
        self.changed()

    async def stop_gently(self, task: Task) -> None:
        """Ends a task with everything it started, after a moment to tidy up. A second call changes nothing."""
        if task.stopped or task.over():
            return
        task.stopped = True
        self.changed()
        await task.command.stop()
        self.changed()

    async def forget(self, conversation_id: ConversationId) -> None:
        """Ends the tasks of a conversation as `stop_gently` does, and drops them with all that they have said."""
        tasks = self.of(conversation_id)
        await asyncio.gather(*(self.stop_gently(task) for task in tasks))
        for task in tasks:
            _end(task)  # one that somebody else was about to stop, too
            self._tasks.pop(task.number, None)
        if tasks:
            self.changed()

    def close(self) -> None:
        """Ends all tasks. Idempotent; any thread, and `changed` does not hear of it."""
        for task in self._tasks.values():
            _end(task)


def _end(task: Task) -> None:
    if task.command.code() is None:
        task.stopped = True
    task.command.end()
