"""A damaged vector folder: opening works, the exact scan answers, the folder is set aside and filled again."""

from __future__ import annotations

import os
import shutil
import signal
import sys
import threading
from pathlib import Path

import psutil
import pytest

from memory.config import MemoryConfig, RagMode, RestConfig, VectorConfig
from memory.events import StoreTrouble
from memory.storage.vector_index import HostState
from tests.fakes.driver import drive
from tests.fakes.memory_world import MemoryWorld

NODES = 260  # more than the sync threshold, so that Chroma has written its index files
CONFIG = MemoryConfig(
    vectors=VectorConfig(
        rag_mode=RagMode.ANN,
        query_timeout_s=10.0,
        restart_backoff_s=(0.0,) * 6,
        sync_threshold=100,
        hnsw_batch=50,
    ),
    rest=RestConfig(texts_per_run=64),
)
pytestmark = [pytest.mark.crash, pytest.mark.slow]


def settle(world: MemoryWorld) -> None:
    """Runs the background until the host holds everything, has given up, or a minute has passed."""
    pause = threading.Event()
    for _ in range(3000):
        drive(world.engine.digest(), world.embedder)
        stores = world.engine._stores
        if stores.index.state is HostState.GIVEN_UP:
            return
        if stores.index.state is HostState.READY and not stores.vectors.lag():
            return
        pause.wait(0.02)
    raise AssertionError("the vector host did not settle")


@pytest.fixture(scope="module")
def prepared(tmp_path_factory) -> Path:
    """A closed data folder with a written Chroma index."""
    path = tmp_path_factory.mktemp("prepared") / "m"
    world = MemoryWorld(path, CONFIG)
    conversation = world.conversation()
    world.engine._stores.database.execute("PRAGMA synchronous = OFF")
    for i in range(NODES):
        world.say(f"word{i} and word{i * 7 % NODES}", conversation)
    settle(world)
    world.engine.close()
    assert list((path / "vectors").glob("*/data_level0.bin"))
    return path


def fresh(prepared: Path, tmp_path: Path, name: str) -> Path:
    path = tmp_path / name
    shutil.copytree(prepared, path)
    return path


