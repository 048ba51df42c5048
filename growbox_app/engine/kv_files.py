"""Saved KV images: one per conversation, restored on a context switch and at start.

Owns `kv/` in the data folder; images are acceleration only and may be deleted at any time. Which image the engine holds now
is known here by engine generation, so that a restarted engine is cold again. Bounded: the oldest images go first.

Source: design 4.3 "KV persistence".
"""

from __future__ import annotations

import contextlib
from pathlib import Path

from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineDied
from growbox_app.engine.supervisor import EngineSupervisor
from memory.values import ConversationId

SAVE_AFTER_TOKENS = 512
"""Fewer new tokens than this are not worth a write while the conversation goes on."""


class KvFiles:
    """The KV images of one data folder. Event-loop thread."""

    def __init__(self, folder: Path, engine: EngineSupervisor, *, bytes_max: int) -> None:
        self._folder = folder
        self._engine = engine
        self._bytes_max = bytes_max
        self._held: tuple[int, ConversationId] | None = None
        self._unsaved_tokens = 0

    async def switch_to(self, conversation_id: ConversationId) -> None:
        """Makes the engine's foreground context that of a conversation: saves the old image, restores the new one."""
        generation = self._engine.generation
        if self._held == (generation, conversation_id):
            return
        await self.save(at_least=1)
        self._held = (generation, conversation_id)
        self._unsaved_tokens = 0
        path = self._path(conversation_id)
        if path.exists():
            with contextlib.suppress(EngineDied, p.EngineFault):
                client = self._engine.client
                await client.request(p.RestoreKv(id=client.next_id(), path=str(path)), p.DoneKv)

    def note(self, conversation_id: ConversationId, *, new_tokens: int) -> None:
        """The engine decoded this many tokens for a conversation."""
        self._held = (self._engine.generation, conversation_id)
        self._unsaved_tokens += new_tokens

    async def save(self, *, at_least: int = SAVE_AFTER_TOKENS) -> None:
        """Saves the held image when at least so many tokens are new; a failure costs only warmth."""
        held = self._held
        if held is None or held[0] != self._engine.generation or self._unsaved_tokens < at_least:
            return
        with contextlib.suppress(EngineDied, p.EngineFault):
            client = self._engine.client
            path = self._path(held[1])
            await client.request(p.SaveKv(id=client.next_id(), path=str(path)), p.DoneKv)
            self._unsaved_tokens = 0
        self._trim()

    def _path(self, conversation_id: ConversationId) -> Path:
        return self._folder / f"{conversation_id}.kv"

    def _trim(self) -> None:
        """Deletes the oldest images until the folder fits; the newest always stays."""
        with contextlib.suppress(OSError):
            images = sorted(
                self._folder.glob("*.kv"), key=lambda path: path.stat().st_mtime_ns, reverse=True
            )
            total = 0
            for number, image in enumerate(images):
                total += image.stat().st_size
                if number and total > self._bytes_max:
                    image.unlink(missing_ok=True)
                    image.with_suffix(".json").unlink(missing_ok=True)
