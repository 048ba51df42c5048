"""SIGKILL at random moments of taking, changing and restoring: every acknowledged checkpoint still restores byte-exact."""

from __future__ import annotations

import asyncio
import os
import random
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from growbox_app.checkpoints import Checkpoints
from growbox_app.clock import SystemClock
from growbox_app.shadow.store import ShadowStore
from tests.fakes.folders import contents_of

ROOT = Path(__file__).resolve().parents[2]
ROUNDS = int(os.environ.get("GROWBOX_CRASH_ROUNDS", "6"))
FIRST = {f"d{number % 6}/第{number}.txt": b"first %d\r\n" % number * 50 for number in range(60)}


def killed_after(folder: Path, seed: int, lines: int, seconds: float) -> list[list[str]]:
    """What the child had said when it was killed: so long after so many lines."""
    process = subprocess.Popen(
        [sys.executable, "-m", "tests.crash.checkpoint_child", str(folder), str(seed)],
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "open\n"
    said = [process.stdout.readline() for _ in range(lines)]
    threading.Event().wait(seconds)
    process.kill()
    said += process.stdout
    process.wait(10)
    process.stdout.close()
    return [line.split() for line in said if line.endswith("\n")]


@pytest.mark.crash
@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_the_first_state_comes_back_whenever_the_process_died(tmp_path):
    chance = random.Random(5)
    root = tmp_path / "project"
    for name, content in FIRST.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_bytes(content)
    before = contents_of(root)
    known: list[str] = []
    restores = 0
    for seed in range(ROUNDS):
        said = killed_after(tmp_path, seed, chance.randint(1, 9), chance.uniform(0.0, 0.3))
        known += [checkpoint for kind, checkpoint in said if kind == "call"]
        restores += sum(kind == "back" for kind, _ in said)
        asyncio.run(_check(tmp_path, known, before))
    assert len(known) > ROUNDS
    assert restores > 0


async def _check(folder: Path, known: list[str], before: dict[str, object]) -> None:
    root = folder / "project"
    checkpoints = Checkpoints(folder / "data", SystemClock())
    await checkpoints.recover()
    assert {item.id for item in await checkpoints.list(root)} >= set(known)
    left = contents_of(root)
    report = await checkpoints.restore(known[0], force=True)
    assert report.failed == report.conflicts == ()
    assert contents_of(root) == before
    assert report.undo_id is not None
    await checkpoints.restore(report.undo_id, force=True)
    assert contents_of(root) == left
    for path in (folder / "data" / "checkpoints").iterdir():
        store = ShadowStore(path)
        for number in store.numbers():
            for snapshot in store.snapshots(number):
                for entry in snapshot.entries.values() if snapshot else ():
                    if entry.sha:
                        store.content(entry.sha)
        store.close()
