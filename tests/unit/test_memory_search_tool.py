"""The model's own search of the memory: what kinds and times it may ask for, and that they reach recall."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from growbox_app.api import AskRequest, ToolCalled
from growbox_app.assistant import GrowBox
from growbox_app.executors.base import CallContext, ExecutorResult, Plan
from growbox_app.executors.memory_search import MemorySearch
from memory.recall.dates import period
from memory.values import ConversationId
from tests.fakes.application import ask, run_application, scripted

NOW_MS = 1_762_180_920_000
SCENE = CallContext(
    conversation_id=ConversationId("c"), project_id=None, exclude=frozenset(), resident=frozenset()
)


def planned(**arguments: str) -> Plan | ExecutorResult:
    tool = MemorySearch(None, paused=lambda: False, now_ms=lambda: NOW_MS)  # type: ignore[arg-type]
    return asyncio.run(tool.plan({"query": "the index"} | arguments, SCENE))


def test_dates_in_words_bound_the_search() -> None:
    plan = planned(since="last week", until="昨天")
    assert isinstance(plan, Plan)
    week, yesterday = period("last week", NOW_MS), period("昨天", NOW_MS)
    assert week is not None
    assert yesterday is not None
    assert plan.detail["since"] == str(week.since_ms)
    assert plan.detail["until"] == str(yesterday.until_ms)


@pytest.mark.parametrize(
    "arguments", [{"since": "whenever"}, {"until": "next year"}, {"kind": "dream"}]
)
def test_what_is_not_understood_is_said_with_what_would_be(arguments: dict[str, str]) -> None:
    result = planned(**arguments)
    assert isinstance(result, ExecutorResult)
    assert not result.ok
    assert next(iter(arguments)) in result.text


def test_empty_arguments_bound_nothing() -> None:
    plan = planned(kind=" ", since="", until=" ")
    assert isinstance(plan, Plan)
    assert plan.detail == {"query": "the index", "kind": ""}


def test_a_kind_and_a_time_reach_recall(tmp_path: Path) -> None:
    async def body(app: GrowBox) -> None:
        await ask(app, "The quokka of Rottnest eats green leaves at dawn")
        await app.attach(name="quokka.txt", text="Quokka manual: feed leaves at dawn, never bread.")

        async def search(arguments: str) -> str:
            wish = f'call:{{"name": "memory_search", "arguments": {{{arguments}}}}}'
            events = [event async for event in app.ask(AskRequest(text=wish))]
            call = next(event for event in events if isinstance(event, ToolCalled))
            assert call.ok
            return call.result

        # The turn's own recall is off: what it brings is not brought again.
        query = '"query": "quokka leaves dawn"'
        assert await search(f'{query}, "kind": "document"') == "1 memory found"
        assert await search(f'{query}, "kind": "note"') == "nothing more found"
        assert await search(f'{query}, "until": "2 years ago"') == "nothing more found"

    run_application(
        lambda: scripted(tmp_path), body, {"models.context_tokens": 8192, "memory.pages_max": 0}
    )
