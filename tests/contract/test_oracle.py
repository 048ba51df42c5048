"""The oracle over the real supervisor and process, with the scripted backend: what memory is told, and what an outage says."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from growbox_app.engine.supervisor import EngineSupervisor, LoadSpec
from growbox_app.oracle import EngineOracle, judge_skills
from growbox_app.text import LANGUAGES
from memory.requests import NeedVerdicts, Verdict
from memory.values import NodeId
from tests.fakes import scripted_engine
from tests.fakes.clock import FakeClock

QUERY = "Which database did Anna choose?"
RIGHT = "Anna did choose a database which is DuckDB."
WRONG = "The heron stood in the rain."
FILLER = "The heron stood in the rain. " * 30


def run(tmp_path: Path, body: Callable[[EngineSupervisor, EngineOracle], Awaitable[None]]) -> None:
    async def main() -> None:
        engine = EngineSupervisor(
            target=scripted_engine.run,
            clock=FakeClock(),
            variant_file=tmp_path / "variant.json",
            on_status=lambda: None,
            needs_variant=False,
        )
        spec = LoadSpec(
            model_id="scripted",
            model_name="scripted",
            chat_path=tmp_path / "chat",
            chat_sha256="0" * 64,
            embed_path=tmp_path / "embed",
            context_tokens=2048,
            threads=1,
        )
        try:
            engine.use(spec)
            await engine.ready()
            await body(engine, EngineOracle(engine))
        finally:
            await engine.close()

    asyncio.run(main())


def need(*texts: str, query: str = QUERY) -> NeedVerdicts:
    ids = (NodeId(f"{number:032x}") for number in range(len(texts)))
    return NeedVerdicts(query=query, candidates=tuple(zip(ids, texts, strict=True)))


def test_each_candidate_has_its_verdict(tmp_path: Path) -> None:
    async def body(_engine: EngineSupervisor, oracle: EngineOracle) -> None:
        found = await oracle.judge(need(WRONG, RIGHT, WRONG))
        assert found is not None
        assert found.verdicts[1] is Verdict.YES
        assert found.verdicts[0] is found.verdicts[2] is not Verdict.YES
        assert not found.trusted

    run(tmp_path, body)


def test_a_long_candidate_is_read_to_its_end(tmp_path: Path) -> None:
    async def body(_engine: EngineSupervisor, oracle: EngineOracle) -> None:
        found = await oracle.judge(need(FILLER + RIGHT, FILLER))
        assert found is not None
        assert found.verdicts[0] is Verdict.YES
        assert found.verdicts[1] is not Verdict.YES

    run(tmp_path, body)


def test_who_judges_is_known_without_candidates_and_by_language(tmp_path: Path) -> None:
    async def body(_engine: EngineSupervisor, oracle: EngineOracle) -> None:
        asked = await oracle.judge(need())
        judged = await oracle.judge(need(RIGHT))
        chinese = await oracle.judge(need(query="哪个数据库？"))
        assert asked is not None
        assert judged is not None
        assert chinese is not None
        assert asked.verdicts == ()
        assert asked.judge == judged.judge != chinese.judge

    run(tmp_path, body)


def test_a_blank_candidate_is_left_open(tmp_path: Path) -> None:
    async def body(_engine: EngineSupervisor, oracle: EngineOracle) -> None:
        found = await oracle.judge(need(" \n", RIGHT))
        assert found is not None
        assert found.verdicts == (Verdict.UNKNOWN, Verdict.YES)

    run(tmp_path, body)


def test_an_engine_that_is_out_says_nothing(tmp_path: Path) -> None:
    async def body(engine: EngineSupervisor, oracle: EngineOracle) -> None:
        await engine.close()
        assert await oracle.judge(need(RIGHT)) is None
        assert await oracle.judge(need()) is None

    run(tmp_path, body)


def test_a_question_beyond_every_limit_is_no_fault(tmp_path: Path) -> None:
    async def body(_engine: EngineSupervisor, oracle: EngineOracle) -> None:
        found = await oracle.judge(need(RIGHT, query="why? " * 5000))
        assert found is not None
        assert len(found.verdicts) == 1

    run(tmp_path, body)


@pytest.mark.parametrize("language", LANGUAGES)
def test_the_window_learns_that_nobody_measured_this_model(tmp_path: Path, language: str) -> None:
    async def body(engine: EngineSupervisor, _oracle: EngineOracle) -> None:
        assert engine.loaded is not None
        skill = {it.language: it for it in judge_skills(engine.loaded)}[language]
        assert skill.auc is None
        assert not skill.trusted

    run(tmp_path, body)
