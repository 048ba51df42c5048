"""The running application, asked while it sleeps and while it is idle, in turn: `python -m tests.benchmarks.rest_live TURNS`.

A child process of `rest.py`, which makes its data folder. The debts are those that jumps over a long conversation leave; the sleep is
the user's own, so that it goes on until the question comes. A turn counts as asked asleep only when a dream was at work as it began:
the sleep had judged, was not over, and was cut off by the question; another one is tried again. A judge that is not trusted could
not sleep: it counts as trusted here, only time is measured. One JSON object is printed: medians `ttft_idle_s` and `ttft_asleep_s`,
`ttft_sleep_extra_s` (their difference), the worst, `ttft_asleep_turns` that counted and `ttft_sleep_judged` notes read meanwhile.
"""

from __future__ import annotations

import asyncio
import json
import random
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

NOTES, GAP, STEP = 240, 40, 8
"""Notes that are written down, how many a debt skips, and how far the next one begins from it: more than the turns can read."""
ASLEEP_S = 300.0
INTO_S = 1.0
"""So far into the reading of its next notes a sleep is disturbed, at most."""
TRIES = 3
QUESTION = "Name one {kind} number below one hundred. One word."
KINDS = (
    "even",
    "odd",
    "prime",
    "round",
    "small",
    "large",
)  # one token each, so that the prompts are of one length


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
        for n in range(NOTES)
    ]
    for n in range(0, NOTES - GAP, STEP):
        target, entry = seqs[n], seqs[n + GAP - 1]
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
        self._chance = random.Random(5)
        self._judging = asyncio.Event()
        self._last = 0
        self.judged = 0
        app.subscribe(self._hear)

    def _hear(self, event: AppEvent) -> None:
        if isinstance(event, RestChanged) and event.status.phase is RestPhase.SLEEPING:
            if event.status.judged > self._last:
                self.judged += event.status.judged - self._last
                self._judging.set()
            self._last = event.status.judged

    async def begin(self) -> asyncio.Task[object]:
        """Returns when it has judged its first batch, and is somewhere in the next."""
        self._judging.clear()
        self._last = 0
        task = asyncio.get_running_loop().create_task(self._app.rest.sleep())
        async with asyncio.timeout(ASLEEP_S):
            await self._judging.wait()
        await asyncio.sleep(self._chance.uniform(0.0, INTO_S))
        return task

    def dreams(self, task: asyncio.Task[object]) -> bool:
        """Whether a dream is at work right now."""
        return not task.done() and self._app.rest.status().phase is RestPhase.SLEEPING


class Turns:
    """Turns of one conversation, asked idle and asleep."""

    def __init__(self, app: GrowBox) -> None:
        self._app = app
        self._conversation: ConversationId | None = None
        self._asked = 0
        self.sleep = Sleep(app)

    async def _ask(self) -> float:
        text = QUESTION.format(kind=KINDS[self._asked % len(KINDS)])
        self._asked += 1
        seconds = await first_token_s(self._app, text, self._conversation)
        self._conversation = self._conversation or (await self._app.library.conversations())[0].id
        return seconds

    async def idle(self) -> float:
        """Asked while nothing runs."""
        await self._app.prepared(PREPARED_S)
        assert self._app.rest.status().phase is RestPhase.AWAKE
        return await self._ask()

    async def asleep(self) -> float:
        """Asked while a dream is at work; one that had ended by then does not count."""
        for _ in range(TRIES):
            await self._app.prepared(PREPARED_S)
            task = await self.sleep.begin()
            dreamt = self.sleep.dreams(task)
            seconds = await self._ask()
            cut_off = await task is None
            if dreamt and cut_off:
                return seconds
            print(f"not counted: dreamt={dreamt} cut off={cut_off}", file=sys.stderr, flush=True)
        raise SystemExit("no turn could be asked while a dream was at work")


async def measure(app: GrowBox, turns: int) -> dict[str, float]:
    """Asks, in turn."""
    assert await app._memory.call(owe) > 0
    await app.settle(300)
    asked = Turns(app)
    idle: list[float] = []
    asleep: list[float] = []
    for turn in range(turns + 1):
        for sleeps in (False, True) if turn % 2 else (True, False):
            seconds = await (asked.asleep() if sleeps else asked.idle())
            print(f"{turn} asleep={sleeps} {seconds:.2f} s", file=sys.stderr, flush=True)
            if turn:  # the first of each warms up
                (asleep if sleeps else idle).append(seconds)
    low, high = statistics.median(idle), statistics.median(asleep)
    return {
        "ttft_idle_s": low,
        "ttft_asleep_s": high,
        "ttft_sleep_extra_s": high - low,
        "ttft_asleep_worst_s": max(asleep),
        "ttft_asleep_turns": len(asleep),
        "ttft_sleep_judged": asked.sleep.judged,
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
