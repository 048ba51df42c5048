"""What servers send, well or badly: the reader of events, the reply, the request, and the client against a scripted server."""

from __future__ import annotations

import asyncio
import itertools
import json
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from growbox_app.agent.chat_model import Ask, Cancelled
from growbox_app.agent.protocol import parse_tool_call
from growbox_app.api import Notice, Phase, PhaseChanged, ProblemCode, ProblemError
from growbox_app.clock import SystemClock
from growbox_app.endpoints import http
from growbox_app.endpoints.address import clean_url, is_loopback, origin_of
from growbox_app.endpoints.book import StoredEndpoint
from growbox_app.endpoints.chat import EndpointChat
from growbox_app.endpoints.estimate import estimate
from growbox_app.endpoints.events import LINE_BYTES_MAX, EventReader, StreamError
from growbox_app.endpoints.reply import Reply, ThoughtFilter, call_text
from growbox_app.endpoints.wire import Manners, body_of, schemas_of, shrunk, wire_messages
from growbox_app.engine import protocol as p
from growbox_app.executors.file_read import FileRead
from growbox_app.executors.finish import Finish
from growbox_app.executors.registry import Registry
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
    sends,
    silent,
)

TOOLS = Registry([FileRead(), Finish()])
QUESTION = p.Message(role="user", parts=("[now]\nWhich port?",))
SYSTEM = p.Message(role="system", parts=("You are GrowBox.",))


def an_ask(*messages: p.Message, may_call: bool = True, max_tokens: int = 256) -> Ask:
    request = p.Chat(
        id=0,
        messages=messages or (SYSTEM, QUESTION),
        date="2026-11-30",
        max_tokens=max_tokens,
        temperature=0.3,
        top_p=0.9,
        seed=-5,
    )
    return Ask(request=request, tools=TOOLS, language="en", may_call=may_call)


class OneServer:
    """Implements `chat.Servers`."""

    def __init__(self, url: str, *, key: str = "", silence_s: float = 90.0) -> None:
        self.stored = StoredEndpoint(
            id="s", name="s", base_url=url, model="m-1", context_tokens=8192
        )
        self.server = http.Server(base_url=url, model="m-1", key=key, silence_s=silence_s)

    def chosen_stored(self) -> StoredEndpoint:
        return self.stored

    def require_allowed(self, stored: StoredEndpoint) -> None:
        """All are."""

    async def server_of(self, stored: StoredEndpoint) -> http.Server:
        return self.server


async def no_helpers() -> None:
    """Nothing to wait for."""


Body = Callable[[ChatServer, EndpointChat], Awaitable[None]]


def with_server(body: Body, *scripts: Script, key: str = "", silence_s: float = 90.0) -> None:
    async def main() -> None:
        async with chat_server(*scripts) as server:
            one = OneServer(server.url, key=key, silence_s=silence_s)
            await body(server, EndpointChat(one, helpers=no_helpers, clock=SystemClock()))

    asyncio.run(main())


async def answer(
    chat: EndpointChat, ask: Ask | None = None, *, cancelled: asyncio.Event | None = None
) -> tuple[str, p.DoneChat]:
    stop = cancelled or asyncio.Event()
    events = [event async for event in chat.stream(ask or an_ask(), stop)]
    done = events[-1]
    assert isinstance(done, p.DoneChat)
    return "".join(event.text for event in events if isinstance(event, p.Delta)), done


async def trouble(chat: EndpointChat, ask: Ask | None = None) -> ProblemCode:
    with pytest.raises(ProblemError) as caught:
        await answer(chat, ask)
    return caught.value.problem.code


def trouble_of(*scripts: Script, silence_s: float = 90.0) -> ProblemCode:
    found: list[ProblemCode] = []

    async def body(_server: ChatServer, chat: EndpointChat) -> None:
        found.append(await trouble(chat))

    with_server(body, *scripts, silence_s=silence_s)
    return found[0]


