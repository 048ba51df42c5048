"""`dev.py bench agent`: does the agent do small real tasks, and at what cost? One line of `figure=value` each, last.

24 tasks (`agent_tasks.py`) in throw-away repositories, each by the running application with the real engine, in a process and with data of its own: without a
window, consents answered by one fixed rule (what is in the project is allowed, the rest denied), at most 12 rounds and 180 s. Results are kept
in the cache folder by code, model and task, so that a run which stops half-way goes on where it was; so are the transcripts, to be read. The image
of the system prompt is shared by all tasks, as it is in use.

  --model light|standard   the chat model (standard)
  --quick                  six tasks with the light model, as in `dev.py test`: exits with 1 when a call was invalid or a task hung; a circle that the loop ended by itself is counted in `loops`
  --ablate                 eight tasks with the light model, also without memory, without grammar and without scaffolding
  --seeds N                so many times, each with another seed (1)
  --task ID                only this one (may be repeated)
  --again                  measure anew what is kept
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from growbox_app.paths import cache_path
from tests.benchmarks.agent_tasks import TASKS, Task
from tests.real_models import MODELS

ROOT = Path(__file__).resolve().parent.parent.parent
MODELS_BY_NAME = {"light": "qwen2.5-coder-0.5b", "standard": "qwen2.5-coder-1.5b"}
WITHOUT = ("memory", "grammar", "scaffolding")
HANG_S = 900
"""A process that is still there by then is ended: 180 s are for the turn, the rest for the start, a cold prefix on a busy machine, and the end."""
CODE = ("growbox_app/agent", "growbox_app/engine", "growbox_app/executors", "resources/prompts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Run:
    """One task with one model, one seed, and perhaps without something."""

    task: Task
    model: str
    seed: int
    without: str = ""

    @property
    def name(self) -> str:
        """Names it for a reader."""
        parts = [self.model, self.task.id, f"seed{self.seed}"]
        return "-".join([*parts, f"no-{self.without}"] if self.without else parts)


def code_digest() -> str:
    """Names the code that a result depends on."""
    found = hashlib.blake2b(digest_size=8)
    for folder in CODE:
        for path in sorted((ROOT / folder).rglob("*")):
            if path.suffix in (".py", ".md", ".toml"):
                found.update(str(path.relative_to(ROOT)).encode() + path.read_bytes())
    found.update((ROOT / "tests/benchmarks/agent_child.py").read_bytes())
    return found.hexdigest()


class Results:
    """What was measured, kept between runs: one JSON file each, and a transcript beside it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._code = code_digest()

    def path(self, run: Run) -> Path:
        """Where a result is kept."""
        return self.folder / self._code / f"{run.name}-{run.task.digest}.json"

    def get(self, run: Run) -> dict[str, Any] | None:
        """A kept result."""
        try:
            found: dict[str, Any] = json.loads(self.path(run).read_bytes())
        except (OSError, ValueError):
            return None
        return found


def measured(run: Run, results: Results) -> dict[str, Any]:
    """Runs a task in a process of its own; one that hangs is ended, and said to hang.

    Raises:
        SystemExit: the process failed; that is no result.
    """
    path = results.path(run)
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="growbox-agent-") as folder:
        command = [sys.executable, "-m", "tests.benchmarks.agent_child", run.task.id, folder]
        command += [MODELS_BY_NAME[run.model], str(run.seed), run.without, str(path)]
        images = results.folder / "images" / run.model
        with _process(command, Path(folder), images) as process:
            try:
                process.wait(HANG_S)
            except subprocess.TimeoutExpired:
                _end(process)
                path.write_text(json.dumps({"solved": False, "hang": True, "seconds": HANG_S}))
    found = results.get(run)
    if found is None:
        raise SystemExit(f"{run.name} failed with exit code {process.returncode}")
    return found


