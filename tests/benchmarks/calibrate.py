"""Measures how the embedder's cosines are to be read, and writes `resources/calibration/<embedder>.toml`.

`floor` is the mean cosine of unrelated probe pairs, `ceiling` that of related ones: question against passage, as recall asks,
and question against question, as learned edges compare.
Run it again when the embedder or the probe set changes.
"""

from __future__ import annotations

import asyncio
import statistics
import tomllib
from typing import Literal, TypeAlias

import numpy as np

from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient
from growbox_app.models.catalogue import embedder
from growbox_app.paths import resources_path
from tests.benchmarks.engine_ratio import loaded_engine
from tests.real_models import LIGHT

Kind: TypeAlias = Literal["query", "passage"]


async def measure() -> dict[str, float]:
    """The figures of the probe set."""
    table = tomllib.loads((resources_path() / "calibration" / "probes.toml").read_text("utf-8"))
    pairs = {
        (name, related): [
            (row[left], row[right]) for row in table[name] if row["related"] is related
        ]
        for name, left, right in (("pair", "query", "passage"), ("question_pair", "a", "b"))
        for related in (True, False)
    }
    means: dict[tuple[str, bool], float] = {}
    async with loaded_engine(LIGHT.parent / ".cpu_variant.json") as (client, _variant):
        for (name, related), rows in pairs.items():
            questions = await embedded(client, [left for left, _ in rows], "query")
            kind: Kind = "passage" if name == "pair" else "query"
            others = await embedded(client, [right for _, right in rows], kind)
            means[name, related] = statistics.fmean(np.sum(questions * others, axis=1).tolist())
            dimension = questions.shape[1]
    return {
        "dimension": dimension,
        "floor": means["pair", False],
        "ceiling": means["pair", True],
        "question_floor": means["question_pair", False],
        "question_ceiling": means["question_pair", True],
    }


async def embedded(client: EngineClient, texts: list[str], kind: Kind) -> np.ndarray:
    """float32[len(texts), dimension]."""
    request = p.Embed(id=client.next_id(), texts=tuple(texts), kind=kind)
    done = await client.request(request, p.DoneEmbed)
    return np.frombuffer(done.vectors, dtype="<f4").reshape(done.rows, done.dimension)


def main() -> None:
    """Measures, writes the file, prints the figures."""
    figures = asyncio.run(measure())
    rounded = {name: round(value, 4) for name, value in figures.items()}
    model = embedder()
    lines = [
        "# Made by tests/benchmarks/calibrate.py from probes.toml; belongs to one model file.",
        f'sha256 = "{model.sha256}"',
        *(f"{name} = {value:g}" for name, value in rounded.items()),
    ]
    path = resources_path() / "calibration" / f"{model.id}.toml"
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for name, value in figures.items():
        print(f"{name}={value:.4f}")


if __name__ == "__main__":
    main()
