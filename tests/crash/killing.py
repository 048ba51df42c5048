"""What the tests of killed calls share: waiting for a sign of the child, and its end by SIGKILL."""

from __future__ import annotations

import contextlib
import subprocess
import threading
from pathlib import Path

import psutil

TICK_S = 0.02
WAIT_TICKS = 1_000


def appears(path: Path, ticks: int = WAIT_TICKS) -> bool:
    """Whether a file is there, at the latest after so many ticks."""
    for _ in range(ticks):
        if path.exists():
            return True
        threading.Event().wait(TICK_S)
    return path.exists()


def kill_all(process: subprocess.Popen[str]) -> None:
    """Kills a child, and then what it had started and did not end with it."""
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait(10)
    assert process.stdout is not None
    process.stdout.close()
    for child in children:
        with contextlib.suppress(psutil.NoSuchProcess):  # most end with their parent
            child.kill()
    psutil.wait_procs(children, timeout=10)
