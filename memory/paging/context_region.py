"""The context region: an append-only list of resident blocks within a token budget. Pure logic, no I/O.

Invariants, checked by `check`: a block is in or removed – it never moves and never changes a byte; block ids and turns only
ascend; the tokens of all blocks never exceed the budget; queue and region hold the same ids; the newest turn and pins are
never victims. A *turn* is the unit that leaves as a whole (its user and assistant blocks with the memories inside); a memory
block may also leave alone. `compact` is the idle half of eviction: it makes room before anybody waits for it.

One switch, `layout`, says where blocks stand in the prompt (see `layout.py`). In `tail_ring` memories belong to no turn: they
leave alone, and turns that fall out of the ring leave at the next `make_room`. Source: design 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

from memory.config import PagingConfig
from memory.errors import BudgetExceeded, require
from memory.paging.index_queue import IndexQueue
from memory.paging.layout import prompt_order, ring_turns
from memory.values import (
    Block,
    BlockKind,
    Layout,
    NodeId,
    PointerKind,
    RegionState,
    ResidentBlock,
)

HEADROOM = 1.5
"""Against 1.0, on 32 sessions composed as for `bench paging`, 4,096 tokens: a fifth less is recomputed while somebody waits, a
seventh more in pauses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Unit:
    """What leaves together."""

    block_ids: tuple[int, ...]
    tokens: int
    heat: float


