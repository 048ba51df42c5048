"""The embedding model: normalised, mean-pooled vectors of any number of texts of any length.

The native module is handed in: only `host.py` imports llama_cpp.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from growbox_app.engine import protocol as p
from growbox_app.engine.sequence import AbortFlag
from growbox_app.engine.textual import clean_for_embedding
from growbox_app.engine.tokenizer import Tokenizer

EMBED_TOKENS = 512
"""n_ctx = n_batch = n_ubatch of the embedder: an encoder aborts the process when a text exceeds its micro-batch."""
EMBED_SEQUENCES = 8
EMBED_WINDOWS_MAX = 8
"""Windows of one text, 4,000 tokens: documents are cut into chunks far below it; it bounds what one giant message costs."""


class Embedder:
    """The embedding model: normalised mean-pooled vectors."""

    def __init__(self, llama: Any, model: Any, threads: int, abort: AbortFlag) -> None:
        self._llama = llama
        self._abort = abort
        params = llama.llama_context_default_params()
        params.n_ctx = params.n_batch = params.n_ubatch = EMBED_TOKENS
        params.n_seq_max = EMBED_SEQUENCES
        params.kv_unified = True
        params.n_threads = params.n_threads_batch = threads
        params.embeddings = True
        params.abort_callback = abort.callback
        params.abort_callback_data = abort.data
        self._context = llama.llama_init_from_model(model, params)
        if not self._context:
            raise p.EngineFault("engine_error", "no embedding context", reason="embedder")
        self._tokenizer = Tokenizer(llama, model)
        self.dimension = llama.llama_model_n_embd(model)

    def embed(
        self, texts: Sequence[str], kind: str, breathe: Callable[[], None]
    ) -> np.ndarray[Any, np.dtype[np.float32]]:
        """float32[len(texts), dimension], L2-normalised; long texts are averaged over windows by token count."""
        sums = np.zeros((len(texts), self.dimension), dtype=np.float32)
        for batch in _packed(self._windows(texts, kind)):
            breathe()
            vectors = self._encode([window for _, window in batch])
            for (row, window), vector in zip(batch, vectors, strict=True):
                sums[row] += vector * len(window)
        norms = np.linalg.norm(sums, axis=1, keepdims=True)
        normalised: np.ndarray[Any, np.dtype[np.float32]] = sums / np.maximum(norms, 1e-12)
        return normalised

    def _windows(self, texts: Sequence[str], kind: str) -> Iterator[tuple[int, list[int]]]:
        for row, text in enumerate(texts):
            clean = clean_for_embedding(text)
            ids = self._tokenizer.raw(f"{kind}: {clean}", special=False, add_special=True)
            head, body, tail = ids[:1], ids[1:-1], ids[-1:]
            room = EMBED_TOKENS - 2
            for start in range(0, max(min(len(body), room * EMBED_WINDOWS_MAX), 1), room):
                yield row, head + body[start : start + room] + tail

    def _encode(self, windows: list[list[int]]) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
        batch = self._llama.llama_batch_init(EMBED_TOKENS, 0, EMBED_SEQUENCES)
        try:
            position = 0
            for sequence, window in enumerate(windows):
                for offset, token in enumerate(window):
                    batch.token[position] = token
                    batch.pos[position] = offset
                    batch.n_seq_id[position] = 1
                    batch.seq_id[position][0] = sequence
                    batch.logits[position] = 1
                    position += 1
            batch.n_tokens = position
            code = self._llama.llama_decode(self._context, batch)
        finally:
            self._llama.llama_batch_free(batch)
        if code != 0:
            cancelled = code == 2 or bool(self._abort)
            raise p.EngineFault("cancelled" if cancelled else "engine_error", f"embedding {code}")
        vectors = []
        for sequence in range(len(windows)):
            pointer = self._llama.llama_get_embeddings_seq(self._context, sequence)
            vector = np.ctypeslib.as_array(pointer, shape=(self.dimension,)).astype(np.float32)
            vectors.append(vector / max(float(np.linalg.norm(vector)), 1e-12))
        return vectors


def _packed(
    windows: Iterator[tuple[int, list[int]]],
) -> Iterator[list[tuple[int, list[int]]]]:
    """Groups windows into batches within the embedder's token and sequence limits."""
    batch: list[tuple[int, list[int]]] = []
    tokens = 0
    for item in windows:
        if batch and (tokens + len(item[1]) > EMBED_TOKENS or len(batch) == EMBED_SEQUENCES):
            yield batch
            batch, tokens = [], 0
        batch.append(item)
        tokens += len(item[1])
    if batch:
        yield batch
