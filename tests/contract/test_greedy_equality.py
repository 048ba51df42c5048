"""Greedy answers do not depend on how the prompt came into the KV cache: decoded now, reused, or restored from a file.

Twenty short prompts, three ways each, with the light model. "Cold" is after another conversation, so that nothing but the
template's first tokens is reused. Restored equals reused, always: it is the same cache. Cold and reused may part where two
tokens are all but equal, because llama.cpp rounds by the size of the batch, and a reused prefix was decoded in others: that
alone is excused. A divergence is reported with its position and the logits' gap there.
"""

from __future__ import annotations

import asyncio
import multiprocessing
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from growbox_app.engine import entry
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient
from tests.real_models import LIGHT, real_load

DATE = "2026-11-30"
ANSWER_TOKENS = 14
PARTS = 4
NOISE = 0.5
"""Logits of one prompt of 93 tokens, split at seven places: up to 0.40 apart from those of an undivided one."""
HEAD_TOKENS = 4
"""What the template puts before the first word of any conversation."""
CPU_FILE = LIGHT.parent / ".cpu_variant.json"
SYSTEM = (
    "You are a careful teacher. Answer in three long sentences, in the language of the question, "
    "and explain why. When you do not know something, say so. Prefer plain words. "
) * 2
PROMPTS = (
    "What is the capital of France?",
    "Name three prime numbers above ten.",
    "Why is the sky blue?",
    "Which is heavier, a kilogram of iron or a kilogram of feathers?",
    "Give one reason to keep a diary.",
    "What does HTTP status 404 mean?",
    "Say good night to a cat.",
    "How many days has a leap year?",
    "中国的首都是哪里？",
    "用一句话解释什么是数据库。",
    "为什么海水是咸的？",
    "请说出三种水果。",
    "一年有多少个季节？",
    "怎样泡一杯绿茶？",
    "def fibonacci(n):\n    # explain what is missing",
    "Write a SQL query that counts the rows of table `visits`.",
    "What does `git stash pop` do?",
    'for (int i = 0; i < 3; i++) printf("%d", i); // what is printed?',
    "import re; re.findall(r'\\d+', 'a1b22')  # result?",
    "λ x. x → ∀ 👨‍👩‍👧 what are these symbols?",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """Sampled ids, and the tokens that were reused for the prompt."""

    ids: tuple[int, ...]
    reused: int
    prompt: int


def conversation(*parts: str, system: str = SYSTEM) -> tuple[p.Message, ...]:
    return (p.Message(role="system", parts=(system,)), p.Message(role="user", parts=parts))


def chat(request_id: int, messages: tuple[p.Message, ...], **changes: object) -> p.Chat:
    fields: dict[str, object] = {
        "id": request_id,
        "messages": messages,
        "date": DATE,
        "max_tokens": ANSWER_TOKENS,
        "temperature": 0.0,
        "top_p": 0.9,
        "seed": 1,
    }
    return p.Chat(**(fields | changes))  # type: ignore[arg-type]


async def answer(client: EngineClient, prompt: str) -> Answer:
    ids: list[int] = []
    done: p.DoneChat | None = None
    async for frame in client.stream(chat(client.next_id(), conversation(prompt))):
        if isinstance(frame, p.Delta):
            ids += frame.ids
        elif isinstance(frame, p.DoneChat):
            done = frame
    assert done is not None
    return Answer(ids=tuple(ids), reused=done.reused_tokens, prompt=done.prompt_tokens)


async def go_elsewhere(client: EngineClient) -> None:
    """Another conversation: nothing of the last one is left in the cache."""
    request = chat(client.next_id(), conversation("x", system="Elsewhere."), max_tokens=1)
    await client.request(request, p.DoneChat)


async def cancel_a_longer_one(client: EngineClient, prompt: str) -> None:
    """The same beginning, more words, stopped while they are read."""
    longer = conversation(prompt, " and besides, what about salad? " * 20)
    request = chat(client.next_id(), longer)
    async for frame in client.stream(request):
        if isinstance(frame, p.PrefillProgress):
            client.cancel(request.id)


async def three_ways(client: EngineClient, prompt: str, image: Path) -> dict[str, Answer]:
    await go_elsewhere(client)
    cold = await answer(client, prompt)
    await cancel_a_longer_one(client, prompt)
    reused = await answer(client, prompt)
    await client.request(p.SaveKv(id=client.next_id(), path=str(image)), p.DoneKv)
    await go_elsewhere(client)
    await client.request(p.RestoreKv(id=client.next_id(), path=str(image)), p.DoneKv)
    restored = await answer(client, prompt)
    assert cold.reused <= HEAD_TOKENS
    assert reused.reused > HEAD_TOKENS
    assert restored.reused == restored.prompt - 1
    return {"cold": cold, "reused": reused, "restored": restored}


def divergence(prompt: str, cold: tuple[int, ...], other: tuple[int, ...]) -> tuple[str, float]:
    """Where two answers part first, in words, and how far the two tokens are apart there in cold logits."""
    pairs = list(zip(cold, other, strict=False))
    at = next((at for at, (a, b) in enumerate(pairs) if a != b), len(pairs))
    if at == len(pairs):
        return f"{prompt!r}: one ends at token {at}, the other goes on", float("inf")
    gap = in_own_process(prompt, cold[:at], pairs[at])
    return f"{prompt!r}: parts from cold at token {at}, logit gap {gap:.4f}", gap


def in_own_process(prompt: str, prefix: tuple[int, ...], rivals: tuple[int, int]) -> float:
    """See `logit_gap`; llama.cpp never enters the process that runs the tests."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return float(pool.apply(logit_gap, (prompt, prefix, rivals)))


def logit_gap(prompt: str, prefix: tuple[int, ...], rivals: tuple[int, int]) -> float:
    """Cold logits after `prefix`: the first rival's minus the second's."""
    from growbox_app.engine.host import LlamaBackend

    backend = LlamaBackend()
    backend.load(real_load(1, CPU_FILE), lambda _frame: None)
    request = chat(2, conversation(prompt), prefix=prefix, max_tokens=0)
    backend.work(request, lambda _frame: None, lambda: None)
    logits = backend._foreground.logits()
    return float(logits[rivals[0]]) - float(logits[rivals[1]])


@pytest.mark.model
@pytest.mark.slow
class TestGreedyEquality:
    """With the real light model."""

    @pytest.mark.parametrize("part", range(PARTS))
    def test_cold_reused_and_restored_answers_are_the_same(
        self, tmp_path: Path, record_property: Callable[[str, object], None], part: int
    ) -> None:
        prompts = PROMPTS[part::PARTS]

        async def main() -> list[dict[str, Answer]]:
            client = EngineClient(entry.run, on_death=lambda _code: None)
            try:
                await client.request(real_load(client.next_id(), CPU_FILE), p.DoneLoad)
                image = tmp_path / "one.kv"
                return [await three_ways(client, prompt, image) for prompt in prompts]
            finally:
                await client.close()

        found = asyncio.run(main())
        assert sum(len(ways["cold"].ids) for ways in found) > 8 * len(prompts)
        for ways in found:  # the very same cache, out of a file: no excuse
            assert ways["restored"].ids == ways["reused"].ids
        parted = [
            divergence(prompt, ways["cold"].ids, ways["reused"].ids)
            for prompt, ways in zip(prompts, found, strict=True)
            if ways["cold"].ids != ways["reused"].ids
        ]
        for line, _gap in parted:
            record_property("divergence", line)
            print(line)
        assert len(parted) <= 1, parted
        assert all(abs(gap) <= NOISE for _line, gap in parted), parted

    def test_the_gap_is_that_of_the_logits(self) -> None:
        async def main() -> Answer:
            client = EngineClient(entry.run, on_death=lambda _code: None)
            try:
                await client.request(real_load(client.next_id(), CPU_FILE), p.DoneLoad)
                return await answer(client, PROMPTS[0])
            finally:
                await client.close()

        ids = asyncio.run(main()).ids
        # The sampled token is ahead of another one, by as much as the other is behind it.
        gap = in_own_process(PROMPTS[0], ids[:2], (ids[2], ids[0]))
        assert gap > 0.0
        assert in_own_process(PROMPTS[0], ids[:2], (ids[0], ids[2])) == pytest.approx(-gap)

    def test_a_cancelled_prefill_takes_less_than_a_whole_one(self) -> None:
        """The share of the prompt that was still read is the measure; no clock decides."""

        async def main() -> tuple[float, float]:
            client = EngineClient(entry.run, on_death=lambda _code: None)
            try:
                await client.request(real_load(client.next_id(), CPU_FILE), p.DoneLoad)
                messages = conversation("salad number word " * 250)
                cancelled = chat(client.next_id(), messages, max_tokens=1)
                stopped: p.DoneChat | None = None
                async for frame in client.stream(cancelled):
                    if isinstance(frame, p.PrefillProgress):
                        client.cancel(cancelled.id)
                    elif isinstance(frame, p.DoneChat):
                        stopped = frame
                await go_elsewhere(client)
                whole = chat(client.next_id(), messages, max_tokens=1)
                finished = await client.request(whole, p.DoneChat)
            finally:
                await client.close()
            assert stopped is not None
            assert stopped.reason == "cancelled"
            assert finished.reason != "cancelled"
            return stopped.prefill_s, finished.prefill_s

        stopped_s, whole_s = asyncio.run(main())
        # One slice of about half a dozen is read, and part of another.
        assert stopped_s < 0.5 * whole_s
