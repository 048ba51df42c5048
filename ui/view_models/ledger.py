"""The fragment ledger in words: which part of the past a jump skipped, how much of it is still unread."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from growbox_app.text import tr
from memory.values import DebtState, Fragment, LedgerSnapshot
from ui.view_models import wording
from ui.view_models.display import one_line, title_line
from ui.view_models.stains import dates

QUESTION_CHARACTERS = 160
ROWS_MAX = 200
"""Debts that are listed, those that are read next; a list of thousands would cost more than anybody reads."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Debt:
    """A fragment with the times of its two ends, None where an end is not known (yet)."""

    fragment: Fragment
    older_ms: int | None = None
    newer_ms: int | None = None

    @property
    def aside(self) -> bool:
        """Read, without a clear answer to what is left; owed no more."""
        return self.fragment.state is DebtState.UNSURE

    @property
    def older_seq(self) -> int:
        """The end that was written first: most jumps lead back in time, so it is where this one landed."""
        return min(self.fragment.entry_seq, self.fragment.target_seq)

    @property
    def newer_seq(self) -> int:
        """The end that was written last."""
        return max(self.fragment.entry_seq, self.fragment.target_seq)

    @property
    def question(self) -> str:
        """The question whose jump skipped it."""
        return one_line(self.fragment.query, QUESTION_CHARACTERS)

    @property
    def titles(self) -> tuple[str, str]:
        """How the older and the newer end begin."""
        titles = self.fragment.target_title, self.fragment.entry_title
        forward = self.fragment.target_seq > self.fragment.entry_seq
        older, newer = reversed(titles) if forward else titles
        return title_line(older), title_line(newer)

    @property
    def size(self) -> int:
        """How many notes it held at first."""
        return max(self.fragment.remaining, self.newer_seq - self.older_seq - 1)

    @property
    def read_share(self) -> float:
        """How much of it was read since, 0..1."""
        return 1.0 - self.fragment.remaining / self.size if self.size else 1.0


def ends(snapshot: LedgerSnapshot) -> tuple[int, ...]:
    """The places whose times the rows need."""
    return tuple(
        dict.fromkeys(
            seq for item in _listed(snapshot) for seq in (item.target_seq, item.entry_seq)
        )
    )


def _listed(snapshot: LedgerSnapshot) -> tuple[Fragment, ...]:
    return (*snapshot.open, *snapshot.unclear)[:ROWS_MAX]


def debts(snapshot: LedgerSnapshot, times: Mapping[int, int]) -> tuple[Debt, ...]:
    """The fragments that are listed: the open ones in the order in which they are read, then those put aside."""
    return tuple(
        Debt(
            fragment=item,
            older_ms=times.get(min(item.entry_seq, item.target_seq)),
            newer_ms=times.get(max(item.entry_seq, item.target_seq)),
        )
        for item in _listed(snapshot)
    )


def interval(debt: Debt, now_ms: int) -> str:
    """`3 Mar – 12 Mar`; the places of its ends while their dates are not known."""
    if debt.older_ms is not None and debt.newer_ms is not None:
        return dates(debt.older_ms, debt.newer_ms, now_ms)
    first, last = wording.number(debt.older_seq), wording.number(debt.newer_seq)
    return tr("stains.dates", first=first, last=last)


def progress(debt: Debt) -> str:
    """`31 of 32 notes unread`, or `read: 3 of 32 unclear`."""
    left, size = wording.number(debt.fragment.remaining), wording.number(debt.size)
    return tr("ledger.unclear" if debt.aside else "ledger.left", left=left, size=size)


def beyond(snapshot: LedgerSnapshot) -> str:
    """What the list does not say: how many more wait, and how many notes got no clear answer."""
    more, unclear = len(snapshot.open) - ROWS_MAX, snapshot.unclear_notes
    said = [tr("ledger.more", count=wording.number(more))] if more > 0 else []
    return " ".join([*said, wording.counted("ledger.unclear_notes", unclear)] if unclear else said)


def facts(debt: Debt, now_ms: int) -> str:
    """Interval, progress and age in one line; of one that was put aside first how much of it is unclear."""
    since = tr("ledger.since", when=wording.age(debt.fragment.created_at_ms, now_ms))
    first = [interval(debt, now_ms), progress(debt)]
    return " · ".join([*(reversed(first) if debt.aside else first), since])


def state(debt: Debt) -> str:
    """How far its reading is, in words."""
    return tr(f"ledger.state_{debt.fragment.state}")


def describe(debt: Debt, now_ms: int) -> str:
    """All of it, for hovering and for screen readers."""
    return f"{debt.question}\n{facts(debt, now_ms)} · {state(debt)}"
