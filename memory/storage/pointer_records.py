"""The records of the pointer store, by key. All are values; every list in them is bounded by `LearningConfig`.

`e:<node>` the edges that leave a node, `r:<node>` the nodes whose edges lead to it, `v:<node>` for which queries it was called
not relevant, `q:<cluster>` what was read for a cluster of questions, and one record each of clusters, fragments and anchors.
"""

from __future__ import annotations

from typing import Final

import msgspec

from memory.storage import intervals
from memory.storage.intervals import Intervals

_SOURCE: Final = "e:"
_ARRIVING: Final = "r:"
_VETO: Final = "v:"
_CLUSTER: Final = "q:"
CLUSTERS_KEY: Final = "s:clusters"
LEDGER_KEY: Final = "s:fragments"
ANCHORS_KEY: Final = "s:anchors"


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """A past query (cluster id), how often it was seen, and when last (UTC ms)."""

    query: int
    weight: int
    used_at_ms: int


class Edge(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is known about following one pointer. `forced` is a jump, pinned by the user."""

    positive: tuple[Sample, ...] = ()
    negative: tuple[Sample, ...] = ()
    heat: int = 0
    forced: bool = False


class Book(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one judge has said for one cluster of questions.

    `no` are intervals in which every node was answered no, or can never be an answer; `yes` the nodes answered yes, each with
    the wording it was an answer to, newest last; `asked` the wordings that were judged, newest last. A search whose budget was used up leaves `cursor`, below which nothing was scanned (0: none did), and `newest`,
    above which nothing existed.
    """

    no: Intervals = ()
    yes: tuple[tuple[int, int], ...] = ()
    asked: tuple[int, ...] = ()
    cursor: int = 0
    newest: int = 0

    @property
    def answered(self) -> Intervals:
        """All that was read."""
        return intervals.united(self.no, intervals.of(seq for seq, _ in self.yes))


class Fragment(msgspec.Struct, frozen=True, array_like=True):
    """An interval between two nodes (both excluded) that a jump skipped unread, for a cluster of questions.

    `read` is what dreams have read of it. The debt keeps its own account, because the cluster's books are bounded: what they
    forget would be paid twice. `judges` have read what is left without a clear answer, the last one last.
    """

    entry: int
    target: int
    query: int
    created_at_ms: int
    read: Intervals = ()
    judges: tuple[str, ...] = ()

    @property
    def name(self) -> tuple[int, int]:
        """Unique in the ledger."""
        return self.entry, self.target

    def remaining(self, answered: Intervals) -> Intervals:
        """What is unread still, where the cluster's books hold `answered`."""
        return intervals.remaining(self.gap, intervals.united(answered, self.read))

    @property
    def gap(self) -> tuple[int, int]:
        """First and last sequence number between the two."""
        low, high = sorted((self.entry, self.target))
        return low + 1, high - 1


class Anchor(msgspec.Struct, frozen=True, array_like=True):
    """A far node that proved useful, pulled near. `level` is 1 or 2. Source: seed item G14."""

    target: str
    heat: int
    level: int
    used_at_ms: int


class Record(msgspec.Struct, frozen=True, omit_defaults=True):
    """What is kept under one key; the key says which parts are in use. An empty record is not kept at all.

    `fragments` are owed, `unclear` those that were put aside: read, without a clear answer to what is left.
    """

    edges: dict[str, Edge] = {}
    sources: tuple[str, ...] = ()
    books: dict[str, Book] = {}
    light: Intervals = ()
    clusters: tuple[int, ...] = ()
    fragments: tuple[Fragment, ...] = ()
    unclear: tuple[Fragment, ...] = ()
    cleared: int = 0
    anchors: tuple[Anchor, ...] = ()


EMPTY: Final = Record()


class Counts(msgspec.Struct, frozen=True):
    """Numbers of the whole store, kept beside it."""

    edges: int = 0
    jumps: int = 0
    stains: int = 0
    fragments: int = 0
    anchors: int = 0

    def changed(self, key: str, before: Record, after: Record) -> Counts:
        """After one record was replaced."""
        pairs = zip(msgspec.structs.astuple(self), _numbers(key, before), _numbers(key, after))  # noqa: B905 - one shape
        return Counts(*(total - old + new for total, old, new in pairs))


def _numbers(key: str, record: Record) -> tuple[int, int, int, int, int]:
    leaving = key.startswith(_SOURCE)
    return (
        len(record.edges) if leaving else 0,
        sum(edge.forced for edge in record.edges.values()) if leaving else 0,
        len(record.light) + sum(len(book.answered) for book in record.books.values()),
        len(record.fragments),
        len(record.anchors),
    )


def source_key(node_id: str) -> str:
    """Where a source's record is kept."""
    return _SOURCE + node_id


def arriving_key(node_id: str) -> str:
    """Where the sources of a target are kept."""
    return _ARRIVING + node_id


def veto_key(node_id: str) -> str:
    """Where a target's veto record is kept."""
    return _VETO + node_id


def cluster_key(cluster: int) -> str:
    """Where is kept what was read for a cluster of questions."""
    return f"{_CLUSTER}{cluster}"
