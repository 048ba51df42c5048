"""What a search of the past has read, as a fold: verdicts and stains by cluster, fragments, anchors. Pure.

A stain belongs to a cluster of questions and a judge: what was read for one question is unread for another. Everything is
bounded, and dropping the oldest costs only speed. Source: seed items G12, G14, G15, without the defects 1.12-3 and -10.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import msgspec

from memory.config import LearningConfig
from memory.storage import intervals
from memory.storage.intervals import Intervals
from memory.storage.learning_log import LearningEvent, Pulled, Reading
from memory.storage.pointer_records import (
    ANCHORS_KEY,
    CLUSTERS_KEY,
    EMPTY,
    LEDGER_KEY,
    Anchor,
    Book,
    Fragment,
    Record,
    cluster_key,
)

_LEVEL_TWO = 2  # from twice the nearest distance on


def apply_reading(
    event: LearningEvent,
    reading: Reading,
    get: Callable[[str], Record],
    put: Callable[[str, Record], None],
    config: LearningConfig,
) -> None:
    """Folds one batch in."""
    key = cluster_key(reading.cluster)
    record = _read(get(key), reading, config)
    put(key, record)
    _note_cluster(reading.cluster, get, put, config)
    ledger = _ledger(get(LEDGER_KEY), event, reading, answered(record), config)
    put(LEDGER_KEY, ledger)
    if reading.anchors:
        put(ANCHORS_KEY, Record(anchors=_anchors(get(ANCHORS_KEY).anchors, event, reading, config)))


def answered(record: Record) -> Intervals:
    """What any judge has read for a cluster."""
    return intervals.united(*(book.answered for book in record.books.values()))


def _read(record: Record, reading: Reading, config: LearningConfig) -> Record:
    light = intervals.united(record.light, intervals.of(reading.light))
    books = dict(record.books)
    if reading.judge and not reading.unclear:
        book = books.pop(reading.judge, Book())
        books[reading.judge] = _written(book, reading, config)  # the judge used last stands last
        books = dict(list(books.items())[-config.judges_per_cluster :])
    return Record(books=books, light=intervals.bounded(light, config.intervals_max))


def _written(book: Book, reading: Reading, config: LearningConfig) -> Book:
    """A yes leaves the no's; a no takes back only a yes to the same wording."""
    yes = [
        (seq, asked)
        for seq, asked in book.yes
        if asked != reading.asked or not (seq in reading.yes or _holds(reading.no, seq))
    ]
    no = book.no
    for seq in reading.yes:
        no = tuple(part for interval in no for part in intervals.remaining(interval, ((seq, seq),)))
    ran_out = reading.paused_at > 0
    return Book(
        no=intervals.bounded(intervals.united(no, reading.no), config.intervals_max),
        yes=(*yes, *((seq, reading.asked) for seq in reading.yes))[-config.yes_max :],
        asked=(*(a for a in book.asked if a != reading.asked), reading.asked)[-config.yes_max :],
        cursor=reading.paused_at if ran_out else book.cursor,
        newest=max(reading.newest, book.newest) if ran_out else book.newest,
    )


def _holds(spans: Intervals, seq: int) -> bool:
    return intervals.holding(spans, seq) is not None


def _note_cluster(
    cluster: int,
    get: Callable[[str], Record],
    put: Callable[[str, Record], None],
    config: LearningConfig,
) -> None:
    """The cluster used last stands last; one too many, and the first is forgotten with all that was read for it."""
    others = tuple(c for c in get(CLUSTERS_KEY).clusters if c != cluster)
    dropped = others[: max(0, len(others) + 1 - config.clusters_max)]
    for old in dropped:
        put(cluster_key(old), EMPTY)
    put(CLUSTERS_KEY, Record(clusters=(*others[len(dropped) :], cluster)))


