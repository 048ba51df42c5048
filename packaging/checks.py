"""The checks of `dev.py test`: each runs, even when an earlier one fails, and one line at the end sums up."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from console import console
from folders import ROOT, models_path, venv_python

_FROZEN_APP = "dist/GrowBox.app" if sys.platform == "darwin" else "dist/GrowBox"
_NO_TESTS = 5
_LINT_IMPORTS = "from importlinter.cli import lint_imports_command; lint_imports_command()"


@dataclass(frozen=True)
class Check:
    """One check: a heading and the arguments of `.venv`'s Python. `good_codes`: the exit codes that mean it passed."""

    name: str
    arguments: tuple[str, ...]
    under_display: bool = False
    good_codes: tuple[int, ...] = (0,)


def all_checks(pytest_arguments: Sequence[str]) -> tuple[Check, ...]:
    """Linters, types, import contracts, then the tests: first what needs no model, in two processes; then the rest, alone.

    Without a selection of tests also the agent on six small tasks, and the frozen app: built with the light model, and used once.
    """
    set_up_sources = sorted(
        str(path.relative_to(ROOT)) for path in Path(__file__).parent.glob("*.py")
    )
    pytest = ("-m", "pytest", *pytest_arguments)
    # A selection of the user's may leave one of the two lanes empty.
    good_codes = (0, _NO_TESTS) if pytest_arguments else (0,)
    checks = (
        Check("ruff check", ("-m", "ruff", "check", ".")),
        Check("ruff format", ("-m", "ruff", "format", "--check", ".")),
        Check("mypy", ("-m", "mypy")),
        Check("mypy of packaging", ("-m", "mypy", "--strict", *set_up_sources)),
        Check("import contracts", ("-c", _LINT_IMPORTS)),
        Check("tests without a model", (*pytest, "-m", "not model", "-n", "2"), True, good_codes),
        Check("tests with the light model", (*pytest, "-m", "model"), True, good_codes),
    )
    agent = Check("agent, six tasks", ("-m", "tests.benchmarks.agent", "--quick"))
    frozen = (
        Check("frozen app", ("packaging/dev.py", "build", "--flavour", "light", "--app-only")),
        Check("frozen app in use", ("packaging/smoke_test.py", _FROZEN_APP, "--trace")),
    )
    return checks if pytest_arguments else (*checks, agent, *frozen)


def run_checks(pytest_arguments: Sequence[str]) -> int:
    """Runs all checks and returns 0 only when every one passed."""
    checks = all_checks(pytest_arguments)
    failed = [check.name for check in checks if not _passes(check)]
    console.heading("summary")
    if failed:
        console.say(
            f"FAILED: {', '.join(failed)} ({len(checks) - len(failed)} of {len(checks)} checks passed)"
        )
        return 1
    console.say(f"All {len(checks)} checks passed.")
    return 0


def _passes(check: Check) -> bool:
    console.heading(check.name)
    command = [str(venv_python()), *check.arguments]
    if check.under_display and not os.environ.get("DISPLAY") and _has_virtual_display():
        command = ["xvfb-run", "-a", "-s", "-screen 0 1920x1200x24", *command]
    done = subprocess.run(command, cwd=ROOT, env=_environment(), check=False)
    return done.returncode in check.good_codes


def _has_virtual_display() -> bool:
    return all(shutil.which(program) for program in ("xvfb-run", "xauth"))


def _environment() -> Mapping[str, str]:
    """Tests use the shared models but never the user's data folder; windows are drawn off screen unless a test says otherwise."""
    return {
        **os.environ,
        "GROWBOX_MODELS_DIR": str(models_path().absolute()),
        "GROWBOX_HYPOTHESIS": os.environ.get("GROWBOX_HYPOTHESIS", "ci"),
        "QT_QPA_PLATFORM": os.environ.get("QT_QPA_PLATFORM", "offscreen"),
        "PYTHONUTF8": "1",
    }
