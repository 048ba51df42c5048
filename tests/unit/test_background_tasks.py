"""Background tasks as the user sees them, with real processes: what is told, what is listed, and that a stop leaves nothing."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import psutil
import pytest

from growbox_app import task_room
from growbox_app.assistant import GrowBox
from growbox_app.clock import SystemClock
from growbox_app.executors import processes
from growbox_app.executors.processes import Command, shell_words
from growbox_app.executors.task_board import DoneWhen, Task, TaskBoard
from growbox_app.task_face import BackgroundTask, TaskOutput, TasksChanged, TaskState
from growbox_app.task_room import TaskRoom
from memory.values import ConversationId
from tests.fakes.application import run_application, scripted
from tests.unit.executor_world import all_gone, working_in

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands for a Unix shell")
PYTHON = sys.executable
WAIT_S = 10


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    folder = (tmp_path / "project").resolve()
    folder.mkdir()
    yield folder
    assert all_gone(folder), working_in(folder)


async def until(holds: Callable[[], bool]) -> None:
    async with asyncio.timeout(WAIT_S):
        while not holds():
            await asyncio.sleep(0.01)


class World:
    """A board and the user's view of it. Made on the loop."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.board = TaskBoard()
        self.told = 0
        self.room = TaskRoom(self.board, SystemClock(), self._hear)

    def _hear(self, event: TasksChanged) -> None:
        assert event == TasksChanged()
        self.told += 1

    def start(
        self,
        command: str,
        sign: tuple[DoneWhen, str] = (DoneWhen.EXIT, ""),
        *,
        conversation: str = "c",
    ) -> Task:
        """What `task_start` does."""
        return self.board.start(
            shell_words(command, self.root),
            self.root,
            shown=command,
            conversation_id=ConversationId(conversation),
            sign=sign,
        )

    def task(self, number: int) -> BackgroundTask:
        return next(task for task in self.room.listed() if task.number == number)

    async def said(self, number: int, word: str) -> None:
        await until(lambda: word in self.room.output(number).head)


def run_world(root: Path, body: Callable[[World], Awaitable[None]]) -> None:
    async def main() -> None:
        world = World(root)
        try:
            await body(world)
        finally:
            await world.room.close()

    asyncio.run(main())


def test_a_task_is_told_of_and_listed_with_what_it_says(root: Path) -> None:
    async def body(world: World) -> None:
        before_ms = SystemClock().now_ms()
        world.start("echo first; sleep 300")
        world.start("sleep 301")
        assert world.told == 2
        await world.said(1, "first")
        second, first = world.room.listed()
        assert (first.number, second.number) == (1, 2)
        assert (first.command, first.folder) == ("echo first; sleep 300", root)
        assert (first.state, first.code, first.port) == (TaskState.RUNNING, None, None)
        assert first.conversation_id == "c"
        assert before_ms <= first.began_at_ms <= second.began_at_ms <= SystemClock().now_ms()
        assert 0 <= first.seconds < WAIT_S
        assert world.room.output(2) == TaskOutput()

    run_world(root, body)


def test_an_end_by_itself_is_told_without_anybody_waiting_for_it(root: Path) -> None:
    async def body(world: World) -> None:
        world.start(f"sleep 300 & {ON_A_SIGN}; echo done; exit 4")
        assert world.told == 1
        (root / "go").touch()
        await until(lambda: world.told == 2)
        task = world.task(1)
        assert (task.state, task.code) == (TaskState.ENDED, 4)
        await until(lambda: world.room.output(1).head == "done")
        await until(lambda: not working_in(root))  # what it had left running
        seconds = task.seconds
        await asyncio.sleep(0.02)
        assert world.task(1).seconds == seconds

    run_world(root, body)


def test_one_that_ended_at_once_is_told_too_and_looking_goes_on_for_the_next(root: Path) -> None:
    async def body(world: World) -> None:
        world.start("true")
        await until(lambda: world.task(1).state is TaskState.ENDED)
        await asyncio.sleep(2 * task_room.LOOK_S)
        before = world.told
        world.start(ON_A_SIGN)
        assert world.told == before + 1
        (root / "go").touch()
        await until(lambda: world.told == before + 2)
        assert {task.state for task in world.room.listed()} == {TaskState.ENDED}

    run_world(root, body)


