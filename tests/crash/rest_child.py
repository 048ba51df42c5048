"""A process that sleeps until it is killed, or nothing is owed; prints what was paid once it is durable.

Run as `python -m tests.crash.rest_child FOLDER SEED JUDGE`, where JUDGE is `scripted` or `model` (the light model, trusted whatever it was
measured at). Lines: `open`, `paid QUESTION NODE…` (answered, and the next request has come: the batch before it was committed), `done`.
"""

from __future__ import annotations

import asyncio
import hashlib
import random
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

from growbox_app.engine import entry
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient
from growbox_app.oracle import EngineOracle
from memory.requests import Judgement, NeedVerdicts, Verdict
from tests.fakes.driver import drive
from tests.fakes.memory_world import MemoryWorld
from tests.real_models import real_load

Judge = Callable[[NeedVerdicts], Judgement | None]


def key(question: str) -> str:
    """A question as one word."""
    return hashlib.blake2b(question.encode(), digest_size=6).hexdigest()


def model_judge(runner: asyncio.Runner, cpu_file: Path) -> Judge:
    """The light model in its own process, through the application's own oracle."""

    async def opened() -> SimpleNamespace:
        client = EngineClient(entry.run, on_death=lambda _code: None)
        loaded = await client.request(real_load(client.next_id(), cpu_file), p.DoneLoad)
        return SimpleNamespace(client=client, loaded=loaded)

    oracle = EngineOracle(runner.run(opened()))

    def judge(request: NeedVerdicts) -> Judgement | None:
        found = runner.run(oracle.judge(request))
        return None if found is None else replace(found, trusted=True)

    return judge


def main(folder: str, seed: str, kind: str) -> None:
    with asyncio.Runner() as runner:
        world = MemoryWorld(Path(folder))
        world.judge.yes = {"n3x", "n77x"}
        judge: Judge = world.judge
        if kind == "model":
            judge = model_judge(runner, Path(folder).with_name("cpu_variant.json"))
        sleep_until_killed(world, random.Random(int(seed)), judge)


def sleep_until_killed(world: MemoryWorld, chance: random.Random, thinks: Judge) -> None:
    pause = threading.Event()
    paid: list[str] = []

    def tell() -> None:
        if paid:
            print("paid", *paid, flush=True)
            paid.clear()

    def judge(request: NeedVerdicts) -> Judgement | None:
        tell()
        pause.wait(chance.uniform(0.0, 0.02))
        judgement = thinks(request)
        verdicts = () if judgement is None else judgement.verdicts
        answered = [
            node_id
            for (node_id, _), verdict in zip(request.candidates, verdicts, strict=True)
            if verdict is not Verdict.UNKNOWN
        ]
        if answered:
            paid.extend((key(request.query), *answered))
        return judgement

    print("open", flush=True)
    while world.engine.ledger().open:
        drive(world.engine.sleep(), world.embedder, judge)
        tell()
    print("done", flush=True)
    pause.wait()


if __name__ == "__main__":
    main(*sys.argv[1:])
