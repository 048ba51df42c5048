"""The prompts that turns really send, as the engine receives them: what grows, what stays, what is taken back."""

from __future__ import annotations

import itertools
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from growbox_app.api import AskRequest, MemoriesFound, TurnFinished
from growbox_app.assistant import GrowBox
from memory.values import BlockKind, ConversationId, NodeStatus, PointerKind
from tests.fakes import recording_engine
from tests.fakes.application import Body, ask, run_application, scripted
from tests.fakes.clock import FakeClock


@pytest.fixture
def prompts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "prompts.jsonl"
    monkeypatch.setenv(recording_engine.PROMPTS, str(path))
    return path


def recorded(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def run(folder: Path, body: Body, *, clock: FakeClock | None = None, **changed: object) -> None:
    make = partial(
        scripted,
        folder,
        engine_target=recording_engine.run,
        clock=clock or FakeClock(),
        saving_power=lambda: True,
    )
    run_application(make, body, {key.replace("__", "."): value for key, value in changed.items()})


async def cancel_before_a_word(
    app: GrowBox, text: str, conversation_id: ConversationId | None
) -> TurnFinished:
    events = []
    async for event in app.ask(AskRequest(text=text, conversation_id=conversation_id)):
        events.append(event)
        if isinstance(event, MemoriesFound):
            await app.stop()
    assert isinstance(events[-1], TurnFinished)
    return events[-1]


def test_each_prompt_extends_the_last_until_a_hole_and_equals_it_up_to_there(
    tmp_path: Path, prompts: Path
) -> None:
    evictions = [0]

    async def body(app: GrowBox) -> None:
        conversation_id = None
        for number in range(12):
            words = " ".join(f"w{number}x{at}" for at in range(150))
            end = await ask(app, f"say:30 数据 {words}", conversation_id)
            conversation_id = end.answer.conversation_id
            evictions.append((await app.mind.region(conversation_id)).evictions)

    run(tmp_path / "data", body, models__context_tokens=4096)
    sent = recorded(prompts)
    assert len(sent) == 12
    grown = 0
    for at, (before, after) in enumerate(itertools.pairwise(sent), start=1):
        old, new = before["tokens"], after["tokens"]
        if evictions[at + 1] == evictions[at]:
            assert new[: len(old)] == old
            assert after["reused"] >= len(old)
            grown += 1
        else:
            assert new[: len(old)] != old
            system = len(before["system"]) // 3
            assert new[:system] == old[:system]
            assert after["reused"] >= system
    assert 0 < grown < 11, "the session must evict, and not always"


def test_the_system_text_and_the_tools_know_no_clock(tmp_path: Path, prompts: Path) -> None:
    async def body(app: GrowBox) -> None:
        await ask(app, "hello there")

    run(tmp_path / "one", body)
    late = FakeClock()
    late.advance(86_400 * 400)
    run(tmp_path / "two", body, clock=late)
    first, second = recorded(prompts)
    assert first["system"] == second["system"]
    assert first["grammar"] == second["grammar"]
    assert first["text"] != second["text"]  # the question's header does


def test_a_turn_cancelled_before_its_first_word_leaves_no_trace_in_the_next_prompt(
    tmp_path: Path, prompts: Path
) -> None:
    async def with_or_without(app: GrowBox, *, cancelled: bool) -> None:
        await ask(app, "say:1 My favourite database is DuckDB.")
        await app.settle(10)
        first = await ask(app, "hello there, what do you do?")
        conversation_id = first.answer.conversation_id
        if cancelled:
            question = "hang: which database is my favourite?"
            end = await cancel_before_a_word(app, question, conversation_id)
            assert end.status is NodeStatus.CANCELLED
            assert any("DuckDB" in memory.excerpt for memory in end.memories)
            assert conversation_id is not None
            assert len(await app.library.messages(conversation_id)) == 4  # truth keeps it
            region = await app.mind.region(conversation_id)
            queue = await app.mind.queue(conversation_id)
            assert len(region.blocks) == len(queue.entries)
            assert region.blocks[-1].block.kind is BlockKind.ASSISTANT
        await ask(app, "and what else?", conversation_id)

    run(tmp_path / "with", lambda app: with_or_without(app, cancelled=True), memory__pages_max=6)
    after = recorded(prompts)[-1]
    prompts.unlink()
    run(tmp_path / "without", lambda app: with_or_without(app, cancelled=False))
    plain = recorded(prompts)[-1]
    assert after["tokens"] == plain["tokens"]
    assert after["reused"] >= plain["reused"]


@pytest.mark.parametrize("layout", ["append_log", "tail_ring"])
def test_both_layouts_run_through_the_real_path(tmp_path: Path, prompts: Path, layout: str) -> None:
    async def body(app: GrowBox) -> None:
        await ask(app, "say:1 My favourite database is DuckDB.")
        await app.settle(10)
        first = await ask(app, "hello there")
        conversation_id = first.answer.conversation_id
        second = await ask(app, "Which database is my favourite?", conversation_id)
        assert any("DuckDB" in memory.excerpt for memory in second.memories)
        kinds = [b.block.kind for b in (await app.mind.region(conversation_id)).blocks]
        spoken = [BlockKind.USER, BlockKind.ASSISTANT]
        if layout == "tail_ring":
            assert kinds == [BlockKind.MEMORY, *spoken, *spoken]
        else:
            assert kinds == [*spoken, BlockKind.MEMORY, *spoken]

    run(tmp_path / "data", body, context__layout=layout)
    text = recorded(prompts)[-1]["text"]
    assert (text.index("<memory time=") < text.index("hello there")) is (layout == "tail_ring")


def test_a_placeholder_becomes_real_when_the_answer_cites_it(tmp_path: Path, prompts: Path) -> None:
    async def body(app: GrowBox) -> None:
        await ask(app, "say:1 My favourite database is DuckDB.")
        await app.settle(10)
        end = await ask(app, "say:8 Which favourite database, is it DuckDB?")
        region = await app.mind.region(end.answer.conversation_id)
        memories = [b.block for b in region.blocks if b.block.kind is BlockKind.MEMORY]
        cited = {memory.node_id for memory in end.memories if memory.cited}
        exact = {memory.node_id for memory in end.memories if memory.way != "rag"}
        assert memories
        for block in memories:
            proven = block.node_id in cited | exact
            assert (block.pointer is PointerKind.REAL) is proven

    run(tmp_path / "data", body)
    assert recorded(prompts)


@pytest.mark.parametrize("window", [2048, 4096, 8192, 32768])
def test_no_mixture_of_texts_overflows_a_window(tmp_path: Path, prompts: Path, window: int) -> None:
    chinese = "".join(f"第{number}条：数据库索引与缓存的关系。" for number in range(1_500))

    async def body(app: GrowBox) -> None:
        paper = await app.attach(name="论文.txt", text=chinese * 2)
        conversation_id = None
        texts = ["say:900 go on", "tool:数据库", f"say:40 {chinese}", "看一下附件", "say:300 short"]
        for text in texts * (1 if window > 8192 else 2):
            request = AskRequest(
                text=text,
                conversation_id=conversation_id,
                attachments=(paper,) if "附件" in text else (),
            )
            end = [event async for event in app.ask(request)][-1]
            assert isinstance(end, TurnFinished)
            assert end.status is NodeStatus.COMPLETE, end.problem
            conversation_id = end.answer.conversation_id

    run(
        tmp_path / "data",
        body,
        models__context_tokens=window,
        models__answer_tokens=1024,
    )
    sent = recorded(prompts)
    assert max(line["size"] for line in sent) <= window
    assert any("not shown" in line["text"] for line in sent)
    assert any("memory_get id=" in line["text"] for line in sent) is (window >= 8192)