def test_a_port_that_answers_is_told(root: Path) -> None:
    async def body(world: World) -> None:
        server = await asyncio.start_server(lambda _reader, writer: writer.close(), "127.0.0.1")
        port = server.sockets[0].getsockname()[1]
        task = world.start("sleep 300", (DoneWhen.PORT, str(port)))
        assert world.task(1).port is None
        assert await task.look()
        await until(lambda: world.told == 2)
        assert world.task(1).port == port
        server.close()
        await server.wait_closed()

    run_world(root, body)


ON_A_SIGN = "until [ -e go ]; do sleep 0.02; done"
STUBBORN = "trap '' TERM; echo up; (trap '' TERM; sleep 300 & sleep 300; true) & wait; sleep 300"
LEFT_THE_GROUP = (
    f'{PYTHON} -c "import os, subprocess, sys, time; '
    "subprocess.Popen(['sleep', '300'], start_new_session=True); print('up', flush=True); time.sleep(300)\""
)
OF_A_CHILD = 'bash -c "bash -c \'bash -c \\"echo up; sleep 300; true\\"; true\'; true"; true'


@pytest.mark.parametrize("command", [STUBBORN, LEFT_THE_GROUP, OF_A_CHILD])
def test_a_stop_ends_the_whole_tree_within_two_seconds(root: Path, command: str) -> None:
    async def body(world: World) -> None:
        world.start(command)
        await world.said(1, "up")
        await until(lambda: len(working_in(root)) >= 3)
        before = time.monotonic()
        world.room.stop(1)
        assert world.board.after(0)[0].command.code() is None  # it returns at once
        await until(lambda: world.told >= 2)
        assert world.task(1).state in (TaskState.STOPPING, TaskState.STOPPED)
        await until(lambda: world.task(1).state is TaskState.STOPPED and not working_in(root))
        assert time.monotonic() - before < 2

    run_world(root, body)


def test_a_stop_lets_a_command_tidy_up(root: Path) -> None:
    async def body(world: World) -> None:
        world.start("trap 'echo tidied; exit 0' TERM; echo up; sleep 300 & wait")
        await world.said(1, "up")
        world.room.stop(1)
        await world.said(1, "tidied")
        await until(lambda: world.task(1).state is TaskState.STOPPED)

    run_world(root, body)


def test_the_child_of_a_child_that_was_killed_leaves_the_rest_to_be_stopped(root: Path) -> None:
    async def body(world: World) -> None:
        world.start(
            "bash -c 'bash -c \"echo inner \\$\\$; sleep 300; true\"; echo on; sleep 300; true'; true"
        )
        await world.said(1, "inner")
        inner = int(world.room.output(1).head.split()[1])
        psutil.Process(inner).kill()
        await world.said(1, "on")
        assert world.task(1).state is TaskState.RUNNING
        world.room.stop(1)
        await until(lambda: world.task(1).state is TaskState.STOPPED and not working_in(root))

    run_world(root, body)


