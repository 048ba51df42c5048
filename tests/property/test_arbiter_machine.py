"""The arbiter against a model of its rules: claims, ends, cancels and foreground work in any order."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from growbox_app.rest.arbiter import Arbiter, Claim, Interrupted


class _Call:
    """One call and how it ended."""

    def __init__(self, claim: Claim, number: int) -> None:
        self.claim = claim
        self.number = number
        self.running = False
        self.end = asyncio.Event()
        self.ended = ""


class ArbiterMachine(RuleBasedStateMachine):
    """`waiting` and `running` are the model; the arbiter must agree after every step."""

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.arbiter = Arbiter()
        self.foreground = 0
        self.waiting: list[_Call] = []
        self.running: _Call | None = None
        self.tasks: dict[int, asyncio.Task[None]] = {}
        self.calls: list[_Call] = []

    def teardown(self) -> None:
        for task in self.tasks.values():
            task.cancel()
        self._settle()
        self.loop.run_until_complete(self.arbiter.close())
        self.loop.close()

    # -- the model ------------------------------------------------------------------------------
    def _grant(self) -> None:
        if self.running is None and not self.foreground and self.waiting:
            self.running = min(self.waiting, key=lambda it: (it.claim, it.number))
            self.waiting.remove(self.running)

    def _ends(self, how: str) -> None:
        assert self.running is not None
        assert self.running.ended == how
        self.running = None
        self._grant()

    # -- steps ----------------------------------------------------------------------------------
    @rule(claim=st.sampled_from(Claim))
    def claims(self, claim: Claim) -> None:
        call = _Call(claim, len(self.calls))
        self.calls.append(call)
        self.waiting.append(call)
        self.tasks[call.number] = self.loop.create_task(self._run(call))
        self._grant()
        self._settle()

    @precondition(lambda self: self.running is not None)
    @rule()
    def finishes(self) -> None:
        assert self.running is not None
        self.running.end.set()
        self._settle()
        self._ends("done")

    @precondition(lambda self: self.running is not None)
    @rule()
    def running_one_is_cancelled(self) -> None:
        assert self.running is not None
        self.tasks[self.running.number].cancel()
        self._settle()
        self._ends("cancelled")

    @precondition(lambda self: self.waiting)
    @rule(data=st.data())
    def waiting_one_is_cancelled(self, data: st.DataObject) -> None:
        call = data.draw(st.sampled_from(self.waiting))
        self.tasks[call.number].cancel()
        self._settle()
        self.waiting.remove(call)
        assert call.ended == "cancelled"

    @rule(data=st.data())
    def granted_one_is_cancelled_at_once(self, data: st.DataObject) -> None:
        """Between the grant and its first step."""
        call = _Call(data.draw(st.sampled_from(Claim)), len(self.calls))
        self.calls.append(call)
        task = self.tasks[call.number] = self.loop.create_task(self._run(call))
        self.loop.run_until_complete(asyncio.sleep(0))
        task.cancel()
        self._settle()
        assert call.ended in ("cancelled", "")

    @rule()
    def foreground_comes(self) -> None:
        self.arbiter.foreground_began()
        self.foreground += 1
        self._settle()
        if self.running is not None:
            self._ends("interrupted")

    @precondition(lambda self: self.foreground)
    @rule()
    def foreground_goes(self) -> None:
        self.arbiter.foreground_ended()
        self.foreground -= 1
        self._grant()
        self._settle()

    @invariant()
    def agrees(self) -> None:
        really = [call for call in self.calls if call.running]
        assert really == ([self.running] if self.running else [])
        assert self.arbiter.foreground == bool(self.foreground)
        assert self.arbiter.busy == (self.running is not None)

    # -- the world ------------------------------------------------------------------------------
    async def _run(self, call: _Call) -> None:
        def work() -> Coroutine[Any, Any, None]:
            async def body() -> None:
                call.running = True
                try:
                    await call.end.wait()
                finally:
                    call.running = False

            return body()

        try:
            await self.arbiter.run(call.claim, work)
            call.ended = "done"
        except Interrupted:
            call.ended = "interrupted"
        except asyncio.CancelledError:
            call.ended = "cancelled"
            raise

    def _settle(self) -> None:
        """Every ready step runs."""

        async def steps() -> None:
            for _ in range(12):
                await asyncio.sleep(0)

        self.loop.run_until_complete(steps())


ArbiterMachine.TestCase.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
TestArbiter = ArbiterMachine.TestCase
