"""How candidates are put before the judge, and how its readings become verdicts. Pure but for reading resources.

A judge is a model, a prompt (`resources/prompts/<language>/judge.toml`) and a calibration
(`resources/calibration/judge-*.toml`), all measured together: `tests/benchmarks/judge.py` does both. The candidate is data.
Its text can reach the judge's prompt only as one line without the prompt's own labels, and it cannot make itself likely by
quoting the question. Source: design 4.4 "Judging".
"""

from __future__ import annotations

import hashlib
import math
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache

from growbox_app.engine import protocol as p
from growbox_app.models.calibration import JudgeCalibration
from growbox_app.paths import resources_path
from memory.requests import Verdict
from memory.rest.chunking import chunk_bounds
from memory.text import is_unspaced

WINDOW_CHARACTERS = 480
WINDOW_CHARACTERS_UNSPACED = 200
"""A longer candidate is read in windows of this size, like the passages that the calibration was measured on."""
QUERY_CHARACTERS_MAX = 600
MARGIN_MAX = 5.0
"""A margin counts up to here: however loudly a text says "yes", it cannot outweigh that it does not fit the question."""
TOKEN_GAIN_MIN, TOKEN_GAIN_MAX = -1.0, 4.0
"""Nats that one token of the question may count: neither one lucky name nor one odd word decides."""
_QUOTE_MIN = 6
_LABELS = re.compile(
    r"\b(passage|question|contains the answer|answer)\s*[:：]|(文字|问题|包含答案|答案|回答)\s*[:：]",
    re.IGNORECASE,
)
_CHORUS = re.compile(r"(?:\b(?:yes|no)\b[\s.,!;:。，！；]*){3,}", re.IGNORECASE)
"""The judge's own reply over and over: a text that says it once may mean something by it."""
_MARKUP = re.compile(r"<\|?/?\s*[\w-]{1,24}\s*\|?>|\[/?INST\]", re.IGNORECASE)


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgePrompt:
    """One language's prompt. `version` names it, byte for byte."""

    version: str
    head: tuple[p.Message, ...]
    before: str
    between: str
    after: str
    yes: str
    no: str
    blank: str


@cache
def judge_prompt(language: str) -> JudgePrompt:
    """The prompt of a language."""
    data = (resources_path() / "prompts" / language / "judge.toml").read_bytes()
    table = tomllib.loads(data.decode("utf-8"))
    examples = table.pop("example")
    head = [p.Message(role="system", parts=(table.pop("head"),))]
    for example in examples:
        parts = (
            table["before"],
            example["passage"],
            table["between"],
            example["query"],
            table["after"],
        )
        answer = table["yes"] if example["contains"] else table["no"]
        head += [p.Message(role="user", parts=parts), p.Message(role="assistant", parts=(answer,))]
    version = hashlib.sha256(data.replace(b"\r\n", b"\n")).hexdigest()[:8]
    return JudgePrompt(version=version, head=tuple(head), **table)


def request(request_id: int, language: str, query: str, windows: Sequence[str]) -> p.Judge:
    """What the engine is asked."""
    prompt = judge_prompt(language)
    asked = _one_line(query)[:QUERY_CHARACTERS_MAX]
    return p.Judge(
        id=request_id,
        head=prompt.head,
        before=prompt.before,
        between=prompt.between,
        after=prompt.after,
        blank=prompt.blank,
        yes=prompt.yes,
        no=prompt.no,
        query=asked,
        candidates=tuple(as_data(window, asked) or prompt.blank for window in windows),
    )


def windows_of(text: str) -> list[str]:
    """The text in pieces that are judged one by one, cut at sentence ends where there are any."""
    limit = WINDOW_CHARACTERS_UNSPACED if is_unspaced(text) else WINDOW_CHARACTERS
    bounds = chunk_bounds(text, 0, limit, len(text))
    return [text[start:end] for start, end in bounds if text[start:end].strip()]


def as_data(text: str, query: str) -> str:
    """The text as one line without anything that plays a part in the prompt: its labels, chat markup, the question itself.

    A text that repeats the question makes it likely without answering it: an echo is no evidence.
    """
    line = _CHORUS.sub(" ", _MARKUP.sub(" ", _one_line(text)))
    line = _LABELS.sub(lambda match: match[0].rstrip(":： ") + " ", line)
    quoted = query.strip().rstrip("?？.。!！ ")
    if len(quoted) >= _QUOTE_MIN:
        line = re.sub(re.escape(quoted) + r"[?？]?", " ", line, flags=re.IGNORECASE)
    return " ".join(line.split())


def _one_line(text: str) -> str:
    """White space to single blanks; what is not seen (control, format and private characters) is dropped."""
    seen = (" " if c.isspace() else c for c in text if c.isspace() or not _unseen(c))
    return " ".join("".join(seen).split())


def _unseen(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Cf", "Co", "Cn", "Cs"}


def signals(reading: p.Reading, blank: p.Reading) -> dict[str, float]:
    """What a reading says, against that of no passage at all; each signal grows with the chance of an answer.

    `margin`: log P(yes) − log P(no), `lift` the same beyond what the question alone brings, both bounded. The other two are the
    query likelihood. `explained`: the share of the question's surprise that the passage takes away, each token's part bounded.
    `information`: all that it takes away, in nats, by its root with the sign kept: a long question is no better answered.
    """
    gains = [after - before for after, before in zip(reading.query, blank.query, strict=True)]
    bounded = sum(max(TOKEN_GAIN_MIN, min(TOKEN_GAIN_MAX, gain)) for gain in gains)
    total = sum(gains)
    return {
        "margin": _bounded(reading.margin),
        "lift": _bounded(reading.margin - blank.margin),
        "explained": bounded / max(-sum(blank.query), 1.0),
        "information": math.copysign(math.sqrt(abs(total)), total),
    }


def _bounded(margin: float) -> float:
    return max(-MARGIN_MAX, min(MARGIN_MAX, margin))


def chance(found: Mapping[str, float], calibration: JudgeCalibration) -> float:
    """Probability, 0..1, that the passage contains the answer."""
    score = calibration.bias + sum(
        weight * found[name] for name, weight in calibration.weights.items()
    )
    return 1.0 / (1.0 + math.exp(-max(-50.0, min(50.0, score))))


def verdict_of(chances: Iterable[float | None], calibration: JudgeCalibration) -> Verdict:
    """The verdict on a candidate from the chances of its windows: one answers it, or all of them do not.

    A window that could not be read (None) leaves it open.
    """
    known = list(chances)
    if any(it is not None and it >= calibration.yes for it in known):
        return Verdict.YES
    if known and all(it is not None and it <= calibration.no for it in known):
        return Verdict.NO
    return Verdict.UNKNOWN
