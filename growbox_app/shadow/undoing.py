"""What is undone now: a pure fold over the checkpoints of a project in their order. Any thread.

A restore gives the state in which a checkpoint was taken. So what stood then stands again, what was undone then is undone again, and
everything taken since is undone, the restores among it too.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol


class Taken(Protocol):
    """What is read of a checkpoint: its number, and that of the one it was brought back to, if it was a restore."""

    @property
    def number(self) -> int:
        """Its place in the order."""
        ...

    @property
    def restores(self) -> int | None:
        """None: a call, or a restore that was not carried out."""
        ...


def undone(records: Iterable[Taken]) -> frozenset[int]:
    """The numbers of those that are undone, calls and restores, of some that are in order.

    What is not among them any more, because it is too old or was forgotten, counts as the next one behind it.
    """
    before: dict[int, frozenset[int]] = {}
    gone: frozenset[int] = frozenset()
    for record in records:
        since = [n for n in before if record.restores is not None and n >= record.restores]
        before[record.number] = gone
        if since:
            gone = before[since[0]].union(since)
    return gone
