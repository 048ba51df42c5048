"""SIGKILL at random moments: what was acknowledged is there, and the stores agree again.

`GROWBOX_CRASH_ROUNDS` makes the lane longer (default 6, each under three seconds).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import psutil
import pytest

from memory.errors import DataFolderLocked
from memory.values import NodeStatus
from tests.fakes.memory_world import MemoryWorld

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("GROWBOX_CRASH_ROUNDS", "6"))


def start(folder: Path, seed: int, *, host: bool) -> subprocess.Popen[str]:
    arguments = [sys.executable, "-m", "tests.crash.memory_child", str(folder), str(seed)]
    return subprocess.Popen(
        [*arguments, "1" if host else "0"], cwd=ROOT, stdout=subprocess.PIPE, text=True
    )


def kill_after(process: subprocess.Popen[str], seconds: float) -> list[list[str]]:
    """Reads acknowledgements and kills the process; returns what it had said."""
    assert process.stdout is not None
    lines: list[list[str]] = [process.stdout.readline().split()]  # "open"
    assert lines == [["open"]]
    children = []
    reader = threading.Thread(
        target=lambda: lines.extend(
            line.split() for line in process.stdout or () if line.endswith("\n")
        )
    )
    reader.start()
    threading.Event().wait(seconds)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait(10)
    reader.join(10)
    process.stdout.close()
    _, left = psutil.wait_procs(children, timeout=30)
    assert not left, f"processes left behind: {left}"
    return lines


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
@pytest.mark.parametrize("host", [False, True])
def test_what_was_acknowledged_survives_a_kill(tmp_path, host):
    chance = random.Random(7)
    lengths: dict[str, int] = {}
    events = 0
    for round_number in range(ROUNDS):
        seconds = chance.uniform(0.05, 2.5 if host else 1.2)
        process = start(tmp_path / "m", round_number, host=host)
        for kind, *words in kill_after(process, seconds)[1:]:
            if kind in ("node", "check"):
                lengths[words[0]] = max(int(words[1]), lengths.get(words[0], 0))
            elif kind == "event":
                events = max(events, int(words[0]))
        world = MemoryWorld(tmp_path / "m")
        try:
            for node_id, length in lengths.items():
                node = world.engine.node(node_id)
                assert node is not None
                assert len(node.content) >= length
                assert node.status is not NodeStatus.PARTIAL
            assert world.engine.statistics().learning_events >= events
            world.engine.audit(fix=True, full=True)
            assert world.engine.audit(fix=False, full=True).findings == ()
            world.digest()
            assert world.engine.audit(fix=False, full=True).findings == ()
            for conversation in world.engine.conversations():
                held = world.engine.blocks(conversation.id)
                assert sum(block.tokens for block in held) <= 1400
                assert all(world.engine.node(block.node_id) for block in held)
        finally:
            world.engine.close()
    assert len(lengths) > ROUNDS


@pytest.mark.crash
@pytest.mark.slow
def test_a_second_process_is_refused_with_the_firsts_id(tmp_path):
    process = start(tmp_path / "m", 1, host=False)
    try:
        assert process.stdout is not None
        assert process.stdout.readline() == "open\n"
        with pytest.raises(DataFolderLocked) as caught:
            MemoryWorld(tmp_path / "m")
        assert caught.value.owner == f"pid {process.pid}"
    finally:
        process.kill()
        process.wait(10)
        assert process.stdout is not None
        process.stdout.close()
