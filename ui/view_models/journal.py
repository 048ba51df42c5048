"""The dream journal in words: what a change was, what was before and after it, and under which day it stands."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from growbox_app.models.catalogue import catalogue
from growbox_app.text import LANGUAGES, tr
from memory.rest_values import (
    BACKGROUND,
    Cause,
    JournalEntry,
    JournalFilter,
    JournalKind,
    JournalNode,
)
from memory.values import NodeId
from ui.view_models import wording
from ui.view_models.display import one_line, title_line

PAGE = 100
DAY_MS = wording.DAY_MS
_VERSIONS = re.compile(rf"-(?:{'|'.join(LANGUAGES)})-")
_QUESTION_CHARACTERS = 200
_DETAIL_CHARACTERS = 2_000
FILTERS: dict[str, JournalFilter] = {
    "all": JournalFilter(limit=PAGE),
    "finds": JournalFilter(finds_only=True, limit=PAGE),
    "dreams": JournalFilter(causes=frozenset({Cause.DREAM}), limit=PAGE),
    "rehearsals": JournalFilter(causes=frozenset({Cause.REHEARSAL}), limit=PAGE),
    "learned": JournalFilter(causes=frozenset({Cause.FLYWHEEL}), limit=PAGE),
    "own": JournalFilter(causes=frozenset(Cause) - BACKGROUND, limit=PAGE),
}


def wanted(choice: str, text: str, before_id: int | None = None) -> JournalFilter:
    """The filter of a choice, of what is searched, and of the place to go on from."""
    return replace(FILTERS[choice], text=text.strip(), before_id=before_id)


def day_name(time_ms: int, now_ms: int) -> str:
    """`Today`, `Yesterday`, or the date."""
    day = wording.day(time_ms, now_ms)
    if day == wording.day(now_ms, now_ms):
        return tr("journal.today")
    if day == wording.day(now_ms - DAY_MS, now_ms):
        return tr("journal.yesterday")
    return day


def time_of_day(time_ms: int) -> str:
    """`14:02`."""
    return wording.local_time(time_ms).strftime("%H:%M")


def what(entry: JournalEntry) -> str:
    """What the change was, in a sentence."""
    read = wording.counted("journal.notes", len(entry.yes) + entry.no_count)
    finds = len(entry.yes)
    found = wording.counted("journal.found", finds) if finds else tr("journal.nothing")
    if entry.kind is JournalKind.POINTED:
        found = wording.counted("journal.notes", finds)
    record = one_line(entry.record, _QUESTION_CHARACTERS)
    unclear = wording.counted("journal.notes", entry.unclear_count)
    return tr(f"journal.did_{entry.kind}", read=read, found=found, record=record, unclear=unclear)


def about(entry: JournalEntry) -> str:
    """Cause, marks and question in one line."""
    marks = [tr("journal.undone")] if entry.undone else []
    question = one_line(entry.question, _QUESTION_CHARACTERS)
    parts = [*marks, tr(f"journal.cause_{entry.cause}"), question]
    return " · ".join(part for part in parts if part)


def describe(entry: JournalEntry, now_ms: int) -> str:
    """All of a row, for hovering and for screen readers."""
    mark = [tr("journal.new")] if entry.new else []
    when = f"{day_name(entry.at_ms, now_ms)} {time_of_day(entry.at_ms)}"
    return ", ".join([*mark, what(entry), about(entry), when])


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of the detail: its heading, its text, and the notes one can open, by title."""

    heading: str
    text: str = ""
    notes: tuple[tuple[str, NodeId | None], ...] = ()
    notes_first: bool = False


def judge_name(judge: str) -> str:
    """The model of a judge; its full name begins with the fingerprint of the model file, then come prompt and calibration."""
    file = _VERSIONS.split(judge, maxsplit=1)[0]
    known = (model.name for model in catalogue() if model.sha256.startswith(file))
    return next(known, file)


def parts(entry: JournalEntry) -> tuple[Part, ...]:
    """The detail of a change, top to bottom."""
    made = [Part(heading=tr("journal.question"), text=_whole(entry.question))]
    if entry.record:
        link = ((tr("journal.open_record"), entry.record_id),) if entry.record_id else ()
        made.append(
            Part(heading=tr("journal.record"), text=_whole(entry.record), notes=link),
        )
    learned = entry.kind is JournalKind.KNOWLEDGE
    yes = tr("journal.rests_on") if learned else tr("journal.found")
    made.append(Part(heading=yes, notes=_links(entry.yes)))
    refused = entry.kind is JournalKind.REFUSED
    no = tr("journal.refused" if refused else "journal.not_found")
    made.append(_some(no, entry.no, entry.no_count))
    made.append(_some(tr("journal.unclear"), entry.unclear, entry.unclear_count))
    made.append(Part(heading=tr("journal.sources"), notes=_links(entry.sources)))
    before, after = before_and_after(entry)
    made.append(Part(heading=tr("journal.before"), text=before))
    made.append(Part(heading=tr("journal.after"), text=after))
    return tuple(part for part in made if part.text or part.notes)


def _some(heading: str, notes: tuple[JournalNode, ...], count: int) -> Part:
    """The first notes of many."""
    more = count - len(notes)
    said = wording.counted("journal.more", more) if more > 0 else ""
    return Part(heading=heading, text=said, notes=_links(notes), notes_first=True)


def _whole(text: str) -> str:
    return text if len(text) <= _DETAIL_CHARACTERS else text[:_DETAIL_CHARACTERS] + "…"


def _links(notes: tuple[JournalNode, ...]) -> tuple[tuple[str, NodeId | None], ...]:
    return tuple((_title(note), note.node_id) for note in notes)


def _title(note: JournalNode) -> str:
    title = title_line(note.title) or wording.number(note.seq)
    return title if note.node_id is not None else tr("journal.gone", title=title)


def before_and_after(entry: JournalEntry) -> tuple[str, str]:
    """How it was before the change, and how it is since."""
    if entry.kind is JournalKind.KNOWLEDGE:
        before, after = [tr("journal.before_record")], [tr("journal.after_record")]
    elif entry.kind is JournalKind.REFUSED:
        before, after = [tr("journal.before_refused")], [tr("journal.after_refused")]
    elif entry.kind in (JournalKind.PUT_ASIDE, JournalKind.REOPENED):
        aside = entry.kind is JournalKind.PUT_ASIDE
        before = [tr("journal.debt_open" if aside else "journal.debt_aside")]
        after = [tr("journal.debt_aside" if aside else "journal.debt_open")]
    else:
        before, after = _read(entry)
    if entry.undone:
        after = [tr("journal.after_undone")]
    return " ".join(before), " ".join(after)


def _read(entry: JournalEntry) -> tuple[list[str], list[str]]:
    before, after = [], []
    if entry.yes:
        before.append(tr("journal.before_find"))
        count = len(entry.sources)
        many = wording.counted("journal.after_find", count) if count else ""
        after.append(many or tr("journal.after_find_none"))
    elif entry.no_count:
        before.append(tr("journal.before_none"))
        after.append(tr("journal.after_none"))
    if entry.kind is JournalKind.DEBT_CLEARED:
        after.append(tr("journal.after_paid"))
    return before, after
