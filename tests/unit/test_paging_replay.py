"""The recorded sessions and their accounting: what the paging benchmark's tokens are worth."""

from __future__ import annotations

from dataclasses import asdict

import pytest

from memory.values import Block, BlockKind, Layout, NodeId
from tests.benchmarks.paging_replay import Cache, Costs, replay
from tests.benchmarks.paging_sessions import LANGUAGES, Session, compose, load, rendered

COUNTED = {"question_tokens", "answer_tokens", "memory_tokens", "system_tokens"}


def without_counts(session: Session) -> object:
    table = asdict(session)
    rows = [*table["turns"], *table["notes"], table]
    for row in rows:
        for name in COUNTED & set(row):
            del row[name]
    return table


def block(number: int, tokens: int = 10) -> Block:
    return Block(
        id=number,
        turn=number,
        kind=BlockKind.USER,
        node_id=NodeId(f"n{number}"),
        text="",
        tokens=tokens,
        loaded_at_ms=0,
    )


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_recorded_session_is_what_its_words_make(language: str) -> None:
    session = load(language)
    assert without_counts(session) == without_counts(compose(language))
    assert len(session.turns) == 60
    assert len(rendered(session)) == 3 * 60 + len(session.notes)
    assert all(turn.question_tokens > 10 and turn.answer_tokens > 50 for turn in session.turns)
    for number, turn in enumerate(session.turns):
        assert all(-len(session.notes) <= page < number for page in turn.pages)


def test_the_cache_reuses_the_common_prefix_as_far_as_it_is_valid() -> None:
    cache = Cache()
    cache.hold([block(1), block(2), block(3)], 25)
    assert cache.common([block(1), block(2), block(3), block(4)]) == 25
    assert cache.common([block(1), block(3)]) == 10
    assert cache.common([block(2)]) == 0


@pytest.mark.parametrize("layout", Layout)
@pytest.mark.parametrize("window", [2048, 4096, 8192])
def test_every_token_is_accounted_for_once(layout: Layout, window: int) -> None:
    for language in LANGUAGES:
        session = load(language)
        costs = replay([session], layout=layout, window=window)
        assert costs.turns == 60
        system = 60 * session.system_tokens
        assert costs.sent == system + costs.reused + costs.fresh + costs.foreground
        assert costs.foreground >= 0
        assert costs.reused <= costs.resident <= costs.left
        assert 0 < costs.paged_in < costs.entered


def test_without_pauses_nothing_is_recomputed_in_them() -> None:
    costs = replay([load("en")], layout=Layout.APPEND_LOG, idle=False)
    assert costs.idle == 0
    assert costs.resident == costs.left
    assert costs.foreground > 0


def test_the_default_policy_is_worth_its_name() -> None:
    sessions = [load(language) for language in LANGUAGES]
    log, ring = (replay(sessions, layout=layout) for layout in Layout)
    assert log.reuse >= 0.95
    assert log.idle_per_pagein <= 3.5
    assert log.foreground_prefill <= ring.foreground_prefill / 2


def test_costs_add_up_and_an_empty_replay_divides_by_nothing() -> None:
    assert replay([], layout=Layout.APPEND_LOG) == Costs()
    assert Costs().reuse == Costs().idle_per_pagein == 0
    assert Costs(reused=1, resident=2) + Costs(reused=1, resident=2) == Costs(reused=2, resident=4)
