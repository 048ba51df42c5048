"""The user's servers: set up, started when first needed, called one call at a time, put to sleep, and never in the way.

Event-loop thread; the connections live on the thread of `LoopThread`. Invariants: no server is started before a tool of it is called
or the user looks at it; a call ends within a second of the user's stop; one that keeps failing is left alone for a while; a server
elsewhere is not asked while this computer is to stay offline. A crash leaves no server running (see `pipes.py`).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path

from growbox_app.mcp_client.book import ServerBook
from growbox_app.mcp_client.loop_thread import LoopThread
from growbox_app.mcp_client.session import CALL_S, Session
from growbox_app.mcp_client.values import (
    SERVERS_MAX,
    McpTrouble,
    Outcome,
    ServerSpec,
    ServerState,
    ServerStatus,
    ToolSpec,
    problem_of_spec,
)
from growbox_app.secrets import Secrets, SecretsTrouble
from growbox_app.tasks import TaskGroup
from memory.ports import Clock

RUNNING_MAX = 6
"""Local servers at once; the one that was not used for longest sleeps for a new one."""
PAUSES_S = (0.0, 2.0, 5.0, 15.0, 60.0)
"""Before a server is started again: after its first failure in a row, its second, and so on."""
CLOSE_S = 4.0


class SetUpError(ValueError):
    """A server cannot be set up like this. `reason` is the key `mcp.invalid.<reason>` of the translations."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


@dataclass(frozen=True, slots=True, kw_only=True)
class McpParts:
    """What the service works with. `changed` is called when a status may look different."""

    data_path: Path
    secrets: Secrets
    clock: Clock
    offline: Callable[[], bool]
    changed: Callable[[], None]
    call_s: float = CALL_S


@dataclass(slots=True)
class _Link:
    """The connection to one server, or why there is none."""

    session: Session | None = None
    lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    starting: bool = False
    trouble: McpTrouble | None = None
    failures: int = 0
    not_before_s: float = 0.0
    used_s: float = 0.0


