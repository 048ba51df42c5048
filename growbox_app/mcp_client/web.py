"""A server behind a URL: the HTTP client that speaks to it, with bounded answers and nothing of this computer's own.

No proxy or password file of the environment is used, the user's headers go to the one address he gave, and an answer that does not
end is cut off. On the loop of `LoopThread`.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncGenerator, AsyncIterator, Mapping
from typing import TYPE_CHECKING

from typing_extensions import override

from growbox_app.version import version

if TYPE_CHECKING:
    import httpx2
    from mcp.client import Transport
    from mcp.client._transport import TransportStreams

ANSWER_BYTES_MAX = 32_000_000
CONNECT_S, READ_S = 10.0, 300.0


def transport(url: str, headers: Mapping[str, str]) -> Transport:
    """The address as the SDK's streams."""
    return _streams(url, headers)


@contextlib.asynccontextmanager
async def _streams(url: str, headers: Mapping[str, str]) -> AsyncGenerator[TransportStreams, None]:
    import httpx2
    from mcp.client.streamable_http import streamable_http_client

    client = httpx2.AsyncClient(
        headers={"User-Agent": f"GrowBox/{version()}", **headers},
        timeout=httpx2.Timeout(CONNECT_S, read=READ_S),
        transport=_bounded(httpx2.AsyncHTTPTransport(trust_env=False)),
        trust_env=False,
    )
    async with client, streamable_http_client(url, http_client=client) as streams:
        yield streams


def _bounded(inner: httpx2.AsyncBaseTransport) -> httpx2.AsyncBaseTransport:
    """Answers of at most `ANSWER_BYTES_MAX`."""
    import httpx2

    class Stream(httpx2.AsyncByteStream):
        def __init__(self, stream: httpx2.AsyncByteStream) -> None:
            self._stream = stream

        @override
        async def __aiter__(self) -> AsyncIterator[bytes]:
            room = ANSWER_BYTES_MAX
            async for chunk in self._stream:
                room -= len(chunk)
                if room < 0:
                    raise httpx2.ReadError("the answer is too long")
                yield chunk

        @override
        async def aclose(self) -> None:
            await self._stream.aclose()

    class Bounded(httpx2.AsyncBaseTransport):
        @override
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            response = await inner.handle_async_request(request)
            stream = response.stream
            assert isinstance(stream, httpx2.AsyncByteStream)
            response.stream = Stream(stream)
            return response

        @override
        async def aclose(self) -> None:
            await inner.aclose()

    return Bounded()
