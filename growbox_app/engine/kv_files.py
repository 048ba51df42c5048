"""Saved KV images: one per conversation and one per system prompt, restored on a context switch and at start.

Owns `kv/` in the data folder; images are acceleration only and may be deleted at any time. What the engine's foreground
context holds is known here by engine generation, so that a restarted engine is cold again; while that is changing it counts
as unknown, and the unknown is never saved. A *system image* holds a system prompt and nothing else: every conversation that
has no image of its own begins with it. Bounded: the oldest images go first, the newest two system images last.

Event-loop thread; the engine process writes, checks and hashes the files (`kv_image.py`). Source: design 4.3 "KV persistence".
"""

from __future__ import annotations

import asyncio
import contextlib
import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path

from growbox_app.engine import kv_image
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineDied
from growbox_app.engine.supervisor import EngineSupervisor
from memory.values import ConversationId

SAVE_AFTER_TOKENS = 512
"""Fewer new tokens than this are not worth a write while the conversation goes on."""
SYSTEM_IMAGES_KEPT = 4
"""English and Chinese, in a project and in none."""
_SYSTEM = "system-"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    """What the foreground context holds. `conversation_id` None: a system prompt alone."""

    generation: int
    conversation_id: ConversationId | None
    system: str


class KvFiles:
    """The KV images of one data folder. Event-loop thread."""

    def __init__(self, folder: Path, engine: EngineSupervisor, *, bytes_max: int) -> None:
        self._folder = folder
        self._engine = engine
        self._bytes_max = bytes_max
        self._lock = asyncio.Lock()
        self._held: _Held | None = None
        self._unsaved_tokens = 0

    async def switch_to(self, conversation_id: ConversationId | None, *, system_text: str) -> None:
        """Makes the engine's foreground context that of a conversation: saves the old image, restores the new one.

        Without an image of its own a conversation gets that of its system prompt; None asks for that one alone.
        """
        async with self._lock:
            wanted = _Held(
                generation=self._engine.generation,
                conversation_id=conversation_id,
                system=self._system_name(system_text),
            )
            before = self._current()
            if before == wanted:
                return
            await self._save(at_least=1)
            self._held = None
            await self._restore(wanted, before)
            self._held = wanted
            self._unsaved_tokens = 0

    def holds_system(self, system_text: str) -> bool:
        """Whether the context begins with this system prompt, so that a new conversation would start warm."""
        current = self._current()
        return current is not None and current.system == self._system_name(system_text)

    def has_system_image(self, system_text: str) -> bool:
        """Whether an image of this system prompt was saved by this very engine and model."""
        return self._path(self._system_name(system_text)).exists()

    def note(self, conversation_id: ConversationId, *, new_tokens: int) -> None:
        """The engine decoded this many tokens for the conversation that it was switched to, also after a restart."""
        held = self._held
        if held is not None and held.conversation_id == conversation_id:
            self._held = replace(held, generation=self._engine.generation)
            self._unsaved_tokens += new_tokens

    async def save(self, *, at_least: int = SAVE_AFTER_TOKENS) -> None:
        """Saves the held image when at least so many tokens are new; a failure costs only warmth."""
        async with self._lock:
            await self._save(at_least=at_least)

    async def save_system(self, system_text: str) -> None:
        """Saves the context as the image of a system prompt; it must hold that and nothing else."""
        async with self._lock:
            current = self._current()
            name = self._system_name(system_text)
            if current is not None and (current.conversation_id, current.system) == (None, name):
                await self._request(p.SaveKv(id=self._next_id(), path=str(self._path(name))))
                await asyncio.to_thread(self._trim)

    async def forget(self, conversation_ids: Iterable[ConversationId]) -> None:
        """Deletes the images of conversations, and saves none of what the engine still holds of them.

        Raises:
            OSError: an image could not be deleted.
        """
        gone = set(conversation_ids)
        async with self._lock:
            current = self._current()
            if current is None or current.conversation_id in gone:
                self._held = None
            # Served after a write that is still under way, whoever gave up waiting for it.
            await self._request(p.Stats(id=self._next_id()))
            for conversation_id in gone:
                path = self._path(conversation_id)
                await asyncio.to_thread(kv_image.remove, path)

    # -- inside ---------------------------------------------------------------------------------
    def _current(self) -> _Held | None:
        """What a running engine holds, as far as it is known."""
        held = self._held
        return held if held is not None and held.generation == self._engine.generation else None

    async def _restore(self, wanted: _Held, before: _Held | None) -> None:
        own = wanted.conversation_id
        if own is not None and await self._load(self._path(own)):
            return
        if before is None or before.system != wanted.system:
            await self._load(self._path(wanted.system))

    async def _load(self, path: Path) -> bool:
        """Whether there was a good image."""
        done = await self._request(p.RestoreKv(id=self._next_id(), path=str(path)))
        return isinstance(done, p.DoneKv) and done.tokens > 0

    async def _save(self, *, at_least: int) -> None:
        current = self._current()
        if (
            current is None
            or current.conversation_id is None
            or self._unsaved_tokens < max(at_least, 1)
        ):
            return
        path = self._path(current.conversation_id)
        if await self._request(p.SaveKv(id=self._next_id(), path=str(path))) is not None:
            self._unsaved_tokens = 0
            await asyncio.to_thread(self._trim)

    async def _request(self, request: p.SaveKv | p.RestoreKv | p.Stats) -> p.Answer | None:
        """The engine's answer; None when it refuses or is gone, which costs only warmth."""
        kind = p.DoneStats if isinstance(request, p.Stats) else p.DoneKv
        with contextlib.suppress(EngineDied, p.EngineFault):
            return await self._engine.client.request(request, kind)
        return None

    def _next_id(self) -> int:
        with contextlib.suppress(EngineDied):
            return self._engine.client.next_id()
        return 0

    def _system_name(self, system_text: str) -> str:
        """File name of a system prompt's image: the text, and what images of this engine must agree on."""
        loaded = self._engine.loaded
        text = f"{loaded.kv if loaded is not None else ''}\n{system_text}"
        return _SYSTEM + hashlib.blake2b(text.encode(), digest_size=8).hexdigest()

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.kv"

    def _trim(self) -> None:
        """Deletes the oldest images until the folder fits; the newest and the newest system images always stay."""
        with contextlib.suppress(OSError):
            images = sorted(
                self._folder.glob("*.kv"), key=lambda path: path.stat().st_mtime_ns, reverse=True
            )
            system = [path for path in images if path.name.startswith(_SYSTEM)]
            kept = {*images[:1], *system[:SYSTEM_IMAGES_KEPT]}
            total = sum(path.stat().st_size for path in kept)
            for image in images:
                if image in kept:
                    continue
                total += image.stat().st_size
                if total > self._bytes_max:
                    kv_image.remove(image)
