"""The linear scan: the past from a cursor backwards, as batches for the judge.

Skipped is only what this judge has answered no for this cluster of questions, and what can never be an answer. A node that may
become one later – on a stored branch, still being written, excluded now – is passed over, but never stained.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from memory.recall.evidence import Evidence
from memory.recall.exact_run import Lead, Run
from memory.recall.pointer_walk import PointerWalk
from memory.storage import intervals
from memory.storage.intervals import Intervals
from memory.storage.stores import Stores
from memory.storage.timeline import Place
from memory.values import Node


@dataclass(slots=True, kw_only=True)
class Batch:
    """Nodes for the judge, newest first, and dead ones beside them; the scan has come down to `cursor`."""

    cursor: int
    leads: list[Lead] = field(default_factory=list)
    dead: list[int] = field(default_factory=list)
    ended: bool = False


class PastScan:
    """Reads batches downwards from `before` to above `floor`."""

    def __init__(self, stores: Stores, walk: PointerWalk, run: Run, floor: int) -> None:
        self._stores = stores
        self._walk = walk
        self._run = run
        self._floor = floor
        self._known: Intervals = () if run.query.forced else run.book.answered
        self._nature = Evidence(stores.timeline, "", frozenset())

    def fill(self, batch: Batch, size: int) -> Iterator[None]:
        """Fills a batch of at most `size`; yields between slices. `batch.ended` says that nothing is left."""
        while len(batch.leads) < size:
            if batch.cursor - 1 <= self._floor:
                batch.ended = True
                return
            stain = intervals.holding(self._known, batch.cursor - 1)
            if stain is not None:
                self._skip(batch, stain)
                continue
            rows_max = self._stores.config.exact.scan_rows
            above = max(self._floor, intervals.highest_below(self._known, batch.cursor))
            places = self._stores.timeline.window(batch.cursor, above, rows_max)
            end = above + 1 if len(places) < rows_max else places[-1].seq
            self._take(batch, places, size)
            if len(batch.leads) < size:
                batch.cursor = end
                yield

    def _skip(self, batch: Batch, stain: tuple[int, int]) -> None:
        first = max(stain[0], self._floor + 1)
        known = self._stores.timeline.recallable_count(first, batch.cursor - 1)
        self._run.cached += known
        self._run.notes_read += known
        batch.cursor = first

    def _take(self, batch: Batch, places: list[Place], size: int) -> None:
        nodes = self._stores.timeline.recallable([p.seq for p in places if p.recallable])
        vetoed = self._walk.vetoed([n.id for n in nodes.values()], self._run.question)
        for place in places:
            batch.cursor = place.seq
            node = nodes.get(place.seq)
            if node is None:
                if place.settled:
                    batch.dead.append(place.seq)
            elif not self._nature.admits(node):
                batch.dead.append(place.seq)
            elif node.id not in vetoed and self._may_be_judged(node):
                batch.leads.append(Lead(node=node))
                if len(batch.leads) == size:
                    return

    def _may_be_judged(self, node: Node) -> bool:
        return (
            node.seq not in self._run.seen
            and node.id not in self._run.query.rejected
            and self._run.evidence.admits(node)
        )
