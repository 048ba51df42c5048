"""SIGKILL in the middle of file_write and file_edit: the file is the old one or the new one, never a mixture.

`GROWBOX_CRASH_ROUNDS` makes the lane longer (default 6, each about a second).
"""

from __future__ import annotations

import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from growbox_app.executors.file_write import FileWrite
from tests.crash.edit_child import LINES, NAME, book
from tests.unit.executor_world import call

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("GROWBOX_CRASH_ROUNDS", "6"))


def killed_after(folder: Path, plans: int, seconds: float) -> list[str]:
    """What the process said before it was killed: so long after it had planned so many changes."""
    words = [sys.executable, "-m", "tests.crash.edit_child", str(folder)]
    process = subprocess.Popen(words, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    said = [process.stdout.readline()]
    assert said == ["open\n"]
    while sum(line.startswith("planned") for line in said) < plans:
        said.append(process.stdout.readline())
        assert said[-1], said
    threading.Event().wait(seconds)
    process.kill()
    said += process.stdout
    process.wait(10)
    process.stdout.close()
    return said


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_edit_leaves_the_old_file_or_the_new_one(tmp_path: Path) -> None:
    chance = random.Random(6)
    in_between = 0
    for round_number in range(ROUNDS):
        folder = tmp_path / str(round_number)
        folder.mkdir()
        seconds = chance.choice([0.0, chance.uniform(0.0, 0.02)])
        said = killed_after(folder, chance.randint(1, 40), seconds)
        versions = [line.split() for line in said[1:] if line.endswith("\n")]
        done = max((int(number) for word, number in versions if word == "done"), default=0)
        planned = max((int(number) for word, number in versions if word == "planned"), default=0)
        in_between += planned > done
        path = folder / NAME
        # The next version may have been planned and begun after the last word that came through.
        allowed = {book(version).encode() for version in range(max(done, 1), done + 2)}
        found = path.read_bytes() if path.exists() else b""
        assert found in allowed or (not done and not found), (done, found[:40], len(found))
        assert len(found) in {0, LINES * len("version 000000\n")}
        if path.parent.exists():
            assert call(FileWrite(), folder, path="sub/after.txt", content="x").ok
            assert {entry.name for entry in path.parent.iterdir()} <= {"book.txt", "after.txt"}
    assert in_between  # else no kill fell into a change, and nothing was tested
