"""The dream journal: the learning log as entries for people, and undo.

An entry is an event of the log: nothing is written twice. Undo appends an event; the fold then equals one without the undone one,
at once or – after a crash in between – at the next start. A conclusion that is taken back leaves recall in the same transaction.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice

from memory.engine.documents import Documents
from memory.engine.learning import Learning
from memory.rest_values import (
    BACKGROUND,
    Cause,
    JournalEntry,
    JournalFilter,
    JournalKind,
    JournalNode,
    JournalPage,
)
from memory.storage.intervals import Intervals, size
from memory.storage.learning_log import LearningEvent, LearningKind, LogFilter, Reading
from memory.storage.stores import Stores
from memory.text import title
from memory.values import Node, NodeId, debt_id

_SEEN = "journal_seen"  # the last event that was shown
_KINDS = {
    LearningKind.READ: JournalKind.READ,
    LearningKind.REHEARSED: JournalKind.REHEARSED,
    LearningKind.KNOWLEDGE: JournalKind.KNOWLEDGE,
    LearningKind.NOT_RELEVANT: JournalKind.REFUSED,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Names:
    """What a page of entries speaks of."""

    queries: Mapping[int, str]
    by_id: Mapping[NodeId, Node]
    by_seq: Mapping[int, Node]
    seen: int
    nodes_max: int

    def at(self, spans: Intervals) -> Iterator[Node | None]:
        """The first nodes of some places."""
        return (self.by_seq.get(seq) for seq in islice(_places(spans), self.nodes_max))


class DreamJournal:
    """Shows what was learned, and takes it back."""

    def __init__(self, stores: Stores, learning: Learning, documents: Documents) -> None:
        self._stores = stores
        self._learning = learning
        self._documents = documents

    def page(self, wanted: JournalFilter) -> JournalPage:
        """Entries, newest first."""
        found = self._stores.log.find(
            LogFilter(
                causes=wanted.causes,
                finds_only=wanted.finds_only,
                undone=wanted.undone,
                since_ms=wanted.since_ms,
                text=wanted.text,
                before_id=wanted.before_id,
            ),
            wanted.limit + 1,
        )
        shown = found[: wanted.limit]
        names = self._names(shown, wanted.nodes_max)
        return JournalPage(
            entries=tuple(self._entry(event, names) for event in shown),
            more=len(found) > wanted.limit,
            unseen=self.unseen(),
        )

    def unseen(self) -> int:
        """Background changes since the journal was last seen."""
        return self._stores.log.count_after(self._seen(), BACKGROUND)

    def mark_seen(self) -> None:
        """All that is there now was seen; durable."""
        self._stores.database.set_meta(_SEEN, str(self._stores.log.last_id()))

    def _seen(self) -> int:
        return int(self._stores.database.meta(_SEEN) or 0)

    # --- entries

    def _names(self, events: Iterable[LearningEvent], nodes_max: int) -> _Names:
        queries: set[int] = set()
        ids: set[NodeId] = set()
        seqs: set[int] = set()
        for event in events:
            reading = event.reading or Reading()
            queries |= {event.query, reading.asked, reading.cluster}
            ids |= {*event.sources, *event.targets}
            for spans in (reading.no, reading.unclear):
                seqs |= {*islice(_places(spans), nodes_max)}
            seqs |= {*reading.yes}
        nodes = self._stores.timeline.nodes(sorted(ids))
        found = (self._stores.timeline.node_at(seq) for seq in sorted(seqs))
        return _Names(
            queries=self._stores.log.texts(sorted(queries)),
            by_id=nodes,
            by_seq={node.seq: node for node in found if node is not None},
            seen=self._seen(),
            nodes_max=nodes_max,
        )

    def _entry(self, event: LearningEvent, names: _Names) -> JournalEntry:
        reading = event.reading or Reading()
        record = event.kind is LearningKind.KNOWLEDGE
        made = names.by_id.get(event.targets[0]) if record and event.targets else None
        return JournalEntry(
            id=event.id,
            at_ms=event.created_at_ms,
            cause=event.cause,
            kind=_kind(event.kind, reading),
            question=names.queries.get(reading.asked or event.query, ""),
            judge=reading.judge,
            yes=() if record else self._nodes(names.by_id.get(i) for i in event.targets),
            no=self._nodes(names.at(reading.no)),
            no_count=size(reading.no),
            sources=self._nodes(names.by_id.get(i) for i in event.sources),
            debt_id=None if reading.debt is None else debt_id(*reading.debt),
            record_id=None if made is None else made.id,
            record="" if made is None else made.content,
            undone=event.undone,
            new=event.cause in BACKGROUND and event.id > names.seen,
            unclear=self._nodes(names.at(reading.unclear)),
            unclear_count=size(reading.unclear),
        )

    def _nodes(self, nodes: Iterable[Node | None]) -> tuple[JournalNode, ...]:
        """What was forgotten since is not named."""
        limit = self._stores.config.paging.title_characters_max
        return tuple(
            JournalNode(seq=node.seq, title=title(node.content, limit), node_id=node.id)
            for node in nodes
            if node is not None
        )

    # --- undo

    def undo(self, entry_id: int) -> bool:
        """Takes an entry back; False where there is none, or it is taken back already."""
        gone: list[int] = []
        with self._stores.database.transaction():
            event = self._learning.take_back(entry_id)
            if event is None:
                return False
            if event.kind is LearningKind.KNOWLEDGE:
                gone = [n.seq for n in self._stores.timeline.nodes(event.targets).values()]
                self._documents.take_out(gone)
        self._stores.scan.forget(gone)
        self._learning.tell(LearningKind.UNDO, Cause.USER)
        self._learning.fold()
        return True


def _kind(kind: LearningKind, reading: Reading) -> JournalKind:
    if reading.paid:
        return JournalKind.DEBT_CLEARED
    if reading.unclear:
        return JournalKind.PUT_ASIDE
    return JournalKind.REOPENED if reading.reopened else _KINDS.get(kind, JournalKind.POINTED)


def _places(spans: Intervals) -> Iterator[int]:
    return (seq for first, last in spans for seq in range(first, last + 1))
