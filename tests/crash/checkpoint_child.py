"""A process that takes checkpoints, changes files and restores until it is killed.

Run as `python -m tests.crash.checkpoint_child FOLDER SEED`. Lines: `open`, then `call ID` once a checkpoint is there, `back ID` once a
restore has ended.
"""

from __future__ import annotations

import asyncio
import random
import shutil
import sys
from pathlib import Path

from growbox_app.checkpoints import Checkpoints
from growbox_app.clock import SystemClock


def change(root: Path, chance: random.Random) -> None:
    """What a call may do: rewrite, add, remove, empty a folder."""
    files = [path for path in root.rglob("*") if path.is_file()]
    for path in chance.sample(files, min(5, len(files))):
        path.write_bytes(chance.randbytes(chance.randrange(20_000)))
    for _ in range(40):
        path = root / f"d{chance.randrange(6)}" / f"n{chance.randrange(1000)}.txt"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(chance.randbytes(200) + b"\r\n")
    shutil.rmtree(root / f"d{chance.randrange(6)}", ignore_errors=True)


async def main(folder: Path, seed: int) -> None:
    chance = random.Random(seed)
    root = folder / "project"
    checkpoints = Checkpoints(folder / "data", SystemClock())
    await checkpoints.recover()
    print("open", flush=True)
    while True:
        taken = await checkpoints.take(root, "a call", f"answer {seed}")
        print("call", taken.id, flush=True)
        change(root, chance)
        await checkpoints.finish(taken.id)
        if chance.random() < 0.5:
            known = await checkpoints.list(root)
            chosen = chance.choice(known[:6])
            await checkpoints.restore(chosen.id, force=True)
            print("back", chosen.id, flush=True)


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1]), int(sys.argv[2])))
