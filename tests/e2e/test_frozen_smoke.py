"""The smoke test of the frozen app: on a toy that has one fault at a time, and on the real thing when it was built.

`GROWBOX_FROZEN_APP` names the app folder of a build; without it only the toy is run.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from tests.e2e.program import ROOT

FROZEN_APP = os.environ.get("GROWBOX_FROZEN_APP", "")
SCRIPT = ROOT / "packaging" / "smoke_test.py"
WINDOW = """
import socket, subprocess, sys
from PySide6.QtWidgets import QApplication, QPlainTextEdit
fault = {fault!r}
if fault == "network":
    socket.socket(socket.AF_INET).close()
app = QApplication([])
window = QPlainTextEdit()
window.setWindowTitle("GrowBox")
window.setStyleSheet("border: 9px solid red; padding: 9px; background: blue")
window.setPlainText("words " * 2000)
window.resize(800, 600)
window.show()
app.exec()
if fault == "child":
    subprocess.Popen(["/bin/sleep", "60"])
sys.exit(3 if fault == "code" else 0)
"""
PROBLEM = {"problem": {"code": "model_missing", "fields": {}, "detail": ""}}


@cache
def can_isolate() -> bool:
    """Whether this machine has what the smoke test needs and lets it make namespaces."""
    if sys.platform != "linux" or not all(map(shutil.which, ("Xvfb", "unshare", "strace"))):
        return False
    user = [] if os.geteuid() == 0 else ["--user", "--map-root-user"]
    words = ["unshare", *user, "--net", "--mount", "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(words, capture_output=True, check=False).returncode == 0


def toy(folder: Path, fault: str) -> Path:
    """An app folder without models whose programs are scripts."""
    app = folder / "toy"
    app.mkdir()
    (app / "VERSION").write_text("1.2.3\n")
    answer = json.dumps(PROBLEM)
    programs = {
        "GrowBox": f"exec {sys.executable} -c '{WINDOW.format(fault=fault).replace(chr(39), chr(34))}'",
        "growbox-cli": f"echo '{answer}'; echo The model is not on this machine yet. >&2; exit 1",
    }
    for name, line in programs.items():
        (app / name).write_text(f"#!/bin/sh\n{line}\n", encoding="utf-8")
        (app / name).chmod(0o755)
    return app


def smoke(
    app: Path, folder: Path, *options: str, timeout_s: float = 120
) -> tuple[int, dict[str, Any]]:
    """Runs the smoke test; returns its exit code and report."""
    report = folder / "report.json"
    scratch = folder / "scratch"
    scratch.mkdir()
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(app), "--report", str(report), *options],
        env=os.environ | {"TMPDIR": str(scratch)},
        capture_output=True,
        timeout=timeout_s,
        check=False,
    )
    assert report.exists(), done.stdout.decode() + done.stderr.decode()
    assert list(scratch.iterdir()) == []
    return done.returncode, json.loads(report.read_text(encoding="utf-8"))


def failed(report: dict[str, Any]) -> list[str]:
    return [f"{step['name']}: {step['detail']}" for step in report["steps"] if not step["ok"]]


needs_namespaces = pytest.mark.skipif(not can_isolate(), reason="Xvfb, strace or namespaces")


@pytest.mark.gui
@needs_namespaces
def test_a_good_toy_passes_and_is_measured(tmp_path: Path) -> None:
    code, report = smoke(toy(tmp_path, ""), tmp_path, "--same-user")
    assert failed(report) == []
    assert code == 0
    assert (report["version"], report["flavour"], report["isolated"]) == ("1.2.3", "slim", True)
    assert 0 < report["window_s"] <= report["painted_s"] < 30
    assert (tmp_path / "report.png").stat().st_size > 1000


@pytest.mark.gui
@needs_namespaces
@pytest.mark.parametrize(
    ("fault", "words"),
    [("code", "exit code 3"), ("child", "Still running after the end: {'sleep': 1}")],
)
def test_a_bad_end_is_told(fault: str, words: str, tmp_path: Path) -> None:
    code, report = smoke(toy(tmp_path, fault), tmp_path, "--same-user")
    assert code == 1
    assert not report["ok"]
    assert len(failed(report)) == 1
    assert words in failed(report)[0]


@pytest.mark.gui
@needs_namespaces
def test_the_trace_tells_sockets_and_foreign_programs(tmp_path: Path) -> None:
    code, report = smoke(toy(tmp_path, "network"), tmp_path, "--same-user", "--trace")
    assert code == 1
    assert report["sockets"]["inet"] == 2  # one for each start
    assert report["sockets"]["unix"] > 0
    last = failed(report)
    assert len(last) == 1
    assert "internet" in last[0]
    assert Path(sys.executable).name in last[0]  # the toy is a Python program


@needs_namespaces
def test_an_app_that_does_not_start_is_told_at_once(tmp_path: Path) -> None:
    app = toy(tmp_path, "")
    (app / "GrowBox").write_text("#!/bin/sh\necho no such library >&2\nexit 127\n")
    code, report = smoke(app, tmp_path, "--same-user")
    assert code == 1
    assert "exit code 127" in failed(report)[0]
    assert "no such library" in failed(report)[0]


def test_a_folder_without_the_app_is_told(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, str(SCRIPT), str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    assert "There is no GrowBox" in done.stdout


@pytest.mark.model
@pytest.mark.timeout(900)
@pytest.mark.skipif(not FROZEN_APP, reason="GROWBOX_FROZEN_APP names no build")
def test_the_frozen_app_works_on_a_machine_that_has_nothing() -> None:
    # Not pytest's folder: only its owner may enter that, and the app runs as somebody else.
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        folder.chmod(0o755)
        isolation = ["--trace"] if can_isolate() else ["--no-isolation"]
        code, report = smoke(Path(FROZEN_APP), folder, *isolation, timeout_s=800)
    assert failed(report) == []
    assert code == 0
    assert report["sockets"]["inet"] == report["sockets"]["inet6"] == 0 or not can_isolate()
