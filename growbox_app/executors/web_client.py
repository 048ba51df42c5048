"""Asks for one page: GET over http or https, at addresses of the public internet only. Every failure is a `CallFailed` with a sentence.

Invariants: a name is looked up once, every address it has is judged, and the connection goes to the very address that was judged,
so that a name server that answers otherwise a moment later changes nothing; name and certificate are still those of the host. Each
redirect is judged the same, and one to another host is not followed: consent to one host is none to the next. Nothing of this computer's
own goes along – no cookies, no passwords, no proxy or password file of the environment (a proxy would look the name up by itself,
behind our back). Time-outs everywhere; what comes is counted as it comes, packed and unpacked. One page is one task: to cancel it
is to close it. Event-loop thread. httpx is imported with the first page, never before.

Source: design 5.2 and 5.4.
"""

from __future__ import annotations

import asyncio
import contextlib
import http
import socket
import ssl
import threading
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from growbox_app.certificates import trusted
from growbox_app.executors.answers import CallFailed, Reason
from growbox_app.executors.web_address import WebAddress, read_address, refused
from growbox_app.http_library import library, pieces_of
from growbox_app.safety.network import address_problem
from growbox_app.version import version

if TYPE_CHECKING:
    import httpx

ADDRESSES_MAX = 3
"""So many addresses of one host are tried, one after another."""
REDIRECTS_MAX = 5
ACCEPT = "text/html,application/xhtml+xml,text/*;q=0.9,application/json;q=0.9,application/xml;q=0.8"
TEXT_KINDS = frozenset({
    "application/json", "application/ld+json", "application/xml", "application/xhtml+xml", "application/javascript",
    "application/x-javascript", "application/ecmascript", "application/yaml", "application/x-yaml", "application/toml",
    "application/x-sh", "application/sql", "application/x-ndjson", "application/rss+xml", "application/atom+xml",
})  # fmt: skip
PACKED = frozenset({"gzip", "x-gzip"})
_UNZIP_GZIP = 16 + zlib.MAX_WBITS

Resolve = Callable[[str, int], Awaitable[Sequence[str]]]
"""The addresses of a host, as text; none when it has none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long and how much."""

    connect_s: float = 6.0
    silence_s: float = 10.0
    total_s: float = 30.0
    wire_bytes: int = 4 << 20
    page_bytes: int = 8 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """A page as it came. `kind` is its declared type and `charset` its declared encoding; both may be empty."""

    address: WebAddress
    status: int
    kind: str
    charset: str
    body: bytes