def answer_of(*scripts: Script) -> tuple[str, p.DoneChat]:
    found: list[tuple[str, p.DoneChat]] = []

    async def body(_server: ChatServer, chat: EndpointChat) -> None:
        found.append(await answer(chat))

    with_server(body, *scripts)
    return found[0]


# -- addresses ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("typed", "url"),
    [
        ("localhost:8080", "http://localhost:8080/v1"),
        ("http://127.0.0.1:8080/", "http://127.0.0.1:8080/v1"),
        ("api.example.com", "https://api.example.com/v1"),
        ("HTTPS://Api.Example.com/V1/", "https://api.example.com/V1"),
        ("https://x.example/openai/v1/chat/completions", "https://x.example/openai/v1"),
        ("http://[::1]:1234/v1/models", "http://[::1]:1234/v1"),
    ],
)
def test_an_address_is_read_as_it_is_meant(typed: str, url: str) -> None:
    assert clean_url(typed) == url


@pytest.mark.parametrize(
    "typed",
    [
        "",
        "ftp://x/v1",
        "file:///etc/passwd",
        "https://user:pw@x.example/v1",
        "https://x.example/v1?key=1",
        "http://x.example:99999/",
        "http://a b/",
        "http://x\n.example",
        "https:///v1",
    ],
)
def test_an_address_that_could_mean_anything_else_is_refused(typed: str) -> None:
    with pytest.raises(ProblemError) as caught:
        clean_url(typed)
    assert caught.value.problem.code is ProblemCode.ENDPOINT_ADDRESS


@pytest.mark.parametrize(
    ("url", "here"),
    [
        ("http://localhost:1/v1", True),
        ("http://127.8.9.1/v1", True),
        ("http://[::1]/v1", True),
        ("http://localhost.example.com/v1", False),
        ("http://127.0.0.1.nip.io/v1", False),
        ("http://127.1/v1", False),
        ("http://192.168.1.5/v1", False),
        ("http://0.0.0.0/v1", False),
        ("http://localhost@evil.example/v1", False),
    ],
)
def test_only_what_must_be_this_machine_counts_as_this_machine(url: str, *, here: bool) -> None:
    assert is_loopback(url) is here


def test_a_key_belongs_to_scheme_host_and_port() -> None:
    origins = {
        origin_of(url)
        for url in ("https://a/v1", "http://a/v1", "https://a:8443/v1", "https://b/v1")
    }
    assert len(origins) == 4
    assert origin_of("https://a/v1") == origin_of("https://A:443/other")


# -- events ---------------------------------------------------------------------------------------

STREAM = (
    b": OPENROUTER PROCESSING\r\n\r\nevent: message\r\n"
    + 'data:{"a": "Ünï 你好 😀"}\r\n\r\n'.encode()
    + b'data: {"b":\ndata: 2}\n\nretry: 10\n\ndata: {"c": 3}\n\ndata: [DONE]\n\ndata: {"d": 4}'
)


@given(st.lists(st.integers(1, len(STREAM) - 1), unique=True, max_size=12))
def test_a_stream_may_be_cut_anywhere(cuts: list[int]) -> None:
    reader, found = EventReader(), []
    places = [0, *sorted(cuts), len(STREAM)]
    for start, end in itertools.pairwise(places):
        found += list(reader.feed(STREAM[start:end]))
    found += list(reader.finish())
    assert found == [{"a": "Ünï 你好 😀"}, {"b": 2}, {"c": 3}]
    assert reader.done


@pytest.mark.parametrize(
    "stream",
    [b"data: " + b"x" * (LINE_BYTES_MAX + 1), b'data: {"a"\n\n', b"data: hello\n\ndata: {}\n\n"],
)
def test_what_is_no_stream_of_events_is_said(stream: bytes) -> None:
    with pytest.raises(StreamError):
        list(EventReader().feed(stream))


@pytest.mark.parametrize("line", [b'error: {"message": "x"}\n', b'{"error": {"message": "x"}}\n'])
def test_an_error_in_whatever_dress_is_an_event(line: bytes) -> None:
    assert list(EventReader().feed(line)) == [{"error": {"message": "x"}}]


