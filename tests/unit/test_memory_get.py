"""Texts too big for the prompt: what is left out is named, and can be read part by part."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path

import pytest

from growbox_app.agent.context import head_tail
from growbox_app.executors import memory_get as parts
from growbox_app.executors.base import CallContext
from growbox_app.executors.memory_get import MemoryGet
from growbox_app.executors.memory_search import MemorySearch
from growbox_app.executors.registry import Registry
from growbox_app.memory_service import MemoryService
from memory.values import ConversationId, NodeId
from tests.fakes.memory_world import NO_HOST, MemoryWorld
from tests.unit.executor_world import called

LONG = "".join(f"第{number}行：数据库与👨‍👩‍👧索引 naïve\r\n" for number in range(8_000))


async def read(
    tmp_path: Path, *calls: tuple[str, str], paused: bool = False, resident: bool = False
) -> list[str]:
    """Results of calls; `{id}` in a call stands for the handle of the stored text."""
    service = MemoryService(None)  # type: ignore[arg-type]
    world: list[MemoryWorld] = []
    try:
        await service.open(
            lambda: world.append(MemoryWorld(tmp_path / "m", NO_HOST)) or world[0].engine
        )
        node = await service.call(lambda engine: engine.attach(name="a.txt", text=LONG))
        executor = MemoryGet(service, paused=lambda: paused)
        there = frozenset({node.id}) if resident else frozenset[NodeId]()
        scene = CallContext(
            conversation_id=ConversationId("c"),
            project_id=None,
            exclude=frozenset(),
            resident=there,
        )
        results = []
        for name, number in calls:
            wanted = {"id": name.format(id=parts.handle(node)), "part": number}
            results.append((await called(executor, scene, **wanted)).text)
        return results
    finally:
        await service.close()


def test_a_long_text_is_read_part_by_part_byte_for_byte(tmp_path: Path) -> None:
    assert len(LONG.encode()) > 300_000
    count = parts.parts_of(LONG)
    calls = [("{id}", str(number)) for number in range(1, count + 1)]
    results = asyncio.run(read(tmp_path, *calls))
    bodies = [result.split("\n", 1)[1] for result in results]
    assert "".join(bodies).encode() == LONG.encode()
    assert max(len(body.encode()) for body in bodies) <= parts.PART_BYTES + 3
    assert parts.part(LONG, count + 1) == ""


def test_the_reference_names_the_part_where_the_hidden_text_begins() -> None:
    shown = head_tail(LONG, 3_000, lambda head, left: f"[{left} {parts.part_at(LONG, head)}]")
    match = re.search(r"\n\[(\d+) (\d+)\]\n", shown)
    assert match
    head, tail = shown.split(match.group())
    left_out, number = int(match.group(1)), int(match.group(2))
    assert len(head) + left_out + len(tail) == len(LONG)
    assert LONG[len(head)] in parts.part(LONG, number)
    before = "".join(parts.part(LONG, at) for at in range(1, number))
    assert len(before) <= len(head) < len(before + parts.part(LONG, number))


@pytest.mark.parametrize(
    ("name", "number", "answer"),
    [
        ("{id}", "9999", "it has parts"),
        ("{id}", "0", "it has parts"),
        ("{id}", "", "part 1 of"),
        (" id={id} ", "2", parts.NO_SUCH),
        ("“{id}”", "part 2", "part 2 of"),
        ("1-zzz", "1", parts.NO_SUCH),
        ("999999-000", "1", parts.NO_SUCH),
        ("' OR 1=1", "1", parts.NO_SUCH),
        ("", "1", parts.NO_SUCH),
    ],
)
def test_a_handle_finds_its_text_or_nothing(
    tmp_path: Path, name: str, number: str, answer: str
) -> None:
    assert answer in asyncio.run(read(tmp_path, (name, number)))[0]


def test_paused_memory_reads_on_only_what_is_shown(tmp_path: Path) -> None:
    assert asyncio.run(read(tmp_path, ("{id}", "1"), paused=True)) == [
        "memory is paused by the user"
    ]
    shown = asyncio.run(read(tmp_path / "2", ("{id}", "1"), paused=True, resident=True))
    assert "part 1 of" in shown[0]


def test_a_window_shows_the_tools_that_it_has_room_for() -> None:
    def never() -> bool:
        return False

    both = [MemorySearch(None, paused=never, now_ms=int), MemoryGet(None, paused=never)]  # type: ignore[arg-type]
    registry = Registry(both)
    assert registry.tool_list() == Registry(both[::-1]).tool_list()
    assert registry.for_window(2048).tool_list() == registry.for_window(4095).grammar() == ""
    assert registry.for_window(4096).names == registry.for_window(8191).names == {"memory_search"}
    assert registry.for_window(8192).names == {"memory_get", "memory_search"}
    assert registry.for_window(8192).grammar() == registry.grammar()
