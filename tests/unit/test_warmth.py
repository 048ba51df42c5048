"""Preparing the likely next turn: what is warm when, what gives way, and what is never kept. The engine is scripted."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from pathlib import Path

import pytest

from growbox_app.api import AskRequest, EnginePhase, TurnAccepted, TurnFinished
from growbox_app.assistant import GrowBox
from growbox_app.engine import protocol as p
from growbox_app.engine.kv_files import KvFiles
from memory.config import MemoryConfig, PagingConfig
from memory.values import ConversationId
from tests.fakes import scripted_engine
from tests.fakes.application import Body, ask, run_application, scripted

SECONDS = 20.0


def run(tmp_path: Path, body: Body, *, context_tokens: int = 8192, **options: object) -> None:
    fields: dict[str, object] = {"idle_s": 0.0, "saving_power": lambda: False}
    run_application(
        lambda: scripted(tmp_path, **(fields | options)),
        body,
        {"models.context_tokens": context_tokens},
    )


async def talk(app: GrowBox, *texts: str) -> ConversationId:
    """A conversation of these questions; returns when all that follows them is done."""
    conversation_id: ConversationId | None = None
    for text in texts:
        conversation_id = (await ask(app, text, conversation_id)).answer.conversation_id
    assert await app.prepared(SECONDS)
    assert conversation_id is not None
    return conversation_id


async def cool_down(app: GrowBox, conversation_id: ConversationId) -> None:
    """Leaves nothing of a conversation, neither in the engine nor on disk."""
    await talk(app, "Something else.")
    await kv_files(app).forget([conversation_id])


async def prepared(app: GrowBox, conversation_id: ConversationId | None) -> None:
    app.prepare(conversation_id)
    assert await app.prepared(SECONDS)


def images(tmp_path: Path) -> tuple[set[str], set[str]]:
    """Names of conversations' images, and of system images."""
    names = {path.stem for path in (tmp_path / "data" / "kv").glob("*.kv")}
    system = {name for name in names if name.startswith("system-")}
    return names - system, system


