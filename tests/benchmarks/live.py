"""Figures of the running application, each from a child process of its own: `python -m tests.benchmarks.live WHAT`.

`build`, `build_long`, `ttft` (first token of a follow-up; cold or warm by what lies in `kv/`), `fresh` (first token of a new
conversation), `cancel` (stop while a long prompt is read) and `beside` (decode rate alone and while 2,000 chunks are indexed) run headless; `window` and `stall` run the real window. One JSON object is printed.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import sys
import threading
import time
from collections.abc import Callable

import psutil

from growbox_app import paths
from growbox_app.api import (
    AskRequest,
    Phase,
    PhaseChanged,
    TextDelta,
    TurnFinished,
    TurnStats,
)
from growbox_app.assistant import GrowBox
from memory.values import ConversationId

COUNTING = "Write the numbers from 1 to 300, one per line."
CHUNKS = 2000
PROBE_S = 0.004
IDLE_S = 20.0
PREPARED_S = 60.0


def document() -> str:
    """About 2,000 chunks of prose that differ from each other."""
    return "\n\n".join(
        " ".join(
            f"Note {chunk} on topic {chunk * 31 % 977}: step {step} took {chunk * step % 89} ms."
            for step in range(30)
        )
        for chunk in range(CHUNKS)
    )


def listing() -> str:
    """A question with a long paste: about 1,500 tokens."""
    rows = "\n".join(f"def f{n}(x): return x * {n} + {n * n % 97}" for n in range(90))
    return f"Here is a module:\n{rows}\nHow many functions has it? One word."


async def headless(body: Callable[[GrowBox], object]) -> None:
    """Runs `body` with a loaded application."""
    app = GrowBox(data_path=paths.data_path(), models_path=paths.models_path())
    await app.start(lambda _progress: None)
    try:
        await app._engine.ready()
        newest = (await app.library.conversations())[:1]
        app.prepare(newest[0].id if newest else None)  # as the window does: restores its image
        await app.prepared(PREPARED_S)
        await body(app)  # type: ignore[misc]
    finally:
        await app.shutdown()


async def first_token_s(app: GrowBox, text: str, conversation_id: ConversationId | None) -> float:
    """Seconds from the question to the first visible text."""
    started = time.monotonic()
    first = 0.0
    async for event in app.ask(AskRequest(text=text, conversation_id=conversation_id)):
        if isinstance(event, TextDelta) and not first:
            first = time.monotonic() - started
    return first


async def build(app: GrowBox) -> None:
    """Makes the conversation that `ttft` goes on with."""
    await first_token_s(app, listing(), None)
    await app.settle(20)
    say(done=True)


async def build_long(app: GrowBox) -> None:
    """The same with a region of more than 3,000 tokens: two pastes, each within its share of the window, and a short turn."""
    await first_token_s(app, listing(), None)
    newest = (await app.library.conversations())[0]
    await first_token_s(app, listing().replace("def f", "def g"), newest.id)
    await first_token_s(app, "Which of the two modules came first? One word.", newest.id)
    await app.settle(20)
    say(tokens=(await app.mind.region(newest.id)).used_tokens)


async def fresh(app: GrowBox) -> None:
    """A new conversation, right after the start."""
    seconds = await first_token_s(app, "Name one sorting algorithm.", None)
    memory = psutil.Process().memory_info().rss
    engine = psutil.Process(app.engine_pid()).memory_info().rss
    say(seconds=seconds, rss=memory, engine_rss=engine)


async def idle(app: GrowBox) -> None:
    """Long enough for what is done ahead of time at a start."""
    await asyncio.sleep(IDLE_S)
    say(done=True)


async def cancel(app: GrowBox) -> None:
    """From the user's stop, given while the prompt is read, to the turn's end."""
    stopped = 0.0
    async for event in app.ask(AskRequest(text=listing())):
        reading = isinstance(event, PhaseChanged) and event.phase is Phase.READING and event.done
        if reading and not stopped:
            stopped = time.monotonic()
            await app.stop()
        if isinstance(event, TurnFinished):
            say(seconds=time.monotonic() - stopped, stopped=bool(stopped))


async def ttft(app: GrowBox) -> None:
    """The follow-up."""
    newest = (await app.library.conversations())[0]
    say(seconds=await first_token_s(app, "And how many arguments has each? One word.", newest.id))


async def beside(app: GrowBox) -> None:
    """Decode rates alone and beside indexing, in turn."""
    rates: dict[str, list[float]] = {"alone": [], "beside": []}
    await rate(app)
    await app.settle(60)
    rates["alone"].append((await rate(app)).tokens_per_s)
    await app.attach(name="load.txt", text=document())
    await asyncio.sleep(0.5)
    for _ in range(2):
        rates["beside"].append((await rate(app)).tokens_per_s)
    pending = (await app.mind.statistics()).pending_embeddings
    say(
        alone=statistics.median(rates["alone"]),
        beside=statistics.median(rates["beside"]),
        pending=pending,
    )


async def rate(app: GrowBox) -> TurnStats:
    """The figures of one counting turn in a new conversation."""
    async for event in app.ask(AskRequest(text=COUNTING)):
        if isinstance(event, TurnFinished):
            return event.stats
    raise RuntimeError("the turn did not end")


class Probe:
    """Asks the main thread for a sign of life from another thread, and keeps how long each took."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._stop = threading.Event()
        self.delays_ms: list[float] = []
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._stop.wait(PROBE_S):
            sent = time.monotonic()
            answered = threading.Event()
            self._loop.call_soon_threadsafe(answered.set)
            if not answered.wait(5):
                return
            self.delays_ms.append((time.monotonic() - sent) * 1000)

    def close(self) -> None:
        """Stops asking. Not joined: the loop, which has to answer the last question, is the one that calls this."""
        self._stop.set()


