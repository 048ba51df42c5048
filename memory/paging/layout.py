"""The two layouts of a context region: in which order resident blocks stand in the prompt. Pure logic.

`append_log`: turns and memories share one append-only sequence, so a turn only ever costs what is new. `tail_ring`, the
original design: the memories in load order, then a small ring of the newest turns. The ring stands behind the memories, so
each page-in, and each turn that falls out of the ring, costs the whole ring again. Source: design 4.3; seed items G20–G22.
"""

from __future__ import annotations

from collections.abc import Sequence

from memory.values import Block, BlockKind, Layout

RING_SHARE = 0.25
"""Most of the budget that the ring's turns may take; the newest turn always stays. The original calls it small and fixed."""


def prompt_order(layout: Layout, blocks: Sequence[Block]) -> tuple[Block, ...]:
    """Blocks, given in load order, as they stand in the prompt."""
    if layout is Layout.APPEND_LOG:
        return tuple(blocks)
    memories = [block for block in blocks if block.kind is BlockKind.MEMORY]
    speech = [block for block in blocks if block.kind is not BlockKind.MEMORY]
    return (*memories, *speech)


def ring_turns(blocks: Sequence[Block], budget: int, open_turn: int) -> frozenset[int]:
    """The newest turns whose words fit the ring; the open and the newest turn always do."""
    sizes: dict[int, int] = {}
    for block in blocks:
        if block.kind is not BlockKind.MEMORY:
            sizes[block.turn] = sizes.get(block.turn, 0) + block.tokens
    kept: set[int] = set()
    room = RING_SHARE * budget
    for turn in sorted(sizes, reverse=True):
        room -= sizes[turn]
        if room < 0 and kept and turn != open_turn:
            break
        kept.add(turn)
    return frozenset(kept)
