"""Acts of learning: appended to the log (truth), then folded into the pointer store (derived)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from memory.errors import StorageError
from memory.events import LearningRecorded, StoreTrouble
from memory.recall.neighbour_cache import NeighbourCache
from memory.recall.pointer_walk import Question
from memory.recall.recent_queries import RecentQueries
from memory.rest_values import Cause
from memory.storage.learning_log import LearningEvent, LearningKind, Reading
from memory.storage.stores import Stores
from memory.text import normalise
from memory.values import Node, NodeId


class Learning:
    """Writes what the user's questions have taught."""

    def __init__(self, stores: Stores, recent: RecentQueries, cache: NeighbourCache) -> None:
        self._stores = stores
        self._recent = recent
        self._cache = cache

    def used(self, query: str, question_id: NodeId, targets: Iterable[NodeId]) -> None:
        """The targets answered the query: an edge leads to each from the question and from recall's entries."""
        self._learn(LearningKind.USED, query, (question_id,), tuple(dict.fromkeys(targets)))

    def cited(self, query: str, question_id: NodeId, target: NodeId) -> None:
        """The user pinned the target to the question: a jump, and the strongest way of being used."""
        self._learn(LearningKind.CITED, query, (question_id,), (target,))

    def not_relevant(self, query: str, target: NodeId) -> None:
        """The target had nothing to do with the query; it stays away from questions like it."""
        self._learn(LearningKind.NOT_RELEVANT, query, (), (target,))

    def read(
        self,
        question: Question,
        *,
        cluster: int | None,
        sources: Sequence[NodeId],
        found: Sequence[NodeId],
        reading: Reading,
        cause: Cause,
    ) -> int:
        """A batch of a search of the past; None: the question is the first of its cluster. Returns the cluster."""
        with self._stores.database.transaction():
            query = self._stores.log.keep(question.text, question.vector)
            self._stores.log.append(
                LearningKind.READ,
                query=query.cluster,
                sources=sources[: self._stores.config.learning.sources_per_event] if found else (),
                targets=found,
                reading=msgspec.structs.replace(
                    reading, cluster=cluster or query.id, asked=query.id
                ),
                cause=cause,
            )
        self._stores.sink.emit(LearningRecorded(kind=LearningKind.READ, cause=cause))
        self.fold()
        return cluster or query.id

    def rehearsed(
        self, question: Question, *, sources: Sequence[NodeId], target: Node, judge: str
    ) -> None:
        """A question posed ahead of time: pointers lead to the note that answers it, as if it had been asked."""
        with self._stores.database.transaction():
            query = self._stores.log.keep(question.text, question.vector)
            self._stores.log.append(
                LearningKind.REHEARSED,
                query=query.cluster,
                sources=sources[: self._stores.config.learning.sources_per_event],
                targets=(target.id,),
                reading=Reading(
                    cluster=query.cluster, asked=query.id, judge=judge, yes=(target.seq,)
                ),
                cause=Cause.REHEARSAL,
            )
        self._stores.sink.emit(LearningRecorded(kind=LearningKind.REHEARSED, cause=Cause.REHEARSAL))
        self.fold()

    def concluded(self, question: str, record: NodeId, writer: str) -> None:
        """A conclusion was recorded. The caller holds the transaction, tells of it and folds after it."""
        query = self._stores.log.keep(question, None)
        self._stores.log.append(
            LearningKind.KNOWLEDGE,
            query=query.cluster,
            targets=(record,),
            reading=Reading(judge=writer, asked=query.id),
            cause=Cause.FLYWHEEL,
        )

    def tell(self, kind: LearningKind, cause: Cause) -> None:
        """Says that something was learned, after its commit."""
        self._stores.sink.emit(LearningRecorded(kind=kind, cause=cause))

    def take_back(self, event_id: int) -> LearningEvent | None:
        """Undoes an act; None where there is none to undo. The caller holds the transaction, and folds after it."""
        event = self._stores.log.event(event_id)
        if event is None or not self._stores.log.take_back(event_id):
            return None
        if event.kind in (LearningKind.USED, LearningKind.CITED):
            self._stores.timeline.add_hits(event.targets, -1)
        return event

    def _learn(
        self, kind: LearningKind, query: str, first: tuple[NodeId, ...], targets: tuple[NodeId, ...]
    ) -> None:
        text = normalise(query)
        if not text or not targets:
            return
        recent = self._recent.find(text)
        entries = () if recent is None else recent.entries
        vector = None if recent is None else recent.vector
        with self._stores.database.transaction():
            self._stores.log.append(
                kind,
                query=self._stores.log.cluster(text, vector),
                sources=tuple(dict.fromkeys((*first, *entries))),
                targets=targets,
            )
            if kind is not LearningKind.NOT_RELEVANT:
                self._stores.timeline.add_hits(targets)
        self._stores.sink.emit(LearningRecorded(kind=kind))
        self.fold()

    def fold(self) -> None:
        """The act is durable already; a pointer store that cannot be written only makes recall slower."""
        try:
            _, changed = self._stores.pointers.catch_up()
        except StorageError as error:
            self._stores.sink.emit(StoreTrouble(store="pointers", problem=error.reason))
            return
        self._cache.invalidate(changed)
