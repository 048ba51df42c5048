"""The executor `task_start`: a command in the background, such as a server or a long build."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from growbox_app.executors.answers import CallFailed, Reason, summary
from growbox_app.executors.base import (
    FULL_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    ParameterKind,
    Plan,
    Risk,
)
from growbox_app.executors.paths import readable_path, root_of
from growbox_app.executors.processes import shell_words
from growbox_app.executors.shell import command_line
from growbox_app.executors.task_board import DoneWhen, TaskBoard

PORT_MAX = 65_535


class TaskStart:
    """Implements `Executor`."""

    name = "task_start"
    description = "Starts a command in the background: a server, a long build."
    parameters: Mapping[str, Parameter] = {
        "command": Parameter(description="one command line", kind=ParameterKind.TEXT),
        "done_when": Parameter(
            description="the sign that it is done",
            required=False,
            choices=tuple(DoneWhen),
        ),
        "target": Parameter(description="that file or port", required=False),
    }
    risk = Risk.UNKNOWN
    window_min = FULL_WINDOW_MIN

    def __init__(self, board: TaskBoard) -> None:
        """Takes the board."""
        self._board = board

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """The command line, for the policy to take apart."""
        try:
            command = command_line(arguments)
            root = await asyncio.to_thread(root_of, context.workspace)
            sign, target = await asyncio.to_thread(_sign, arguments, context)
        except CallFailed as failure:
            return failure.result()
        return Plan(command=command, cwd=root, detail={"done_when": sign, "target": target})

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Starts it."""
        assert plan.cwd is not None
        try:
            task = self._board.start(
                shell_words(plan.command, plan.cwd),
                plan.cwd,
                shown=plan.command,
                conversation_id=context.conversation_id,
                sign=(DoneWhen(plan.detail["done_when"]), plan.detail["target"]),
            )
        except CallFailed as failure:
            return failure.result()
        text = f"task {task.number} started; task_wait with id {task.number} waits for it"
        return ExecutorResult(
            ok=True,
            text=text,
            summary=summary("task_started", number=task.number),
            outcome=f"task {task.number} started",
        )


def _sign(arguments: Mapping[str, str], context: CallContext) -> tuple[DoneWhen, str]:
    """What to wait for: files by their resolved path, ports as numbers."""
    target = arguments.get("target", "").strip()
    try:
        sign = DoneWhen(arguments.get("done_when", "").strip() or DoneWhen.EXIT)
    except ValueError:
        raise CallFailed("done_when is exit, file or port", Reason.ARGUMENTS) from None
    match sign:
        case DoneWhen.EXIT:
            return sign, ""
        case DoneWhen.FILE:
            if not target:
                raise CallFailed("target must name the file", Reason.ARGUMENTS)
            return sign, str(readable_path(target, context.workspace))
        case DoneWhen.PORT:
            if not (target.isascii() and target.isdecimal() and 0 < int(target) <= PORT_MAX):
                raise CallFailed("target must be the number of the port", Reason.ARGUMENTS)
            return sign, target
