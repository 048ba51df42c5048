"""A fact told in one process is known in the next one, and the answer says which memory it used."""

from __future__ import annotations

from pathlib import Path

import pytest

from growbox_app.clock import SystemClock
from growbox_app.models.calibration import embedder_epoch
from memory.config import MemoryConfig
from memory.engine import MemoryEngine
from memory.events import Event
from memory.values import NodeDraft, NodeKind, Role
from tests.e2e.program import ask, use_light_model

pytestmark = pytest.mark.model

TOPICS_EN = (
    "the parser",
    "our release",
    "the login page",
    "CI",
    "the cache",
    "unit tests",
    "logging",
)
TOPICS_ZH = ("解析器", "发布流程", "登录页面", "持续集成", "缓存", "单元测试", "日志")
EVENTS_EN = ("was refactored", "broke on Friday", "needs a review", "got two times faster")
EVENTS_ZH = ("重构过了", "周五坏了", "需要评审", "快了一倍")


class Deaf:
    def emit(self, event: Event, /) -> None:
        """Nobody listens."""


def store_unrelated(data: Path, count: int) -> None:
    """Writes memories that have nothing to do with databases."""
    engine = MemoryEngine.open(
        data, config=MemoryConfig(), clock=SystemClock(), sink=Deaf(), embedder=embedder_epoch()
    )
    try:
        for number in range(count):
            topics, events = (TOPICS_EN, EVENTS_EN) if number % 2 else (TOPICS_ZH, EVENTS_ZH)
            topic, event = topics[number % 7], events[number % 4]
            text = (
                f"{topic} {event} ({number})" if number % 2 else f"{topic}{event}，第 {number} 条"
            )
            engine.record(NodeDraft(kind=NodeKind.NOTE, role=Role.USER, content=text))
    finally:
        engine.close()


@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("我最喜欢的数据库是 DuckDB，请记住", "我喜欢哪个数据库？"),
        (
            "My favourite database is DuckDB, please remember that.",
            "Which database do I like best?",
        ),
    ],
    ids=["zh", "en"],
)
def test_a_fact_is_known_after_a_restart_among_200_other_memories(
    fact: str, question: str, tmp_path: Path
) -> None:
    data = tmp_path / "数据 data"
    use_light_model(data)
    store_unrelated(data, 200)
    told = ask(data, fact)
    assert told["status"] == "complete"
    asked = ask(data, question)
    assert asked["status"] == "complete"
    assert asked["conversation"] != told["conversation"]
    assert "DuckDB" in asked["answer"]
    found = [memory for memory in asked["memories"] if "DuckDB" in memory["text"]]
    assert found, asked["memories"]
    assert found[0]["way"] in {"rag", "pointer", "scan"}
    assert found[0] == asked["memories"][0]


def test_continue_goes_on_in_the_same_conversation_and_reuses_its_context(tmp_path: Path) -> None:
    use_light_model(tmp_path)
    first = ask(tmp_path, "Name one prime number.")
    second = ask(tmp_path, "Another one, please.", "--continue")
    assert second["conversation"] == first["conversation"]
    assert second["stats"]["reused_tokens"] >= first["stats"]["prompt_tokens"]


@pytest.mark.parametrize("text", ["", "   ", "？！…", "->"])
def test_a_question_without_words_gets_a_sentence(text: str, tmp_path: Path) -> None:
    use_light_model(tmp_path)
    report = ask(tmp_path, text)
    assert report["exit"] == 1
    assert report["problem"]["code"] == "empty_question"
    assert len(report["stderr"].split()) > 3
