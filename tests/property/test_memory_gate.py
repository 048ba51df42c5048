"""The gate is monotone: what is shown and fits better makes the search surer, what is not shown makes it less sure."""

from __future__ import annotations

from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from memory.recall.gate import certainty
from memory.recall.hybrid import Candidate
from memory.recall.ranking import shares
from memory.values import Node, NodeId, NodeKind, Role

SCALE = 0.85
RANKS = st.lists(st.floats(-30, 60), min_size=1, max_size=40)


def chance(ranks: list[float], shown: int, known: int) -> float:
    """Of `ranks`, the first are shown, the next are candidates, the rest is beyond."""
    chances = shares(dict(enumerate(ranks)), SCALE)
    found = [_candidate(at, chances[at]) for at in range(min(known, len(ranks)))]
    beyond = max(0.0, 1.0 - sum(c.share for c in found))
    return certainty(found[:shown], found[shown:], beyond=beyond)


def _candidate(at: int, share: float) -> Candidate:
    node = Node(
        id=NodeId(str(at)),
        seq=at + 1,
        kind=NodeKind.NOTE,
        role=Role.NONE,
        content="",
        created_at_ms=0,
    )
    return Candidate(
        node=node, score=1.0, similarity=None, lexical=None, own=frozenset(), share=share
    )


@given(RANKS, st.integers(0, 40), st.integers(1, 40), st.integers(0, 39), st.floats(0, 20))
def test_it_is_monotone(ranks, shown, known, at, more):
    at %= len(ranks)
    before = chance(ranks, shown, known)
    better = [rank + more * (n == at) for n, rank in enumerate(ranks)]
    after = chance(better, shown, known)
    assert 0.0 <= before <= 1.0 + 1e-9
    if at < min(shown, known):
        assert after >= before - 1e-9
    else:
        assert after <= before + 1e-9


@given(RANKS, st.integers(1, 40))
def test_nothing_shown_is_never_enough_and_everything_shown_always_is(ranks, known):
    assert chance(ranks, 0, known) == 0.0
    assert chance(ranks, len(ranks), len(ranks)) > 1 - 1e-9


@given(RANKS)
def test_shares_are_a_distribution_in_the_order_of_ranks(ranks):
    found = shares(dict(enumerate(ranks)), SCALE)
    assert abs(sum(found.values()) - 1) < 1e-9
    by_rank = sorted(found, key=lambda at: ranks[at])
    assert all(found[a] <= found[b] + 1e-12 for a, b in pairwise(by_rank))


def test_an_empty_pool_has_no_shares():
    assert shares({}, SCALE) == {}