def windowed(what: str) -> None:
    """Runs a script in the real window."""
    from growbox_app.clock import SystemClock
    from ui import application, event_loop
    from ui.crash import CrashLog

    app = application.make_application(["growbox"])
    life = application.Life(
        paths.data_path(),
        lambda: GrowBox(data_path=paths.data_path(), models_path=paths.models_path()),
        CrashLog(paths.data_path() / "logs", SystemClock()),
    )

    async def both() -> int:
        running = asyncio.get_running_loop().create_task(life.run())
        while life.window is None or not life.window.isVisible():
            await asyncio.sleep(0.005)
        life.window.grab()
        shown_s = time.clock_gettime(time.CLOCK_REALTIME) - psutil.Process().create_time()
        if what == "window":
            say(seconds=shown_s)
        else:
            await stall(life.window)
        life.window.close()
        return await running

    event_loop.run(app, both())


async def stall(window: object) -> None:
    """Streams an answer while 2,000 chunks are indexed, and measures the main thread."""
    assistant = window._assistant  # type: ignore[attr-defined]
    await assistant._engine.ready()
    await assistant.attach(name="load.txt", text=document())
    panel = window.conversation_panel  # type: ignore[attr-defined]
    panel.composer.show_text(COUNTING)
    panel.input.submit()
    flow = window.flow  # type: ignore[attr-defined]
    while not flow.shown.messages or not flow.shown.messages[-1].text:
        await asyncio.sleep(0.01)
    probe = Probe(asyncio.get_running_loop())
    started = time.monotonic()
    while flow.shown.running and time.monotonic() - started < 30:
        await asyncio.sleep(0.05)
    while (
        await assistant.mind.statistics()
    ).pending_embeddings and time.monotonic() - started < 60:
        await asyncio.sleep(0.2)
    probe.close()
    delays = sorted(probe.delays_ms)
    say(p99_ms=delays[int(len(delays) * 0.99)], worst_ms=delays[-1], samples=len(delays))


def say(**facts: object) -> None:
    """The result."""
    print(json.dumps(facts), flush=True)


def main(what: str) -> None:
    """Measures one thing."""
    if what in {"window", "stall"}:
        windowed(what)
        return
    asyncio.run(
        headless(
            {
                "build": build,
                "build_long": build_long,
                "ttft": ttft,
                "fresh": fresh,
                "idle": idle,
                "cancel": cancel,
                "beside": beside,
            }[what]
        )
    )


if __name__ == "__main__":
    main(sys.argv[1])
