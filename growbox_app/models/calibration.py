"""How the shipped embedder's cosines are to be read: the epoch memory works with.

The figures come from `tests/benchmarks/calibrate.py` over the probe pairs of `resources/calibration/probes.toml`; they belong
to one model file, whose hash is part of the epoch's name, so another file is another epoch.

Source: design 4.4 "Calibration".
"""

from __future__ import annotations

import tomllib

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
