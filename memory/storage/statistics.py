"""A cheap picture of all stores, for the status line, the health panel and `--json`."""

from __future__ import annotations

from memory.storage.stores import Stores
from memory.storage.vector_index import HostState
from memory.values import ProjectHoldings, ProjectId, Statistics, StoreHealth


def holdings(stores: Stores, project_id: ProjectId) -> ProjectHoldings:
    """What a project has in the memory, by one walk over its nodes."""
    row = stores.database.row(
        "SELECT sum(kind = 'message') AS messages, sum(kind = 'chunk') AS passages,"
        " sum(kind = 'document' AND id IN (SELECT node_id FROM documents)) AS documents,"
        " sum(seq IN (SELECT seq FROM embed_queue)) AS waiting"
        " FROM nodes WHERE project_id = ? AND branch_active = 1 AND deleted_at_ms IS NULL",
        (project_id,),
    )
    talks = sum(c.project_id == project_id for c in stores.timeline.conversations())
    assert row is not None  # an aggregate has one row
    return ProjectHoldings(
        conversations=talks,
        messages=row["messages"] or 0,
        documents=row["documents"] or 0,
        passages=row["passages"] or 0,
        waiting=row["waiting"] or 0,
    )


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
