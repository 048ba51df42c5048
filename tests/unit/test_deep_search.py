"""The search of the past for an answer, in the whole application over a scripted engine whose gate lets nothing through."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path

import pytest

from growbox_app.agent.deep_search import cites_the_past
from growbox_app.api import (
    AppEvent,
    AskRequest,
    DeepSearch,
    DeepSearchChanged,
    DeepSearchState,
    TurnFinished,
)
from growbox_app.assistant import GrowBox
from memory.config import MemoryConfig, RecallConfig
from memory.values import NodeId, Way
from tests.fakes.application import Body, ask, run_application, scripted

SHUT = MemoryConfig(recall=RecallConfig(gate=1.01, scan_rows_max=0))
FACT = "the violet door opens with pattern nine"
ASKED = "what opens the violet door"


def run(tmp_path: Path, body: Body, **settings: object) -> None:
    make = lambda: scripted(tmp_path, config=SHUT, idle_s=0.0, saving_power=lambda: False)  # noqa: E731
    run_application(make, body, {key.replace("__", "."): v for key, v in settings.items()})


class Watch:
    """What the application says about its searches."""

    def __init__(self, app: GrowBox) -> None:
        self.seen: list[DeepSearch] = []
        self._changed = asyncio.Event()
        app.subscribe(self._listen)

    def _listen(self, event: AppEvent) -> None:
        if isinstance(event, DeepSearchChanged):
            self.seen.append(event.search)
            self._changed.set()

    async def until(self, answer_id: NodeId, states: Sequence[DeepSearchState]) -> DeepSearch:
        while True:
            for search in self.seen:
                if search.answer_id == answer_id and search.state in states:
                    return search
            self._changed.clear()
            await self._changed.wait()


async def again(app: GrowBox, answer_id: NodeId) -> TurnFinished:
    events = [event async for event in app.answer_again(answer_id)]
    assert isinstance(events[-1], TurnFinished)
    return events[-1]


@pytest.mark.parametrize(
    ("text", "cites"),
    [
        ("What did we decide about the parser?", True),
        ("do you remember my editor", True),
        ("which port did I mention last week", True),
        ("之前说的端口是多少", True),
        ("上次我们怎么修的", True),
        ("write quicksort", False),
        ("用 Python 写快速排序", False),
        ("explain this previousness check", False),
        ("My favourite database is DuckDB, please remember that.", False),
        ("We picked DuckDB for the index last week.", False),
        ("请记得我之前用的是 DuckDB。", False),
        ("Remind me what we decided about the index.", True),
        ("请告诉我上次选的数据库", True),
    ],
)
def test_what_cites_the_past(text: str, cites: bool) -> None:
    assert cites_the_past(text) is cites


def test_a_question_about_the_past_waits_for_a_short_search(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        await ask(app, FACT)
        end = await ask(app, "remember what opens the violet door")
        assert {m.way for m in end.memories} == {Way.ENTRY}
        assert FACT in {m.title for m in end.memories}
        search = app.deep_search_of(end.answer)
        assert search is not None
        assert search.state is DeepSearchState.USED

    run(tmp_path, body)


def test_any_other_question_is_answered_first_and_the_find_is_offered(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        watch = Watch(app)
        await ask(app, FACT)
        end = await ask(app, ASKED)
        assert end.memories == ()
        found = await watch.until(end.answer.id, [DeepSearchState.FOUND])
        assert FACT in {m.title for m in found.memories}
        await app.stop_search()
        stored = await app.mind.node(end.answer.id)
        assert stored is not None
        assert app.deep_search_of(stored) == found

        second = await again(app, end.answer.id)

        assert [m.node_id for m in second.memories] == [m.node_id for m in found.memories]
        assert second.answer.conversation_id == end.answer.conversation_id

    run(tmp_path, body)


def test_nothing_is_read_unasked_when_the_user_does_not_want_it(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        watch = Watch(app)
        await ask(app, FACT)
        end = await ask(app, "remember what opens the violet door")
        await app.stop_search()
        assert end.memories == ()
        assert watch.seen == []

    run(tmp_path, body, memory__search_past=False)


def test_a_wrong_answer_is_searched_without_what_it_leant_on(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        watch = Watch(app)
        await ask(app, FACT)
        await ask(app, "the violet door opens since monday")
        first = await ask(app, "remember what opens the violet door")
        leant_on = {m.node_id for m in first.memories}
        assert leant_on

        await app.wrong_answer(first.answer.id)
        ends = [s for s in DeepSearchState if s is not DeepSearchState.RUNNING]
        search = await watch.until(first.answer.id, ends)

        assert search.forced
        assert not leant_on & {m.node_id for m in search.memories}
        hood = await app.mind.neighbourhood(next(iter(leant_on)))
        assert not any(edge.forced for edge in hood.arriving)

    run(tmp_path, body)


def test_a_search_that_was_stopped_goes_on(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        watch = Watch(app)
        for number in range(90):
            await app.attach(name=f"note {number}", text=f"note number {number} about nothing")
        first = await ask(app, "which unheard of riddle do you remember?")
        paused = await watch.until(first.answer.id, [DeepSearchState.PAUSED])
        assert paused.notes_read > 0
        assert paused.back_to_ms is not None

        await app.search_further(first.answer.id)
        done = await watch.until(first.answer.id, [DeepSearchState.NOTHING])

        assert done.notes_read >= 82  # all but what was judged before the scan
        await app.search_further(first.answer.id)  # there is nothing more to read: harmless

    run(tmp_path, body)


def test_what_the_user_cites_stands_in_the_prompt_and_a_jump_is_learned(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        end = await ask(app, FACT)
        assert end.answer.conversation_id is not None
        question = (await app.library.messages(end.answer.conversation_id))[0]
        request = AskRequest(text="what about it", cited=(question.id,))
        events = [event async for event in app.ask(request)]
        last = events[-1]
        assert isinstance(last, TurnFinished)
        assert [(m.node_id, m.way, m.reason) for m in last.memories] == [
            (question.id, Way.JUMP, "cited")
        ]
        hood = await app.mind.neighbourhood(question.id)
        assert any(edge.forced for edge in hood.arriving)

    run(tmp_path, body)