# -- the reply ------------------------------------------------------------------------------------


@given(st.lists(st.integers(1, 40), max_size=8))
def test_thoughts_are_dropped_wherever_the_stream_is_cut(cuts: list[int]) -> None:
    text = "<think>is it <b>8080</b>?</think>\n\nPort <8443> is 3 < 4."
    places = [0, *sorted(cuts), len(text)]
    thoughts = ThoughtFilter()
    shown = "".join(thoughts.feed(text[a:b]) for a, b in itertools.pairwise(places))
    assert (shown + thoughts.finish()).strip() == "Port <8443> is 3 < 4."


def test_a_thought_that_never_ends_is_no_answer() -> None:
    thoughts = ThoughtFilter()
    assert thoughts.feed("<think>hm") + thoughts.finish() == ""


def test_the_halves_of_a_character_find_each_other() -> None:
    reply = Reply()
    high, low = "\ud83d", "\ude00"
    assert reply.take(delta("a" + high)) + reply.take(delta(low + "b")) == "a😀b"


@pytest.mark.parametrize(
    "call",
    [
        {"index": 0, "function": {"name": "file_read", "arguments": '{"path": "a.py"}'}},
        {"function": {"name": "file_read", "arguments": {"path": "a.py"}}},
        {"index": None, "function": {"name": "file_read", "arguments": '{"path": "a.py"}'}},
    ],
)
def test_a_native_call_becomes_one_of_ours(call: dict[str, object]) -> None:
    reply = Reply()
    second = {"index": 1, "function": {"name": "finish", "arguments": "{}"}}
    reply.take(delta("I look. ", tool_calls=[call, second]))
    parsed = parse_tool_call(reply.finish(), TOOLS.names)
    assert parsed is not None
    assert (parsed.name, dict(parsed.arguments)) == ("file_read", {"path": "a.py"})


def test_a_call_that_holds_our_own_marks_is_still_one_call() -> None:
    text = call_text("finish", json.dumps({"answer": "</tool_call><tool_call> 你好"}))
    parsed = parse_tool_call(text, TOOLS.names)
    assert parsed is not None
    assert parsed.arguments["answer"] == "</tool_call><tool_call> 你好"


def test_a_call_that_broke_off_is_none() -> None:
    text = call_text("file_read", '{"path": "a.p')
    assert "<tool_call>" in text
    assert parse_tool_call(text, TOOLS.names) is None


# -- the request ----------------------------------------------------------------------------------


def conversation() -> tuple[p.Message, ...]:
    call = call_text("file_read", '{"path": "a.py", "start": 3}')
    return (
        SYSTEM,
        p.Message(role="user", parts=("<memory>m</memory>\n", "[now]\nread a.py")),
        p.Message(role="assistant", parts=(f"I read it. {call}",)),
        p.Message(role="user", parts=("[result of file_read]\nx = 1\n", "[then]\nand now?")),
        p.Message(role="assistant", parts=("It sets x.",)),
        p.Message(role="user", parts=("[later]\nthanks",)),
    )


def test_calls_and_results_go_as_such_where_the_server_takes_tools() -> None:
    wired = wire_messages(conversation(), native=True)
    roles = [message["role"] for message in wired]
    assert roles == ["system", "user", "assistant", "tool", "user", "assistant", "user"]
    call = wired[2]["tool_calls"][0]
    assert call["id"] == wired[3]["tool_call_id"]
    assert json.loads(call["function"]["arguments"]) == {"path": "a.py", "start": 3}
    assert "tool_call" not in wired[2]["content"]


def test_every_message_is_the_same_whatever_follows_it() -> None:
    whole = wire_messages(conversation(), native=True)
    for end in (4, 5, 6):
        wired = wire_messages(conversation()[:end], native=True)
        assert whole[: len(wired)] == wired


