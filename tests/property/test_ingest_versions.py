"""Any sequence of versions, abandoned anywhere: the newest is whole, nothing else answers, nothing the same is embedded twice."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path

import hypothesis.strategies as st
from hypothesis import HealthCheck, given, settings

from memory.config import MemoryConfig, RestConfig, VectorConfig
from memory.values import Cut, DocumentDraft
from tests.fakes.memory_world import MemoryWorld

CONFIG = MemoryConfig(
    vectors=VectorConfig(host=False),
    rest=RestConfig(texts_per_run=64, chunk_characters=30, chunks_per_slice=2),
)
LINES = ("the red kite\r\n", "数据库索引。", "a harbour\n", "缓存 cache\n", "x")
URIS = ("/a", "/b")
VERSION = st.lists(st.sampled_from(LINES), min_size=1, max_size=7)
STEP = st.one_of(
    st.tuples(st.just("keep"), st.sampled_from(URIS), VERSION, st.integers(1, 12)),
    st.tuples(st.just("retire"), st.sampled_from(URIS), st.just([]), st.integers(1, 6)),
    st.tuples(st.just("digest"), st.just(""), st.just([]), st.integers(1, 12)),
    st.tuples(st.just("reopen"), st.just(""), st.just([]), st.just(0)),
)


def draft(uri: str, lines: list[str]) -> DocumentDraft:
    ends = [sum(map(len, lines[: n + 1])) for n in range(len(lines))]
    return DocumentDraft(
        uri=uri,
        stamp="s",
        content_hash="h",
        text="".join(lines),
        cuts=tuple(Cut(end=end, context=uri) for end in ends),
    )


def some_steps(world: MemoryWorld, operation, count: int) -> bool:
    """Runs that many steps and abandons it; True when it came to its end."""
    reply = None
    for _ in range(count):
        try:
            request = operation.send(reply)
        except StopIteration:
            return True
        texts = getattr(request, "texts", None)
        reply = None if texts is None else world.embedder.embed(texts, request.kind)
    operation.close()
    return False


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(steps=st.lists(STEP, max_size=8))
def test_the_newest_version_is_whole_whatever_was_abandoned(steps):
    folder = Path(tempfile.mkdtemp(prefix="growbox-versions-"))
    world = MemoryWorld(folder / "m", CONFIG)
    newest: dict[str, list[str]] = {}
    going: set[str] = set()
    try:
        for what, uri, lines, count in steps:
            if what == "keep":
                some_steps(world, world.engine.keep_document(draft(uri, lines)), count)
                newest[uri] = lines
                going.discard(uri)
            elif what == "retire":
                some_steps(world, world.engine.retire_document(uri), count)
                going.add(uri)
            elif what == "digest":
                some_steps(world, world.engine.digest(), count)
            else:
                world.reopen()
        for uri in going:
            state = world.engine.documents([uri]).get(uri)
            assert state is None or state.stamp == state.content_hash == ""
            assert some_steps(world, world.engine.retire_document(uri), 99)
            newest.pop(uri, None)
        world.digest()
        check(world, newest)
    finally:
        world.engine.close()
        shutil.rmtree(folder)


def check(world: MemoryWorld, newest: dict[str, list[str]]) -> None:
    stores = world.engine._stores
    states = world.engine.documents(list(URIS))
    assert set(states) == set(newest)
    answering = 0
    for uri, lines in newest.items():
        node = world.engine.node(states[uri].node_id)
        assert node.content == "".join(lines)
        chunks = stores.timeline.chunks(node.id)
        assert [chunk.content for chunk in chunks] == (lines if len(lines) > 1 else [])
        places = [chunk.byte_range for chunk in chunks]
        data = node.content.encode()
        assert [data[start:end].decode() for start, end in places] == [c.content for c in chunks]
        answering += len(lines)
    assert stores.lexical.count() == answering
    assert stores.vectors.count() == answering
    assert stores.scan._rows in (0, stores.vectors.count())
    assert world.engine.audit(fix=False, full=True).findings == ()
