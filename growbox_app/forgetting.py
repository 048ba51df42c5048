"""Forgetting a conversation: hidden at once, taken back for some seconds, then deleted everywhere, and searched for.

The wish is durable from the first moment (`MemoryEngine.forgetting`): closing the window, or a crash, does not bring the conversation
back; the next start goes on. What is the application's own – background tasks, the model's saved state, checkpoints, audit lines, what
calls have taught – goes before the memory's part, because afterwards nobody knows any more what belonged to it. No turn runs until its rows are
gone: one that had recalled it would write it down again. Event-loop thread.

Source: design 4.9.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from growbox_app.audit_log import AuditLog
from growbox_app.checkpoints import Checkpoints
from growbox_app.engine.kv_files import KvFiles
from growbox_app.library_face import ForgetState, Forgetting
from growbox_app.memory_service import MemoryService, Priority
from growbox_app.shadow.values import CheckpointTrouble
from growbox_app.tasks import TaskGroup
from memory.errors import MemoryEngineError
from memory.requests import Operation
from memory.values import ConversationId, ForgetPreview, ForgetReport, NodeId, NodeStatus

if TYPE_CHECKING:
    from memory.engine import MemoryEngine

_LOG = logging.getLogger(__name__)

UNDO_S = 10.0
SHOWN_PARTS = 20
"""How often a long step says how far it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ForgetParts:
    """What forgetting works with.

    `quiet` keeps turns away; `stop_turn` ends the running one; `end_tasks` the background tasks that a conversation started, which are
    off the list then; `unlearn` deletes what its calls have taught; `changed` is called whenever there is something new to show. `beside` are folders that hold no text of conversations.
    """

    memory: MemoryService
    kv: KvFiles
    checkpoints: Checkpoints
    audit: AuditLog
    tasks: TaskGroup
    quiet: Callable[[], AbstractAsyncContextManager[None]]
    stop_turn: Callable[[], Awaitable[None]]
    end_tasks: Callable[[ConversationId], Awaitable[None]]
    unlearn: Callable[[ConversationId], object]
    changed: Callable[[], None]
    beside: tuple[Path, ...]
    undo_s: float = UNDO_S


