"""The executor `task_list`: the background tasks of this conversation."""

from __future__ import annotations

from collections.abc import Mapping

from growbox_app.executors.answers import cut_line, summary
from growbox_app.executors.base import (
    FULL_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    Plan,
    Risk,
)
from growbox_app.executors.task_board import TaskBoard

COMMAND_CHARACTERS_MAX = 80


class TaskList:
    """Implements `Executor`."""

    name = "task_list"
    description = "Lists the background tasks."
    parameters: Mapping[str, Parameter] = {}
    risk = Risk.SAFE
    window_min = FULL_WINDOW_MIN

    def __init__(self, board: TaskBoard) -> None:
        """Takes the board."""
        self._board = board

    async def plan(
        self,
        arguments: Mapping[str, str],  # noqa: ARG002 - the protocol's
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> Plan | ExecutorResult:
        """Touches nothing."""
        return Plan()

    async def run(
        self,
        plan: Plan,  # noqa: ARG002 - the protocol's
        context: CallContext,
    ) -> ExecutorResult:
        """One line for each."""
        tasks = self._board.of(context.conversation_id)
        lines = []
        for task in tasks:
            await task.look()
            words = cut_line(" ".join(task.words.split()), COMMAND_CHARACTERS_MAX)
            lines.append(f"{task.number} {task.state()}: {words}")
        text = "\n".join(lines) or "no background task was started"
        return ExecutorResult(ok=True, text=text, summary=summary("tasks", count=len(tasks)))
