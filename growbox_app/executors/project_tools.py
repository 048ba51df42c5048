"""What an assistant may use in a project: one place that knows them all."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from growbox_app.executors.ask_user import AskUser
from growbox_app.executors.base import Executor
from growbox_app.executors.code_outline import CodeOutline
from growbox_app.executors.code_search import CodeSearch
from growbox_app.executors.confinement import Sandbox
from growbox_app.executors.file_append import FileAppend
from growbox_app.executors.file_edit import FileEdit
from growbox_app.executors.file_list import FileList
from growbox_app.executors.file_read import FileRead
from growbox_app.executors.file_write import FileWrite
from growbox_app.executors.finish import Finish
from growbox_app.executors.git_commit import GitCommit
from growbox_app.executors.git_diff import GitDiff
from growbox_app.executors.git_status import GitStatus
from growbox_app.executors.memory_note import MemoryNote
from growbox_app.executors.shell import Shell
from growbox_app.executors.task_board import TaskBoard
from growbox_app.executors.task_list import TaskList
from growbox_app.executors.task_start import TaskStart
from growbox_app.executors.task_wait import TaskWait
from growbox_app.memory_service import MemoryService


def project_tools(
    memory: MemoryService, board: TaskBoard, sandbox: Sandbox, *, paused: Callable[[], bool]
) -> Sequence[Executor]:
    """New ones for one application; background tasks live on `board`."""
    return (
        AskUser(),
        CodeOutline(),
        CodeSearch(),
        FileAppend(),
        FileEdit(),
        FileList(),
        FileRead(),
        FileWrite(),
        Finish(),
        GitCommit(),
        GitDiff(),
        GitStatus(),
        MemoryNote(memory, paused=paused),
        Shell(sandbox),
        TaskList(board),
        TaskStart(board),
        TaskWait(board),
    )
