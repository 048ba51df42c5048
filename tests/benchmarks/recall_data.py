"""The sets that recall is measured on, in one shape. Nothing of them is ever committed.

A file is known by its content, not by its name, so that others of the same shape may replace it.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from memory.values import NodeKind

_EVIDENCE = re.compile(r"D:?0*(\d+):0*(\d+)")
_SENTENCE = re.compile(r"[^。！？!?；;\n]*[。！？!?；;\n]+[”」』]?|[^。！？!?；;\n]+$")


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """One thing to find; `group` is its session, conversation or paragraph."""

    id: str
    text: str
    group: str = ""
    speaker: str = ""
    at_ms: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question and the ids of everything it should find."""

    text: str
    gold: frozenset[str]
    category: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Corpus:
    """Passages that are searched together, and the questions to them."""

    name: str
    passages: tuple[Passage, ...]
    questions: tuple[Question, ...]
    kind: NodeKind = NodeKind.MESSAGE


def locomo(path: Path) -> list[Corpus]:
    """One corpus per conversation: turns to find, by category."""
    return [_conversation(item) for item in _json(path)]


def _conversation(item: dict[str, Any]) -> Corpus:
    conversation, name = item["conversation"], str(item["sample_id"])
    passages: list[Passage] = []
    for key in sorted((k for k in conversation if re.fullmatch(r"session_\d+", k)), key=_number):
        at_ms = _session_ms(str(conversation.get(f"{key}_date_time", "")))
        passages += [
            Passage(
                id=_turn_id(turn["dia_id"]),
                text=_spoken(turn),
                group=key,
                speaker=turn["speaker"],
                at_ms=at_ms,
            )
            for turn in conversation[key]
        ]
    known = {p.id for p in passages}
    questions: list[Question] = []
    for row in item["qa"]:
        gold = {f"{int(s)}:{int(t)}" for e in row["evidence"] for s, t in _EVIDENCE.findall(e)}
        if gold & known:
            questions.append(
                Question(
                    text=row["question"],
                    gold=frozenset(gold & known),
                    category=str(row["category"]),
                )
            )
    return Corpus(name=name, passages=tuple(passages), questions=tuple(questions))


def _number(key: str) -> int:
    return int(key.rsplit("_", 1)[1])


def _turn_id(dia_id: str) -> str:
    session, turn = _EVIDENCE.findall(dia_id)[0]
    return f"{int(session)}:{int(turn)}"


def _spoken(turn: dict[str, str]) -> str:
    caption = turn.get("blip_caption")
    shown = f" [{caption}]" if caption else ""
    return f"{turn['speaker']}: {turn['text']}{shown}"


def _session_ms(text: str) -> int | None:
    """ "1:56 pm on 8 May, 2023" as UTC milliseconds."""
    try:
        at = datetime.strptime(text, "%I:%M %p on %d %B, %Y").replace(tzinfo=UTC)
    except ValueError:
        return None
    return int(at.timestamp() * 1000)


def cmrc(paths: Sequence[Path]) -> tuple[Corpus, Corpus]:
    """The same questions to sentences, and to whole paragraphs."""
    rows = [p for path in paths for a in _json(path)["data"] for p in a["paragraphs"]]
    sentences: list[Passage] = []
    by_sentence: list[Question] = []
    by_paragraph: list[Question] = []
    for number, row in enumerate(rows):
        name, context = f"p{number}", row["context"]
        bounds = [m.span() for m in _SENTENCE.finditer(context) if m.group().strip()]
        sentences += [
            Passage(id=f"{name}:{start}", text=context[start:end].strip(), group=name)
            for start, end in bounds
        ]
        for asked in row["qas"]:
            at = asked["answers"][0]["answer_start"]
            gold = [f"{name}:{start}" for start, end in bounds if start <= at < end]
            by_paragraph.append(Question(text=asked["question"], gold=frozenset({name})))
            if gold:
                by_sentence.append(Question(text=asked["question"], gold=frozenset(gold)))
    paragraphs = [Passage(id=f"p{n}", text=row["context"]) for n, row in enumerate(rows)]
    return (
        _chunks("cmrc_sent", sentences, by_sentence),
        _chunks("cmrc_par", paragraphs, by_paragraph),
    )


def _chunks(name: str, passages: Sequence[Passage], questions: Sequence[Question]) -> Corpus:
    return Corpus(
        name=name, passages=tuple(passages), questions=tuple(questions), kind=NodeKind.CHUNK
    )


def cosqa(questions_path: Path, codes_path: Path) -> Corpus:
    """Natural-language questions to Python functions."""
    return _chunks(
        "cosqa",
        [Passage(id=str(index), text=code) for code, index in _json(codes_path).items()],
        [
            Question(text=row["doc"], gold=frozenset({str(row["retrieval_idx"])}))
            for row in _json(questions_path)
        ],
    )


def precision(beliefs_path: Path, cases_path: Path) -> Corpus:
    """A coding assistant's beliefs, and the cases that say which of them a question is about."""
    passages = [
        Passage(
            id=row["_id"],
            text=f"{row['canonical_name']} ({', '.join(row['aliases'])}): {row['content']}",
        )
        for row in _json(beliefs_path)
    ]
    known = {p.id for p in passages}
    questions = [
        Question(text=row["query"], gold=gold, category=row["category"])
        for row in _json(cases_path)
        if (gold := _wanted(row["expect"]) & known)
    ]
    notes = _chunks("precision", passages, questions)
    return Corpus(
        name=notes.name, passages=notes.passages, questions=notes.questions, kind=NodeKind.NOTE
    )


def _wanted(expect: dict[str, dict[str, list[str]]]) -> frozenset[str]:
    return frozenset(
        name
        for part in expect.values()
        if isinstance(part, dict)
        for key in ("mustInclude", "shouldOnlyInclude")
        for name in part.get(key, ())
    )


def sets(paths: Sequence[Path]) -> dict[str, list[Corpus]]:
    """What can be measured with these files, by name of the set."""
    by_shape: dict[str, list[Path]] = {}
    for path in paths:
        by_shape.setdefault(_shape(_json(path)), []).append(path)
    found = {
        "locomo": [c for path in by_shape.get("locomo", ()) for c in locomo(path)],
        "cmrc_sent": [],
        "cmrc_par": [],
        "cosqa": [],
        "precision": [],
    }
    if "cmrc" in by_shape:
        sentences, paragraphs = cmrc(by_shape["cmrc"])
        found |= {"cmrc_sent": [sentences], "cmrc_par": [paragraphs]}
    if {"questions", "codes"} <= by_shape.keys():
        found["cosqa"] = [cosqa(by_shape["questions"][0], by_shape["codes"][0])]
    if {"beliefs", "cases"} <= by_shape.keys():
        found["precision"] = [precision(by_shape["beliefs"][0], by_shape["cases"][0])]
    return found


def _shape(content: Any) -> str:
    """Which set a file belongs to, by the names in its first record; "" for files of no set."""
    if isinstance(content, dict):
        if isinstance(content.get("data"), list):
            return "cmrc"
        return "codes" if all(isinstance(v, int) for v in content.values()) else ""
    first = content[0] if isinstance(content, list) and content else None
    names = {
        "conversation": "locomo",
        "retrieval_idx": "questions",
        "caseId": "cases",
        "canonical_name": "beliefs",
    }
    if not isinstance(first, dict):
        return ""
    return next((shape for name, shape in names.items() if name in first), "")


def _json(path: Path) -> Any:
    return json.loads(path.read_text(encoding="utf-8"))
