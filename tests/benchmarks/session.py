"""A session in the real window: approve, deny, edit, leave out, stop, undo, look elsewhere, restart, be killed – over and over.

`python3 packaging/dev.py bench session [--minutes N] [--engine scripted|light] [--folder DIR]`; two minutes by default. Each life is a
process (`tests/e2e/session_driver.py`); every third one is killed with an approval open. Checked: what each act should do to the files;
that messages, calls and drafts are there again after each restart; that the window's thread never stops for a second. Screenshots lie in
DIR/shots. What the thread works is told from what it waits for its turn on a busy machine: `longest_work_s`, `longest_stall_s`. One JSON object on standard output; the exit code is 0 when nothing failed.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from growbox_app.paths import models_path

ROOT = Path(__file__).parent.parent.parent
FREEZE_S, BLOCKED_S = 1.0, 10.0
"""The window's thread worked, or waited, for so long without a pause."""
SLOW_STOP_S = 1.0
"""A stop that took longer is listed, with the machine's load."""
LIVES_MIN = 3
LIFE_S = 120.0
"""How long one life lasts at most before the next restart."""
TIMEOUT_S = 900.0


def main(arguments: list[str]) -> int:
    """Runs the session and prints its report."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0)
    parser.add_argument("--engine", choices=("scripted", "light"), default="scripted")
    parser.add_argument("--folder", type=Path)
    chosen = parser.parse_args(arguments)
    folder = chosen.folder or Path(tempfile.mkdtemp(prefix="growbox-session-"))
    _prepare(folder, chosen.engine)
    report = _run(folder, chosen.engine, chosen.minutes * 60)
    print(json.dumps(report, ensure_ascii=False, indent=1))
    return 1 if report["failed"] else 0


def _prepare(folder: Path, engine: str) -> None:
    for name in ("data", "shots", "项目 project"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    settings: dict[str, object] = {"models.context_tokens": 16_384}
    if engine == "light":
        settings = {
            "models.chat": "qwen2.5-coder-0.5b",
            "models.context_tokens": 8192,
            "models.temperature": 0.0,
        }
    (folder / "data" / "settings.json").write_text(json.dumps(settings), encoding="utf-8")


def _run(folder: Path, engine: str, seconds: float) -> dict[str, Any]:
    started = time.monotonic()
    acts: dict[str, int] = {}
    stalls: list[tuple[float, float]] = []
    where: list[str] = []
    report: dict[str, Any] = {
        "lives": 0,
        "killed": 0,
        "turns": 0,
        "beats": 0,
        "stops": 0,
        "slowest_stop_s": 0.0,
        "slow_stops": [],
    }
    failed = ""
    while not failed and (report["lives"] < LIVES_MIN or time.monotonic() - started < seconds):
        left = max(0.0, seconds - (time.monotonic() - started))
        # What a real model calls is its own affair; only the scripted one has an approval open at will.
        hangs = engine == "scripted" and report["lives"] % 3 == 1
        end = "hang" if hangs else "quit"
        steps, failed = _life(folder, engine, report["lives"], min(left, LIFE_S), end)
        report["lives"] += 1
        report["killed"] += end == "hang"
        for step in steps:
            _take(step, report, acts, stalls, where)
            if step["step"] == "left":
                (folder / "left.json").write_text(json.dumps(step), encoding="utf-8")
    work = max((work for _gap, work in stalls), default=0.0)
    longest = max((gap for gap, _work in stalls), default=0.0)
    if not failed and (work >= FREEZE_S or longest >= BLOCKED_S):
        failed = (
            f"the window stood still for {longest:.2f} s, {work:.2f} s of it at work: {where[:3]}"
        )
    return report | {
        "seconds": round(time.monotonic() - started),
        "acts": acts,
        "stalls": len(stalls),
        "longest_stall_s": longest,
        "longest_work_s": work,
        "where": where[:5],
        "folder": str(folder),
        "failed": failed,
    }


def _take(
    step: dict[str, Any],
    report: dict[str, Any],
    acts: dict[str, int],
    stalls: list[tuple[float, float]],
    where: list[str],
) -> None:
    match step["step"]:
        case "act":
            acts[step["name"]] = acts.get(step["name"], 0) + 1
        case "stalls":
            report["beats"] += step["beats"]
            stalls += [(gap, work) for gap, work in step["stalls"]]
            where += step["where"]
        case "left":
            report["turns"] += step["turns"]
        case "stopped":
            report["stops"] += 1
            report["slowest_stop_s"] = max(report["slowest_stop_s"], step["seconds"])
            if step["seconds"] > SLOW_STOP_S:
                report["slow_stops"].append((step["seconds"], step["load"]))


def _life(
    folder: Path, engine: str, number: int, seconds: float, end: str
) -> tuple[list[dict[str, Any]], str]:
    """One start of the window, to its end; its steps, and what failed."""
    environ = os.environ | {
        "GROWBOX_DATA_DIR": str(folder / "data"),
        "GROWBOX_MODELS_DIR": os.environ.get("GROWBOX_MODELS_DIR", str(models_path())),
        "PYTHONUNBUFFERED": "1",
    }
    if not (environ.get("DISPLAY") or environ.get("WAYLAND_DISPLAY")) and os.name != "nt":
        environ["QT_QPA_PLATFORM"] = "offscreen"
    words = [str(folder), engine, str(number), str(seconds), end]
    steps: list[dict[str, Any]] = []
    log = folder / f"life-{number}.log"
    with (
        log.open("wb") as errors,
        subprocess.Popen(
            [sys.executable, "-m", "tests.e2e.session_driver", *words],
            cwd=ROOT,
            env=environ,
            stdout=subprocess.PIPE,
            stderr=errors,
        ) as process,
    ):
        assert process.stdout is not None
        for line in process.stdout:
            steps.append(json.loads(line))
            sys.stderr.write(f"life {number}: {line.decode().strip()[:200]}\n")
            if steps[-1]["step"] == "hang":
                process.kill()
        process.wait(TIMEOUT_S)
    said = next((step for step in steps if step["step"] == "failed"), None)
    if said is not None:
        return steps, f"life {number}: {said['error']}"
    if end == "quit" and process.returncode != 0:
        tail = log.read_text(encoding="utf-8", errors="replace")[-1500:]
        return steps, f"life {number} ended with {process.returncode}: {tail}"
    if not any(step["step"] == "left" for step in steps):
        return steps, f"life {number} said nothing at its end"
    return steps, ""


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
