"""A process that edits one file for ever, through the executors; killed by `test_edit_kill.py`."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

from growbox_app.executors.base import Plan
from growbox_app.executors.file_edit import FileEdit
from growbox_app.executors.file_write import FileWrite
from tests.unit.executor_world import context_of

NAME = "sub/book.txt"
LINES = 4_000


def book(version: int) -> str:
    """A text in which every line says the same version."""
    return f"version {version:06}\n" * LINES


async def main(folder: Path) -> None:
    context = context_of(folder)
    version = 1
    print("open", flush=True)
    while True:
        write = {"path": NAME, "content": book(version)}
        edit = {
            "path": NAME,
            "old": f"version {version - 1:06}",
            "new": f"version {version:06}",
            "every": "true",
        }
        executor = FileWrite() if version % 2 else FileEdit()
        plan = await executor.plan(write if version % 2 else edit, context)
        assert isinstance(plan, Plan), plan
        print(f"planned {version}", flush=True)
        result = await executor.run(plan, context)
        assert result.ok, result
        print(f"done {version}", flush=True)
        version += 1


if __name__ == "__main__":
    asyncio.run(main(Path(sys.argv[1])))
