"""How a window ends, and what the next one says about it: real processes, off screen.

Fault model: SIGKILL (a power cut looks the same to the next start), a native crash, an error in a slot, the ends a session asks for.
Demanded: an unexpected end is told once, without a word of the user's; an asked-for end is never told.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.program import ROOT
from ui.crash import past_crashes

pytestmark = [pytest.mark.crash, pytest.mark.skipif(os.name == "nt", reason="POSIX signals")]
SECONDS = 60


def start(what: str, data: Path, **environment: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-m", "tests.crash.window_child", what, str(data)],
        cwd=ROOT,
        env={**os.environ, "QT_QPA_PLATFORM": "offscreen", **environment},
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )


def ready(process: subprocess.Popen[bytes]) -> None:
    assert process.stdout is not None
    assert process.stdout.readline() == b'"ready"\n'


def ended(process: subprocess.Popen[bytes]) -> int:
    process.communicate(timeout=SECONDS)
    return process.returncode


def told(data: Path) -> str | None:
    """What the next window says of earlier runs."""
    process = start("read", data)
    out, _ = process.communicate(timeout=SECONDS)
    assert process.returncode == 0
    answer: str | None = json.loads(out)
    return answer


def run_and_kill(what: str, data: Path, number: signal.Signals) -> int:
    process = start(what, data)
    ready(process)
    process.send_signal(number)
    return ended(process)


def test_a_killed_window_is_told_once(tmp_path: Path) -> None:
    assert told(tmp_path) is None
    assert run_and_kill("wait", tmp_path, signal.SIGKILL) == -signal.SIGKILL
    report = told(tmp_path)
    assert report is not None
    assert "GrowBox 0." in report
    assert "CPU variant" in report
    assert "No trace was left" in report
    assert told(tmp_path) is None


def test_a_native_crash_is_told_with_its_trace(tmp_path: Path) -> None:
    process = start("segfault", tmp_path)
    ready(process)
    assert ended(process) == -signal.SIGSEGV
    report = told(tmp_path)
    assert report is not None
    assert "Segmentation fault" in report
    assert "string_at" in report
    assert "No trace was left" not in report
    assert (tmp_path / "logs" / "native-crash.log").read_bytes() == b""
    assert told(tmp_path) is None


def test_an_error_before_the_end_is_told_by_its_place_only(tmp_path: Path) -> None:
    run_and_kill("error", tmp_path, signal.SIGKILL)
    report = told(tmp_path)
    assert report is not None
    assert "builtins.ValueError" in report
    assert "window_child.py" in report
    assert "secret" not in report.replace('raise ValueError("my secret words")', "")
    assert "secret" in (tmp_path / "logs" / "crash.log").read_text(encoding="utf-8")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_an_end_that_the_session_asks_for_is_not_told(
    tmp_path: Path, number: signal.Signals
) -> None:
    assert run_and_kill("wait", tmp_path, number) == 0
    assert told(tmp_path) is None


def test_an_error_that_the_window_survived_is_not_told_again(tmp_path: Path) -> None:
    assert run_and_kill("error", tmp_path, signal.SIGTERM) == 0
    assert told(tmp_path) is None


@pytest.mark.skipif(shutil.which("Xvfb") is None, reason="needs an X server to end")
def test_a_display_that_goes_away_is_the_end_of_a_session(tmp_path: Path) -> None:
    reader, writer = os.pipe()
    server = subprocess.Popen(
        ["Xvfb", "-displayfd", str(writer), "-screen", "0", "1280x800x24", "-nolisten", "tcp"],
        pass_fds=(writer,),
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    with os.fdopen(reader) as stream:
        display = f":{stream.readline().strip()}"
    process = start("wait", tmp_path, QT_QPA_PLATFORM="xcb", DISPLAY=display)
    try:
        ready(process)
    finally:
        server.terminate()
        server.wait(SECONDS)
    assert ended(process) != 0
    assert told(tmp_path) is None


def test_a_running_window_is_no_crash(tmp_path: Path) -> None:
    process = start("wait", tmp_path)
    ready(process)
    try:
        assert list((tmp_path / "logs").glob("running-*"))
        assert past_crashes(tmp_path / "logs") is None
    finally:
        process.terminate()
        ended(process)
    assert not list((tmp_path / "logs").glob("running-*"))


def test_a_process_id_that_is_used_again_hides_nothing(tmp_path: Path) -> None:
    marker = tmp_path / f"running-{os.getpid()}"
    marker.write_text(
        json.dumps({"pid": os.getpid(), "process_started_s": 12.0, "version": "1", "started": "x"})
    )
    past = past_crashes(tmp_path)
    assert past is not None
    assert "GrowBox 1" in past.text
    past.forget()
    assert past_crashes(tmp_path) is None


def test_a_torn_marker_is_shown_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "running-17").write_bytes(b'{"pid": 1\xff')
    past = past_crashes(tmp_path)
    assert past is not None
    assert '{"pid": 1' in past.text
