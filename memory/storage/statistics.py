"""A cheap picture of all stores, for the status line, the health panel and `--json`."""

from __future__ import annotations

from memory.storage.stores import Stores
from memory.storage.vector_index import HostState
from memory.values import Statistics, StoreHealth


def statistics(stores: Stores) -> Statistics:
    """Reads the counters."""
    nodes = stores.timeline.count()
    embedded = stores.vectors.count()
    waiting = stores.vectors.waiting_count()
    counts = stores.pointers.counts()
    events = stores.log.count()
    lag = stores.vectors.lag()
    index = stores.index
    return Statistics(
        nodes=nodes,
        conversations=stores.timeline.conversation_count(),
        embedded=embedded,
        pending_embeddings=waiting,
        edges=counts.edges,
        jumps=counts.jumps,
        stains=counts.stains,
        fragments=counts.fragments,
        anchors=counts.anchors,
        learning_events=events,
        stores=(
            StoreHealth(
                name="timeline", ok=True, items=nodes, lag=0, bytes=stores.database.file_bytes()
            ),
            StoreHealth(
                name="lexical",
                ok=not stores.lexical.needs_rebuild(),
                items=stores.lexical.count(),
                lag=0,
                bytes=0,
                detail="in timeline.db",
            ),
            StoreHealth(
                name="vectors",
                ok=index.state is not HostState.GIVEN_UP and not index.problem,
                items=embedded - lag,
                lag=lag,
                bytes=index.file_bytes(),
                detail=index.problem or index.state,
            ),
            StoreHealth(
                name="pointers",
                ok=True,
                items=counts.edges,
                lag=events - stores.pointers.high_water(),
                bytes=stores.pointers.file_bytes(),
            ),
        ),
    )