def test_a_second_stop_and_one_of_nothing_change_nothing(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(task_room, "LOOK_S", 3600.0)  # only what is done is told, not what is seen

    async def body(world: World) -> None:
        world.start("sleep 300")
        world.room.stop(1)
        world.room.stop(1)
        await until(lambda: world.task(1).state is TaskState.STOPPED)
        await until(lambda: world.told == 3)  # begun, being stopped, stopped
        world.room.stop(1)
        world.room.stop(7)
        assert world.room.output(7) == TaskOutput()
        world.start("exit 3")
        await until(lambda: world.task(2).state is TaskState.ENDED)
        world.room.stop(2)
        await asyncio.sleep(0.05)
        assert (world.task(2).state, world.task(2).code) == (TaskState.ENDED, 3)

    run_world(root, body)


def test_all_are_stopped_and_those_that_were_over_stay_as_they_were(root: Path) -> None:
    async def body(world: World) -> None:
        world.start("exit 5")
        await until(lambda: world.task(1).state is TaskState.ENDED)
        for number in (2, 3, 4):
            world.start(STUBBORN)
            await world.said(number, "up")
        world.room.stop_all()
        await until(lambda: all(task.state.is_over for task in world.room.listed()))
        assert [task.state for task in world.room.listed()] == [TaskState.STOPPED] * 3 + [
            TaskState.ENDED
        ]
        await until(lambda: not working_in(root))

    run_world(root, body)


def test_the_tasks_of_a_forgotten_conversation_end_and_leave_the_list(root: Path) -> None:
    async def body(world: World) -> None:
        for command in (STUBBORN, "echo up; exit 5", STUBBORN):
            world.start(command, conversation="gone")
        world.start(STUBBORN, conversation="kept")
        for number in (1, 2, 3, 4):
            await world.said(number, "up")
        await until(lambda: world.task(2).state is TaskState.ENDED)
        world.room.stop(3)
        await until(lambda: world.task(3).state is TaskState.STOPPING)
        told = world.told
        await world.room.forget(ConversationId("gone"))
        assert [task.number for task in world.room.listed()] == [4]
        assert world.task(4).state is TaskState.RUNNING
        assert world.told > told
        assert world.room.output(1) == TaskOutput()
        world.board.stop(world.board.after(3)[0])
        await until(lambda: not working_in(root))
        told = world.told
        await world.room.forget(ConversationId("gone"))
        assert world.told == told

    run_world(root, body)


def test_a_stop_by_the_assistant_is_told(root: Path) -> None:
    async def body(world: World) -> None:
        task = world.start("sleep 300")
        world.board.stop(task)
        assert world.told == 2
        assert world.task(1).state is TaskState.STOPPED

    run_world(root, body)


def test_the_middle_of_a_long_output_is_counted(root: Path) -> None:
    async def body(world: World) -> None:
        world.start("printf 'begin\\n'; yes 0123456789 | head -c 200000; printf 'the end'")
        await until(lambda: world.task(1).state is TaskState.ENDED)
        await until(lambda: world.room.output(1).tail.endswith("the end"))
        said = world.room.output(1)
        assert said.head.startswith("begin\n0123456789\n")
        assert said.left_out == len("begin\n") + 200_000 + len("the end") - 2 * (
            processes.OUTPUT_BYTES_MAX // 2
        )

    run_world(root, body)


def test_ending_a_command_that_is_over_touches_nobody_who_has_its_number_now(root: Path) -> None:
    async def ended() -> Command:
        command = Command(shell_words("true", root), root)
        await until(lambda: command.code() is not None)
        command.end()
        return command

    command = asyncio.run(ended())
    bystander = subprocess.Popen(["sleep", "300"])
    try:
        command._process.pid = os.getpid()
        command.end()
        with pytest.raises(subprocess.TimeoutExpired):
            bystander.wait(0.1)
    finally:
        bystander.kill()
        bystander.wait()


def test_closing_ends_what_runs_and_tells_nothing_more(root: Path) -> None:
    async def main() -> None:
        world = World(root)
        world.start(STUBBORN)
        await world.said(1, "up")
        told = world.told
        world.room.stop(1)
        await world.room.close()
        await world.room.close()
        assert world.told == told
        await until(lambda: not working_in(root))

    asyncio.run(main())


def test_tasks_end_with_the_application(tmp_path: Path, root: Path) -> None:
    told: list[object] = []

    async def body(app: GrowBox) -> None:
        app.subscribe(told.append)
        app._board.start(
            shell_words(STUBBORN, root),
            root,
            shown="a server",
            conversation_id=ConversationId("c"),
            sign=(DoneWhen.EXIT, ""),
        )
        await until(lambda: "up" in app.background_tasks.output(1).head)
        (task,) = app.background_tasks.listed()
        assert (task.command, task.state) == ("a server", TaskState.RUNNING)

    run_application(lambda: scripted(tmp_path), body)
    assert TasksChanged() in told
    assert all_gone(root)
