"""The real program as a child process, for end-to-end tests."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.real_models import LIGHT_ID, MODELS

ROOT = Path(__file__).parent.parent.parent
ASK_S = 240


def environment(data: Path) -> dict[str, str]:
    """The environment of a child: its own data folder, shared models, off-screen windows."""
    return os.environ | {
        "GROWBOX_DATA_DIR": str(data),
        "GROWBOX_MODELS_DIR": str(MODELS),
        "QT_QPA_PLATFORM": "offscreen",
        "PYTHONUNBUFFERED": "1",
    }


def use_light_model(data: Path, **settings: object) -> None:
    """Writes settings that choose the light model and greedy decoding."""
    data.mkdir(parents=True, exist_ok=True)
    chosen = {
        "models.chat": LIGHT_ID,
        "models.temperature": 0.0,
        "models.context_tokens": 4096,
        "models.answer_tokens": 160,
    }
    (data / "settings.json").write_text(json.dumps(chosen | settings), encoding="utf-8")


def ask(data: Path, text: str, *arguments: str) -> dict[str, Any]:
    """Runs `ask --json` in a new process and returns its report."""
    done = subprocess.run(
        [sys.executable, "-m", "growbox_app", "ask", text, "--json", *arguments],
        cwd=ROOT,
        env=environment(data),
        capture_output=True,
        timeout=ASK_S,
        check=False,
    )
    output = done.stdout.decode()
    assert output, f"exit {done.returncode}: {done.stderr.decode()[-2000:]}"
    report: dict[str, Any] = json.loads(output)
    return report | {"exit": done.returncode, "stderr": done.stderr.decode()}
