"""The executor `shell`: one command line in the project's folder, with a time limit and no input.

Each call is a shell of its own: a changed folder or variable is forgotten. The text for the model begins with what became of the
command, and says what to do when it was ended.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

from growbox_app.executors.answers import CallFailed, Reason, number, summary
from growbox_app.executors.base import (
    CORE_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    ParameterKind,
    Plan,
    Risk,
)
from growbox_app.executors.confinement import Sandbox
from growbox_app.executors.paths import root_of
from growbox_app.executors.processes import Command, Ended, Ending, shell_words

SECONDS_DEFAULT, SECONDS_MAX = 60, 600
COMMAND_CHARACTERS_MAX = 8_000


class Shell:
    """Implements `Executor`."""

    name = "shell"
    description = "Runs a command line in the project folder and shows its output."
    parameters: Mapping[str, Parameter] = {
        "command": Parameter(description="one command line", kind=ParameterKind.TEXT),
        "seconds": Parameter(
            description="time limit, 60 if left out", kind=ParameterKind.INTEGER, required=False
        ),
    }
    risk = Risk.UNKNOWN
    window_min = CORE_WINDOW_MIN

    def __init__(self, sandbox: Sandbox | None = None) -> None:
        """Takes the sandbox; without one commands are not confined."""
        self._sandbox = sandbox or Sandbox()

    @property
    def is_confined(self) -> bool:
        """Whether commands run in the sandbox; the policy judges them by that."""
        return self._sandbox.is_active

    async def plan(
        self, arguments: Mapping[str, str], context: CallContext
    ) -> Plan | ExecutorResult:
        """The command line, for the policy to take apart."""
        try:
            command = command_line(arguments)
            seconds = min(max(number(arguments, "seconds", SECONDS_DEFAULT), 1), SECONDS_MAX)
            root = await asyncio.to_thread(root_of, context.workspace)
        except CallFailed as failure:
            return failure.result()
        return Plan(command=command, cwd=root, detail={"seconds": str(seconds)})

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Runs it to its end."""
        assert plan.cwd is not None
        seconds = int(plan.detail["seconds"])
        try:
            words = self._sandbox.confine(shell_words(plan.command, plan.cwd), plan.cwd)
            running = Command(words, plan.cwd)
        except CallFailed as failure:
            return failure.result()
        ended = await running.finish(seconds=seconds, cancelled=context.cancelled)
        return _result(ended, seconds)


def command_line(arguments: Mapping[str, str]) -> str:
    """The command of a call.

    Raises:
        CallFailed: it is empty, too long, or holds what no shell takes.
    """
    command = arguments.get("command", "").strip()
    if not command:
        raise CallFailed("command is empty", Reason.ARGUMENTS)
    if len(command) > COMMAND_CHARACTERS_MAX:
        raise CallFailed(
            "the command is too long; write a script with file_write and run that", Reason.TOO_LONG
        )
    if "\0" in command:
        raise CallFailed("a command cannot hold a NUL character", Reason.ARGUMENTS)
    try:
        command.encode()
    except UnicodeEncodeError as error:
        raise CallFailed(
            "the command holds half a character; write it again", Reason.ARGUMENTS
        ) from error
    return command


def _result(ended: Ended, limit: int) -> ExecutorResult:
    head, told, outcome = _words(ended, limit)
    done = ended.ending is Ending.EXIT and ended.code == 0
    text = f"{head}\n{ended.output or '(no output)'}"
    return ExecutorResult(ok=done, text=text, summary=told, outcome=outcome)


def _words(ended: Ended, limit: int) -> tuple[str, str, str]:
    """What became of it: for the model, for the user, and to be remembered."""
    match ended.ending:
        case Ending.EXIT:
            head, seconds = f"exit code {ended.code}", f"{ended.seconds:.1f}"
            told = summary("exit", code=ended.code, seconds=seconds)
            return head, told, f"{head}, {seconds} s"
        case Ending.TIME:
            head = f"ended after {limit} s, not finished; use task_start for long work"
            return head, Reason.TIME.line(), f"time limit of {limit} s"
        case Ending.STOPPED:
            head = "stopped by the user"
            return head, Reason.STOPPED.line(), head
        case Ending.FLOOD:
            head = "ended: endless output; limit it, for example with head"
            return head, Reason.FLOOD.line(), "endless output"
