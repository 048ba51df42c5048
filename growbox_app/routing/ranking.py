"""Which tools fit a wish: 0.6 · retrieval + 0.3 · experience + 0.1 · priority. Pure.

Retrieval is the share of the wish's words (weighted by their rarity among the tools) that a tool's name, description and parameters
have; a keyword group that both speak of counts for a match without common words. It is scaled to 0..1 over the tools that were
looked at. Without any experience, retrieval takes its share. Source: design 5.3, seed item M16.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain

from growbox_app.executors.base import Executor, Risk
from growbox_app.routing.keyword_groups import groups_of
from memory.text import content_terms, coverage, inverse_frequency, terms

RETRIEVAL, EXPERIENCE, PRIORITY = 0.6, 0.3, 0.1
IN_NAME, IN_DESCRIPTION, IN_PARAMETERS = 1.0, 0.7, 0.4
GROUP_MATCH = 0.5
"""What a common keyword group alone is worth."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranked:
    """A tool and how well it fits; `retrieval` is unscaled."""

    tool: Executor
    score: float
    retrieval: float


def rank(
    wish: str, tools: Sequence[Executor], experience: Callable[[str], float]
) -> tuple[Ranked, ...]:
    """The tools that have anything to do with the wish, best first.

    Args:
        wish: what the tool should do, in Chinese or English.
        tools: the candidates.
        experience: 0..1, how well a tool of this name did for wishes like this.
    """
    found = {tool.name: _retrieval(wish, tool, _weights(wish, tools)) for tool in tools}
    raw = [value for value in found.values() if value > 0.0]
    if not raw:
        return ()
    low, high = min(found.values()), max(raw)
    past = {tool.name: experience(tool.name) for tool in tools}
    any_past = any(past.values())
    ranked = [
        Ranked(
            tool=tool,
            score=_score(
                (found[tool.name] - low) / (high - low or high), past[tool.name], tool, any_past
            ),
            retrieval=found[tool.name],
        )
        for tool in tools
        if found[tool.name] > 0.0
    ]
    return tuple(sorted(ranked, key=lambda one: (-one.score, one.tool.name)))


def _score(retrieval: float, experience: float, tool: Executor, any_past: bool) -> float:
    share = RETRIEVAL if any_past else RETRIEVAL + EXPERIENCE
    past = EXPERIENCE * experience if any_past else 0.0
    return share * retrieval + past + PRIORITY * _priority(tool)


def _priority(tool: Executor) -> float:
    """Tools that need not ask come first."""
    return {Risk.SAFE: 1.0, Risk.REVERSIBLE: 0.7, Risk.IRREVERSIBLE: 0.3, Risk.UNKNOWN: 0.3}[
        tool.risk
    ]


def _weights(wish: str, tools: Sequence[Executor]) -> Mapping[str, float]:
    own = [frozenset(terms(_everything(tool))) for tool in tools]
    return {
        term: inverse_frequency(len(own), sum(term in words for words in own))
        for term in content_terms(wish)
    }


def _retrieval(wish: str, tool: Executor, weights: Mapping[str, float]) -> float:
    places = (
        (tool.name, IN_NAME),
        (tool.description, IN_DESCRIPTION),
        (_parameters(tool), IN_PARAMETERS),
    )
    best = max(worth * coverage(weights, frozenset(terms(text))) for text, worth in places)
    alike = not groups_of(wish).isdisjoint(groups_of(f"{tool.name} {tool.description}"))
    return best + (GROUP_MATCH if alike else 0.0)


def _parameters(tool: Executor) -> str:
    told = chain.from_iterable((name, one.description) for name, one in tool.parameters.items())
    return " ".join(told)


def _everything(tool: Executor) -> str:
    return f"{tool.name} {tool.description} {_parameters(tool)}"
