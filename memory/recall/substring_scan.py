"""The last way: a bounded substring scan, newest to oldest, for what no index has as a term.

Finds `->`, half words and punctuation. It never returns "something recent": without a needle there is no scan.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Set
from dataclasses import dataclass, field

from memory.storage.timeline import Timeline
from memory.text import folded, terms

_EDGE_MARKS = "?？!！。.,，、;；:：\"'“”‘’「」（）()… \t\n"
_SPLIT = re.compile(r"[\s?？!！。，、；：“”「」（）]+")
_PART_MIN = 4  # a shorter half word out of a longer question would match nearly everything


@dataclass(slots=True, kw_only=True)
class ScanOutcome:
    """Sequence numbers found, newest first, and how many nodes were read."""

    seqs: list[int] = field(default_factory=list)
    read: int = 0


def needles(text: str, unseen: Set[str] | None, shortest: int) -> tuple[str, tuple[str, ...]]:
    """What to look for: the whole question, and those of its words that no index can know.

    Half words are looked for only when the index knows no word of the question: "once" also stands in "concept".

    Args:
        text: the question.
        unseen: its terms that no node has; None when some term is known.
        shortest: characters of a needle at least.

    Returns:
        The whole text folded ("" when too short), and words that must *all* occur (none when nothing is unusual).
    """
    low = folded(text)
    whole = low.strip(_EDGE_MARKS) or low
    words = [w for w in (part.strip(_EDGE_MARKS) or part for part in _SPLIT.split(low)) if w]
    odd = [w for w in words if _is_odd(w, unseen) and len(w) >= shortest] if len(words) > 1 else []
    return (whole if len(whole) >= shortest else ""), tuple(dict.fromkeys(odd))


def _is_odd(word: str, unseen: Set[str] | None) -> bool:
    """A symbol, or a word whose terms no node has."""
    found = terms(word)
    if not found:
        return True
    return unseen is not None and len(word) >= _PART_MIN and all(t in unseen for t in found)


def scan(
    timeline: Timeline,
    whole: str,
    parts: tuple[str, ...],
    outcome: ScanOutcome,
    *,
    limits: tuple[int, int, int],
    messages: bool = False,
) -> Iterator[None]:
    """Fills `outcome`; yields between slices.

    Args:
        timeline: where to look.
        whole: the folded text; "" matches nothing.
        parts: folded words that must all occur; none match nothing.
        outcome: grows with each slice.
        limits: hits wanted, nodes read at most, nodes per slice.
        messages: only messages (search over conversations).
    """
    hits_max, rows_max, slice_rows = limits
    before = timeline.last_seq() + 1
    while (whole or parts) and outcome.read < rows_max and len(outcome.seqs) < hits_max:
        rows = timeline.newest_texts(before, slice_rows, messages=messages)
        if not rows:
            break
        for seq, content in rows:
            low = folded(content)
            if (whole and whole in low) or (parts and all(p in low for p in parts)):
                outcome.seqs.append(seq)
        outcome.read += len(rows)
        before = rows[-1][0]
        yield
