"""Small pure text rules of the engine process: embedding input, and loops in an answer."""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence


def clean_for_embedding(text: str) -> str:
    """NFKC, then every run of white space becomes one space.

    Source: reference `e5_pack.md`: full-width text otherwise drops to cosine 0.95, a raw newline costs 0.008.
    """
    return " ".join(unicodedata.normalize("NFKC", text).split())


def degenerate(ids: Sequence[int], *, window: int = 320, period_max: int = 64) -> bool:
    """True when the last `window` ids are one sequence of at most `period_max` over and over; no honest text does that."""
    if len(ids) < window:
        return False
    tail = ids[-window:]
    if len(set(tail)) > period_max:
        return False
    return any(
        all(tail[i] == tail[i - period] for i in range(period, window))
        for period in range(1, period_max + 1)
    )
