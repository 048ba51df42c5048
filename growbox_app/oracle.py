"""Answers what memory's generators ask for, by the engine process. An outage is None: unknown, and it teaches nothing."""

from __future__ import annotations

from typing import Literal

from growbox_app import judging, writing
from growbox_app.agent import prompts
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient, EngineDied
from growbox_app.engine.supervisor import EngineSupervisor
from growbox_app.mind_face import JudgeSkill
from growbox_app.models.calibration import Calibrate, JudgeCalibration, judge_calibration
from growbox_app.text import LANGUAGES
from memory.requests import (
    EmbedKind,
    Judgement,
    Matrix,
    NeedEmbeddings,
    NeedText,
    NeedVerdicts,
    Verdict,
    Written,
)


class EngineOracle:
    """Implements `memory_service.Oracle`."""

    def __init__(
        self, engine: EngineSupervisor, calibration: Calibrate = judge_calibration
    ) -> None:
        self._engine = engine
        self._calibration = calibration

    async def embed(self, request: NeedEmbeddings) -> Matrix | None:
        """See `Oracle.embed`."""
        try:
            client = self._engine.client
            kind: Literal["query", "passage"] = (
                "query" if request.kind is EmbedKind.QUERY else "passage"
            )
            done = await client.request(
                p.Embed(id=client.next_id(), texts=request.texts, kind=kind), p.DoneEmbed
            )
        except (EngineDied, p.EngineFault):
            return None
        import numpy as np  # not before the window shows

        return np.frombuffer(done.vectors, dtype="<f4").reshape(done.rows, done.dimension)

    async def judge(self, request: NeedVerdicts) -> Judgement | None:
        """See `Oracle.judge`. The judge speaks the question's language."""
        loaded = self._engine.loaded
        if loaded is None:
            return None
        language = prompts.prompt_language(request.query)
        version = judging.judge_prompt(language).version
        calibration = self._calibration(loaded.tokenizer, language, version)
        texts = [text for _, text in request.candidates]
        try:
            verdicts = await _verdicts(self._engine.client, request.query, texts, calibration)
        except (EngineDied, p.EngineFault):
            return None
        return Judgement(
            judge=f"{loaded.tokenizer}-{language}-{version}-{calibration.name}",
            trusted=calibration.trusted,
            verdicts=verdicts,
        )

    async def write(self, request: NeedText) -> Written | None:
        """See `Oracle.write`. The writer speaks the language of what it reads; nonsense is no text."""
        loaded = self._engine.loaded
        if loaded is None:
            return None
        language = prompts.prompt_language(" ".join(request.passages))
        try:
            client = self._engine.client
            asked = writing.request(client.next_id(), language, request)
            done = await client.request(asked, p.DoneWrite)
        except (EngineDied, p.EngineFault):
            return None
        values = writing.values_of(done.text, request.fields) if done.complete else None
        if values is None:
            return None
        version = writing.writing_prompt(language).version
        return Written(writer=f"{loaded.tokenizer}-{language}-{version}", values=values)


async def _verdicts(
    client: EngineClient, query: str, texts: list[str], calibration: JudgeCalibration
) -> tuple[Verdict, ...]:
    """One verdict per text. The first windows of all go together, then the second ones of those without a yes, and so on."""
    language = prompts.prompt_language(query)
    windows = [judging.windows_of(text) for text in texts]
    chances: list[list[float | None]] = [[] for _ in texts]
    for rank in range(max(map(len, windows), default=0)):
        open_ones = [
            at
            for at, pieces in enumerate(windows)
            if rank < len(pieces)
            and judging.verdict_of(chances[at], calibration) is not Verdict.YES
        ]
        pieces = [windows[at][rank] for at in open_ones]
        asked = judging.request(client.next_id(), language, query, pieces)
        done = await client.request(asked, p.DoneJudge)
        for at, reading in zip(open_ones, done.readings, strict=True):
            chances[at].append(
                None
                if reading is None
                else judging.chance(judging.signals(reading, done.blank), calibration)
            )
    return tuple(judging.verdict_of(found, calibration) for found in chances)


def judge_skills(
    loaded: p.DoneLoad, calibration: Calibrate = judge_calibration
) -> tuple[JudgeSkill, ...]:
    """How well the loaded model judges, by language, for the window."""
    skills = []
    for language in LANGUAGES:
        version = judging.judge_prompt(language).version
        found = calibration(loaded.tokenizer, language, version)
        skills.append(
            JudgeSkill(
                language=language,
                auc=found.auc,
                auc_low=found.auc_low,
                auc_high=found.auc_high,
                trusted=found.trusted,
            )
        )
    return tuple(skills)
