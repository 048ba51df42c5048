"""shell and the background tasks with real processes: what is kept from them, and that nothing of them is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from growbox_app.executors import processes, task_board
from growbox_app.executors.confinement import Sandbox, bubblewrap, confined
from growbox_app.executors.processes import Command, Output, environment, readable
from growbox_app.executors.shell import Shell
from growbox_app.executors.task_board import TaskBoard
from growbox_app.executors.task_list import TaskList
from growbox_app.executors.task_start import TaskStart
from growbox_app.executors.task_wait import TaskWait
from tests.unit.executor_world import (
    all_gone,
    call,
    called,
    context_of,
    failed,
    planned,
    working_in,
)

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="commands for a Unix shell")
ROOT = Path(__file__).resolve().parents[2]
PYTHON = sys.executable


@pytest.fixture
def root(tmp_path: Path) -> Iterator[Path]:
    folder = (tmp_path / "project 文").resolve()
    folder.mkdir()
    yield folder
    assert all_gone(folder), working_in(folder)


# -- shell --------------------------------------------------------------------------------------


def test_a_command_runs_in_the_project_and_its_output_comes_back(root: Path) -> None:
    (root / "a.txt").write_text("x")
    result = call(Shell(), root, command="pwd; ls; echo wrong >&2; exit 3")
    assert not result.ok
    assert result.text == f"exit code 3\n{root}\na.txt\nwrong"
    assert result.summary.startswith("exit code 3, ")
    assert call(Shell(), root, command="true").text == "exit code 0\n(no output)"


def test_a_command_stands_behind_the_model_in_the_queue_for_the_processor(root: Path) -> None:
    said = call(Shell(), root, command="nice; cat /proc/self/autogroup || true").text.splitlines()
    assert said[1] == "19"
    if Path("/proc/self/autogroup").exists():
        assert said[2].endswith("nice 19")


def test_the_plan_is_the_command_and_the_folder(root: Path) -> None:
    plan = planned(Shell(), root, command="  rm -rf x | cat\n")
    assert (plan.command, plan.cwd) == ("rm -rf x | cat", root)
    assert plan.changes == ()


@pytest.mark.parametrize("command", ["", " \n", "a\0b", "\ud800", "x" * 9_000])
def test_commands_that_no_shell_takes(root: Path, command: str) -> None:
    failed(Shell(), root, command=command)
    assert "no project folder" in failed(Shell(), None, command="ls")


def test_there_is_no_input_to_wait_for(root: Path) -> None:
    assert call(Shell(), root, command="cat; read x; echo [$x]").text == "exit code 0\n[]"


def test_a_command_is_ended_at_its_time_limit_with_all_it_started(root: Path) -> None:
    before = time.monotonic()
    command = "echo begun; trap '' TERM; sleep 300 & (sleep 300; true) & wait"
    result = call(Shell(), root, command=command, seconds="1")
    assert 1 <= time.monotonic() - before < 4
    assert result.text == "ended after 1 s, not finished; use task_start for long work\nbegun"


def test_a_stop_ends_the_group_within_a_second(root: Path) -> None:
    async def run() -> tuple[str, float]:
        context = context_of(root)
        work = called(Shell(), context, command="trap '' TERM INT; sleep 300 | sleep 300; wait")
        async with asyncio.TaskGroup() as group:
            task = group.create_task(work)
            while not working_in(root):
                await asyncio.sleep(0.01)
            begun = time.monotonic()
            context.cancelled.set()
            result = await task
        return result.text, time.monotonic() - begun

    text, seconds = asyncio.run(run())
    assert text.startswith("stopped by the user")
    assert seconds < 1


def test_a_cancelled_turn_leaves_no_process(root: Path) -> None:
    async def run() -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(0.5):
                await called(Shell(), context_of(root), command="sleep 300 & sleep 300")

    asyncio.run(run())


def test_what_a_command_leaves_in_the_background_ends_with_it(root: Path) -> None:
    result = call(Shell(), root, command="sleep 300 & echo started")
    assert result.text == "exit code 0\nstarted"


def test_much_output_is_kept_as_head_and_tail(root: Path) -> None:
    result = call(Shell(), root, command="seq 1 200000; echo end")
    assert result.text.startswith("exit code 0\n1\n2\n3\n")
    assert result.text.endswith("\n200000\nend")
    assert "of 1288899 bytes not shown" in result.text
    assert len(result.text) < processes.OUTPUT_BYTES_MAX + 200


def test_endless_output_is_ended(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(processes, "FLOOD_BYTES_MAX", 1_000_000)
    result = call(Shell(), root, command="yes")
    assert "endless output" in result.text
    assert len(result.text) < processes.OUTPUT_BYTES_MAX + 200


def test_secrets_of_our_environment_are_not_the_commands() -> None:
    given = {
        "PATH": "/bin", "HOME": "/h", "LC_ALL": "C", "JAVA_HOME": "/j", "PYTHONPATH": "/p", "GOPATH": "/g",
        "AWS_SECRET_ACCESS_KEY": "x", "GITHUB_TOKEN": "x", "OPENAI_API_KEY": "x", "DB_PASSWORD": "x", "SSH_AUTH_SOCK": "x",
        "DATABASE_URL": "x", "TOKEN_PATH": "x", "SECRET_HOME": "x", "XDG_RUNTIME_DIR": "x", "GROWBOX_DATA_DIR": "x",
        "XDG_DATA_HOME": "https://me:secret@host/", "BASH_ENV": "x", "LD_PRELOAD": "x", "GIT_DIR": "x",
    }  # fmt: skip
    kept = environment(Path("/project"), given)
    assert {name for name in given if name in kept} == {
        "PATH", "HOME", "LC_ALL", "JAVA_HOME", "PYTHONPATH", "GOPATH",
    }  # fmt: skip


def test_a_command_sees_no_secret(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "sesame")
    assert "sesame" not in call(Shell(), root, command="env; cat /proc/$$/environ").text


@pytest.mark.parametrize(
    ("said", "read"),
    [
        (b"\x1b[31mred\x1b[0m \x1b]0;title\x07plain", "red plain"),
        (b"10%\r50%\r100%\r\ndone\r\n", "100%\ndone"),
        (b"a\x07\x00b\tc", "ab\tc"),
        ("中文".encode()[:-1], "中\ufffd"),
    ],
)
def test_output_is_read_as_on_a_terminal(said: bytes, read: str) -> None:
    assert readable(said) == read


def test_output_counts_what_it_leaves_out() -> None:
    output = Output()
    for number in range(100_000):
        output.add(b"%d\n" % number)
    text = output.text()
    assert text.startswith("0\n1\n")
    assert text.endswith("99998\n99999")
    left = output.total - processes.OUTPUT_BYTES_MAX
    assert f"[… {left} of {output.total} bytes not shown …]" in text


@pytest.mark.crash
def test_commands_end_when_the_application_is_killed(root: Path) -> None:
    source = (
        "import asyncio, sys\n"
        "from pathlib import Path\n"
        "from growbox_app.executors.processes import Command, shell_words\n"
        "async def main():\n"
        f"    root = Path({str(root)!r})\n"
        "    command = Command(shell_words(\"trap '' TERM HUP; sleep 300 & sleep 300\", root), root)\n"
        "    print('begun', flush=True)\n"
        "    await asyncio.sleep(300)\n"
        "asyncio.run(main())\n"
    )
    child = subprocess.Popen([PYTHON, "-c", source], cwd=ROOT, stdout=subprocess.PIPE)
    with child:
        assert child.stdout is not None
        assert child.stdout.readline() == b"begun\n"
        assert working_in(root)
        child.kill()
    assert all_gone(root), "the command outlived the application"


def test_a_confined_command_can_write_only_in_the_project(root: Path, tmp_path: Path) -> None:
    words = confined(["sh", "-c", "x"], root, tool="bwrap", private=(tmp_path, tmp_path / "gone"))
    text = " ".join(words)
    assert f"--tmpfs {tmp_path} " in text
    assert "gone" not in text
    assert text.index("--ro-bind / /") < text.index(f"--bind {root} {root}")
    assert text.index(f"--tmpfs {tmp_path}") < text.index(f"--bind {root} {root}")
    assert "--unshare-net" in words
    assert words[-4:] == ["--", "sh", "-c", "x"]


SANDBOXED = pytest.mark.skipif(
    bubblewrap() is None, reason="bubblewrap is not installed, or may not work here"
)


@SANDBOXED
def test_bubblewrap_holds(root: Path, tmp_path: Path) -> None:
    outside, private = tmp_path / "outside", tmp_path / "private"
    hidden = root / "data"
    for folder in (private, hidden):
        folder.mkdir()
        (folder / "secret").write_text("sesame")
    sandbox = Sandbox((private, hidden))
    shell = Shell(sandbox)
    assert not shell.is_confined
    sandbox.open()
    assert shell.is_confined
    command = f"echo x > {outside}; echo y > inside; cat {private}/secret {hidden}/secret; echo z > $XDG_CACHE_HOME && ls /proc/sys/net/ipv4/conf"
    result = call(shell, root, command=command)
    assert not outside.exists()
    assert (root / "inside").read_text() == "y\n"
    assert "sesame" not in result.text
    assert (hidden / "secret").read_text() == "sesame"
    assert "eth" not in result.text


@SANDBOXED
@pytest.mark.parametrize(
    "command",
    [
        "echo x > .git/hooks/pre-commit",
        "git config core.hooksPath evil",
        "echo '[core]' > .git/config",
        "mv .git other && mkdir .git && cp -r other/* .git && echo x > .git/hooks/pre-commit",
        "rm -rf .git/hooks && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
    ],
)
def test_a_confined_command_plants_nothing_that_git_runs_later(root: Path, command: str) -> None:
    subprocess.run(["git", "init", "-q", "."], cwd=root, check=True)
    before = (root / ".git" / "config").read_bytes()
    sandbox = Sandbox()
    sandbox.open()
    call(Shell(sandbox), root, command=command)
    assert not (root / ".git" / "hooks" / "pre-commit").exists()
    assert (root / ".git" / "config").read_bytes() == before
    result = call(Shell(sandbox), root, command="echo y > new && git add new && git status --short")
    assert result.ok
    assert "A  new" in result.text


@SANDBOXED
def test_a_confined_command_ends_with_everything_it_started(root: Path) -> None:
    sandbox = Sandbox()
    sandbox.open()
    result = call(Shell(sandbox), root, command="sleep 300 & sleep 300", seconds="1")
    assert "not finished" in result.text
    assert all_gone(root)


def test_programs_of_the_project_are_not_found_by_their_bare_name(root: Path) -> None:
    for folder in (root, root / "bin"):
        folder.mkdir(exist_ok=True)
        (folder / "ls").write_text("#!/bin/sh\necho planted\n")
        (folder / "ls").chmod(0o755)
    link = root.parent / "link"
    link.symlink_to(root / "bin")
    path = os.pathsep.join([".", "", "bin", str(root / "bin"), f"{root}/../{root.name}", str(link), "/usr/bin", "/bin"])  # fmt: skip
    found = environment(root, {"PATH": path, "PYTHONPATH": f"{root}/src", "LD_LIBRARY_PATH": "lib:/opt/lib"})  # fmt: skip
    assert found["PATH"] == os.pathsep.join(["/usr/bin", "/bin"])
    assert "PYTHONPATH" not in found
    assert found["LD_LIBRARY_PATH"] == "/opt/lib"
    assert environment(root, {"PATH": str(root)})["PATH"] == os.defpath


def test_the_shell_itself_is_not_the_projects(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("bash", "git"):
        (root / name).write_text("#!/bin/sh\necho planted\n")
        (root / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{root}{os.pathsep}{os.environ['PATH']}")
    assert "planted" not in call(Shell(), root, command="git --version").text


@pytest.mark.parametrize(
    "name",
    ["CDPATH", "BASH_ENV", "BASH_LOADABLES_PATH", "ENV", "PROMPT_COMMAND", "LD_PRELOAD", "LD_AUDIT", "LD_DEBUG_PATH",
     "DYLD_INSERT_LIBRARIES", "DYLD_FALLBACK_LIBRARY_PATH", "GIT_DIR", "GIT_EXEC_PATH", "GIT_CONFIG_HOME", "GIT_SSH_COMMAND"],
)  # fmt: skip
def test_variables_that_turn_a_command_into_another_are_dropped(root: Path, name: str) -> None:
    assert name not in environment(root, {name: "/usr/lib", "PATH": "/bin"})


# -- tasks --------------------------------------------------------------------------------------


def test_a_task_is_started_waited_for_and_listed(root: Path) -> None:
    command = "until [ -e go ]; do sleep 0.02; done; echo done; exit 4"

    async def run() -> list[str]:
        board = TaskBoard()
        context = context_of(root)
        try:
            start = await called(TaskStart(board), context, command=command)
            first = await called(TaskWait(board), context, id="1", seconds="0")
            (root / "go").touch()
            second = await called(TaskWait(board), context, id="1")
            listed = await called(TaskList(board), context)
            other = await called(TaskList(board), context_of(root, conversation="d"))
            stranger = await called(TaskWait(board), context_of(root, conversation="d"), id="1")
            assert (start.ok, first.ok, second.ok, stranger.ok) == (True, True, False, False)
            return [one.text for one in (start, first, second, listed, other, stranger)]
        finally:
            board.close()

    start, first, second, listed, other, stranger = asyncio.run(run())
    assert start == "task 1 started; task_wait with id 1 waits for it"
    assert re.match(r"task 1 running, \d s; not done yet", first)
    assert re.fullmatch(r"task 1 ended, exit code 4, after \d s\ndone", second)
    ended = re.fullmatch(r"1 ended, exit code 4, after \d s: (.*)", listed)
    assert ended is not None
    assert ended[1] == command
    assert other == "no background task was started"
    assert stranger == "there is no task 1; none was started"


@pytest.mark.parametrize("stop", ["false", "true"])
def test_the_last_words_of_a_task_are_told_with_its_end(
    root: Path, monkeypatch: pytest.MonkeyPatch, stop: str
) -> None:
    read, over = Command._read, threading.Event()

    def late(command: Command) -> None:
        over.wait()
        threading.Event().wait(0.2)
        read(command)

    monkeypatch.setattr(Command, "_read", late)

    async def run() -> str:
        board = TaskBoard()
        context = context_of(root)
        command = "echo last words; touch said" + ("; sleep 300" if stop == "true" else "")
        await called(TaskStart(board), context, command=command)
        while not (root / "said").exists():
            await asyncio.sleep(0.01)
        over.set()
        return (await called(TaskWait(board), context, id="1", stop=stop)).text

    assert asyncio.run(run()).endswith("\nlast words")


def test_a_task_is_ready_with_its_file_or_port(root: Path) -> None:
    server = socket.socket()
    server.bind(("127.0.0.1", 0))
    port = str(server.getsockname()[1])

    async def run() -> list[str]:
        board = TaskBoard()
        context = context_of(root)
        try:
            arguments = {"done_when": "port", "target": port}
            await called(TaskStart(board), context, command="sleep 300", **arguments)
            arguments = {"done_when": "file", "target": "out/ready"}
            command = "mkdir out; until [ -e go ]; do sleep 0.02; done; touch out/ready; sleep 300"
            await called(TaskStart(board), context, command=command, **arguments)
            for n in ("1", "2"):
                early = await called(TaskWait(board), context, id=n, seconds="0")
                assert "not done yet" in early.text
            server.listen()
            (root / "go").touch()
            texts = [(await called(TaskWait(board), context, id=n)).text for n in ("1", "2")]
            texts += [
                (await called(TaskWait(board), context, id=n, stop="true")).text for n in ("1", "2")
            ]
            return texts
        finally:
            board.close()

    with server:
        texts = asyncio.run(run())
    assert f"ready (port {port})" in texts[0]
    assert "ready (file" in texts[1]
    assert texts[2].startswith("task 1 stopped")
    assert texts[3].startswith("task 2 stopped")


@pytest.mark.parametrize(
    "arguments",
    [
        {"command": ""},
        {"command": "ls", "done_when": "moon"},
        {"command": "ls", "done_when": "file"},
        {"command": "ls", "done_when": "file", "target": "../x"},
        {"command": "ls", "done_when": "port", "target": "0"},
        {"command": "ls", "done_when": "port", "target": "http"},
    ],
)
def test_tasks_that_make_no_sense(root: Path, arguments: dict[str, str]) -> None:
    failed(TaskStart(TaskBoard()), root, **arguments)


def test_only_so_many_tasks_run_and_all_end_with_the_board(root: Path) -> None:
    async def run() -> list[bool]:
        board = TaskBoard()
        context = context_of(root)
        results = [
            (await called(TaskStart(board), context, command="sleep 300 & sleep 300")).ok
            for _ in range(task_board.RUNNING_MAX + 1)
        ]
        assert len(working_in(root)) >= task_board.RUNNING_MAX
        board.close()
        board.close()
        return results

    assert asyncio.run(run()) == [True] * task_board.RUNNING_MAX + [False]


def test_waiting_ends_with_the_users_stop_and_the_task_goes_on(root: Path) -> None:
    async def run() -> str:
        board = TaskBoard()
        context = context_of(root)
        try:
            await called(TaskStart(board), context, command="sleep 300")
            asyncio.get_running_loop().call_later(0.1, context.cancelled.set)
            result = await called(TaskWait(board), context, id="1", seconds="60")
            assert working_in(root)
            return result.text
        finally:
            board.close()

    assert "not done yet" in asyncio.run(run())


def test_old_tasks_are_forgotten(root: Path) -> None:
    async def run() -> int:
        board = TaskBoard()
        context = context_of(root)
        try:
            for number in range(1, task_board.KEPT_MAX + 5):
                await called(TaskStart(board), context, command="true")
                await called(TaskWait(board), context, id=str(number))
            return len(board.of(context.conversation_id))
        finally:
            board.close()

    assert asyncio.run(run()) == task_board.KEPT_MAX + 1


def test_no_descriptor_is_left_open(root: Path) -> None:
    if not Path("/proc/self/fd").exists():
        pytest.skip("no list of descriptors")
    call(Shell(), root, command="true")
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(5):
        call(Shell(), root, command="true")
    assert len(list(Path("/proc/self/fd").iterdir())) <= before
