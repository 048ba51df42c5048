"""What is known of a server: how it is reached, which tools it named, how it is doing, and what went wrong.

Immutable. No value here ever holds a secret: a server's secrets are named, and their values live in the keyring.
"""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from urllib.parse import urlsplit

NAME = re.compile(r"(?=.{1,24}$)[a-z0-9]+(-[a-z0-9]+)*")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_HEADER = re.compile(r"[A-Za-z0-9-]{1,64}")
_STRANGE = re.compile(r"[\x00-\x1f\x7f]")
ARGUMENTS_MAX = 64
CHARACTERS_MAX = 2000
SECRETS_MAX = 16
SERVERS_MAX = 20

TROUBLES = (
    "not_found", "cannot_start", "ended", "hung", "slow", "flood", "unreachable", "protocol",
    "offline", "waiting", "secret_missing", "gone", "stopped",
)  # fmt: skip
"""Why a server could not be used, besides the keyring's own trouble: keys `mcp.trouble.<reason>` of the translations."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerSpec:
    """How a server is reached: a command, or a URL.

    `secret_names` are environment variables of the command, or headers of the requests. `safe_tools` are those that the user has
    said to run unasked.
    """

    name: str
    command: str = ""
    args: tuple[str, ...] = ()
    url: str = ""
    secret_names: tuple[str, ...] = ()
    safe_tools: frozenset[str] = frozenset()

    @property
    def is_remote(self) -> bool:
        """Whether it is reached over HTTP."""
        return bool(self.url)

    @property
    def is_loopback(self) -> bool:
        """Whether it is on this computer, by its address alone: no name is looked up."""
        host = urlsplit(self.url).hostname or ""
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host).is_loopback
        except ValueError:
            return False

    @property
    def place(self) -> str:
        """The command line or the URL, for the reader."""
        return self.url or " ".join([self.command, *self.args])

    def secret_key(self, secret: str) -> str:
        """The name of one of its secrets in the keyring."""
        return f"mcp/{self.name}/{secret}"


def problem_of_spec(spec: ServerSpec) -> str | None:
    """Why a server cannot be set up like this: the key `mcp.invalid.<...>` of the translations; None when it can."""
    if NAME.fullmatch(spec.name) is None:
        return "name"
    words = (spec.command, spec.url, *spec.args)
    if any(len(word) > CHARACTERS_MAX or _STRANGE.search(word) for word in words):
        return "words"
    if len(spec.args) > ARGUMENTS_MAX or len(spec.secret_names) > SECRETS_MAX:
        return "too_many"
    if bool(spec.command.strip()) is bool(spec.url):
        return "place"
    if spec.url and not _is_url(spec.url):
        return "url"
    shape = _HEADER if spec.is_remote else _VARIABLE
    bad = any(shape.fullmatch(secret) is None for secret in spec.secret_names)
    return "secret_name" if bad else None


def _is_url(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolSpec:
    """A tool as its server described it, bounded. `schema` is the JSON schema of its arguments as text; empty: too large to keep."""

    name: str
    description: str = ""
    schema: str = ""


class ServerState(StrEnum):
    """How a server is doing."""

    ASLEEP = "asleep"
    """Not started; it will be when it is needed."""
    STARTING = "starting"
    READY = "ready"
    FAILED = "failed"
    OFFLINE = "offline"
    """Elsewhere, and this computer is to stay offline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStatus:
    """A server and how it is doing. `reason` and `detail` are those of `McpTrouble`, for a failed one."""

    spec: ServerSpec
    state: ServerState
    tools: tuple[ToolSpec, ...] = ()
    reason: str = ""
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What a tool answered: already text, bounded. `ok` is False when the tool itself says that it failed."""

    ok: bool
    text: str


class McpTrouble(Exception):
    """A server that could not be used: an outage, not the tool's own failure.

    `reason` is one of `TROUBLES`, or `keyring`; `detail` is what the system or the server said, bounded.
    """

    def __init__(self, reason: str, detail: str = "") -> None:
        super().__init__(f"{reason}: {detail}" if detail else reason)
        self.reason = reason
        self.detail = detail
