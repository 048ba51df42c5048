"""The system clock; the only place that reads it."""

from __future__ import annotations

import time


class SystemClock:
    """Implements `memory.ports.Clock`."""

    def now_ms(self) -> int:
        """UTC milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    def monotonic_s(self) -> float:
        """Seconds that never go backwards."""
        return time.monotonic()
