"""The running application, asked while it sleeps and while it is idle, in turn: `python -m tests.benchmarks.rest_live TURNS`.

A child process of `rest.py`, which makes its data folder. The debts are those that jumps over a long conversation leave; the sleep is
the user's own, so that it goes on until the question comes. A judge that is not trusted could not sleep: it counts as trusted here,
only time is measured. One JSON object is printed: medians `ttft_idle_s` and `ttft_asleep_s`, `ttft_sleep_extra_s`, and how
much was judged.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
from dataclasses import replace

from growbox_app import paths
from growbox_app.api import AppEvent, RestChanged
from growbox_app.assistant import GrowBox, Options
from growbox_app.models.calibration import JudgeCalibration, judge_calibration
from growbox_app.rest.schedule import RestPhase
from memory.engine import MemoryEngine
from memory.recall.pointer_walk import Question
from memory.rest_values import Cause
from memory.storage.learning_log import Reading
from memory.values import ConversationId, NodeDraft, NodeKind, Role
from tests.benchmarks.live import PREPARED_S, first_token_s

DEBTS, NOTES = 6, 40
ASLEEP_S = 30.0
QUESTION = "Name one {kind} number below one hundred. One word."
KINDS = ("even", "odd", "prime", "square", "round", "small", "large")


def trusting(tokenizer: str, language: str, version: str) -> JudgeCalibration:
    """What was measured, and trusted."""
    return replace(judge_calibration(tokenizer, language, version), auc=0.95)


def owe(engine: MemoryEngine) -> int:
    """Writes down a long conversation, and debts over it; returns how many."""
    conversation = engine.create_conversation().id
    seqs = [
        engine.record(
            NodeDraft(
                kind=NodeKind.MESSAGE,
                role=Role.USER,
                conversation_id=conversation,
                content=f"On day {n} we moved crate {n * 31 % 977} from bay {n % 17} to bay {n % 13},"
                f" weighed it, wrote the weight of {n * 7 % 89} kilos on its lid and told the office.",
            )
        ).seq
        for n in range(DEBTS * NOTES)
    ]
    for n in range(DEBTS):
        target, entry = seqs[n * NOTES], seqs[(n + 1) * NOTES - 1]
        engine._learning.read(
            Question(text=f"Who signed the delivery note of ship number {n}?", vector=None),
            cluster=None,
            sources=(),
            found=(),
            reading=Reading(light=(target,), fragments=((entry, target),)),
            cause=Cause.SEARCH,
        )
    return len(engine.ledger().open)


class Sleep:
    """The application's own, begun and awaited."""

    def __init__(self, app: GrowBox) -> None:
        self._app = app
        self._judging = asyncio.Event()
        self.judged = 0
        app.subscribe(self._hear)

    def _hear(self, event: AppEvent) -> None:
        if isinstance(event, RestChanged) and event.status.phase is RestPhase.SLEEPING:
            if event.status.judged:
                self._judging.set()
            self.judged = max(self.judged, event.status.judged)

    async def begin(self) -> asyncio.Task[object]:
        """Returns when it has judged its first batch, and reads the next."""
        self._judging.clear()
        task = asyncio.get_running_loop().create_task(self._app.rest.sleep())
        async with asyncio.timeout(ASLEEP_S):
            await self._judging.wait()
        return task


async def measure(app: GrowBox, turns: int) -> dict[str, float]:
    """Asks, in turn."""
    assert await app._memory.call(owe) == DEBTS
    await app.settle(120)
    sleep = Sleep(app)
    conversation: ConversationId | None = None
    idle: list[float] = []
    asleep: list[float] = []
    for turn in range(turns + 1):
        for into in (idle, asleep):
            await app.prepared(PREPARED_S)
            task = await sleep.begin() if into is asleep else None
            text = QUESTION.format(kind=KINDS[turn % len(KINDS)])
            seconds = await first_token_s(app, text, conversation)
            conversation = conversation or (await app.conversations())[0].id
            print(f"{turn} asleep={into is asleep} {seconds:.2f} s", file=sys.stderr, flush=True)
            if turn:  # the first of each warms up
                into.append(seconds)
            if task is not None:
                assert await task is None, "the sleep had ended by itself"
    low, high = statistics.median(idle), statistics.median(asleep)
    return {
        "ttft_idle_s": low,
        "ttft_asleep_s": high,
        "ttft_sleep_extra_s": high - low,
        "ttft_asleep_worst_s": max(asleep),
    }


async def main(turns: int) -> None:
    """Starts, measures, prints."""
    app = GrowBox(
        data_path=paths.data_path(),
        models_path=paths.models_path(),
        options=Options(calibration=trusting, listen=False),
    )
    await app.start(lambda _progress: None)
    try:
        await app._engine.ready()
        figures = await measure(app, turns)
    finally:
        await app.shutdown()
    print(json.dumps(figures), flush=True)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1])))
