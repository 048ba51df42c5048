"""The prompt side of a turn, without an engine process: what becomes of results that are too big."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

from growbox_app.agent.context import ContextAssembler, Window
from growbox_app.engine import protocol as p
from growbox_app.executors.base import ExecutorResult
from growbox_app.executors.memory_get import MemoryGet, handle
from growbox_app.executors.registry import Registry
from growbox_app.memory_service import MemoryService
from tests.fakes.memory_world import MemoryWorld

RESULT = "".join(f"第{number}行：结果 {number * 7}\n" for number in range(4_000))


async def count(texts: Sequence[str]) -> Sequence[int]:
    return [len(text) for text in texts]


def window(service: MemoryService) -> Window:
    loaded = p.DoneLoad(
        id=1,
        name="n",
        context_tokens=8192,
        tokenizer="t",
        kv="k",
        base_overhead=4,
        user_overhead=2,
        assistant_overhead=2,
        prefix_stable=True,
        seconds=0.0,
    )
    return Window(
        loaded=loaded,
        language="zh",
        tools=Registry([MemoryGet(service, paused=lambda: False)]),
        system_text="s",
        system_tokens=100,
        reserve_tokens=100,
    )


def test_a_tool_result_too_big_for_its_share_is_stored_whole(tmp_path: Path) -> None:
    async def main() -> None:
        service = MemoryService(None)  # type: ignore[arg-type]
        world: list[MemoryWorld] = []
        try:
            await service.open(lambda: (world.append(MemoryWorld(tmp_path)), world[0].engine)[1])
            question = await service.call(lambda _engine: world[0].say("读一下"))
            assert question.conversation_id is not None
            context = ContextAssembler(service, count, question.conversation_id, window(service))
            await context.open()
            await context.add_question(question, question.content, pages=())
            result = ExecutorResult(ok=True, text=RESULT, summary="")
            await context.add_tool_result(question, "run", result)
            block = (await context.blocks())[-1]
            node = await service.call(lambda engine: engine.node(block.node_id))
            assert node is not None
            assert node.content == RESULT
            assert f"个字符未显示；memory_get id={handle(node)} part=" in block.text
            assert block.tokens <= 1000
        finally:
            await service.close()

    asyncio.run(main())


def test_a_question_that_a_crash_cut_off_is_not_asked_again(tmp_path: Path) -> None:
    async def main() -> None:
        service = MemoryService(None)  # type: ignore[arg-type]
        world: list[MemoryWorld] = []
        try:
            await service.open(lambda: (world.append(MemoryWorld(tmp_path)), world[0].engine)[1])
            question = await service.call(lambda _engine: world[0].say("first"))
            assert question.conversation_id is not None
            context = ContextAssembler(service, count, question.conversation_id, window(service))
            await context.open()
            await context.add_question(question, "first", pages=())
            await context.add_answer(question, None)
            answered = await context.blocks()
            await context.add_question(question, "second", pages=())
            assert len(await context.blocks()) > len(answered)

            await context.open()

            assert await context.blocks() == answered
        finally:
            await service.close()

    asyncio.run(main())