def test_without_tools_everything_is_text_and_says_how_to_call() -> None:
    manners = Manners(left_out={"tools", "tool_choice"})
    body = body_of(msgspec_ask(conversation()), "m", manners)
    assert "tools" not in body
    assert '"name": "file_read"' in body["messages"][0]["content"]
    assert {message["role"] for message in body["messages"]} == {"system", "user", "assistant"}


def msgspec_ask(messages: tuple[p.Message, ...]) -> Ask:
    ask = an_ask()
    request = msgspec.structs.replace(ask.request, messages=messages)
    return Ask(request=request, tools=TOOLS, language="en", may_call=True)


def test_a_schema_is_made_of_each_tool() -> None:
    schemas = {s["function"]["name"]: s["function"]["parameters"] for s in schemas_of(TOOLS)}
    assert schemas["file_read"]["required"] == ["path"]
    kinds = {value["type"] for value in schemas["file_read"]["properties"].values()}
    assert kinds <= {"string", "integer", "boolean"}


@given(st.lists(st.text(max_size=60), min_size=1, max_size=8), st.integers(1, 400))
def test_shrinking_keeps_the_system_prompt_and_the_question(texts: list[str], room: int) -> None:
    roles = ["user", "assistant"]
    rest = [p.Message(role=roles[at % 2], parts=(text,)) for at, text in enumerate(texts)]  # type: ignore[arg-type]
    messages = (SYSTEM, *rest, p.Message(role="user", parts=("memory", "the question")))
    kept = shrunk(messages, room, len)
    assert kept[0] == SYSTEM
    assert kept[-1].parts[-1] == "the question"
    assert kept[1].role == "user"
    assert len(kept) <= len(messages)


@pytest.mark.parametrize(
    ("text", "tokens"),
    [("", 0), ("hello", 2), ("你好世界", 6), ("12345", 5), ("😀", 4), ("def f(x):\n", 6)],
)
def test_the_estimate_errs_upwards(text: str, tokens: int) -> None:
    assert estimate(text) >= tokens


# -- the client, honest servers ---------------------------------------------------------------------


def test_an_answer_with_all_its_figures() -> None:
    usage = {
        "prompt_tokens": 900,
        "completion_tokens": 7,
        "prompt_tokens_details": {"cached_tokens": 768},
    }
    text, done = answer_of(says("Port ", "8443."))
    assert text == "Port 8443."
    assert not done.reuse_known
    text, done = answer_of(says("Port ", "8443.", usage=usage))
    assert (done.prompt_tokens, done.reused_tokens, done.answer_tokens) == (900, 768, 7)
    assert done.reuse_known
    assert done.answered_by.startswith("m-1 · 127.0.0.1:")


def test_the_timings_of_llama_cpp_count() -> None:
    timings = {
        "prompt_n": 40,
        "cache_n": 500,
        "prompt_ms": 250.0,
        "predicted_n": 3,
        "predicted_ms": 90.0,
    }
    _, done = answer_of(says("yes", timings=timings))
    assert (done.prompt_tokens, done.reused_tokens, done.answer_tokens) == (540, 500, 3)
    assert (done.prefill_s, done.decode_s) == (0.25, 0.09)


def test_the_request_is_what_servers_expect() -> None:
    async def body(server: ChatServer, chat: EndpointChat) -> None:
        await answer(chat)
        asked = server.requests[0]
        assert (asked.method, asked.path) == ("POST", "/v1/chat/completions")
        assert asked.headers["authorization"] == "Bearer sk-secret-key-1"
        assert asked.body["stream"] is True
        assert asked.body["seed"] >= 0
        assert asked.body["tool_choice"] == "auto"
        await answer(chat, an_ask(may_call=False))
        assert server.requests[1].body["tool_choice"] == "none"
        assert server.requests[1].messages == asked.messages

    with_server(body, says("ok"), key="sk-secret-key-1")