class McpService:
    """All servers."""

    def __init__(self, parts: McpParts) -> None:
        self._parts = parts
        self._book = ServerBook(parts.data_path)
        self._links: dict[str, _Link] = {}
        self._thread = LoopThread()
        self._tasks = TaskGroup()
        self._closed = False

    # -- what there is ----------------------------------------------------------------------------
    def statuses(self) -> tuple[ServerStatus, ...]:
        """Every server, by name."""
        return tuple(self._status(spec) for spec in self._book.specs)

    def status(self, name: str) -> ServerStatus | None:
        """One server."""
        spec = self._book.get(name)
        return self._status(spec) if spec is not None else None

    def _status(self, spec: ServerSpec) -> ServerStatus:
        link = self._links.get(spec.name, _Link())
        trouble = link.trouble
        return ServerStatus(
            spec=spec,
            state=self._state(spec, link),
            tools=self._book.tools(spec.name),
            reason=trouble.reason if trouble else "",
            detail=trouble.detail if trouble else "",
        )

    def _state(self, spec: ServerSpec, link: _Link) -> ServerState:
        if self._forbidden(spec):
            return ServerState.OFFLINE
        if link.starting:
            return ServerState.STARTING
        if link.session is not None and link.session.alive:
            return ServerState.READY
        return ServerState.FAILED if link.trouble is not None else ServerState.ASLEEP

    def _forbidden(self, spec: ServerSpec) -> bool:
        return spec.is_remote and not spec.is_loopback and self._parts.offline()

    # -- setting up -------------------------------------------------------------------------------
    async def put(
        self, spec: ServerSpec, secrets: Mapping[str, str], *, only_now: bool = False
    ) -> None:
        """Sets a server up, or changes it. `secrets` are values by name; a name without one keeps what it has.

        Raises:
            SetUpError: not like this.
            SecretsTrouble: the keyring does not take them; nothing has changed but the secrets before.
            OSError: the data folder does not take it.
        """
        problem = problem_of_spec(spec)
        full = self._book.get(spec.name) is None and len(self._book.specs) >= SERVERS_MAX
        if problem is not None or full:
            raise SetUpError(problem or "too_many")
        for name, value in secrets.items():
            if name in spec.secret_names and value:
                await self._parts.secrets.set(spec.secret_key(name), value, only_now=only_now)
        before = self._book.get(spec.name)
        self._book.put(spec)
        if before is not None:
            for name in set(before.secret_names) - set(spec.secret_names):
                await self._parts.secrets.delete(before.secret_key(name))
        await self._sleep(spec.name)
        self._links.pop(spec.name, None)
        self._parts.changed()

    async def remove(self, name: str) -> None:
        """Forgets a server, its tools and its secrets.

        Raises:
            SecretsTrouble: the keyring keeps the secrets; the server is gone all the same.
            OSError: the data folder does not take it.
        """
        spec = self._book.get(name)
        if spec is None:
            return
        self._book.remove(name)
        await self._sleep(name)
        self._links.pop(name, None)
        self._parts.changed()
        for secret in spec.secret_names:
            await self._parts.secrets.delete(spec.secret_key(secret))

    def mark(self, name: str, tool: str, *, safe: bool) -> None:
        """The user says that a tool may run unasked, or not any more.

        Raises:
            OSError: the data folder does not take it.
        """
        spec = self._book.get(name)
        if spec is None:
            return
        tools = spec.safe_tools | {tool} if safe else spec.safe_tools - {tool}
        self._book.put(replace(spec, safe_tools=tools))
        self._parts.changed()

    async def refresh(self, name: str) -> ServerStatus | None:
        """Starts a server anew and asks for its tools; how it went is in the status."""
        spec = self._book.get(name)
        if spec is None or self._closed:
            return None
        link = self._link(name)
        async with link.lock:
            await self._sleep(name)
            link.not_before_s = 0.0
            with contextlib.suppress(McpTrouble):
                tools = await self._open(spec, link)
                self._learn(name, tools)
        return self.status(name)

    def _learn(self, name: str, tools: tuple[ToolSpec, ...]) -> None:
        with contextlib.suppress(OSError):  # known until the end of this run
            self._book.learn(name, tools)
        self._parts.changed()

    # -- calling ----------------------------------------------------------------------------------
    async def call(
        self, name: str, tool: str, arguments: Mapping[str, object], cancelled: asyncio.Event
    ) -> Outcome:
        """Calls a tool, starting its server where it sleeps.

        Raises:
            McpTrouble: there was no answer. Its reason is `stopped` when the user did not wait for one.
        """
        work = self._tasks.start("mcp call", self._call(name, tool, arguments))
        stop = self._tasks.start("mcp stop", cancelled.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                raise McpTrouble("stopped")
            outcome: Outcome | McpTrouble = work.result()
        finally:
            work.cancel()
            stop.cancel()
        if isinstance(outcome, McpTrouble):
            raise outcome
        return outcome

    async def _call(
        self, name: str, tool: str, arguments: Mapping[str, object]
    ) -> Outcome | McpTrouble:
        """Trouble is returned: a task that raises is logged as a bug."""
        spec = self._book.get(name)
        if spec is None or self._closed:
            return McpTrouble("gone")
        link = self._link(name)
        async with link.lock:
            try:
                session = await self._awake(spec, link)
                outcome = await self._thread.run(session.call(tool, arguments, self._parts.call_s))
            except McpTrouble as trouble:
                self._failed(link, trouble)
                return self._clean(trouble)
            link.failures, link.trouble = 0, None
            link.used_s = self._parts.clock.monotonic_s()
        return replace(outcome, text=self._parts.secrets.redact(outcome.text))

    async def _awake(self, spec: ServerSpec, link: _Link) -> Session:
        if self._forbidden(spec):
            raise McpTrouble("offline")
        if link.session is None or not link.session.alive:
            left = link.not_before_s - self._parts.clock.monotonic_s()
            if left > 0:
                raise McpTrouble("waiting", f"{max(left, 1):.0f}")
            tools = await self._open(spec, link)
            known = {tool.name for tool in self._book.tools(spec.name)}
            if not known or known == {tool.name for tool in tools}:
                # Other names would change the beginning of every prompt: they wait for the user to look.
                self._learn(spec.name, tools)
        assert link.session is not None
        return link.session

    async def _open(self, spec: ServerSpec, link: _Link) -> tuple[ToolSpec, ...]:
        """Starts a server that does not run."""
        try:
            if self._forbidden(spec):
                raise McpTrouble("offline")
            secrets = await self._secrets_of(spec)
            await self._make_room(spec)
            link.starting, link.trouble = True, None
            self._parts.changed()
            link.session, tools = await self._thread.run(_opened(spec, secrets))
        except McpTrouble as trouble:
            link.starting = False
            self._failed(link, trouble)
            raise
        finally:
            link.starting = False
            self._parts.changed()
        link.used_s = self._parts.clock.monotonic_s()
        return tools

    def _failed(self, link: _Link, trouble: McpTrouble) -> None:
        """Notes trouble once, however far up it is seen."""
        if trouble is link.trouble or trouble.reason in ("waiting", "offline"):
            return
        link.trouble = trouble
        pause = PAUSES_S[min(link.failures, len(PAUSES_S) - 1)]
        link.failures += 1
        link.not_before_s = self._parts.clock.monotonic_s() + pause
        self._parts.changed()

    def _clean(self, trouble: McpTrouble) -> McpTrouble:
        return McpTrouble(trouble.reason, self._parts.secrets.redact(trouble.detail))

    async def _secrets_of(self, spec: ServerSpec) -> dict[str, str]:
        found: dict[str, str] = {}
        for name in spec.secret_names:
            try:
                value = await self._parts.secrets.get(spec.secret_key(name))
            except SecretsTrouble as trouble:
                raise McpTrouble("keyring", trouble.reason) from trouble
            if value is None:
                raise McpTrouble("secret_missing", name)
            found[name] = value
        return found

    def _link(self, name: str) -> _Link:
        return self._links.setdefault(name, _Link())

    # -- sleeping ---------------------------------------------------------------------------------
    async def _make_room(self, spec: ServerSpec) -> None:
        """Puts servers to sleep that nobody waits for, until one more may run."""
        if spec.is_remote:
            return
        running = [name for name, link in self._links.items() if self._runs(name, link)]
        idle = [name for name in running if not self._links[name].lock.locked()]
        idle.sort(key=lambda name: self._links[name].used_s)
        for name in idle[: max(len(running) + 1 - RUNNING_MAX, 0)]:
            await self._sleep(name)

    def _runs(self, name: str, link: _Link) -> bool:
        spec = self._book.get(name)
        return spec is not None and not spec.is_remote and link.session is not None

    async def _sleep(self, name: str) -> None:
        link = self._links.get(name)
        if link is None or link.session is None:
            return
        session, link.session = link.session, None
        await self._thread.run(session.close())

    def network_changed(self) -> None:
        """Hangs up on servers that may not be asked any more."""
        for spec in self._book.specs:
            if self._forbidden(spec):
                self._tasks.start("mcp offline", self._sleep(spec.name))
        self._parts.changed()

    async def close(self) -> None:
        """Ends every server. Idempotent."""
        self._closed = True
        await self._tasks.cancel_all()
        sleeping = [self._sleep(name) for name in list(self._links)]
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(CLOSE_S):
                await _all(sleeping)
        await self._thread.close()


async def _all(work: Iterable[object]) -> None:
    await asyncio.gather(*work, return_exceptions=True)  # type: ignore[call-overload]


async def _opened(
    spec: ServerSpec, secrets: Mapping[str, str]
) -> tuple[Session, tuple[ToolSpec, ...]]:
    """On the connections' loop."""
    session = Session(spec, secrets)
    return session, await session.open()
