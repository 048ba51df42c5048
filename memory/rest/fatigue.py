"""Fatigue: how hard the memory has to work, from three pressures. Pure.

`total = 0.4·miss + 0.2·eviction + 0.4·debt`, each 0..1 over a sliding window, 0 without activity. Source: design 4.6, G26.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection

from memory.values import FatigueSnapshot

_MISS, _EVICTION, _DEBT = 0.4, 0.2, 0.4


class FatigueMeter:
    """Keeps the window of page traffic and the history of the total."""

    def __init__(self, *, window: int, history: int) -> None:
        self._traffic: deque[bool] = deque(maxlen=window)  # True: a page-in, False: an eviction
        self._history: deque[tuple[int, float]] = deque(maxlen=history)

    def paged_in(self) -> None:
        """One block entered a region."""
        self._traffic.append(True)

    def evicted(self, count: int) -> None:
        """Blocks left a region."""
        self._traffic.extend([False] * count)

    def snapshot(
        self, now_ms: int, *, accesses: Collection[bool], fragments: int, nodes: int
    ) -> FatigueSnapshot:
        """Reads the meter, and adds a point to the curve when the total has moved.

        Args:
            now_ms: UTC, for the curve.
            accesses: neighbour-cache accesses in the window, True for a hit.
            fragments: open debts.
            nodes: nodes on the timeline.
        """
        page_ins = sum(self._traffic)
        evictions = len(self._traffic) - page_ins
        miss = 1.0 - sum(accesses) / len(accesses) if accesses else 0.0
        eviction = min(1.0, evictions / max(1, page_ins))
        debt = min(1.0, fragments / nodes) if nodes else 0.0
        total = _MISS * miss + _EVICTION * eviction + _DEBT * debt
        if not self._history or self._history[-1][1] != total:
            self._history.append((now_ms, total))
        return FatigueSnapshot(
            total=total,
            miss=miss,
            eviction=eviction,
            debt=debt,
            accesses=len(accesses),
            history=tuple(self._history),
        )
