"""What goes on after a call has ended: the background tasks it started, and the checkpoint that is finished again for them.

A task counts as done by its own sign (design 5.2): a build when it exits, a server when it answers. Until then what changes in the project
is the call's doing; after that a server may run for hours beside a user who edits, and his work must not be taken for the agent's.
Event-loop thread. A crash leaves the state at the call's end; what a task wrote later then counts as somebody else's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from growbox_app.checkpoints import Checkpoints
from growbox_app.executors.task_board import Task, TaskBoard
from growbox_app.tasks import TaskGroup


class Aftermath:
    """Follows the tasks of calls that took a checkpoint."""

    def __init__(self, checkpoints: Checkpoints, board: TaskBoard) -> None:
        self._checkpoints = checkpoints
        self._board = board
        self._followers = TaskGroup()
        self._open: dict[str, tuple[Task, ...]] = {}
        self._following: dict[str, asyncio.Task[None]] = {}
        self._closing = asyncio.Event()

    def newest(self) -> int:
        """The number of the newest task, to be given to `follow` after a call."""
        return self._board.newest

    def follow(self, checkpoint_id: str, *, since: int) -> None:
        """Finishes a checkpoint again when all tasks that came after `since` are done."""
        tasks = self._board.after(since)
        if tasks:
            self._open[checkpoint_id] = tasks
            follower = self._followers.start(
                f"follow {checkpoint_id}", self._follow(checkpoint_id, tasks)
            )
            self._following[checkpoint_id] = follower
            follower.add_done_callback(lambda _: self._following.pop(checkpoint_id, None))

    async def _follow(self, checkpoint_id: str, tasks: Sequence[Task]) -> None:
        for task in tasks:
            await self._board.wait(task, seconds=float("inf"), cancelled=self._closing)
        await self._checkpoints.finish(checkpoint_id)
        self._open.pop(checkpoint_id, None)

    async def settle(self) -> None:
        """Waits (about a second) until the checkpoints are finished whose tasks have all ended.

        A restore before that would take what such a task wrote for somebody else's work.
        """
        due = [
            follower
            for checkpoint_id, follower in self._following.items()
            if all(task.over() for task in self._open.get(checkpoint_id, ()))
        ]
        if due:
            await asyncio.wait(due)

    async def close(self) -> None:
        """Finishes what is still open; the board is closed, so nothing writes any more."""
        self._closing.set()
        await self._followers.cancel_all()
        for checkpoint_id in sorted(self._open):
            await self._checkpoints.finish(checkpoint_id)
        self._open.clear()
