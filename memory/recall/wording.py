"""Whether a question is one that was asked before, in the same words or in others. Pure.

Vectors say what two questions are about, and hardly what they want to know of it: "When did Ann apply?" lies as near to "Why did
Ann apply?" as to "On which day did Ann apply?". So two wordings are never one question when they ask for another kind of
thing – a time, a reason, an amount, whether it is so, or else – or when one names what the other does not. The kind is told by the question
word that stands first, in English and Chinese; other languages have the vectors alone.

Nearness has two steps. Of the *same* question everything holds that was answered for the other wording. What is only *near* may be
another question, so what was answered is checked on a sample before it is relied on. Measured on LoCoMo: of 120 paraphrases 81 in
100 count as the same and 92 as near at least (conversations that no limit was fitted on: 89 paraphrases, 73 and 84); of the
14,276 pairs of questions with other evidence 17 count as the same and 73 as near.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from memory.config import LearningConfig
from memory.text import folded, terms


class Wanted(StrEnum):
    """What a question asks for."""

    TIME = "time"
    REASON = "reason"
    AMOUNT = "amount"
    WHETHER = "whether"
    OTHER = "other"


_AUXILIARY = (
    "is|are|am|was|were|do|does|did|has|have|had|will|would|can|could|shall|should|may|might|must"
)
_QUESTION_WORD = r"\b(?:what|which|who|whom|whose|where|how)\b"
_ASKS_FOR: Final = (
    (
        Wanted.TIME,
        rf"\bwhen(?=\s+(?:{_AUXILIARY})\b|\s*[?？]|$)|^when\b(?!.*{_QUESTION_WORD})|\bsince when\b|\bhow long\b|\bhow much time\b"
        r"|\b(?:know|remember|recall|tell me|say|sure) when\b"
        r"|\b(?:what|which) (?:time|dates?|days?|weeks?|months?|years?)\b"
        r"|\bhow many (?:minutes|hours|days|weeks|months|years)\b"
        r"|什么时[候间]|何时|几[点时]|[哪几]一?[年月日天号周]|多久|多长时间|什么日子",
    ),
    (
        Wanted.REASON,
        r"\bwhy\b|\bhow come\b|\bwhat (?:made|makes|motivate[sd]?|led)\b|\bwhat\b.{0,40}\breasons?\b|\bwhich reasons?\b|\bwhat reasons?\b"
        r"|为什么|为何|为啥|什么原因|怎么会",
    ),
    (
        Wanted.AMOUNT,
        r"\bhow (?:many|much|often|old|far|big|tall|high)\b|多少|几[个位次本条只岁人种件回遍]|多[大高远重宽深]",
    ),
    (
        Wanted.WHETHER,
        rf"^(?:{_AUXILIARY})\b(?! (?:you|i|we)\b)(?!.*\bor\b)|吗\s*[?？]?$|是否|是不是|有没有|能不能",
    ),
    (Wanted.OTHER, rf"{_QUESTION_WORD}|什么|哪|谁|怎么|怎样|如何|几"),
)
_RULES: Final = tuple((wanted, re.compile(pattern)) for wanted, pattern in _ASKS_FOR)
_WORD = re.compile(r"[^\W_][\w.-]*")
_NAME_HEAD = 5
_SENTENCE_END = re.compile(r"(?<=[.?!。？！])\s*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Match:
    """A question asked before; `same` is false where it is only near."""

    query: int
    same: bool


def matched(
    text: str, known: Mapping[int, str], likeness: Mapping[int, float], config: LearningConfig
) -> Match | None:
    """The nearest question that asks for the same kind of thing.

    Args:
        text: the new wording, as it was written.
        known: stored wordings by id.
        likeness: how near they are, 1 for the mean of related probe pairs.
        config: the two bars.
    """
    near = [
        query
        for query, like in likeness.items()
        if like >= config.near_question and asks_the_same(text, known[query])
    ]
    if not near:
        return None
    best = max(near, key=lambda query: (likeness[query], query))
    return Match(query=best, same=likeness[best] >= config.same_question)


def asks_the_same(text: str, stored: str) -> bool:
    """True when both ask for the same kind of thing, and the stored wording, without its capitals, has every name of the text.

    "American" and "America" are one name, and so are two that a slip of the finger tells apart behind their first letters.
    """
    if wanted(text) is not wanted(stored):
        return False
    words = {term[:_NAME_HEAD] for term in terms(stored)}
    return all(words.issuperset(t[:_NAME_HEAD] for t in terms(name)) for name in _names(text))


def wanted(text: str) -> Wanted:
    """By the question word that stands first, the longer of two in one place."""
    low = folded(text)
    found = [(m.start(), at) for at, (_, rule) in enumerate(_RULES) if (m := rule.search(low))]
    return _RULES[min(found)[1]][0] if found else Wanted.OTHER


def _names(text: str) -> list[str]:
    """Words with a digit in them, and those with a capital that no sentence begins with."""
    found: list[str] = []
    for sentence in _SENTENCE_END.split(text):
        for at, word in enumerate(_WORD.findall(sentence)):
            capital = at > 0 and len(word) > 1 and word[0].isupper()
            if capital or any(c.isdigit() for c in word):
                found.append(word)
    return found
