"""Fatigue, chunk boundaries, and the two bounded caches."""

from __future__ import annotations

import pytest

from memory.recall.neighbour_cache import NeighbourCache
from memory.recall.recent_queries import RecentQueries, RecentQuery
from memory.rest.chunking import chunk_bounds, chunk_end
from memory.rest.fatigue import FatigueMeter
from memory.storage.pointer_records import Record

MINUTE = 60_000


def meter(window: int = 200) -> FatigueMeter:
    return FatigueMeter(window=window, every_ms=5 * MINUTE, span_ms=24 * 60 * MINUTE)


def test_no_activity_is_no_fatigue():
    assert meter().snapshot(1, accesses=[], fragments=0, nodes=0).total == 0.0
    assert meter().snapshot(1, accesses=[], fragments=0, nodes=9).total == 0.0


def test_the_three_parts_are_weighed():
    pressed = meter()
    pressed.paged_in()
    pressed.paged_in()
    pressed.evicted(1)
    seen = pressed.snapshot(1, accesses=[True, False, False, False], fragments=1, nodes=4)
    assert (seen.miss, seen.eviction, seen.debt) == (0.75, 0.5, 0.25)
    assert seen.total == pytest.approx(0.4 * 0.75 + 0.2 * 0.5 + 0.4 * 0.25)


@pytest.mark.parametrize(
    ("accesses", "fragments", "nodes", "total"),
    [
        ([True] * 200, 0, 10, 0.0),
        ([False] * 200, 0, 10, 0.4),
        ([], 5, 0, 0.0),
        ([], 10, 10, 0.4),
        ([], 99, 10, 0.4),
        ([False], 10, 10, 0.8),
    ],
)
def test_the_corners(accesses, fragments, nodes, total):
    seen = meter().snapshot(1, accesses=accesses, fragments=fragments, nodes=nodes)
    assert seen.total == pytest.approx(total)


def test_everything_at_its_worst_is_one():
    pressed = meter()
    pressed.evicted(9)
    seen = pressed.snapshot(1, accesses=[False], fragments=1, nodes=1)
    assert (seen.eviction, seen.total) == (1.0, pytest.approx(1.0))


def test_the_window_forgets_what_is_long_ago():
    pressed = meter(window=4)
    pressed.evicted(4)
    for _ in range(4):
        pressed.paged_in()
    assert pressed.snapshot(1, accesses=[], fragments=0, nodes=1).eviction == 0.0


def test_the_curve_has_a_point_per_slot_and_spans_a_day():
    pressed = meter()
    for minute in range(3 * 24 * 60):
        seen = pressed.snapshot(minute * MINUTE, accesses=[], fragments=0, nodes=1)
    times = [time_ms for time_ms, _ in seen.history]
    assert len(times) == 24 * 12
    assert times == sorted(times)
    assert times[-1] == (3 * 24 * 60 - 1) * MINUTE
    assert times[-1] - times[0] < 24 * 60 * MINUTE


def test_a_clock_that_goes_back_leaves_no_points_ahead():
    pressed = meter()
    pressed.snapshot(100 * MINUTE, accesses=[], fragments=0, nodes=1)
    seen = pressed.snapshot(50 * MINUTE, accesses=[False], fragments=0, nodes=1)
    assert seen.history == ((50 * MINUTE, 0.4),)


def test_window_and_curve_are_restored():
    pressed = meter()
    pressed.paged_in()
    pressed.evicted(1)
    before = pressed.snapshot(MINUTE, accesses=[], fragments=0, nodes=1)
    again = meter()
    again.restore(pressed.state, before.history)
    assert again.snapshot(MINUTE, accesses=[], fragments=0, nodes=1) == before


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
