"""Calls that wait for the user: asked in the conversation, answered once, denied after a while.

Event-loop thread. Nothing is stored: a crash, a stop and a silence are all a no.
"""

from __future__ import annotations

import asyncio
import itertools
from dataclasses import dataclass
from typing import Any

from growbox_app.approval_face import ApprovalAnswer

WAIT_S = 300.0
"""Source: design 5.4: no answer is a no."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """How an approval ended. `by`: user | timeout | stop."""

    answer: ApprovalAnswer
    by: str


class Approvals:
    """The open questions of one application."""

    def __init__(self, wait_s: float = WAIT_S) -> None:
        self._wait_s = wait_s
        self._ids = itertools.count(1)
        self._open: dict[int, asyncio.Future[ApprovalAnswer]] = {}

    def open(self) -> int:
        """A new question; its answer may come at once. `wait` must follow."""
        approval_id = next(self._ids)
        self._open[approval_id] = asyncio.get_running_loop().create_future()
        return approval_id

    def answer(self, answer: ApprovalAnswer) -> None:
        """The user's word; one that comes too late changes nothing."""
        waiting = self._open.get(answer.id)
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)

    async def wait(self, approval_id: int, cancelled: asyncio.Event) -> Outcome:
        """Waits for the answer, a stop or the end of patience."""
        waiting = self._open[approval_id]
        stopped = asyncio.ensure_future(cancelled.wait())  # noqa: TID251 - cancelled right here
        either: set[asyncio.Future[Any]] = {waiting, stopped}
        try:
            await asyncio.wait(either, timeout=self._wait_s, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            del self._open[approval_id]
        if waiting.done():
            return Outcome(answer=waiting.result(), by="user")
        waiting.cancel()
        denied = ApprovalAnswer(id=approval_id, allowed=False)
        return Outcome(answer=denied, by="stop" if cancelled.is_set() else "timeout")
