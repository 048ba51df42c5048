"""The pager against a plain model: random page-ins, hits, pins, evictions, resizings and restarts.

The model keeps blocks in a list and chooses victims by the words of design 4.3, written anew, for both layouts. The same machine
is run on pagers with planted bugs: it must catch every one of them, or it proves nothing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory.config import PagingConfig
from memory.errors import BudgetExceeded
from memory.paging.context_region import HEADROOM, ContextRegion
from memory.paging.layout import RING_SHARE
from memory.values import Block, BlockKind, Layout, NodeId, RegionState

CONFIG = PagingConfig()


@dataclass
class Slot:
    """The model's block."""

    block: Block
    heat: float
    turn_of_heat: int
    pinned: bool = False


class PagingMachine(RuleBasedStateMachine):
    """Subclasses set `region_type` to a pager with a bug."""

    region_type: type[ContextRegion] = ContextRegion
    layout = Layout.APPEND_LOG

    @initialize(budget=st.integers(50, 400))
    def start(self, budget):
        state = RegionState(
            window_tokens=budget + 30, system_tokens=20, reserve_tokens=10, tokenizer="t"
        )
        self.region = self.region_type(state, CONFIG, layout=self.layout)
        self.slots: list[Slot] = []
        self.budget = budget
        self.turn = 0
        self.timeline: set[NodeId] = set()
        self.evicted: set[NodeId] = set()

    # --- the model

    def heat(self, slot: Slot) -> float:
        age = max(0, self.turn - slot.turn_of_heat)
        return slot.heat * 0.5 ** (age / CONFIG.half_life_turns)

    def used(self) -> int:
        return sum(slot.block.tokens for slot in self.slots)

    def in_turn(self, turn: int) -> list[Slot]:
        return [slot for slot in self.slots if slot.block.turn == turn]

    def protected(self) -> set[int]:
        turns = sorted({slot.block.turn for slot in self.slots})[::-1][: CONFIG.recent_turns]
        kept, size = set(), 0
        for turn in turns:
            size += sum(slot.block.tokens for slot in self.in_turn(turn))
            if turn != self.turn and size > CONFIG.recent_share * self.budget:
                break
            kept.add(turn)
        return kept

    def fallen(self) -> list[Slot]:
        """What leaves although there is room."""
        return []

    def unit_of(self, slot: Slot) -> list[Slot]:
        """What leaves with a block that is evicted by hand."""
        return [slot] if slot.block.kind is BlockKind.MEMORY else self.in_turn(slot.block.turn)

    def prompt(self) -> list[Block]:
        return [slot.block for slot in self.slots]

    def victims(self) -> list[list[Slot]]:
        units = []
        for turn in {slot.block.turn for slot in self.slots} - self.protected():
            slots = self.in_turn(turn)
            speech = [s for s in slots if s.block.kind is not BlockKind.MEMORY]
            units += [
                (self.heat(slot), slot.block.id, [slot])
                for slot in slots
                if slot.block.kind is BlockKind.MEMORY and not slot.pinned
            ]
            if speech and not any(slot.pinned for slot in slots):
                hottest = max(self.heat(slot) for slot in speech)
                units.append((hottest, slots[0].block.id, slots))
        return [slots for _, _, slots in sorted(units, key=lambda unit: unit[:2])]

    def remove(self, slots: Sequence[Slot]) -> None:
        gone = {slot.block.id for slot in slots}
        self.evicted |= {slot.block.node_id for slot in slots}
        self.slots = [slot for slot in self.slots if slot.block.id not in gone]

    # --- rules

    @rule()
    def next_turn(self):
        self.turn = self.region.next_turn()

    @rule(
        kind=st.sampled_from(list(BlockKind)),
        tokens=st.integers(0, 90),
        text=st.text(max_size=5),
    )
    def page_in(self, kind, tokens, text):
        turn = max(1, self.turn)
        self.make_room(tokens)
        if self.used() + tokens > self.budget:
            return
        node_id = NodeId(f"n{len(self.timeline)}")
        self.timeline.add(node_id)
        block = Block(
            id=0, turn=turn, kind=kind, node_id=node_id, text=text, tokens=tokens, loaded_at_ms=1
        )
        resident = self.region.page_in(block)
        self.turn = max(self.turn, turn)
        self.slots.append(Slot(resident.block, CONFIG.page_in_heat, self.turn))

    @rule(turns=st.integers(2, 5), tokens=st.integers(5, 30))
    def talk(self, turns, tokens):
        for _ in range(turns):
            self.next_turn()
            for kind in (BlockKind.MEMORY, BlockKind.USER, BlockKind.ASSISTANT):
                self.page_in(kind, tokens, "talk")

    def cooled(self, target: float, gone: list[Slot]) -> list[Slot]:
        """`gone` and the coldest, until no more than `target` is left."""
        gone = list(gone)
        for unit in self.victims():
            if self.used() - sum(s.block.tokens for s in gone) <= target:
                break
            gone += [slot for slot in unit if slot not in gone]
        return gone

    @rule(needed=st.integers(0, 200))
    def make_room(self, needed):
        gone = self.fallen()
        if self.used() - sum(s.block.tokens for s in gone) + needed > self.budget:
            target = min(CONFIG.low_watermark * self.budget, self.budget - needed)
            gone = self.cooled(target, gone)
        left = self.used() - sum(s.block.tokens for s in gone)
        if left + needed > self.budget:
            with pytest.raises(BudgetExceeded) as caught:
                self.region.make_room(needed)
            assert caught.value.available == self.budget - left
            return
        removed = self.region.make_room(needed)
        assert {block.id for block in removed} == {slot.block.id for slot in gone}
        assert not any(slot.pinned for slot in gone)
        self.remove(gone)

    @rule()
    def compact(self):
        asked = [slot for slot in self.slots if slot.block.kind is not BlockKind.ASSISTANT]
        turns = sorted({slot.block.turn for slot in asked})[-CONFIG.recent_turns :]
        sizes = [sum(s.block.tokens for s in asked if s.block.turn == turn) for turn in turns]
        coming = min(int(HEADROOM * max(sizes, default=0)), self.budget // 2)
        gone: list[Slot] = []
        if self.used() > CONFIG.high_watermark * self.budget or self.used() + coming > self.budget:
            gone = self.cooled(CONFIG.low_watermark * self.budget, [])
        removed = self.region.compact()
        assert {block.id for block in removed} == {slot.block.id for slot in gone}
        self.remove(gone)

    @precondition(lambda self: self.slots)
    @rule(data=st.data(), amount=st.floats(0.1, 3))
    def hit(self, data, amount):
        slot = data.draw(st.sampled_from(self.slots))
        self.region.warm([slot.block.node_id], amount)
        slot.heat, slot.turn_of_heat = self.heat(slot) + amount, self.turn

    @precondition(lambda self: self.slots)
    @rule(data=st.data(), pinned=st.booleans())
    def pin(self, data, pinned):
        slot = data.draw(st.sampled_from(self.slots))
        self.region.pin(slot.block.id, pinned)
        slot.pinned = pinned

    @precondition(lambda self: self.slots)
    @rule(data=st.data())
    def evict(self, data):
        slot = data.draw(st.sampled_from(self.slots))
        newest = max(s.block.turn for s in self.slots)
        unit = self.unit_of(slot)
        stays = slot.block.turn == newest or any(s.pinned for s in unit)
        removed = self.region.evict(slot.block.id)
        assert {b.id for b in removed} == (set() if stays else {s.block.id for s in unit})
        if not stays:
            self.remove(unit)

    @rule(budget=st.integers(50, 400))
    def resize(self, budget):
        removed = self.region.resize(window=budget + 30, system=20, reserve=10)
        gone = {block.id for block in removed}
        pinned_turns = {s.block.turn for s in self.slots if s.pinned}
        kept_free = {
            s.block.turn
            for s in self.slots
            if s.block.turn not in pinned_turns and s.block.id not in gone
        }
        if any(s.pinned and s.block.id in gone for s in self.slots):
            assert not kept_free, "a pin left while something else could have"
        self.remove([s for s in self.slots if s.block.id in gone])
        self.budget = budget

    @rule()
    def close_and_reopen(self):
        residents = tuple(self.region.residents)
        self.region = self.region_type(self.region.state, CONFIG, residents, layout=self.layout)

    # --- invariants

    @invariant()
    def the_budget_holds(self):
        assert self.region.used == self.used() <= self.budget

    @invariant()
    def queue_and_region_hold_the_same(self):
        assert self.region.queue.ids() == {block.id for block in self.region.blocks}

    @invariant()
    def survivors_keep_order_and_text(self):
        assert self.region.blocks == tuple(slot.block for slot in self.slots)
        assert self.region.prompt == tuple(self.prompt())

    @invariant()
    def heat_and_pins_are_the_models(self):
        for slot in self.slots:
            assert self.region.heat(slot.block.id) == pytest.approx(self.heat(slot))
            assert self.region.queue.pinned(slot.block.id) == slot.pinned

    @invariant()
    def nothing_is_lost(self):
        resident = {block.node_id for block in self.region.blocks}
        assert resident | self.evicted == self.timeline

    @invariant()
    def the_open_turn_stays(self):
        turns = {slot.block.turn for slot in self.slots}
        assert self.turn not in turns or self.turn in self.region.protected_turns()

    @invariant()
    def the_region_finds_no_fault_itself(self):
        assert self.region.check() == []


class TailRingMachine(PagingMachine):
    """The other layout: memories in load order, then the words of the newest turns."""

    layout = Layout.TAIL_RING

    def speech(self, turn: int) -> list[Slot]:
        return [s for s in self.in_turn(turn) if s.block.kind is not BlockKind.MEMORY]

    def protected(self) -> set[int]:
        spoken = [t for t in sorted({s.block.turn for s in self.slots})[::-1] if self.speech(t)]
        kept, size = set(), 0
        for turn in spoken:
            size += sum(slot.block.tokens for slot in self.speech(turn))
            if size > RING_SHARE * self.budget and kept and turn != self.turn:
                break
            kept.add(turn)
        return kept

    def fallen(self) -> list[Slot]:
        out = {slot.block.turn for slot in self.slots} - self.protected()
        gone = [self.speech(turn) for turn in out]
        return [s for slots in gone if not any(x.pinned for x in slots) for s in slots]

    def unit_of(self, slot: Slot) -> list[Slot]:
        return [slot] if slot.block.kind is BlockKind.MEMORY else self.speech(slot.block.turn)

    def prompt(self) -> list[Block]:
        speech = [s.block for s in self.slots if s.block.kind is not BlockKind.MEMORY]
        return [s.block for s in self.slots if s.block.kind is BlockKind.MEMORY] + speech

    def victims(self) -> list[list[Slot]]:
        newest = max((slot.block.turn for slot in self.slots), default=0)
        units = [
            (self.heat(slot), slot.block.id, [slot])
            for slot in self.slots
            if slot.block.kind is BlockKind.MEMORY and slot.block.turn != newest and not slot.pinned
        ]
        for turn in {slot.block.turn for slot in self.slots} - self.protected():
            slots = self.speech(turn)
            if slots and not any(slot.pinned for slot in slots):
                units.append((max(map(self.heat, slots)), slots[0].block.id, slots))
        return [slots for _, _, slots in sorted(units, key=lambda unit: unit[:2])]

    @invariant()
    def the_open_turn_stays(self):
        turns = {s.block.turn for s in self.slots if s.block.kind is not BlockKind.MEMORY}
        assert self.turn not in turns or self.turn in self.region.protected_turns()


SETTINGS = settings(
    max_examples=150,
    stateful_step_count=30,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@pytest.mark.parametrize("machine", [PagingMachine, TailRingMachine])
def test_the_pager_is_the_model(machine):
    run_state_machine_as_test(machine, settings=SETTINGS)


# --- planted bugs: the test of the test


class _MovesAHit(ContextRegion):
    def warm(self, node_ids, amount):
        warmed = super().warm(node_ids, amount)
        for resident in warmed:
            self._blocks[resident.block.id] = self._blocks.pop(resident.block.id)
        return warmed


class _EvictsTheHottest(ContextRegion):
    def _units(self):
        return super()._units()[::-1]


class _LeaksTokens(ContextRegion):
    @property
    def used(self):
        return sum(block.tokens for block in self._blocks.values() if block.tokens < 80)


class _IgnoresPins(ContextRegion):
    def _units(self):
        units = super()._units()
        known = {i for unit in units for i in unit.block_ids}
        for block in self.blocks[:1]:
            if block.id not in known and block.turn not in self.protected_turns():
                units.insert(0, self._unit([block.id]))
        return units


class _RewritesText(ContextRegion):
    def next_turn(self):
        turn = super().next_turn()
        for block in self.blocks[:1]:
            self._blocks[block.id] = replace(block, text=f"{block.text} (turn {turn})")
        return turn


class _ForgetsToLeaveTheQueue(ContextRegion):
    def evict(self, block_id):
        removed = super().evict(block_id)
        for block in removed:
            self.queue.enter(block.id, 1.0, self.state.turn)
        return removed


class _ProtectsNothing(ContextRegion):
    def protected_turns(self):
        return frozenset()


class _CompactsTooLate(ContextRegion):
    def expected_turn(self):
        return 0


class _LetsWordsGoWithTheirMemories(ContextRegion):
    def _leaving_with(self, turn):
        return self._turn_ids(turn)


class _MixesTheLayouts(ContextRegion):
    @property
    def prompt(self):
        return self.blocks


class _KeepsTheRing(ContextRegion):
    def _fallen(self):
        return []


@pytest.mark.parametrize(
    ("machine", "bug"),
    [
        (PagingMachine, _MovesAHit),
        (PagingMachine, _EvictsTheHottest),
        (PagingMachine, _LeaksTokens),
        (PagingMachine, _IgnoresPins),
        (PagingMachine, _RewritesText),
        (PagingMachine, _ForgetsToLeaveTheQueue),
        (PagingMachine, _ProtectsNothing),
        (PagingMachine, _CompactsTooLate),
        (TailRingMachine, _LetsWordsGoWithTheirMemories),
        (TailRingMachine, _MixesTheLayouts),
        (TailRingMachine, _KeepsTheRing),
    ],
)
def test_the_machine_catches_a_planted_bug(machine, bug):
    buggy = type(f"With{bug.__name__}", (machine,), {"region_type": bug})
    quiet = settings(
        SETTINGS,
        print_blob=False,
        database=None,
        derandomize=True,
        max_examples=300,
        phases=[Phase.generate],  # caught is enough; shrinking takes minutes
        report_multiple_bugs=False,
    )
    with pytest.raises(BaseException) as caught:  # noqa: PT011 - any failure of the machine will do
        run_state_machine_as_test(buggy, settings=quiet)
    assert not isinstance(caught.value, KeyboardInterrupt | SystemExit)
