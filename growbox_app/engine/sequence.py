"""One llama.cpp context used as one sequence, and the flag that aborts its decoding.

The native module is handed in: only `host.py` imports llama_cpp.
"""

from __future__ import annotations

import ctypes
import itertools
import os
from collections.abc import Callable, Sequence
from typing import Any

from growbox_app.engine import protocol as p

PREFILL_SLICE = 128
"""Tokens per decode call in prefill: about a second on a slow laptop, so progress and cancel stay alive."""


class AbortFlag:
    """One byte that native code polls.

    The abort callback is libc's `strlen` over a two-byte buffer: an empty string reads false, a one-byte string reads true.
    A Python callback here would take the GIL at every graph node of every decode.
    """

    def __init__(self, llama: Any) -> None:
        self._buffer = ctypes.create_string_buffer(2)
        library = ctypes.CDLL(None) if os.name != "nt" else ctypes.cdll.msvcrt
        self.callback = ctypes.cast(library.strlen, llama.ggml_abort_callback)
        self.data = ctypes.cast(self._buffer, ctypes.c_void_p)

    def set(self, on: bool) -> None:
        """Thread-safe: writes one byte."""
        self._buffer[0] = b"\x01" if on else b"\x00"

    def __bool__(self) -> bool:
        return bool(self._buffer.value)


class Sequence0:
    """One context used as one sequence, with the ids that its KV cache holds."""

    def __init__(self, llama: Any, context: Any, abort: AbortFlag) -> None:
        self._llama = llama
        self.context = context
        self._memory = llama.llama_get_memory(context)
        self.abort = abort
        self.ids: list[int] = []

    def keep_prefix(self, ids: Sequence[int]) -> int:
        """Drops what differs from `ids` and returns how many tokens stay. The last is always decoded again."""
        kept = min(self.common(ids), len(ids) - 1)
        self.cut(kept)
        return kept

    def common(self, ids: Sequence[int]) -> int:
        """How many tokens at the beginning of `ids` the cache holds."""
        limit = min(len(self.ids), len(ids))
        return next((at for at in range(limit) if self.ids[at] != ids[at]), limit)

    def cut(self, length: int) -> None:
        """Forgets everything behind `length`, also what an aborted decode has left there."""
        if not self._llama.llama_memory_seq_rm(self._memory, 0, length, -1):
            self._llama.llama_memory_clear(self._memory, True)
            length = 0
        del self.ids[length:]

    def decode(self, ids: Sequence[int]) -> bool:
        """Decodes up to one micro-batch. False: aborted, and the cache is as before.

        Raises:
            EngineFault: llama.cpp refused.
        """
        tokens = (ctypes.c_int32 * len(ids))(*ids)
        return self._decode(self._llama.llama_batch_get_one(tokens, len(ids)), ids)

    def decode_marked(self, ids: Sequence[int], marks: Sequence[bool]) -> bool:
        """The same, and keeps the logits behind every marked token for `logits(position in ids)`.

        Raises:
            EngineFault: llama.cpp refused.
        """
        size = len(ids)
        batch = self._llama.llama_batch_init(size, 0, 1)
        try:
            batch.n_tokens = size
            for at in range(size):
                batch.token[at] = ids[at]
                batch.pos[at] = len(self.ids) + at
                batch.n_seq_id[at] = 1
                batch.seq_id[at][0] = 0
                batch.logits[at] = marks[at]
            return self._decode(batch, ids)
        finally:
            self._llama.llama_batch_free(batch)

    def _decode(self, batch: Any, ids: Sequence[int]) -> bool:
        code = self._llama.llama_decode(self.context, batch)
        if code == 0:
            self.ids.extend(ids)
            return True
        self.cut(len(self.ids))
        if code == 2 or self.abort:
            return False
        raise p.EngineFault(
            "engine_error", f"llama_decode returned {code}", reason=f"decode {code}"
        )

    def prefill(self, ids: Sequence[int], kept: int, progress: Callable[[int], None]) -> bool:
        """Decodes `ids[kept:]` in slices, telling the count done after each. False: aborted.

        The last token always goes alone: its logits then come from a batch of one, whether the rest was decoded just now,
        reused or restored (batch size changes float rounding). What stands before it was rounded in the batches that it
        came in, so a cold answer may still part from a reused one where two tokens are all but equal.
        """
        last = len(ids) - 1
        bounds = [*range(kept, last, PREFILL_SLICE), last, len(ids)]
        for start, end in itertools.pairwise(bounds):
            if self.abort or not self.decode(ids[start:end]):
                return False
            progress(end - kept)
        return True

    def logits(self, at: int = -1) -> Any:
        """float32[vocabulary] behind a token of the last decoded batch; valid until the next decode."""
        return self._llama.llama_get_logits_ith(self.context, at)
