"""`python -m growbox_app ingest PATH…`: here, through a running instance, and killed in the middle."""

from __future__ import annotations

import asyncio
import json
import os
import sqlite3
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from typing import Any

import psutil
import pytest

from growbox_app import cli
from growbox_app.assistant import GrowBox, Options
from memory.values import RecallQuery
from tests.fakes import scripted_engine
from tests.unit.test_ingest_files import put

ROOT = Path(__file__).resolve().parents[2]
FILES = {f"{n}.txt": f"Number {n} is kept in file {n}. 数字 {n}。" for n in range(30)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    put(tmp_path / "files", FILES)
    return tmp_path / "files"


def command(*arguments: object) -> list[str]:
    return [sys.executable, "-m", "growbox_app", "ingest", *map(str, arguments)]


def told(output: str) -> dict[str, Any]:
    fields: dict[str, Any] = json.loads(output)
    return fields


def test_a_folder_is_added_and_said(folder, capsys):
    assert cli.main(["ingest", str(folder), "--json"]) == 0
    said = capsys.readouterr()
    assert told(said.out)["added"] == 30
    assert "Files: 30 new, 0 changed, 0 unchanged. New passages: 30." in said.err
    assert "30 passages wait" in said.err  # there is no model here
    (folder / "bad.bin").write_bytes(b"\0")
    assert cli.main(["ingest", str(folder / "1.txt"), str(folder), "--project", str(folder)]) == 0
    said = capsys.readouterr()
    assert said.out == ""
    assert f"{folder / 'bad.bin'} · not text" in said.err
    assert "unchanged: 30" in said.err


def test_what_is_not_there_is_trouble(tmp_path, capsys):
    assert cli.main(["ingest", str(tmp_path / "none")]) == 1
    assert f"{tmp_path / 'none'} · not there" in capsys.readouterr().err
    with pytest.raises(SystemExit) as caught:
        cli.main(["ingest"])
    assert caught.value.code == 2
    capsys.readouterr()
    assert cli.main(["ingest", str(tmp_path), "--project", str(tmp_path / "none")]) == 1


def test_the_running_instance_adds_them(tmp_path, folder):
    async def main() -> None:
        options = Options(engine_target=scripted_engine.run, scripted_engine=True)
        app = GrowBox(data_path=tmp_path / "data", models_path=tmp_path / "models", options=options)
        await app.start(lambda _progress: None)
        try:
            done = await asyncio.to_thread(
                subprocess.run,
                command(folder, "--json", "--project", folder),
                cwd=ROOT,
                capture_output=True,
                timeout=60,
                check=False,
            )
            assert done.returncode == 0, done.stderr.decode()
            assert told(done.stdout.decode())["added"] == 30
            assert "30 new" in done.stderr.decode()
            result = await app._memory.drive(
                lambda engine: engine.recall(RecallQuery(text="number 17 file 17"))
            )
            assert result.pages[0].node.content == FILES["17.txt"]
            assert result.pages[0].node.project_id == (await app.library.projects())[0].id
            refused = await asyncio.to_thread(
                subprocess.run,
                command(folder, "--json", "--project", tmp_path / "none"),
                cwd=ROOT,
                capture_output=True,
                timeout=60,
                check=False,
            )
            assert refused.returncode == 1
            assert told(refused.stdout.decode())["problem"]["code"] == "no_project_folder"
        finally:
            await app.shutdown()

    asyncio.run(main())


@pytest.mark.crash
@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_killed_ingest_goes_on_where_it_stopped(tmp_path, folder, capsys):
    put(folder, {f"more {n}.txt": f"More of number {n}." for n in range(300)})
    process = subprocess.Popen(
        command(folder), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while kept(tmp_path / "data") < 20:
        assert process.poll() is None
        threading.Event().wait(0.005)
    children = psutil.Process(process.pid).children(recursive=True)
    process.kill()
    process.wait(10)
    assert psutil.wait_procs(children, timeout=10)[1] == []
    assert kept(tmp_path / "data") < 330
    assert cli.main(["ingest", str(folder), "--json"]) == 0
    fields = told(capsys.readouterr().out)
    assert fields["unchanged"] >= 20
    assert fields["added"] + fields["unchanged"] == 330
    assert cli.main(["audit"]) == 0


def kept(data: Path) -> int:
    """Documents that are durable, read beside the program."""
    path = data / "timeline.db"
    if not path.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as database:
            return int(database.execute("SELECT count(*) FROM documents").fetchone()[0])
    except sqlite3.OperationalError:  # not made yet
        return 0


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_a_polite_stop_keeps_what_is_done_and_says_so(folder):
    put(folder, {f"more {n}.txt": f"More of number {n}." for n in range(300)})
    process = subprocess.Popen(
        command(folder), cwd=ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    data = Path(os.environ["GROWBOX_DATA_DIR"])
    while kept(data) < 5:
        assert process.poll() is None
        threading.Event().wait(0.005)
    process.terminate()
    _, words = process.communicate(timeout=30)
    assert process.returncode == 130
    assert "What was added so far is kept" in words.decode()
    assert 5 <= kept(data) < 330
