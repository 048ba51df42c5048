"""A logistic model over the judge's signals, its thresholds, and AUC with a bootstrap interval. Pure NumPy.

A row is one question: the chances (or signals) of its candidates, the right one first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from growbox_app import judging
from growbox_app.models.calibration import JudgeCalibration

SIGNALS = ("margin", "lift", "explained", "information")
FALSE_YES_MAX = 0.03
"""Share of hard wrong passages that the threshold lets pass as a yes."""
FALSE_NO_MAX = 0.05
"""Share of right passages that the threshold lets pass as a no: a missed one is skipped by later scans."""
RIDGE = 0.02
ROUNDS = 2000
FOLDS = 5

Row = Sequence[float]
Found = Sequence[Mapping[str, float]]


def auc(rows: Sequence[Row]) -> float:
    """The chance that a right passage stands above a wrong one, over all pairs of them; ties count half."""
    right = np.array([row[0] for row in rows])
    wrong = np.sort(np.concatenate([np.asarray(row[1:]) for row in rows]))
    below = np.searchsorted(wrong, right, side="left")
    upto = np.searchsorted(wrong, right, side="right")
    return float((below + upto).sum() / (2 * len(right) * len(wrong)))


def interval(rows: Sequence[Row]) -> tuple[float, float]:
    """95 % bootstrap interval of the AUC; whole questions are drawn."""
    random = np.random.default_rng(1)
    drawn = [
        auc([rows[at] for at in random.integers(0, len(rows), len(rows))]) for _ in range(ROUNDS)
    ]
    low, high = np.quantile(drawn, [0.025, 0.975])
    return float(low), float(high)


def fitted(fit: Sequence[Found], test: Sequence[Found]) -> JudgeCalibration:
    """Fits weights and thresholds on `fit` and measures on `test`."""
    weights, bias = _weights(fit)
    yes, no = _thresholds(_held_out(fit))
    plain = _calibration(weights, bias, yes=yes, no=no)
    rows = [[judging.chance(found, plain) for found in row] for row in test]
    low, high = interval(rows)
    measured = {"auc": auc(rows), "auc_low": low, "auc_high": high}
    return _calibration(weights, bias, yes=yes, no=no, **measured)


def _calibration(weights: Mapping[str, float], bias: float, **fields: float) -> JudgeCalibration:
    return JudgeCalibration(name="fit", weights=weights, bias=bias, **fields)


def _held_out(fit: Sequence[Found]) -> list[list[float]]:
    """Chances of each question by a fit on the others' folds: thresholds from the fit's own would be too bold."""
    rows: list[list[float]] = [[] for _ in fit]
    for fold in range(FOLDS):
        weights, bias = _weights([row for at, row in enumerate(fit) if at % FOLDS != fold])
        plain = _calibration(weights, bias, yes=1.0, no=0.0)
        for at in range(fold, len(fit), FOLDS):
            rows[at] = [judging.chance(found, plain) for found in fit[at]]
    return rows


def _thresholds(rows: Sequence[Row]) -> tuple[float, float]:
    right = [row[0] for row in rows]
    wrong = [chance for row in rows for chance in row[1:]]
    yes = float(np.quantile(wrong, 1.0 - FALSE_YES_MAX))
    no = float(np.quantile(right, FALSE_NO_MAX))
    return max(yes, 0.5), min(no, 0.4)


def _weights(rows: Sequence[Found]) -> tuple[dict[str, float], float]:
    """Logistic regression by Newton steps, ridge on standardised signals; a signal that would count against is left out."""
    names = list(SIGNALS)
    while True:
        solution, mean, spread = _newton(rows, names)
        against = [name for name, weight in zip(names, solution, strict=False) if weight < 0]
        if not against:
            break
        worst = min(against, key=lambda name: solution[names.index(name)])
        names.remove(worst)
    weights = solution[:-1] / spread
    bias = float(solution[-1] - (weights * mean).sum())
    return dict(zip(names, map(float, weights), strict=True)), bias


def _newton(
    rows: Sequence[Found], names: Sequence[str]
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    values = np.array([[found[name] for name in names] for row in rows for found in row])
    labels = np.array([float(at == 0) for row in rows for at in range(len(row))])
    mean, spread = values.mean(axis=0), values.std(axis=0) + 1e-9
    matrix = np.column_stack([(values - mean) / spread, np.ones(len(labels))])
    ridge = np.diag([RIDGE * len(labels)] * len(names) + [1e-6])
    solution = np.zeros(len(names) + 1)
    for _ in range(30):
        chances = 1.0 / (1.0 + np.exp(-matrix @ solution))
        slope = matrix.T @ (labels - chances) - ridge @ solution
        curve = (matrix * (chances * (1 - chances))[:, None]).T @ matrix + ridge
        solution = solution + np.linalg.solve(curve, slope)
    return solution, mean, spread


def threshold_report(rows: Sequence[Row], *, yes: float, no: float) -> str:
    """How often the two thresholds are right, wrong and silent."""
    right = np.array([row[0] for row in rows])
    wrong = np.concatenate([np.asarray(row[1:]) for row in rows])
    shares = {
        "right: yes": (right >= yes).mean(),
        "unknown": ((right > no) & (right < yes)).mean(),
        "no": (right <= no).mean(),
        "wrong: yes": (wrong >= yes).mean(),
        "unknown ": ((wrong > no) & (wrong < yes)).mean(),
        "no ": (wrong <= no).mean(),
    }
    return ", ".join(f"{name.strip()} {share:.2f}" for name, share in shares.items())