def test_a_native_call_is_streamed_as_ours() -> None:
    text, done = answer_of(calls("file_read", '{"pa', 'th": "a', '.py"}'))
    parsed = parse_tool_call(text, TOOLS.names)
    assert parsed is not None
    assert parsed.arguments == {"path": "a.py"}
    assert done.reason == "stop"


def test_a_call_when_none_may_be_made_is_dropped() -> None:
    async def body(_server: ChatServer, chat: EndpointChat) -> None:
        assert await trouble(chat, an_ask(may_call=False)) is ProblemCode.ENDPOINT_EMPTY

    with_server(body, calls("finish", "{}"))


def test_thinking_is_a_phase_and_not_shown() -> None:
    async def script(answering: Answering) -> None:
        await answering.head()
        await answering.event(delta("", reasoning_content="let me see"))
        await answering.event(delta("<thi"))
        await answering.event(delta("nk>more</think>\n8443"))
        await answering.event(delta("", "stop"))
        await answering.done()

    async def body(_server: ChatServer, chat: EndpointChat) -> None:
        events = [event async for event in chat.stream(an_ask(), asyncio.Event())]
        phases = [event.phase for event in events if isinstance(event, PhaseChanged)]
        assert phases[:2] == [Phase.READING, Phase.THINKING]
        assert phases[-1] is Phase.WRITING
        assert "".join(e.text for e in events if isinstance(e, p.Delta)) == "8443"

    with_server(body, script)


@pytest.mark.parametrize(
    "message",
    [
        "Unsupported parameter: 'max_tokens'. Use 'max_completion_tokens' instead.",
        '[{"loc": ["body", "stream_options"], "msg": "Extra inputs are not permitted"}]',
        "Unsupported value: 'temperature' does not support 0.3 with this model.",
        "tools param requires --jinja flag",
        "this model does not support tool calling",
    ],
)
def test_what_a_server_does_not_take_is_left_out_from_then_on(message: str) -> None:
    async def body(server: ChatServer, chat: EndpointChat) -> None:
        assert (await answer(chat))[0] == "ok"
        assert len(server.requests) == 2
        before, after = (set(asked.body) for asked in server.requests)
        assert before != after
        await answer(chat)
        assert set(server.requests[2].body) == after

    with_server(body, refuses(400, {"error": {"message": message}}), says("ok"))


def test_a_server_that_does_not_stream_answers_too() -> None:
    whole = {"choices": [{"message": {"content": "Port 8443."}, "finish_reason": "stop"}]}
    text, _ = answer_of(sends(json.dumps(whole).encode(), kind="application/json"))
    assert text == "Port 8443."


def test_the_end_may_be_a_reason_without_done() -> None:
    chunks = [json.dumps(chunk).encode() for chunk in (delta("yes"), delta("", "stop"))]
    text, _ = answer_of(sends(*(b"data: " + chunk + b"\n\n" for chunk in chunks)))
    assert text == "yes"


def test_a_server_that_never_stops_writing_is_cut_off() -> None:
    async def script(answering: Answering) -> None:
        await answering.head()
        while True:
            await answering.event(delta("more and more " * 20))
            await asyncio.sleep(0)

    async def body(server: ChatServer, chat: EndpointChat) -> None:
        text, done = await answer(chat, an_ask(max_tokens=64))
        assert done.reason == "length"
        assert len(text) < 5000
        async with asyncio.timeout(2):
            await server.closed.wait()

    with_server(body, script)


# -- the context ------------------------------------------------------------------------------------

CONTEXT_ERRORS = [
    {
        "code": "context_length_exceeded",
        "message": "This model's maximum context length is 4096 tokens. However, your messages resulted in 9000 tokens.",
    },
    {
        "code": 400,
        "type": "exceed_context_size_error",
        "message": "the request exceeds the available context size",
        "n_prompt_tokens": 9000,
        "n_ctx": 4096,
    },
    {"message": "Requested tokens (9000) exceed context window of 4096", "code": None},
]


