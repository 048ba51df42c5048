"""Properties of text: nothing is lost in a chunk, a store or a search."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, assume, given, settings

from memory.recall.substring_scan import needles
from memory.rest.chunking import chunk_bounds
from memory.storage.vectors import pack, unpack
from memory.text import content_terms, folded, match_expression, normalise, storable, terms
from tests.fakes.embedder import vector_of
from tests.fakes.memory_world import MemoryWorld

ANY = st.text(st.characters(codec=None), max_size=60)
CJK = st.text(
    st.sampled_from("数据库我的猫叫豆包端口发布测试命令喜欢データ한국어"), min_size=2, max_size=12
)
WORDS = st.sampled_from(
    ["getUserName", "parse_http_header", "DuckDB", "8080", "v1.2.3", "foo::bar", "a->b", "x86_64"]
)
PIECES = st.lists(
    st.one_of(CJK, WORDS, st.sampled_from(["the", "quick", "fox"])), min_size=2, max_size=8
)


@given(ANY)
def test_storable_text_survives_utf8_and_is_stable(text):
    kept = storable(text)
    assert kept.encode("utf-8").decode("utf-8") == kept
    assert storable(kept) == kept


@given(st.text(max_size=400), st.integers(1, 50), st.integers(1, 5))
def test_chunks_join_to_the_original(text, limit, count):
    bounds, start = [], 0
    while start < len(text):
        step = chunk_bounds(text, start, limit, count)
        assert step
        bounds += step
        start = step[-1][1]
    assert "".join(text[begin:end] for begin, end in bounds) == text
    assert all(0 < end - begin <= limit for begin, end in bounds)


@given(st.text(max_size=80))
def test_terms_are_single_index_tokens(text):
    for term in terms(text):
        assert term
        assert not any(character.isspace() for character in term)


@given(st.text(max_size=60))
def test_terms_do_not_depend_on_width_or_outer_space(text):
    assert terms(normalise(text)) == terms(f"  {text} ")
    assert set(content_terms(text)) <= set(terms(text))


@given(st.text(max_size=30))
def test_needles_are_folded_and_long_enough(text):
    whole, parts = needles(text, set(), 2)
    assert all(len(needle) >= 2 for needle in (whole, *parts) if needle)
    assert whole in folded(text)


@given(st.text(max_size=40))
def test_a_vector_survives_its_blob(text):
    vector = vector_of(text)
    assert float(unpack(pack(vector)) @ vector) == pytest.approx(1.0, abs=2e-3)


@pytest.fixture(scope="module")
def world(tmp_path_factory):
    world = MemoryWorld(tmp_path_factory.mktemp("p") / "m")
    world.engine._stores.database.execute("PRAGMA synchronous = OFF")
    world.conversation_id = world.conversation()
    yield world
    world.engine.close()


SEARCH = settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])


@SEARCH
@given(text=st.text(st.characters(codec="utf-8"), max_size=60))
def test_whatever_is_said_is_there_as_it_was_said(world, text):
    node = world.say(text)
    assert world.engine.node(node.id).content == text


@SEARCH
@given(text=st.text(max_size=40))
def test_no_search_text_can_break_the_search(world, text):
    world.engine.search_messages(text)
    world.recall(text)
    if terms(text):
        world.engine._stores.lexical.search(terms(text), 5, 0.3)
        assert match_expression(terms(text)).count('"') % 2 == 0


@SEARCH
@given(pieces=PIECES, data=st.data())
def test_any_part_of_a_stored_text_is_found(world, pieces, data):
    """CJK, digits, identifiers: a substring of what was said finds it – by word, bigram or scan."""
    text = " ".join(pieces)
    node = world.say(text)
    start = data.draw(st.integers(0, len(text) - 2))
    end = data.draw(st.integers(start + 2, len(text)))
    part = text[start:end].strip()
    assume(len(part) >= 2)
    found = world.engine.search_messages(part, 500)
    assert node.id in {n.id for n in found}


@SEARCH
@given(pieces=PIECES, data=st.data())
def test_a_part_of_the_only_memory_is_recalled(tmp_path_factory, pieces, data):
    text = "。".join(["记住这些", *pieces])
    part = data.draw(st.sampled_from(pieces))
    assume(part not in ("the", "quick", "fox"))
    world = MemoryWorld(tmp_path_factory.mktemp("one") / "m")
    try:
        world.engine._stores.database.execute("PRAGMA synchronous = OFF")
        world.say(text)
        assert world.found(part) == [text]
    finally:
        world.engine.close()
