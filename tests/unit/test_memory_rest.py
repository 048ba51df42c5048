"""Fatigue, chunk boundaries, and the two bounded caches."""

from __future__ import annotations

import pytest

from memory.recall.neighbour_cache import NeighbourCache
from memory.recall.recent_queries import RecentQueries, RecentQuery
from memory.rest.chunking import chunk_bounds, chunk_end
from memory.rest.fatigue import FatigueMeter
from memory.storage.pointer_records import Record


def meter() -> FatigueMeter:
    return FatigueMeter(window=200, history=3)


def test_no_activity_is_no_fatigue():
    assert meter().snapshot(1, accesses=[], fragments=0, nodes=0).total == 0.0


def test_the_three_parts_are_weighed():
    pressed = meter()
    pressed.paged_in()
    pressed.paged_in()
    pressed.evicted(1)
    seen = pressed.snapshot(1, accesses=[True, False, False, False], fragments=1, nodes=4)
    assert (seen.miss, seen.eviction, seen.debt) == (0.75, 0.5, 0.25)
    assert seen.total == pytest.approx(0.4 * 0.75 + 0.2 * 0.5 + 0.4 * 0.25)


def test_eviction_pressure_never_passes_one():
    pressed = meter()
    pressed.evicted(9)
    assert pressed.snapshot(1, accesses=[], fragments=9, nodes=1).total == pytest.approx(0.6)


def test_history_keeps_changes_only_and_is_bounded():
    pressed = meter()
    for time_ms, accesses in enumerate([[], [], [False], [True, False], [True]]):
        seen = pressed.snapshot(time_ms, accesses=accesses, fragments=0, nodes=1)
    assert [time_ms for time_ms, _ in seen.history] == [2, 3, 4]


def test_the_neighbour_cache_drops_the_least_used_and_counts():
    read: list[str] = []

    def load(source: str) -> Record:
        read.append(source)
        return Record()

    cache = NeighbourCache(load, entries_max=2, window=4)
    for source in ("a", "a", "b", "c", "a", "b"):
        cache.edges(source)
    assert read == ["a", "b", "c", "b"]
    assert list(cache.accesses) == [False, False, True, False]
    cache.invalidate(["e:a"])
    cache.edges("a")
    assert read[-1] == "a"


def test_recent_queries_are_bounded_and_known_by_their_folded_text():
    recent = RecentQueries(2)
    for text in ("One", "two", "ＯＮＥ", "three"):
        recent.remember(text, RecentQuery(vector=None))
    assert recent.find("one ") is not None
    assert recent.find("two") is None


def test_a_short_text_is_one_chunk():
    assert chunk_bounds("short", 0, 1500, 9) == [(0, 5)]


def test_headings_win_over_blank_lines_and_those_over_sentences():
    text = "a" * 30 + "\n\n" + "b. " * 10 + "\n# Head\n" + "c" * 50
    assert text[chunk_end(text, 0, 90) :].startswith("# Head")
    text = "a" * 40 + ".\n\n" + "b. c. d. " + "e" * 60
    assert text[: chunk_end(text, 0, 60)].endswith("\n\n")


def test_chinese_is_cut_at_sentence_ends():
    text = "这是一句话。" * 20
    assert text[: chunk_end(text, 0, 50)].endswith("。")


def test_without_any_boundary_it_is_cut_at_the_limit():
    assert chunk_end("x" * 100, 0, 30) == 30
