"""Turns of the whole application on a scripted engine: journal, stream, stop, restart, tools, bad input."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from growbox_app.agent.protocol import parse_tool_call
from growbox_app.api import (
    AskRequest,
    EnginePhase,
    MemoriesFound,
    Notice,
    ProblemCode,
    ProblemError,
    TextDelta,
    ToolCalled,
    TurnAccepted,
    TurnEvent,
    TurnFinished,
)
from growbox_app.assistant import GrowBox
from memory.engine import MemoryEngine
from memory.errors import StorageError
from memory.storage.timeline import Timeline
from memory.values import BlockKind, ConversationId, NodeStatus
from tests.fakes import scripted_engine
from tests.fakes.application import Body, run_application, scripted


def run(tmp_path: Path, body: Body, *, context_tokens: int | None = None) -> None:
    wanted = {} if context_tokens is None else {"models.context_tokens": context_tokens}
    run_application(lambda: scripted(tmp_path), body, wanted)


async def turn(
    app: GrowBox, text: str, conversation_id: ConversationId | None = None
) -> list[TurnEvent]:
    return [e async for e in app.ask(AskRequest(text=text, conversation_id=conversation_id))]


async def phase(app: GrowBox, wanted: Callable[[EnginePhase], bool]) -> None:
    """Waits for a state of the engine."""
    changed = asyncio.Event()
    unsubscribe = app.subscribe(lambda _event: changed.set())
    while not wanted(app.engine_status().phase):
        changed.clear()
        await changed.wait()
    unsubscribe()


def finished(events: list[TurnEvent]) -> TurnFinished:
    last = events[-1]
    assert isinstance(last, TurnFinished)
    return last


def shown(events: list[TurnEvent]) -> str:
    return "".join(event.text for event in events if isinstance(event, TextDelta))


def test_a_turn_is_stored_streamed_and_resident(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        events = await turn(app, "hello 世界 there")
        accepted = events[0]
        assert isinstance(accepted, TurnAccepted)
        end = finished(events)
        assert end.status is NodeStatus.COMPLETE
        assert shown(events) == end.answer.content == "scripted answer: hello 世界 there"
        stored = await app.library.messages(accepted.conversation.id)
        assert [node.content for node in stored] == ["hello 世界 there", end.answer.content]
        region = await app.mind.region(accepted.conversation.id)
        assert [b.block.kind for b in region.blocks] == [BlockKind.USER, BlockKind.ASSISTANT]
        queue = await app.mind.queue(accepted.conversation.id)
        assert {e.block_id for e in queue.entries} == {b.block.id for b in region.blocks}
        assert region.used_tokens + region.reserve_tokens <= region.window_tokens

    run(tmp_path, body)


def test_a_fact_is_recalled_in_a_new_conversation_and_the_trace_survives_restart(
    tmp_path: Path,
) -> None:
    async def tell(app: GrowBox) -> None:
        await turn(app, "My favourite database is DuckDB, please remember that.")
        await app.settle(10)

    async def ask(app: GrowBox) -> None:
        events = await turn(app, "Which database is my favourite?")
        end = finished(events)
        assert any("DuckDB" in memory.excerpt for memory in end.memories)
        memories, stats = app.trace_of(end.answer)
        assert memories == end.memories
        assert stats == end.stats
        region = await app.mind.region(end.answer.conversation_id)
        kinds = [b.block.kind for b in region.blocks]
        assert kinds[-3:] == [BlockKind.MEMORY, BlockKind.USER, BlockKind.ASSISTANT]

    run(tmp_path, tell)
    run(tmp_path, ask)


def test_stop_keeps_what_was_written(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        events: list[TurnEvent] = []
        async for event in app.ask(AskRequest(text="slow say:2000 please")):
            events.append(event)
            if isinstance(event, TextDelta):
                await app.stop()
        end = finished(events)
        assert end.status is NodeStatus.CANCELLED
        assert "scripted answer:".startswith(end.answer.content[:16].strip())
        stored = await app.library.messages(ConversationId(str(end.answer.conversation_id)))
        assert stored[-1].content == end.answer.content
        assert stored[-1].status is NodeStatus.CANCELLED

    run(tmp_path, body)


def test_stop_before_the_first_word(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        events: list[TurnEvent] = []

        async def hang() -> None:
            async for event in app.ask(AskRequest(text="hang for ever")):
                events.append(event)
                if isinstance(event, MemoriesFound):
                    reading.set()

        reading = asyncio.Event()
        running = asyncio.get_running_loop().create_task(hang())
        await reading.wait()
        await asyncio.sleep(0.2)
        await app.stop()
        await running
        assert finished(events).status is NodeStatus.CANCELLED

    run(tmp_path, body)


def test_a_dead_engine_is_restarted_and_the_answer_goes_on(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        events = await turn(app, "die say:9 a b c d e f g")
        notices = [event for event in events if isinstance(event, Notice)]
        assert [notice.problem.code for notice in notices] == [ProblemCode.ENGINE_RESTARTED]
        end = finished(events)
        assert end.status is NodeStatus.COMPLETE
        assert (
            end.answer.content
            == shown(events)
            == scripted_engine.answer_to("die say:9 a b c d e f g")
        )
        assert app.engine_status().phase is EnginePhase.READY

    run(tmp_path, body)


@pytest.mark.skipif(os.name == "nt", reason="signals")
def test_an_engine_that_keeps_dying_is_given_up(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        await turn(app, "hello")
        for _ in range(3):
            await phase(app, lambda now: now is EnginePhase.READY)
            pid = app.engine_pid()
            assert pid is not None
            os.kill(pid, signal.SIGKILL)
            await phase(app, lambda now: now is not EnginePhase.READY)
        assert app.engine_status().phase is EnginePhase.FAILED
        problem = app.engine_status().problem
        assert problem is not None
        assert problem.code is ProblemCode.ENGINE_GIVEN_UP
        end = finished(await turn(app, "are you there"))
        assert end.status is NodeStatus.FAILED
        assert end.problem is not None
        assert end.problem.code is ProblemCode.ENGINE_GIVEN_UP

    run(tmp_path, body)


def test_a_tool_call_is_run_hidden_and_not_repeated(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        await turn(app, "the deploy key lives in vault seven")
        events = await turn(app, "tool:vault")
        calls = [event for event in events if isinstance(event, ToolCalled)]
        assert calls[0].name == "memory_search"
        assert calls[0].ok
        assert "<tool_call>" not in shown(events)
        assert finished(events).status is NodeStatus.COMPLETE
        assert any("vault seven" in memory.excerpt for memory in finished(events).memories)

    run(tmp_path, body)


def test_a_call_that_ran_in_a_circle_is_made_with_its_first_round(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        await turn(app, "the deploy key lives in vault seven")
        events = await turn(app, "circle:vault")
        calls = [event for event in events if isinstance(event, ToolCalled)]
        assert [call.arguments for call in calls] == ["vault round and round"]
        end = finished(events)
        assert end.status is NodeStatus.COMPLETE
        assert end.stats.cut_calls == 0
        assert end.answer.content.startswith("scripted answer")

    run(tmp_path, body)


def test_a_model_that_says_nothing_is_asked_once_more(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        end = finished(await turn(app, "be silent please"))
        assert end.status is NodeStatus.COMPLETE
        assert end.answer.content.startswith("scripted answer")
        assert end.stats.rounds == 2

    run(tmp_path, body)


@pytest.mark.parametrize("text", ["", "   \n", "???", "->", "！？。"])
def test_a_question_without_words_is_refused_before_anything_is_stored(
    tmp_path: Path, text: str
) -> None:
    async def body(app: GrowBox) -> None:
        with pytest.raises(ProblemError) as caught:
            await turn(app, text)
        assert caught.value.problem.code is ProblemCode.EMPTY_QUESTION
        assert await app.library.conversations() == ()

    run(tmp_path, body)


def test_one_turn_at_a_time(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        async for event in app.ask(AskRequest(text="slow say:30")):
            if isinstance(event, TurnAccepted):
                with pytest.raises(ProblemError) as caught:
                    await turn(app, "me too")
                assert caught.value.problem.code is ProblemCode.BUSY

    run(tmp_path, body)


def test_a_second_instance_is_told_who_holds_the_folder(tmp_path: Path) -> None:
    async def body(_app: GrowBox) -> None:
        second = scripted(tmp_path)
        with pytest.raises(ProblemError) as caught:
            await second.start(lambda _progress: None)
        assert caught.value.problem.code is ProblemCode.DATA_LOCKED
        assert str(os.getpid()) in caught.value.problem.fields["owner"]
        await second.shutdown()

    run(tmp_path, body)


def test_a_megabyte_becomes_an_attachment_and_is_found(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        text = (
            "filler words go on and on. " * 40_000
            + "The launch code is zebra-seventeen. "
            + "x " * 9000
        )
        attachment = await app.attach(name="notes 笔记.txt", text=text)
        assert attachment.size_bytes > 1_000_000
        request = AskRequest(text="What is wrong with it?", attachments=(attachment,))
        end = finished([event async for event in app.ask(request)])
        assert end.memories[0].node_id == attachment.node_id  # read at once, head and tail
        assert end.memories[0].way == "jump"
        await app.settle(60)
        request = AskRequest(text="What is the launch code zebra?")
        events = [event async for event in app.ask(request)]
        end = finished(events)
        assert end.status is NodeStatus.COMPLETE
        found = [await app.mind.node(memory.node_id) for memory in end.memories]
        assert any(page and "zebra-seventeen" in page.content for page in found)
        node = await app.mind.node(attachment.node_id)
        assert node is not None
        assert node.content == text

    run(tmp_path, body)


@pytest.mark.parametrize("context_tokens", [2048, 4096])
def test_many_turns_and_long_questions_never_overflow(tmp_path: Path, context_tokens: int) -> None:
    async def body(app: GrowBox) -> None:
        conversation_id: ConversationId | None = None
        for number in range(12):
            words = " ".join(f"w{number}x{index}" for index in range(600 if number % 3 else 4000))
            events = await turn(app, f"say:40 {words}", conversation_id)
            end = finished(events)
            assert end.status is NodeStatus.COMPLETE, end.problem
            conversation_id = end.answer.conversation_id
            region = await app.mind.region(conversation_id)
            assert region.used_tokens <= region.window_tokens
            assert end.stats.prompt_tokens + region.reserve_tokens <= region.window_tokens
        assert conversation_id is not None
        assert len(await app.library.messages(conversation_id)) == 24

    run(tmp_path, body, context_tokens=context_tokens)


def test_a_lone_surrogate_in_a_question_is_no_accident(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        end = finished(await turn(app, "hello \udcff there"))
        assert end.status is NodeStatus.COMPLETE

    run(tmp_path, body)


def test_two_long_questions_in_a_row_fit(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        long = "say:900 " + " ".join(f"word{n}" for n in range(4000))
        first = finished(await turn(app, long))
        second = finished(await turn(app, long + " again", first.answer.conversation_id))
        assert second.status is NodeStatus.COMPLETE, second.problem

    run(tmp_path, body, context_tokens=4096)


def test_a_json_object_that_was_asked_for_is_an_answer() -> None:
    text = '{"name": "add", "arguments": {"a": 1}}'
    assert parse_tool_call(text, {"memory_search"}) is None
    assert parse_tool_call(text.replace("add", "memory_search"), {"memory_search"}) is not None


def test_paused_memory_recalls_nothing_by_any_way(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        await turn(app, "the deploy key lives in vault seven")
        await app.change_setting("memory.paused", True)
        end = finished(await turn(app, "tool:vault"))
        assert end.memories == ()

    run(tmp_path, body)


def test_a_question_that_cannot_be_stored_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def body(app: GrowBox) -> None:
        add, calls = Timeline.add, []

        def second_fails(*arguments: object, **options: object) -> object:
            calls.append(arguments)
            if len(calls) == 2:
                raise StorageError("full", tmp_path)
            return add(*arguments, **options)  # type: ignore[arg-type]

        monkeypatch.setattr(Timeline, "add", second_fails)
        with pytest.raises(ProblemError) as caught:
            await turn(app, "hello there")
        assert caught.value.problem.code is ProblemCode.DISK_FULL
        assert await app.library.conversations() == ()

    run(tmp_path, body)


def test_a_full_disk_keeps_the_answer_on_the_screen_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_arguments: object, **_options: object) -> None:
        raise StorageError("full", tmp_path)

    async def body(app: GrowBox) -> None:
        monkeypatch.setattr(MemoryEngine, "finish_answer", full)
        end = finished(await turn(app, "hello there"))
        assert end.answer.content == "scripted answer: hello there"
        assert end.status is NodeStatus.FAILED
        assert end.problem is not None
        assert end.problem.code is ProblemCode.DISK_FULL

    run(tmp_path, body)


def test_a_request_beside_a_question_does_not_drown_it_and_is_no_evidence(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        fact = "say:1 Our index database is called DuckDB, remember."
        await turn(app, fact)
        await app.settle(10)
        asked = "What is our index database called?"
        noise = "Now write a haiku about rivers, penguins, gravel, lanterns and umbrellas."
        mixed = finished(await turn(app, f"{asked} {noise}"))
        assert fact in [memory.excerpt for memory in mixed.memories]
        await app.settle(10)
        found = [memory.excerpt for memory in finished(await turn(app, asked)).memories]
        assert fact in found
        assert mixed.answer.reply_to is not None
        echo = await app.mind.node(mixed.answer.reply_to)
        assert echo is not None
        assert echo.content not in found or found.index(fact) < found.index(echo.content)

    run(tmp_path, body)
