"""The stain map as stretches of the timeline, to scale, and the part of it that is in view.

A place is a sequence number; every note is as wide as any other. Dates between known ones are interpolated, for the ticks only. A file
brings its own date, so that dates need not ascend.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby, pairwise

from growbox_app.text import tr
from memory.values import Depth, StainSnapshot
from ui.view_models import wording

NOTES_MIN = 8
"""Fewest notes in view: closer than that there is nothing more to see."""
ZOOM_STEP = 1.5
DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Stretch:
    """Notes `first_seq`..`last_seq`, both included, that were read equally well. `depth` None: never read."""

    first_seq: int
    last_seq: int
    depth: Depth | None
    clusters: int
    first_ms: int
    last_ms: int

    @property
    def notes(self) -> int:
        """How many notes it holds."""
        return self.last_seq - self.first_seq + 1


class Timeline:
    """A stain map that can be asked for any place. Thousands of spans cost nothing until they are looked at."""

    def __init__(self, snapshot: StainSnapshot) -> None:
        self.snapshot = snapshot
        self._starts = [span.first_seq for span in snapshot.spans]

    def at(self, seq: float) -> Stretch | None:
        """The stretch that holds a place: a span, or what lies unread between two."""
        snapshot = self.snapshot
        if not snapshot.nodes or not snapshot.first_seq <= seq < snapshot.last_seq + 1:
            return None
        place = bisect_right(self._starts, seq)
        before = snapshot.spans[place - 1] if place else None
        if before is not None and seq < before.last_seq + 1:
            return Stretch(
                first_seq=before.first_seq,
                last_seq=before.last_seq,
                depth=before.depth,
                clusters=before.clusters,
                first_ms=before.first_ms,
                last_ms=before.last_ms,
            )
        after = snapshot.spans[place] if place < len(self._starts) else None
        return Stretch(
            first_seq=before.last_seq + 1 if before else snapshot.first_seq,
            last_seq=after.first_seq - 1 if after else snapshot.last_seq,
            depth=None,
            clusters=0,
            first_ms=before.last_ms if before else snapshot.first_ms,
            last_ms=after.first_ms if after else snapshot.last_ms,
        )

    def time_at(self, seq: float) -> int:
        """When a note was written, about."""
        stretch = self.at(seq)
        if stretch is None:
            return self.snapshot.last_ms
        share = (seq - stretch.first_seq) / max(1, stretch.notes)
        return round(stretch.first_ms + (stretch.last_ms - stretch.first_ms) * share)

    def next_stretch(self, seq: int, step: int) -> int:
        """Where the next stretch begins; backwards first the beginning of this one. The last place at the end."""
        here = self.at(seq)
        if here is None:
            return seq
        if step > 0:
            return min(here.last_seq + 1, self.snapshot.last_seq)
        before = self.at(here.first_seq - 1)
        return here.first_seq if seq > here.first_seq or before is None else before.first_seq

    def runs(self, view: InView, width: int) -> tuple[tuple[int, int, Depth], ...]:
        """What to paint, as (first pixel, end, depth). A span is never thinner than a pixel, and deep is never hidden by light."""
        columns = bytearray(width)
        first = max(0, bisect_right(self._starts, view.start) - 1)
        last = bisect_right(self._starts, view.start + view.notes)
        inside = self.snapshot.spans[first:last]
        for rank, depth in enumerate(_RANKS, start=1):
            for span in inside:
                if span.depth is depth:
                    left = min(max(0, round(view.place(span.first_seq) * width)), width)
                    end = min(max(0, round(view.place(span.last_seq + 1) * width)), width)
                    end = max(end, min(left + 1, width)) if view.place(span.last_seq + 1) > 0 else 0
                    columns[left:end] = bytes([rank]) * max(0, end - left)
        return tuple(_grouped(columns))


_RANKS = (Depth.LIGHT, Depth.DEEP)


def _grouped(columns: bytearray) -> Iterator[tuple[int, int, Depth]]:
    at = 0
    for rank, group in groupby(columns):
        end = at + sum(1 for _column in group)
        if rank:
            yield at, end, _RANKS[rank - 1]
        at = end


@dataclass(frozen=True, slots=True, kw_only=True)
class InView:
    """The part of the timeline `low`..`high` that is shown: from `start`, `notes` wide, never beyond its ends."""

    low: int
    high: int
    start: float
    notes: float

    @property
    def whole(self) -> bool:
        """Whether all of it is shown."""
        return self.notes >= self.high - self.low

    def place(self, seq: float) -> float:
        """Where a note begins, as a share of the width."""
        return (seq - self.start) / self.notes

    def seq(self, share: float) -> int:
        """The note at a share of the width."""
        return min(max(int(self.start + share * self.notes), self.low), self.high - 1)

    def zoomed(self, factor: float, share: float = 0.5) -> InView:
        """Nearer (`factor` above 1) or farther, with the place at `share` staying where it is."""
        notes = min(max(self.notes / factor, NOTES_MIN), self.high - self.low)
        return _in_bounds(self.low, self.high, self.start + share * (self.notes - notes), notes)

    def panned(self, share: float) -> InView:
        """Moved by a share of what is shown."""
        return _in_bounds(self.low, self.high, self.start + share * self.notes, self.notes)

    def holding(self, seq: int) -> InView:
        """Moved as little as needed to show a note."""
        start = min(self.start, seq)
        start = max(start, seq + 1 - self.notes)
        return _in_bounds(self.low, self.high, start, self.notes)


def _in_bounds(low: int, high: int, start: float, notes: float) -> InView:
    return InView(low=low, high=high, start=min(max(start, low), high - notes), notes=notes)


def all_of(snapshot: StainSnapshot) -> InView:
    """The whole timeline."""
    high = snapshot.last_seq + 1
    notes = max(1, high - snapshot.first_seq)
    return InView(low=snapshot.first_seq, high=high, start=snapshot.first_seq, notes=notes)


def kept(view: InView, snapshot: StainSnapshot) -> InView:
    """The same part of a timeline that has grown; who saw all of it sees all of it."""
    whole = all_of(snapshot)
    if view.whole:
        return whole
    notes = min(view.notes, whole.notes)
    return _in_bounds(whole.low, whole.high, view.start, notes)


def ticks(
    timeline: Timeline, view: InView, count: int, now_ms: int
) -> tuple[tuple[float, str], ...]:
    """(share of the width, date) for at most `count` places; a date that says nothing new is left out."""
    shares = [(at + 0.5) / count for at in range(count)]
    times = [timeline.time_at(view.start + share * view.notes) for share in shares]
    if not times:
        return ()
    same_days = max(times) - min(times) < 2 * DAY_MS
    words = [
        wording.clock_time(moment, now_ms) if same_days else wording.day(moment, now_ms)
        for moment in times
    ]
    made = [(shares[0], words[0])]
    made += [
        (share, word)
        for share, (before, word) in zip(shares[1:], pairwise(words), strict=True)
        if word != before
    ]
    return tuple(made)


def dates(first_ms: int, last_ms: int, now_ms: int) -> str:
    """`3 Mar – 12 Mar`, the earlier first; one date when both are the same day."""
    first_ms, last_ms = sorted((first_ms, last_ms))
    first, last = wording.day(first_ms, now_ms), wording.day(last_ms, now_ms)
    return first if first == last else tr("stains.dates", first=first, last=last)


def describe(stretch: Stretch, now_ms: int) -> str:
    """When, how many notes, and how well they were read."""
    parts = [
        dates(stretch.first_ms, stretch.last_ms, now_ms),
        wording.counted("stains.notes", stretch.notes),
        tr(f"stains.{stretch.depth or 'none'}"),
    ]
    if stretch.clusters:
        parts.append(wording.counted("stains.clusters", stretch.clusters))
    return " · ".join(parts)


def summary(snapshot: StainSnapshot) -> str:
    """`12 % deep · 30 % light`."""
    if not snapshot.nodes:
        return ""
    total = max(1, snapshot.last_seq - snapshot.first_seq + 1)
    shares = dict.fromkeys(Depth, 0)
    for span in snapshot.spans:
        shares[span.depth] += span.last_seq - span.first_seq + 1
    return " · ".join(
        tr(f"stains.share_{depth}", share=wording.percent(notes / total))
        for depth, notes in shares.items()
    )
