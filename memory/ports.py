"""Small protocols that the host supplies to the engine."""

from __future__ import annotations

from typing import Protocol


class Clock(Protocol):
    """Time, injected. Two implementations: the system's, and the tests' fake."""

    def now_ms(self) -> int:
        """UTC milliseconds since the epoch; may go backwards (the user sets the clock)."""
        ...

    def monotonic_s(self) -> float:
        """Seconds that never go backwards, for durations."""
        ...
