"""Regions through the facade: durable, restored byte for byte, told about."""

from __future__ import annotations

import pytest

from memory.errors import BudgetExceeded, InvariantError
from memory.events import FatigueChanged, QueueChanged, RegionChanged
from memory.values import BlockKind, PointerKind
from tests.fakes.memory_world import MemoryWorld


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


def open_region(world, conversation, *, window=1200, tokenizer="t"):
    world.engine.open_region(
        conversation,
        window_tokens=window,
        system_tokens=100,
        reserve_tokens=100,
        tokenizer=tokenizer,
    )


def take_turn(world, conversation, tokens=100, memory=None):
    turn = world.engine.next_turn(conversation)
    if memory is not None:
        world.engine.page_in(
            conversation,
            turn=turn,
            kind=BlockKind.MEMORY,
            node_id=memory.id,
            text=memory.content,
            tokens=10,
            reason="gate",
            pointer=PointerKind.PLACEHOLDER,
        )
    node = world.say(f"turn {turn} 数据", conversation)
    return world.engine.page_in(
        conversation,
        turn=turn,
        kind=BlockKind.USER,
        node_id=node.id,
        text=f"[{turn}] text",
        tokens=tokens,
        token_ids=(turn, 2, 3),
    )


def test_a_region_comes_back_byte_for_byte(world, conversation):
    memory = world.say("a memory")
    take_turn(world, conversation, memory=memory)
    take_turn(world, conversation)
    world.engine.warm(conversation, [memory.id], 2.5)
    world.engine.pin(conversation, 1, True)
    world.engine.note_prompt(conversation, prompt_tokens=300, reused_tokens=210)
    before = (world.engine.blocks(conversation), world.engine.region(conversation))
    queue = world.engine.queue(conversation)
    world.reopen()
    assert world.engine.blocks(conversation) == before[0]
    open_region(world, conversation)
    assert world.engine.region(conversation) == before[1]
    assert world.engine.queue(conversation) == queue
    assert world.engine.next_turn(conversation) == 3


def test_the_snapshot_shows_what_is_cached_and_titled(world, conversation):
    take_turn(world, conversation)
    take_turn(world, conversation)
    world.engine.note_prompt(conversation, prompt_tokens=320, reused_tokens=200)
    shown = world.engine.region(conversation)
    assert [(b.cached, b.title) for b in shown.blocks] == [
        (True, "turn 1 数据"),
        (False, "turn 2 数据"),
    ]
    assert shown.used_tokens == 300
    assert (shown.page_ins, shown.evictions) == (2, 0)


def test_another_tokenizer_drops_the_blocks(world, conversation):
    take_turn(world, conversation)
    open_region(world, conversation, tokenizer="other")
    assert world.engine.blocks(conversation) == ()
    world.reopen()
    assert world.engine.blocks(conversation) == ()


def test_a_smaller_window_evicts_and_a_larger_one_does_not(world, conversation):
    for _ in range(8):
        take_turn(world, conversation)
    open_region(world, conversation, window=2000)
    assert len(world.engine.blocks(conversation)) == 8
    open_region(world, conversation, window=500)
    assert [b.turn for b in world.engine.blocks(conversation)] == [6, 7, 8]


def test_make_room_evicts_in_one_batch_and_says_so(world, conversation):
    for _ in range(9):
        take_turn(world, conversation)
    world.events.events.clear()
    removed = world.engine.make_room(conversation, 200)
    assert len(removed) > 1
    (event,) = world.events.of(RegionChanged)
    assert event.evicted == len(removed)
    assert world.events.of(FatigueChanged)
    assert world.engine.fatigue().eviction > 0
    world.reopen()
    assert len(world.engine.blocks(conversation)) == 9 - len(removed)


def test_too_much_is_said_with_numbers(world, conversation):
    take_turn(world, conversation, tokens=900)
    with pytest.raises(BudgetExceeded) as caught:
        world.engine.make_room(conversation, 500)
    assert caught.value.available == 100


def test_page_in_without_room_is_our_bug(world, conversation):
    take_turn(world, conversation, tokens=900)
    with pytest.raises(InvariantError):
        take_turn(world, conversation, tokens=200)


def test_warm_tells_and_orders_the_queue(world, conversation):
    first = take_turn(world, conversation)
    take_turn(world, conversation)
    world.engine.warm(conversation, [first.node_id], 3.0)
    assert world.events.of(QueueChanged)
    assert world.engine.queue(conversation).entries[0].block_id == first.id


def test_evict_by_hand(world, conversation):
    first = take_turn(world, conversation)
    second = take_turn(world, conversation)
    assert world.engine.evict(conversation, second.id) == ()
    assert world.engine.evict(conversation, first.id) == (first,)
    assert world.engine.blocks(conversation) == (second,)


def test_each_conversation_has_its_own(world, conversation):
    other = world.conversation()
    open_region(world, other)
    take_turn(world, conversation)
    assert world.engine.blocks(other) == ()
    assert world.engine.next_turn(other) == 1


def test_no_region_is_an_empty_picture(world):
    assert world.engine.region(None).blocks == ()
    assert world.engine.queue(None).entries == ()
    assert world.engine.region(world.conversation()).window_tokens == 0
    with pytest.raises(InvariantError):
        world.engine.next_turn(world.conversation())


def test_ledger_and_fatigue_are_at_rest(world):
    world.say("x")
    assert (world.engine.ledger().open, world.engine.ledger().nodes) == ((), 1)
    assert world.engine.fatigue().total == 0.0
