"""The context region and its queue, by example; the state machine in `property` does the rest."""

from __future__ import annotations

import pytest

from memory.config import PagingConfig
from memory.errors import BudgetExceeded, InvariantError
from memory.paging.context_region import ContextRegion
from memory.values import Block, BlockKind, NodeId, PointerKind, RegionState


def region_of(budget: int = 1000) -> ContextRegion:
    state = RegionState(
        window_tokens=budget + 200, system_tokens=100, reserve_tokens=100, tokenizer="t"
    )
    return ContextRegion(state, PagingConfig())


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


def test_below_the_high_watermark_nothing_is_evicted():
    region = region_of()
    for turn in range(1, 9):
        page_in(region, turn, 100)
    assert region.make_room(100) == ()


def test_above_it_one_batch_goes_down_to_the_low_one():
    region = region_of()
    for turn in range(1, 19):
        page_in(region, turn, 50)
    removed = region.make_room(100)
    assert region.used == 500
    assert [block.turn for block in removed] == list(range(1, 9))


def test_the_coldest_go_first_and_a_hit_saves():
    region = region_of()
    for turn in range(1, 19):
        page_in(region, turn, 50)
    region.warm([NodeId("n1")], 5.0)
    region.make_room(100)
    assert turns_left(region) == {1, *range(10, 19)}


def test_protected_turns_stay_even_when_the_low_mark_is_missed():
    region = region_of()
    for turn in range(1, 10):
        page_in(region, turn, 100)
    region.make_room(100)
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
    assert [block.turn for block in region.make_room(50)] == [1]


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
