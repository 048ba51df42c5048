"""The pointer graph as a fold of the learning log: pure functions from (record, event) to record.

A source's record holds its edges; an edge holds positive and negative *K samples* – past queries with weight and last use –
and heat. A target's veto record holds the queries for which it was called not relevant, wherever it was found. What a search
has read is folded in `reading_fold`. The same events always give the same records, live or in a rebuild. Source: seed items
G13 and 1.2-6.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from memory.config import LearningConfig
from memory.storage.learning_log import LearningEvent, LearningKind
from memory.storage.pointer_records import (
    EMPTY,
    Edge,
    Record,
    Sample,
    arriving_key,
    source_key,
    veto_key,
)
from memory.storage.reading_fold import apply_reading

FOLD_VERSION: Final = 3  # a store folded by another version is folded anew
Read: TypeAlias = Callable[[str], Record]


class _Changes:
    """Records as they are, and as this event leaves them."""

    def __init__(self, read: Read, config: LearningConfig) -> None:
        self._read = read
        self.config = config
        self.records: dict[str, Record] = {}

    def get(self, key: str) -> Record:
        return self.records[key] if key in self.records else self._read(key)

    def put(self, key: str, record: Record) -> None:
        self.records[key] = record


def apply(event: LearningEvent, read: Read, config: LearningConfig) -> dict[str, Record]:
    """The records that an event changes, by key; an empty record is one to be deleted."""
    changes = _Changes(read, config)
    if event.undone or event.kind in (LearningKind.UNDO, LearningKind.KNOWLEDGE):
        return changes.records
    positive = event.kind is not LearningKind.NOT_RELEVANT
    forced = event.kind is LearningKind.CITED
    for at, source in enumerate(event.sources[: config.sources_per_event]):
        for target in event.targets:
            if source != target:
                _point(changes, source, target, event, positive=positive, forced=forced and at == 0)
    for target in event.targets:
        key = veto_key(target)
        record = changes.get(key)
        if not positive or target in record.edges:
            edge = _taught(record.edges.get(target, Edge()), event, config, positive=positive)
            changes.put(key, Record(edges={target: edge}))
    if event.reading is not None and event.kind is LearningKind.READ:
        for source_id, target_id in event.reading.refuted:
            _point(changes, source_id, target_id, event, positive=False)
        apply_reading(event, event.reading, changes.get, changes.put, config)
    return changes.records


def _point(
    changes: _Changes,
    source: str,
    target: str,
    event: LearningEvent,
    *,
    positive: bool,
    forced: bool = False,
) -> None:
    """Teaches one edge, and keeps both ends of it in step."""
    key = source_key(source)
    edges = dict(changes.get(key).edges)
    known = target in edges
    edge = _taught(edges.get(target, Edge()), event, changes.config, positive=positive)
    edges[target] = _forced(edge) if forced else edge
    if len(edges) > changes.config.edges_per_source:
        coldest = min(
            (t for t in edges if t != target), key=lambda t: (edges[t].forced, edges[t].heat, t)
        )
        del edges[coldest]
        _arrive(changes, source, coldest, arrives=False)
    changes.put(key, Record(edges=edges))
    if not known:
        _arrive(changes, source, target, arrives=True)


def _arrive(changes: _Changes, source: str, target: str, *, arrives: bool) -> None:
    """The way back from a target: only for showing, so the oldest may be forgotten."""
    key = arriving_key(target)
    others = tuple(s for s in changes.get(key).sources if s != source)
    limit = changes.config.sources_per_target
    sources = (*others, source)[-limit:] if arrives else others
    changes.put(key, Record(sources=sources) if sources else EMPTY)


def _forced(edge: Edge) -> Edge:
    return Edge(positive=edge.positive, negative=edge.negative, heat=edge.heat, forced=True)


def _taught(edge: Edge, event: LearningEvent, config: LearningConfig, *, positive: bool) -> Edge:
    """The latest judgement of a query wins: it leaves the other side."""
    added = Sample(query=event.query, weight=1, used_at_ms=event.created_at_ms)
    limit = config.samples_per_side
    if positive:
        return Edge(
            positive=_merged(edge.positive, added, limit),
            negative=_without(edge.negative, event.query),
            heat=edge.heat + 1,
            forced=edge.forced,
        )
    return Edge(
        positive=_without(edge.positive, event.query),
        negative=_merged(edge.negative, added, limit),
        heat=edge.heat,
        forced=edge.forced,
    )


def _merged(samples: tuple[Sample, ...], added: Sample, limit: int) -> tuple[Sample, ...]:
    """Same query: weight + 1. Too many: the lowest weight goes, then the oldest – never the one just added."""
    same = next((s for s in samples if s.query == added.query), None)
    if same is not None:
        added = Sample(query=added.query, weight=same.weight + 1, used_at_ms=added.used_at_ms)
    kept = sorted(
        (s for s in samples if s.query != added.query),
        key=lambda s: (s.weight, s.used_at_ms, s.query),
        reverse=True,
    )[: limit - 1]
    return tuple(sorted((*kept, added), key=lambda s: s.query))


def _without(samples: tuple[Sample, ...], query: int) -> tuple[Sample, ...]:
    return tuple(s for s in samples if s.query != query)
