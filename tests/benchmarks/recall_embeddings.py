"""Embeddings for the recall benchmark, kept between runs: one SQLite file in the cache folder, by (model, kind, text) hash.

A run that stops half-way has lost at most one batch. The file holds vectors and hashes, no text.
"""

from __future__ import annotations

import asyncio
import hashlib
import sqlite3
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeAlias

import numpy as np

from growbox_app.models.catalogue import embedder
from growbox_app.paths import cache_path
from memory.requests import EmbedKind, Matrix
from tests.benchmarks.calibrate import embedded
from tests.benchmarks.engine_ratio import loaded_engine
from tests.real_models import LIGHT

Kind: TypeAlias = Literal["query", "passage"]
_BATCH = 32
_PARAMETERS_MAX = 500


class EmbeddingCache:
    """Vectors of texts; what is missing is made by the real engine process, once."""

    def __init__(self, path: Path | None = None) -> None:
        path = path or cache_path() / "bench" / "embeddings.sqlite"
        path.parent.mkdir(parents=True, exist_ok=True)
        self._model = embedder().sha256
        self._db = sqlite3.connect(path, isolation_level=None, timeout=60)
        self._db.execute("PRAGMA journal_mode = WAL")
        self._db.execute("CREATE TABLE IF NOT EXISTS vectors(key BLOB PRIMARY KEY, vector BLOB)")

    def _key(self, text: str, kind: Kind) -> bytes:
        whole = f"{self._model}\0{kind}\0{text}".encode("utf-8", "surrogatepass")
        return hashlib.blake2b(whole, digest_size=16).digest()

    def _known(self, keys: Sequence[bytes]) -> dict[bytes, bytes]:
        found: dict[bytes, bytes] = {}
        for start in range(0, len(keys), _PARAMETERS_MAX):
            part = keys[start : start + _PARAMETERS_MAX]
            marks = ",".join("?" * len(part))
            found.update(
                self._db.execute(
                    f"SELECT key, vector FROM vectors WHERE key IN ({marks})",
                    part,
                )
            )
        return found

    def fill(self, texts: Sequence[str], kind: Kind) -> int:
        """Makes what is missing; how many texts that were."""
        by_key = {self._key(text, kind): text for text in texts}
        known = self._known(list(by_key))
        missing = [(key, text) for key, text in by_key.items() if key not in known]
        if missing:
            missing.sort(key=lambda item: len(item[1]))
            asyncio.run(self._make(missing, kind))
        return len(missing)

    async def _make(self, missing: Sequence[tuple[bytes, str]], kind: Kind) -> None:
        async with loaded_engine(LIGHT.parent / ".cpu_variant.json") as (client, _variant):
            for start in range(0, len(missing), _BATCH):
                part = missing[start : start + _BATCH]
                matrix = await embedded(client, [text for _, text in part], kind)
                self._db.executemany(
                    "INSERT OR REPLACE INTO vectors(key, vector) VALUES(?, ?)",
                    [
                        (key, row.astype("<f4").tobytes())
                        for (key, _), row in zip(part, matrix, strict=True)
                    ],
                )
                print(f"\r# embedding {start + len(part)}/{len(missing)}", end="", file=sys.stderr)
        print(file=sys.stderr)

    def matrix(self, texts: Sequence[str], kind: Kind) -> Matrix:
        """float32[len(texts), dimension]; missing ones are made first."""
        self.fill(texts, kind)
        keys = [self._key(text, kind) for text in texts]
        known = self._known(keys)
        return np.stack([np.frombuffer(known[key], dtype="<f4") for key in keys])

    def embed(self, texts: tuple[str, ...], kind: EmbedKind) -> Matrix:
        """As memory asks for it."""
        return self.matrix(texts, "query" if kind is EmbedKind.QUERY else "passage")
