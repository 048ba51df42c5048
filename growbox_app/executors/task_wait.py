"""The executor `task_wait`: waits for a background task and shows the end of its output, or ends it."""

from __future__ import annotations

from collections.abc import Mapping

from growbox_app.executors.answers import CallFailed, number, truth
from growbox_app.executors.base import (
    FULL_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    ParameterKind,
    Plan,
    Risk,
)
from growbox_app.executors.task_board import TaskBoard

SECONDS_DEFAULT, SECONDS_MAX = 60, 600


class TaskWait:
    """Implements `Executor`."""

    name = "task_wait"
    description = "Waits until a background task is done and shows its output."
    parameters: Mapping[str, Parameter] = {
        "id": Parameter(description="number of the task", kind=ParameterKind.INTEGER),
        "seconds": Parameter(
            description="at most, 60 if left out", kind=ParameterKind.INTEGER, required=False
        ),
        "stop": Parameter(
            description="true: end the task now", kind=ParameterKind.BOOLEAN, required=False
        ),
    }
    risk = Risk.SAFE
    window_min = FULL_WINDOW_MIN

    def __init__(self, board: TaskBoard) -> None:
        """Takes the board."""
        self._board = board

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """Which task; it can only be one of this conversation."""
        try:
            wanted = number(arguments, "id", 0)
            seconds = min(max(number(arguments, "seconds", SECONDS_DEFAULT), 0), SECONDS_MAX)
            self._board.find(wanted, context.conversation_id)
        except CallFailed as failure:
            return failure.result()
        stop = "true" if truth(arguments, "stop") else "false"
        return Plan(detail={"id": str(wanted), "seconds": str(seconds), "stop": stop})

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Waits, or ends it."""
        try:
            task = self._board.find(int(plan.detail["id"]), context.conversation_id)
        except CallFailed as failure:
            return failure.result()
        if plan.detail["stop"] == "true":
            self._board.stop(task)
        else:
            seconds = int(plan.detail["seconds"])
            await self._board.wait(task, seconds=seconds, cancelled=context.cancelled)
        over = task.command.code() is not None
        if over:
            await task.command.read_out()
        hint = "" if over or task.ready else "; not done yet, wait again or go on"
        head = f"task {task.number} {task.state()}"
        failed = over and not task.stopped and task.command.code() != 0
        return ExecutorResult(
            ok=not failed,
            text=f"{head}{hint}\n{task.output()}",
            summary=task.line(),
            outcome=head,
        )
