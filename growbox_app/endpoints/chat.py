"""A server as the chat model of a turn. Implements `growbox_app.agent.chat_model.ChatModel`.

Owns what was found out about servers while the application runs: which fields they refuse, and that a context is smaller than the
user said. Tokens are estimated, upwards, because the tokenizer is the server's; a prompt that is too long all the same is cut
shorter and sent once more, once. Event-loop thread. Each exchange is a task of its own: a stop closes its connection in whatever
phase. Everything but the chat – embeddings, the judge, memory – stays on this machine.
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import replace
from typing import Protocol

import msgspec

from growbox_app.agent.chat_model import Ask, ChatEvent, ChosenChat, LocalChat, unless
from growbox_app.api import Notice, Phase, PhaseChanged, Problem, ProblemCode, ProblemError
from growbox_app.endpoints import http
from growbox_app.endpoints.address import host_of
from growbox_app.endpoints.book import TOKENS_MIN, StoredEndpoint
from growbox_app.endpoints.estimate import estimate
from growbox_app.endpoints.reply import Reply
from growbox_app.endpoints.trouble import ContextTooLong, FieldRefused, NothingCame, problem
from growbox_app.endpoints.wire import Manners, body_of, schemas_of, shrunk, tools_text
from growbox_app.engine import protocol as p
from growbox_app.engine.kv_files import KvFiles
from growbox_app.engine.supervisor import EngineSupervisor
from growbox_app.executors.registry import Registry
from memory.ports import Clock
from memory.values import ConversationId

HELPERS_S = 20.0
CLOSE_S = 0.5
"""Longest wait for a connection to close."""
BASE_TOKENS = 24
MESSAGE_TOKENS = 8
"""What a template may put around a prompt and around a message."""
ADAPTATIONS_MAX = 6
CHARACTERS_PER_TOKEN_MAX = 16
"""A server that ignores the limit is cut off after so much text."""
SPARE_TOKENS = 64
UNKNOWN_SHARE = 0.5
"""A server that says only "too long" gets half as much."""


class Servers(Protocol):
    """Who is asked, and how."""

    def chosen_stored(self) -> StoredEndpoint | None:
        """The server that answers."""
        ...

    def require_allowed(self, stored: StoredEndpoint) -> None:
        """Raises a `ProblemError` when it may not be asked."""
        ...

    async def server_of(self, stored: StoredEndpoint) -> http.Server:
        """The server with its key; a `ProblemError` when it may not be asked."""
        ...


class EndpointChat:
    """The server that the user has chosen."""

    is_local = False
    phase = "ready"

    def __init__(
        self, servers: Servers, *, helpers: Callable[[], Awaitable[object]], clock: Clock
    ) -> None:
        """`helpers` waits for the models of this machine, without which recall knows words only."""
        self._servers = servers
        self._helpers = helpers
        self._clock = clock
        self._manners: dict[str, Manners] = {}
        self._limits: dict[str, int] = {}

    def _chosen(self) -> StoredEndpoint:
        endpoint = self._servers.chosen_stored()
        assert endpoint is not None
        return endpoint

    # -- the window -----------------------------------------------------------------------------
    @property
    def loaded(self) -> p.DoneLoad:
        """See `ChatModel.loaded`: the window as the user, or the server, has said."""
        endpoint = self._chosen()
        asked = f"{endpoint.base_url}\n{endpoint.model}".encode()
        name = hashlib.blake2b(asked, digest_size=8).hexdigest()
        return p.DoneLoad(
            id=0,
            name=endpoint.model,
            context_tokens=min(
                endpoint.context_tokens, self._limits.get(_key(endpoint), endpoint.context_tokens)
            ),
            tokenizer=f"endpoint-{name}",
            kv="",
            base_overhead=BASE_TOKENS,
            user_overhead=MESSAGE_TOKENS,
            assistant_overhead=MESSAGE_TOKENS,
            prefix_stable=True,
            seconds=0.0,
        )

    async def ready(self) -> p.DoneLoad:
        """See `ChatModel.ready`. Waits for the models of this machine too, but neither for ever nor for their trouble."""
        self._servers.require_allowed(self._chosen())
        with contextlib.suppress(ProblemError, TimeoutError):
            async with asyncio.timeout(HELPERS_S):
                await self._helpers()
        return self.loaded

    async def count(self, texts: Sequence[str]) -> Sequence[int]:
        """See `ChatModel.count`."""
        return [estimate(text) for text in texts]

    def tool_list(self, tools: Registry) -> str:  # noqa: ARG002 - they go beside the messages
        """See `ChatModel.tool_list`."""
        return ""

    def tool_tokens(self, tools: Registry) -> int:
        """See `ChatModel.tool_tokens`: as schemas or as text, whichever takes more."""
        if not tools.names:
            return 0
        return max(estimate(str(schemas_of(tools))), estimate(tools_text(tools, "en")))

    async def switch_to(self, conversation_id: ConversationId, *, system_text: str) -> None:
        """See `ChatModel.switch_to`: the server keeps its own cache."""

    def note(self, conversation_id: ConversationId, *, new_tokens: int) -> None:
        """See `ChatModel.note`."""

    # -- an answer ------------------------------------------------------------------------------
    async def stream(self, ask: Ask, cancelled: asyncio.Event) -> AsyncGenerator[ChatEvent, None]:
        """See `ChatModel.stream`."""
        endpoint = self._chosen()
        server = await unless(cancelled, self._servers.server_of(endpoint))
        manners = self._manners.setdefault(_key(endpoint), Manners())
        shortened = asked_whole = False
        streamed = True
        for _ in range(ADAPTATIONS_MAX):
            yield PhaseChanged(phase=Phase.READING)
            body = body_of(ask, endpoint.model, manners, streamed=streamed)
            exchange = _Exchange(server, ask, self._clock)
            try:
                async with contextlib.aclosing(exchange.events(body, cancelled)) as events:
                    async for event in events:
                        yield event
                return
            except FieldRefused as refused:
                if exchange.begun or not manners.adapt(refused.message, list(body)):
                    raise _refused(server, refused.message) from refused
            except NothingCame as silent:
                if asked_whole:
                    raise problem(ProblemCode.ENDPOINT_BROKEN, server.fields) from silent
                asked_whole, streamed = True, False
            except ContextTooLong as too_long:
                if shortened or exchange.begun:
                    raise problem(ProblemCode.ENDPOINT_TOO_LONG, server.fields) from too_long
                shortened = streamed = True
                ask, notice = self._shortened(endpoint, ask, too_long)
                yield notice
        raise _refused(server, "")

    def _shortened(
        self, endpoint: StoredEndpoint, ask: Ask, too_long: ContextTooLong
    ) -> tuple[Ask, Notice]:
        """The same question within what the server has room for, which is remembered for the next turn."""
        tools = self.tool_tokens(ask.tools)
        ours = (
            BASE_TOKENS
            + tools
            + sum(
                MESSAGE_TOKENS + sum(map(estimate, message.parts))
                for message in ask.request.messages
            )
        )
        known = self.loaded.context_tokens
        limit = min(too_long.limit or int(known * UNKNOWN_SHARE), known)
        self._limits[_key(endpoint)] = max(limit, TOKENS_MIN)
        answer = min(ask.request.max_tokens, limit // 4)
        factor = max(too_long.asked / ours, 1.0) if ours else 1.0
        room = int((limit - answer - SPARE_TOKENS) / factor) - BASE_TOKENS - tools
        messages = shrunk(ask.request.messages, room, estimate)
        fields = {"tokens": f"{limit:,}", "host": host_of(endpoint.base_url)}
        notice = Notice(problem=Problem(code=ProblemCode.ENDPOINT_SHORTENED, fields=fields))
        request = msgspec.structs.replace(ask.request, messages=messages, max_tokens=answer)
        return replace(ask, request=request), notice


def chat_models(
    servers: Servers, engine: EngineSupervisor, kv: KvFiles, clock: Clock
) -> ChosenChat:
    """The model of this machine, or the server that the user has chosen."""
    server = EndpointChat(servers, helpers=engine.ready, clock=clock)
    return ChosenChat(LocalChat(engine, kv), server, lambda: servers.chosen_stored() is not None)


def _key(endpoint: StoredEndpoint) -> str:
    """What was found out belongs to the server and model, not to the entry."""
    return f"{endpoint.base_url}\n{endpoint.model}\n{endpoint.context_tokens}"


def _refused(server: http.Server, message: str) -> ProblemError:
    fields = server.fields | {"reason": message or "HTTP 400"}
    return problem(ProblemCode.ENDPOINT_ERROR, fields, message)


class _Exchange:
    """One request and its answer. `begun`: something of the answer has been passed on."""

    def __init__(self, server: http.Server, ask: Ask, clock: Clock) -> None:
        self._server = server
        self._ask = ask
        self._clock = clock
        self._reply = Reply(may_call=ask.may_call)
        self._began_s = clock.monotonic_s()
        self._first_s: float | None = None
        self._phase = Phase.READING
        self._cut = False
        self.begun = False

    async def events(
        self, body: dict[str, object], cancelled: asyncio.Event
    ) -> AsyncGenerator[ChatEvent, None]:
        """Sends, and passes the answer on."""
        pump = _Pump(self._server, body, self._ended)
        shown = ""
        try:
            while not self._cut:
                chunk = await unless(cancelled, pump.next())
                if chunk is None:
                    break
                text = self._reply.take(chunk)
                phase = self._phase_now(text)
                if phase is not None:
                    yield PhaseChanged(phase=phase)
                if text:
                    shown += text
                    self.begun = True
                    yield p.Delta(id=0, text=text, ids=())
                self._cut = self._reply.written > self._characters_max()
        finally:
            await pump.close()
        rest = self._reply.finish()
        if not (shown + rest).strip():
            raise problem(ProblemCode.ENDPOINT_EMPTY, self._server.fields, self._reply.reason)
        if rest:
            self.begun = True
            yield p.Delta(id=0, text=rest, ids=())
        yield self._done(shown + rest)

    def _ended(self) -> bool:
        return bool(self._reply.reason)

    def _characters_max(self) -> int:
        return self._ask.request.max_tokens * CHARACTERS_PER_TOKEN_MAX

    def _phase_now(self, text: str) -> Phase | None:
        """The phase that begins with this chunk, None while it stays."""
        if self._first_s is None and (text or self._reply.written):
            self._first_s = self._clock.monotonic_s()
        phase = Phase.WRITING if text else self._phase
        if not text and self._reply.thinking:
            phase = Phase.THINKING
        if phase is self._phase:
            return None
        self._phase = phase
        return phase

    def _done(self, text: str) -> p.DoneChat:
        cost, now = self._reply.cost, self._clock.monotonic_s()
        first = (self._first_s or now) - self._began_s
        messages = self._ask.request.messages
        guess = sum(MESSAGE_TOKENS + sum(map(estimate, message.parts)) for message in messages)
        cut = self._cut or self._reply.reason == "length"
        return p.DoneChat(
            id=0,
            reason="length" if cut else "stop",
            prompt_tokens=cost.prompt if cost.prompt is not None else guess,
            reused_tokens=cost.cached or 0,
            answer_tokens=cost.written if cost.written is not None else estimate(text),
            prefill_s=cost.prefill_s if cost.prefill_s is not None else first,
            decode_s=cost.decode_s if cost.decode_s is not None else now - self._began_s - first,
            first_token_s=first,
            reuse_known=cost.cached is not None,
            answered_by=f"{self._server.model} · {host_of(self._server.base_url)}",
        )


class _Pump:
    """Reads an exchange in a task of its own, in which its connection is opened and closed."""

    def __init__(
        self, server: http.Server, body: dict[str, object], ended: Callable[[], bool]
    ) -> None:
        self._queue: asyncio.Queue[dict[str, object] | None] = asyncio.Queue()
        self._task = asyncio.ensure_future(  # noqa: TID251 - closed by who made it
            self._run(http.chunks(server, body, ended))
        )
        self._task.add_done_callback(lambda _task: self._queue.put_nowait(None))

    async def _run(self, chunks: AsyncGenerator[dict[str, object], None]) -> None:
        async with contextlib.aclosing(chunks):
            async for chunk in chunks:
                self._queue.put_nowait(chunk)

    async def next(self) -> dict[str, object] | None:
        """The next chunk; None at the end. Raises what ended it."""
        chunk = await self._queue.get()
        if chunk is None:
            await self._task
        return chunk

    async def close(self) -> None:
        """Closes the connection."""
        self._task.cancel()
        await asyncio.wait({self._task}, timeout=CLOSE_S)
        if self._task.done() and not self._task.cancelled():
            self._task.exception()  # told already, or of no interest any more
