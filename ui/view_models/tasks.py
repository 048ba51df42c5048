"""The words of the background tasks. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from growbox_app.task_face import BackgroundTask, TaskOutput, TaskState
from growbox_app.text import tr
from ui.view_models import wording
from ui.view_models.display import broken_lines, one_line, visible

COMMAND_CHARACTERS = 200


def running(tasks: Sequence[BackgroundTask]) -> str:
    """How many run, for the line at the foot; empty while there is none at all."""
    count = sum(not task.state.is_over for task in tasks)
    if count:
        return wording.counted("tasks.running", count)
    return tr("tasks.none_running") if tasks else ""


def command(task: BackgroundTask) -> str:
    """The command on one line, with every character that would show nothing."""
    return one_line(visible(task.command), COMMAND_CHARACTERS)


def state(task: BackgroundTask) -> str:
    """How far it is, for how long, and how it ended."""
    time = wording.duration(task.seconds)
    if task.state is TaskState.ENDED and task.code is not None and task.code < 0:
        return tr("tasks.signal", time=time, signal=-task.code)
    words = tr(f"tasks.state_{task.state}", time=time, code=task.code)
    if task.state is TaskState.RUNNING and task.port is not None:
        return f"{words} · {tr('tasks.port', port=task.port)}"
    return words


def where(task: BackgroundTask, titles: tuple[str, str]) -> str:
    """The conversation and its project; the folder, where neither is known."""
    return " · ".join(visible(part) for part in titles if part) or visible(task.folder.name)


def output(task: BackgroundTask, said: TaskOutput) -> str:
    """The whole command, the beginning and the end of what it has said, and how much is left out between them."""
    parts = [f"$ {task.command}", said.head or tr("tasks.no_output")]
    if said.left_out:
        parts += [tr("tasks.left_out", size=wording.size(said.left_out)), said.tail]
    return broken_lines(visible("\n".join(parts)))
