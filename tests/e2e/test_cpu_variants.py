"""The ways a processor can be, each exercised for real: by the machine itself, or by forcing a variant upon it.

Where the hardware lacks what a variant needs, llama.cpp refuses to load it, and that refusal is what the test then sees.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

import pytest

from growbox_app.api import EnginePhase, EngineStatus, ProblemCode
from growbox_app.clock import SystemClock
from growbox_app.engine import canary, entry, native
from growbox_app.engine.supervisor import EngineSupervisor, LoadSpec
from growbox_app.text import tr
from tests.e2e.program import ROOT, ask, environment, use_light_model
from tests.real_models import EMBEDDER, LIGHT, LIGHT_ID
from ui.view_models import wording

pytestmark = pytest.mark.model

WITHOUT_AVX2, AVX512, AMX = "sandybridge", "skylakex", "sapphirerapids"


@pytest.fixture(scope="module")
def ranking() -> list[str]:
    files = native.variant_files()
    assert {WITHOUT_AVX2, native.AVX2_VARIANT, AVX512, AMX} <= set(files)
    return canary.ranked(files)


def test_the_best_variant_that_survives_is_chosen_and_remembered(
    tmp_path: Path, ranking: list[str]
) -> None:
    memory = tmp_path / "variant.json"
    chosen = canary.choose_variant(str(LIGHT), memory=memory, threads=2)
    for better in ranking[: ranking.index(chosen)]:
        died = canary.trial(better, str(LIGHT), threads=2)
        assert not died.survived
        assert died.exit_code != 0
    assert json.loads(memory.read_bytes())["variant"] == chosen
    assert canary.choose_variant(str(LIGHT), memory=memory, threads=2) == chosen


def test_amx_that_is_advertised_and_unusable_is_stepped_over(
    tmp_path: Path, ranking: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    # On a machine without AMX the variant has no score: rank it first anyhow, as a lying processor would.
    monkeypatch.setattr(canary, "ranked", lambda _files: [AMX, native.AVX2_VARIANT])
    chosen = canary.choose_variant(str(LIGHT), memory=tmp_path / "variant.json", threads=2)
    survives = canary.trial(AMX, str(LIGHT), threads=2).survived
    assert chosen == (AMX if survives else native.AVX2_VARIANT)


def loaded_with(variant: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> EngineStatus:
    """The engine's status after loading with a forced variant."""
    monkeypatch.setenv("GROWBOX_CPU_VARIANT", variant)

    async def load() -> EngineStatus:
        changed = asyncio.Event()
        supervisor = EngineSupervisor(
            target=entry.run,
            clock=SystemClock(),
            variant_file=tmp_path / "variant.json",
            on_status=changed.set,
        )
        supervisor.use(
            LoadSpec(
                model_id=LIGHT_ID,
                model_name="light",
                chat_path=LIGHT,
                chat_sha256="0" * 64,
                embed_path=EMBEDDER,
                context_tokens=512,
                threads=2,
            )
        )
        while supervisor.status.phase not in (EnginePhase.READY, EnginePhase.FAILED):
            await changed.wait()
            changed.clear()
        status = supervisor.status
        await supervisor.close()
        return status

    return asyncio.run(load())


@pytest.mark.parametrize("variant", [WITHOUT_AVX2, native.AVX2_VARIANT, AVX512])
def test_a_variant_loads_or_its_refusal_is_said(
    variant: str, ranking: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    status = loaded_with(variant, tmp_path, monkeypatch)
    if variant not in ranking:
        assert status.problem is not None
        assert status.problem.code is ProblemCode.CPU_UNSUPPORTED
        return
    assert status.phase is EnginePhase.READY
    assert status.cpu_variant == variant
    assert status.slow_processor is (variant == WITHOUT_AVX2)
    assert (tr("processor.slow") in wording.engine(status)) is (variant == WITHOUT_AVX2)


def test_a_processor_without_avx2_answers_and_is_told_why_it_is_slow(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GROWBOX_CPU_VARIANT", WITHOUT_AVX2)
    use_light_model(tmp_path, **{"models.context_tokens": 2048, "models.answer_tokens": 8})
    report = ask(tmp_path, "Say yes.")
    assert report["exit"] == 0
    assert report["answer"]
    done = subprocess.run(
        [sys.executable, "-m", "growbox_app", "doctor", "--json"],
        cwd=ROOT,
        env=environment(tmp_path),
        capture_output=True,
        check=False,
        timeout=240,
    )
    parts = {part["part"]: part for part in json.loads(done.stdout)["parts"]}
    assert done.returncode == 0
    assert parts["processor"]["ok"]
    assert WITHOUT_AVX2 in parts["processor"]["words"]
    assert parts["vectors"]["ok"]
