"""Measures how the embedder's cosines are to be read, and writes `resources/calibration/<embedder>.toml`.

`floor` is the mean cosine of unrelated probe pairs, `ceiling` that of related ones; query against passage, as recall asks.
Run it again when the embedder or the probe set changes.
"""

from __future__ import annotations

import asyncio
import statistics
import tomllib

import numpy as np

from growbox_app.engine import protocol as p
from growbox_app.models.catalogue import embedder
from growbox_app.paths import resources_path
from tests.benchmarks.engine_ratio import loaded_engine
from tests.real_models import LIGHT


async def measure() -> dict[str, float]:
    """The figures of the probe set."""
    table = tomllib.loads((resources_path() / "calibration" / "probes.toml").read_text("utf-8"))
    cosines: dict[str, list[float]] = {"related": [], "unrelated": []}
    async with loaded_engine(LIGHT.parent / ".cpu_variant.json") as (client, _variant):
        for kind, rows in cosines.items():
            wanted = kind == "related"
            pairs = [(r["query"], r["passage"]) for r in table["pair"] if r["related"] is wanted]
            sides = []
            for side, prefix in ((0, "query"), (1, "passage")):
                done = await client.request(
                    p.Embed(
                        id=client.next_id(),
                        texts=tuple(pair[side] for pair in pairs),
                        kind=prefix,  # type: ignore[arg-type]
                    ),
                    p.DoneEmbed,
                )
                matrix = np.frombuffer(done.vectors, dtype="<f4")
                sides.append(matrix.reshape(done.rows, done.dimension))
            rows += [float(value) for value in np.sum(sides[0] * sides[1], axis=1)]
            dimension = sides[0].shape[1]
    return {
        "dimension": dimension,
        "floor": statistics.fmean(cosines["unrelated"]),
        "ceiling": statistics.fmean(cosines["related"]),
        "unrelated_max": max(cosines["unrelated"]),
        "related_min": min(cosines["related"]),
    }


def main() -> None:
    """Measures, writes the file, prints the figures."""
    figures = asyncio.run(measure())
    model = embedder()
    lines = [
        "# Made by tests/benchmarks/calibrate.py from probes.toml; belongs to one model file.",
        f'sha256 = "{model.sha256}"',
        f"dimension = {figures['dimension']:.0f}",
        f"floor = {figures['floor']:.4f}",
        f"ceiling = {figures['ceiling']:.4f}",
    ]
    path = resources_path() / "calibration" / f"{model.id}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, value in figures.items():
        print(f"{name}={value:.4f}")


if __name__ == "__main__":
    main()
