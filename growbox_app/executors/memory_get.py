"""The executor `memory_get`: reads a stored text part by part, where the prompt shows only its head and tail.

A part is a fixed range of UTF-8 bytes, moved to whole characters: bytes foretell tokens better than characters do, in Chinese
and in emoji too. All parts in order are the text, byte for byte. A *handle* names a node shortly enough for a small model to
copy: its place on the timeline and the end of its id, so that a mistyped digit finds nothing instead of another memory.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING

from growbox_app.executors.answers import CallFailed, Reason, summary
from growbox_app.executors.base import (
    FULL_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    Plan,
    Risk,
)
from growbox_app.memory_service import MemoryService
from memory.values import Node, NodeStatus

if TYPE_CHECKING:
    from memory.engine import MemoryEngine

PART_BYTES = 2400
"""About 600 tokens of English and 700 of Chinese: an eighth of the region of the default window."""
CHECK_CHARACTERS = 3
_HANDLE = re.compile(r"\W*(\d{1,15})-([0-9a-z]{3})\W*", re.IGNORECASE)
_NUMBER = re.compile(r"\d{1,9}")
_CONTINUES = 0b1000_0000, 0b1100_0000
NO_SUCH = "there is no stored text with this id; copy id and part from the line that names them"


def handle(node: Node) -> str:
    """The short name of a node."""
    return f"{node.seq}-{node.id[-CHECK_CHARACTERS:]}"


def parts_of(text: str) -> int:
    """How many parts a text has."""
    return max(-(-len(_bytes(text)) // PART_BYTES), 1)


def part(text: str, number: int) -> str:
    """A part, from 1; empty beyond the last."""
    data = _bytes(text)
    start, end = _whole(data, (number - 1) * PART_BYTES), _whole(data, number * PART_BYTES)
    return data[start:end].decode(errors="surrogatepass")


def part_at(text: str, character: int) -> int:
    """The part that holds a character."""
    return len(_bytes(text[:character])) // PART_BYTES + 1


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _whole(data: bytes, at: int) -> int:
    """The first byte from `at` on that begins a character."""
    value, mask = _CONTINUES
    while at < len(data) and data[at] & mask == value:
        at += 1
    return at


class MemoryGet:
    """Implements `Executor`."""

    name = "memory_get"
    description = (
        "Reads one part of a stored text of which only the beginning and the end are shown."
    )
    parameters: Mapping[str, Parameter] = {
        "id": Parameter(description="as named where characters are not shown"),
        "part": Parameter(description="number of the part"),
    }
    risk = Risk.SAFE
    window_min = FULL_WINDOW_MIN

    def __init__(self, memory: MemoryService, *, paused: Callable[[], bool]) -> None:
        """Takes the memory, and whether the user has paused it (asked at each call)."""
        self._memory = memory
        self._paused = paused

    async def plan(
        self,
        arguments: Mapping[str, str],
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> Plan | ExecutorResult:
        """Touches nothing outside the memory."""
        return Plan(detail=arguments)

    async def run(self, plan: Plan, context: CallContext) -> ExecutorResult:
        """Reads. While memory is paused, only what the prompt shows in part may be read on."""
        node = await self._find(plan.detail.get("id", ""))
        if node is None:
            return CallFailed(NO_SUCH, Reason.NO_MEMORY).result()
        if self._paused() and node.id not in context.resident:
            return CallFailed("memory is paused by the user", Reason.PAUSED).result()
        wanted = _NUMBER.search(plan.detail.get("part", ""))
        number, count = int(wanted.group()) if wanted else 1, parts_of(node.content)
        if not 1 <= number <= count:
            return CallFailed(f"it has parts 1 to {count}", Reason.ARGUMENTS).result()
        return ExecutorResult(
            ok=True,
            text=f"[{handle(node)} part {number} of {count}]\n{part(node.content, number)}",
            summary=summary("memory_get", part=number, parts=count),
            part_of=node,
        )

    async def _find(self, wanted: str) -> Node | None:
        match = _HANDLE.fullmatch(wanted.strip())
        if match is None:
            return None
        node = await self._memory.call(partial(_node_at, int(match.group(1))))
        if node is None or node.status is NodeStatus.PARTIAL:
            return None
        return node if handle(node).endswith(match.group(2).lower()) else None


def _node_at(seq: int, engine: MemoryEngine) -> Node | None:
    return engine.node_at(seq)
