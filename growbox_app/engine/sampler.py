"""The choice of the next token: greedy or sampled, with barred tokens and a grammar, at once or from a trigger on.

A grammar is asked about the one token that would have been taken; only when it says no are all tokens put to it, because that
costs as much as a decode. The native module is handed in: only `host.py` imports llama_cpp.
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
_ROW = np.dtype([("id", np.int32), ("logit", np.float32), ("p", np.float32)])
"""`llama_token_data`."""


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
        self._grammar = self._make_grammar() if request.grammar else None
        self._chain = self._make_chain()

    def pick(self) -> int:
        """The next token, by the logits of the last decoded one."""
        logits = self._logits()
        if self._request.temperature <= 0:
            token = int(np.argmax(logits))
        else:
            token = self._chosen(_rows(logits))
        if self._grammar is None:
            return token
        if not self._fits(token, logits[token]):
            rows = _rows(logits)
            self._apply(self._grammar, rows)
            token = self._chosen(rows)
        self._llama.llama_sampler_accept(self._grammar, token)
        return token

    def take(self, token: int) -> None:
        """Tells the grammar of a token that an earlier engine had picked for this answer."""
        if self._grammar is not None:
            self._llama.llama_sampler_accept(self._grammar, token)

    def close(self) -> None:
        """Frees what is native."""
        self._llama.llama_sampler_free(self._chain)
        if self._grammar is not None:
            self._llama.llama_sampler_free(self._grammar)

    def _logits(self) -> Any:
        pointer = self._sequence.logits()
        logits = np.ctypeslib.as_array(pointer, shape=(self._tokenizer.size,))
        logits[self._barred] = -np.inf
        return logits

    def _fits(self, token: int, logit: float) -> bool:
        row = np.array([(token, logit, 0.0)], dtype=_ROW)
        self._apply(self._grammar, row)
        return bool(row["logit"][0] > -np.inf)

    def _chosen(self, rows: Any) -> int:
        found = self._apply(self._chain, rows)
        return int(found.data[found.selected].id)

    def _apply(self, sampler: Any, rows: Any) -> Any:
        """Runs a sampler over candidates, in place."""
        llama = self._llama
        data = rows.ctypes.data_as(ctypes.POINTER(llama.llama_token_data))
        found = llama.llama_token_data_array(data=data, size=len(rows), selected=-1, sorted=False)
        llama.llama_sampler_apply(sampler, ctypes.byref(found))
        return found

    def _make_chain(self) -> Any:
        llama, request = self._llama, self._request
        chain = llama.llama_sampler_chain_init(llama.llama_sampler_chain_default_params())
        if request.temperature <= 0:
            links = [llama.llama_sampler_init_greedy()]
        else:
            links = [
                llama.llama_sampler_init_top_k(TOP_K),
                llama.llama_sampler_init_top_p(request.top_p, 1),
                llama.llama_sampler_init_temp(request.temperature),
                llama.llama_sampler_init_dist(request.seed),
            ]
        for link in links:
            llama.llama_sampler_chain_add(chain, link)
        return chain

    def _make_grammar(self) -> Any:
        llama, vocabulary = self._llama, self._tokenizer.vocabulary
        text = self._request.grammar.encode()
        if self._request.trigger:
            grammar = self._from_trigger_on(text)
        else:
            grammar = llama.llama_sampler_init_grammar(vocabulary, text, b"root")
        if not grammar:
            raise p.EngineFault("engine_error", "a grammar does not compile", reason="grammar")
        return grammar

    def _from_trigger_on(self, text: bytes) -> Any:
        """Constrains from the trigger on, be it one token or spelled out; before it the answer is free text."""
        ids = self._tokenizer.raw(self._request.trigger, special=True)
        single = ids if len(ids) == 1 else []
        tokens = (ctypes.c_int32 * 1)(*single)
        spelled = re.escape(self._request.trigger)
        patterns = (ctypes.c_char_p * 1)(f"[\\s\\S]*?({spelled})[\\s\\S]*".encode())
        return self._llama.llama_sampler_init_grammar_lazy_patterns(
            self._tokenizer.vocabulary, text, b"root", patterns, 1, tokens, len(single)
        )


def _rows(logits: Any) -> Any:
    """All tokens as candidates."""
    rows = np.empty(len(logits), dtype=_ROW)
    rows["id"] = np.arange(len(logits), dtype=np.int32)
    rows["logit"] = logits
    rows["p"] = 0.0
    return rows
