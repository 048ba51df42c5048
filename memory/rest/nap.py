"""Nap: what leaves a region when the user clears the working set. Pure.

A nap clears the working set and the caches, and nothing else: timeline, pointers, jumps, fragments, anchors, stains, records and
settings stay. Of a region pins stay, and the newest turns that are protected anyway: the conversation goes on. Source: design 4.6.
"""

from __future__ import annotations

from memory.paging.context_region import ContextRegion
from memory.values import Block


def clear(region: ContextRegion) -> tuple[Block, ...]:
    """Evicts everything that may leave; returns it."""
    protected = region.protected_turns()
    removed: list[Block] = []
    for block in region.blocks:
        if block.turn not in protected:
            removed.extend(region.evict(block.id))  # those that left with their turn remove nothing
    return tuple(removed)