def long_conversation() -> tuple[p.Message, ...]:
    turns = [
        p.Message(role=role, parts=(f"{at} " + "words and words " * 60,))  # type: ignore[arg-type]
        for at in range(10)
        for role in ("user", "assistant")
    ]
    return (SYSTEM, *turns, p.Message(role="user", parts=("the last question",)))


@pytest.mark.parametrize("error", CONTEXT_ERRORS)
def test_a_prompt_that_is_too_long_is_shortened_once(error: dict[str, object]) -> None:
    async def body(server: ChatServer, chat: EndpointChat) -> None:
        ask = msgspec_ask(long_conversation())
        events = [event async for event in chat.stream(ask, asyncio.Event())]
        notices = [event.problem for event in events if isinstance(event, Notice)]
        assert [notice.code for notice in notices] == [ProblemCode.ENDPOINT_SHORTENED]
        assert notices[0].fields["tokens"] == "4,096"
        first, second = (asked.messages for asked in server.requests)
        assert second[0] == first[0]
        assert second[-1]["content"] == "the last question"
        assert sum(estimate(m["content"]) for m in second) * 9000 / 4096 < 4096 * 2.2
        assert len(second) < len(first)
        assert chat.loaded.context_tokens == 4096

    with_server(body, refuses(400, {"error": error}), says("ok"))


def test_a_stream_that_ends_in_silence_is_asked_for_its_reason() -> None:
    async def body(server: ChatServer, chat: EndpointChat) -> None:
        ask = msgspec_ask(long_conversation())
        assert (await answer(chat, ask))[0] == "ok"
        assert [asked.body["stream"] for asked in server.requests] == [True, False, True]
        assert len(server.requests[2].messages) < len(server.requests[0].messages)

    with_server(body, sends(b""), refuses(400, {"error": CONTEXT_ERRORS[2]}), says("ok"))


def test_what_is_still_too_long_is_said_and_not_tried_for_ever() -> None:
    async def body(server: ChatServer, chat: EndpointChat) -> None:
        assert await trouble(chat) is ProblemCode.ENDPOINT_TOO_LONG
        assert len(server.requests) == 2

    with_server(body, refuses(400, {"error": CONTEXT_ERRORS[0]}))


# -- the client, other servers ----------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "code"),
    [
        (401, ProblemCode.ENDPOINT_KEY),
        (403, ProblemCode.ENDPOINT_KEY),
        (404, ProblemCode.ENDPOINT_MODEL),
        (418, ProblemCode.ENDPOINT_ERROR),
        (429, ProblemCode.ENDPOINT_BUSY),
        (500, ProblemCode.ENDPOINT_ERROR),
        (503, ProblemCode.ENDPOINT_BUSY),
    ],
)
def test_a_refusal_is_a_sentence(status: int, code: ProblemCode) -> None:
    assert trouble_of(refuses(status, {"error": {"message": "no"}})) is code


def test_a_redirect_is_not_followed() -> None:
    async def body(server: ChatServer, chat: EndpointChat) -> None:
        with pytest.raises(ProblemError) as caught:
            await answer(chat)
        assert caught.value.problem.code is ProblemCode.ENDPOINT_REDIRECT
        assert caught.value.problem.fields["target"] == "evil.example"
        assert len(server.requests) == 1

    script = refuses(307, {}, Location="https://evil.example/v1/chat/completions")
    with_server(body, script, key="sk-secret-key-1")


def test_an_error_in_the_middle_keeps_what_came() -> None:
    async def script(answering: Answering) -> None:
        await answering.head()
        await answering.event(delta("so far"))
        await answering.event({"error": {"message": "CUDA out of memory", "code": 500}})

    async def body(_server: ChatServer, chat: EndpointChat) -> None:
        came: list[str] = []

        async def listen() -> None:
            events = chat.stream(an_ask(), asyncio.Event())
            async for text in (e.text async for e in events if isinstance(e, p.Delta)):
                came.append(text)  # noqa: PERF401 - what came before the error counts

        with pytest.raises(ProblemError) as caught:
            await listen()
        assert "".join(came) == "so far"
        assert "CUDA out of memory" in caught.value.problem.fields["reason"]

    with_server(body, script)


