"""How the embedder's cosines and the judges' readings are to be read: the epochs memory works with.

The embedder's figures come from `tests/benchmarks/calibrate.py` over the probe pairs of `resources/calibration/probes.toml`,
the judges' from `tests/benchmarks/judge.py --fit`. They belong to one model file, whose hash is part of the epoch's name, so
another file is another epoch. A judge without figures for its file and prompt is not trusted.

Source: design 4.4 "Calibration", "Judging".
"""

from __future__ import annotations

import hashlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, TypeAlias

from growbox_app.models.catalogue import embedder
from growbox_app.paths import resources_path
from memory.values import EmbedderEpoch


def embedder_epoch() -> EmbedderEpoch:
    """The epoch of the catalogue's embedder.

    Raises:
        ValueError: the calibration file is for another model file.
    """
    model = embedder()
    path = resources_path() / "calibration" / f"{model.id}.toml"
    table = tomllib.loads(path.read_text(encoding="utf-8"))
    if table["sha256"] != model.sha256:
        raise ValueError(f"{path.name} was measured on another file than {model.file}")
    return EmbedderEpoch(
        name=f"{model.id}-{model.sha256[:8]}",
        dimension=int(table["dimension"]),
        floor=float(table["floor"]),
        ceiling=float(table["ceiling"]),
        question_floor=float(table["question_floor"]),
        question_ceiling=float(table["question_ceiling"]),
    )


TRUSTED_AUC = 0.8
"""A judge measured below this only suggests. Source: design 4.4."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeCalibration:
    """How one model's readings in one language become a chance, and from which chance on they are a verdict.

    `auc` is measured on questions that the fit has not seen, with its 95 % interval; None: never measured.
    """

    name: str
    weights: Mapping[str, float]
    bias: float
    yes: float
    no: float
    auc: float | None = None
    auc_low: float | None = None
    auc_high: float | None = None

    @property
    def trusted(self) -> bool:
        """Whether its verdicts may teach."""
        return self.auc is not None and self.auc >= TRUSTED_AUC


UNMEASURED = JudgeCalibration(
    name="unmeasured",
    weights={"margin": 0.8, "lift": 0.8, "explained": 3.0, "information": 0.3},
    bias=-3.0,
    yes=0.9,
    no=0.02,
)
"""For a model that nobody has measured: the rough mean of those that were, and a wide band of unknown."""


Calibrate: TypeAlias = Callable[[str, str, str], JudgeCalibration]
"""The calibration of a model file, a language and a prompt: see `judge_calibration`."""


@cache
def judge_calibration(tokenizer: str, language: str, prompt_version: str) -> JudgeCalibration:
    """What was measured for a model file (the first 16 digits of its SHA-256), a language and a prompt; else `UNMEASURED`."""
    for path in sorted((resources_path() / "calibration").glob("judge-*.toml")):
        data = path.read_text(encoding="utf-8")
        table = tomllib.loads(data)
        if table["sha256"][:16] != tokenizer:
            continue
        part: dict[str, Any] = table.get(language, {})
        if part.get("prompt") == prompt_version:
            digest = hashlib.sha256(data.encode()).hexdigest()[:8]
            fields = {key: part[key] for key in _JUDGE_FIELDS}
            return JudgeCalibration(name=digest, **fields)
    return UNMEASURED


_JUDGE_FIELDS = ("weights", "bias", "yes", "no", "auc", "auc_low", "auc_high")
