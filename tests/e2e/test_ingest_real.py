"""Files given to the real program are found by the next question, by their meaning too."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.program import ROOT, ask, environment, use_light_model
from tests.unit.test_ingest_files import pdf, put

INGEST_S = 240


@pytest.mark.model
@pytest.mark.slow
def test_what_a_file_says_stands_before_the_model(tmp_path: Path) -> None:
    data, files = tmp_path / "data", tmp_path / "资料"
    use_light_model(data, **{"models.answer_tokens": 24})
    put(
        files,
        {
            "notes/deploy.md": "# Deploying\n\nThe staging server listens on port 48213.\n",
            "src/tax.py": "def vat(amount):\n    return amount * 0.19\n",
            "笔记.txt": "钥匙放在蓝色的花盆下面。\n",
        },
    )
    (files / "bird.pdf").write_bytes(pdf("The kakapo is a parrot that cannot fly."))
    done = subprocess.run(
        [sys.executable, "-m", "growbox_app", "ingest", str(files), "--json"],
        cwd=ROOT,
        env=environment(data),
        capture_output=True,
        timeout=INGEST_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()[-2000:]
    assert json.loads(done.stdout)["added"] == 4
    for question, told in (
        ("On which port does staging listen?", "48213"),
        ("花盆下面放着什么？", "钥匙"),
        ("Which flightless bird did I read about?", "kakapo"),
    ):
        memories = ask(data, question)["memories"]
        assert any(told in memory["text"] for memory in memories), (question, memories)
