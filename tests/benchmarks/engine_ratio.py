"""The engine process against a bare llama-cpp-python loop, interleaved in one run.

Figures: `decode_ratio_to_bare`, `prefill_ratio_to_bare` (1 is as fast as bare). Each side is measured in turn, several times;
the best rounds are compared: whatever else runs on the machine can only slow a round down.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import subprocess
import sys
from collections.abc import AsyncIterator
from pathlib import Path

from growbox_app.engine import entry
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient
from tests.real_models import LIGHT, real_load

ROUNDS = 8
PROMPT_TOKENS = 400
ANSWER_TOKENS = 48
THREADS = 2


class Bare:
    """The baseline process."""

    def __init__(self, variant: str) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.benchmarks.bare_loop", str(LIGHT), variant, str(THREADS)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        self._read()

    def measure(self, tokens: int) -> dict[str, float]:
        """One round."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"tokens": tokens, "answer": ANSWER_TOKENS}) + "\n")
        self._process.stdin.flush()
        return self._read()

    def close(self) -> None:
        """Ends the process."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)
        assert self._process.stdout is not None
        self._process.stdout.close()

    def _read(self) -> dict[str, float]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the bare loop ended")
        figures: dict[str, float] = json.loads(line)
        return figures


@contextlib.asynccontextmanager
async def loaded_engine(cpu_file: Path) -> AsyncIterator[tuple[EngineClient, str]]:
    """A loaded engine process and its CPU variant."""
    client = EngineClient(entry.run, on_death=lambda _code: None)
    try:
        load = real_load(client.next_id(), cpu_file)
        await client.request(load, p.DoneLoad)
        yield client, load.variant
    finally:
        await client.close()


async def engine_round(client: EngineClient, salt: int) -> tuple[int, dict[str, float]]:
    """One round in the engine; `salt` keeps the prefix from being reused. Returns the prompt's tokens too."""
    words = "".join(f"item {n} costs {n * 7 % 101} coins; " for n in range(PROMPT_TOKENS // 12))
    messages = (
        p.Message(role="system", parts=(f"Round {salt}. Continue the list.",)),
        p.Message(role="user", parts=(words + " Write the numbers from 1 to 500 in words.",)),
    )
    request = p.Chat(
        id=client.next_id(),
        messages=messages,
        date="2026-11-30",
        max_tokens=ANSWER_TOKENS,
        temperature=0.0,
        top_p=0.9,
        seed=1,
    )
    done = await client.request(request, p.DoneChat)
    fresh = done.prompt_tokens - done.reused_tokens
    return fresh, {
        "prefill_per_s": fresh / done.prefill_s,
        "decode_per_s": done.answer_tokens / done.decode_s,
    }


async def ratios(cpu_file: Path) -> dict[str, float]:
    """The two ratios, best rounds."""
    async with loaded_engine(cpu_file) as (client, variant):
        bare = await asyncio.to_thread(Bare, variant)
        try:
            ours: list[dict[str, float]] = []
            theirs: list[dict[str, float]] = []
            for number in range(ROUNDS + 1):
                tokens, figures = await engine_round(client, number)
                baseline = await asyncio.to_thread(bare.measure, tokens)
                if number:  # the first round warms both up
                    ours.append(figures)
                    theirs.append(baseline)
        finally:
            await asyncio.to_thread(bare.close)
    return {
        f"{key}_ratio_to_bare": max(row[f"{key}_per_s"] for row in ours)
        / max(row[f"{key}_per_s"] for row in theirs)
        for key in ("decode", "prefill")
    } | {f"{key}_per_s": max(row[f"{key}_per_s"] for row in ours) for key in ("decode", "prefill")}


def main() -> None:
    """Prints the figures."""
    cpu_file = LIGHT.parent / ".cpu_variant.json"
    for name, value in asyncio.run(ratios(cpu_file)).items():
        print(f"{name}={value:.3f}")


if __name__ == "__main__":
    main()
