"""What the panels show of the pointer store: debts, stains, and the graph around a node. Reads only."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory.storage import intervals, pointer_records
from memory.storage.intervals import Intervals
from memory.storage.pointer_records import Edge, Record, Sample
from memory.storage.reading_fold import answered
from memory.storage.stores import Stores
from memory.text import title
from memory.values import (
    DebtState,
    Depth,
    Fragment,
    KSample,
    LedgerSnapshot,
    NeighbourhoodSnapshot,
    NodeId,
    PointerEdge,
    StainSnapshot,
    StainSpan,
)


def ledger_snapshot(stores: Stores) -> LedgerSnapshot:
    """Open fragments in the order in which they are paid, then those put aside, with what is still unread of each."""
    ledger = stores.pointers.ledger()
    fragments = (*ledger.fragments, *ledger.unclear)
    texts = stores.log.texts([f.query for f in fragments])
    names = _titles_at(stores, {seq for f in fragments for seq in (f.entry, f.target)})
    read: dict[int, Intervals] = {}
    for fragment in fragments:
        if fragment.query not in read:
            read[fragment.query] = answered(stores.pointers.cluster(fragment.query))
    shown = [_fragment(f, texts, names, read[f.query]) for f in fragments]
    owed = len(ledger.fragments)
    return LedgerSnapshot(
        open=tuple(replace(debt, state=_begun(debt)) for debt in shown[:owed]),
        unclear=tuple(replace(debt, state=DebtState.UNSURE) for debt in shown[owed:]),
        cleared=ledger.cleared,
        nodes=stores.timeline.count(),
        now_ms=stores.clock.now_ms(),
    )


def _begun(debt: Fragment) -> DebtState:
    return DebtState.WAITING if debt.remaining == debt.size else DebtState.STARTED


def _fragment(
    fragment: pointer_records.Fragment,
    texts: dict[int, str],
    names: dict[int, str],
    read: Intervals,
) -> Fragment:
    return Fragment(
        entry_seq=fragment.entry,
        target_seq=fragment.target,
        query=texts.get(fragment.query, ""),
        created_at_ms=fragment.created_at_ms,
        remaining=intervals.size(fragment.remaining(read)),
        entry_title=names.get(fragment.entry, ""),
        target_title=names.get(fragment.target, ""),
    )


def stain_snapshot(stores: Stores) -> StainSnapshot:
    """The timeline as bands. Where a cluster has read deep, light is not shown."""
    records = [stores.pointers.cluster(cluster) for cluster in stores.pointers.clusters()]
    last = stores.timeline.last_seq()
    spans = _spans(records)
    ends = sorted({1, last, *(seq for span in spans for seq in span[:2])})
    times = stores.timeline.times(ends)
    return StainSnapshot(
        first_seq=min(1, last),
        last_seq=last,
        first_ms=times.get(1, 0),
        last_ms=times.get(last, 0),
        nodes=stores.timeline.count(),
        spans=tuple(
            StainSpan(
                first_seq=first,
                last_seq=end,
                depth=depth,
                clusters=clusters,
                first_ms=times.get(first, 0),
                last_ms=times.get(end, 0),
            )
            for first, end, depth, clusters in spans
        ),
    )


def _spans(records: Sequence[Record]) -> list[tuple[int, int, Depth, int]]:
    """Cuts the timeline wherever some cluster begins or ends, and counts."""
    steps: dict[int, list[int]] = {}
    for kind, sets in enumerate(([answered(r) for r in records], [r.light for r in records])):
        for first, last in (interval for part in sets for interval in part):
            steps.setdefault(first, [0, 0])[kind] += 1
            steps.setdefault(last + 1, [0, 0])[kind] -= 1
    spans: list[tuple[int, int, Depth, int]] = []
    deep = light = start = 0
    for at in sorted(steps):
        if deep or light:
            depth = Depth.DEEP if deep else Depth.LIGHT
            spans.append((start, at - 1, depth, deep or light))
        deep, light, start = deep + steps[at][0], light + steps[at][1], at
    return _joined(spans)


def _joined(spans: Iterable[tuple[int, int, Depth, int]]) -> list[tuple[int, int, Depth, int]]:
    """Neighbours that show the same are one band."""
    joined: list[tuple[int, int, Depth, int]] = []
    for span in spans:
        before = joined[-1] if joined else None
        if before is not None and before[1] + 1 == span[0] and before[2:] == span[2:]:
            joined[-1] = (before[0], span[1], *span[2:])
        else:
            joined.append(span)
    return joined


def neighbourhood(stores: Stores, node_id: NodeId) -> NeighbourhoodSnapshot:
    """Edges that leave a node and edges that lead to it, hottest first. Those of forgotten nodes are left out."""
    leaving = stores.pointers.edges(node_id).edges
    arriving = {
        source: edge
        for source in stores.pointers.sources(node_id)
        if (edge := stores.pointers.edges(source).edges.get(node_id)) is not None
    }
    names = _titles(stores, (node_id, *leaving, *arriving))
    texts = stores.log.texts(
        [
            s.query
            for e in (*leaving.values(), *arriving.values())
            for s in (*e.positive, *e.negative)
        ]
    )
    away = [(node_id, NodeId(target), edge) for target, edge in leaving.items()]
    here = [(NodeId(source), node_id, edge) for source, edge in arriving.items()]
    return NeighbourhoodSnapshot(
        node_id=node_id,
        title=names.get(node_id, ""),
        leaving=_edges(away, names, texts),
        arriving=_edges(here, names, texts),
    )


def _edges(
    edges: Iterable[tuple[NodeId, NodeId, Edge]], names: dict[NodeId, str], texts: dict[int, str]
) -> tuple[PointerEdge, ...]:
    shown = [
        PointerEdge(
            source_id=source,
            target_id=target,
            target_title=names[target],
            source_title=names[source],
            heat=edge.heat,
            positive=_samples(edge.positive, texts),
            negative=_samples(edge.negative, texts),
            forced=edge.forced,
        )
        for source, target, edge in edges
        if source in names and target in names
    ]
    return tuple(sorted(shown, key=lambda e: (-e.heat, e.source_id, e.target_id)))


def _samples(samples: Iterable[Sample], texts: dict[int, str]) -> tuple[KSample, ...]:
    """The weightiest first."""
    ordered = sorted(samples, key=lambda s: (-s.weight, -s.used_at_ms, s.query))
    return tuple(
        KSample(text=texts.get(s.query, ""), weight=s.weight, used_at_ms=s.used_at_ms)
        for s in ordered
    )


def _titles(stores: Stores, node_ids: Iterable[str]) -> dict[NodeId, str]:
    found = stores.timeline.nodes(sorted({NodeId(i) for i in node_ids}))
    limit = stores.config.paging.title_characters_max
    return {node.id: title(node.content, limit) for node in found.values()}


def _titles_at(stores: Stores, seqs: Iterable[int]) -> dict[int, str]:
    limit = stores.config.paging.title_characters_max
    found = (stores.timeline.node_at(seq) for seq in sorted(seqs))
    return {node.seq: title(node.content, limit) for node in found if node is not None}
