"""What left recall leaves the vector host too, also when the host was out at the time."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from memory.config import MemoryConfig, RestConfig, VectorConfig
from memory.storage.vector_index import HostState
from memory.values import Cut, DocumentDraft
from tests.fakes.driver import drive
from tests.fakes.memory_world import MemoryWorld

WAIT_S = 60.0


def config(*, host: bool) -> MemoryConfig:
    return MemoryConfig(
        vectors=VectorConfig(host=host, start_lag_min=1),
        rest=RestConfig(texts_per_run=64, chunk_characters=40),
    )


def draft(first: int) -> DocumentDraft:
    lines = [f"Line {n} of the document.\n" for n in range(first, first + 12)]
    ends = [sum(map(len, lines[: n + 1])) for n in range(len(lines))]
    return DocumentDraft(
        uri="/d",
        stamp=str(first),
        content_hash=str(first),
        text="".join(lines),
        cuts=tuple(Cut(end=end) for end in ends),
    )


def digest_until_absorbed(world: MemoryWorld) -> None:
    stores, pause = world.engine._stores, threading.Event()
    for _ in range(int(WAIT_S / 0.02)):
        drive(world.engine.digest(), world.embedder)
        ready = stores.index.state is HostState.READY
        if ready and not stores.vectors.lag() and not stores.documents.strays(1):
            return
        pause.wait(0.02)
    raise AssertionError("the vector host did not get there in time")


def open_world(folder: Path, *, host: bool) -> MemoryWorld:
    return MemoryWorld(folder, config(host=host))


@pytest.mark.slow
@pytest.mark.parametrize("out", [False, True])
def test_the_host_forgets_what_left_recall(tmp_path, out):
    world = open_world(tmp_path / "m", host=True)
    try:
        drive(world.engine.keep_document(draft(0)), world.embedder)
        digest_until_absorbed(world)
        assert len(world.engine._stores.index.ids()) == 12
        if out:
            world.engine.close()
            world = open_world(tmp_path / "m", host=False)
        drive(world.engine.keep_document(draft(5)), world.embedder)
        if out:
            world.digest()
            world.engine.close()
            world = open_world(tmp_path / "m", host=True)
        digest_until_absorbed(world)
        stores = world.engine._stores
        assert stores.index.ids() == stores.vectors.seqs()
        assert len(stores.vectors.seqs()) == 12
        assert world.engine.audit(fix=False, full=True).findings == ()
    finally:
        world.engine.close()