class WebClient:
    """Fetches pages. Tests replace how names are looked up and which addresses count as public."""

    def __init__(
        self,
        *,
        resolve: Resolve | None = None,
        problem_of: Callable[[str], str | None] = address_problem,
        trust: Callable[[], ssl.SSLContext] = trusted,
        limits: Limits | None = None,
    ) -> None:
        self._resolve = resolve or resolved
        self._problem_of = problem_of
        self._trust = trust
        self._limits = limits or Limits()

    async def fetch(self, address: WebAddress, *, allowed: Callable[[], bool]) -> Fetched:
        """The page, from wherever redirects within what was consented to lead.

        Args:
            address: where it is; the user has consented to its host.
            allowed: whether the network may be used, asked before each connection.

        Raises:
            CallFailed: there is no page, or none that may be had.
        """
        try:
            async with asyncio.timeout(self._limits.total_s):
                return await self._followed(address, allowed)
        except TimeoutError as error:
            raise self._slow(address, self._limits.total_s) from error

    async def _followed(self, address: WebAddress, allowed: Callable[[], bool]) -> Fetched:
        httpx = await library()
        for _ in range(REDIRECTS_MAX + 1):
            if not allowed():
                raise switched_off()
            try:
                outcome = await self._asked(address)
            except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError) as error:
                raise self._known(error, address) from error
            if isinstance(outcome, Fetched):
                return outcome
            address = _next(address, outcome)
        text = f"it redirects more than {REDIRECTS_MAX} times; try another address"
        raise CallFailed(text, Reason.WEB_REDIRECTS, count=REDIRECTS_MAX)

    async def _asked(self, address: WebAddress) -> Fetched | str:
        """The page, or where a redirect leads. The host's addresses are tried in turn."""
        httpx = await library()
        verify = await asyncio.to_thread(self._trust)
        *others, last = await self._public(address)
        for ip in others:
            try:
                return await self._at(address, ip, verify)
            except (httpx.ConnectError, httpx.ConnectTimeout) as error:
                if is_tls(error):
                    raise
        return await self._at(address, last, verify)

    async def _at(self, address: WebAddress, ip: str, verify: ssl.SSLContext) -> Fetched | str:
        async with self._answer(address, ip, verify) as response:
            return await self._taken(response, address)

    async def _public(self, address: WebAddress) -> Sequence[str]:
        """The host's addresses, each of the public internet: one that is not speaks against them all."""
        try:
            async with asyncio.timeout(self._limits.connect_s):
                found = tuple(dict.fromkeys(await self._resolve(address.host, address.port)))
        except TimeoutError as error:
            raise self._slow(address, self._limits.connect_s) from error
        if not found:
            text = f"there is no host {address.host}; check the name"
            raise CallFailed(text, Reason.WEB_NO_HOST, host=address.host)
        if any(self._problem_of(ip) is not None for ip in found):
            raise _local(address)
        return found[:ADDRESSES_MAX]

    @contextlib.asynccontextmanager
    async def _answer(
        self, address: WebAddress, ip: str, verify: ssl.SSLContext
    ) -> AsyncIterator[httpx.Response]:
        """A connection to the address that was judged, with the name of the host in the request and in its certificate."""
        httpx = await library()
        limits = self._limits
        timeout = httpx.Timeout(limits.silence_s, connect=limits.connect_s)
        headers = {
            "Host": address.place,
            "User-Agent": f"GrowBox/{version()}",
            "Accept": ACCEPT,
            "Accept-Encoding": "gzip",
            "Connection": "close",
        }
        url = httpx.URL(
            scheme=address.scheme, host=ip, port=address.port, raw_path=address.target.encode()
        )
        wishes = {"timeout": timeout.as_dict(), "sni_hostname": address.host}
        request = httpx.Request("GET", url, headers=headers, extensions=wishes)
        # The bare transport: a client would keep cookies, and read by itself where a redirect leads.
        async with httpx.AsyncHTTPTransport(verify=verify, trust_env=False) as transport:
            response = await transport.handle_async_request(request)
            try:
                yield response
            finally:
                await response.aclose()

    async def _taken(self, response: httpx.Response, address: WebAddress) -> Fetched | str:
        status = response.status_code
        location = response.headers.get("location", "")
        if 300 <= status < 400 and location:
            return address.joined(location)
        if not 200 <= status < 300:
            raise _refusal(status, address)
        kind, charset = _declared(response.headers.get("content-type", ""))
        packing = response.headers.get("content-encoding", "identity").strip().lower()
        readable = not kind or kind.startswith("text/") or kind in TEXT_KINDS
        if not readable or packing not in PACKED | {"identity", ""}:
            raise CallFailed(
                f"this is no text but {kind or packing}; it cannot be read", Reason.WEB_TYPE
            )
        body = await self._body(response, packed=packing in PACKED)
        return Fetched(address=address, status=status, kind=kind, charset=charset, body=body)

    async def _body(self, response: httpx.Response, *, packed: bool) -> bytes:
        """All of the body, or a failure: what is counted first is never held."""
        declared = response.headers.get("content-length", "")
        if declared.isdecimal() and int(declared[:18]) > self._limits.wire_bytes:
            raise _too_large(self._limits.wire_bytes)
        unzip = zlib.decompressobj(_UNZIP_GZIP) if packed else None
        body, came = bytearray(), 0
        async with pieces_of(response, packed=True) as pieces:
            async for piece in pieces:
                came += len(piece)
                if came > self._limits.wire_bytes:
                    raise _too_large(self._limits.wire_bytes)
                if unzip is not None:
                    piece = _unpacked(unzip, piece, self._limits.page_bytes + 1 - len(body))
                body += piece
                if len(body) > self._limits.page_bytes:
                    raise _too_large(self._limits.page_bytes)
        return bytes(body)

    def _known(self, error: Exception, address: WebAddress) -> CallFailed:
        """The failure behind an error of the connection."""
        import httpx

        host = address.host
        if is_tls(error):
            text = f"no secure connection to {host}: its certificate or encryption is not accepted"
            return CallFailed(text, Reason.WEB_CERTIFICATE, host=host)
        if isinstance(error, httpx.ConnectTimeout):
            return self._slow(address, self._limits.connect_s)
        if isinstance(error, httpx.TimeoutException):
            return self._slow(address, self._limits.silence_s)
        if isinstance(error, httpx.ConnectError):
            return CallFailed(
                f"{host} cannot be reached; try later", Reason.WEB_UNREACHABLE, host=host
            )
        return CallFailed(f"{host} broke the connection off", Reason.WEB_BROKEN, host=host)

    def _slow(self, address: WebAddress, seconds: float) -> CallFailed:
        text = f"{address.host} took longer than {seconds:g} s; try later, or another page"
        return CallFailed(text, Reason.WEB_SLOW, host=address.host, seconds=f"{seconds:g}")


