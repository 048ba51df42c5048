"""What the user writes about a server, as values; and a server's trouble as sentences. Pure but for the translations."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping

from growbox_app.mcp_client.values import ServerSpec, ServerState, ServerStatus
from growbox_app.text import tr

_WITH_DETAIL = frozenset({"cannot_start", "ended", "unreachable", "slow"})


def spec_of(
    name: str, place: str, secrets: str, *, before: ServerSpec | None = None
) -> tuple[ServerSpec, Mapping[str, str]]:
    """A server and the values of its secrets, from what was typed.

    Args:
        name: its name.
        place: a command line, or a URL.
        secrets: NAME=value or NAME, one a line.
        before: the server that is being changed; what was said of its tools stays.
    """
    place = place.strip()
    is_url = "://" in place.split(" ", 1)[0]
    words = () if is_url else _words(place)
    lines = [line.strip() for line in secrets.split("\n") if line.strip()]
    pairs = [line.partition("=") for line in lines]
    values = {key.strip(): value.strip() for key, _, value in pairs}
    spec = ServerSpec(
        name=name.strip(),
        command=words[0] if words else "",
        args=words[1:],
        url=place if is_url else "",
        secret_names=tuple(values),
        safe_tools=before.safe_tools if before is not None else frozenset(),
    )
    return spec, {key: value for key, value in values.items() if value}


def _words(line: str) -> tuple[str, ...]:
    """A quote that is not closed is a character like others; a backslash is one on Windows."""
    windows = sys.platform == "win32"
    try:
        words = shlex.split(line, posix=not windows)
    except ValueError:
        words = line.split()
    return tuple(word.strip('"') for word in words) if windows else tuple(words)


def place_of(spec: ServerSpec) -> str:
    """The command line or the URL, so that `spec_of` reads it back."""
    return spec.url or shlex.join([spec.command, *spec.args])


def trouble_words(server: str, reason: str, detail: str) -> str:
    """What is wrong with a server, and what to do."""
    if reason == "keyring":
        return tr(f"secrets.trouble.{detail}")
    words = tr(f"mcp.trouble.{reason}", server=server, detail=detail)
    return f"{words} ({detail})" if detail and reason in _WITH_DETAIL else words


def status_words(status: ServerStatus) -> str:
    """How a server is doing, in a few words."""
    state = tr(f"mcp.state.{status.state}")
    if status.state is ServerState.READY or status.tools:
        return tr("tools.count", state=state, count=len(status.tools))
    return state
