"""Which files a restore brings back: a pure judgement over what each call found and left. Any thread.

A file that only the agent changed goes back. One that somebody else changed since is theirs: it is kept when the agent never
touched it, and a conflict when both did.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum, auto

from growbox_app.shadow.values import ABSENT, FOLDER_MODE, Entry, Snapshot


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One call: what it found and what it left."""

    before: Snapshot
    after: Snapshot


class Fate(Enum):
    """What a restore does with a path that is not as it was."""

    RESTORE = auto()
    REMOVE = auto()
    CONFLICT = auto()
    KEEP = auto()
    NOT_SAVED = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """A path, what it is now, and what it was."""

    path: bytes
    now: Entry
    then: Entry
    fate: Fate


@dataclass(slots=True)
class _History:
    then: Entry | None = None
    last: Entry | None = None
    by_agent: bool = False
    by_others: bool = False

    def add(self, before: Entry | None, after: Entry | None) -> None:
        """What the next call found and left; None is unknown."""
        if before is not None:
            self.then = self.then or before
            self.by_others |= self.last is not None and self.last != before
            self.by_agent |= after is not None and after != before
        self.last = after or self.last


def judge(steps: Iterable[Step], current: Snapshot) -> list[Change]:
    """Every path that is not as it was before the first of the steps, sorted.

    Args:
        steps: the calls since then, oldest first; only one is held at a time.
        current: what is there now.
    """
    histories: dict[bytes, _History] = {}
    first: Snapshot | None = None
    for step in steps:
        if first is None:
            first = step.before
            paths = first.entries.keys() | current.entries.keys()
            different = (path for path in paths if first.state(path) != current.state(path))
            histories.update((path, _History()) for path in different)
        for snapshot in (step.before, step.after):
            for path in snapshot.entries.keys() - first.entries.keys() - histories.keys():
                if first.state(path) is None:  # first heard of by a later call
                    histories[path] = _History()
        for path, history in histories.items():
            history.add(step.before.state(path), step.after.state(path))
    found = (_judge(path, histories[path], current.state(path)) for path in sorted(histories))
    return [change for change in found if change is not None]


def _judge(path: bytes, history: _History, now: Entry | None) -> Change | None:
    if now is None or history.then is None or now == history.then:
        return None
    by_others = history.by_others or (history.last is not None and history.last != now)
    fate = _fate(now, history.then, by_agent=history.by_agent, by_others=by_others)
    is_folder = FOLDER_MODE in (now.mode, history.then.mode)
    if is_folder and fate not in (Fate.RESTORE, Fate.REMOVE):
        return None  # an empty folder that somebody made, filled or removed is nothing to ask about
    return Change(path=path, now=now, then=history.then, fate=fate)


def _fate(now: Entry, then: Entry, *, by_agent: bool, by_others: bool) -> Fate:
    if not by_agent:
        return Fate.KEEP
    if not then.is_saved:
        return Fate.NOT_SAVED
    if by_others or not now.is_saved:  # what cannot be saved first could not be brought back
        return Fate.CONFLICT
    return Fate.REMOVE if then == ABSENT else Fate.RESTORE