def _ledger(
    ledger: Record,
    event: LearningEvent,
    reading: Reading,
    covered: Intervals,
    config: LearningConfig,
) -> Record:
    """Debts of this cluster that are read by now are cleared; new ones stand last; the first of too many goes."""
    owed = _left(ledger.fragments, reading, covered, config)
    aside = _left(ledger.unclear, reading, covered, config)
    cleared = len(ledger.fragments) + len(ledger.unclear) - len(owed) - len(aside)
    if reading.unclear or reading.reopened:
        _move(owed, aside, reading, covered=covered, config=config)
    known = {f.name for f in owed} | {f.name for f in aside if f.query == reading.cluster}
    for entry, target in reading.fragments:
        fragment = Fragment(
            entry=entry, target=target, query=reading.cluster, created_at_ms=event.created_at_ms
        )
        if fragment.name not in known and intervals.remaining(fragment.gap, covered):
            aside = [f for f in aside if f.name != fragment.name]  # names are unique in both lists
            owed.append(fragment)
            known.add(fragment.name)
    return Record(
        fragments=tuple(owed[-config.fragments_max :]),
        unclear=tuple(aside[-config.fragments_max :]),
        cleared=ledger.cleared + cleared,
    )


def _left(
    fragments: Sequence[Fragment], reading: Reading, covered: Intervals, config: LearningConfig
) -> list[Fragment]:
    """What is not read yet; the debt that was paid on goes to the end of the queue with its progress."""
    waiting = [f for f in fragments if f.name != reading.debt]
    paid = [_paid(f, reading, config) for f in fragments if f.name == reading.debt]
    return [f for f in (*waiting, *paid) if f.query != reading.cluster or f.remaining(covered)]


def _move(
    owed: list[Fragment],
    aside: list[Fragment],
    reading: Reading,
    *,
    covered: Intervals,
    config: LearningConfig,
) -> None:
    """Puts a debt aside, in the name of a judge, or makes it owed again.

    One that has more unread than was unclear then – what it had answered was undone – stays where it is.
    """
    known = intervals.united(reading.unclear, reading.passed)
    for fragments in (owed, aside):
        for fragment in fragments:
            if fragment.name == reading.debt and fragment.query == reading.cluster:
                left = fragment.remaining(covered)
                if reading.unclear and any(intervals.remaining(part, known) for part in left):
                    return
                fragments.remove(fragment)
                if reading.unclear:
                    others = tuple(j for j in fragment.judges if j != reading.judge)
                    judges = (*others, reading.judge)[-config.unclear_judges :]
                    aside.append(msgspec.structs.replace(fragment, judges=judges))
                else:
                    owed.append(fragment)
                return


def _paid(fragment: Fragment, reading: Reading, config: LearningConfig) -> Fragment:
    first, last = fragment.gap
    read = intervals.united(fragment.read, reading.no, intervals.of(reading.yes), reading.passed)
    inside = ((max(first, f), min(last, e)) for f, e in read if f <= last and e >= first)
    return msgspec.structs.replace(
        fragment, read=intervals.bounded(tuple(inside), config.debt_intervals_max)
    )


def _anchors(
    anchors: tuple[Anchor, ...], event: LearningEvent, reading: Reading, config: LearningConfig
) -> tuple[Anchor, ...]:
    by_target = {anchor.target: anchor for anchor in anchors}
    for pulled in reading.anchors:
        near = pulled.windows < config.anchor_windows
        old = by_target.pop(pulled.target, None)
        if not near:
            by_target[pulled.target] = _warmer(old, pulled, event.created_at_ms, config)
    hottest = sorted(
        by_target.values(),
        key=lambda a: (a.used_at_ms == event.created_at_ms, a.heat, a.used_at_ms),
        reverse=True,
    )[: config.anchors_max]  # the one just pulled never goes
    return tuple(sorted(hottest, key=lambda a: (a.heat, a.used_at_ms), reverse=True))


def _warmer(old: Anchor | None, pulled: Pulled, now_ms: int, config: LearningConfig) -> Anchor:
    """Reuse warms; a level never falls, for the timeline only grows."""
    level = 2 if pulled.windows >= _LEVEL_TWO * config.anchor_windows else 1
    return Anchor(
        target=pulled.target,
        heat=1 if old is None else old.heat + 1,
        level=level if old is None else max(level, old.level),
        used_at_ms=now_ms,
    )
