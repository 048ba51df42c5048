"""What experiences have in common, by words: clusters, and texts made by rule where no model writes. Pure.

Greedy clustering to a head by the Jaccard index of content terms; only experiences of one operation and one outcome (success or
not) come together. Source: seed item G33.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeAlias

from memory.rest_values import Experience
from memory.text import content_terms, overlap, title

Cluster: TypeAlias = tuple[Experience, ...]
_WORDS_OF_A_NAME = 4
_LINE = 200


def clusters(experiences: Sequence[Experience], alike: float) -> list[Cluster]:
    """The largest first, then the newest; what stands alone is none. Each situation counts once."""
    heads: list[tuple[frozenset[str], list[Experience]]] = []
    for experience in experiences:
        terms = frozenset(content_terms(experience.context))
        members = next(
            (
                m
                for head, m in heads
                if _together(m[0], experience) and overlap(head, terms) >= alike
            ),
            None,
        )
        if members is None:
            heads.append((terms, [experience]))
        elif all(_said(experience) != _said(other) for other in members):
            members.append(experience)
    found = [tuple(members) for _, members in heads if len(members) > 1]
    return sorted(found, key=lambda members: (-len(members), -members[0].id))


def _together(head: Experience, other: Experience) -> bool:
    return (head.operation, head.success) == (other.operation, other.success)


def _said(experience: Experience) -> tuple[str, str]:
    return experience.context, experience.outcome


def passages(cluster: Cluster) -> tuple[str, ...]:
    """One line of data per experience, for a writer."""
    return tuple(_line(experience) for experience in cluster)


def _line(experience: Experience) -> str:
    mark = "" if experience.success else "✗ "
    return f"{mark}{title(experience.context, _LINE)} → {title(experience.outcome, _LINE)}"


def statement(cluster: Cluster, characters_max: int) -> str:
    """By rule: the lines themselves, as many as fit. It claims no more than what happened."""
    kept: list[str] = []
    for line in dict.fromkeys(passages(cluster)):
        if len("\n".join((*kept, line))) > characters_max:
            break
        kept.append(line)
    return "\n".join(kept)


def name(cluster: Cluster) -> str:
    """By rule: the words that most of its situations share, in the order of the first one."""
    counts = Counter(t for e in cluster for t in set(content_terms(e.context)))
    order = list(dict.fromkeys(content_terms(cluster[0].context)))
    shared = [term for term in order if counts[term] > 1][:_WORDS_OF_A_NAME]
    return " ".join((cluster[0].operation, *shared))
