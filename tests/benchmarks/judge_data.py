"""Questions with one right passage and hard wrong ones, for the judge's benchmark. Pure but for reading the files.

A right passage is the marked one, if it spells out the answer: at least half of its terms. A wrong one is a passage that BM25
ranks high for the question and that neither is marked nor spells out the answer: much that is not marked answers all the same.
"""

from __future__ import annotations

import collections
import itertools
import json
import random
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from memory.text import content_terms, inverse_frequency, terms

NEGATIVES = 4
PASSAGE_CHARACTERS = 140
"""Chinese paragraphs are cut at sentence ends into passages of about this size: a note, not a page."""
SEED = 5
_SENTENCE = re.compile(r"[^。！？；\n]*[。！？；\n]+|[^。！？；\n]+$")
_EVIDENCE = re.compile(r"D\s*:?\s*0*(\d+)\s*:\s*0*(\d+)")
_ANSWERABLE = frozenset({1, 2, 3, 4})


_BODY = re.compile(r"^\[[^]]*\] ")
"""The date before a turn: what was said on the day that is asked for need not be what is asked for."""
_SPELT_OUT = 0.5
T = TypeVar("T", bound=tuple[object, ...])


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """One question; `candidates[0]` is the right passage."""

    query: str
    candidates: tuple[str, ...]


class Ranking:
    """BM25 over one list of passages."""

    def __init__(self, passages: Sequence[str]) -> None:
        self.passages = passages
        self._counts = [collections.Counter(terms(passage)) for passage in passages]
        self._frequency = collections.Counter(term for counts in self._counts for term in counts)
        sizes = [counts.total() for counts in self._counts]
        mean = sum(sizes) / max(len(sizes), 1)
        self._norms = [1.2 * (0.25 + 0.75 * size / mean) for size in sizes]

    def best(self, query: str) -> list[int]:
        """Indices of all passages, best first; equal ones in their own order."""
        wanted = {
            term: inverse_frequency(len(self._counts), self._frequency[term])
            for term in content_terms(query)
        }
        scores = [
            sum(idf * counts[term] * 2.2 / (counts[term] + norm) for term, idf in wanted.items())
            for counts, norm in zip(self._counts, self._norms, strict=True)
        ]
        return sorted(range(len(scores)), key=lambda at: (-scores[at], at))


def chinese_cases(path: Path, limit: int) -> list[Case]:
    """Questions of a SQuAD-shaped file, in a fixed random order."""
    passages: list[str] = []
    questions: list[tuple[str, int, tuple[str, ...]]] = []
    for entry in json.loads(path.read_text(encoding="utf-8"))["data"]:
        for paragraph in entry["paragraphs"]:
            ends = _passages(paragraph["context"], passages)
            for row in paragraph["qas"]:
                answers = tuple(answer["text"] for answer in row["answers"])
                start = row["answers"][0]["answer_start"]
                gold = next((at for end, at in ends if start < end), ends[-1][1])
                questions.append((row["question"], gold, answers))
    ranking = Ranking(passages)
    return [
        Case(
            query=query,
            candidates=(passages[gold], *_wrong(query, gold, answers, ranking)),
        )
        for query, gold, answers in _shuffled(questions)[:limit]
    ]


def _wrong(query: str, gold: int, answers: Sequence[str], ranking: Ranking) -> list[str]:
    """The best of the other passages that do not spell out the answer."""
    wrong = (
        ranking.passages[at]
        for at in ranking.best(query)
        if at != gold
        and not any(_spells_out(_BODY.sub("", ranking.passages[at]), answer) for answer in answers)
    )
    return list(itertools.islice(wrong, NEGATIVES))


def _passages(context: str, into: list[str]) -> list[tuple[int, int]]:
    """Appends the passages of a paragraph; returns (end in the paragraph, index) of each."""
    ends: list[tuple[int, int]] = []
    start = position = 0
    for sentence in _SENTENCE.findall(context):
        if position > start and position + len(sentence) - start > PASSAGE_CHARACTERS:
            into.append(context[start:position].strip())
            ends.append((position, len(into) - 1))
            start = position
        position += len(sentence)
    into.append(context[start:].strip())
    return [*ends, (len(context), len(into) - 1)]


def english_cases(path: Path, limit: int) -> list[Case]:
    """Questions of a LoCoMo-shaped file whose evidence is one turn that exists, in a fixed random order.

    A judge sees one passage at a time: what only several turns together answer, none of them does.
    """
    rows: list[tuple[str, str, int, Session]] = []
    for sample in json.loads(path.read_text(encoding="utf-8")):
        session = Session(sample["conversation"])
        for row in sample["qa"]:
            cited = session.places(row["evidence"])
            if row["category"] in _ANSWERABLE and len(cited) == 1:
                rows.append((row["question"], str(row["answer"]), min(cited), session))
    answered = (row for row in _shuffled(rows) if _spells_out(row[3].passages[row[2]], row[1]))
    return [
        session.case(question, answer, gold)
        for question, answer, gold, session in itertools.islice(answered, limit)
    ]


class Session:
    """The turns of one LoCoMo conversation as passages: `[date] speaker: text [picture]`."""

    def __init__(self, conversation: dict[str, object]) -> None:
        names, self.passages = _turns(conversation)
        self._place = {name: at for at, name in enumerate(names)}
        self._ranking = Ranking(self.passages)

    def places(self, evidence: Sequence[str]) -> set[int]:
        """The turns that an evidence list names; malformed and dangling names are dropped."""
        names = (f"D{a}:{b}" for a, b in _EVIDENCE.findall(" ".join(evidence)))
        return {self._place[name] for name in names if name in self._place}

    def case(self, question: str, answer: str, gold: int) -> Case:
        """The question with its right turn and BM25's best wrong ones."""
        wrong = _wrong(question, gold, [answer], self._ranking)
        return Case(query=question, candidates=(self.passages[gold], *wrong))


def _turns(conversation: dict[str, object]) -> tuple[list[str], list[str]]:
    names: list[str] = []
    passages: list[str] = []
    for key, session in conversation.items():
        if not re.fullmatch(r"session_\d+", key) or not isinstance(session, list):
            continue
        moment = str(conversation[f"{key}_date_time"]).split(" on ")[-1]
        for turn in session:
            picture = f" [{turn['blip_caption']}]" if turn.get("blip_caption") else ""
            names.append(turn["dia_id"])
            passages.append(f"[{moment}] {turn['speaker']}: {turn['text']}{picture}")
    return names, passages


def _spells_out(passage: str, answer: str) -> bool:
    wanted = set(content_terms(answer)) or set(terms(answer))
    return answer in passage or len(wanted & set(terms(passage))) >= _SPELT_OUT * len(wanted) > 0


def _shuffled(rows: Sequence[T]) -> list[T]:
    """In an order that depends on the questions alone, which stand first in each row."""
    mixed = sorted(rows, key=lambda row: repr(row[0]))
    random.Random(SEED).shuffle(mixed)
    return mixed
