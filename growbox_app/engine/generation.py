"""One answer: prefill with progress, then sampling, until an end, a limit, a loop or a cancel.

The native module is handed in: only `host.py` imports llama_cpp.
"""

from __future__ import annotations

import codecs
import collections
import contextlib
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from growbox_app.engine import protocol as p
from growbox_app.engine.sampler import Sampler
from growbox_app.engine.sequence import Sequence0
from growbox_app.engine.textual import degenerate, lists_the_same
from growbox_app.engine.tokenizer import Renderer, Tokenizer

Send = Callable[[p.Answer], None]
DELTA_S = 0.03
"""Text goes out at most this often; one frame per token would cost the window a wake-up each."""
TAIL_CHARACTERS = 1_024
"""Of what was written last, in which a text that ends the answer, or a list of the same items, is looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChatModel:
    """What a generation works with."""

    llama: Any
    sequence: Sequence0
    tokenizer: Tokenizer
    renderer: Renderer
    threads: int


def prefill_progress(
    request_id: int, started: float, total: int, send: Send
) -> Callable[[int], None]:
    """A callback that sends a progress frame for each slice; `started` on the monotonic clock."""

    def told(done: int) -> None:
        rate = done / max(time.monotonic() - started, 1e-6)
        send(p.PrefillProgress(id=request_id, done=done, total=total, rate=rate))

    return told


class Generation:
    """Runs one `Chat` request."""

    def __init__(self, model: ChatModel, request: p.Chat, send: Send) -> None:
        self._llama = model.llama
        self._sequence = model.sequence
        self._tokenizer = model.tokenizer
        self._abort = model.sequence.abort
        self._threads = model.threads
        self._request = request
        self._send = send
        self._prompt = model.renderer.ids(request.messages, request.date)
        self._limit = self._llama.llama_n_ctx(self._sequence.context)
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._sampled: list[int] = []
        self._unsent_text = self._tail = ""
        self._unsent_ids: list[int] = []
        self._sent_at = 0.0
        self._pace = Pace(model.threads)

    def run(self) -> p.DoneChat:
        """Generates; frames go out on the way."""
        if len(self._prompt) + len(self._request.prefix) >= self._limit:
            raise p.EngineFault(
                "prompt_too_long", tokens=str(len(self._prompt)), window=str(self._limit)
            )
        self._llama.llama_set_n_threads(self._sequence.context, self._threads, self._threads)
        started = time.monotonic()
        ids = self._prompt + list(self._request.prefix)
        kept = self._sequence.keep_prefix(ids)
        told = prefill_progress(self._request.id, started, len(ids) - kept, self._send)
        complete = self._sequence.prefill(ids, kept, told)
        prefill_s = time.monotonic() - started
        reason = "cancelled"
        first_s = 0.0
        if complete:
            with contextlib.closing(self._sampler()) as sampler:
                for token in self._request.prefix:
                    self._decoder.decode(self._tokenizer.piece(token))
                    sampler.take(token)
                reason, first_s = self._sample(sampler, started)
        self._flush(final=True)
        return p.DoneChat(
            id=self._request.id,
            reason=reason,  # type: ignore[arg-type]
            prompt_tokens=len(self._prompt),
            reused_tokens=kept,
            answer_tokens=len(self._sampled),
            prefill_s=prefill_s,
            decode_s=max(time.monotonic() - started - prefill_s, 0.0),
            first_token_s=first_s,
        )

    def _sampler(self) -> Sampler:
        return Sampler(self._llama, self._sequence, self._tokenizer, self._request)

    def _sample(self, sampler: Sampler, started: float) -> tuple[str, float]:
        first_s = 0.0
        room = min(self._request.max_tokens, self._limit - len(self._sequence.ids) - 1)
        for _ in range(room):
            token = sampler.pick()
            if self._tokenizer.ends(token):
                return "stop", first_s
            first_s = first_s or time.monotonic() - started
            text = self._take(token)
            if any(end in self._tail for end in self._request.ends):
                return "stop", first_s
            if degenerate(self._sampled) or ("\n" in text and lists_the_same(self._tail)):
                return "loop", first_s
            begun = time.monotonic()
            if self._abort or not self._sequence.decode([token]):
                return "cancelled", first_s
            self._adapt(time.monotonic() - begun)
        return "length", first_s

    def _adapt(self, token_s: float) -> None:
        threads = self._pace.threads_after(token_s)
        if threads != self._threads:
            self._threads = threads
            self._llama.llama_set_n_threads(self._sequence.context, threads, threads)

    def _take(self, token: int) -> str:
        self._sampled.append(token)
        self._unsent_ids.append(token)
        text = self._decoder.decode(self._tokenizer.piece(token))
        self._tail = (self._tail + text)[-TAIL_CHARACTERS:]
        self._unsent_text += text
        if time.monotonic() - self._sent_at >= DELTA_S:
            self._flush()
        return text

    def _flush(self, *, final: bool = False) -> None:
        if final:
            self._unsent_text += self._decoder.decode(b"", True)
        if self._unsent_ids or self._unsent_text:
            delta = p.Delta(
                id=self._request.id, text=self._unsent_text, ids=tuple(self._unsent_ids)
            )
            self._send(delta)
            self._unsent_text = ""
            self._unsent_ids = []
            self._sent_at = time.monotonic()


class Pace:
    """Lowers the threads when tokens take three times their baseline, and tries again later.

    A busy neighbour at normal priority makes llama.cpp's threads wait for each other at barriers: fewer threads are then
    faster. Source: design 3, "Background is really background".
    """

    WINDOW = 8
    RECOVER_AFTER = 64

    def __init__(self, threads: int) -> None:
        self._full = threads
        self._threads = threads
        self._recent: collections.deque[float] = collections.deque(maxlen=self.WINDOW)
        self._baseline = 0.0
        self._since_change = 0

    def threads_after(self, token_s: float) -> int:
        """The number of threads to use from now on."""
        self._recent.append(token_s)
        self._since_change += 1
        if len(self._recent) < self.WINDOW:
            return self._threads
        median = sorted(self._recent)[self.WINDOW // 2]
        self._baseline = min(self._baseline or median, median)
        if median > 3 * self._baseline and self._threads > 1:
            self._change(self._threads - 1)
        elif self._threads < self._full and self._since_change >= self.RECOVER_AFTER:
            self._change(self._full)
        return self._threads

    def _change(self, threads: int) -> None:
        self._threads = threads
        self._since_change = 0
        self._recent.clear()
