"""The agent's hands: one call from its plan to its end – judged, asked about, saved against, run and written down.

Every call of every executor takes this way, and there is no other. Invariants: nothing runs that the policy denies; what the
policy wants asked runs only with the user's yes, and no longer than his yes is old (the plan is judged again behind it); before
anything that may change the project there is a checkpoint, and before anything acts at all its beginning is stored with the answer;
every decision is in the audit log. Event-loop thread; the work itself is the executors'. A crash leaves a checkpoint, with the stored
beginning that leads to it, and, at most, half of what a command had done.

Source: design 5.1 and 5.4.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from dataclasses import dataclass, field, replace

from growbox_app.agent.aftermath import Aftermath
from growbox_app.agent.consent import (
    EDITED_COMMAND,
    hunks_for,
    needs_asking_again,
    parts_for,
    taken,
)
from growbox_app.agent.outcomes import Outcomes
from growbox_app.agent.prompts import prompt_language
from growbox_app.agent.protocol import ToolCall
from growbox_app.api import (
    ToolCalled,
    ToolStarted,
    TurnEvent,
)
from growbox_app.approval_face import (
    Approval,
    ApprovalAnswer,
    ApprovalAsked,
    ApprovalScope,
)
from growbox_app.approvals import Approvals
from growbox_app.audit_log import AuditLog, Decided
from growbox_app.checkpoints import Checkpoints
from growbox_app.executors.base import CallContext, ExecutorResult, Plan, Risk
from growbox_app.executors.registry import Registry
from growbox_app.grants import GrantBook
from growbox_app.routing.lessons import Counsel, Lessons, Situation, shape_of
from growbox_app.safety.policy import decide
from growbox_app.safety.values import Decision, PlannedCall, Rules, Verdict
from growbox_app.shadow.values import CheckpointTrouble
from growbox_app.text import Translator, tr
from memory.ports import Clock
from memory.values import NodeId

TARGET_CHARACTERS_MAX = 200
WHOLE = "whole"
"""In a plan's detail: all that the user should see of a call that has neither command nor changes."""
COMMAND = "command"
"""The argument of executors that run one; what the user may write anew."""
DENIED = (
    "Not allowed: {reason}. Do not try this again; go on in another way, or say that you cannot."
)
NOT_TRIED = "Not run. {warning} Do it in another way, or say that you cannot."
REFUSED = "The user said no. {word}"
NO_CHECKPOINT = "Not run: the project could not be saved first ({reason})."


@dataclass(frozen=True, slots=True, kw_only=True)
class HandParts:
    """What the hands work with. `rules` gives the user's rules for a scene, grants left out."""

    approvals: Approvals
    checkpoints: Checkpoints
    aftermath: Aftermath
    audit: AuditLog
    grants: GrantBook
    lessons: Lessons
    clock: Clock
    rules: Callable[[CallContext], Rules]
    outcomes: Outcomes


@dataclass(slots=True, kw_only=True)
class Deed:
    """One call on its way. `result` is set at its end. `told`: how it differs, by the user's hand, from what the model wished.

    `edited`: the user wrote a part of it himself. `ran`: it was really made, to its end. `store` makes its beginning durable, as a call
    that was cut off, before it acts.
    """

    id: int
    call: ToolCall
    registry: Registry
    scene: CallContext
    answer_id: NodeId
    store: Callable[[ToolCalled], Awaitable[None]]
    question: str = ""
    question_id: NodeId | None = None
    plan: Plan = field(default_factory=Plan)
    ran: bool = False
    told: str = ""
    edited: bool = False
    checkpoint: str = ""
    result: ExecutorResult | None = None

    @property
    def arguments(self) -> str:
        """One line for the reader."""
        shown = ", ".join(" ".join(value.split()) for value in self.call.arguments.values())
        return shown[:TARGET_CHARACTERS_MAX]

    def begun(self) -> ToolCalled:
        """How it will have ended if GrowBox does while it runs."""
        return ToolCalled(
            name=self.call.name,
            arguments=self.arguments,
            result="",
            ok=False,
            call_id=self.id,
            checkpoint=self.checkpoint,
            edited=self.edited,
            cut_off="exit",
        )