class Forgetter:
    """Conversations on their way out; one after the other."""

    def __init__(self, parts: ForgetParts) -> None:
        self._parts = parts
        self._shown: dict[ConversationId, Forgetting] = {}
        self._waits: dict[ConversationId, asyncio.Event] = {}
        self._one = asyncio.Lock()

    def forgettings(self) -> tuple[Forgetting, ...]:
        """See `LibraryFace.forgettings`."""
        return tuple(self._shown.values())

    async def resume(self) -> None:
        """Goes on with what an earlier run was asked for."""
        for conversation_id in await self._parts.memory.call(_pending, Priority.BACKGROUND):
            self._show(
                Forgetting(conversation_id=conversation_id, title="", state=ForgetState.RUNNING)
            )
            await self._delete(conversation_id)

    async def forget(self, conversation_id: ConversationId) -> None:
        """See `LibraryFace.forget`."""
        memory = self._parts.memory
        found = await memory.call(lambda engine: engine.conversation(conversation_id))
        if found is None:
            return
        messages = await memory.call(lambda engine: engine.messages(conversation_id))
        if any(message.status is NodeStatus.PARTIAL for message in messages):
            await self._parts.stop_turn()
        preview = await self.preview(conversation_id)
        await memory.call(lambda engine: engine.forgetting.ask(conversation_id))
        self._show(
            Forgetting(
                conversation_id=conversation_id,
                title=found.title,
                state=ForgetState.WAITING,
                preview=preview,
            )
        )
        self._waits[conversation_id] = asyncio.Event()
        self._parts.tasks.start("forget", self._after_a_while(conversation_id))

    async def preview(self, conversation_id: ConversationId) -> ForgetPreview:
        """See `LibraryFace.preview`."""
        return await self._parts.memory.drive(partial(_preview, conversation_id), Priority.PANEL)

    async def keep(self, conversation_id: ConversationId) -> None:
        """See `LibraryFace.keep`."""
        kept = self._waits.pop(conversation_id, None)
        if kept is None:
            return
        kept.set()
        await self._parts.memory.call(lambda engine: engine.forgetting.undo(conversation_id))
        self.dismiss(conversation_id)

    def dismiss(self, conversation_id: ConversationId) -> None:
        """See `LibraryFace.dismiss`."""
        if self._shown.pop(conversation_id, None) is not None:
            self._parts.changed()

    async def _after_a_while(self, conversation_id: ConversationId) -> None:
        kept = self._waits[conversation_id]
        try:
            async with asyncio.timeout(self._parts.undo_s):
                await kept.wait()
        except TimeoutError:
            if self._waits.pop(conversation_id, None) is not None:
                self._change(conversation_id, state=ForgetState.RUNNING)
                await self._delete(conversation_id)

    async def _delete(self, conversation_id: ConversationId) -> None:
        async with self._one:
            try:
                report = await self._everywhere(conversation_id)
            except (MemoryEngineError, CheckpointTrouble, OSError):
                _LOG.exception("a conversation could not be deleted; the next start tries again")
                self._change(conversation_id, state=ForgetState.FAILED)
                return
        self._change(conversation_id, state=ForgetState.DONE, report=report)

    async def _everywhere(self, conversation_id: ConversationId) -> ForgetReport:
        """Turns are kept away until the memory's rows are gone; the copies, and the search for what is left, take longer."""
        gone = asyncio.Event()
        async with self._parts.quiet():
            await self._own(conversation_id)
            work = self._parts.tasks.start("delete", self._rows(conversation_id, gone))
            work.add_done_callback(lambda _task: gone.set())
            await gone.wait()
        report: ForgetReport = await work
        return report

    async def _rows(self, conversation_id: ConversationId, gone: asyncio.Event) -> ForgetReport:
        loop = asyncio.get_running_loop()

        def note(step: str, done: int, total: int) -> None:  # on the storage thread
            if step != "delete":
                loop.call_soon_threadsafe(gone.set)
            if total <= SHOWN_PARTS or done % (total // SHOWN_PARTS) == 0:
                loop.call_soon_threadsafe(
                    partial(self._change, conversation_id, step=step, done=done, total=total)
                )

        def work(engine: MemoryEngine) -> Operation[ForgetReport]:
            return engine.forgetting.run(conversation_id, note, beside=self._parts.beside)

        return await self._parts.memory.drive(work, Priority.BACKGROUND)

    async def _own(self, conversation_id: ConversationId) -> None:
        """What the application keeps beside the memory."""
        parts = self._parts
        await parts.end_tasks(conversation_id)  # first: what still runs may write to the project
        touched = await parts.memory.drive(partial(_touched, conversation_id), Priority.PANEL)
        await parts.kv.forget({conversation_id, *touched})
        answers = await parts.memory.call(partial(_answers, conversation_id), Priority.PANEL)
        await parts.checkpoints.forget(answers)
        await asyncio.to_thread(parts.audit.forget, conversation_id)
        await asyncio.to_thread(parts.unlearn, conversation_id)

    def _show(self, forgetting: Forgetting) -> None:
        self._shown[forgetting.conversation_id] = forgetting
        self._parts.changed()

    def _change(self, conversation_id: ConversationId, **changes: object) -> None:
        before = self._shown.get(conversation_id)
        if before is not None:
            self._show(replace(before, **changes))  # type: ignore[arg-type]  # fields by name


def _pending(engine: MemoryEngine) -> tuple[ConversationId, ...]:
    return engine.forgetting.pending()


def _preview(conversation_id: ConversationId, engine: MemoryEngine) -> Operation[ForgetPreview]:
    return engine.forgetting.preview(conversation_id)


def _touched(
    conversation_id: ConversationId, engine: MemoryEngine
) -> Operation[tuple[ConversationId, ...]]:
    return engine.forgetting.touched(conversation_id)


def _answers(conversation_id: ConversationId, engine: MemoryEngine) -> frozenset[NodeId]:
    return engine.forgetting.members(conversation_id)
