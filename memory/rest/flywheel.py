"""The flywheel: idle turns of the permanent goals, round-robin.

*Improve* distils a cluster of experiences into a conclusion, *automate* proposes a skill, *test* puts a written conclusion before
the judge with what it rests on – a clear no to all of it takes it back – and a goal of the user's is posed as a question to the
past. Conclusions are nodes of their own kind with provenance; their number is bounded, each experience is in at most one, and
nothing is drawn twice. A writer who is out costs a text made by rule; a judge who is out changes nothing. Source: design 5.5,
G33–G35.
"""

from __future__ import annotations

from typing import Final, Protocol

from memory.recall.evidence import Evidence
from memory.recall.exact_run import Court, Lead, Run, Teacher
from memory.recall.pointer_walk import Question
from memory.requests import NeedText, Operation, TextField, TextPurpose, Verdict, Written
from memory.rest import experience as alike
from memory.rest.experience import Cluster
from memory.rest.rehearse import Rehearser
from memory.rest_values import (
    Cause,
    FlywheelReport,
    Goal,
    GoalKind,
    ProposalState,
    RestOutcome,
    SkillProposal,
)
from memory.storage.experiences import skill_text
from memory.storage.stores import Stores
from memory.text import normalise
from memory.values import ExactQuery, Node, NodeDraft, NodeId, NodeKind, Role

RULE: Final = ""  # the writer of a text that no model wrote
_TESTED: Final = "tested"  # the last conclusion that was put before the judge
_NAME_CHARACTERS: Final = 60


class Recorder(Protocol):
    """Makes the flywheel's nodes."""

    def conclude(self, draft: NodeDraft, cluster: Cluster, writer: str) -> NodeId:
        """Records a conclusion and marks its experiences: durable together."""
        ...

    def record_skill(self, draft: NodeDraft, proposal_id: int) -> NodeId | None:
        """Records an accepted skill and closes its proposal; None where it is not open."""
        ...

    def retract(self, node_id: NodeId) -> None:
        """Takes a conclusion back."""
        ...

    def writer(self, node_id: NodeId) -> str:
        """Who wrote a conclusion; `RULE` for nobody."""
        ...


