"""SIGKILL while a conversation is forgotten: the next start goes on, and in the end no byte of it is left."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from tests.fakes.memory_world import MemoryWorld

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("GROWBOX_CRASH_ROUNDS", "2"))
NEEDLES = (b"Aldermoor", b"aldermoor", b"Elstern", b"elstern")


def kill_at_step(folder: Path, step: int) -> bool:
    """Runs the child and kills it at a step; False when it was done before."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.forget_child", str(folder)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    with process.stdout:
        for line in process.stdout:
            if line == "done\n":
                process.wait(30)
                return False
            if line == f"step {step}\n":
                break
    process.kill()
    process.wait(30)
    return True


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_deletion_goes_on_and_leaves_nothing(tmp_path):
    chance = random.Random(11)
    for number in range(ROUNDS):
        folder = tmp_path / str(number)
        steps = [chance.randrange(0, 12), chance.randrange(0, 12)]
        killed = [kill_at_step(folder, step) for step in steps]
        assert any(killed)
        world = MemoryWorld(folder)
        try:
            for conversation in world.engine.forgetting.pending():
                run = world.engine.forgetting.run(conversation, lambda *_words: None)
                assert [request for request in run if request is None] == []
            assert world.engine.forgetting.pending() == ()
            assert len(world.engine.conversations()) == 1
            world.digest()
            assert world.engine.audit(fix=False, full=True).findings == ()
            assert world.found("shed of row 7")
            assert world.engine.experiences() == ()
            assert world.engine.proposals() == ()
        finally:
            world.engine.close()
        left = [
            path
            for path in folder.rglob("*")
            if path.is_file() and any(needle in path.read_bytes() for needle in NEEDLES)
        ]
        assert left == []
