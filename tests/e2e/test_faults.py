"""Bad surroundings of the real program: each gets a sentence, nothing hangs, nothing is lost."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from growbox_app.models.catalogue import find
from tests.e2e.program import ROOT, ask, environment, use_light_model
from tests.real_models import EMBEDDER, LIGHT, LIGHT_ID

pytestmark = pytest.mark.model


def ask_raw(data: Path, text: str, **environ: str) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, "-m", "growbox_app", "ask", text],
        cwd=ROOT,
        env=environment(data) | environ,
        capture_output=True,
        timeout=120,
        check=False,
    )


def test_a_missing_model_is_named_with_what_to_do(tmp_path: Path) -> None:
    use_light_model(tmp_path / "data")
    done = ask_raw(tmp_path / "data", "Hello there", GROWBOX_MODELS_DIR=str(tmp_path / "none"))
    assert done.returncode == 1
    assert "0.5B" in done.stderr.decode()


@pytest.mark.parametrize("damage", ["truncated", "html", "flipped"])
def test_a_wrong_model_file_is_refused_in_words(tmp_path: Path, damage: str) -> None:
    use_light_model(tmp_path / "data")
    models = tmp_path / "models 模型"
    models.mkdir()
    shutil.copy(EMBEDDER, models / EMBEDDER.name)
    target = models / LIGHT.name
    content = bytearray(LIGHT.read_bytes())
    if damage == "truncated":
        del content[len(content) // 2 :]
    elif damage == "html":
        content = bytearray(b"<!DOCTYPE html><title>Sign in</title>")
    else:
        content[300_000_000] ^= 0xFF
    target.write_bytes(content)
    done = ask_raw(tmp_path / "data", "Hello there", GROWBOX_MODELS_DIR=str(models))
    assert done.returncode == 1
    assert find(LIGHT_ID).name in done.stderr.decode()
    assert done.stdout.strip() == b""


def test_a_second_command_is_answered_by_the_running_instance(tmp_path: Path) -> None:
    use_light_model(tmp_path)
    first = subprocess.Popen(
        [sys.executable, "-m", "tests.e2e.window_driver", "wait"],
        cwd=ROOT,
        env=environment(tmp_path),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    assert first.stdout is not None
    try:
        for line in first.stdout:
            if b'"engine"' in line:
                break
        report = ask(tmp_path, "Name one prime number.")
        assert report["status"] == "complete"
        assert report["answer"]
    finally:
        first.terminate()
        assert first.wait(30) == 0
        first.stdout.close()


def test_a_corrupted_vector_folder_is_set_aside_and_the_fact_is_still_found(tmp_path: Path) -> None:
    use_light_model(tmp_path)
    ask(tmp_path, "My favourite database is DuckDB, please remember that.")
    vectors = tmp_path / "vectors"
    vectors.mkdir(exist_ok=True)
    (vectors / "chroma.sqlite3").write_bytes(b"\0" * 4096)
    asked = ask(tmp_path, "Which database do I like best?")
    assert asked["status"] == "complete"
    assert any("DuckDB" in memory["text"] for memory in asked["memories"])


@pytest.mark.skipif(sys.platform != "linux", reason="strace")
def test_nothing_of_the_network_is_touched(tmp_path: Path) -> None:
    use_light_model(tmp_path)
    log = tmp_path / "strace.log"
    tracer = ["strace", "-f", "-qq", "-e", "trace=socket,connect", "-o", str(log)]
    subprocess.run(
        [*tracer, sys.executable, "-m", "growbox_app", "ask", "Name one prime number.", "--json"],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        timeout=200,
        check=True,
    )
    lines = log.read_text(errors="replace").splitlines()
    assert not [line for line in lines if "AF_INET" in line]
