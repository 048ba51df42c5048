"""The address of a page, read one way only: what is shown, judged and asked for is this one text. Pure.

A browser is forgiving, and a user who is shown one address while another is asked has consented to nothing. So what the model wrote
is taken apart once and put together anew: the host folded and in ASCII, the path escaped, no fragment.
"""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass
from urllib.parse import quote, urljoin, urlsplit

from growbox_app.safety.network import SCHEMES, host_problem
from growbox_app.safety.paths import strange_characters

URL_CHARACTERS_MAX = 2_000
PORTS = {"http": 80, "https": 443}
FREE_PORTS_MIN = 1_024
"""Below, other services listen than those that are asked for pages."""
_SCHEME = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://")
_KEPT = "/?:@!$&'()*+,;=~-._%"


@dataclass(frozen=True, slots=True, kw_only=True)
class WebAddress:
    """Where a page is. `host` is a name in ASCII or an IP address, `target` the path with its query."""

    scheme: str
    host: str
    port: int
    target: str

    @property
    def place(self) -> str:
        """Host and port, as the server is told of them."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return host if self.port == PORTS[self.scheme] else f"{host}:{self.port}"

    @property
    def url(self) -> str:
        """All of it."""
        return f"{self.scheme}://{self.place}{self.target}"

    def joined(self, location: str) -> str:
        """Where a redirect of this page leads, as text that nobody has judged yet."""
        return urljoin(self.url, location)

    def covers(self, other: WebAddress) -> bool:
        """Whether consent to this address reaches that one: the same host, with or without `www.`, and no less protected."""
        same = self.host.removeprefix("www.") == other.host.removeprefix("www.")
        return same and not (self.scheme == "https" and other.scheme == "http")


def read_address(text: str) -> WebAddress | None:
    """The address that a text means; None when it cannot be one. It is still to be judged by its host."""
    text = text.strip().replace(" ", "%20")
    if not _SCHEME.match(text):
        text = f"https://{text}"
    if len(text) > URL_CHARACTERS_MAX or strange_characters(text) or "\\" in text:
        return None
    try:
        parts = urlsplit(text)
        scheme, port, host = parts.scheme.lower(), parts.port, _ascii(parts.hostname or "")
    except ValueError:
        return None
    if scheme not in SCHEMES or not host or parts.username is not None:
        return None
    port = PORTS[scheme] if port is None else port
    if port not in PORTS.values() and port < FREE_PORTS_MIN:
        return None
    query = f"?{quote(parts.query, safe=_KEPT)}" if parts.query else ""
    target = (quote(parts.path, safe=_KEPT.replace("?", "")) or "/") + query
    return WebAddress(scheme=scheme, host=host, port=port, target=target)


def refused(address: WebAddress) -> bool:
    """Whether the address as it stands must not be asked, whatever the user allows."""
    return host_problem(address.url) is not None


def _ascii(host: str) -> str:
    """A host as it is looked up.

    Raises:
        ValueError: there is no such spelling.
    """
    folded = unicodedata.normalize("NFKC", host).casefold().replace("。", ".").rstrip(".")
    return folded if folded.isascii() else folded.encode("idna").decode("ascii")
