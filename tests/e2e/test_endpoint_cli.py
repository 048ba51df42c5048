"""`growbox ask` on a computer without any model: a server answers, and the memory is kept all the same."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from growbox_app.endpoints.book import EndpointBook, StoredEndpoint
from growbox_app.endpoints.face import CHOSEN
from tests.fakes.chat_server import Script, chat_server, refuses, says

ROOT = Path(__file__).resolve().parents[2]
TIME_OUT_S = 240.0


async def asked(folder: Path, *scripts: Script) -> tuple[int, dict[str, Any], str]:
    """Exit code, the JSON on stdout and the words on stderr."""
    async with chat_server(*scripts) as server:
        endpoint = StoredEndpoint(
            id="s1", name="mine", base_url=server.url, model="m-1", context_tokens=8192
        )
        book = EndpointBook(folder)
        book.put(endpoint)
        (folder / "settings.json").write_bytes(msgspec.json.encode({CHOSEN: "s1"}))
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "growbox_app", "ask", "--json", "Which port is it?"),
            cwd=ROOT,
            env=os.environ | {"GROWBOX_DATA_DIR": str(folder)},
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        async with asyncio.timeout(TIME_OUT_S):
            out, err = await process.communicate()
        assert process.returncode is not None
        return process.returncode, json.loads(out), err.decode()


@pytest.mark.slow
def test_a_question_on_the_command_line_is_answered_by_the_server(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    code, report, _ = asyncio.run(asked(folder, says("Port ", "8443.")))
    assert code == 0
    assert report["answer"] == "Port 8443."
    assert report["stats"]["answered_by"].startswith("m-1 · 127.0.0.1:")


@pytest.mark.slow
def test_trouble_of_the_server_is_a_sentence_on_the_command_line(tmp_path: Path) -> None:
    folder = tmp_path / "data"
    folder.mkdir()
    code, report, words = asyncio.run(asked(folder, refuses(401, {"error": "no"})))
    assert code == 1
    assert report["problem"]["code"] == "endpoint_key"
    assert "does not accept the key" in words