class ContextRegion:
    """The working set of one conversation."""

    def __init__(
        self,
        state: RegionState,
        config: PagingConfig,
        residents: Sequence[ResidentBlock] = (),
        *,
        layout: Layout = Layout.APPEND_LOG,
    ) -> None:
        self.state = state
        self.layout = layout
        self._config = config
        self._blocks: dict[int, Block] = {r.block.id: r.block for r in residents}
        self.queue = IndexQueue(config.half_life_turns)
        self.queue.restore(residents)

    # --- reading

    @property
    def blocks(self) -> tuple[Block, ...]:
        """Resident blocks in load order."""
        return tuple(self._blocks.values())

    @property
    def prompt(self) -> tuple[Block, ...]:
        """Resident blocks as they stand in the prompt."""
        return prompt_order(self.layout, self.blocks)

    @property
    def residents(self) -> tuple[ResidentBlock, ...]:
        """Blocks with their queue entries, to be persisted."""
        return tuple(self.resident(block_id) for block_id in self._blocks)

    def resident(self, block_id: int) -> ResidentBlock:
        """One of them."""
        heat, turn, pinned = self.queue.stored(block_id)
        return ResidentBlock(block=self._blocks[block_id], heat=heat, heat_turn=turn, pinned=pinned)

    @property
    def budget(self) -> int:
        """Tokens for blocks: the window without system prompt and answer reserve."""
        state = self.state
        return max(0, state.window_tokens - state.system_tokens - state.reserve_tokens)

    @property
    def used(self) -> int:
        """Tokens of all blocks."""
        return sum(block.tokens for block in self._blocks.values())

    def heat(self, block_id: int) -> float:
        """Decayed heat now."""
        return self.queue.heat(block_id, self.state.turn)

    # --- changing

    def next_turn(self) -> int:
        """Opens the next turn."""
        self.state = replace(self.state, turn=self.state.turn + 1)
        return self.state.turn

    def page_in(self, block: Block) -> ResidentBlock:
        """Appends a block; its `id` is ignored and given here.

        Raises:
            InvariantError: the caller has not made room, or the turn lies in the past.
        """
        newest = max((b.turn for b in self._blocks.values()), default=0)
        require(block.turn >= newest, "blocks are only appended to the newest turn or after it")
        require(block.tokens >= 0, "a block of negative size")
        require(self.used + block.tokens <= self.budget, "page_in without room")
        block = replace(block, id=self.state.next_block_id)
        self.state = replace(
            self.state,
            next_block_id=block.id + 1,
            turn=max(self.state.turn, block.turn),
            page_ins=self.state.page_ins + 1,
        )
        self._blocks[block.id] = block
        self.queue.enter(block.id, self._config.page_in_heat, self.state.turn)
        return self.resident(block.id)

    def make_room(self, needed: int) -> tuple[Block, ...]:
        """Removes the coldest down to the low watermark, if `needed` more tokens would not fit.

        Somebody waits for this and for the tail behind the hole, so the whole budget is used before it comes to that; the
        high watermark is what `compact` looks at.

        Raises:
            BudgetExceeded: not possible without the protected blocks; nothing is removed then.
        """
        victims = self._fallen()
        used = self.used - self._tokens(victims)
        if used + needed > self.budget:
            target = min(self._config.low_watermark * self.budget, self.budget - needed)
            victims = self._coldest(target, victims)
            used = self.used - self._tokens(victims)
            if used + needed > self.budget:
                raise BudgetExceeded(needed, max(0, self.budget - used))
        return self._remove(victims)

    def compact(self) -> tuple[Block, ...]:
        """Idle work: removes the coldest down to the low watermark, above the high one or when the next turn would not fit.

        Not earlier: the tail behind a hole is recomputed once for all that came since the last, so each hole must be worth it.
        """
        high = self._config.high_watermark * self.budget
        if self.used <= high and self.used + self.expected_turn() <= self.budget:
            return ()
        return self._remove(self._coldest(self._config.low_watermark * self.budget, ()))

    def expected_turn(self) -> int:
        """Tokens that the next turn may bring before its answer: nobody waits for the room of that.

        Taken to be `HEADROOM` times the largest of the last turns, at most half of the budget.
        """
        asked: dict[int, int] = {}
        for block in self._blocks.values():
            if block.kind is not BlockKind.ASSISTANT:
                asked[block.turn] = asked.get(block.turn, 0) + block.tokens
        recent = sorted(asked)[-self._config.recent_turns :]
        largest = max((asked[turn] for turn in recent), default=0)
        return min(int(HEADROOM * largest), self.budget // 2)

    def evict(self, block_id: int) -> tuple[Block, ...]:
        """Removes a block by hand – a memory alone, anything else with its turn.

        Pins and the newest turn stay: nothing is removed then. Unknown ids remove nothing.
        """
        block = self._blocks.get(block_id)
        if block is None or block.turn == self._newest_turn():
            return ()
        ids = [block_id] if block.kind is BlockKind.MEMORY else self._leaving_with(block.turn)
        if any(self.queue.pinned(i) for i in ids):
            return ()
        return self._remove(ids)

    def drop(self, block_ids: Iterable[int]) -> tuple[Block, ...]:
        """Removes exactly these, protected or not: their nodes are gone."""
        return self._remove([i for i in block_ids if i in self._blocks])

    def resize(self, *, window: int, system: int, reserve: int) -> tuple[Block, ...]:
        """Takes another budget, and removes whatever no longer fits: coldest first, protected turns next, pins last."""
        self.state = replace(
            self.state, window_tokens=window, system_tokens=system, reserve_tokens=reserve
        )
        victims: dict[int, None] = {}
        left = self.used
        for ids in self._retreat():
            if left <= self.budget:
                break
            fresh = [i for i in ids if i not in victims]
            victims.update(dict.fromkeys(fresh))
            left -= self._tokens(fresh)
        return self._remove(list(victims))

    def _retreat(self) -> Iterator[Sequence[int]]:
        """What leaves together, in the order in which a shrinking budget takes it."""
        for unit in self._units():
            yield unit.block_ids
        turns = sorted({b.turn for b in self._blocks.values()})
        for pinned in (False, True):
            for ids in map(self._turn_ids, turns):
                if any(self.queue.pinned(i) for i in ids) is pinned:
                    yield ids

    def warm(self, node_ids: Iterable[NodeId], amount: float) -> tuple[ResidentBlock, ...]:
        """Adds heat to the resident blocks of these nodes."""
        wanted = set(node_ids)
        warmed = [i for i, block in self._blocks.items() if block.node_id in wanted]
        for block_id in warmed:
            self.queue.warm(block_id, amount, self.state.turn)
        return tuple(self.resident(i) for i in warmed)

    def confirm(self, node_ids: Iterable[NodeId]) -> tuple[ResidentBlock, ...]:
        """Makes the placeholders of these nodes real; what is rendered does not change. Returns what changed."""
        wanted = set(node_ids)
        placeholders = [
            block
            for block in self._blocks.values()
            if block.node_id in wanted and block.pointer is PointerKind.PLACEHOLDER
        ]
        for block in placeholders:
            self._blocks[block.id] = replace(block, pointer=PointerKind.REAL)
        return tuple(self.resident(block.id) for block in placeholders)

    def retract(self, after_block_id: int) -> tuple[Block, ...]:
        """Removes every block that entered after this one, pinned or not: the turn they came for did not happen."""
        return self._remove([i for i in self._blocks if i > after_block_id])

    def pin(self, block_id: int, pinned: bool) -> ResidentBlock | None:
        """Sets or clears a pin; None for an unknown block."""
        if block_id not in self._blocks:
            return None
        self.queue.pin(block_id, pinned)
        return self.resident(block_id)

    def note_prompt(self, prompt_tokens: int, reused_tokens: int) -> None:
        """Remembers what the last prompt cost."""
        self.state = replace(self.state, prompt_tokens=prompt_tokens, reused_tokens=reused_tokens)

    def _remove(self, block_ids: Sequence[int]) -> tuple[Block, ...]:
        removed = tuple(self._blocks[i] for i in sorted(block_ids))
        for block in removed:
            del self._blocks[block.id]
            self.queue.leave(block.id)
        self.state = replace(self.state, evictions=self.state.evictions + len(removed))
        return removed

    # --- choosing victims

    def _newest_turn(self) -> int:
        return max((b.turn for b in self._blocks.values()), default=0)

    def _turn_ids(self, turn: int) -> list[int]:
        return [b.id for b in self._blocks.values() if b.turn == turn]

    def _leaving_with(self, turn: int) -> list[int]:
        """What leaves when the words of a turn do."""
        ids = self._turn_ids(turn)
        if self.layout is Layout.TAIL_RING:
            return [i for i in ids if self._blocks[i].kind is not BlockKind.MEMORY]
        return ids

    def _tokens(self, block_ids: Iterable[int]) -> int:
        return sum(self._blocks[i].tokens for i in block_ids)

    def _coldest(self, target: float, victims: Sequence[int]) -> list[int]:
        """`victims` and as many of the coldest units as it takes to come down to `target` tokens."""
        chosen = list(victims)
        used = self.used - self._tokens(chosen)
        for unit in self._units():
            if used <= target:
                break
            fresh = [i for i in unit.block_ids if i not in chosen]
            used -= self._tokens(fresh)
            chosen.extend(fresh)
        return chosen

    def _fallen(self) -> list[int]:
        """Words of turns that fell out of the ring; they leave whether there is room or not."""
        if self.layout is Layout.APPEND_LOG:
            return []
        turns = {b.turn for b in self._blocks.values()} - self.protected_turns()
        fallen = [self._leaving_with(turn) for turn in sorted(turns)]
        return [i for ids in fallen if not any(map(self.queue.pinned, ids)) for i in ids]

    def protected_turns(self) -> frozenset[int]:
        """The open turn, and as many of the last turns as fit their share of the budget; in `tail_ring`, the ring.

        A turn that has been opened and has no block yet is the open one: what came before it then counts as earlier, or a
        long question could never follow a long one.
        """
        if self.layout is Layout.TAIL_RING:
            return ring_turns(self.blocks, self.budget, self.state.turn)
        turns = sorted({b.turn for b in self._blocks.values()}, reverse=True)
        protected: set[int] = set()
        room = self._config.recent_share * self.budget
        for turn in turns[: self._config.recent_turns]:
            room -= self._tokens(self._turn_ids(turn))
            if room < 0 and turn != self.state.turn:
                break
            protected.add(turn)
        return frozenset(protected)

    def _units(self) -> list[_Unit]:
        """Everything that may leave, coldest first, oldest first among equals."""
        protected = self.protected_turns()
        stays = {self._newest_turn()} if self.layout is Layout.TAIL_RING else protected
        units = [
            self._unit([b.id])
            for b in self._blocks.values()
            if b.kind is BlockKind.MEMORY and b.turn not in stays and not self.queue.pinned(b.id)
        ]
        for turn in sorted({b.turn for b in self._blocks.values()} - protected):
            ids = self._leaving_with(turn)
            speech = [i for i in ids if self._blocks[i].kind is not BlockKind.MEMORY]
            if speech and not any(self.queue.pinned(i) for i in ids):
                units.append(replace(self._unit(ids), heat=self._unit(speech).heat))
        return sorted(units, key=lambda unit: (unit.heat, unit.block_ids[0]))

    def _unit(self, ids: Sequence[int]) -> _Unit:
        return _Unit(
            block_ids=tuple(ids),
            tokens=self._tokens(ids),
            heat=max(self.heat(i) for i in ids),
        )

    # --- checking

    def check(self) -> list[str]:
        """Broken invariants, in words; empty when all hold."""
        problems: list[str] = []
        ids = list(self._blocks)
        if ids != sorted(ids):
            problems.append("blocks are not in load order")
        turns = [b.turn for b in self._blocks.values()]
        if turns != sorted(turns):
            problems.append("turns are not in order")
        if self.queue.ids() != frozenset(ids):
            problems.append("queue and region hold different blocks")
        if self.used > self.budget:
            problems.append("the budget is exceeded")
        if ids and ids[-1] >= self.state.next_block_id:
            problems.append("a block id would be given twice")
        return problems
