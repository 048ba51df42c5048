"""The executor `web_fetch`: one page of the web as text. Off until the user switches it on, and whenever Offline is on.

What the page says is a stranger's: it is fenced as data, and nothing in it is ever parsed as a call, a grant or a rule. The user is
asked by the host, because the address alone may tell somebody something. No address of this computer or its network is ever asked,
see `web_client.py`. Source: design 5.2 and 5.4.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from dataclasses import replace

import msgspec

from growbox_app.executors.answers import CallFailed, Reason, counted, summary
from growbox_app.executors.base import (
    FULL_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    Plan,
    Risk,
)
from growbox_app.executors.child_process import ChildFailed, ChildTooSlow, frames
from growbox_app.executors.web_address import read_address
from growbox_app.executors.web_client import Fetched, WebClient, switched_off
from growbox_app.executors.web_text import Readable, WebPage, readable
from growbox_app.mcp_client.output import cleaned, fenced, one_line
from growbox_app.safety.network import host_problem
from growbox_app.tasks import TaskGroup

READING_S = 20.0
TITLE_CHARACTERS_MAX = 200


class WebFetch:
    """Implements `Executor`."""

    name = "web_fetch"
    description = "Reads a page of the web as text."
    parameters: Mapping[str, Parameter] = {
        "url": Parameter(description="address of the page, http or https")
    }
    risk = Risk.IRREVERSIBLE  # what a host was told cannot be taken back
    window_min = FULL_WINDOW_MIN

    def __init__(self, *, allowed: Callable[[], bool], client: WebClient | None = None) -> None:
        """Takes whether the user lets pages be fetched now (asked at each turn and each connection)."""
        self._allowed = allowed
        self._client = client or WebClient()
        self._tasks = TaskGroup()

    @property
    def is_offered(self) -> bool:
        """Whether the model is told of it."""
        return self._allowed()

    async def plan(
        self,
        arguments: Mapping[str, str],
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> Plan | ExecutorResult:
        """Which host. An address that must not be asked is planned as it is written: the policy says why not."""
        written = arguments.get("url", "").strip()
        address = read_address(written)
        if address is not None:
            return Plan(hosts=(address.url,), detail={"url": address.url, "whole": address.url})
        if written and host_problem(written) is not None:
            return Plan(hosts=(written,), detail={"whole": written})
        text = "url must be an http or https address; copy it as it is written"
        return CallFailed(text, Reason.WEB_ADDRESS).result()

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Fetches and reads. A failure teaches nothing: it is the network's, or the page's."""
        try:
            page = await self._fetched(plan.detail.get("url", ""), context.cancelled)
            return await asyncio.to_thread(_read, page, context.cancelled.is_set)
        except CallFailed as failure:
            return replace(failure.result(), teaches=False)

    async def _fetched(self, url: str, cancelled: asyncio.Event) -> Fetched:
        """The page, unless the user stops first."""
        work = self._tasks.start("web page", self._answer(url))
        stop = self._tasks.start("web stop", cancelled.wait())
        try:
            await asyncio.wait({work, stop}, return_when=asyncio.FIRST_COMPLETED)
            if cancelled.is_set() or not work.done():
                raise _stopped()
            outcome: Fetched | CallFailed = work.result()
        finally:
            work.cancel()
            stop.cancel()
        if isinstance(outcome, CallFailed):
            raise outcome
        return outcome

    async def _answer(self, url: str) -> Fetched | CallFailed:
        """Trouble is returned: a task that raises is logged as a bug."""
        address = read_address(url)
        if address is None or not self._allowed():
            return switched_off()
        try:
            return await self._client.fetch(address, allowed=self._allowed)
        except CallFailed as failure:
            return failure


def _read(page: Fetched, stopped: Callable[[], bool]) -> ExecutorResult:
    """A page as a result. The parser is native and the page a stranger's, so it is read in a child process."""
    found = _in_child(page, stopped)
    if not found.is_text:
        raise CallFailed("this is no text; it cannot be read", Reason.WEB_TYPE)
    text = cleaned(found.text)
    if not text.strip():
        words = "the page has no text without running its scripts; try another page"
        raise CallFailed(words, Reason.WEB_EMPTY)
    host, lines = page.address.host, text.count("\n") + 1
    title = one_line(found.title, TITLE_CHARACTERS_MAX)
    head = "\n".join(line for line in (title, page.address.url) if line)
    return ExecutorResult(
        ok=True,
        text=fenced(host, f"{head}\n\n{text}"),
        summary=summary("web_fetch", host=host, count=lines),
        outcome=f"{host} answered, {counted(lines, 'line')}",  # nothing of a stranger's words
    )


def _in_child(page: Fetched, stopped: Callable[[], bool]) -> Readable:
    wanted = WebPage(body=page.body, kind=page.kind, charset=page.charset)
    replies = frames(
        readable,
        msgspec.msgpack.encode(wanted),
        seconds=READING_S,
        stopped=stopped,
        clock=time.monotonic,
    )
    try:
        reply = next(replies, b"")
    except (ChildTooSlow, ChildFailed) as error:
        raise CallFailed("the page could not be read; try another", Reason.UNREADABLE) from error
    finally:
        replies.close()
    if not reply:
        raise _stopped()
    return msgspec.msgpack.decode(reply, type=Readable)


def _stopped() -> CallFailed:
    return CallFailed("stopped by the user", Reason.STOPPED)
