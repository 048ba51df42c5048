"""Keys and tokens: kept in the keyring off the loop, clear words when there is none, and never said."""

from __future__ import annotations

import asyncio
import logging
import threading
import time
from collections.abc import Awaitable, Callable

import pytest
from keyring.errors import KeyringError, KeyringLocked

from growbox_app.audit_log import redacted
from growbox_app.secrets import (
    HIDDEN,
    SERVICE,
    Backend,
    RedactSecrets,
    Secrets,
    SecretsTrouble,
)
from tests.fakes.keyring_backend import BrokenKeyring, MemoryKeyring

SECRET = "correct-horse-battery"


def on(find: Callable[[], Backend | None], body: Callable[[Secrets], Awaitable[None]]) -> None:
    asyncio.run(_run(Secrets(find, wait_s=5.0), body))


async def _run(secrets: Secrets, body: Callable[[Secrets], Awaitable[None]]) -> None:
    await body(secrets)


def test_a_secret_is_kept_in_the_keyring_and_nowhere_else() -> None:
    keyring = MemoryKeyring()

    async def body(secrets: Secrets) -> None:
        assert await secrets.available()
        await secrets.set("a", SECRET)
        assert keyring.secrets == {(SERVICE, "a"): SECRET}
        assert await secrets.get("a") == SECRET
        assert await secrets.get("b") is None
        await secrets.delete("a")
        await secrets.delete("a")
        assert await secrets.get("a") is None
        assert threading.get_ident() not in keyring.threads

    on(lambda: keyring, body)


def test_without_a_keyring_a_secret_lives_until_the_end_of_the_run() -> None:
    async def body(secrets: Secrets) -> None:
        assert not await secrets.available()
        assert await secrets.get("a") is None
        with pytest.raises(SecretsTrouble) as caught:
            await secrets.set("a", SECRET)
        assert caught.value.reason == "none"
        await secrets.set("a", SECRET, only_now=True)
        assert await secrets.get("a") == SECRET
        await secrets.delete("a")
        assert await secrets.get("a") is None

    on(lambda: None, body)


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        (KeyringLocked(f"{SECRET} is wrong"), "locked"),
        (KeyringError("x"), "failed"),
        (OSError("no bus"), "failed"),
    ],
)
def test_trouble_has_a_reason_and_not_the_keyrings_words(error: Exception, reason: str) -> None:
    async def body(secrets: Secrets) -> None:
        for work in (secrets.get("a"), secrets.set("a", SECRET), secrets.delete("a")):
            with pytest.raises(SecretsTrouble) as caught:
                await work
            assert caught.value.reason == reason
            assert SECRET not in str(caught.value)

    on(lambda: BrokenKeyring(error), body)


def test_a_keyring_that_hangs_is_given_up() -> None:
    release = threading.Event()

    def find() -> Backend | None:
        release.wait()
        return None

    async def main() -> None:
        secrets = Secrets(find, wait_s=0.05)
        with pytest.raises(SecretsTrouble) as caught:
            await secrets.get("a")
        assert caught.value.reason == "slow"

    asyncio.run(main())
    release.set()


def test_known_values_are_hidden() -> None:
    async def body(secrets: Secrets) -> None:
        await secrets.set("a", SECRET, only_now=True)
        await secrets.set("short", "abc", only_now=True)
        assert secrets.redact(f"x {SECRET} abc") == f"x {HIDDEN} abc"

    on(lambda: None, body)


def test_the_log_says_no_secret() -> None:
    record = logging.LogRecord(
        "x", logging.INFO, "", 0, "sent %s", ("Bearer abcdefghijklmno",), None
    )
    assert RedactSecrets().filter(record)
    assert "abcdefghijklmno" not in record.getMessage()


@pytest.mark.parametrize("part", ["a.", "--a", "a-", "pass.", "token", "a://", "bearer "])
def test_no_line_holds_the_log_up(part: str) -> None:
    started = time.perf_counter()
    assert redacted(part * 4000) is not None
    assert time.perf_counter() - started < 20  # it was minutes
