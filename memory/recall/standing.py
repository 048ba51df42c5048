"""How far a passage stands out for a question: its cosine in standard deviations above the background's.

`similarity` maps that to 0..1 so that 0.5 is the place where chance ends: the highest of N unrelated passages is expected at about
√(2 ln N) deviations at most, so the bar rises slowly with the store, and a big memory does not answer everything with something.

Source: `memory.background`; the expected maximum of N normal variables (extreme value theory).
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from memory.background import SPACED, side
from memory.config import RecallConfig
from memory.storage.vectors import Vector, calibrated
from memory.values import EmbedderEpoch

_DEVIATION_MIN = 1e-3  # of the cosine; a background that does not vary tells nothing


class Standing:
    """Reads cosines for one question."""

    def __init__(
        self,
        background: NDArray[np.float32] | None,
        question: Vector,
        *,
        nodes: int,
        epoch: EmbedderEpoch,
        config: RecallConfig,
    ) -> None:
        self._epoch = epoch
        self._bar = max(
            config.standing_min, config.standing_margin + math.sqrt(2 * math.log(max(1, nodes)))
        )
        self._sides: list[tuple[float, float]] = []
        if background is not None:
            cosines = background @ question
            for half in (cosines[: len(SPACED)], cosines[len(SPACED) :]):
                self._sides.append((float(half.mean()), max(_DEVIATION_MIN, float(half.std()))))

    def similarity(self, cosine: float, passage: str) -> float:
        """0..1; 0.5 is where chance ends. Without a background, the plain calibrated similarity."""
        if not self._sides:
            return calibrated(cosine, self._epoch)
        mean, deviation = self._sides[side(passage)]
        standing = (cosine - mean) / deviation
        return min(1.0, max(0.0, 0.5 * standing / self._bar))
