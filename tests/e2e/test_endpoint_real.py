"""llama-cpp-python's own server on loopback with the light model as the chat model of the whole application.

The server is a process of its own, as a user would start it; GrowBox has its own engine beside it, for the embedder and the judge.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from growbox_app.api import AskRequest, PhaseChanged, ProblemCode, ProblemError, TextDelta
from growbox_app.assistant import GrowBox, Options
from growbox_app.endpoints.estimate import estimate
from growbox_app.endpoints.face import EndpointDraft
from growbox_app.engine.canary import choose_variant
from memory.values import ConversationId, NodeStatus
from tests.fakes.application import ask
from tests.real_models import LIGHT, LIGHT_ID, MODELS

pytestmark = [pytest.mark.model, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
WINDOW = 4096
SMALL = 2048
"""Too small a window for tools: what is asked here needs none, and a small model calls them for everything."""
START_S = 120.0
KEY = "sk-growbox-test-1234"
SAMPLES = [
    "The build server listens on port 8443, and nobody but Ines may restart it after six o'clock.",
    'def open_index(path: str) -> Connection:\n    """Opens it."""\n    return connect(path, read_only=True)\n',
    "构建服务器监听的端口是8443，六点以后只有伊内斯可以重启它。",
    "Die Straßenbahn fährt täglich außer sonntags um 17:45 Uhr; Überraschung! Ελληνικά, русский язык, عربى, ไทย.",
    '{"id": "7f3a-99", "values": [1.25, 3, 4096], "path": "C:\\\\Users\\\\ada\\\\x.log"}',
    "😀🎉 a=b&c=d https://example.com/a/b?c=%20d#e\n\n\n\t\t| x | y |\n|---|---|\n",
]


@contextlib.asynccontextmanager
async def llama_server(folder: Path, window: int = WINDOW) -> AsyncIterator[str]:
    """The base URL of a running server."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    variant = choose_variant(str(LIGHT), memory=folder / "data" / "cpu_variant.json", threads=2)
    command = [sys.executable, "-m", "tests.fakes.llama_server", variant, "--model", str(LIGHT)]
    command += ["--n_ctx", str(window), "--port", str(port), "--api_key", KEY, "--n_threads", "2"]
    environment = os.environ | {"GOMP_SPINCOUNT": "1000"}
    with (folder / "server.log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env=environment, cwd=ROOT)  # noqa: ASYNC220
        try:
            async with asyncio.timeout(START_S):
                while not await _listens(port):
                    assert process.poll() is None, (folder / "server.log").read_text()[-3000:]
                    await asyncio.sleep(0.2)
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.kill()
            process.wait()


async def _listens(port: int) -> bool:
    with contextlib.suppress(OSError):
        _, writer = await asyncio.open_connection("127.0.0.1", port)
        writer.close()
        await writer.wait_closed()
        return True
    return False


async def ask_on(app: GrowBox, text: str, at: ConversationId | None) -> str:
    finished = await ask(app, text, at)
    assert finished.status is NodeStatus.COMPLETE, finished.problem
    return finished.answer.content


async def trouble(app: GrowBox, draft: EndpointDraft) -> ProblemCode:
    with pytest.raises(ProblemError) as caught:
        await app.endpoints.test(draft)
    return caught.value.problem.code


async def stopped_after_first_word(app: GrowBox) -> float:
    """Seconds from the user's stop to the end of the turn."""
    loop = asyncio.get_running_loop()
    stopped_at = 0.0
    async for event in app.ask(AskRequest(text="Count from 1 to 300, one number a line.")):
        if isinstance(event, TextDelta) and not stopped_at:
            stopped_at = loop.time()
            await app.stop()
    assert stopped_at
    return loop.time() - stopped_at


async def stopped_while_reading(app: GrowBox) -> float:
    """The same while the server has not written a word yet."""
    loop = asyncio.get_running_loop()
    stopped_at = 0.0
    long_text = "Read this: " + "one two three four five six seven eight. " * 60
    async for event in app.ask(AskRequest(text=long_text)):
        if isinstance(event, PhaseChanged) and event.phase == "reading" and not stopped_at:
            await asyncio.sleep(0.5)
            stopped_at = loop.time()
            await app.stop()
    assert stopped_at
    return loop.time() - stopped_at


async def exercise(app: GrowBox, folder: Path) -> None:
    """What a user does with a server of his own."""
    async with llama_server(folder) as url:
        await exercise_on(app, url)


async def exercise_on(app: GrowBox, url: str) -> None:
    assert await trouble(app, EndpointDraft(base_url=url, key="sk-wrong-key-9999")) is (
        ProblemCode.ENDPOINT_KEY
    )
    served = await app.endpoints.test(EndpointDraft(base_url=url, key=KEY))
    assert served
    draft = EndpointDraft(base_url=url, model=served[0].id, key=KEY, context_tokens=SMALL)
    endpoint = await app.endpoints.save(draft)
    await app.endpoints.choose(endpoint.id)

    first = await ask(app, "Remember: the build server listens on port 8443.")
    assert first.status is NodeStatus.COMPLETE, first.problem
    assert first.answer.content.strip()
    assert 0 < first.stats.prompt_tokens <= WINDOW
    assert first.stats.answered_by.endswith(url.split("/")[2])
    at = first.answer.conversation_id
    assert "8443" in await ask_on(app, "Which port does the build server listen on?", at)
    assert await stopped_after_first_word(app) < 1.0
    assert await stopped_while_reading(app) < 1.0

    elsewhere = await ask(app, "On which port does the build server listen?")
    assert elsewhere.status is NodeStatus.COMPLETE, elsewhere.problem
    assert any("8443" in memory.excerpt for memory in elsewhere.memories)
    assert "8443" in elsewhere.answer.content


async def never_too_few(app: GrowBox, _folder: Path) -> None:
    """The estimate against the tokenizer of a real model."""
    await app._loop.window("hello")
    counted = await app._loop.count(SAMPLES)
    for text, tokens in zip(SAMPLES, counted, strict=True):
        assert tokens <= estimate(text) <= 3 * tokens + 8, text


async def overflow(app: GrowBox, folder: Path) -> None:
    """The user has said that the server holds more than it does: the turn still ends with an answer."""
    async with llama_server(folder, SMALL) as url:
        await overflow_on(app, url)


async def overflow_on(app: GrowBox, url: str) -> None:
    draft = EndpointDraft(base_url=url, model="m", key=KEY, context_tokens=32768)
    endpoint = await app.endpoints.save(draft)
    await app.endpoints.choose(endpoint.id)
    finished = await ask(app, "Summarise in five words: " + "the cat sat on the mat. " * 1200)
    assert finished.status is NodeStatus.COMPLETE, finished.problem
    assert 0 < finished.stats.prompt_tokens <= SMALL


def run(tmp_path: Path, body: Callable[[GrowBox, Path], Awaitable[None]]) -> None:
    """The application with the real engine."""

    async def main() -> None:
        app = GrowBox(
            data_path=tmp_path / "data",
            models_path=MODELS,
            options=Options(listen=False, find_keyring=lambda: None),
        )
        await app.change_setting("models.chat", LIGHT_ID)
        await app.change_setting("models.context_tokens", WINDOW)
        await app.change_setting("models.answer_tokens", 64)
        await app.change_setting("models.temperature", 0.0)
        await app.change_setting("models.prewarm", value=False)
        try:
            await app.start(lambda _progress: None)
            await body(app, tmp_path)
        finally:
            await app.shutdown()

    asyncio.run(main())


@pytest.mark.timeout(900)
@pytest.mark.parametrize("body", [exercise, never_too_few, overflow])
def test_the_server_of_llama_cpp_python_answers(
    tmp_path: Path, body: Callable[[GrowBox, Path], Awaitable[None]]
) -> None:
    run(tmp_path, body)
