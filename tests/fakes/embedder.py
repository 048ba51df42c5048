"""A deterministic embedder: texts that share words are near, texts that do not are not."""

from __future__ import annotations

import hashlib

import numpy as np

from memory.requests import EmbedKind, Matrix
from memory.text import terms
from memory.values import EmbedderEpoch

DIMENSION = 64
EPOCH = EmbedderEpoch(
    name="hash-64",
    dimension=DIMENSION,
    floor=0.1,
    ceiling=0.9,
    question_floor=0.1,
    question_ceiling=0.9,
)


class HashEmbedder:
    """Sums a fixed random vector per term, then normalises. `out` makes it answer None; `calls` counts texts."""

    def __init__(self) -> None:
        self.out = False
        self.calls = 0
        self.requests: list[tuple[tuple[str, ...], EmbedKind]] = []

    def embed(self, texts: tuple[str, ...], kind: EmbedKind) -> Matrix | None:
        self.requests.append((texts, kind))
        if self.out:
            return None
        self.calls += len(texts)
        return np.stack([vector_of(text) for text in texts])


def vector_of(text: str) -> np.ndarray:
    """float32[64], length 1."""
    total = np.full(DIMENSION, 1e-3, dtype=np.float32)
    for term in terms(text):
        seed = int.from_bytes(hashlib.blake2b(term.encode(), digest_size=8).digest(), "little")
        total += np.random.default_rng(seed).standard_normal(DIMENSION).astype(np.float32)
    return (total / np.linalg.norm(total)).astype(np.float32)
