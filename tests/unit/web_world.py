"""web_fetch against a server on loopback: `site.example` is there, and loopback counts as public – for these clients alone."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Callable, Sequence

from growbox_app.executors.base import ExecutorResult
from growbox_app.executors.web_client import Limits, WebClient
from growbox_app.executors.web_fetch import WebFetch
from growbox_app.safety.network import address_problem
from tests.unit.executor_world import called, context_of

HERE = "127.0.0.1"
QUICK = Limits(connect_s=1.0, silence_s=0.6, total_s=2.5, wire_bytes=200_000, page_bytes=400_000)


class Names:
    """A resolver: each look-up of a name takes the next of its answers, the last one again and again."""

    def __init__(self, **answers: Sequence[Sequence[str]]) -> None:
        self.answers = {name.replace("_", "."): list(all_) for name, all_ in answers.items()}
        self.asked: list[str] = []

    async def __call__(self, host: str, port: int) -> Sequence[str]:
        self.asked.append(host)
        answers = self.answers.get(host, [()])
        return answers.pop(0) if len(answers) > 1 else answers[0]


def names(*addresses: str) -> Names:
    return Names(site_example=[addresses or (HERE,)], www_site_example=[addresses or (HERE,)])


def but_loopback(address: str) -> str | None:
    """The rule of the product, with one address more."""
    return None if address == HERE else address_problem(address)


def fetcher(
    resolve: Names | None = None,
    *,
    rule: Callable[[str], str | None] = but_loopback,
    limits: Limits = QUICK,
    trust: Callable[[], ssl.SSLContext] = ssl.create_default_context,
    allowed: Callable[[], bool] = lambda: True,
) -> WebFetch:
    client = WebClient(resolve=resolve or names(), problem_of=rule, trust=trust, limits=limits)
    return WebFetch(allowed=allowed, client=client)


def fetched(url: str, tool: WebFetch | None = None) -> ExecutorResult:
    return asyncio.run(called(tool or fetcher(), context_of(None), url=url))


def refused(url: str, tool: WebFetch | None = None) -> str:
    """The text of a fetch that must fail; nothing is learned from it."""
    result = fetched(url, tool)
    assert not result.ok, result
    assert result.summary
    assert not result.teaches
    return result.text
