"""Fatigue: how hard the memory has to work, from three pressures. Pure.

`total = 0.4·miss + 0.2·eviction + 0.4·debt`, each 0..1, 0 without activity. Misses and evictions are counted over a sliding window
of accesses, debts are those open now. Window and curve outlive the program: whoever owns the meter keeps `state` and the points
that `due` names. Source: design 4.6, G26, without the defect 1.12-10.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Collection, Iterable

from memory.values import FatigueSnapshot

_MISS, _EVICTION, _DEBT = 0.4, 0.2, 0.4
_IN, _OUT = "+", "-"


class FatigueMeter:
    """Keeps the window of page traffic and the curve of the total."""

    def __init__(self, *, window: int, every_ms: int, span_ms: int) -> None:
        """Starts with nothing.

        Args:
            window: page-ins and evictions looked back on.
            every_ms: the curve has at most one kept point per so much time.
            span_ms: how far back the curve goes.
        """
        self._traffic: deque[bool] = deque(maxlen=window)  # True: a page-in, False: an eviction
        self._every_ms = every_ms
        self._span_ms = span_ms
        self._curve: dict[int, tuple[int, float]] = {}  # by slot of `every_ms`

    @property
    def state(self) -> str:
        """The window, for `restore`."""
        return "".join(_IN if entered else _OUT for entered in self._traffic)

    def restore(self, state: str, curve: Iterable[tuple[int, float]]) -> None:
        """Goes on where an earlier run of the program has stopped."""
        self._traffic.clear()
        self._traffic.extend(mark == _IN for mark in state if mark in (_IN, _OUT))
        self._curve = {time_ms // self._every_ms: (time_ms, total) for time_ms, total in curve}

    def paged_in(self) -> None:
        """One block entered a region."""
        self._traffic.append(True)

    def evicted(self, count: int) -> None:
        """Blocks left a region."""
        self._traffic.extend([False] * count)

    def rest(self) -> None:
        """The working set was cleared: the window begins anew, the curve stays."""
        self._traffic.clear()

    def snapshot(
        self, now_ms: int, *, accesses: Collection[bool], fragments: int, nodes: int
    ) -> FatigueSnapshot:
        """Reads the meter.

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
        self._point(now_ms, total)
        return FatigueSnapshot(
            total=total,
            miss=miss,
            eviction=eviction,
            debt=debt,
            accesses=len(accesses),
            history=tuple(sorted(self._curve.values())),
        )

    def _point(self, now_ms: int, total: float) -> None:
        """One point per slot: the newest. What is too old goes; so does what lies ahead, after the clock was set back."""
        slot = now_ms // self._every_ms
        oldest = (now_ms - self._span_ms) // self._every_ms
        self._curve[slot] = (now_ms, total)
        self._curve = {at: point for at, point in self._curve.items() if oldest < at <= slot}