def _process(command: Sequence[str], folder: Path, images: Path) -> subprocess.Popen[bytes]:
    """The user's home is a folder of the task's own, with a `python3` in view that is this one."""
    home, programs = folder / "home", folder / "bin"
    home.mkdir()
    programs.mkdir()
    base = Path(sys.base_prefix) / "bin" / "python3"
    if base.is_file():
        for name in ("python3", "python"):
            (programs / name).symlink_to(base)
    environment = {
        **os.environ,
        "HOME": str(home),
        "USERPROFILE": str(home),
        "PATH": os.pathsep.join([str(programs), os.environ.get("PATH", "")]),
        "GROWBOX_MODELS_DIR": str(MODELS),
        "GROWBOX_BENCH_IMAGES": str(images),
        "GOMP_SPINCOUNT": os.environ.get("GOMP_SPINCOUNT", "1000"),
        "PYTHONUTF8": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    return subprocess.Popen(command, cwd=ROOT, env=environment, start_new_session=True)


def _end(process: subprocess.Popen[bytes]) -> None:
    if os.name == "nt":
        process.kill()
    else:
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def runs(options: argparse.Namespace) -> Iterator[Run]:
    """What is to be measured, in order."""
    tasks = [task for task in TASKS if not options.task or task.id in options.task]
    if options.quick:
        tasks = [task for task in tasks if task.quick]
    if options.ablate:
        tasks = [task for task in tasks if task.ablated]
    for seed in range(options.seeds):
        for without in ("", *WITHOUT) if options.ablate else ("",):
            for task in tasks:
                yield Run(task=task, model=options.model, seed=seed, without=without)


def table(run: Run, found: dict[str, Any]) -> str:
    """One line of a result."""
    state = "solved" if found["solved"] else "HANG" if found.get("hang") else "-"
    return (
        f"{run.name:44} {state:7} rounds {found.get('rounds', 0):2}  calls {found.get('calls', 0):2}"
        f"  invalid {found.get('invalid_calls', 0)}  repeated {found.get('repeated_calls', 0)}"
        f"  asked {found.get('asked', 0)}  read {found.get('read_tokens', 0):5}"
        f"  kept {found.get('kept_tokens', 0):6}  {found['seconds']:5.0f} s"
    )


def is_loop(found: dict[str, Any]) -> bool:
    """Whether a task ended because it went in a circle, or not at all."""
    return bool(found.get("hang") or found.get("degenerate") or found.get("circled"))


def summary(options: argparse.Namespace, found: Sequence[tuple[Run, dict[str, Any]]]) -> bool:
    """Prints the figures; False when a call was invalid or a task had to be ended from outside.

    What another processor rounds differently may send a small model in a circle: that is counted, and no reason to fail.
    """
    whole = [result for run, result in found if not run.without]
    invalid = sum(result.get("invalid_calls", 0) for result in whole)
    loops = sum(map(is_loop, whole))
    per_seed = [
        sum(result["solved"] for run, result in found if run.seed == seed and not run.without)
        for seed in range(options.seeds)
    ]
    count = len({run.task.id for run, _ in found})
    seconds = statistics.median(result["seconds"] for result in whole)
    rounds = statistics.mean(result.get("rounds", 0) for result in whole)
    print(f"approvals_asked={sum(result.get('asked', 0) for result in whole)}")
    print(f"rounds_mean={rounds:.1f}")
    for name in ("read_tokens", "kept_tokens"):
        print(f"{name}_median={statistics.median(result.get(name, 0) for result in whole):.0f}")
    if options.seeds > 1:
        print(f"solved_by_seed={','.join(map(str, per_seed))}")
    print(f"solved_of_{count}={statistics.mean(per_seed):g}")
    print(f"invalid_calls={invalid}")
    print(f"loops={loops}")
    print(f"out_of_time={sum(bool(result.get('late')) for result in whole)}")
    print(f"seconds_median={seconds:.0f}")
    for without in WITHOUT if options.ablate else ():
        solved = sum(result["solved"] for run, result in found if run.without == without)
        print(f"solved_without_{without}={solved / options.seeds:g}")
    return not invalid and not any(result.get("hang") for result in whole)


def main() -> int:
    """Measures and prints."""
    parser = argparse.ArgumentParser(prog="bench agent")
    parser.add_argument("--model", choices=tuple(MODELS_BY_NAME), default="standard")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--ablate", action="store_true")
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--task", action="append", choices=[task.id for task in TASKS])
    parser.add_argument("--again", action="store_true")
    options = parser.parse_args()
    if options.quick or options.ablate:
        options.model = "light"
    results = Results(cache_path() / "bench" / "agent")
    found = []
    for run in runs(options):
        kept = None if options.again else results.get(run)
        result = kept or measured(run, results)
        found.append((run, result))
        print(table(run, result), flush=True)
    print(f"transcripts: {results.path(found[0][0]).parent}")
    good = summary(options, found)
    return 0 if good or not options.quick else 1


if __name__ == "__main__":
    sys.exit(main())
