"""A short session in the real window around a scripted engine: every act, a restart, a kill and a start after it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.program import ROOT


@pytest.mark.gui
@pytest.mark.slow
@pytest.mark.crash
@pytest.mark.timeout(900)
@pytest.mark.skipif(sys.platform == "win32", reason="the commands of the acts are a POSIX shell's")
def test_a_session_loses_nothing_and_never_freezes(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.session", "--minutes", "0", "--folder", tmp_path],
        cwd=ROOT,
        env=os.environ | {"QT_QPA_PLATFORM": "offscreen"},
        capture_output=True,
        timeout=890,
        check=False,
    )
    report = json.loads(done.stdout)
    assert done.returncode == 0, report["failed"]
    assert (report["lives"], report["killed"]) == (3, 1)
    assert len(report["acts"]) == 14
    assert report["turns"] >= sum(report["acts"].values()) - report["acts"]["look_elsewhere"]
    assert report["stops"] == sum(n for act, n in report["acts"].items() if act.startswith("stop_"))
    assert list((tmp_path / "shots").glob("*.png"))
