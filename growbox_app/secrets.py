"""Keys and tokens: kept in the keyring of the operating system, nowhere else, and never said.

A keyring may ask the user for a password or wait for a service, so every look at it is in a daemon thread with a limit: no call
blocks the event loop, and none keeps the application alive. A machine without a keyring that encrypts has none at all (a plain-text
file is not a keyring): trouble then says so in clear words, and a secret may still be kept until the application ends. Nothing is
written by this module itself, so a crash leaves what the keyring holds.

Invariant: a value that came from here or went in here is replaced by `redact`; what looks like one is kept out of the log by
`RedactSecrets`.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import sys
import threading
from collections.abc import Callable
from typing import Protocol, TypeVar

from typing_extensions import override

from growbox_app.audit_log import redacted

SERVICE = "GrowBox"
"""Under this name the keyring shows the entries."""
WAIT_S = 60.0
"""A locked keyring asks the user for its password."""
HIDDEN = "•••"
LINE_CHARACTERS_MAX = 2_000
"""Of a line of the log; what is longer is user text that has no business there."""
HIDDEN_FROM_CHARACTERS = 6
"""Shorter values are words of ordinary text, too."""
# Module of keyring.backends and class, best first.
_BACKENDS = {"win32": (("Windows", "WinVaultKeyring"),), "darwin": (("macOS", "Keyring"),)}
_FREE_DESKTOP = (
    ("SecretService", "Keyring"),
    ("kwallet", "DBusKeyring"),
    ("libsecret", "Keyring"),
)
_PRIORITY_MIN = 1
"""What `keyring` itself calls recommended; below are files in clear and stand-ins that keep nothing."""
T = TypeVar("T")


class Backend(Protocol):
    """What is used of a keyring of the package `keyring`."""

    def get_password(self, service: str, username: str) -> str | None:
        """A secret, or None."""
        ...

    def set_password(self, service: str, username: str, password: str) -> None:
        """Keeps a secret."""
        ...

    def delete_password(self, service: str, username: str) -> None:
        """Forgets a secret; raises when there is none."""
        ...


class SecretsTrouble(Exception):
    """The keyring could not be used. `reason` is the key `secrets.trouble.<reason>` of the translations: none, locked, slow, failed."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


def system_backend() -> Backend | None:
    """The keyring of this system, None where there is none that encrypts. Slow: packages are loaded.

    Only those made for this system are looked at: keyring's own search also loads the others', one of which starts the system's
    linker to find a library.
    """
    from keyring.errors import KeyringError

    for module, name in _BACKENDS.get(sys.platform, _FREE_DESKTOP):
        try:
            kind = getattr(importlib.import_module(f"keyring.backends.{module}"), name)
            if kind.priority >= _PRIORITY_MIN:
                backend: Backend = kind()
                return backend
        except (ImportError, KeyringError, RuntimeError):  # `priority` raises where it cannot work
            continue
    return None


class Secrets:
    """Secrets by name. Event-loop thread; `redact` from any thread."""

    def __init__(
        self, find: Callable[[], Backend | None] = system_backend, *, wait_s: float = WAIT_S
    ) -> None:
        """Takes what finds the keyring when it is first needed."""
        self._find = find
        self._wait_s = wait_s
        self._backend: Backend | None = None
        self._looked = False
        self._of_this_run: dict[str, str] = {}
        self._known: frozenset[str] = frozenset()

    async def available(self) -> bool:
        """Whether this computer has a keyring that can be used."""
        try:
            await self._keyring()
        except SecretsTrouble:
            return False
        return True

    async def get(self, name: str) -> str | None:
        """A secret; None when there is none under this name.

        Raises:
            SecretsTrouble: the keyring could not be asked.
        """
        if name in self._of_this_run:
            return self._of_this_run[name]
        try:
            backend = await self._keyring()
        except SecretsTrouble as trouble:
            if trouble.reason == "none":
                return None  # nothing can have been kept
            raise
        value = await self._aside(lambda: backend.get_password(SERVICE, name))
        self._learn(value or "")
        return value

    async def set(self, name: str, value: str, *, only_now: bool = False) -> None:
        """Keeps a secret; with `only_now` just until the application ends, for computers without a keyring.

        Raises:
            SecretsTrouble: it could not be kept.
        """
        self._learn(value)
        if only_now:
            self._of_this_run[name] = value
            return
        backend = await self._keyring()
        await self._aside(lambda: backend.set_password(SERVICE, name, value))
        self._of_this_run.pop(name, None)

    async def delete(self, name: str) -> None:
        """Forgets a secret; harmless when there is none.

        Raises:
            SecretsTrouble: the keyring could not be asked.
        """
        self._of_this_run.pop(name, None)
        try:
            backend = await self._keyring()
        except SecretsTrouble as trouble:
            if trouble.reason == "none":
                return
            raise
        await self._aside(lambda: _delete(backend, name))

    def redact(self, text: str) -> str:
        """A text without the secrets that were used in this run."""
        for value in sorted(self._known, key=len, reverse=True):
            text = text.replace(value, HIDDEN)
        return text

    # -- inside ---------------------------------------------------------------------------------
    def _learn(self, value: str) -> None:
        if len(value) >= HIDDEN_FROM_CHARACTERS:
            self._known |= {value}

    async def _keyring(self) -> Backend:
        if not self._looked:
            self._backend = await self._aside(self._find)
            self._looked = True
        if self._backend is None:
            raise SecretsTrouble("none")
        return self._backend

    async def _aside(self, work: Callable[[], T]) -> T:
        """In a daemon thread: a keyring that hangs may not keep the application from ending."""
        loop = asyncio.get_running_loop()
        done: asyncio.Future[T] = loop.create_future()

        def run() -> None:
            try:
                _tell(loop, done, work(), None)
            except BaseException as error:  # noqa: BLE001 - handed to whoever awaits, as trouble
                _tell(loop, done, None, error)

        threading.Thread(target=run, name="keyring", daemon=True).start()
        try:
            async with asyncio.timeout(self._wait_s):
                return await done
        except TimeoutError as error:
            raise SecretsTrouble("slow") from error


def _tell(
    loop: asyncio.AbstractEventLoop,
    done: asyncio.Future[T],
    value: T | None,
    error: BaseException | None,
) -> None:
    """Hands a thread's outcome to the loop, unless nobody waits any more. The error's own words may hold the secret: they stay here."""

    def tell() -> None:
        if done.done():
            return
        if error is None:
            done.set_result(value)  # type: ignore[arg-type]
        else:
            done.set_exception(SecretsTrouble(_reason(error)))

    try:
        loop.call_soon_threadsafe(tell)
    except RuntimeError:  # the loop is closed: the application ends
        return


def _reason(error: BaseException) -> str:
    names = {kind.__name__ for kind in type(error).__mro__}
    return "locked" if names & {"KeyringLocked", "InitError"} else "failed"


def _delete(backend: Backend, name: str) -> None:
    if backend.get_password(SERVICE, name) is not None:
        backend.delete_password(SERVICE, name)


class RedactSecrets(logging.Filter):
    """Keeps what looks like a secret out of a log, whatever a library writes into it."""

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        """Rewrites the line; never drops it."""
        said = record.getMessage()
        clean = redacted(said[:LINE_CHARACTERS_MAX])
        if clean != said:
            record.msg, record.args = clean, None
        return True
