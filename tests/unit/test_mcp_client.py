"""The MCP client against real servers of the SDK, well ones and hostile ones, over pipes and over HTTP on loopback."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from growbox_app.clock import SystemClock
from growbox_app.mcp_client import pipes, service, session
from growbox_app.mcp_client.service import McpParts, McpService, SetUpError
from growbox_app.mcp_client.tool import tools_of
from growbox_app.mcp_client.values import McpTrouble, ServerSpec, ServerState
from growbox_app.secrets import Secrets
from tests.conftest import ROOT
from tests.fakes.keyring_backend import MemoryKeyring

Body = Callable[[McpService], Awaitable[None]]
SERVER = ("-m", "tests.fakes.mcp_server")
SECRET = "s3cret-of-the-server"


@pytest.fixture(autouse=True)
def _findable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "must-not-be-seen")


def spec(how: str = "stdio", **fields: object) -> ServerSpec:
    given: dict[str, object] = {"name": "s", "command": sys.executable, "args": (*SERVER, how)}
    return ServerSpec(**(given | fields))  # type: ignore[arg-type]


def run(tmp_path: Path, body: Body, *, offline: bool = True) -> list[str]:
    changes: list[str] = []

    async def main() -> None:
        parts = McpParts(
            data_path=tmp_path,
            secrets=Secrets(lambda: MemoryKeyring()),
            clock=SystemClock(),
            offline=lambda: offline,
            changed=lambda: changes.append("x"),
            call_s=20.0,
        )
        servers = McpService(parts)
        try:
            await body(servers)
        finally:
            await servers.close()

    asyncio.run(main())
    return changes


async def ask(servers: McpService, tool: str, **arguments: object) -> str:
    outcome = await servers.call("s", tool, arguments, asyncio.Event())
    return ("" if outcome.ok else "failed: ") + outcome.text


async def trouble(servers: McpService, tool: str, **arguments: object) -> McpTrouble:
    with pytest.raises(McpTrouble) as caught:
        await ask(servers, tool, **arguments)
    return caught.value


def servers_running() -> list[psutil.Process]:
    """Children that are servers; a helper of multiprocessing may be there from an earlier test."""
    found = []
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            if "tests.fakes.mcp_server" in process.cmdline():
                found.append(process)
    return found


def test_a_server_starts_at_its_first_call_and_not_before(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(spec(), {})
        (status,) = servers.statuses()
        assert status.state is ServerState.ASLEEP
        assert not servers_running()
        assert await ask(servers, "add", a=40) == "42"
        (status,) = servers.statuses()
        assert status.state is ServerState.READY
        assert {"add", "weather"} <= {tool.name for tool in status.tools}
        pid, group, nice = map(int, (await ask(servers, "whoami")).split())
        assert group == pid != os.getpgid(0)
        assert nice == 19
        await servers.close()
        assert not psutil.pid_exists(pid)

    assert run(tmp_path, body)


def test_tools_are_known_without_starting_the_server(tmp_path: Path) -> None:
    async def learn(servers: McpService) -> None:
        await servers.put(spec(), {})
        status = await servers.refresh("s")
        assert status is not None
        assert status.state is ServerState.READY

    async def later(servers: McpService) -> None:
        tools = {tool.name for tool in tools_of(servers, servers.statuses())}
        assert {"s__add", "s__twice_a", "s__twice_a_2"} <= tools
        assert servers.statuses()[0].state is ServerState.ASLEEP

    run(tmp_path, learn)
    run(tmp_path, later)


def test_nothing_of_our_environment_but_what_programs_need(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(spec(secret_names=("API_TOKEN",)), {"API_TOKEN": SECRET})
        assert await ask(servers, "environment", name="AWS_SECRET_ACCESS_KEY") == "(not set)"
        # It has its secret, and cannot say it back to us.
        assert await ask(servers, "environment", name="API_TOKEN") == "•••"

    run(tmp_path, body)
    kept = [path.read_text(encoding="utf-8") for path in tmp_path.rglob("*.json")]
    assert any("API_TOKEN" in text for text in kept)
    assert not any(SECRET in text for text in kept)


def test_a_secret_without_a_value_is_said_before_anything_starts(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(spec(secret_names=("API_TOKEN",)), {})
        found = await trouble(servers, "add", a=1)
        assert (found.reason, found.detail) == ("secret_missing", "API_TOKEN")

    run(tmp_path, body)


def test_the_users_stop_ends_a_call_within_a_second(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(spec(), {})
        pid = int((await ask(servers, "whoami")).split()[0])
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.call_later(0.2, stop.set)
        started = loop.time()
        with pytest.raises(McpTrouble) as caught:
            await servers.call("s", "hang", {}, stop)
        assert loop.time() - started < 1.2
        assert caught.value.reason == "stopped"
        # The server listens to nothing any more: it is noticed, ended, and started again.
        assert (await trouble(servers, "add", a=1)).reason == "hung"
        assert await ask(servers, "add", a=1) == "3"
        assert not psutil.pid_exists(pid)

    run(tmp_path, body)


def test_a_call_without_an_answer_is_given_up(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(spec(), {})
        await ask(servers, "add", a=1)
        patient, servers._parts = servers._parts, replace(servers._parts, call_s=0.5)
        assert (await trouble(servers, "hang")).reason == "hung"
        assert servers.statuses()[0].state is ServerState.FAILED
        servers._parts = patient  # a busy machine starts the next server slowly
        assert await ask(servers, "add", a=1) == "3"

    run(tmp_path, body)


def test_a_server_that_dies_says_why_and_comes_back_with_pauses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "PAUSES_S", (0.0, 60.0))

    async def body(servers: McpService) -> None:
        await servers.put(spec(), {})
        found = await trouble(servers, "die")
        assert (found.reason, found.detail) == ("ended", "dying")
        assert await ask(servers, "add", a=1) == "3"
        await trouble(servers, "die")
        await trouble(servers, "die")
        waiting = await trouble(servers, "add", a=1)
        assert waiting.reason == "waiting"
        assert 1 <= int(waiting.detail) <= 60
        status = await servers.refresh("s")  # the user himself need not wait
        assert status is not None
        assert status.state is ServerState.READY

    run(tmp_path, body)


@pytest.mark.parametrize(
    ("how", "reason"), [("crash", "ended"), ("flood", "flood"), ("mute", "slow"), ("line", "flood")]
)
def test_a_server_that_never_gets_ready(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, how: str, reason: str
) -> None:
    if how == "mute":
        monkeypatch.setattr(session, "OPEN_S", 1.0)
    monkeypatch.setattr(pipes, "MESSAGE_BYTES_MAX", 3_000_000)
    monkeypatch.setattr(pipes, "LINES_MAX", 500)

    async def body(servers: McpService) -> None:
        await servers.put(spec(how), {})
        status = await servers.refresh("s")
        assert status is not None
        assert (status.state, status.reason) == (ServerState.FAILED, reason)
        if how == "crash":
            assert status.detail == "no licence found"
        assert not servers_running()

    run(tmp_path, body)


def test_why_a_server_ended_is_told_however_late_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = pipes.ServerProcess._read_errors

    def late(process: pipes.ServerProcess) -> None:
        process._process.wait()
        threading.Event().wait(0.2)
        read(process)

    monkeypatch.setattr(pipes.ServerProcess, "_read_errors", late)

    async def body(servers: McpService) -> None:
        await servers.put(spec("crash"), {})
        status = await servers.refresh("s")
        assert status is not None
        assert (status.reason, status.detail) == ("ended", "no licence found")

    run(tmp_path, body)


def test_a_program_that_does_not_exist(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(spec(command="no-such-program-here", args=()), {})
        found = await trouble(servers, "add", a=1)
        assert (found.reason, found.detail) == ("not_found", "no-such-program-here")

    run(tmp_path, body)


def test_what_belongs_into_a_log_does_no_harm(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(spec("talkative"), {})
        assert await ask(servers, "add", a=1) == "3"

    run(tmp_path, body)


def test_ten_million_characters_are_shown_in_part(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(spec(), {})
        text = await ask(servers, "huge")
        assert len(text) < 61_000
        assert text.startswith("begin")
        assert text.endswith("end")
        assert "characters not shown" in text

    run(tmp_path, body)


def test_a_tools_own_failure_is_an_answer(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(spec(), {})
        assert "Error executing tool" in await ask(servers, "fail")
        assert (await ask(servers, "fail")).startswith("failed: ")
        assert (await ask(servers, "no_such_tool")).startswith("failed: ")
        assert servers.statuses()[0].state is ServerState.READY

    run(tmp_path, body)


def test_a_killed_application_leaves_no_server(tmp_path: Path) -> None:
    script = (
        "import asyncio, sys, pathlib\n"
        "from growbox_app.mcp_client.session import Session\n"
        "from growbox_app.mcp_client.values import ServerSpec\n"
        "async def main():\n"
        f"    session = Session(ServerSpec(name='s', command=sys.executable, args={(*SERVER, 'stdio')!r}), {{}})\n"
        "    await session.open()\n"
        "    print((await session.call('whoami', {}, 10)).text, flush=True)\n"
        "    await asyncio.Event().wait()\n"
        "asyncio.run(main())\n"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", script], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline().split()[0])
    server = psutil.Process(pid)
    process.kill()
    process.wait()
    process.stdout.close()
    gone, _ = psutil.wait_procs([server], timeout=5)
    assert gone or server.status() == psutil.STATUS_ZOMBIE


# -- over HTTP ------------------------------------------------------------------------------------
@pytest.fixture
def address() -> Iterator[str]:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    process = subprocess.Popen(
        [sys.executable, *SERVER, "http", str(port)],
        cwd=ROOT,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait_for(port)
        yield f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        process.wait()


def _wait_for(port: int) -> None:
    async def main() -> None:
        for _ in range(400):
            try:
                _, writer = await asyncio.open_connection("127.0.0.1", port)
            except OSError:
                await asyncio.sleep(0.05)
            else:
                writer.close()
                return
        raise AssertionError("the server does not start")

    asyncio.run(main())


def test_a_server_over_http(tmp_path: Path, address: str) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(
            ServerSpec(name="s", url=address, secret_names=("Authorization",)),
            {"Authorization": f"Bearer {SECRET}"},
        )
        assert await ask(servers, "add", a=40) == "42"
        text = await ask(servers, "huge")
        assert text.endswith("end")
        assert len(text) < 61_000
        assert (await trouble(servers, "die")).reason == "unreachable"
        assert (await trouble(servers, "add", a=1)).reason == "unreachable"

    run(tmp_path, body)


def test_a_stop_over_http(tmp_path: Path, address: str) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(ServerSpec(name="s", url=address), {})
        assert await ask(servers, "add", a=40) == "42"
        stop = asyncio.Event()
        loop = asyncio.get_running_loop()
        loop.call_later(0.2, stop.set)
        started = loop.time()
        with pytest.raises(McpTrouble) as caught:
            await servers.call("s", "hang", {}, stop)
        assert loop.time() - started < 1.2
        assert caught.value.reason == "stopped"

    run(tmp_path, body)


def test_offline_means_this_computer_only(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(ServerSpec(name="s", url="https://example.org/mcp"), {})
        assert servers.statuses()[0].state is ServerState.OFFLINE
        assert (await trouble(servers, "add", a=1)).reason == "offline"
        status = await servers.refresh("s")
        assert status is not None
        assert status.state is ServerState.OFFLINE

    run(tmp_path, body)


def test_nobody_listens(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(ServerSpec(name="s", url="http://127.0.0.1:9/mcp"), {})
        assert (await trouble(servers, "add", a=1)).reason == "unreachable"

    run(tmp_path, body)


# -- setting up -----------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"name": "Big"}, "name"),
        ({"name": "a__b"}, "name"),
        ({"name": "a--b"}, "name"),
        ({"command": ""}, "place"),
        ({"url": "http://127.0.0.1"}, "place"),
        ({"command": "", "args": (), "url": "file:///etc/passwd"}, "url"),
        ({"command": "", "args": (), "url": "http://me:pw@example.org"}, "url"),
        ({"args": ("a\0b",)}, "words"),
        ({"secret_names": ("A B",)}, "secret_name"),
        ({"args": tuple("x" * 65)}, "too_many"),
    ],
)
def test_what_cannot_be_set_up(tmp_path: Path, fields: dict[str, object], reason: str) -> None:
    async def body(servers: McpService) -> None:
        with pytest.raises(SetUpError) as caught:
            await servers.put(spec(**fields), {})
        assert caught.value.reason == reason
        assert not servers.statuses()

    run(tmp_path, body)


def test_another_place_means_other_tools_and_what_is_safe_is_the_users_word(tmp_path: Path) -> None:
    async def body(servers: McpService) -> None:
        await servers.put(spec(), {})
        await servers.refresh("s")
        servers.mark("s", "add", safe=True)
        risks = {tool.name: tool.risk.value for tool in tools_of(servers, servers.statuses())}
        assert risks["s__add"] == "safe"
        assert risks["s__weather"] == "unknown"
        await servers.put(spec("talkative"), {})
        assert not servers.statuses()[0].tools
        await servers.remove("s")
        assert not servers.statuses()

    run(tmp_path, body)
