"""What the gate knows: is the evidence among the pages that recall shows? Figures over the questions of one set."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Gated:
    """One question: what recall said of its pages, and whether they hold the evidence."""

    certainty: float
    best_score: float
    passed: bool
    shown: bool


def gate_figures(name: str, rows: Sequence[Gated]) -> dict[str, float]:
    """AUC of the certainty and of the best score, and who falls through: of questions whose evidence is not shown, and is."""
    missed = [not row.passed for row in rows if not row.shown]
    shown = [not row.passed for row in rows if row.shown]
    if not missed or not shown:
        return {}
    return {
        f"{name}_gate_auc": auc([(row.certainty, row.shown) for row in rows]),
        f"{name}_gate_auc_score": auc([(row.best_score, row.shown) for row in rows]),
        f"{name}_gate_falls_missed": statistics.fmean(missed),
        f"{name}_gate_falls_shown": statistics.fmean(shown),
    }


def auc(rows: Sequence[tuple[float, bool]]) -> float:
    """The chance that a right row has more than a wrong one, ties counted half."""
    right = [value for value, is_right in rows if is_right]
    wrong = [value for value, is_right in rows if not is_right]
    wins = sum((r > w) + 0.5 * (r == w) for r in right for w in wrong)
    return wins / (len(right) * len(wrong))
