"""Small pure text rules of the engine process: embedding input, and loops in an answer."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence


def clean_for_embedding(text: str) -> str:
    """NFKC, then every run of white space becomes one space.

    Source: reference `e5_pack.md`: full-width text otherwise drops to cosine 0.95, a raw newline costs 0.008.
    """
    return " ".join(unicodedata.normalize("NFKC", text).split())


LIST_NUMBER = re.compile(r"^\d+(?:[.)、:：]\s*|\Z)")
ITEMS_ALIKE, ITEM_CHARACTERS_MIN = 5, 4
"""So many items of a list in a row are the same, and so long."""


def lists_the_same(text: str) -> bool:
    """True when the last lines are items of a list with numbers that go on and words that do not."""
    lines = [line.strip() for line in text.split("\n") if line.strip()][-ITEMS_ALIKE:]
    items = {LIST_NUMBER.sub("", line) for line in lines if LIST_NUMBER.match(line)}
    numbered = len(set(lines)) == ITEMS_ALIKE and len(items) == 1
    return numbered and len(items.pop()) >= ITEM_CHARACTERS_MIN


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
