"""The executor `finish`: ends the turn with a summary, which becomes the answer that the user reads."""

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


class Finish:
    """Implements `Executor`. The result's text is the summary, as it stands."""

    name = "finish"
    description = "Ends the work when it is done."
    parameters: Mapping[str, Parameter] = {
        "summary": Parameter(
            description="the answer, or what was done and how it was checked",
            kind=ParameterKind.TEXT,
        )
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
        summary = arguments.get("summary", "").strip()
        if not summary:
            return CallFailed("summary is empty; say what was done", Reason.ARGUMENTS).result()
        return Plan(detail={"summary": summary})

    async def run(
        self,
        plan: Plan,
        context: CallContext,  # noqa: ARG002 - the protocol's
    ) -> ExecutorResult:
        """The summary."""
        summary = plan.detail["summary"]
        return ExecutorResult(ok=True, text=summary, summary=summary.split("\n", 1)[0])
