"""Speaks to one server: a POST that streams, a GET that lists. Every failure is a problem with a sentence.

Invariants: certificates are checked; no redirect is followed, so that a key goes to the host it was typed for and to no other;
a server on this machine is never asked through a proxy, and without its own leave nothing else is while Offline is on (who calls
has checked that). Time-outs everywhere; what comes back is bounded. One exchange is one task: to cancel it is to close it.
Event-loop thread. httpx is imported when the first server is asked, never before.
"""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from growbox_app.api import ProblemCode, ProblemError
from growbox_app.audit_log import redacted
from growbox_app.certificates import trusted
from growbox_app.endpoints.address import host_of, is_loopback
from growbox_app.endpoints.events import EventReader, StreamError
from growbox_app.endpoints.trouble import (
    ContextTooLong,
    FieldRefused,
    NothingCame,
    context_error,
    problem,
    refusal,
    words_in,
    words_of,
)
from growbox_app.http_library import library, pieces_of
from growbox_app.secrets import HIDDEN
from growbox_app.text import tr
from growbox_app.version import version

if TYPE_CHECKING:
    import httpx

CONNECT_S = 10.0
SILENCE_S = 90.0
"""Source: seed item G43."""
LIST_S = 15.0
WRITE_S = 30.0
ERROR_BYTES_MAX = 64 << 10
ANSWER_BYTES_MAX = 64 << 20
WHOLE_BYTES_MAX = 4 << 20
"""An answer of a server that does not stream, and a list of models."""
TAIL_S = 5.0
"""After the end of the text, how long to wait for its figures."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """Who is asked. `key` is not shown by `repr`, so that no log line has it."""

    base_url: str
    model: str
    key: str = field(default="", repr=False)
    silence_s: float = SILENCE_S

    def clean(self, text: str) -> str:
        """What the server says, without the key and whatever else looks like one."""
        return redacted(text.replace(self.key, HIDDEN) if self.key else text)

    @property
    def fields(self) -> dict[str, str]:
        """What sentences about it name."""
        return {"host": host_of(self.base_url), "model": self.model}

    @property
    def headers(self) -> dict[str, str]:
        """Who asks, and with which key."""
        headers = {
            "User-Agent": f"GrowBox/{version()}",
            "Accept-Encoding": "identity",
            "Accept": "text/event-stream, application/json",
        }
        return headers | ({"Authorization": f"Bearer {self.key}"} if self.key else {})


async def chunks(
    server: Server, body: dict[str, Any], ended: Callable[[], bool]
) -> AsyncGenerator[dict[str, Any], None]:
    """The JSON objects of a streamed answer, or the one of an answer that was not streamed.

    Args:
        server: who is asked.
        body: the request.
        ended: whether the text is complete, so that a connection that breaks now costs nothing.

    Raises:
        ProblemError, ContextTooLong, FieldRefused, NothingCame: it did not answer, or broke off.
    """
    httpx = await library()
    try:
        async with _client(server, read_s=server.silence_s) as client:
            url = f"{server.base_url}/chat/completions"
            async with client.stream("POST", url, json=body) as response:
                await _accept(response, server)
                if "json" in response.headers.get("content-type", "").partition(";")[0]:
                    yield _checked(await _whole(response, server), server)
                    return
                async with contextlib.aclosing(_events(response, server, ended)) as events:
                    async for event in events:
                        yield _checked(event, server)
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError) as error:
        if ended():
            return
        raise _known(error, server) from error


async def models(server: Server) -> list[dict[str, Any]]:
    """What `/models` lists.

    Raises:
        ProblemError: it did not answer.
    """
    httpx = await library()
    try:
        async with (
            asyncio.timeout(LIST_S),
            _client(server, read_s=LIST_S) as client,
            client.stream("GET", f"{server.base_url}/models") as response,
        ):
            await _accept(response, server)
            value = await _whole(response, server)
    except (ContextTooLong, FieldRefused) as error:
        fields = server.fields | {"reason": str(error)}
        raise problem(ProblemCode.ENDPOINT_ERROR, fields, str(error)) from error
    except TimeoutError as error:
        fields = server.fields | {"seconds": f"{LIST_S:g}"}
        raise problem(ProblemCode.ENDPOINT_TIMEOUT, fields) from error
    except (httpx.HTTPError, httpx.InvalidURL, httpx.StreamError, OSError, UnicodeError) as error:
        raise _known(error, server) from error
    listed = value.get("data", value.get("models"))
    if not isinstance(listed, list):
        raise protocol_problem(server, "no_list")
    return [item for item in listed if isinstance(item, dict)]


def protocol_problem(server: Server, reason: str) -> ProblemError:
    """The server does not speak the protocol; `reason` is a key of `endpoint.reason`."""
    return problem(
        ProblemCode.ENDPOINT_PROTOCOL,
        server.fields | {"reason": tr(f"endpoint.reason.{reason}")},
        reason,
    )


@contextlib.asynccontextmanager
async def _client(server: Server, *, read_s: float) -> AsyncIterator[httpx.AsyncClient]:
    httpx = await library()
    here = is_loopback(server.base_url)
    verify = await asyncio.to_thread(trusted)
    timeout = httpx.Timeout(connect=CONNECT_S, read=read_s, write=WRITE_S, pool=CONNECT_S)
    try:
        opened = httpx.AsyncClient(
            headers=server.headers,
            timeout=timeout,
            verify=verify,
            follow_redirects=False,
            trust_env=not here,
        )
    except (ImportError, ValueError) as error:  # a proxy of the environment that httpx cannot use
        raise _unreachable(server, "proxy", _reason(error)) from error
    async with opened as client:
        yield client


async def _accept(response: httpx.Response, server: Server) -> None:
    """Raises unless the answer begins."""
    status = response.status_code
    if 300 <= status < 400:
        target = host_of(response.headers.get("location", "")) or server.fields["host"]
        raise problem(ProblemCode.ENDPOINT_REDIRECT, server.fields | {"target": target})
    if status != 200:
        body = await _bounded(response, ERROR_BYTES_MAX)
        said = words_of(body.decode("utf-8", "replace"))
        raise refusal(status, (server.clean(said[0]), said[1]), server.fields)
    kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
    if kind in {"text/html", "application/xhtml+xml"} or kind.startswith(("image/", "video/")):
        raise protocol_problem(server, "web_page")


async def _bounded(response: httpx.Response, most: int) -> bytes:
    """At most so much of a body; what comes too late or too much is left."""
    body = b""
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(CONNECT_S), pieces_of(response) as pieces:
            async for piece in pieces:
                body += piece
                if len(body) > most:
                    break
    return body[:most]


async def _whole(response: httpx.Response, server: Server) -> dict[str, Any]:
    import json

    body = bytearray()
    async with pieces_of(response) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > WHOLE_BYTES_MAX:
                raise protocol_problem(server, "long_line")
    try:
        value = json.loads(body.decode("utf-8", "replace"))
    except ValueError:
        raise protocol_problem(server, "not_json") from None
    if isinstance(value, list):
        value = {"data": value}
    if not isinstance(value, dict):
        raise protocol_problem(server, "not_json")
    return value


async def _events(
    response: httpx.Response, server: Server, ended: Callable[[], bool]
) -> AsyncGenerator[dict[str, Any], None]:
    reader = EventReader()
    total = 0
    came = False
    try:
        async with pieces_of(response) as pieces:
            while not reader.done and (piece := await _next(pieces, ended)):
                total += len(piece)
                if total > ANSWER_BYTES_MAX:
                    raise protocol_problem(server, "long_line")
                for event in reader.feed(piece):
                    came = True
                    yield event
        for event in reader.finish():
            yield event
    except StreamError as error:
        raise protocol_problem(server, error.reason) from error
    if not reader.done and not ended():
        raise problem(ProblemCode.ENDPOINT_BROKEN, server.fields) if came else NothingCame


async def _next(pieces: AsyncIterator[bytes], ended: Callable[[], bool]) -> bytes:
    """The next piece; empty at the end, and when nothing follows the end of the text."""
    try:
        async with asyncio.timeout(TAIL_S if ended() else None):
            return await anext(pieces)
    except (StopAsyncIteration, TimeoutError):
        return b""


def _checked(event: dict[str, Any], server: Server) -> dict[str, Any]:
    """Raises the error that an event carries."""
    if not event.get("error") or event.get("choices"):
        return event
    words, error = words_in(event)
    words = server.clean(words)
    too_long = context_error(words, error)
    if too_long is not None:
        raise too_long
    raise problem(ProblemCode.ENDPOINT_ERROR, server.fields | {"reason": words}, words)


def _known(error: BaseException, server: Server) -> ProblemError:
    """The problem behind an error of the connection."""
    import httpx

    if isinstance(error, httpx.ConnectTimeout | httpx.PoolTimeout):
        return _unreachable(server, "time_out")
    if isinstance(error, httpx.TimeoutException):
        fields = server.fields | {"seconds": f"{server.silence_s:g}"}
        return problem(ProblemCode.ENDPOINT_TIMEOUT, fields, str(error))
    if isinstance(error, httpx.ConnectError | httpx.ProxyError | ssl.SSLError):
        if _is_tls(error):
            fields = server.fields | {"reason": _reason(error)}
            return problem(ProblemCode.ENDPOINT_TLS, fields, _reason(error))
        proxy = isinstance(error, httpx.ProxyError)
        return _unreachable(server, "proxy" if proxy else "refused", _reason(error))
    if isinstance(error, httpx.InvalidURL | httpx.UnsupportedProtocol | UnicodeError):
        return problem(ProblemCode.ENDPOINT_ADDRESS, {"address": server.base_url}, _reason(error))
    if isinstance(error, httpx.DecodingError):
        return protocol_problem(server, "not_json")
    return problem(ProblemCode.ENDPOINT_BROKEN, server.fields, _reason(error))


def _unreachable(server: Server, reason: str, detail: str = "") -> ProblemError:
    """`reason` is a key of `endpoint.reason`."""
    return problem(
        ProblemCode.ENDPOINT_UNREACHABLE,
        server.fields | {"reason": tr(f"endpoint.reason.{reason}")},
        detail,
    )


def _is_tls(error: BaseException) -> bool:
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ssl.SSLError):
            return True
        cause = cause.__cause__ or cause.__context__
    return False


def _reason(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:300]