HOSTILE: list[tuple[Script, ProblemCode]] = [
    (sends(b"data: " + b"x" * (10 << 20)), ProblemCode.ENDPOINT_PROTOCOL),
    (sends(b"data: {}\n\n"), ProblemCode.ENDPOINT_BROKEN),
    (sends(b'data: {"choices": 7}\n\ndata: [DONE]\n\n'), ProblemCode.ENDPOINT_EMPTY),
    (sends(b"<html>Hello</html>", kind="text/html; charset=utf-8"), ProblemCode.ENDPOINT_PROTOCOL),
    (sends(b"not json", kind="application/json"), ProblemCode.ENDPOINT_PROTOCOL),
    (sends(b"data: hello\n\n"), ProblemCode.ENDPOINT_PROTOCOL),
    (sends(b""), ProblemCode.ENDPOINT_BROKEN),
    (refuses(400, b"<html>\xff\xfe" + b"x" * 200_000), ProblemCode.ENDPOINT_ERROR),
]


@pytest.mark.parametrize(("script", "code"), HOSTILE)
def test_a_hostile_answer_is_a_sentence(script: Script, code: ProblemCode) -> None:
    assert trouble_of(script) is code


def test_nothing_listens_there() -> None:
    async def main() -> None:
        with socket.socket() as deaf:  # no other process can get the port meanwhile
            deaf.bind(("127.0.0.1", 0))
            one = OneServer(f"http://127.0.0.1:{deaf.getsockname()[1]}/v1")
            chat = EndpointChat(one, helpers=no_helpers, clock=SystemClock())
            assert await trouble(chat) is ProblemCode.ENDPOINT_UNREACHABLE

    asyncio.run(main())


def test_a_connection_that_is_not_safe_sends_nothing() -> None:
    heard: list[bytes] = []

    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        heard.append(await reader.read(100))
        writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
        writer.close()

    async def main() -> None:
        listening = await asyncio.start_server(plain, "127.0.0.1", 0)
        port = listening.sockets[0].getsockname()[1]
        one = OneServer(f"https://127.0.0.1:{port}/v1", key="sk-secret-key-1")
        chat = EndpointChat(one, helpers=no_helpers, clock=SystemClock())
        assert await trouble(chat) is ProblemCode.ENDPOINT_TLS
        listening.close()

    asyncio.run(main())
    assert heard
    assert b"secret" not in heard[0]


@pytest.mark.parametrize("script", [hangs, silent])
def test_silence_ends_by_itself(script: Script) -> None:
    assert trouble_of(script, silence_s=0.3) is ProblemCode.ENDPOINT_TIMEOUT


@pytest.mark.parametrize("script", [hangs, silent])
def test_a_stop_closes_the_connection_within_a_second(script: Script) -> None:
    async def body(server: ChatServer, chat: EndpointChat) -> None:
        cancelled = asyncio.Event()
        stream = asyncio.ensure_future(answer(chat, cancelled=cancelled))  # noqa: TID251 - awaited below
        await server.asked.wait()
        cancelled.set()
        async with asyncio.timeout(1):
            with pytest.raises(Cancelled):
                await stream
            await server.closed.wait()

    with_server(body, script)


def test_a_server_on_this_machine_is_never_asked_through_a_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    assert answer_of(says("ok"))[0] == "ok"


def test_a_proxy_that_cannot_be_used_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ALL_PROXY", "socks9://127.0.0.1:1")
    server = OneServer("https://127.0.0.1.example/v1")
    chat = EndpointChat(server, helpers=no_helpers, clock=SystemClock())
    assert asyncio.run(trouble(chat)) is ProblemCode.ENDPOINT_UNREACHABLE


def test_the_key_shows_in_no_representation(tmp_path: Path) -> None:
    server = http.Server(base_url="http://localhost/v1", model="m", key="sk-secret-key-1")
    assert "secret" not in repr(server)
