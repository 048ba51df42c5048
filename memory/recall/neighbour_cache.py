"""The neighbour cache: a bounded LFU over edge records. Acceleration only, never truth.

Its hit rate over the last accesses is a term of fatigue. Source: seed item G13, design 1 ("TLB").
"""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Callable, Iterable

from memory.storage.pointer_records import Record, source_key


class NeighbourCache:
    """Edges by source node id."""

    def __init__(self, read: Callable[[str], Record], *, entries_max: int, window: int) -> None:
        self._read = read
        self._entries_max = entries_max
        self._records: dict[str, Record] = {}
        self._uses: Counter[str] = Counter()
        self.accesses: deque[bool] = deque(maxlen=window)
        self.hits = 0
        self.misses = 0
        self.evictions = 0

    def edges(self, source: str) -> Record:
        """The record of a source, from memory when it is there."""
        hit = source in self._records
        self.accesses.append(hit)
        self.hits += hit
        self.misses += not hit
        if not hit:
            if len(self._records) >= self._entries_max:
                self._evict()
            self._records[source] = self._read(source)
        self._uses[source] += 1
        return self._records[source]

    def __len__(self) -> int:
        return len(self._records)

    def _evict(self) -> None:
        self.evictions += 1
        coldest = min(self._records, key=lambda source: self._uses[source])
        del self._records[coldest]
        del self._uses[coldest]

    def invalidate(self, keys: Iterable[str]) -> None:
        """Forgets records whose keys (as the pointer store names them) have changed."""
        changed = set(keys)
        for source in [s for s in self._records if source_key(s) in changed]:
            del self._records[source]
            del self._uses[source]

    def clear(self) -> None:
        """Forgets all."""
        self._records.clear()
        self._uses.clear()
