"""Sets of sequence numbers as closed intervals: sorted, disjoint, with a gap between any two. Pure functions.

What was read is kept as intervals, because a search reads neighbours: ten thousand nodes are one pair of numbers.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from typing import TypeAlias

Interval: TypeAlias = tuple[int, int]  # first and last, both included
Intervals: TypeAlias = tuple[Interval, ...]


def united(*sets: Iterable[Interval]) -> Intervals:
    """The union; neighbours without a gap become one."""
    merged: list[Interval] = []
    for first, last in sorted(interval for part in sets for interval in part):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(merged[-1][1], last))
        else:
            merged.append((first, last))
    return tuple(merged)


def of(numbers: Iterable[int]) -> Intervals:
    """The intervals of some numbers."""
    return united((n, n) for n in numbers)


def remaining(whole: Interval, covered: Intervals) -> Intervals:
    """What of an interval is not covered."""
    left: list[Interval] = []
    at, end = whole
    for first, last in covered:
        if last < at:
            continue
        if first > end:
            break
        if first > at:
            left.append((at, first - 1))
        at = last + 1
    if at <= end:
        left.append((at, end))
    return tuple(left)


def size(intervals: Iterable[Interval]) -> int:
    """How many numbers."""
    return sum(last - first + 1 for first, last in intervals)


def holding(intervals: Sequence[Interval], number: int) -> Interval | None:
    """The interval that holds a number."""
    at = bisect_right(intervals, number, key=lambda interval: interval[0]) - 1
    return intervals[at] if at >= 0 and intervals[at][1] >= number else None


def highest_below(intervals: Sequence[Interval], number: int) -> int:
    """The largest number below `number` that some interval holds; 0 when there is none."""
    at = bisect_right(intervals, number - 1, key=lambda interval: interval[0]) - 1
    return min(intervals[at][1], number - 1) if at >= 0 else 0


def bounded(intervals: Intervals, limit: int) -> Intervals:
    """At most so many: the shortest go first, then the oldest. Forgetting costs a second reading, never a find."""
    if len(intervals) <= limit:
        return intervals
    kept = sorted(intervals, key=lambda i: (i[1] - i[0], i[0]), reverse=True)[:limit]
    return tuple(sorted(kept))
