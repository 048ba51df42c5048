"""The choice of the next token: greedy or sampled, with barred tokens and a lazily applied grammar.

The native module is handed in: only `host.py` imports llama_cpp.
"""

from __future__ import annotations

import ctypes
import re
from typing import Any

import numpy as np

from growbox_app.engine import protocol as p
from growbox_app.engine.sequence import Sequence0
from growbox_app.engine.tokenizer import Tokenizer

TOP_K = 40


class Sampler:
    """Picks tokens for one answer; `close` frees the native chain."""

    def __init__(
        self, llama: Any, sequence: Sequence0, tokenizer: Tokenizer, request: p.Chat
    ) -> None:
        self._llama = llama
        self._sequence = sequence
        self._tokenizer = tokenizer
        self._request = request
        spelled = [tokenizer.raw(text, special=True) for text in request.barred]
        self._barred = [ids[0] for ids in spelled if len(ids) == 1]
        trigger = tokenizer.raw(request.trigger, special=True)
        self._trigger = trigger[0] if request.grammar and len(trigger) == 1 else None
        self._chain = self._make_chain()

    def pick(self) -> int:
        """The next token, by the logits of the last decoded one."""
        if self._trigger is None and self._request.temperature <= 0:
            return self._likeliest()
        token = self._llama.llama_sampler_sample(self._chain, self._sequence.context, -1)
        return int(token)

    def close(self) -> None:
        """Frees the chain."""
        self._llama.llama_sampler_free(self._chain)

    def _likeliest(self) -> int:
        """Greedy without a grammar needs no candidate list of the whole vocabulary: one pass over the logits."""
        pointer = self._sequence.logits()
        logits = np.ctypeslib.as_array(pointer, shape=(self._tokenizer.size,))
        logits[self._barred] = -np.inf
        return int(np.argmax(logits))

    def _make_chain(self) -> Any:
        llama, request = self._llama, self._request
        chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        links = []
        if self._barred:
            rows = [llama.llama_logit_bias(token, float("-inf")) for token in self._barred]
            biases = (llama.llama_logit_bias * len(rows))(*rows)
            size = self._tokenizer.size
            links.append(llama.llama_sampler_init_logit_bias(size, len(rows), biases))
        if self._trigger is not None:
            links.append(self._grammar(self._trigger))
        if request.temperature <= 0:
            links.append(llama.llama_sampler_init_greedy())
        else:
            links += [
                llama.llama_sampler_init_top_k(TOP_K),
                llama.llama_sampler_init_top_p(request.top_p, 1),
                llama.llama_sampler_init_temp(request.temperature),
                llama.llama_sampler_init_dist(request.seed),
            ]
        for link in links:
            llama.llama_sampler_chain_add(chain, link)
        return chain

    def _grammar(self, trigger: int) -> Any:
        """Constrains from the trigger on, be it one token or spelled out; before it the answer is free text."""
        tokens = (ctypes.c_int32 * 1)(trigger)
        spelled = re.escape(self._request.trigger)
        patterns = (ctypes.c_char_p * 1)(f"[\\s\\S]*?({spelled})[\\s\\S]*".encode())
        grammar = self._llama.llama_sampler_init_grammar_lazy_patterns(
            self._tokenizer.vocabulary,
            self._request.grammar.encode(),
            b"root",
            patterns,
            1,
            tokens,
            1,
        )
        if not grammar:
            raise p.EngineFault(
                "engine_error", "the tool grammar does not compile", reason="grammar"
            )
        return grammar
