"""The index queue: one pointer per resident block, ordered by heat. Pure logic.

Heat is a count of hits that halves every `half_life_turns` turns: turns are the region's own clock, so replaying a
conversation gives the same victims, and a laptop that slept a week has not gone cold. The queue never touches text; ranking
happens here, outside the prompt. Source: design law 2 and 4.3.
"""

from __future__ import annotations

from collections.abc import Iterable

from memory.errors import require
from memory.values import ResidentBlock


class IndexQueue:
    """Heat and pins by block id."""

    def __init__(self, half_life_turns: float) -> None:
        self._half_life = half_life_turns
        self._entries: dict[int, tuple[float, int, bool]] = {}

    def enter(self, block_id: int, heat: float, turn: int, *, pinned: bool = False) -> None:
        """A block became resident."""
        require(block_id not in self._entries, "a block entered the queue twice")
        self._entries[block_id] = (heat, turn, pinned)

    def leave(self, block_id: int) -> None:
        """A block was removed."""
        require(block_id in self._entries, "a block left the queue that was not in it")
        del self._entries[block_id]

    def ids(self) -> frozenset[int]:
        """What is in the queue – exactly what is in the region."""
        return frozenset(self._entries)

    def heat(self, block_id: int, turn: int) -> float:
        """Decayed heat as of a turn."""
        heat, since, _ = self._entries[block_id]
        return float(heat * 0.5 ** (max(0, turn - since) / self._half_life))

    def warm(self, block_id: int, amount: float, turn: int) -> None:
        """Adds a hit."""
        pinned = self._entries[block_id][2]
        self._entries[block_id] = (self.heat(block_id, turn) + amount, turn, pinned)

    def pinned(self, block_id: int) -> bool:
        """True for a pin."""
        return self._entries[block_id][2]

    def pin(self, block_id: int, pinned: bool) -> None:
        """Sets or clears a pin."""
        heat, since, _ = self._entries[block_id]
        self._entries[block_id] = (heat, since, pinned)

    def stored(self, block_id: int) -> tuple[float, int, bool]:
        """(heat, turn of that heat, pinned), to be persisted."""
        return self._entries[block_id]

    def restore(self, residents: Iterable[ResidentBlock]) -> None:
        """Takes persisted entries."""
        for resident in residents:
            self.enter(resident.block.id, resident.heat, resident.heat_turn, pinned=resident.pinned)
