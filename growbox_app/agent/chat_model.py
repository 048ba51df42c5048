"""What a turn needs of a chat model, and the one of this machine behind it.

`ChatModel` is the seam between the loop and whatever writes the answer: the engine process here, or a server
(`growbox_app.endpoints.chat`). Event-loop thread. Invariant: a stream ends with exactly one `DoneChat`, or raises; a stop ends it
within a second in whatever phase.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar

import msgspec

from growbox_app.api import Notice, Phase, PhaseChanged
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient, EngineDied
from growbox_app.engine.kv_files import KvFiles
from growbox_app.engine.supervisor import EngineSupervisor
from growbox_app.executors.registry import Registry
from growbox_app.tasks import TaskGroup
from memory.values import ConversationId

SILENCE_S = 90.0
"""Source: seed item G43."""
CANCEL_S = 2.0
CANCEL_TRIES = 4
T = TypeVar("T")

ChatEvent: TypeAlias = PhaseChanged | Notice | p.Delta | p.DoneChat


class Cancelled(Exception):
    """The user stopped the turn."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """One generation: the request as the engine takes it, and what a server needs besides.

    `language` is that of the prompt's own words. `may_call` False: the answer must come now, without a tool.
    """

    request: p.Chat
    tools: Registry
    language: str
    may_call: bool


class ChatModel(Protocol):
    """Writes answers."""

    @property
    def is_local(self) -> bool:
        """False: the text leaves this process for a server; there is no KV cache of ours, and no sampled ids."""
        ...

    @property
    def phase(self) -> str:
        """State of the model, an `EnginePhase` value."""
        ...

    @property
    def loaded(self) -> p.DoneLoad | None:
        """The window of the model, None while there is none."""
        ...

    async def ready(self) -> p.DoneLoad:
        """Waits until it can be asked.

        Raises:
            ProblemError: it cannot.
        """
        ...

    async def count(self, texts: Sequence[str]) -> Sequence[int]:
        """Tokens of each text, as content; never too few."""
        ...

    def tool_list(self, tools: Registry) -> str:
        """What the system prompt says of the tools; empty where the model is told of them another way."""
        ...

    def tool_tokens(self, tools: Registry) -> int:
        """What that other way takes of the window."""
        ...

    async def switch_to(self, conversation_id: ConversationId, *, system_text: str) -> None:
        """A turn of this conversation begins."""
        ...

    def note(self, conversation_id: ConversationId, *, new_tokens: int) -> None:
        """So many tokens were new to the model."""
        ...

    def stream(self, ask: Ask, cancelled: asyncio.Event) -> AsyncGenerator[ChatEvent, None]:
        """Generates.

        Raises:
            Cancelled: the user stopped it.
            EngineDied: the process ended; what was sampled can be continued.
            EngineFault: the engine refused.
            ProblemError: the server could not answer.
        """
        ...


class LocalChat:
    """The model in the engine process. Implements `ChatModel`."""

    is_local = True

    def __init__(self, engine: EngineSupervisor, kv: KvFiles) -> None:
        self._engine = engine
        self._kv = kv

    @property
    def phase(self) -> str:
        """See `ChatModel.phase`."""
        return self._engine.status.phase.value

    @property
    def loaded(self) -> p.DoneLoad | None:
        """See `ChatModel.loaded`."""
        return self._engine.loaded

    async def ready(self) -> p.DoneLoad:
        """See `ChatModel.ready`."""
        return await self._engine.ready()

    async def count(self, texts: Sequence[str]) -> Sequence[int]:
        """See `ChatModel.count`; by the model's own tokenizer."""
        try:
            return await self._count_now(texts)
        except EngineDied:
            await self._engine.ready()
            return await self._count_now(texts)

    async def _count_now(self, texts: Sequence[str]) -> Sequence[int]:
        client = self._engine.client
        request = p.Count(id=client.next_id(), texts=tuple(texts))
        return (await client.request(request, p.DoneCount)).counts

    def tool_list(self, tools: Registry) -> str:
        """See `ChatModel.tool_list`."""
        return tools.tool_list()

    def tool_tokens(self, tools: Registry) -> int:  # noqa: ARG002 - the system prompt has them
        """See `ChatModel.tool_tokens`."""
        return 0

    async def switch_to(self, conversation_id: ConversationId, *, system_text: str) -> None:
        """See `ChatModel.switch_to`: the conversation's own KV image."""
        await self._kv.switch_to(conversation_id, system_text=system_text)

    def note(self, conversation_id: ConversationId, *, new_tokens: int) -> None:
        """See `ChatModel.note`."""
        self._kv.note(conversation_id, new_tokens=new_tokens)

    async def stream(self, ask: Ask, cancelled: asyncio.Event) -> AsyncGenerator[ChatEvent, None]:
        """See `ChatModel.stream`."""
        client = self._engine.client
        request = msgspec.structs.replace(ask.request, id=client.next_id())
        watcher = _CancelWatcher(cancelled, client, request.id)
        ended = False
        try:
            yield PhaseChanged(phase=Phase.READING)
            async with contextlib.aclosing(_not_silent(client, request)) as answers:
                async for answer in answers:
                    if isinstance(answer, p.PrefillProgress):
                        yield _reading(answer)
                    elif isinstance(answer, p.Delta | p.DoneChat):
                        ended = isinstance(answer, p.DoneChat)
                        yield answer
        except p.EngineFault as fault:
            if fault.code == "cancelled":  # it was still waiting in the engine's queue
                raise Cancelled from fault
            raise
        finally:
            await watcher.close()
        if not ended:
            raise EngineDied(None)


