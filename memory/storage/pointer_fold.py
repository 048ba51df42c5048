"""The pointer graph as a fold of the learning log: pure functions from (record, event) to record.

A source's record holds its edges; an edge holds positive and negative *K samples* – past queries with weight and last use –
and heat. A target's veto record holds the queries for which it was called not relevant, wherever it was found. The same
events always give the same records, live or in a rebuild. Source: seed items G13 and 1.2-6.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from memory.config import LearningConfig
from memory.storage.learning_log import LearningEvent, LearningKind


class Sample(msgspec.Struct, frozen=True, array_like=True):
    """A past query (cluster id), how often it was seen, and when last (UTC ms)."""

    query: int
    weight: int
    used_at_ms: int


class Edge(msgspec.Struct, frozen=True):
    """What is known about following one pointer."""

    positive: tuple[Sample, ...] = ()
    negative: tuple[Sample, ...] = ()
    heat: int = 0


class Record(msgspec.Struct, frozen=True):
    """All edges of a source by target id, or – for a veto record – one edge under the target's own id."""

    edges: dict[str, Edge] = {}


_SOURCE, _VETO = "e:", "v:"
Read: TypeAlias = Callable[[str], Record]


def source_key(node_id: str) -> str:
    """Where a source's record is kept."""
    return _SOURCE + node_id


def is_source_key(key: str) -> bool:
    """True for the record of a source."""
    return key.startswith(_SOURCE)


def veto_key(node_id: str) -> str:
    """Where a target's veto record is kept."""
    return _VETO + node_id


def apply(event: LearningEvent, read: Read, config: LearningConfig) -> dict[str, Record]:
    """The records that an event changes, by key."""
    changed: dict[str, Record] = {}
    positive = event.kind is LearningKind.USED
    keys = [
        (source_key(source), target)
        for source in event.sources[: config.sources_per_event]
        for target in event.targets
        if source != target
    ]
    for key, target in keys:
        record = changed.get(key) or read(key)
        changed[key] = _with_edge(record, target, event, positive=positive, config=config)
    for target in event.targets:
        key = veto_key(target)
        record = read(key)
        if not positive or target in record.edges:
            changed[key] = _with_edge(record, target, event, positive=positive, config=config)
    return changed


def _with_edge(
    record: Record, target: str, event: LearningEvent, *, positive: bool, config: LearningConfig
) -> Record:
    edge = record.edges.get(target, Edge())
    added = Sample(query=event.query, weight=1, used_at_ms=event.created_at_ms)
    limit = config.samples_per_side
    if positive:
        edge = Edge(
            positive=_merged(edge.positive, added, limit),
            negative=_without(edge.negative, event.query),
            heat=edge.heat + 1,
        )
    else:
        edge = Edge(
            positive=_without(edge.positive, event.query),
            negative=_merged(edge.negative, added, limit),
            heat=edge.heat,
        )
    return Record(edges=_bounded({**record.edges, target: edge}, config.edges_per_source, target))


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
    """The latest judgement of a query wins."""
    return tuple(s for s in samples if s.query != query)


def _bounded(edges: Mapping[str, Edge], limit: int, keep: str) -> dict[str, Edge]:
    if len(edges) <= limit:
        return dict(edges)
    coldest = min((t for t in edges if t != keep), key=lambda t: (edges[t].heat, t))
    return {target: edge for target, edge in edges.items() if target != coldest}
