"""kill -9 of the window process at random moments of a conversation.

Fault model: SIGKILL of the process at any instruction; the operating system keeps what was written. Demanded: every message
that was acknowledged on the screen is on the timeline, no child process is left, the audit is clean after its repair.
`GROWBOX_CRASH_ROUNDS` sets how often; CI runs the short lane.
"""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from growbox_app.clock import SystemClock
from growbox_app.models.calibration import embedder_epoch
from memory.config import MemoryConfig
from memory.engine import MemoryEngine
from memory.events import Event
from memory.values import Role
from tests.e2e.program import ROOT, environment, use_light_model

ROUNDS = int(os.environ.get("GROWBOX_CRASH_ROUNDS", "5"))
REAL_ROUNDS = int(os.environ.get("GROWBOX_CRASH_REAL_ROUNDS", "1"))
GONE_POLLS, PAUSE_S = 1_500, 0.02
"""A child that was just being started notices once it has: on a busy machine that takes a while."""

pytestmark = [pytest.mark.crash, pytest.mark.skipif(os.name == "nt", reason="POSIX signals")]


class Deaf:
    def emit(self, event: Event, /) -> None:
        """Nobody listens."""


class Window:
    """The driven window process, its acknowledgements and its children."""

    def __init__(self, data: Path, script: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.window_driver", script],
            cwd=ROOT,
            env=environment(data),
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._out = b""

    def wait_for(self, step: str) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._out += line
            if json.loads(line)["step"] == step:
                return
        pytest.fail(f"the window ended before {step!r}: {self._out.decode()}")

    def kill_after(self, seconds: float) -> list[psutil.Process]:
        """Kills it; returns the children it had."""
        threading.Event().wait(seconds)
        children = psutil.Process(self.process.pid).children(recursive=True)
        os.kill(self.process.pid, signal.SIGKILL)
        assert self.process.stdout is not None
        self._out += self.process.stdout.read()
        self.process.wait(10)
        self.process.stdout.close()
        return children

    def acknowledged(self) -> int:
        """Turns that the screen showed as finished."""
        whole = self._out.decode(errors="replace").rsplit("\n", 1)[0].splitlines()
        return max((json.loads(line).get("number", 0) for line in whole), default=0)


def left_of(children: list[psutil.Process]) -> list[psutil.Process]:
    """Those that run still when they have had their time to end."""
    for _ in range(GONE_POLLS):
        children = [process for process in children if _runs(process)]
        if not children:
            break
        threading.Event().wait(PAUSE_S)
    return children


def _runs(process: psutil.Process) -> bool:
    try:
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


def open_memory(data: Path) -> MemoryEngine:
    return MemoryEngine.open(
        data, config=MemoryConfig(), clock=SystemClock(), sink=Deaf(), embedder=embedder_epoch()
    )


def check(data: Path, acknowledged: int, prefix: str) -> None:
    memory = open_memory(data)
    try:
        nodes = [node for c in memory.conversations() for node in memory.messages(c.id)]
        asked = [node.content for node in nodes if node.role is Role.USER]
        told = [node for node in nodes if node.role is Role.ASSISTANT]
        for number in range(1, acknowledged + 1):
            assert sum(text == f"{prefix}{number}" for text in asked) == 1
        assert len([node for node in told if node.content]) >= acknowledged
        memory.audit(fix=True, full=True)
        report = memory.audit(fix=False, full=True)
        assert report.clean, report.findings
    finally:
        memory.close()


def test_nothing_acknowledged_is_lost(tmp_path: Path) -> None:
    generator = random.Random(20261130)
    for round_number in range(ROUNDS):
        data = tmp_path / f"data {round_number}"
        window = Window(data, "talk")
        window.wait_for("ready")
        children = window.kill_after(generator.uniform(0.0, 3.0))
        left = left_of(children)
        assert not left, left
        check(data, window.acknowledged(), "slow say:6 message number ")


@pytest.mark.model
def test_with_the_real_engine_also_in_the_middle_of_a_prefill(tmp_path: Path) -> None:
    generator = random.Random(7)
    for round_number in range(REAL_ROUNDS):
        data = tmp_path / f"real {round_number}"
        use_light_model(data)
        window = Window(data, "talk_real")
        window.wait_for("ready")
        children = window.kill_after(generator.uniform(1.0, 8.0))
        assert len(children) >= 2
        left = left_of(children)
        assert not left, left
        check(data, window.acknowledged(), "Repeat the number ")
