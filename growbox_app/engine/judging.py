"""The judge's forward passes: each candidate read once, with the query behind it.

One pass gives both signals: how probable the passage makes the question, token by token, and whether "yes" or "no" follows.
The prompt's head, examples included, stays in the KV cache from one candidate to the next. Whoever is more urgent may cut a pass short; it goes
on where it stopped. Lives in the background context only, so the conversation's cache is never touched. Holds no truth.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Mapping, Sequence

import numpy as np

from growbox_app.engine import protocol as p
from growbox_app.engine.sequence import PREFILL_SLICE, Sequence0
from growbox_app.engine.tokenizer import Renderer

_BLANKS_MAX = 64
_DATE = "2000-01-01"


class JudgeModel:
    """Reads candidates in one sequence."""

    def __init__(self, sequence: Sequence0, window: int, renderer: Renderer) -> None:
        self._sequence = sequence
        self._window = window
        self._renderer = renderer
        self._tokenizer = renderer.tokenizer
        self._blanks: collections.OrderedDict[tuple[int, ...], p.Reading] = (
            collections.OrderedDict()
        )

    def judge(self, request: p.Judge, breathe: Callable[[], None]) -> p.DoneJudge:
        """Reads them all; `breathe` is called before each and where one was cut short.

        Raises:
            EngineFault: cancelled; llama.cpp refused; the query leaves no room for a candidate.
        """
        blank = self._blank(request, breathe)
        readings = tuple(self._read(request, text, breathe) for text in request.candidates)
        return p.DoneJudge(id=request.id, blank=blank, readings=readings)

    def _blank(self, request: p.Judge, breathe: Callable[[], None]) -> p.Reading:
        key = tuple(self._prompt(request, request.blank)[0])
        reading = self._blanks.get(key) or self._read(request, request.blank, breathe)
        if reading is None:
            size = str(len(key))
            raise p.EngineFault("prompt_too_long", tokens=size, window=str(self._window))
        self._blanks[key] = reading
        while len(self._blanks) > _BLANKS_MAX:
            self._blanks.popitem(last=False)
        return reading

    def _read(
        self, request: p.Judge, candidate: str, breathe: Callable[[], None]
    ) -> p.Reading | None:
        ids, start, end = self._prompt(request, candidate)
        if len(ids) > self._window:
            return None
        yes, no = (self._tokenizer.content(word)[0] for word in (request.yes, request.no))
        last = len(ids) - 1
        wanted = {at - 1: (ids[at],) for at in range(start, end)} | {last: (yes, no)}
        found: dict[int, list[float]] = {}
        while last not in found:
            breathe()
            found = self._pass(ids, wanted)
        query = tuple(found[at - 1][0] for at in range(start, end))
        return p.Reading(margin=found[last][0] - found[last][1], query=query)

    def _pass(
        self, ids: Sequence[int], wanted: Mapping[int, Sequence[int]]
    ) -> dict[int, list[float]]:
        """Log P of the wanted ids behind the wanted positions; not all of them when the pass was cut short."""
        found: dict[int, list[float]] = {}
        kept = min(self._sequence.common(ids), min(wanted))
        self._sequence.cut(kept)
        for begin in range(kept, len(ids), PREFILL_SLICE):
            part = ids[begin : begin + PREFILL_SLICE]
            marks = [begin + at in wanted for at in range(len(part))]
            if self._sequence.abort or not self._sequence.decode_marked(part, marks):
                break
            for at in range(begin, begin + len(part)):
                if at in wanted:
                    found[at] = self._log_probabilities(at - begin, wanted[at])
        return found

    def _log_probabilities(self, at: int, ids: Sequence[int]) -> list[float]:
        shape = (self._tokenizer.size,)
        logits = np.ctypeslib.as_array(self._sequence.logits(at), shape).astype(np.float64)
        top = logits.max()
        total = top + np.log(np.exp(logits - top).sum())
        return [float(logits[token] - total) for token in ids]

    def _prompt(self, request: p.Judge, candidate: str) -> tuple[list[int], int, int]:
        """The ids, and where the query's begin and end."""
        rows = (*request.head, p.Message(role="user", parts=("",)))
        ids, behind = self._renderer.around(rows, _DATE)
        for text in (request.before, candidate, request.between):
            ids += self._tokenizer.content(text)
        start = len(ids)
        ids += self._tokenizer.content(request.query)
        after = [*self._tokenizer.content(request.after), *behind]
        return [*ids, *after], start, len(ids)
