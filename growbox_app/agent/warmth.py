"""Keeps the model warm for what the user is likely to do next, while nobody waits.

Owns what is prepared: the conversation that a face shows (or that the last turn was in), as one task that the next turn, or
the next wish, cancels. Preparing is compaction of the region, the conversation's own KV image, and prefill of the certain
part of its prompt; for a conversation not begun yet it is the system prompt – one in a project is told of more tools – saved once as
an image that every new one starts with. Invariants: a turn never waits for this longer than one slice of prefill; trouble here is silent, for it costs only
warmth; when power is saved, or the user does not want it, images are restored and nothing is computed.

Event-loop thread. A crash leaves whole images or none. Source: design 4.3, "When idle, the background compacts early".
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from itertools import product

import msgspec

from growbox_app.agent import prompts
from growbox_app.agent.context import ContextAssembler
from growbox_app.agent.loop import AgentLoop, LoopParts
from growbox_app.api import AppEvent, EnginePhase, ProblemError, StatusChanged
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineDied
from growbox_app.memory_service import Priority
from growbox_app.tasks import TaskGroup
from growbox_app.text import LANGUAGES, tr
from memory.errors import MemoryEngineError
from memory.values import ConversationId

IDLE_S = 5.0
"""Quiet after a turn before idle work begins: a quick follow-up is not delayed by it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Idleness:
    """When idle work may run. `saving_power` is asked on another thread."""

    idle_s: float
    saving_power: Callable[[], bool]


class Warmth:
    """The speculative half of the agent."""

    def __init__(self, parts: LoopParts, loop: AgentLoop, idleness: Idleness) -> None:
        self._parts = parts
        self._loop = loop
        self._idleness = idleness
        self._tasks = TaskGroup()
        self._task: asyncio.Task[None] | None = None
        self._shown: ConversationId | None = None
        self._in_project = False
        self._asked = False
        self._in_turn = False
        self._closed = False
        self._generation = 0
        self._tried: set[tuple[int, str]] = set()

    # -- what happens outside -----------------------------------------------------------------
    def prepare(self, conversation_id: ConversationId | None, *, in_project: bool) -> None:
        """See `Assistant.prepare`."""
        self._shown, self._in_project, self._asked = conversation_id, in_project, True
        name = f"prepare {conversation_id} {in_project}"
        if self._in_turn or (self._working() and self._task and self._task.get_name() == name):
            return
        self._begin(name, self._prepare)

    def turn_began(self) -> None:
        """The turn goes first: whatever is being prepared stops."""
        self._in_turn = True
        self._drop()

    def turn_accepted(self, conversation_id: ConversationId) -> None:
        """This conversation is the likely next one, until another is shown."""
        self._shown = conversation_id

    def turn_ended(self) -> None:
        """Idle work begins after a while of quiet."""
        self._in_turn = False
        self._begin("idle", self._idle)

    def wake(self, event: AppEvent) -> None:
        """Listener: a model that was just loaded, also after a crash, is cold."""
        generation = self._parts.engine.generation
        ready = self._parts.engine.status.phase is EnginePhase.READY
        if isinstance(event, StatusChanged) and ready and generation != self._generation:
            self._generation = generation
            if self._asked:
                self.prepare(self._shown, in_project=self._in_project)

    async def settled(self) -> None:
        """Waits until nothing is being prepared or about to be."""
        while self._task is not None and self._working():
            await asyncio.wait({self._task})

    async def close(self) -> None:
        """Stops; nothing begins any more."""
        self._closed = True
        await self._tasks.cancel_all()

    # -- tasks ----------------------------------------------------------------------------------
    def _working(self) -> bool:
        return self._task is not None and not self._task.done()

    def _drop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _begin(self, name: str, work: Callable[[], Awaitable[None]]) -> None:
        self._drop()
        if not self._closed:
            self._task = self._tasks.start(name, self._quietly(work))

    async def _quietly(self, work: Callable[[], Awaitable[None]]) -> None:
        if not self._parts.chat.is_local:  # a server keeps its own cache
            return
        with contextlib.suppress(EngineDied, p.EngineFault, ProblemError, MemoryEngineError):
            await work()

    async def _may_compute(self) -> bool:
        if not self._parts.settings.get("models.prewarm"):
            return False
        return not await asyncio.to_thread(self._idleness.saving_power)

    # -- work -----------------------------------------------------------------------------------
    async def _idle(self) -> None:
        await asyncio.sleep(self._idleness.idle_s)
        if await self._may_compute():
            await self._missing_system_images()
        await self._prepare()

    async def _missing_system_images(self) -> None:
        """A new conversation may be begun in either language, and in a project; each image is tried once while an engine lives."""
        projects = await self._parts.memory.call(lambda engine: engine.projects())
        for language, in_project in product(LANGUAGES, (False, True) if projects else (False,)):
            text = await self._loop.system_text(language, in_project=in_project)
            attempt = (self._parts.engine.generation, text)
            if attempt not in self._tried and not self._parts.kv.has_system_image(text):
                self._tried.add(attempt)
                await self._prepare_new(text)

    async def _prepare(self) -> None:
        await self._parts.engine.ready()
        conversation_id = self._shown
        if conversation_id is None:
            await self._prepare_new(
                await self._loop.system_text(tr.language, in_project=self._in_project)
            )
        else:
            await self._prepare_old(conversation_id)

    async def _prepare_new(self, system_text: str) -> None:
        """Makes the context hold a system prompt alone, and its image where there is none that is good."""
        kv = self._parts.kv
        if kv.holds_system(system_text) and kv.has_system_image(system_text):
            return
        await kv.switch_to(None, system_text=system_text)
        if not await self._may_compute():
            return
        message = p.Message(role="system", parts=(system_text,))
        done = await self._warm((message,), self._parts.clock.now_ms())
        whole = done.prefilled + done.reused == done.total
        if whole and (done.prefilled or not kv.has_system_image(system_text)):
            await kv.save_system(system_text)

    async def _prepare_old(self, conversation_id: ConversationId) -> None:
        memory = self._parts.memory
        conversation = await memory.call(lambda engine: engine.conversation(conversation_id))
        history = await memory.call(lambda engine: engine.messages(conversation_id))
        if conversation is None or not history:
            return
        window = await self._loop.window(
            history[0].content, in_project=conversation.project_id is not None
        )
        context = ContextAssembler(memory, self._loop.count, conversation_id, window)
        await context.open()
        may_compute = await self._may_compute()
        if may_compute:
            await memory.call(
                lambda engine: engine.compact_region(conversation_id), Priority.BACKGROUND
            )
        await self._parts.kv.switch_to(conversation_id, system_text=window.system_text)
        if may_compute:
            done = await self._warm(await context.messages(), conversation.created_at_ms)
            self._parts.kv.note(conversation_id, new_tokens=done.prefilled)

    async def _warm(self, messages: tuple[p.Message, ...], begun_at_ms: int) -> p.DoneWarm:
        """Reads to the end: where something more urgent cut it short, it goes on behind that."""
        client = self._parts.engine.client
        date = prompts.local_date(begun_at_ms)
        prefilled = 0
        while True:
            request = p.Warm(id=client.next_id(), messages=messages, date=date)
            done = await client.request(request, p.DoneWarm)
            prefilled += done.prefilled
            if done.prefilled + done.reused >= done.total:
                return msgspec.structs.replace(
                    done, prefilled=prefilled, reused=done.total - prefilled
                )