def _reading(progress: p.PrefillProgress) -> PhaseChanged:
    left = (progress.total - progress.done) / progress.rate if progress.rate > 0 else None
    phase = Phase.READING if progress.done < progress.total else Phase.WRITING
    return PhaseChanged(
        phase=phase, done=progress.done, total=progress.total, rate=progress.rate, left_s=left
    )


class _CancelWatcher:
    """Cancels a request once the event is set, again until the engine listens, and kills an engine that does not."""

    def __init__(self, event: asyncio.Event, client: EngineClient, request_id: int) -> None:
        self._tasks = TaskGroup()
        self._tasks.start("cancel", self._watch(event, client, request_id))

    async def _watch(self, event: asyncio.Event, client: EngineClient, request_id: int) -> None:
        await event.wait()
        for _ in range(CANCEL_TRIES):
            client.cancel(request_id)
            await asyncio.sleep(CANCEL_S / CANCEL_TRIES)
        client.kill()

    async def close(self) -> None:
        await self._tasks.cancel_all()


async def _not_silent(client: EngineClient, request: p.Chat) -> AsyncGenerator[p.Answer, None]:
    """The frames of an answer; an engine that says nothing for too long is taken for dead and killed."""
    async with contextlib.aclosing(client.stream(request)) as answers:
        while True:
            try:
                async with asyncio.timeout(SILENCE_S):
                    answer = await anext(answers)
            except StopAsyncIteration:
                return
            except TimeoutError as error:
                client.kill()
                raise EngineDied(None) from error
            yield answer


async def unless(cancelled: asyncio.Event, work: Awaitable[T]) -> T:
    """Awaits `work`, or raises `Cancelled` as soon as the user stops the turn."""
    running = asyncio.ensure_future(work)  # noqa: TID251 - awaited right here
    stop = asyncio.ensure_future(cancelled.wait())  # noqa: TID251 - cancelled right here
    try:
        await asyncio.wait({running, stop}, return_when=asyncio.FIRST_COMPLETED)
        if not running.done():
            raise Cancelled
        return running.result()
    finally:
        stop.cancel()
        if not running.done():
            running.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await running


class ChosenChat:
    """Whichever model the user has chosen: this machine's, or a server. Implements `ChatModel`; the choice never changes in a turn."""

    def __init__(self, local: ChatModel, server: ChatModel, is_server: Callable[[], bool]) -> None:
        self._local = local
        self._server = server
        self._is_server = is_server

    @property
    def _now(self) -> ChatModel:
        return self._server if self._is_server() else self._local

    @property
    def is_local(self) -> bool:
        """See `ChatModel.is_local`."""
        return self._now.is_local

    @property
    def phase(self) -> str:
        """See `ChatModel.phase`."""
        return self._now.phase

    @property
    def loaded(self) -> p.DoneLoad | None:
        """See `ChatModel.loaded`."""
        return self._now.loaded

    async def ready(self) -> p.DoneLoad:
        """See `ChatModel.ready`."""
        return await self._now.ready()

    async def count(self, texts: Sequence[str]) -> Sequence[int]:
        """See `ChatModel.count`."""
        return await self._now.count(texts)

    def tool_list(self, tools: Registry) -> str:
        """See `ChatModel.tool_list`."""
        return self._now.tool_list(tools)

    def tool_tokens(self, tools: Registry) -> int:
        """See `ChatModel.tool_tokens`."""
        return self._now.tool_tokens(tools)

    async def switch_to(self, conversation_id: ConversationId, *, system_text: str) -> None:
        """See `ChatModel.switch_to`."""
        await self._now.switch_to(conversation_id, system_text=system_text)

    def note(self, conversation_id: ConversationId, *, new_tokens: int) -> None:
        """See `ChatModel.note`."""
        self._now.note(conversation_id, new_tokens=new_tokens)

    def stream(self, ask: Ask, cancelled: asyncio.Event) -> AsyncGenerator[ChatEvent, None]:
        """See `ChatModel.stream`."""
        return self._now.stream(ask, cancelled)
