"""Answers what memory's generators ask for, by the engine process. An outage is None: unknown, and it teaches nothing."""

from __future__ import annotations

from typing import Literal

from growbox_app.agent import prompts
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineDied
from growbox_app.engine.supervisor import EngineSupervisor
from memory.requests import EmbedKind, Matrix, NeedEmbeddings, NeedVerdicts, Verdict

UNKNOWN_BAND = 1.0
"""Margins (in logits) nearer to zero than this say nothing."""
QUESTIONS = {
    "en": "Does the passage contain the answer to the question? Yes or No.",
    "zh": "这段文字是否包含问题的答案？Yes 或 No。",
}


class EngineOracle:
    """Implements `memory_service.Oracle`."""

    def __init__(self, engine: EngineSupervisor) -> None:
        self._engine = engine

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

    async def judge(self, request: NeedVerdicts) -> tuple[Verdict, ...] | None:
        """See `Oracle.judge`."""
        language = prompts.prompt_language(request.query)
        try:
            client = self._engine.client
            done = await client.request(
                p.Judge(
                    id=client.next_id(),
                    head=prompts.prompt(language, "judge"),
                    query=f"\n\n{request.query}\n\n",
                    candidates=tuple(text for _, text in request.candidates),
                    question=QUESTIONS[language],
                ),
                p.DoneJudge,
            )
        except (EngineDied, p.EngineFault):
            return None
        return tuple(verdict_of(margin) for margin in done.margins)


def verdict_of(margin: float | None) -> Verdict:
    """Yes, no, or unknown in between."""
    if margin is None or abs(margin) < UNKNOWN_BAND:
        return Verdict.UNKNOWN
    return Verdict.YES if margin > 0 else Verdict.NO
