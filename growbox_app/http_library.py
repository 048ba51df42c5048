"""The HTTP library, imported with the first request and never before, and how its bodies are read to where one stops. Event-loop thread."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncIterator
from types import ModuleType
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import httpx


async def library() -> ModuleType:
    """httpx, imported where it does not hold the window up."""
    logging.getLogger("httpx").setLevel(logging.WARNING)  # a line for each request is nobody's need
    return await asyncio.to_thread(_imported)


def _imported() -> ModuleType:
    import httpx

    return httpx


@contextlib.asynccontextmanager
async def pieces_of(
    response: httpx.Response, *, packed: bool = False
) -> AsyncIterator[AsyncIterator[bytes]]:
    """The body as it comes; `packed`: as it was sent.

    Whoever stops before its end leaves generators of httpx behind that only what they wait for can end, and Qt's loop
    does not finish what is left behind: so the connection is closed under them.
    """
    httpx = await library()
    pieces = response.aiter_raw() if packed else response.aiter_bytes()
    try:
        yield pieces
    finally:
        await response.aclose()
        with contextlib.suppress(httpx.HTTPError, httpx.StreamError):
            async for _ in pieces:
                pass
