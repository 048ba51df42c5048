"""Ranking: one number for each passage of a pool, from its words, its meaning and what stands around it.

A sum of log-odds (see `RankingConfig`). It orders; it does not decide what passes the gate. Pure: no store is read here.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from memory.config import RankingConfig
from memory.recall.cohort import Reading
from memory.storage.lexical import LexicalHit
from memory.storage.vectors import Vector
from memory.text import asks, folded, is_code, names_code, speaker
from memory.values import Node, NodeKind

_DAY_MS = 86_400_000
_HEAD = 2_000  # characters in which a message is searched for questions


@dataclass(frozen=True, slots=True, kw_only=True)
class Passage:
    """A node of the pool with what is known of it."""

    node: Node
    key: LexicalHit | None
    vector: Vector | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """The question: its text, the idf of its terms, how to read its cosines, and when it is asked."""

    text: str
    weights: Mapping[str, float]
    reading: Reading | None
    length: float
    now_ms: int


def ranks(asked: Asked, pool: Sequence[Passage], config: RankingConfig) -> dict[int, float]:
    """By sequence number."""
    raw = {p.node.seq: _own(asked, p, config) for p in pool}
    for seq, bonus in _spoken(asked, pool, config).items():
        raw[seq] += bonus
    lent = _lent(pool, raw, config)
    return {
        p.node.seq: raw[p.node.seq] + lent[p.node.seq] + _standing_of(asked, p, config)
        for p in pool
    }


def _own(asked: Asked, passage: Passage, config: RankingConfig) -> float:
    code = is_code(passage.node.content)
    meaning = 0.0
    if asked.reading is not None and passage.vector is not None:
        meaning = asked.reading.meaning(passage.vector, code=code)
    weight = config.code_words if code and not names_code(asked.text) else config.words
    return meaning + weight * bm25(asked, passage.key, config)


def bm25(asked: Asked, key: LexicalHit | None, config: RankingConfig) -> float:
    """Of a passage's own terms. Source: Robertson and Zaragoza, "The Probabilistic Relevance Framework" (2009)."""
    if key is None:
        return 0.0
    k1, b = config.saturation, config.length_share
    norm = k1 * (1 - b + b * key.length / asked.length)
    total = 0.0
    for term, weight in asked.weights.items():
        times = key.times(term)
        if times:
            total += weight * times * (k1 + 1) / (times + norm)
    return total


def _spoken(asked: Asked, pool: Sequence[Passage], config: RankingConfig) -> dict[int, float]:
    """The bonus of passages spoken by someone the question names; two who are named share it."""
    question = folded(asked.text)
    said = {p.node.seq: speaker(p.node.content) for p in pool}
    named = {who for who in said.values() if who and who in question}
    return {seq: config.speaker / len(named) for seq, who in said.items() if who in named}


def _lent(
    pool: Sequence[Passage], raw: Mapping[int, float], config: RankingConfig
) -> dict[int, float]:
    """What the surroundings of each passage add."""
    groups: dict[str, list[int]] = {}
    for passage in pool:
        groups.setdefault(group_of(passage.node), []).append(passage.node.seq)
    lent: dict[int, float] = {}
    for members in groups.values():
        if len(members) == 1:
            lent[members[0]] = config.around * raw[members[0]]
            continue
        seqs = np.array(members)
        values = np.array([raw[s] for s in members])
        apart = np.abs(seqs[:, None] - seqs[None, :])
        best = np.where(apart <= config.around_reach, values[None, :], -np.inf).max(axis=1)
        near = ((apart == 1) * config.near + (apart == 2) * config.next_near) @ values
        lent.update(zip(members, (config.around * best + near).tolist(), strict=True))
    return lent


def group_of(node: Node) -> str:
    """What a passage is part of: its document, or its conversation; itself when of none."""
    if node.kind is NodeKind.CHUNK:
        return node.source_uri or node.parent_id or node.id
    if node.kind is NodeKind.MESSAGE:
        return node.conversation_id or node.id
    return node.id


def _standing_of(asked: Asked, passage: Passage, config: RankingConfig) -> float:
    """What a message is worth whatever is asked: it says something, does not only ask, and is not old."""
    node = passage.node
    if node.kind is not NodeKind.MESSAGE:
        return 0.0
    days = max(0, asked.now_ms - node.created_at_ms) / _DAY_MS
    aged = config.decay * (1 - math.exp2(-days / config.half_life_days))
    said = config.substance * math.log1p(passage.key.length if passage.key else 0)
    asked_back = config.asking if asks(node.content[:_HEAD]) else 0.0
    return float(said - aged - asked_back)


def shares(ranked: Mapping[int, float], scale: float) -> dict[int, float]:
    """The chance of each passage to be what is looked for, if one of them is: a rank is a log-odds, so they are its softmax.

    Args:
        ranked: rank by sequence number.
        scale: what of a rank's difference counts once; the parts of a rank are not independent of each other.
    """
    if not ranked:
        return {}
    best = max(ranked.values())
    odds = {seq: math.exp((rank - best) / scale) for seq, rank in ranked.items()}
    total = sum(odds.values())
    return {seq: value / total for seq, value in odds.items()}


def spread(
    ranked: Mapping[int, float], groups: Mapping[int, str], step: float, limit: int
) -> list[tuple[int, float]]:
    """Orders a ranking so that each passage chosen makes the rest of its conversation a little less wanted.

    Args:
        ranked: rank by sequence number.
        groups: what each is part of.
        step: taken from a passage for each better one of its group.
        limit: how many are chosen one after another.

    Returns:
        (seq, rank less what was taken), best first, newest first among equals.
    """
    left, taken = dict(ranked), dict.fromkeys(groups.values(), 0)
    chosen: list[tuple[int, float]] = []
    while left and len(chosen) < limit:
        seq = max(left, key=lambda s: (left[s] - step * taken[groups[s]], s))
        chosen.append((seq, left.pop(seq) - step * taken[groups[seq]]))
        taken[groups[seq]] += 1
    rest = [(seq, rank - step * taken[groups[seq]]) for seq, rank in left.items()]
    return chosen + sorted(rest, key=lambda item: (-item[1], -item[0]))
