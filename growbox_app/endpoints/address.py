"""The address of a server: read one way only, and known to be on this machine or not.

Pure. Nothing is looked up: only names and numbers that cannot mean another machine count as this one, so that Offline never
depends on what a name server says.
"""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import SplitResult, urlsplit

from growbox_app.api import Problem, ProblemCode, ProblemError

_ENDS = ("/chat/completions", "/completions", "/models")
_STRANGE = re.compile(r"[\s\\\x00-\x1f\x7f]")
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
URL_CHARACTERS_MAX = 2000


def clean_url(text: str) -> str:
    """The base URL that a user means: with its scheme, without the name of a call, `/v1` where there is no path.

    Raises:
        ProblemError: it cannot be used.
    """
    text = text.strip()
    if text and not _SCHEME.match(text):
        text = ("http://" if is_loopback(f"http://{text}") else "https://") + text
    parts = _split(text)
    if parts is None or parts.username is not None or parts.query or parts.fragment:
        raise ProblemError(
            Problem(code=ProblemCode.ENDPOINT_ADDRESS, fields={"address": text[:200]})
        )
    path = parts.path.rstrip("/")
    for end in _ENDS:
        path = path.removesuffix(end)
    return f"{parts.scheme.lower()}://{parts.netloc.lower()}{path or '/v1'}"


def _split(url: str) -> SplitResult | None:
    if not url or len(url) > URL_CHARACTERS_MAX or _STRANGE.search(url):
        return None
    try:
        parts = urlsplit(url)
        _ = parts.port
    except ValueError:
        return None
    return parts if parts.scheme.lower() in {"http", "https"} and parts.hostname else None


def host_of(url: str) -> str:
    """Host and port as a reader is told of them; empty when there is none."""
    parts = _split(url)
    return parts.netloc.rpartition("@")[2].lower() if parts is not None else ""


def origin_of(url: str) -> str:
    """Where a key may be sent: scheme, host and port."""
    parts = _split(url)
    if parts is None:
        return ""
    port = parts.port or (443 if parts.scheme == "https" else 80)
    return f"{parts.scheme.lower()}://{(parts.hostname or '').lower()}:{port}"


def is_encrypted(url: str) -> bool:
    """Whether nobody on the way can read along."""
    parts = _split(url)
    return parts is not None and parts.scheme.lower() == "https"


def is_loopback(url: str) -> bool:
    """Whether the address cannot mean anything but this machine."""
    parts = _split(url)
    host = (parts.hostname or "").rstrip(".") if parts is not None else ""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
