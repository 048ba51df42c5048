"""The search of the past for an answer, in words: one line under the answer, one in its recall trace."""

from __future__ import annotations

from growbox_app.api import DeepSearch, DeepSearchState
from growbox_app.text import tr
from ui.view_models import wording
from ui.view_models.display import one_line, title_line

TITLE_CHARACTERS = 80


def notice(search: DeepSearch, now_ms: int) -> str:
    """What to say under the answer. A find is named beside it (`found_title`), so that it can be opened."""
    if search.state is DeepSearchState.FOUND:
        return tr("search.found")
    if search.state is DeepSearchState.NOTHING:
        return tr("search.nothing")
    if search.state is DeepSearchState.UNAVAILABLE:
        return tr("search.unavailable")
    key = f"search.{search.state}"
    if search.back_to_ms is None:
        return tr(f"{key}_begun")
    day = wording.day(search.back_to_ms, now_ms)
    return tr(key, day=day, notes=wording.counted("search.notes", search.notes_read))


def found_title(search: DeepSearch) -> str:
    """What was found, best first; empty when nothing was."""
    if not search.memories:
        return ""
    best = search.memories[0]
    title = title_line(best.title, TITLE_CHARACTERS) or one_line(best.excerpt, TITLE_CHARACTERS)
    others = len(search.memories) - 1
    return tr("search.and_more", title=title, count=wording.number(others)) if others else title


def trace_line(search: DeepSearch, now_ms: int) -> str:
    """What reading the past has cost, for the recall trace; empty while it has cost nothing."""
    if search.state is DeepSearchState.UNAVAILABLE:
        return tr("search.unavailable")
    if not search.judged and search.back_to_ms is None:
        return ""
    parts = [wording.counted("search.judged", search.judged)]
    if search.back_to_ms is not None:
        notes = wording.counted("search.notes", search.notes_read)
        parts.insert(0, tr("search.read", day=wording.day(search.back_to_ms, now_ms), notes=notes))
    return tr("search.cost", what=" · ".join(parts))