def test_a_turn_leaves_system_images_and_a_warm_conversation(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        conversation_id = await talk(app, "The harbour has nine cranes. " * 9)
        own, system = images(tmp_path)
        assert own == {conversation_id}
        assert len(system) == 2  # English and Chinese
        end = await ask(app, "And how many ships?", conversation_id)
        region = await app.mind.region(conversation_id)
        before = [block.block.tokens for block in region.blocks if block.block.turn == 1]
        assert end.stats.reused_tokens >= region.system_tokens - 4 + sum(before)

    run(tmp_path, body)


@pytest.mark.parametrize("text", ["Which crane is the tallest?", "哪一台起重机最高？"])
def test_a_new_conversation_starts_from_the_system_image_after_a_restart(
    tmp_path: Path, text: str
) -> None:
    async def first(app: GrowBox) -> None:
        await talk(app, "The harbour has nine cranes.")

    async def second(app: GrowBox) -> None:
        end = await ask(app, text)
        region = await app.mind.region(end.answer.conversation_id)
        assert end.stats.reused_tokens >= region.system_tokens - 4
        assert region.system_tokens > 40

    run(tmp_path, first)
    run(tmp_path, second)


def test_a_new_conversation_of_a_project_starts_from_its_own_system_image(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()

    async def first(app: GrowBox) -> None:
        await app.library.open_project(folder)
        await talk(app, "The harbour has nine cranes.")
        assert len(images(tmp_path)[1]) == 4  # English and Chinese, in a project and in none

    async def second(app: GrowBox) -> None:
        project = await app.library.open_project(folder)
        app.prepare(None, project_id=project.id)
        assert await app.prepared(SECONDS)
        end = await ask(app, "Which crane is the tallest?", project_id=project.id)
        region = await app.mind.region(end.answer.conversation_id)
        assert end.stats.reused_tokens >= region.system_tokens - 4
        end = await ask(app, "And outside of it?")
        assert (
            await app.mind.region(end.answer.conversation_id)
        ).system_tokens < region.system_tokens

    run(tmp_path, first)
    run(tmp_path, second)


def test_the_shown_conversation_is_warm_after_a_restart_not_the_newest(tmp_path: Path) -> None:
    shown: list[ConversationId] = []

    async def first(app: GrowBox) -> None:
        shown.append(await talk(app, "The harbour has nine cranes. " * 9))
        await talk(app, "Another matter entirely.")

    async def second(app: GrowBox) -> None:
        await prepared(app, shown[0])
        end = await ask(app, "And ships?", shown[0])
        assert end.stats.reused_tokens >= 0.8 * end.stats.prompt_tokens

    run(tmp_path, first)
    run(tmp_path, second)


def test_going_on_without_a_window_restores_too(tmp_path: Path) -> None:
    shown: list[ConversationId] = []

    async def first(app: GrowBox) -> None:
        shown.append(await talk(app, "The harbour has nine cranes. " * 9))
        await talk(app, "Another matter entirely.")

    async def second(app: GrowBox) -> None:
        end = await ask(app, "And ships?", shown[0])  # the turn waits for the model itself
        assert end.stats.reused_tokens >= 0.8 * end.stats.prompt_tokens

    run(tmp_path, first)
    run(tmp_path, second)


def test_without_leave_to_compute_images_are_restored_and_nothing_is_read(tmp_path: Path) -> None:
    shown: list[ConversationId] = []

    async def first(app: GrowBox) -> None:
        shown.append((await ask(app, "The harbour has nine cranes. " * 9)).answer.conversation_id)
        assert await app.prepared(SECONDS)
        assert images(tmp_path) == (set(), set())

    async def second(app: GrowBox) -> None:
        await app.change_setting("models.prewarm", False)
        await prepared(app, shown[0])
        assert images(tmp_path) == ({shown[0]}, set())
        end = await ask(app, "And ships?", shown[0])
        assert end.stats.reused_tokens >= 0.8 * end.stats.prompt_tokens
        await cool_down(app, shown[0])
        await prepared(app, shown[0])
        end = await ask(app, "And trucks?", shown[0])
        region = await app.mind.region(shown[0])
        assert end.stats.reused_tokens < region.system_tokens + 20  # and part of a time stamp

    run(tmp_path, first, saving_power=lambda: True)
    run(tmp_path, second)


def test_idle_compaction_makes_room_before_the_next_turn_needs_it(tmp_path: Path) -> None:
    async def evictions(app: GrowBox, *, idle: bool) -> list[int]:
        """Blocks that left while somebody waited, turn by turn."""
        conversation_id: ConversationId | None = None
        waited: list[int] = []
        for number in range(30):
            before = (await app.mind.region(conversation_id)).evictions if conversation_id else 0
            end = await ask(app, f"Fact {number}: " + "quay crane ship " * 14, conversation_id)
            conversation_id = end.answer.conversation_id
            waited.append((await app.mind.region(conversation_id)).evictions - before)
            if idle:
                assert await app.prepared(SECONDS)
        return waited

    async def awake(app: GrowBox) -> None:
        assert sum(await evictions(app, idle=False)) > 0

    async def idle(app: GrowBox) -> None:
        assert sum(await evictions(app, idle=True)) == 0

    config = MemoryConfig(paging=PagingConfig(recent_turns=2))
    tiny = {"context_tokens": 2048, "config": config}
    run(tmp_path / "a", awake, idle_s=3600.0, **tiny)  # type: ignore[arg-type]
    run(tmp_path / "b", idle, **tiny)  # type: ignore[arg-type]


def test_a_turn_stops_what_is_being_prepared(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        conversation_id = await talk(app, "slow " * 700)
        other = await talk(app, "Short.")
        await cool_down(app, conversation_id)
        app.prepare(conversation_id)
        assert not await app.prepared(0)
        request = AskRequest(text="Now.", conversation_id=other)
        async with contextlib.aclosing(app.ask(request)) as events:
            async for event in events:
                if isinstance(event, TurnAccepted):
                    assert await app.prepared(0)  # it was dropped, not waited for
                    app.prepare(conversation_id)  # while a turn runs: a wish for later
                if isinstance(event, TurnFinished):
                    assert event.answer.content == "scripted answer: Now."
        assert await app.prepared(SECONDS)
        end = await ask(app, "More.", conversation_id)
        assert end.stats.reused_tokens >= 0.9 * end.stats.prompt_tokens

    run(tmp_path, body)


def test_a_restarted_engine_is_warmed_again(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        end = await ask(app, "The harbour has nine cranes. " * 9)
        conversation_id = end.answer.conversation_id
        await prepared(app, conversation_id)
        pid = app.engine_pid()
        assert pid is not None
        restarted = asyncio.Event()
        app.subscribe(lambda _event: restarted.set() if is_new(app, pid) else None)
        os.kill(pid, signal.SIGTERM)
        await restarted.wait()
        assert await app.prepared(SECONDS)
        assert await cached(app) >= 80

    run(tmp_path, body, idle_s=3600.0)


def is_new(app: GrowBox, pid: int) -> bool:
    return app.engine_status().phase is EnginePhase.READY and app.engine_pid() not in (None, pid)


async def cached(app: GrowBox) -> int:
    """Tokens in the engine's foreground context."""
    client = app._engine.client
    return (await client.request(p.Stats(id=client.next_id()), p.DoneStats)).cached_tokens


def test_a_turn_that_outlived_the_engine_can_still_be_saved(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        end = await ask(app, "die say:9")
        await kv_files(app).save(at_least=1)
        assert images(tmp_path)[0] == {end.answer.conversation_id}

    run(tmp_path, body, idle_s=3600.0)


def test_what_was_read_ahead_counts_as_unsaved(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        conversation_id = await talk(app, "crane " * 400)
        await cool_down(app, conversation_id)
        assert conversation_id not in images(tmp_path)[0]
        await prepared(app, conversation_id)
        await kv_files(app).save()
        assert conversation_id in images(tmp_path)[0]

    run(tmp_path, body)


def test_nothing_that_is_asked_to_be_prepared_can_fail(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        await prepared(app, ConversationId("unknown"))
        assert (await ask(app, "Hello.")).answer.content == "scripted answer: Hello."

    run(tmp_path, body)


@pytest.mark.parametrize("rewriting", [False, True])
def test_a_template_that_rewrites_history_is_told_and_logged_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, rewriting: bool
) -> None:
    async def body(app: GrowBox) -> None:
        await ask(app, "Hello.")
        assert app.engine_status().prefix_stable is not rewriting

    target = scripted_engine.run_rewriting if rewriting else scripted_engine.run
    run(tmp_path, body, engine_target=target)
    lines = [record for record in caplog.records if "rewrites history" in record.getMessage()]
    assert len(lines) == rewriting


class TestImages:
    """The folder of images, driven directly."""

    def test_forgetting_deletes_the_images_and_saves_no_new_one(self, tmp_path: Path) -> None:
        async def body(app: GrowBox) -> None:
            kept = await talk(app, "The harbour has nine cranes.")
            gone = await talk(app, "My secret is the number forty-two.")
            files = kv_files(app)
            await files.save(at_least=1)
            assert {kept, gone} <= images(tmp_path)[0]
            await ask(app, "Keep it to yourself.", gone)
            assert await app.prepared(SECONDS)
            await files.forget([gone])
            await files.save(at_least=1)
            assert images(tmp_path)[0] == {kept}
            assert not list((tmp_path / "data" / "kv").glob(f"{gone}*"))

        run(tmp_path, body)
        own = images(tmp_path)[0]
        assert len(own) == 1  # nor at the end

    def test_the_folder_is_bounded_and_system_images_go_last(self, tmp_path: Path) -> None:
        async def body(app: GrowBox) -> None:
            await app.change_setting("memory.kv_bytes_max", 0)
            for number in range(3):
                await talk(app, f"Matter {number}.")

        async def full(app: GrowBox) -> None:
            newest = await talk(app, "The last matter.")
            await kv_files(app).save(at_least=1)
            own, system = images(tmp_path)
            assert own == {newest}
            assert len(system) == 2

        run(tmp_path, body)
        run(tmp_path, full)


def kv_files(app: GrowBox) -> KvFiles:
    """The application's own."""
    return app._kv
