"""Whole turns answered by a server: the same journal, memory, tools and stop as with the model of this machine; keys; Offline."""

from __future__ import annotations

import asyncio
import itertools
import json
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from growbox_app.api import (
    AskRequest,
    MemoriesFound,
    PhaseChanged,
    ProblemCode,
    ProblemError,
    TextDelta,
    ToolCalled,
    TurnEvent,
    TurnFinished,
)
from growbox_app.assistant import GrowBox
from growbox_app.endpoints.face import CHOSEN, OFFLINE, Endpoint, EndpointDraft
from growbox_app.report import TurnReport
from memory.values import ConversationId, NodeStatus
from tests.fakes.application import run_application, scripted
from tests.fakes.chat_server import (
    Answering,
    ChatServer,
    Script,
    calls,
    chat_server,
    delta,
    hangs,
    refuses,
    says,
)
from tests.fakes.keyring_backend import MemoryKeyring

KEY = "sk-very-secret-key-1"
Body = Callable[[GrowBox, ChatServer], Awaitable[None]]


def run(tmp_path: Path, body: Body, *scripts: Script, keyring: MemoryKeyring | None = None) -> None:
    async def inside(app: GrowBox) -> None:
        async with chat_server(*scripts) as server:
            await body(app, server)

    run_application(lambda: scripted(tmp_path, find_keyring=lambda: keyring), inside)


async def use(app: GrowBox, url: str, **fields: object) -> Endpoint:
    draft = EndpointDraft(**{"base_url": url, "model": "m-1"} | fields)  # type: ignore[arg-type]
    endpoint = await app.endpoints.save(draft)
    await app.endpoints.choose(endpoint.id)
    return endpoint


async def turn(
    app: GrowBox, text: str, conversation_id: ConversationId | None = None
) -> tuple[list[TurnEvent], TurnFinished]:
    request = AskRequest(text=text, conversation_id=conversation_id)
    events = [event async for event in app.ask(request)]
    last = events[-1]
    assert isinstance(last, TurnFinished)
    return events, last


def files_with(folder: Path, text: str) -> list[Path]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return [path for path in files if text.encode() in path.read_bytes()]


def test_a_server_answers_and_everything_else_is_as_ever(tmp_path: Path) -> None:
    usage = {
        "prompt_tokens": 500,
        "completion_tokens": 4,
        "prompt_tokens_details": {"cached_tokens": 400},
    }

    async def body(app: GrowBox, server: ChatServer) -> None:
        await turn(app, "The build server listens on port 8443.")
        await app.settle(10)
        await use(app, server.url)
        events, last = await turn(app, "Which port does the build server use?")
        assert last.status is NodeStatus.COMPLETE
        assert last.answer.content == "Port 8443."
        assert "".join(e.text for e in events if isinstance(e, TextDelta)) == "Port 8443."
        assert any(isinstance(e, MemoriesFound) and e.memories for e in events)
        sent = server.requests[-1].messages
        assert [message["role"] for message in sent] == ["system", "user"]
        assert "8443" in sent[1]["content"]
        stats = app.trace_of(last.answer)[1]
        assert (stats.prompt_tokens, stats.reused_tokens) == (500, 400)
        assert stats.answered_by == f"m-1 · {server.url.split('/')[2]}"
        assert TurnReport.of(last).fields["stats"]["answered_by"] == stats.answered_by

    run(tmp_path, body, says("Port ", "8443.", usage=usage))


def test_the_next_prompt_begins_with_the_last_one_byte_by_byte(tmp_path: Path) -> None:
    async def body(app: GrowBox, server: ChatServer) -> None:
        await use(app, server.url)
        _, first = await turn(app, "hello there, who are you")
        at = first.answer.conversation_id
        await turn(app, "and what can you do", at)
        await turn(app, "show me", at)
        asked = [json.dumps(request.messages) for request in server.requests]
        for before, after in itertools.pairwise(asked):
            assert after.startswith(before[:-1])
        heads = {json.dumps({**r.body, "messages": 0, "seed": 0}) for r in server.requests}
        assert len(heads) == 1

    run(tmp_path, body, says("I am a script."))


def test_tools_are_called_natively_and_their_results_go_back(tmp_path: Path) -> None:
    async def body(app: GrowBox, server: ChatServer) -> None:
        await turn(app, "the deploy key lives in vault seven")
        await app.settle(10)
        await use(app, server.url)
        events, last = await turn(app, "where is that thing I told you about")
        called = [event for event in events if isinstance(event, ToolCalled)]
        assert [call.name for call in called] == ["memory_search"]
        assert last.answer.content == "It is in vault seven."
        names = {tool["function"]["name"] for tool in server.requests[0].body["tools"]}
        assert "memory_search" in names
        roles = [message["role"] for message in server.requests[1].messages]
        assert roles[-2:] == ["assistant", "tool"]
        assert "vault seven" in server.requests[1].messages[-1]["content"]

    script = calls("memory_search", '{"query": ', '"deploy key vault"}')
    run(tmp_path, body, script, says("It is in ", "vault seven."))


