"""What the fusion is compared with: plain BM25 over the product's own terms, and the embedder alone. Plain numpy, no product code."""

from __future__ import annotations

import math
from collections import Counter, defaultdict

import numpy as np

from memory.text import content_terms, normalise, terms
from tests.benchmarks.recall_data import Corpus
from tests.benchmarks.recall_embeddings import EmbeddingCache

_K1, _B = 1.2, 0.75


def bm25_ranking(corpus: Corpus, depth: int) -> list[list[str]]:
    """Source: Robertson and Zaragoza (2009)."""
    counted = [Counter(terms(p.text)) for p in corpus.passages]
    lengths = np.array([c.total() for c in counted], dtype=np.float64)
    norms = _K1 * (1 - _B + _B * lengths / lengths.mean())
    postings: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, count in enumerate(counted):
        for term, times in count.items():
            postings[term].append((row, times))
    found = []
    for question in corpus.questions:
        scores = np.zeros(len(counted))
        for term in content_terms(question.text):
            hits = postings.get(term, ())
            weight = math.log1p((len(counted) - len(hits) + 0.5) / (len(hits) + 0.5))
            for row, times in hits:
                scores[row] += weight * times * (_K1 + 1) / (times + norms[row])
        found.append(_best(corpus, scores, depth))
    return found


def vector_ranking(corpus: Corpus, cache: EmbeddingCache, depth: int) -> list[list[str]]:
    """By cosine."""
    passages = cache.matrix([p.text for p in corpus.passages], "passage")
    questions = cache.matrix([normalise(q.text) for q in corpus.questions], "query")
    return [_best(corpus, row, depth) for row in (questions @ passages.T).astype(np.float64)]


def _best(corpus: Corpus, scores: np.ndarray, depth: int) -> list[str]:
    """Newest first among equals, as the product orders."""
    order = np.lexsort((-np.arange(len(scores)), -scores))[:depth]
    return [corpus.passages[i].id for i in order]
