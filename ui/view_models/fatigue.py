"""The fatigue meter in words and parts. Source: design 4.6."""

from __future__ import annotations

from dataclasses import dataclass

from memory.values import FatigueSnapshot

TIRED = 0.5
BUSY = 0.25


@dataclass(frozen=True, slots=True)
class Share:
    """One part of the meter: its name, weight, own value 0..1, and what it adds to the total."""

    name: str
    weight: float
    value: float

    @property
    def added(self) -> float:
        """Weight times value."""
        return self.weight * self.value


def shares(snapshot: FatigueSnapshot) -> tuple[Share, ...]:
    """The three parts with their weights."""
    return (
        Share("miss", 0.4, snapshot.miss),
        Share("eviction", 0.2, snapshot.eviction),
        Share("debt", 0.4, snapshot.debt),
    )


def mood(total: float) -> str:
    """`calm`, `busy` or `tired`: the translation key suffix of a total."""
    if total >= TIRED:
        return "tired"
    return "busy" if total >= BUSY else "calm"
