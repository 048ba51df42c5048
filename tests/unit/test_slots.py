"""Slots: as many at once as there are, first come first served, and nothing lost by who gives up."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from growbox_app import slots
from growbox_app.slots import LoopKind, Slots, SlotsFull
from growbox_app.tasks import TaskGroup

KIND = LoopKind.INGEST


def run(body: Callable[[Slots, TaskGroup, list[str]], Awaitable[None]]) -> list[str]:
    said: list[str] = []

    async def main() -> None:
        tasks = TaskGroup()
        await body(Slots(), tasks, said)
        await tasks.cancel_all()

    asyncio.run(main())
    return said


async def work(taken: Slots, name: str, said: list[str], go: asyncio.Event) -> None:
    async with taken.queued(KIND):
        said.append(f"{name} begins")
        await go.wait()
        said.append(f"{name} ends")


async def passing() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def test_first_come_first_served() -> None:
    async def body(taken: Slots, tasks: TaskGroup, said: list[str]) -> None:
        gates = {name: asyncio.Event() for name in "abc"}
        for name, gate in gates.items():
            tasks.start(name, work(taken, name, said, gate))
            await passing()
        assert taken.waiting(KIND) == 2
        for name in "abc":
            gates[name].set()
            await passing()

    assert run(body) == [f"{name} {verb}" for name in "abc" for verb in ("begins", "ends")]


def test_who_gives_up_loses_only_his_place() -> None:
    async def body(taken: Slots, tasks: TaskGroup, said: list[str]) -> None:
        gate = asyncio.Event()
        first = tasks.start("a", work(taken, "a", said, gate))
        second = tasks.start("b", work(taken, "b", said, gate))
        third = tasks.start("c", work(taken, "c", said, gate))
        await passing()
        second.cancel()
        await passing()
        first.cancel()
        await passing()
        assert said[-1] == "c begins"
        third.cancel()
        await passing()
        async with taken.queued(KIND):  # it is free again
            assert taken.waiting(KIND) == 0

    run(body)


def test_a_slot_given_to_one_who_is_just_leaving_goes_on() -> None:
    async def body(taken: Slots, tasks: TaskGroup, said: list[str]) -> None:
        gate = asyncio.Event()
        tasks.start("a", work(taken, "a", said, gate))
        second = tasks.start("b", work(taken, "b", said, gate))
        tasks.start("c", work(taken, "c", said, gate))
        await passing()
        gate.set()
        await asyncio.sleep(0)  # a ends: the slot is b's, who has not noticed yet
        second.cancel()
        await passing()

    assert run(body)[-1] == "c ends"


def test_too_many_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slots, "WAITING_MAX", 1)

    async def body(taken: Slots, tasks: TaskGroup, said: list[str]) -> None:
        for name in "ab":
            tasks.start(name, work(taken, name, said, asyncio.Event()))
        await passing()
        with pytest.raises(SlotsFull):
            async with taken.queued(KIND):
                pass
        async with taken.queued(LoopKind.ANSWER):  # another kind is another matter
            pass

    run(body)
