"""Evidence, not echoes: what a hit may be turned into before it is shown to the model.

A question is no answer, an answer made of memories is no new fact, a refusal or a failed answer is nothing. Hits on them
page in what stands behind them – their sources – or nothing. Source: design 4.4 "evidence, not echoes".
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory.recall.hybrid import Candidate, by_score
from memory.storage.learning_log import query_key
from memory.storage.timeline import Timeline
from memory.text import is_question, normalise
from memory.values import Node, NodeId, NodeKind, NodeStatus, Role

_REFUSAL = re.compile(
    r"^\W*(?:i(?:'m| am) (?:sorry|afraid)|sorry\b|i (?:do not|don't) (?:know|have)|i (?:cannot|can't|could not|couldn't)"
    r"|i have no (?:information|memory|record)|as an ai\b|unfortunately\b|there is no (?:information|record)"
    r"|很?抱歉|对不起|不好意思|我(?:并|也|还)?不(?:知道|清楚|了解|记得)|我(?:没有|无法|不能)|作为(?:一个|一名)?(?:ai|人工智能))",
    re.IGNORECASE,
)
_REFUSAL_CHARACTERS_MAX = 400  # a long answer that begins with "unfortunately" still says something


def is_refusal(text: str) -> bool:
    """True for a short answer that only says it has none."""
    return len(text) <= _REFUSAL_CHARACTERS_MAX and _REFUSAL.match(normalise(text)) is not None


class Evidence:
    """Turns hits into evidence for one question."""

    def __init__(self, timeline: Timeline, question: str, exclude: frozenset[NodeId]) -> None:
        self._timeline = timeline
        self._question = query_key(question)
        self._exclude = exclude

    def admits(self, node: Node) -> bool:
        """True when a node may be shown as it is. A document that is excluded excludes its passages. Source: design 4.5."""
        if node.id in self._exclude or node.parent_id in self._exclude:
            return False
        if query_key(node.content) == self._question:
            return False
        if node.kind is not NodeKind.MESSAGE:
            return True
        if is_question(node.content):
            return False
        return node.role is Role.USER or (
            node.status is not NodeStatus.FAILED
            and not node.derived_from
            and not is_refusal(node.content)
        )

    def resolve(self, candidates: Sequence[Candidate]) -> list[Candidate]:
        """Replaces each candidate by its evidence; keeps the best rank for each node, best first, then the best score."""
        best: dict[NodeId, Candidate] = {}
        sources = self._sources(c.node for c in candidates)
        for candidate in candidates:
            if self.admits(candidate.node):
                stand_ins = [candidate]
            else:
                nodes = sources.get(candidate.node.id, ())
                stand_ins = [
                    replace(candidate, node=n, own=frozenset(), reason="source") for n in nodes
                ]
            for c in stand_ins:
                known = best.get(c.node.id)
                best[c.node.id] = c if known is None else _better(known, c)
        ordered = sorted(best.values(), key=lambda c: (-c.rank, *by_score(c)))
        return _without_parents(ordered)

    def _sources(self, nodes: Iterable[Node]) -> dict[NodeId, tuple[Node, ...]]:
        """By node: the admissible sources behind a question's answers, or behind an answer."""
        shown = [n for n in nodes if not self.admits(n) and n.kind is NodeKind.MESSAGE]
        questions = [n.id for n in shown if n.role is Role.USER]
        answers = self._timeline.answers_to(questions)
        wanted: dict[NodeId, tuple[NodeId, ...]] = {
            n.id: n.derived_from for n in shown if n.role is Role.ASSISTANT
        }
        for question_id, replies in answers.items():
            wanted[question_id] = tuple(s for reply in replies for s in reply.derived_from)
        ids = sorted({s for sources in wanted.values() for s in sources})
        found = self._timeline.nodes(ids)
        return {
            node_id: tuple(found[s] for s in sources if s in found and self.admits(found[s]))
            for node_id, sources in wanted.items()
        }


def _better(first: Candidate, second: Candidate) -> Candidate:
    """One node found by itself and as a source: the best of both."""
    better = max(first, second, key=lambda c: (c.score, c.rank))
    return replace(
        better,
        rank=max(first.rank, second.rank),
        share=max(first.share, second.share),
        own=better.own or first.own or second.own,
    )


def _without_parents(candidates: Sequence[Candidate]) -> list[Candidate]:
    """A document and its chunk are never both shown. Source: design 4.5."""
    parents = {c.node.parent_id for c in candidates if c.node.parent_id is not None}
    return [c for c in candidates if c.node.id not in parents]
