"""One suite for linear and ANN search: the same questions find the same nodes in the same order, filtered too."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.config import RagMode, VectorConfig
from memory.engine import MemoryEngine
from memory.values import NodeKind, RecallQuery, Scope
from tests.fakes.driver import drive
from tests.fakes.exact_index import ExactIndex
from tests.fakes.memory_world import NO_HOST, MemoryWorld


@pytest.fixture
def world(tmp_path):
    """700 nodes of two kinds, a fifth of them in a project: more than one pool."""
    world = MemoryWorld(tmp_path / "m", NO_HOST)
    world.engine._stores.database.execute("PRAGMA synchronous = OFF")
    project = world.engine.open_project("/p", "P").id
    conversation = world.conversation()
    for i in range(700):
        world.say(
            f"animal{i % 50} was seen near place{i % 7} on tour {i}",
            conversation,
            kind=NodeKind.NOTE if i % 3 == 0 else NodeKind.MESSAGE,
            project_id=project if i % 5 == 0 else None,
            created_at_ms=1_000_000 + i,
        )
    world.digest()
    yield world
    world.engine.close()


def in_mode(world: MemoryWorld, mode: RagMode) -> MemoryEngine:
    """The engine over the same stores, its vectors found in that way; the twin of the host stands in for it."""
    stores = world.engine._stores
    index = ExactIndex(stores.vectors)
    index.start()
    while index.submit_gap():
        index.poll()
    vectors = replace(VectorConfig(), rag_mode=mode, host=False, ann_rows_min=100)
    return MemoryEngine(
        replace(stores, index=index, config=replace(stores.config, vectors=vectors))
    )


QUERIES = {
    "everything": {},
    "kind": {"kinds": frozenset({NodeKind.NOTE})},
    "project": {"scope": Scope.PROJECT},
    "dates": {"since_ms": 1_000_100, "until_ms": 1_000_300},
}


@pytest.mark.parametrize("filters", QUERIES)
@pytest.mark.parametrize("mode", [RagMode.ANN, RagMode.AUTO])
def test_every_way_finds_the_same(world, mode, filters):
    project = world.engine.projects()[0].id
    linear, other = in_mode(world, RagMode.LINEAR), in_mode(world, mode)
    for text in ("animal7 near place3", "which tours saw animal12?", "animal30 tour 130"):
        query = RecallQuery(text=text, project_id=project, **QUERIES[filters])
        found = [drive(e.search(query, limit=10), world.embedder) for e in (linear, other)]
        assert len(found[0]) == 10
        assert found[0] == found[1]


@pytest.mark.parametrize("mode", list(RagMode))
@pytest.mark.parametrize("filters", QUERIES)
def test_every_way_keeps_to_its_filters(world, mode, filters):
    project = world.engine.projects()[0].id
    query = RecallQuery(text="animal7 near place3", project_id=project, **QUERIES[filters])
    for page in drive(in_mode(world, mode).search(query, limit=20), world.embedder):
        assert not query.kinds or page.node.kind in query.kinds
        assert query.scope is Scope.ALL or page.node.project_id == project
        assert query.since_ms is None or 1_000_100 <= page.node.created_at_ms < 1_000_300