def test_a_server_without_tools_is_told_of_them_in_words(tmp_path: Path) -> None:
    async def body(app: GrowBox, server: ChatServer) -> None:
        await use(app, server.url)
        events, last = await turn(app, "where is it")
        assert [e.name for e in events if isinstance(e, ToolCalled)] == ["memory_search"]
        assert "<tool_call>" not in "".join(e.text for e in events if isinstance(e, TextDelta))
        assert "memory_search" in server.requests[1].messages[0]["content"]
        assert last.answer.content == "I do not know."

    spoken = says('<tool_call>{"name": "memory_sea', 'rch", "arguments": {"query": "vault"}}')
    refused = refuses(500, {"error": {"message": "tools param requires --jinja flag"}})
    run(tmp_path, body, refused, spoken, says("I do not know."))


def test_a_stop_ends_a_turn_on_a_server_within_a_second(tmp_path: Path) -> None:
    async def body(app: GrowBox, server: ChatServer) -> None:
        await use(app, server.url)
        kept: list[TurnFinished] = []
        started = asyncio.Event()

        async def ask() -> None:
            async for event in app.ask(AskRequest(text="say something long")):
                if isinstance(event, TextDelta):
                    started.set()
                if isinstance(event, TurnFinished):
                    kept.append(event)

        running = asyncio.ensure_future(ask())  # noqa: TID251 - awaited below
        await started.wait()
        async with asyncio.timeout(1):
            await app.stop()
            await running
            await server.closed.wait()
        assert kept[0].status is NodeStatus.CANCELLED
        assert kept[0].answer.content == "so far "

    run(tmp_path, body, hangs)


def test_what_came_before_a_failure_is_kept(tmp_path: Path) -> None:
    async def script(answering: Answering) -> None:
        await answering.head()
        await answering.event(delta("half of an ans"))
        await answering.event({"error": {"message": f"out of memory, key {KEY}"}})

    async def body(app: GrowBox, server: ChatServer) -> None:
        await use(app, server.url, key=KEY)
        _, last = await turn(app, "what is it")
        assert last.status is NodeStatus.FAILED
        assert last.answer.content == "half of an ans"
        assert last.problem is not None
        assert last.problem.code is ProblemCode.ENDPOINT_ERROR
        assert KEY not in str(last)

    run(tmp_path, body, script, keyring=MemoryKeyring())


def test_going_back_to_the_model_of_this_machine(tmp_path: Path) -> None:
    async def body(app: GrowBox, server: ChatServer) -> None:
        await use(app, server.url)
        _, first = await turn(app, "one two three")
        await app.endpoints.choose("")
        _, last = await turn(app, "four five six", first.answer.conversation_id)
        assert last.answer.content == "scripted answer: four five six"
        assert len(server.requests) == 1

    run(tmp_path, body, says("from the server"))


def test_choosing_is_refused_while_a_turn_runs(tmp_path: Path) -> None:
    async def body(app: GrowBox, server: ChatServer) -> None:
        await use(app, server.url)
        async for event in app.ask(AskRequest(text="go")):
            if isinstance(event, PhaseChanged):
                with pytest.raises(ProblemError) as caught:
                    await app.endpoints.choose("")
                assert caught.value.problem.code is ProblemCode.BUSY

    run(tmp_path, body, says("ok"))


# -- keys and Offline -------------------------------------------------------------------------------


def test_a_key_is_in_the_keyring_and_nowhere_else(tmp_path: Path) -> None:
    keyring = MemoryKeyring()

    async def body(app: GrowBox, server: ChatServer) -> None:
        endpoint = await use(app, server.url, key=f"  Bearer {KEY}\n")
        assert endpoint.key == "kept"
        assert list(keyring.secrets.values()) == [KEY]
        await turn(app, "hello")
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"
        assert not files_with(tmp_path, KEY)
        await app.endpoints.remove(endpoint.id)
        assert keyring.secrets == {}
        assert app.endpoints.chosen() is None

    run(tmp_path, body, says("ok"), keyring=keyring)


