"""The context region and its queue, by example; the state machine in `property` does the rest."""

from __future__ import annotations

import pytest

from memory.config import PagingConfig
from memory.errors import BudgetExceeded, InvariantError
from memory.paging.context_region import ContextRegion
from memory.values import Block, BlockKind, Layout, NodeId, PointerKind, RegionState


def region_of(budget: int = 1000, layout: Layout = Layout.APPEND_LOG) -> ContextRegion:
    state = RegionState(
        window_tokens=budget + 200, system_tokens=100, reserve_tokens=100, tokenizer="t"
    )
    return ContextRegion(state, PagingConfig(), layout=layout)


def page_in(
    region: ContextRegion, turn: int, tokens: int, kind: BlockKind = BlockKind.USER, node: str = ""
) -> int:
    block = Block(
        id=0,
        turn=turn,
        kind=kind,
        node_id=NodeId(node or f"n{turn}"),
        text=f"text {turn} {kind}",
        tokens=tokens,
        loaded_at_ms=0,
        pointer=PointerKind.REAL,
    )
    return region.page_in(block).block.id


def turns_left(region: ContextRegion) -> set[int]:
    return {block.turn for block in region.blocks}


def test_what_fits_evicts_nothing():
    region = region_of()
    for turn in range(1, 10):
        page_in(region, turn, 100)
    assert region.make_room(100) == ()


def test_what_does_not_fit_takes_one_batch_down_to_the_low_mark():
    region = region_of()
    for turn in range(1, 20):
        page_in(region, turn, 50)
    removed = region.make_room(100)
    assert region.used == 500
    assert [block.turn for block in removed] == list(range(1, 10))


def test_idle_work_compacts_above_the_high_mark():
    region = region_of()
    for turn in range(1, 19):
        page_in(region, turn, 50)
    assert region.compact() == ()
    page_in(region, 19, 1)
    assert [block.turn for block in region.compact()] == list(range(1, 10))
    assert region.used == 451
    assert region.compact() == ()


def test_idle_work_makes_room_for_a_turn_like_the_last_ones_before_it_comes():
    region = region_of()
    for turn in range(1, 8):
        page_in(region, turn, 100)
    page_in(region, 8, 120)
    assert region.expected_turn() == 180
    assert region.compact() == ()  # 820 and 180 more just fit
    page_in(region, 8, 1, BlockKind.ASSISTANT)
    assert region.expected_turn() == 180, "nobody waits for the room of an answer"
    assert region.compact()
    assert region.make_room(180) == ()


def test_idle_work_never_takes_what_is_protected():
    region = region_of()
    page_in(region, 1, 40)
    page_in(region, 2, 950)
    region.pin(1, True)
    assert region.compact() == ()


def test_the_coldest_go_first_and_a_hit_saves():
    region = region_of()
    for turn in range(1, 19):
        page_in(region, turn, 50)
    region.warm([NodeId("n1")], 5.0)
    region.make_room(101)
    assert turns_left(region) == {1, *range(10, 19)}


def test_protected_turns_stay_even_when_the_low_mark_is_missed():
    region = region_of()
    for turn in range(1, 10):
        page_in(region, turn, 100)
    region.make_room(101)
    assert turns_left(region) == {5, 6, 7, 8, 9}


def test_heat_halves_with_the_turns():
    region = region_of()
    block = page_in(region, 1, 10)
    for _ in range(8):
        region.next_turn()
    assert region.heat(block) == pytest.approx(0.5, rel=0.1)


def test_recent_turns_are_protected_as_far_as_they_fit_half():
    region = region_of()
    for turn in range(1, 10):
        page_in(region, turn, 100)
    assert region.protected_turns() == {9, 8, 7, 6, 5}


def test_a_huge_newest_turn_is_protected_all_the_same():
    region = region_of()
    page_in(region, 1, 100)
    page_in(region, 2, 800)
    assert region.protected_turns() == {2}
    assert [block.turn for block in region.make_room(150)] == [1]


def test_impossible_room_evicts_nothing_and_says_what_there_is():
    region = region_of()
    page_in(region, 1, 100)
    page_in(region, 2, 800)
    with pytest.raises(BudgetExceeded) as caught:
        region.make_room(500)
    assert (caught.value.needed, caught.value.available) == (500, 200)
    assert turns_left(region) == {1, 2}


