"""`dev.py bench ingest`: how fast files become memory, and whether typing stays smooth meanwhile.

Prints `ingest_chunks_per_s reingest_s stall_p99_ms`, one `figure=value` line each, last. A folder of source code, Markdown and plain
text of about 2,000 passages is added in the real window with the light model, while passages are embedded and two questions a second
are looked up; the main thread is asked for a sign of life every 4 ms all the time, and before that for as long as nothing runs. A quiet machine is
assumed.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from growbox_app import paths
from growbox_app.assistant import GrowBox
from growbox_app.clock import SystemClock
from memory.values import RecallQuery
from tests.benchmarks.live import Probe
from tests.e2e.program import ROOT, environment, use_light_model

CHILD_S = 900
PASSAGES = 2000
PASSAGES_PER_FILE = 20
IDLE_S = 5.0
QUERY_S = 0.5
EMBEDDING_S = 60.0


def run(folder: Path) -> dict[str, Any]:
    """The figures of one run in a process of its own."""
    data, files = folder / "data", folder / "files"
    use_light_model(data)
    write_files(files)
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.ingest", "window", str(files)],
        cwd=ROOT,
        env=environment(data),
        capture_output=True,
        timeout=CHILD_S,
        check=False,
    )
    lines = done.stdout.decode().splitlines()
    if not lines:
        raise SystemExit(f"exit {done.returncode}\n{done.stderr.decode()[-2000:]}")
    figures: dict[str, Any] = json.loads(lines[-1])
    return figures


def write_files(folder: Path) -> None:
    """As many files of each kind, each of so many passages of about 1,200 characters."""
    makers = {"py": _function, "md": _chapter, "txt": _paragraph}
    for number in range(PASSAGES // PASSAGES_PER_FILE):
        suffix = list(makers)[number % len(makers)]
        path = folder / f"part_{number % 7}" / f"file_{number}.{suffix}"
        path.parent.mkdir(parents=True, exist_ok=True)
        first = number * PASSAGES_PER_FILE
        parts = [makers[suffix](n) for n in range(first, first + PASSAGES_PER_FILE)]
        path.write_text("".join(parts), encoding="utf-8")


def _function(number: int) -> str:
    lines = "".join(
        f"    total += {number * step % 89} * item  # step {step}\n" for step in range(28)
    )
    return f"def function_{number}(item):\n    total = 0\n{lines}    return total\n\n\n"


def _chapter(number: int) -> str:
    return f"## Chapter {number}\n\n{_paragraph(number)}"


def _paragraph(number: int) -> str:
    steps = " ".join(
        f"Note {number} on topic {number * 31 % 977}: step {step} took {number * step % 89} ms."
        for step in range(28)
    )
    return f"{steps}\n\n"


def window(files: Path) -> None:
    """The child: measures in the real window and prints one JSON object."""
    from ui import application, event_loop
    from ui.crash import CrashLog

    app = application.make_application(["growbox"])
    life = application.Life(
        paths.data_path(),
        lambda: GrowBox(data_path=paths.data_path(), models_path=paths.models_path()),
        CrashLog(paths.data_path() / "logs", SystemClock()),
    )

    async def both() -> int:
        running = asyncio.get_running_loop().create_task(life.run())
        while life.window is None or not life.window.isVisible():
            await asyncio.sleep(0.005)
        print(json.dumps(await measure(life.window._assistant, files)), flush=True)
        life.window.close()
        return await running

    event_loop.run(app, both())


async def measure(app: GrowBox, files: Path) -> dict[str, float]:
    """Adds the files, asks, waits for the embeddings, and adds the files again."""
    await app._engine.ready()
    loop = asyncio.get_running_loop()
    idle = Probe(loop)
    await asyncio.sleep(IDLE_S)
    idle.close()
    asking = loop.create_task(ask_on(app))
    probe = Probe(loop)
    started = time.monotonic()
    report = await app.ingest([files], lambda _progress: None)
    ingest_s = time.monotonic() - started
    while (
        await app.mind.statistics()
    ).pending_embeddings and time.monotonic() - started < ingest_s + EMBEDDING_S:
        await asyncio.sleep(0.2)
    probe.close()
    asking.cancel()
    started = time.monotonic()
    again = await app.ingest([files], lambda _progress: None)
    assert (again.added, again.changed) == (0, 0)
    delays = sorted(probe.delays_ms)
    return {
        "idle_p99_ms": sorted(idle.delays_ms)[int(len(idle.delays_ms) * 0.99)],
        "passages": report.passages_added,
        "chunks_per_s": report.passages_added / ingest_s,
        "reingest_s": time.monotonic() - started,
        "p99_ms": delays[int(len(delays) * 0.99)],
        "worst_ms": delays[-1],
        "samples": len(delays),
    }


async def ask_on(app: GrowBox) -> None:
    """Looks questions up until it is cancelled."""
    number = 0
    while True:
        number += 17
        query = RecallQuery(text=f"How long did step 3 of note {number} take?")
        await app._memory.drive(lambda engine, query=query: engine.recall(query))
        await asyncio.sleep(QUERY_S)


def main() -> None:
    """Measures and prints."""
    folder = Path(tempfile.mkdtemp(prefix="growbox-bench-"))
    try:
        figures = run(folder)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    print(f"# {json.dumps(figures)}")
    print(f"ingest_chunks_per_s={figures['chunks_per_s']:.1f}")
    print(f"reingest_s={figures['reingest_s']:.3f}")
    print(f"stall_p99_ms={figures['p99_ms']:.2f}")


if __name__ == "__main__":
    if sys.argv[1:2] == ["window"]:
        window(Path(sys.argv[2]))
    else:
        main()
