"""The executor `ask_user`: ends the turn with a question, which becomes the answer that the user reads."""

from __future__ import annotations

from collections.abc import Mapping

from growbox_app.executors.answers import CallFailed, Reason
from growbox_app.executors.base import (
    CORE_WINDOW_MIN,
    CallContext,
    ExecutorResult,
    Parameter,
    ParameterKind,
    Plan,
    Risk,
)


class AskUser:
    """Implements `Executor`. The result's text is the question, as it stands."""

    name = "ask_user"
    description = "Asks the user a question and waits for the answer."
    parameters: Mapping[str, Parameter] = {
        "question": Parameter(description="what only the user knows", kind=ParameterKind.TEXT)
    }
    risk = Risk.SAFE
    window_min = CORE_WINDOW_MIN
    ends_turn = True

    async def plan(
        self,
        arguments: Mapping[str, str],
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> Plan | ExecutorResult:
        """Touches nothing."""
        question = arguments.get("question", "").strip()
        if not question:
            return CallFailed("question is empty", Reason.ARGUMENTS).result()
        return Plan(detail={"question": question})

    async def run(
        self,
        plan: Plan,
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> ExecutorResult:
        """The question."""
        question = plan.detail["question"]
        return ExecutorResult(ok=True, text=question, summary=question.split("\n", 1)[0])