def test_a_turn_takes_its_memories_with_it():
    region = region_of()
    memory = page_in(region, 1, 10, BlockKind.MEMORY, "m")
    user = page_in(region, 1, 10)
    page_in(region, 2, 10)
    assert {block.id for block in region.evict(user)} == {memory, user}


def test_a_memory_may_leave_alone():
    region = region_of()
    memory = page_in(region, 1, 10, BlockKind.MEMORY, "m")
    page_in(region, 1, 10)
    page_in(region, 2, 10)
    assert [block.id for block in region.evict(memory)] == [memory]


def test_a_turn_with_a_pin_and_the_newest_turn_stay():
    region = region_of()
    memory = page_in(region, 1, 10, BlockKind.MEMORY, "m")
    user = page_in(region, 1, 10)
    newest = page_in(region, 2, 10)
    region.pin(memory, True)
    assert region.evict(user) == ()
    assert region.evict(memory) == ()
    assert region.evict(newest) == ()
    assert region.evict(999) == ()


def test_page_in_without_room_or_into_the_past_is_our_bug():
    region = region_of()
    page_in(region, 2, 900)
    with pytest.raises(InvariantError):
        page_in(region, 2, 200)
    with pytest.raises(InvariantError):
        page_in(region, 1, 1)


def test_a_smaller_window_evicts_until_it_fits_pins_last():
    region = region_of()
    ids = [page_in(region, turn, 100) for turn in range(1, 10)]
    region.pin(ids[0], True)
    region.resize(window=450, system=100, reserve=100)
    assert region.used <= 250
    assert turns_left(region) == {1, 9}
    region.resize(window=350, system=100, reserve=100)
    assert turns_left(region) == {1}
    region.resize(window=250, system=100, reserve=100)
    assert turns_left(region) == set()
    assert region.check() == []


def test_ids_and_turns_are_never_given_twice():
    region = region_of()
    first = page_in(region, 1, 10)
    page_in(region, 2, 10)
    region.evict(first)
    assert page_in(region, 2, 10) == 3
    assert region.next_turn() == 3


# --- tail_ring: memories in load order, then a ring of the newest turns


def ring_of(turns: int, tokens: int = 50) -> ContextRegion:
    region = region_of(layout=Layout.TAIL_RING)
    for turn in range(1, turns + 1):
        page_in(region, turn, 10, BlockKind.MEMORY, f"m{turn}")
        page_in(region, turn, tokens)
    return region


def test_append_log_stands_as_it_was_loaded():
    region = region_of()
    page_in(region, 1, 10)
    page_in(region, 1, 10, BlockKind.MEMORY, "m")
    assert region.prompt == region.blocks


def test_tail_ring_stands_memories_first():
    region = ring_of(3)
    assert [block.node_id for block in region.prompt] == ["m1", "m2", "m3", "n1", "n2", "n3"]
    assert [block.node_id for block in region.blocks] == ["m1", "n1", "m2", "n2", "m3", "n3"]


def test_turns_that_fell_out_of_the_ring_leave_although_there_is_room():
    region = ring_of(8)
    assert region.protected_turns() == {4, 5, 6, 7, 8}
    assert [block.node_id for block in region.make_room(10)] == ["n1", "n2", "n3"]
    assert [block.node_id for block in region.prompt[:8]] == [f"m{n}" for n in range(1, 9)]


def test_a_turn_longer_than_the_ring_stays_while_it_is_the_newest():
    region = ring_of(2, tokens=400)
    assert region.protected_turns() == {2}
    assert [block.node_id for block in region.make_room(1)] == ["n1"]


def test_a_pin_keeps_words_that_fell_out_of_the_ring():
    region = ring_of(8)
    region.pin(2, True)  # n1
    assert [block.node_id for block in region.make_room(10)] == ["n2", "n3"]


def test_memories_leave_the_region_by_heat_not_with_their_turn():
    region = region_of(layout=Layout.TAIL_RING)
    for turn in range(1, 19):
        page_in(region, turn, 50, BlockKind.MEMORY, f"m{turn}")
        page_in(region, turn, 2)
    region.warm([NodeId("m1")], 5.0)
    removed = {block.node_id for block in region.make_room(101)}
    assert "m1" not in removed
    assert {"m2", "m3"} <= removed
    assert region.used <= 500
    assert region.check() == []


def test_words_evicted_by_hand_leave_their_memories():
    region = ring_of(3)
    assert [block.node_id for block in region.evict(2)] == ["n1"]
    assert region.prompt[0].node_id == "m1"