class Hands:
    """Runs calls, one at a time."""

    def __init__(self, parts: HandParts) -> None:
        self._parts = parts

    async def perform(self, deed: Deed) -> AsyncGenerator[TurnEvent, None]:
        """Takes a call to its end; `deed.result` is what the model gets."""
        started = self._parts.clock.monotonic_s()
        yield ToolStarted(call_id=deed.id, name=deed.call.name, arguments=deed.arguments)
        planned = await deed.registry.plan(deed.call.name, deed.call.arguments, deed.scene)
        if isinstance(planned, ExecutorResult):
            deed.result = planned
        else:
            deed.plan = planned
            deed.result = self._advised_against(deed)
            if deed.result is None:
                async for event in self._judged(deed):
                    yield event
        result = deed.result
        assert result is not None
        if deed.ran:
            result = deed.result = await self._learned(deed, result)
        if deed.told and result.ok:
            result = deed.result = replace(result, text=f"{deed.told}\n{result.text}")
        yield ToolCalled(
            name=deed.call.name,
            arguments=deed.arguments,
            result=result.summary,
            ok=result.ok,
            call_id=deed.id,
            output=result.text,
            seconds=self._parts.clock.monotonic_s() - started,
            checkpoint=deed.checkpoint,
            paths=tuple(str(change.path) for change in deed.plan.changes) if result.ok else (),
            edited=deed.edited,
        )

    async def _judged(self, deed: Deed) -> AsyncGenerator[TurnEvent, None]:
        decision = await self._decide(deed)
        while decision.verdict is Verdict.ASK:
            approval = await self._approval(deed, decision)
            yield ApprovalAsked(approval=approval)
            outcome = await self._parts.approvals.wait(approval.id, deed.scene.cancelled)
            answer = outcome.answer
            yield approval.ended(outcome.by, allowed=answer.allowed)
            await self._note(deed, decision, by=outcome.by, allowed=answer.allowed)
            if not answer.allowed:
                deed.result = _refused(answer, by=outcome.by)
                return
            deed.result = await self._take_answer(deed, decision, answer)
            if deed.result is not None:
                return
            asked = decision
            decision = await self._decide(deed)  # the world may have moved while the user thought
            if answer.edits and needs_asking_again(asked, decision):
                continue
            if decision.verdict is not Verdict.DENY:
                if answer.edits:  # what is done is not what was noted above
                    await self._note(deed, decision, by=outcome.by, allowed=True)
                await self._run(deed, decision)
                return
        await self._note(deed, decision, by="policy", allowed=decision.verdict is Verdict.ALLOW)
        if decision.verdict is Verdict.DENY:
            deed.result = _denied(decision, deed.question)
            return
        await self._run(deed, decision)

    # -- what earlier calls taught ------------------------------------------------------------------
    def _advised_against(self, deed: Deed) -> ExecutorResult | None:
        """The refusal of a call that has kept failing here; None: it may be tried."""
        situation = _situation(deed)
        advice = self._parts.lessons.advise(situation)
        if advice.counsel is not Counsel.VETO:
            return None
        summary = tr("agent.advised_against", what=situation.shape, failed=advice.failed)
        text = NOT_TRIED.format(warning=advice.warning(situation.shape))
        return ExecutorResult(ok=False, text=text, summary=summary)

    async def _learned(self, deed: Deed, result: ExecutorResult) -> ExecutorResult:
        """Keeps how a call ended; a failure of what often fails is told with that."""
        situation = _situation(deed)
        self._parts.lessons.learn(situation, result)
        if result.teaches and _acts(deed):
            ids = tuple(i for i in (deed.question_id, deed.answer_id) if i is not None)
            await self._parts.outcomes.keep(situation, deed.call.arguments, result, ids)
        advice = self._parts.lessons.advise(situation)
        if result.ok or not result.teaches or advice.counsel not in (Counsel.WARN, Counsel.VETO):
            return result
        return replace(result, text=f"{result.text}\n{advice.warning(situation.shape)}")

    async def _decide(self, deed: Deed) -> Decision:
        """Off the loop: a judgement may look at the disk."""
        executor = deed.registry.get(deed.call.name)
        risk = executor.risk if executor is not None else Risk.UNKNOWN
        planned = PlannedCall(executor=deed.call.name, risk=risk, plan=deed.plan)
        rules = self._parts.rules(deed.scene)
        grants = self._parts.grants.of(deed.scene.project_id)
        rules = replace(rules, confined=bool(getattr(executor, "is_confined", False)))
        return await asyncio.to_thread(decide, planned, rules.granting(grants))

    async def _run(self, deed: Deed, decision: Decision) -> None:
        root = deed.scene.workspace.root
        touches = bool(deed.plan.changes or deed.plan.command)
        if touches and decision.risk is not Risk.SAFE and root is not None:
            try:
                checkpoint = await self._parts.checkpoints.take(
                    root,
                    f"{deed.call.name} {deed.arguments}",
                    deed.answer_id,
                    paths=decision.changes,
                )
            except CheckpointTrouble as trouble:
                text = NO_CHECKPOINT.format(reason=trouble)
                summary = tr("agent.no_checkpoint")
                deed.result = ExecutorResult(ok=False, text=text, summary=summary)
                return
            deed.checkpoint = checkpoint.id
        newest = self._parts.aftermath.newest()
        try:
            if decision.risk is not Risk.SAFE and _acts(deed):
                await deed.store(deed.begun())
            deed.result = await deed.registry.run(deed.call.name, deed.plan, deed.scene)
            deed.ran = not deed.scene.cancelled.is_set()
        finally:
            if deed.checkpoint:
                await self._parts.checkpoints.finish(deed.checkpoint)
                self._parts.aftermath.follow(deed.checkpoint, since=newest)

    # -- the question -----------------------------------------------------------------------------
    async def _approval(self, deed: Deed, decision: Decision) -> Approval:
        plan = deed.plan
        scopes = [ApprovalScope.ONCE]
        if deed.scene.project_id is not None:
            scopes += [ApprovalScope.PATH] if decision.path_grants else []
            scopes += [ApprovalScope.PROJECT] if decision.project_grants else []
        paths = dict.fromkeys(str(p) for p in (*(c.path for c in plan.changes), *plan.reads))
        hunks = await asyncio.to_thread(hunks_for, plan.changes)
        return Approval(
            id=self._parts.approvals.open(),
            call_id=deed.id,
            executor=deed.call.name,
            arguments=deed.arguments,
            risk=decision.risk.value,
            reason=decision.reason,
            details=decision.details,
            command=plan.command,
            whole=plan.detail.get(WHOLE, ""),
            cwd=str(plan.cwd or ""),
            paths=tuple(paths),
            hunks=hunks,
            scopes=tuple(scopes),
            parts=parts_for(decision),
            editable=bool(plan.command) and COMMAND in deed.call.arguments,
            edited=deed.edited,
        )

    async def _take_answer(
        self, deed: Deed, decision: Decision, answer: ApprovalAnswer
    ) -> ExecutorResult | None:
        """Makes of the plan what the user wants; a result when nothing of it can be done."""
        deed.edited = deed.edited or answer.edits
        if answer.command and COMMAND in deed.call.arguments:
            return await self._take_command(deed, answer.command)
        wanted = await asyncio.to_thread(taken, deed.plan, answer, deed.scene.workspace)
        if wanted.is_nothing:
            return _refused(answer, by="user")
        deed.plan, deed.told = wanted.plan, wanted.told or deed.told
        project_id = None if answer.edits else deed.scene.project_id
        if project_id is not None and answer.scope is not ApprovalScope.ONCE:
            by_path = answer.scope is ApprovalScope.PATH
            grants = decision.path_grants if by_path else decision.project_grants
            await asyncio.to_thread(self._parts.grants.add, project_id, grants)
        return None

    async def _take_command(self, deed: Deed, command: str) -> ExecutorResult | None:
        """Plans the user's own command in the place of the model's."""
        arguments = {**deed.call.arguments, COMMAND: command}
        planned = await deed.registry.plan(deed.call.name, arguments, deed.scene)
        if isinstance(planned, ExecutorResult):
            return planned
        deed.call = replace(deed.call, arguments=arguments)
        deed.plan, deed.told = planned, EDITED_COMMAND.format(command=command)
        return None

    async def _note(self, deed: Deed, decision: Decision, *, by: str, allowed: bool) -> None:
        plan = deed.plan
        decided = Decided(
            executor=deed.call.name,
            targets=(*(str(c.path) for c in plan.changes), *map(str, plan.reads), *plan.hosts),
            command=plan.command,
            verdict=decision.verdict.value,
            reason=decision.reason,
            by=by,
            allowed=allowed,
            mode=self._parts.rules(deed.scene).mode.value,
            conversation=deed.scene.conversation_id,
        )
        await asyncio.to_thread(self._parts.audit.append, decided)


def _acts(deed: Deed) -> bool:
    """Whether a call did something in the world, and did not only look: nothing is to be learned from each file that was read."""
    return bool(deed.plan.command or deed.plan.changes) or "__" in deed.call.name


def _situation(deed: Deed) -> Situation:
    return Situation(
        tool=deed.call.name,
        shape=shape_of(deed.call.name, deed.plan),
        project=deed.scene.project_id or "",
        conversation=deed.scene.conversation_id,
        question=deed.question,
    )


def _denied(decision: Decision, question: str) -> ExecutorResult:
    """The card speaks the window's language; what the model reads, and answers with, that of the question."""
    key = f"safety.reason.{decision.reason}"
    said = Translator(prompt_language(question))(key, **decision.details).rstrip(".。")
    text = DENIED.format(reason=said)
    return ExecutorResult(ok=False, text=text, summary=tr(key, **decision.details))


def _refused(answer: ApprovalAnswer, *, by: str) -> ExecutorResult:
    """Not done: the user said no, stopped the turn, or did not answer in time."""
    text = REFUSED.format(word=answer.word.strip()).strip()
    return ExecutorResult(ok=False, text=text, summary=tr(f"agent.refused_by.{by}"))