def switched_off() -> CallFailed:
    """The user wants no pages to be fetched."""
    text = "the user has switched web pages off; go on without, or say that you cannot"
    return CallFailed(text, Reason.WEB_OFF)


async def resolved(host: str, port: int) -> Sequence[str]:
    """What the system's resolver says. In a daemon thread: one that hangs may not keep the application from ending."""
    loop = asyncio.get_running_loop()
    found: asyncio.Future[Sequence[str]] = loop.create_future()

    def tell(addresses: Sequence[str]) -> None:
        if not found.done():
            found.set_result(addresses)

    def run() -> None:
        addresses: Sequence[str] = ()
        try:
            addresses = _looked_up(host, port)
        finally:
            with contextlib.suppress(RuntimeError):  # the loop is closed: the application ends
                loop.call_soon_threadsafe(tell, addresses)

    threading.Thread(target=run, name="resolver", daemon=True).start()
    return await found


def _looked_up(host: str, port: int) -> Sequence[str]:
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return ()
    return [str(where[0]) for *_, where in found]


def is_tls(error: BaseException) -> bool:
    """Whether an error comes from encryption or a certificate."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _next(address: WebAddress, location: str) -> WebAddress:
    """Where a redirect leads, judged anew."""
    following = read_address(location)
    if following is None:
        text = "it redirects to an address that cannot be fetched"
        raise CallFailed(text, Reason.WEB_ADDRESS)
    if refused(following):
        raise _local(following)
    if not address.covers(following):
        text = f"it redirects to {following.url}; call web_fetch with this url if you want that"
        raise CallFailed(text, Reason.WEB_ELSEWHERE, host=following.host)
    return following


def _local(address: WebAddress) -> CallFailed:
    text = f"{address.host} leads to this computer or its local network, which is not allowed"
    return CallFailed(text, Reason.WEB_LOCAL, host=address.host)


def _refusal(status: int, address: WebAddress) -> CallFailed:
    try:
        phrase = f" ({http.HTTPStatus(status).phrase})"
    except ValueError:
        phrase = ""
    advice = "check the address" if status in (404, 410) else "try another page"
    return CallFailed(
        f"{address.host} answers {status}{phrase}; {advice}",
        Reason.WEB_STATUS,
        host=address.host,
        status=status,
    )


def _too_large(most: int) -> CallFailed:
    size = f"{most / (1 << 20):g}"
    text = f"the page is larger than {size} MB; look for a smaller one"
    return CallFailed(text, Reason.WEB_LARGE, size=size)


def _declared(content_type: str) -> tuple[str, str]:
    """Type and charset of a header, small letters."""
    kind, _, parameters = content_type.partition(";")
    charset = ""
    for parameter in parameters.split(";"):
        name, _, value = parameter.partition("=")
        if name.strip().lower() == "charset":
            charset = value.strip().strip("\"'").lower()
    return kind.strip().lower(), charset


def _unpacked(unzip: zlib._Decompress, piece: bytes, most: int) -> bytes:
    """At most so much of a packed piece: a small one may hold gigabytes."""
    try:
        return unzip.decompress(piece, most)
    except zlib.error as error:
        raise CallFailed("the page is packed wrongly; try another", Reason.WEB_TYPE) from error
