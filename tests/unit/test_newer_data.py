"""Data of a newer GrowBox: every headless command says so in a sentence and touches nothing."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

import pytest

from growbox_app import cli
from growbox_app.text import tr

WORDS = {"en": "written by a newer GrowBox (version 99;", "zh": "由更新版本的 GrowBox"}


@pytest.fixture
def newer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    raw = sqlite3.connect(tmp_path / "timeline.db")
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    monkeypatch.setattr(
        tr, "language", "en"
    )  # put back: starting uses the language of the settings
    monkeypatch.setenv("GROWBOX_DATA_DIR", str(tmp_path))
    monkeypatch.setenv("GROWBOX_MODELS_DIR", str(tmp_path / "models"))
    return tmp_path


@pytest.mark.parametrize("language", WORDS)
@pytest.mark.parametrize("command", [["ask", "hello"], ["audit", "--fix"], ["rebuild"]])
def test_every_command_refuses_it(
    newer: Path,
    capsys: pytest.CaptureFixture[str],
    language: str,
    command: list[str],
) -> None:
    chosen = {"general.language": language}
    (newer / "settings.json").write_text(json.dumps(chosen), encoding="utf-8")
    before = (newer / "timeline.db").read_bytes()
    assert cli.main(command) == 1
    said = capsys.readouterr()
    assert WORDS[language] in said.err
    assert said.out == ""
    assert (newer / "timeline.db").read_bytes() == before
    assert not list(newer.glob("timeline.db*before*"))


def test_a_program_that_reads_the_answer_gets_the_code(
    newer: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cli.main(["ask", "hello", "--json"]) == 1
    problem = json.loads(capsys.readouterr().out)["problem"]
    assert problem["code"] == "data_too_new"
