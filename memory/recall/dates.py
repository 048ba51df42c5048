"""Dates by rule: "last week", "on 12 March", 上周二 – the span of local time that a question speaks of. Pure.

Only the past: a date without a year is its most recent occurrence, and what lies ahead ("tomorrow", "next week") bounds
nothing, for nothing was said then. The first rule that fits decides, the most exact rules first.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from typing import TypeAlias

from memory.text import folded

_MONTHS = "january february march april may june july august september october november december"
_DAYS = "monday tuesday wednesday thursday friday saturday sunday"
_MONTH_OF = {m: i for i, m in enumerate(_MONTHS.split(), 1)} | {
    m[:3]: i for i, m in enumerate(_MONTHS.split(), 1)
}
_DAY_OF = {d: i for i, d in enumerate(_DAYS.split())}
_MONTH = "|".join(sorted(_MONTH_OF, key=len, reverse=True))
_ORDINAL = r"(?:st|nd|rd|th)?"
_NUMBER_OF = dict(zip("零一二三四五六七八九", range(10), strict=True)) | {"两": 2}
_WORD_OF = dict(
    zip(
        ["a", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"],
        [1, *range(1, 11)],
        strict=True,
    )
)
_N = r"(\d{1,3}|an?|one|two|three|four|five|six|seven|eight|nine|ten)"
_ZH = r"([0-9]{1,3}|[一二两三四五六七八九十]{1,3})"
_YEARS = range(1970, 10_000)

_Span: TypeAlias = tuple[date, date]


@dataclass(frozen=True, slots=True, kw_only=True)
class Period:
    """Local time as UTC milliseconds, the end excluded, and the words (folded) that name it."""

    since_ms: int
    until_ms: int
    words: str


def period(text: str, now_ms: int) -> Period | None:
    """The time a question speaks of; None when it names none, or none that has begun."""
    low = folded(text)
    today = datetime.fromtimestamp(now_ms / 1000).date()  # noqa: DTZ006 - local time is what people mean
    for pattern, rule in _RULES:
        for found in pattern.finditer(low):
            span = _applied(rule, found, today)
            if span is not None and span[0] <= today:
                return Period(
                    since_ms=_midnight_ms(span[0]),
                    until_ms=_midnight_ms(span[1]),
                    words=found.group(),
                )
    return None


def _applied(rule: _Rule, found: re.Match[str], today: date) -> _Span | None:
    """None for a date that no calendar has (31 June, a year beyond all years)."""
    try:
        return rule(found, today)
    except (ValueError, OverflowError):
        return None


def _midnight_ms(day: date) -> int:
    return round(datetime.combine(day, time()).timestamp() * 1000)


def _number(text: str) -> int:
    if text.isascii():
        return int(text) if text.isdigit() else _WORD_OF.get(text, 1)
    tens, ten, ones = text.rpartition("十")
    if not ten:
        return _NUMBER_OF[text]
    return (_NUMBER_OF[tens] if tens else 1) * 10 + (_NUMBER_OF[ones] if ones else 0)


def _days(start: date, count: int = 1) -> _Span:
    return start, start + timedelta(days=count)


def _month(year: int, month: int) -> _Span:
    return date(year, month, 1), date(year + month // 12, month % 12 + 1, 1)


def _year(year: int) -> _Span:
    return date(year, 1, 1), date(year + 1, 1, 1)


def _months_back(today: date, count: int) -> _Span:
    index = today.year * 12 + today.month - 1 - count
    return _month(index // 12, index % 12 + 1)


def _weeks_back(today: date, count: int) -> _Span:
    return _days(today - timedelta(days=today.weekday() + 7 * count), 7)


def _back(today: date, count: int, unit: str) -> _Span:
    """The day, week, month or year so many ago."""
    if unit in ("day", "天", "日"):
        return _days(today - timedelta(days=count))
    if unit in ("week", "周", "星期", "礼拜"):
        return _weeks_back(today, count)
    if unit in ("month", "月"):
        return _months_back(today, count)
    return _year(today.year - count)


def _recent(today: date, count: int, unit: str) -> _Span:
    """All of the last so many days, weeks, months or years, today included."""
    days = {"day": 1, "天": 1, "日": 1, "week": 7, "周": 7, "星期": 7, "month": 30, "月": 30}
    start = today - timedelta(days=count * days.get(unit, 365))
    return start, today + timedelta(days=1)


def _dated(year: str | None, month: int, day: str | None, today: date) -> _Span:
    """A date or a month; without a year the most recent one."""
    chosen = int(year) if year else today.year
    span = _days(date(chosen, month, int(day))) if day else _month(chosen, month)
    if not year and span[0] > today:
        return _dated(str(chosen - 1), month, day, today)
    return span


def _weekday(today: date, weekday: int) -> _Span:
    """The most recent one before today."""
    return _days(today - timedelta(days=(today.weekday() - weekday - 1) % 7 + 1))


def _calendar_year(text: str) -> _Span | None:
    return _year(int(text)) if int(text) in _YEARS else None


_ZH_BACK = {"今": 0, "昨": 1, "前": 2}
_ZH_WEEKDAY = dict(zip("一二三四五六", range(6), strict=True)) | {"日": 6, "天": 6, "末": 5}


def _zh_weekday(found: re.Match[str], today: date) -> _Span:
    weeks = found[1].count("上")
    start = _weeks_back(today, weeks)[0]
    last = found[2] == "末"
    return _days(start + timedelta(days=_ZH_WEEKDAY[found[2]]), 2 if last else 1)


_Rule: TypeAlias = Callable[[re.Match[str], date], _Span | None]
_RULES: tuple[tuple[re.Pattern[str], _Rule], ...] = tuple(
    (re.compile(pattern), rule)
    for pattern, rule in (
        (r"\b(\d{4})-(\d{1,2})-(\d{1,2})\b", lambda m, t: _dated(m[1], int(m[2]), m[3], t)),
        (
            r"(?:(\d{4})年)?([0-9]{1,2}|十[一二]?|[一二三四五六七八九])月([0-9]{1,2}|[一二三]?十?[一二三四五六七八九]|[一二三]?十)[日号]",
            lambda m, t: _dated(m[1], _number(m[2]), str(_number(m[3])), t),
        ),
        (
            rf"\b({_MONTH})\.? (\d{{1,2}}){_ORDINAL}\b(?:,? (\d{{4}})\b)?",
            lambda m, t: _dated(m[3], _MONTH_OF[m[1]], m[2], t),
        ),
        (
            rf"\b(\d{{1,2}}){_ORDINAL}(?: of)? ({_MONTH})\b\.?(?:,? (\d{{4}})\b)?",
            lambda m, t: _dated(m[3], _MONTH_OF[m[2]], m[1], t),
        ),
        (r"\bthe day before yesterday\b", lambda _, t: _back(t, 2, "day")),
        (r"\byesterday\b|\blast night\b", lambda _, t: _back(t, 1, "day")),
        (r"\btoday\b|\bthis (?:morning|afternoon|evening)\b", lambda _, t: _days(t)),
        (r"大前天", lambda _, t: _back(t, 3, "天")),
        (r"(今|昨|前)[天日晚早]", lambda m, t: _back(t, _ZH_BACK[m[1]], "天")),
        (rf"\b{_N} (day|week|month|year)s? ago\b", lambda m, t: _back(t, _number(m[1]), m[2])),
        (
            rf"{_ZH}个?(天|日|周|星期|礼拜|月|年)(?:之|以)?前",
            lambda m, t: _back(t, _number(m[1]), m[2]),
        ),
        (
            rf"\b(?:last|past) {_N} (day|week|month|year)s\b",
            lambda m, t: _recent(t, _number(m[1]), m[2]),
        ),
        (
            rf"(?:最近|过去|近){_ZH}个?(天|日|周|星期|月|年)",
            lambda m, t: _recent(t, _number(m[1]), m[2]),
        ),
        (
            rf"\b(?:last|on) ({_DAYS.replace(' ', '|')})\b",
            lambda m, t: _weekday(t, _DAY_OF[m[1]]),
        ),
        (r"((?:上|这|本)上?个?)(?:周|星期|礼拜)([一二三四五六日天末])", _zh_weekday),
        (r"\blast (week|month|year)\b", lambda m, t: _back(t, 1, m[1])),
        (r"\bthis (week|month|year)\b", lambda m, t: _back(t, 0, m[1])),
        (r"(上+)个?(周|星期|礼拜|月)", lambda m, t: _back(t, len(m[1]), m[2])),
        (r"(?:这个?|本)(周|星期|礼拜|月)", lambda m, t: _back(t, 0, m[1])),
        (r"(今|去|前)年", lambda m, t: _back(t, "今去前".index(m[1]), "年")),
        (
            r"(?:(\d{4})年)?([0-9]{1,2}|十[一二]?|[一二三四五六七八九])月(?:份|里|中)?",
            lambda m, t: _dated(m[1], _number(m[2]), None, t),
        ),
        (
            rf"\b(?:in|during|of|since) ({_MONTH})\b(?:,? (\d{{4}})\b)?",
            lambda m, t: _dated(m[2], _MONTH_OF[m[1]], None, t),
        ),
        (r"\b(?:in|during) (\d{4})\b", lambda m, _: _calendar_year(m[1])),
        (r"(\d{4})年", lambda m, _: _calendar_year(m[1])),
    )
)
