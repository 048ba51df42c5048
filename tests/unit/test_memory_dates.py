"""Dates by rule, in local time."""

from __future__ import annotations

from datetime import date, datetime, time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.recall.dates import period

NOW = datetime(2026, 3, 12, 15, 30)  # noqa: DTZ001 - local time; a Thursday
NOW_MS = round(NOW.timestamp() * 1000)


def days(text: str) -> tuple[date, date] | None:
    """First and last day (excluded) of the period of a text."""
    found = period(text, NOW_MS)
    if found is None:
        return None
    first, last = (
        datetime.fromtimestamp(ms / 1000)  # noqa: DTZ006 - local time
        for ms in (found.since_ms, found.until_ms)
    )
    assert first.time() == last.time() == time()
    return first.date(), last.date()


@pytest.mark.parametrize(
    ("text", "first", "last"),
    [
        ("What did we say yesterday?", (2026, 3, 11), (2026, 3, 12)),
        ("the day before yesterday", (2026, 3, 10), (2026, 3, 11)),
        ("what did I ask today", (2026, 3, 12), (2026, 3, 13)),
        ("what did we decide last week?", (2026, 3, 2), (2026, 3, 9)),
        ("this week", (2026, 3, 9), (2026, 3, 16)),
        ("last month", (2026, 2, 1), (2026, 3, 1)),
        ("last year", (2025, 1, 1), (2026, 1, 1)),
        ("3 days ago", (2026, 3, 9), (2026, 3, 10)),
        ("two weeks ago", (2026, 2, 23), (2026, 3, 2)),
        ("in the last 7 days", (2026, 3, 5), (2026, 3, 13)),
        ("on Tuesday", (2026, 3, 10), (2026, 3, 11)),
        ("last Thursday", (2026, 3, 5), (2026, 3, 6)),
        ("in March", (2026, 3, 1), (2026, 4, 1)),
        ("in May", (2025, 5, 1), (2025, 6, 1)),
        ("in December 2023", (2023, 12, 1), (2024, 1, 1)),
        ("on March 1st", (2026, 3, 1), (2026, 3, 2)),
        ("on 24 December", (2025, 12, 24), (2025, 12, 25)),
        ("on the 5th of May, 2023", (2023, 5, 5), (2023, 5, 6)),
        ("2026-01-31 notes", (2026, 1, 31), (2026, 2, 1)),
        ("in 2024", (2024, 1, 1), (2025, 1, 1)),
        ("昨天说了什么？", (2026, 3, 11), (2026, 3, 12)),
        ("前天", (2026, 3, 10), (2026, 3, 11)),
        ("今天早上", (2026, 3, 12), (2026, 3, 13)),
        ("上周二聊的数据库", (2026, 3, 3), (2026, 3, 4)),
        ("上个星期日", (2026, 3, 8), (2026, 3, 9)),
        ("上上周五", (2026, 2, 27), (2026, 2, 28)),
        ("本周一", (2026, 3, 9), (2026, 3, 10)),
        ("上周末", (2026, 3, 7), (2026, 3, 9)),
        ("上周", (2026, 3, 2), (2026, 3, 9)),
        ("上个月", (2026, 2, 1), (2026, 3, 1)),
        ("这个月", (2026, 3, 1), (2026, 4, 1)),
        ("去年", (2025, 1, 1), (2026, 1, 1)),
        ("三天前", (2026, 3, 9), (2026, 3, 10)),
        ("两个月前", (2026, 1, 1), (2026, 2, 1)),
        ("最近七天", (2026, 3, 5), (2026, 3, 13)),
        ("3月12日的会议", (2026, 3, 12), (2026, 3, 13)),
        ("十二月二十四号", (2025, 12, 24), (2025, 12, 25)),
        ("2023年5月", (2023, 5, 1), (2023, 6, 1)),
        ("２０２３年", (2023, 1, 1), (2024, 1, 1)),
        ("五月份", (2025, 5, 1), (2025, 6, 1)),
        ("一月生日的人明年再说", (2026, 1, 1), (2026, 2, 1)),
    ],
)
def test_a_date_is_a_span_of_local_days(text, first, last):
    assert days(text) == (date(*first), date(*last))


@pytest.mark.parametrize(
    "text",
    [
        "",
        "write quicksort",
        "tomorrow",
        "next week",
        "may I ask you something",
        "march on",
        "the last three items",
        "version 2026.3",
        "月亮有多远",
        "13月40日",
        "31 June",
        "in 0001",
    ],
)
def test_what_is_no_past_date_bounds_nothing(text):
    assert days(text) is None


@given(st.text(max_size=60))
def test_any_text_gives_an_ordered_span_or_none(text):
    found = period(text, NOW_MS)
    assert found is None or found.since_ms < found.until_ms


@given(
    st.sampled_from(["{} days ago", "{}天前", "{} weeks ago", "in {}", "{}年", "{}月{}日"]),
    st.integers(0, 99999),
)
def test_any_number_gives_an_ordered_span_or_none(pattern, number):
    found = period(pattern.replace("{}", str(number)), NOW_MS)
    assert found is None or found.since_ms < found.until_ms
