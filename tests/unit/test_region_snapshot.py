"""What a panel is told about blocks: whose words they are, which stay, what the last prompt had in its cache."""

from __future__ import annotations

import pytest

from memory.values import BlockKind, RegionSnapshot, Role
from tests.fakes.memory_world import MemoryWorld
from tests.unit.test_memory_regions import open_region, take_turn


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    yield world
    world.engine.close()


@pytest.fixture
def conversation(world):
    conversation = world.conversation()
    open_region(world, conversation)
    return conversation


def test_blocks_tell_whose_words_they_are_and_when_they_were_said(world, conversation):
    memory = world.say("a memory")
    take_turn(world, conversation, memory=memory)
    first = world.engine.region(conversation).blocks[0]
    assert first.block.kind is BlockKind.MEMORY
    assert first.role is Role.USER
    assert first.created_at_ms == memory.created_at_ms
    assert first.created_at_ms < first.block.loaded_at_ms


def test_the_last_turns_are_marked_as_staying(world, conversation):
    for _ in range(9):
        take_turn(world, conversation)
    marks = [shown.protected for shown in world.engine.region(conversation).blocks]
    assert marks == sorted(marks)
    assert marks[-1]
    assert not marks[0]


def test_the_newest_turn_was_never_in_the_cache(world, conversation):
    for _ in range(3):
        take_turn(world, conversation)
    assert world.engine.region(conversation).cached_tokens == 0
    world.engine.note_prompt(conversation, prompt_tokens=420, reused_tokens=400)
    shown = world.engine.region(conversation)
    assert shown.cached_tokens == shown.newest_turn_start == 300
    assert [block.cached for block in shown.blocks] == [True, True, False]
    world.engine.note_prompt(conversation, prompt_tokens=420, reused_tokens=150)
    assert world.engine.region(conversation).cached_tokens == 150


def test_a_window_without_blocks_has_its_boundary_behind_the_system_prompt():
    empty = RegionSnapshot(
        conversation_id=None,
        window_tokens=1_000,
        system_tokens=100,
        reserve_tokens=100,
        blocks=(),
        reused_tokens=400,
    )
    assert empty.newest_turn_start == empty.cached_tokens == 100