class Flywheel:
    """Turns."""

    def __init__(
        self, stores: Stores, rehearser: Rehearser, recorder: Recorder, teacher: Teacher
    ) -> None:
        self._stores = stores
        self._config = stores.config.rest
        self._rehearser = rehearser
        self._recorder = recorder
        self._court = Court(stores, teacher)

    def turn(self) -> Operation[FlywheelReport]:
        """One idle turn of the goal that waits longest; an outage costs it this one, or the others would wait for it."""
        goal = self._stores.experiences.next_goal()
        if goal is None:
            return FlywheelReport(outcome=RestOutcome.EMPTY)
        match goal.kind:
            case GoalKind.IMPROVE:
                report = yield from self._improve(goal)
            case GoalKind.TEST:
                report = yield from self._test(goal)
            case GoalKind.AUTOMATE:
                report = yield from self._automate(goal)
            case GoalKind.OWN:
                report = yield from self._pose(goal)
        self._stores.experiences.visit_goal(goal.id)
        return report

    # --- improve

    def _improve(self, goal: Goal) -> Operation[FlywheelReport]:
        clusters = self._clusters(self._config.knowledge_min, undistilled=True)
        if not clusters or self._conclusions() >= self._config.knowledge_max:
            return FlywheelReport(outcome=RestOutcome.EMPTY, goal=goal)
        cluster, limit = clusters[0], self._config.knowledge_characters_max
        fields = (TextField(name="statement", characters_max=limit),)
        written = yield from self._written(TextPurpose.KNOWLEDGE, cluster, fields)
        if written is not None and not written.values[0].strip():
            self._stores.experiences.distilled([e.id for e in cluster], "")
            return FlywheelReport(outcome=RestOutcome.DONE, goal=goal)
        text = alike.statement(cluster, limit) if written is None else written.values[0][:limit]
        draft = _draft(NodeKind.KNOWLEDGE, text.strip(), cluster)
        writer = RULE if written is None else written.writer
        made = self._recorder.conclude(draft, cluster, writer)
        return FlywheelReport(outcome=RestOutcome.DONE, goal=goal, knowledge_id=made)

    def _conclusions(self) -> int:
        return len(self._stores.timeline.of_kind(NodeKind.KNOWLEDGE, self._config.knowledge_max))

    def _clusters(self, least: int, *, undistilled: bool) -> list[Cluster]:
        newest = self._stores.experiences.newest(
            self._config.experiences_clustered, undistilled=undistilled
        )
        found = alike.clusters(newest, self._config.cluster_overlap)
        return [cluster for cluster in found if len(cluster) >= least]

    def _written(
        self, purpose: TextPurpose, cluster: Cluster, fields: tuple[TextField, ...]
    ) -> Operation[Written | None]:
        reply = yield NeedText(purpose=purpose, passages=alike.passages(cluster), fields=fields)
        return reply if isinstance(reply, Written) else None

    # --- automate

    def _automate(self, goal: Goal) -> Operation[FlywheelReport]:
        """At most one proposal a turn; what was ever proposed is not proposed again."""
        known = self._stores.experiences.proposals()
        opened = sum(p.state is ProposalState.OPEN for p in known)
        used = {i for p in known for i in p.experiences}
        clusters = [
            cluster
            for cluster in self._clusters(self._config.skill_min, undistilled=False)
            if cluster[0].success and not used & {e.id for e in cluster}
        ]
        if not clusters or opened >= self._config.proposals_max:
            return FlywheelReport(outcome=RestOutcome.EMPTY, goal=goal)
        cluster, limit = clusters[0], self._config.skill_characters_max
        fields = (
            TextField(name="name", characters_max=_NAME_CHARACTERS),
            TextField(name="text", characters_max=limit),
        )
        written = yield from self._written(TextPurpose.SKILL, cluster, fields)
        name, text = (alike.name(cluster), "") if written is None else written.values[:2]
        name = normalise(name)[:_NAME_CHARACTERS].strip() or alike.name(cluster)
        if _same(name) in {_same(p.name) for p in known}:
            return FlywheelReport(outcome=RestOutcome.EMPTY, goal=goal)
        text = text[:limit].strip() or alike.statement(cluster, limit)
        made = self._stores.experiences.propose(name, text, [e.id for e in cluster])
        return FlywheelReport(outcome=RestOutcome.DONE, goal=goal, proposal_id=made)

    def decide(self, proposal_id: int, *, accepted: bool) -> NodeId | None:
        """What the user said: an accepted skill becomes a node."""
        store = self._stores.experiences
        proposal = next((p for p in store.proposals() if p.id == proposal_id), None)
        if proposal is None or proposal.state is not ProposalState.OPEN:
            return None
        if not accepted:
            store.decide(proposal_id, ProposalState.REJECTED)
            return None
        return self._recorder.record_skill(self._skill(proposal), proposal_id)

    def _skill(self, proposal: SkillProposal) -> NodeDraft:
        kept = self._stores.experiences.newest(self._config.experiences_max)
        cluster = tuple(e for e in kept if e.id in proposal.experiences)
        return _draft(NodeKind.SKILL, skill_text(proposal.name, proposal.text), cluster)

    # --- test

    def _test(self, goal: Goal) -> Operation[FlywheelReport]:
        node = self._next_written()
        if node is None:
            return FlywheelReport(outcome=RestOutcome.EMPTY, goal=goal)
        sources = self._stores.timeline.nodes(sorted(node.derived_from))
        leads = [Lead(node=source) for source in sources.values()]
        judgement = yield from self._court.ask(self._run(node), leads)
        if judgement is None:
            return FlywheelReport(outcome=RestOutcome.JUDGE_OUT, goal=goal)
        self._stores.database.set_meta(_TESTED, str(node.seq))
        if judgement.trusted and all(v is Verdict.NO for v in judgement.verdicts):
            self._recorder.retract(node.id)
        return FlywheelReport(
            outcome=RestOutcome.DONE, goal=goal, knowledge_id=node.id, judged=len(leads)
        )

    def _next_written(self) -> Node | None:
        """The next conclusion that a model wrote and that rests on notes; one made by rule is what they say."""
        made = self._stores.timeline.of_kind(NodeKind.KNOWLEDGE, self._config.knowledge_max)
        written = [n for n in made if n.derived_from and self._recorder.writer(n.id) != RULE]
        at = int(self._stores.database.meta(_TESTED) or 0)
        return min(written, key=lambda node: (node.seq <= at, node.seq), default=None)

    def _run(self, node: Node) -> Run:
        return Run(
            query=ExactQuery(text=node.content),
            question=Question(text=node.content, vector=None),
            evidence=Evidence(self._stores.timeline, node.content, frozenset()),
            started_s=self._stores.clock.monotonic_s(),
            newest=node.seq,
            cause=Cause.FLYWHEEL,
        )

    # --- the user's own

    def _pose(self, goal: Goal) -> Operation[FlywheelReport]:
        report = yield from self._rehearser.pose(goal.text, Cause.FLYWHEEL)
        return FlywheelReport(outcome=report.outcome, goal=goal, judged=report.judged)


def _draft(kind: NodeKind, text: str, cluster: Cluster) -> NodeDraft:
    sources = dict.fromkeys(node_id for e in cluster for node_id in e.node_ids)
    return NodeDraft(kind=kind, role=Role.NONE, content=text, derived_from=tuple(sources))


def _same(name: str) -> str:
    return normalise(name).casefold()
