"""A clock that only moves when told to."""

from __future__ import annotations


class FakeClock:
    """Implements `memory.ports.Clock`; `now_ms` ticks by one at each reading so that order is visible."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self._now_ms = now_ms
        self._monotonic_s = 0.0

    def now_ms(self) -> int:
        self._now_ms += 1
        return self._now_ms

    def monotonic_s(self) -> float:
        return self._monotonic_s

    def advance(self, seconds: float) -> None:
        """Both clocks move on."""
        self._now_ms += int(seconds * 1000)
        self._monotonic_s += seconds

    def set_back(self, seconds: float) -> None:
        """The user sets the wall clock back; durations go on."""
        self._now_ms -= int(seconds * 1000)
