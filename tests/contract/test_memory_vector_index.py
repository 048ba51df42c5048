"""One suite for the vector host (real Chroma in its child process) and its brute-force twin."""

from __future__ import annotations

import threading

import numpy as np
import pytest

from memory.config import MemoryConfig, RagMode, RestConfig, VectorConfig
from memory.storage.vector_index import HostState, Outage, VectorIndex
from tests.fakes.driver import drive
from tests.fakes.embedder import vector_of
from tests.fakes.exact_index import ExactIndex
from tests.fakes.memory_world import NO_HOST, MemoryWorld

WAIT_S = 60.0


def until(condition, poll, seconds=WAIT_S):
    """Polls with short waits on an event that nobody sets."""
    pause = threading.Event()
    for _ in range(int(seconds / 0.02)):
        poll()
        if condition():
            return
        pause.wait(0.02)
    raise AssertionError("the vector host did not get there in time")


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "数据 m", NO_HOST)
    conversation = world.conversation()
    for i in range(100):
        world.say(f"word{i} and word{i * 7 % 100}", conversation)
    world.digest()
    yield world
    world.engine.close()


@pytest.fixture(params=["exact", pytest.param("chroma", marks=pytest.mark.slow)])
def index(request, world):
    store = world.engine._stores.vectors
    if request.param == "exact":
        index = ExactIndex(store)
    else:
        index = VectorIndex(
            world.path / "vectors",
            store,
            VectorConfig(query_timeout_s=10.0),
            clock=world.clock,
            sink=world.events,
        )
    yield index
    index.close()


def fill(index, world):
    index.start()
    until(lambda: index.state is HostState.READY, index.poll)

    def step():
        index.poll()
        index.submit_gap()

    until(lambda: world.engine._stores.vectors.lag() == 0, step)


def test_before_it_is_open_there_is_an_outage(index):
    with pytest.raises(Outage):
        index.query(vector_of("x"), 3)


def test_it_holds_what_was_acknowledged_and_finds_it(index, world):
    fill(index, world)
    store = world.engine._stores.vectors
    assert index.count() == 100
    assert index.ids() == store.seqs()
    blobs = store.of(sorted(store.seqs()))
    for seq in (1, 50, 100):
        (found, cosine), *rest = index.query(blobs[seq], 3)
        assert found == seq
        assert cosine == pytest.approx(1.0, abs=0.01)
        assert [c for _, c in rest] == sorted((c for _, c in rest), reverse=True)


def test_sending_again_changes_nothing(index, world):
    fill(index, world)
    index.resend()
    assert world.engine._stores.vectors.lag() == 100
    fill(index, world)
    assert index.count() == 100


def test_what_is_deleted_is_not_found(index, world):
    fill(index, world)
    index.delete([7])
    assert index.ids() == world.engine._stores.vectors.seqs() - {7}


def test_after_close_there_is_an_outage(index, world):
    fill(index, world)
    index.close()
    with pytest.raises(Outage):
        index.query(vector_of("x"), 3)


@pytest.mark.slow
def test_ann_and_linear_recall_find_the_same(tmp_path):
    ann = MemoryConfig(
        vectors=VectorConfig(rag_mode=RagMode.ANN, query_timeout_s=10.0),
        rest=RestConfig(texts_per_run=64),
    )
    world = MemoryWorld(tmp_path / "m", ann)
    try:
        conversation = world.conversation()
        for i in range(60):
            world.say(f"word{i} and word{i * 7 % 60}", conversation)
        stores = world.engine._stores

        def step():
            drive(world.engine.digest(), world.embedder)
            assert world.recall("word3 word21").degraded in ((), ("vectors",))

        until(lambda: stores.index.state is HostState.READY and not stores.vectors.lag(), step)
        assert stores.index.count() == 60
        result = world.recall("word3 word21")
        assert result.degraded == ()
        assert result.pages[0].node.content == "word3 and word21"
        nearest = stores.index.query(vector_of("word3 and word21"), 5)
        exact: list[tuple[int, float]] = []
        list(stores.scan.search(vector_of("word3 and word21"), 5, exact))
        assert [seq for seq, _ in nearest] == [seq for seq, _ in exact]
        assert np.allclose([c for _, c in nearest], [c for _, c in exact], atol=0.01)
        assert world.engine.audit(fix=False, full=True).findings == ()
    finally:
        world.engine.close()
