"""Keeps one engine process loaded: starts it, loads the models, restarts it after a crash, gives up on a loop.

Owns the `EngineClient` of the moment and the `EngineStatus` that faces show. Event-loop thread only. A failed load (bad
model file) is a state, not a retry; a crash is answered by one restart and reload, unless crashes pile up.
"""

from __future__ import annotations

import asyncio
import collections
import logging
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from growbox_app.api import EnginePhase, EngineStatus, Problem, ProblemCode, ProblemError
from growbox_app.engine import canary, native
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient, EngineDied, Target
from growbox_app.tasks import TaskGroup
from memory.ports import Clock

_LOG = logging.getLogger(__name__)

DEATHS_MAX = 3
DEATHS_WINDOW_S = 300.0
"""More crashes than this in the window are a deterministic fault: stop and say so."""
BACKGROUND_TOKENS = 2048


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSpec:
    """What to load. `need_bytes` is the estimate shown when memory is short."""

    model_id: str
    model_name: str
    chat_path: Path
    chat_sha256: str
    embed_path: Path
    context_tokens: int
    threads: int


class EngineSupervisor:
    """The engine as the rest of the application sees it."""

    def __init__(
        self,
        *,
        target: Target,
        clock: Clock,
        variant_file: Path,
        on_status: Callable[[], None],
        needs_variant: bool = True,
    ) -> None:
        self._target = target
        self._clock = clock
        self._variant_file = variant_file
        self._on_status = on_status
        self._needs_variant = needs_variant
        self._tasks = TaskGroup()
        self._loading = asyncio.Lock()
        self._spec: LoadSpec | None = None
        self._client: EngineClient | None = None
        self._deaths: collections.deque[float] = collections.deque(maxlen=DEATHS_MAX)
        self._settled = asyncio.Event()
        self.status = EngineStatus(phase=EnginePhase.STOPPED)
        self.loaded: p.DoneLoad | None = None
        self.generation = 0

    @property
    def client(self) -> EngineClient:
        """The running, loaded engine.

        Raises:
            EngineDied: none is loaded right now.
        """
        if self._client is None or self.loaded is None:
            raise EngineDied(None)
        return self._client

    @property
    def pid(self) -> int | None:
        """Process id of the engine, None while none runs."""
        return self._client.pid if self._client is not None else None

    def use(self, spec: LoadSpec) -> None:
        """Loads `spec` from now on, in the background; replaces what was loaded."""
        self._spec = spec
        self._deaths.clear()
        self._settled.clear()
        self._set(EnginePhase.STARTING, progress=0.0, problem=None)
        self._tasks.start("engine-load", self._load())

    def refuse(self, problem: Problem) -> None:
        """There is nothing to load (no model file): say so."""
        self._set(EnginePhase.FAILED, problem=problem)
        self._settled.set()

    async def ready(self) -> p.DoneLoad:
        """Waits until the engine is loaded.

        Raises:
            ProblemError: it cannot be.
        """
        while True:
            await self._settled.wait()
            if self.loaded is not None:
                return self.loaded
            if self.status.problem is not None:
                raise ProblemError(self.status.problem)
            self._settled.clear()

    async def close(self) -> None:
        """Ends the process."""
        self._spec = None
        await self._tasks.cancel_all()
        await self._drop()
        self._set(EnginePhase.STOPPED, problem=None)

    async def _drop(self) -> None:
        client, self._client, self.loaded = self._client, None, None
        if client is not None:
            await asyncio.shield(
                client.close()
            )  # a cancelled load must not leave its process behind

    async def _load(self) -> None:
        """Loads what is wanted now; one at a time, so that no process is overwritten and forgotten."""
        spec = self._spec
        async with self._loading:
            if spec is not None and spec is self._spec:
                await self._load_now(spec)

    async def _load_now(self, spec: LoadSpec) -> None:
        await self._drop()
        try:
            variant = await self._variant(spec)
            client = EngineClient(self._target, on_death=lambda code: self._died(client, code))
            self._client = client
            await self._send_load(client, spec, variant)
        except p.EngineFault as fault:
            await self._drop()
            self._fail(fault)
        except EngineDied:
            return  # `_died` decides
        except RuntimeError as error:
            self._fail(p.EngineFault("cpu_unsupported", str(error)))
        except OSError as error:  # the file was moved, no process could be started
            await self._drop()
            self._fail(p.EngineFault("engine_error", str(error)))

    async def _variant(self, spec: LoadSpec) -> str:
        if not self._needs_variant:
            return ""
        return await asyncio.to_thread(
            canary.choose_variant,
            str(spec.chat_path),
            memory=self._variant_file,
            threads=spec.threads,
        )

    async def _send_load(self, client: EngineClient, spec: LoadSpec, variant: str) -> None:
        request = p.Load(
            id=client.next_id(),
            chat_path=str(spec.chat_path),
            chat_sha256=spec.chat_sha256,
            embed_path=str(spec.embed_path),
            context_tokens=spec.context_tokens,
            background_tokens=min(BACKGROUND_TOKENS, spec.context_tokens),
            threads=spec.threads,
            variant=variant,
        )
        slow = variant in native.PLAIN_VARIANTS
        self._set(EnginePhase.LOADING, progress=0.0, cpu_variant=variant, slow_processor=slow)
        async for answer in client.stream(request):
            if isinstance(answer, p.LoadProgress):
                self._set(EnginePhase.LOADING, progress=answer.share)
            elif isinstance(answer, p.DoneLoad):
                self.loaded = answer
                self.generation += 1
                if not answer.prefix_stable:
                    _LOG.warning("the chat template of %s rewrites history", answer.name)
                self._set(
                    EnginePhase.READY,
                    progress=1.0,
                    context_tokens=answer.context_tokens,
                    prefix_stable=answer.prefix_stable,
                )
                self._settled.set()

    def _fail(self, fault: p.EngineFault) -> None:
        code = (
            ProblemCode(fault.code) if fault.code in set(ProblemCode) else ProblemCode.ENGINE_ERROR
        )
        fields = dict(fault.fields)
        if self._spec is not None:
            fields.setdefault("model", self._spec.model_name)
        fields.setdefault("reason", fault.detail or fault.code)
        problem = Problem(code=code, fields=fields, detail=fault.detail)
        self._set(EnginePhase.FAILED, problem=problem)
        self._settled.set()

    def _died(self, client: EngineClient, exit_code: int | None) -> None:
        if client is not self._client:
            return
        self._client, self.loaded = None, None
        self._settled.clear()
        if self._spec is None:
            return
        self._deaths.append(self._clock.monotonic_s())
        recent = [at for at in self._deaths if self._deaths[-1] - at < DEATHS_WINDOW_S]
        if len(recent) >= DEATHS_MAX:
            fields = {"count": str(len(recent))}
            detail = f"exit code {exit_code}"
            code = ProblemCode.ENGINE_GIVEN_UP
            self._set(EnginePhase.FAILED, problem=Problem(code=code, fields=fields, detail=detail))
            self._settled.set()
            return
        self._set(EnginePhase.RESTARTING, progress=0.0)
        self._tasks.start("engine-restart", self._load())

    def _set(self, phase: EnginePhase, **changes: object) -> None:
        spec = self._spec
        names = {"model_id": spec.model_id, "model_name": spec.model_name} if spec else {}
        self.status = replace(self.status, phase=phase, **names, **changes)  # type: ignore[arg-type]
        self._on_status()
