"""Servers as a face sees them: plain values, and the protocol of what can be done with them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

CHOSEN = "network.chat_endpoint"
"""The setting that names the server that answers."""
OFFLINE = "network.offline"
"""The setting that lets nothing but this computer be asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """A server that can answer instead of the model of this machine, and the model it is asked for.

    `host` is where text goes, `loopback` that this is this computer itself. `key`: "" (none), "kept" (in the keyring) or "until_end".
    """

    id: str
    name: str
    base_url: str
    model: str
    context_tokens: int
    host: str
    loopback: bool
    encrypted: bool
    key: str
    chosen: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class EndpointDraft:
    """What the user has typed. `id` empty: a new server; `key` None: the one that is kept."""

    base_url: str
    model: str = ""
    name: str = ""
    context_tokens: int = 8192
    key: str | None = None
    id: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServedModel:
    """A model that a server offers. `context_tokens` 0: it does not say."""

    id: str
    context_tokens: int = 0


class Endpoints(Protocol):
    """What a face can do with servers. Every `async` method may raise `ProblemError`."""

    def all(self) -> tuple[Endpoint, ...]:
        """The servers the user has named."""
        ...

    def chosen(self) -> Endpoint | None:
        """The one that answers; None: the model of this machine."""
        ...

    async def save(self, draft: EndpointDraft) -> Endpoint:
        """Adds a server or changes one. A key stays only as long as scheme, host and port do."""
        ...

    async def remove(self, endpoint_id: str) -> None:
        """Forgets a server and its key."""
        ...

    async def test(self, draft: EndpointDraft) -> tuple[ServedModel, ...]:
        """Asks a server which models it has; saves nothing."""
        ...

    async def choose(self, endpoint_id: str) -> None:
        """Lets a server answer from now on; empty: the model of this machine."""
        ...
