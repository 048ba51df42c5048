"""Acts of learning: appended to the log (truth), then folded into the pointer store (derived)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from memory.errors import StorageError
from memory.events import LearningRecorded, StoreTrouble
from memory.recall.neighbour_cache import NeighbourCache
from memory.recall.pointer_walk import Question
from memory.recall.recent_queries import RecentQueries
from memory.storage.learning_log import LearningKind, Reading
from memory.storage.stores import Stores
from memory.text import normalise
from memory.values import NodeId


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
            )
        self._stores.sink.emit(LearningRecorded(kind=LearningKind.READ))
        self._fold()
        return cluster or query.id

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
        self._fold()

    def _fold(self) -> None:
        """The act is durable already; a pointer store that cannot be written only makes recall slower."""
        try:
            _, changed = self._stores.pointers.catch_up()
        except StorageError as error:
            self._stores.sink.emit(StoreTrouble(store="pointers", problem=error.reason))
            return
        self._cache.invalidate(changed)