def test_a_key_does_not_follow_to_another_host(tmp_path: Path) -> None:
    keyring = MemoryKeyring()

    async def body(app: GrowBox, server: ChatServer) -> None:
        endpoint = await use(app, "http://localhost:9/v1", key=KEY)
        moved = EndpointDraft(id=endpoint.id, base_url=server.url, model="m-1")
        with pytest.raises(ProblemError):  # the list is asked for without the key
            await app.endpoints.test(moved)
        assert "authorization" not in server.requests[0].headers
        await app.endpoints.save(moved)
        assert keyring.secrets == {}

    run(tmp_path, body, refuses(401, {"error": "no key"}), keyring=keyring)


def test_without_a_keyring_a_key_lives_as_long_as_the_application(tmp_path: Path) -> None:
    async def body(app: GrowBox, server: ChatServer) -> None:
        endpoint = await use(app, server.url, key=KEY)
        assert endpoint.key == "until_end"
        await turn(app, "hello")
        assert server.requests[0].headers["authorization"] == f"Bearer {KEY}"

    run(tmp_path, body, says("ok"))


@pytest.mark.parametrize("key", ["sk äöü", "two words", "x" * 5000])
def test_what_is_no_key_is_refused(tmp_path: Path, key: str) -> None:
    async def body(app: GrowBox, server: ChatServer) -> None:
        with pytest.raises(ProblemError) as caught:
            await use(app, server.url, key=key)
        assert caught.value.problem.code is ProblemCode.ENDPOINT_KEY_FORM

    run(tmp_path, body, says("ok"), keyring=MemoryKeyring())


def test_offline_nothing_but_this_machine_is_asked(tmp_path: Path) -> None:
    async def body(app: GrowBox, server: ChatServer) -> None:
        assert app.setting(OFFLINE) is True
        far = EndpointDraft(base_url="https://api.example.com/v1", model="big")
        endpoint = await app.endpoints.save(far)
        for wish in (app.endpoints.choose(endpoint.id), app.endpoints.test(far)):
            with pytest.raises(ProblemError) as caught:
                await wish
            assert caught.value.problem.code is ProblemCode.ENDPOINT_OFFLINE
            assert caught.value.problem.fields["host"] == "api.example.com"
        await app.change_setting(CHOSEN, endpoint.id)  # chosen before Offline was switched on
        _, last = await turn(app, "hello")
        assert last.problem is not None
        assert last.problem.code is ProblemCode.ENDPOINT_OFFLINE
        await app.endpoints.choose("")
        await use(app, server.url)
        assert (await turn(app, "hello"))[1].answer.content == "ok"

    run(tmp_path, body, says("ok"))


# -- the list -----------------------------------------------------------------------------------------


def test_a_test_lists_models_and_what_is_known_of_them(tmp_path: Path) -> None:
    listed = {
        "data": [
            {"id": "a", "max_model_len": 32768},
            {"id": "b", "meta": {"n_ctx": 16384}},
            {"id": "c", "context_length": "much"},
            {"nothing": 1},
            7,
        ]
    }

    async def body(app: GrowBox, server: ChatServer) -> None:
        models = await app.endpoints.test(EndpointDraft(base_url=server.url))
        assert [(m.id, m.context_tokens) for m in models] == [("a", 32768), ("b", 16384), ("c", 0)]
        assert (server.requests[0].method, server.requests[0].path) == ("GET", "/v1/models")

    run(tmp_path, body, refuses(200, listed))


@pytest.mark.parametrize(
    ("status", "body_sent", "code"),
    [
        (401, {}, ProblemCode.ENDPOINT_KEY),
        (404, {}, ProblemCode.ENDPOINT_MODEL),
        (200, {"hello": 1}, ProblemCode.ENDPOINT_PROTOCOL),
        (200, b"<html>", ProblemCode.ENDPOINT_PROTOCOL),
        (302, {}, ProblemCode.ENDPOINT_REDIRECT),
    ],
)
def test_a_test_that_fails_says_why(
    tmp_path: Path, status: int, body_sent: object, code: ProblemCode
) -> None:
    async def body(app: GrowBox, server: ChatServer) -> None:
        with pytest.raises(ProblemError) as caught:
            await app.endpoints.test(EndpointDraft(base_url=server.url))
        assert caught.value.problem.code is code

    run(tmp_path, body, refuses(status, body_sent))


def test_servers_are_there_again_after_a_restart(tmp_path: Path) -> None:
    async def first(app: GrowBox, server: ChatServer) -> None:
        await use(app, server.url, name="mine", context_tokens=16384)

    async def second(app: GrowBox, _server: ChatServer) -> None:
        endpoint = app.endpoints.chosen()
        assert endpoint is not None
        assert (endpoint.name, endpoint.context_tokens) == ("mine", 16384)
        assert endpoint.loopback

    run(tmp_path, first, says("ok"))
    run(tmp_path, second, says("ok"))
