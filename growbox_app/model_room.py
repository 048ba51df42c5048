"""The models of this machine as the application uses them: which one, is it whole, get it.

Async wrapper over `growbox_app.models`, whose work is synchronous and runs on worker threads. Event-loop thread only.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path

import psutil

from growbox_app.api import ModelStatus, Problem, ProblemCode, ProblemError, Progress, ProgressSink
from growbox_app.engine.supervisor import LoadSpec
from growbox_app.models import fetch
from growbox_app.models.catalogue import Model, catalogue, embedder, find
from growbox_app.models.choose import AUTO, choose_chat, free_ram_bytes
from growbox_app.models.transfer import Job, TransferCancelled
from growbox_app.models.verify import FileState, file_state, have_bytes, require_ready, verify_fully
from growbox_app.settings.store import SettingsStore


class ModelRoom:
    """The models folder and the user's choice."""

    def __init__(self, models_path: Path, settings: SettingsStore) -> None:
        self._models_path = models_path
        self._settings = settings

    async def ready_files(self, progress: ProgressSink, loaded_id: str) -> tuple[Model, Path, Path]:
        """The chat model to load, its path and the embedder's; both verified.

        Args:
            progress: told while a file is verified.
            loaded_id: the model whose memory becomes free by loading another; empty when none is loaded.

        Raises:
            ProblemError: missing, broken, or not enough memory.
        """
        wanted = str(self._settings.get("models.chat"))
        free = free_ram_bytes() + sum(m.ram_bytes for m in catalogue() if m.id == loaded_id)
        chat = choose_chat(wanted, models_path=self._models_path, free_bytes=free)
        paths = [await self._verified(model, progress) for model in (chat, embedder())]
        if wanted != AUTO and chat.ram_bytes > free:
            fields = {
                "need": _gigabytes(chat.ram_bytes),
                "free": _gigabytes(free),
                "model": chat.name,
            }
            raise ProblemError(Problem(code=ProblemCode.NOT_ENOUGH_RAM, fields=fields))
        return chat, paths[0], paths[1]

    async def load_spec(self, progress: ProgressSink, loaded_id: str) -> LoadSpec:
        """What the engine is to load, as the settings say; arguments and errors as of `ready_files`."""
        chat, chat_path, embed_path = await self.ready_files(progress, loaded_id)
        threads = int(self._settings.get("models.threads"))
        return LoadSpec(
            model_id=chat.id,
            model_name=chat.name,
            chat_path=chat_path,
            chat_sha256=chat.sha256,
            embed_path=embed_path,
            context_tokens=min(
                int(self._settings.get("models.context_tokens")), chat.context_tokens
            ),
            threads=threads or psutil.cpu_count(logical=False) or 1,
        )

    def statuses(self, loaded_id: str) -> tuple[ModelStatus, ...]:
        """The catalogue and what is here. Reads file headers: worker thread.

        The selected one is the loaded one; while none is loaded, the one that would be.
        """
        wanted = str(self._settings.get("models.chat"))
        chosen = choose_chat(wanted, models_path=self._models_path, free_bytes=free_ram_bytes())
        selected = {loaded_id or chosen.id, embedder().id}
        return tuple(self._status(model, selected) for model in catalogue())

    async def obtain(self, model_id: str, progress: ProgressSink, file: Path | None) -> None:
        """Gets and verifies a model; cancelling the task stops it and keeps what came.

        Raises:
            ProblemError: what the last source said.
        """
        model = find(model_id)
        await _on_thread(
            progress,
            lambda report, stopped: fetch.obtain(
                model,
                models_path=self._models_path,
                sources=fetch.sources_for(model, file=file),
                progress=report,
                cancelled=stopped.is_set,
            ),
        )

    async def _verified(self, model: Model, progress: ProgressSink) -> Path:
        if await asyncio.to_thread(file_state, model, self._models_path) is FileState.UNVERIFIED:
            await _on_thread(
                progress,
                lambda report, stopped: verify_fully(
                    Job(
                        model=model,
                        models_path=self._models_path,
                        progress=report,
                        cancelled=stopped.is_set,
                    )
                ),
            )
        return await asyncio.to_thread(require_ready, model, self._models_path)

    def _status(self, model: Model, selected: set[str]) -> ModelStatus:
        return ModelStatus(
            id=model.id,
            name=model.name,
            purpose=model.purpose.value,
            size_bytes=model.size,
            ram_bytes=model.ram_bytes,
            licence=model.licence,
            state=file_state(model, self._models_path).value,
            path=model.path(self._models_path),
            selected=model.id in selected,
            have_bytes=have_bytes(model, self._models_path),
        )


async def _on_thread(
    progress: ProgressSink, work: Callable[[ProgressSink, threading.Event], object]
) -> None:
    """Runs `work(report, stopped)` on a worker thread; progress arrives on the event loop."""
    loop = asyncio.get_running_loop()
    stopped = threading.Event()

    def report(value: Progress) -> None:
        loop.call_soon_threadsafe(progress, value)

    running = asyncio.ensure_future(asyncio.to_thread(work, report, stopped))  # noqa: TID251 - awaited below
    try:
        await asyncio.shield(running)
    except asyncio.CancelledError:
        stopped.set()
        await asyncio.gather(running, return_exceptions=True)
        raise
    except TransferCancelled as error:
        raise asyncio.CancelledError from error


def _gigabytes(size: int) -> str:
    return f"{size / 1e9:.1f} GB"


def scripted_spec(context_tokens: int) -> LoadSpec:
    """What a scripted engine is told to load: no file."""
    nothing = Path("/nonexistent")
    return LoadSpec(
        model_id="scripted",
        model_name="scripted",
        chat_path=nothing,
        chat_sha256="0" * 64,
        embed_path=nothing,
        context_tokens=context_tokens,
        threads=1,
    )
