"""The cohort: a fixed sample of the store by which a question's cosines are read.

e5's cosines to everything a store holds are high, and differ by question and by store; what tells is how far a passage stands
out of them. The cohort also tells the *hubs*: passages near everything. Source: T-norm, Auckenthaler, Carey and
Lloyd-Thomas (2000); Radovanović, Nanopoulos and Ivanović, "Hubs in space" (2010).

Deterministic: it is spread over the first blobs of the store, whose number grows in steps of a quarter. While the store is
small, the background passages of the question's script fill it up.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from memory.background import SPACED, side
from memory.config import RankingConfig
from memory.storage.lexical import LexicalIndex
from memory.storage.vectors import Vector, VectorStore

_GROWTH = 1.25
_ROWS_MIN = 64
_DEVIATION_MIN = 1e-3


class Cohort:
    """Sampled vectors, their mean, and the mean length of the passages sampled."""

    def __init__(self, vectors: VectorStore, lexical: LexicalIndex, config: RankingConfig) -> None:
        self._vectors = vectors
        self._lexical = lexical
        self._config = config
        self._step = -1
        self._sample: NDArray[np.float32] | None = None
        self.length = config.length

    def refresh(self) -> None:
        """Samples again when the store has grown by a step, or shrunk."""
        count = self._vectors.count()
        step = int(math.log(count, _GROWTH)) if count else 0
        if step == self._step:
            return
        self._step = step
        rows = math.ceil(_GROWTH**step) if count else 0
        stored = self._vectors.spread(min(rows, count), self._config.cohort_rows)
        self._sample = np.stack(list(stored.values())) if stored else None
        mean = self._lexical.mean_length(list(stored))
        self.length = mean if len(stored) >= _ROWS_MIN and mean else self._config.length

    def reading(self, vector: Vector, background: NDArray[np.float32] | None, text: str) -> Reading:
        """How to read this question's cosines."""
        rows = self._sample
        if background is not None and (rows is None or len(rows) < _ROWS_MIN):
            half = background[len(SPACED) :] if side(text) else background[: len(SPACED)]
            rows = half if rows is None else np.concatenate([rows, half])
        return Reading(vector, rows, self._config.hub)


class Reading:
    """Reads cosines for one question: standard deviations above the cohort's, with and without the hub correction."""

    def __init__(self, vector: Vector, rows: NDArray[np.float32] | None, hub: float) -> None:
        self._vector = vector
        self._hub = hub
        self._mean = np.zeros_like(vector) if rows is None else rows.mean(axis=0)
        self._plain = self._corrected = (0.0, 1.0)
        if rows is not None:
            cosines = rows @ vector
            self._plain = _moments(cosines)
            corrected: NDArray[np.float32] = (cosines - hub * (rows @ self._mean)).astype(
                np.float32
            )
            self._corrected = _moments(corrected)

    def meaning(self, passage: Vector, *, code: bool) -> float:
        """Of a passage's vector."""
        cosine = float(passage @ self._vector)
        mean, deviation = self._plain if code else self._corrected
        if not code:
            cosine -= self._hub * float(passage @ self._mean)
        return (cosine - mean) / deviation


def _moments(cosines: NDArray[np.float32]) -> tuple[float, float]:
    return float(cosines.mean()), max(_DEVIATION_MIN, float(cosines.std()))