def harm(file: Path, how: str) -> None:
    data = file.read_bytes()
    if how == "delete":
        file.unlink()
    elif how == "truncate":
        file.write_bytes(data[: len(data) // 2])
    elif how == "zero":
        file.write_bytes(bytes(len(data)))
    else:
        file.write_bytes(b"\xff" * len(data))


@pytest.mark.parametrize("how", ["truncate", "zero", "ones", "delete"])
def test_every_file_may_be_damaged(prepared, tmp_path, how):
    files = [
        file.relative_to(prepared)
        for file in sorted((prepared / "vectors").rglob("*"))
        if file.is_file() and file.stat().st_size
    ]
    assert len(files) >= 5
    for number, file in enumerate(files):
        path = fresh(prepared, tmp_path, f"m{number}")
        harm(path / file, how)
        world = MemoryWorld(path, CONFIG)
        try:
            found = world.recall("word3 word21")
            assert found.pages[0].node.content == "word3 and word21"
            assert found.degraded == ("vectors",)
            settle(world)
            stores = world.engine._stores
            assert stores.index.state is HostState.READY, file
            assert stores.index.ids() == stores.vectors.seqs(), file
            found = world.recall("word3 word21")
            assert found.pages[0].node.content == "word3 and word21"
            for _ in range(2):  # damage that only searches run into: the second death proves it
                if found.degraded:
                    settle(world)
                    found = world.recall("word3 word21")
                    assert found.pages[0].node.content == "word3 and word21"
            assert found.degraded == ()
            assert world.engine.audit(fix=False, full=True).findings == ()
            assert len(stores.index.broken_folders()) <= 1
        finally:
            world.engine.close()


def test_an_index_that_kills_the_host_while_it_opens(prepared, tmp_path):
    """A cut header makes the native library die by SIGSEGV (seen with chromadb 1.5.9): no words, only an end."""
    path = fresh(prepared, tmp_path, "m")
    (header,) = (path / "vectors").glob("*/header.bin")
    harm(header, "truncate")
    world = MemoryWorld(path, CONFIG)
    try:
        settle(world)
        problems = [event.problem for event in world.events.of(StoreTrouble)]
        assert problems == ["the vector host ended", ""]
        assert world.engine._stores.index.count() == NODES
        assert len(world.engine._stores.index.broken_folders()) == 1
    finally:
        world.engine.close()


def test_a_lost_folder_is_filled_again(prepared, tmp_path):
    path = fresh(prepared, tmp_path, "m")
    shutil.rmtree(path / "vectors")
    world = MemoryWorld(path, CONFIG)
    try:
        world.say("one more, so that there is something to send")
        settle(world)
        assert world.engine._stores.index.count() == NODES + 1
    finally:
        world.engine.close()


def test_another_version_of_chroma_is_set_aside(prepared, tmp_path):
    path = fresh(prepared, tmp_path, "m")
    (path / "vectors" / "growbox-version").write_text("1 chromadb 0.4.0")
    world = MemoryWorld(path, CONFIG)
    try:
        settle(world)
        assert world.engine._stores.index.count() == NODES
        assert len(world.engine._stores.index.broken_folders()) == 1
    finally:
        world.engine.close()


def test_the_host_is_humble_and_leaves_with_its_pipe(prepared, tmp_path):
    world = MemoryWorld(fresh(prepared, tmp_path, "m"), CONFIG)
    try:
        settle(world)
        index = world.engine._stores.index
        process = psutil.Process(index._process.pid)
        if sys.platform != "win32":
            assert process.nice() == 19
        assert Path(process.cwd()) == world.path / "vectors"
        assert not [c for c in process.net_connections() if c.raddr]
        index._pipe.close()
        index._process.join(5)
        assert index._process.exitcode == 0
    finally:
        world.engine.close()


@pytest.mark.skipif(sys.platform == "win32", reason="SIGKILL")
def test_a_host_that_dies_is_an_outage_and_comes_back(prepared, tmp_path):
    world = MemoryWorld(fresh(prepared, tmp_path, "m"), CONFIG)
    try:
        settle(world)
        index = world.engine._stores.index
        os.kill(index._process.pid, signal.SIGKILL)
        index._process.join(5)
        found = world.recall("word3 word21")
        assert found.degraded == ("vectors",)
        assert found.pages[0].node.content == "word3 and word21"
        settle(world)
        assert world.recall("word3 word21").degraded == ()
        assert index.broken_folders() == []
        problems = [event.problem for event in world.events.of(StoreTrouble)]
        assert problems[0]
        assert problems[-1] == ""
    finally:
        world.engine.close()


@pytest.mark.skipif(sys.platform == "win32", reason="SIGSTOP")
def test_a_host_that_hangs_while_opening_is_replaced(prepared, tmp_path):
    world = MemoryWorld(fresh(prepared, tmp_path, "m"), CONFIG)
    try:
        index = world.engine._stores.index
        index.start()
        os.kill(index._process.pid, signal.SIGSTOP)
        world.clock.advance(CONFIG.vectors.open_timeout_s + 1)
        index.poll()
        assert index.state is HostState.DOWN
        assert len(index.broken_folders()) == 1
        settle(world)
        assert index.count() == NODES
    finally:
        world.engine.close()


@pytest.mark.skipif(sys.platform == "win32", reason="SIGSTOP")
def test_a_host_that_falls_silent_is_replaced(prepared, tmp_path):
    world = MemoryWorld(fresh(prepared, tmp_path, "m"), CONFIG)
    try:
        settle(world)
        index = world.engine._stores.index
        os.kill(index._process.pid, signal.SIGSTOP)
        world.say("one more")
        drive(world.engine.digest(), world.embedder)
        index.poll()
        assert index.state is HostState.READY
        world.clock.advance(CONFIG.vectors.silence_timeout_s + 1)
        index.poll()
        assert index.state is HostState.DOWN
        settle(world)
        assert index.count() == NODES + 1
        assert index.broken_folders() == []
    finally:
        world.engine.close()


@pytest.mark.skipif(sys.platform == "win32", reason="SIGSTOP")
def test_a_slow_host_is_not_waited_for(prepared, tmp_path):
    quick = MemoryConfig(
        vectors=VectorConfig(rag_mode=RagMode.ANN, query_timeout_s=0.05), rest=CONFIG.rest
    )
    world = MemoryWorld(fresh(prepared, tmp_path, "m"), quick)
    try:
        settle(world)
        index = world.engine._stores.index
        os.kill(index._process.pid, signal.SIGSTOP)
        found = world.recall("word3 word21")
        assert found.degraded == ("vectors",)
        assert found.pages[0].node.content == "word3 and word21"
        os.kill(index._process.pid, signal.SIGCONT)
        assert index.count() == NODES  # the late answer is not taken for this one
    finally:
        world.engine.close()


def test_it_gives_up_after_a_few_deaths_and_the_scan_serves(prepared, tmp_path):
    few = MemoryConfig(
        vectors=VectorConfig(rag_mode=RagMode.ANN, restart_backoff_s=(0.0, 0.0)), rest=CONFIG.rest
    )
    path = fresh(prepared, tmp_path, "m")
    world = MemoryWorld(path, few)
    try:
        index = world.engine._stores.index
        for _ in range(3):
            index.start()
            index._process.kill()
            index._process.join(5)
            index.poll()
        assert index.state is HostState.GIVEN_UP
        index.start()
        assert index.state is HostState.GIVEN_UP
        found = world.recall("word3 word21")
        assert found.pages[0].node.content == "word3 and word21"
        health = {store.name: store for store in world.engine.statistics().stores}
        assert not health["vectors"].ok
    finally:
        world.engine.close()
