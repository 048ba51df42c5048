"""The real window, driven like a person would, with the real light model: type, stream, stop, restart, recall."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.program import ROOT, environment, use_light_model

pytestmark = [pytest.mark.model, pytest.mark.gui]


def drive(data: Path, script: str, folder: Path) -> dict[str, dict[str, Any]]:
    """Runs one script of the driver; returns its steps by name."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.e2e.window_driver", script, str(folder)],
        cwd=ROOT,
        env=environment(data),
        capture_output=True,
        timeout=240,
        check=False,
    )
    lines = [json.loads(line) for line in done.stdout.decode().splitlines()]
    assert done.returncode == 0, (lines, done.stderr.decode()[-3000:])
    return {line["step"]: line for line in lines}


def test_type_stream_stop_restart_recall(tmp_path: Path) -> None:
    data = tmp_path / "用户 data 🙂"
    use_light_model(data)
    first = drive(data, "tell", tmp_path)
    assert first["engine"]["phase"] == "ready"
    assert first["streaming"]["stop_visible"]
    assert "stopped" in first["stopped"]["text"]
    assert (tmp_path / "streaming.png").stat().st_size > 10_000
    second = drive(data, "recall", tmp_path)
    assert "DuckDB" in second["recalled"]["answer"]
    ways = [way for way, excerpt in second["recalled"]["memories"] if "DuckDB" in excerpt]
    assert ways
    assert set(ways) <= {"rag", "pointer", "scan"}
    assert "1" in second["recalled"]["text"].rsplit("used", 1)[1]


def test_without_a_display_the_window_says_so_and_points_to_ask(tmp_path: Path) -> None:
    environ = environment(tmp_path)
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "QT_QPA_PLATFORM"):
        environ.pop(name, None)
    done = subprocess.run(
        [sys.executable, "-m", "ui.main"],
        cwd=ROOT,
        env=environ,
        capture_output=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 2
    assert " ask " in done.stderr.decode()
