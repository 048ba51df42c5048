"""A finished turn as the command line prints it: JSON for programs, lines for people."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from growbox_app.agent import prompts
from growbox_app.api import Problem, ProblemCode, TurnFinished, UsedMemory
from growbox_app.problems import sentence
from growbox_app.text import Translator


@dataclass(frozen=True, slots=True, kw_only=True)
class TurnReport:
    """What a program wants to know of a turn. All values are JSON."""

    fields: dict[str, Any]

    @classmethod
    def of(cls, finished: TurnFinished) -> TurnReport:
        """The report of a turn."""
        stats = finished.stats
        problem = finished.problem
        return cls(
            fields={
                "answer": finished.answer.content,
                "status": finished.status.value,
                "conversation": finished.answer.conversation_id,
                "answer_id": finished.answer.id,
                "memories": [_memory(memory) for memory in finished.memories],
                "stats": {
                    "prompt_tokens": stats.prompt_tokens,
                    "reused_tokens": stats.reused_tokens,
                    "answer_tokens": stats.answer_tokens,
                    "prefill_s": round(stats.prefill_s, 4),
                    "decode_s": round(stats.decode_s, 4),
                    "first_token_s": round(stats.first_token_s, 4),
                    "recall_ms": round(stats.recall_ms, 2),
                    "answered_by": stats.answered_by,
                },
                "problem": None if problem is None else problem_fields(problem),
            }
        )

    def as_json(self) -> dict[str, Any]:
        """A JSON object."""
        return self.fields

    def lines(self, translate: Translator) -> list[str]:
        """The lines under an answer: which memories stood before the model, and how they were found."""
        memories = self.fields["memories"]
        if not memories:
            return [translate("cli.no_memories")]
        head = translate("cli.memories", count=len(memories))
        rows = [
            translate(
                "cli.memory", way=m["way"], score=m["score"], time=m["time"], title=m["title"]
            )
            for m in memories
        ]
        return [head, *rows]

    def sentences(self, translate: Translator) -> list[str]:
        """What went wrong, in words; empty when all went well."""
        fields = self.fields["problem"]
        return [sentence(problem_from(fields), translate)] if fields else []


def problem_fields(problem: Problem) -> dict[str, Any]:
    """A problem as JSON."""
    return {"code": problem.code.value, "fields": dict(problem.fields), "detail": problem.detail}


def problem_from(fields: dict[str, Any]) -> Problem:
    """The inverse of `problem_fields`."""
    return Problem(
        code=ProblemCode(fields["code"]), fields=fields["fields"], detail=fields.get("detail", "")
    )


def _memory(memory: UsedMemory) -> dict[str, Any]:
    return {
        "node": memory.node_id,
        "way": memory.way.value,
        "score": round(memory.score, 4),
        "similarity": None if memory.similarity is None else round(memory.similarity, 4),
        "lexical": None if memory.lexical is None else round(memory.lexical, 4),
        "reason": memory.reason,
        "cited": memory.cited,
        "time": prompts.stamp(memory.created_at_ms),
        "title": memory.title,
        "text": memory.excerpt,
    }
