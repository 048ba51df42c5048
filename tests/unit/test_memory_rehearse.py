"""Rehearsal and the flywheel: what is posed and concluded, once, with provenance, and what never is."""

from __future__ import annotations

from dataclasses import replace

import pytest

from memory.config import RestConfig
from memory.requests import NeedText, TextPurpose, Written
from memory.rest_values import (
    Cause,
    Experience,
    ExperienceSource,
    GoalKind,
    JournalKind,
    ProposalState,
    RestOutcome,
)
from memory.values import NodeKind
from tests.fakes.memory_world import NO_HOST, MemoryWorld

QUESTION = "what is the zebra machine title?"


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    yield world
    world.engine.close()


class Writer:
    """Answers each purpose with the values that the test has given."""

    def __init__(self, **values: tuple[str, ...]) -> None:
        self.values = values
        self.asked: list[NeedText] = []

    def __call__(self, request: NeedText) -> Written | None:
        self.asked.append(request)
        values = self.values.get(request.purpose)
        return None if values is None else Written(writer="writer", values=values)


def fill(world: MemoryWorld, count: int = 30) -> None:
    conversation = world.conversation()
    for n in range(count):
        world.say(f"filler{n}x lorem{n}y", conversation)


def rehearse_all(world: MemoryWorld) -> list:
    """Until nothing new is left."""
    reports = []
    for _ in range(100):
        report = world.rest(world.engine.rehearse())
        if report.outcome is RestOutcome.EMPTY:
            return reports
        reports.append(report)
    raise AssertionError("rehearsal never ends")


def learned(world: MemoryWorld) -> tuple:
    pointers = world.engine._stores.pointers
    return dict(pointers.records()), world.engine._stores.log.last_id()


# --- rehearsal


def test_a_question_that_was_not_answered_is_searched_once(world):
    fact = world.say("heron heron heron")
    fill(world, 10)
    world.say(QUESTION)
    world.judge.yes = {"heron"}
    found = [r for r in rehearse_all(world) if r.question]
    assert [(r.question, r.found) for r in found] == [(QUESTION, (fact.id,))]
    assert world.engine.journal().entries[0].cause is Cause.REHEARSAL
    world.judge.read.clear()
    assert world.rest(world.engine.rehearse()).outcome is RestOutcome.EMPTY
    world.reopen()
    assert world.rest(world.engine.rehearse()).outcome is RestOutcome.EMPTY
    assert world.judge.read == []


def test_a_question_that_the_search_answers_is_left_alone(world):
    world.say("The zebra machine title is Heron")
    fill(world)
    world.digest()
    world.say(QUESTION)
    before = learned(world)
    rehearse_all(world)
    assert learned(world) == before


def test_a_new_note_is_found_by_a_question_that_a_model_words(world):
    fill(world)
    fact = world.say("heron heron heron")
    world.digest()
    asked = "filler3x okapi sign"
    assert fact.id not in {p.node.id for p in world.recall(asked).pages}
    world.writer = Writer(question=(asked,))
    world.judge.yes = {"heron"}
    reports = rehearse_all(world)
    assert [r.found for r in reports if r.found] == [(fact.id,)]
    (report,) = [r for r in reports if r.found]
    assert report.written
    (entry,) = world.engine.journal().entries
    assert (entry.kind, entry.cause, entry.question) == (
        JournalKind.REHEARSED,
        Cause.REHEARSAL,
        asked,
    )
    assert fact.id in {p.node.id for p in world.recall(asked).pages}
    assert world.engine.stains().spans == ()
    assert world.engine.undo(entry.id)
    assert fact.id not in {p.node.id for p in world.recall(asked).pages}


def test_a_new_note_is_offered_to_the_past_question_it_answers(tmp_path):
    rest = replace(NO_HOST.rest, rehearsal_near=0.05)
    world = MemoryWorld(tmp_path / "m", replace(NO_HOST, rest=rest))
    asked = "ibis okapi lynx otter panda koala quokka"
    fill(world)
    world.search(asked, judgements_max=100)
    world.digest()
    rehearse_all(world)
    fact = world.say("gazelle ibis spoon lamp cup")
    world.digest()
    assert world.recall(asked).pages == ()
    world.judge.yes = {"gazelle"}
    assert [(r.question, r.found) for r in rehearse_all(world) if r.found] == [(asked, (fact.id,))]
    assert [p.node.id for p in world.recall(asked).pages] == [fact.id]
    world.engine.close()


@pytest.mark.parametrize("how", ["out", "suggests"])
def test_an_outage_is_tried_again_and_teaches_nothing(world, how):
    fill(world)
    fact = world.say("heron heron heron")
    world.digest()
    world.writer = Writer(question=("filler3x okapi sign",))
    world.judge.out, world.judge.trusted = how == "out", how != "suggests"
    world.judge.yes = {"heron"}
    before = learned(world)
    outcomes = {world.rest(world.engine.rehearse()).outcome for _ in range(4)}
    assert outcomes & {RestOutcome.JUDGE_OUT, RestOutcome.SUGGESTS}
    assert learned(world) == before
    world.judge.out, world.judge.trusted = False, True
    assert (fact.id,) in [r.found for r in rehearse_all(world)]


def test_a_rehearsal_takes_no_page_from_any_question(world):
    """The harm test in small: pages of the search stay, in their order."""
    topics = ("heron", "okapi", "gazelle", "ibis", "lynx", "otter")
    conversation = world.conversation()
    for word in topics:
        world.say(f"The {word} lives in the {word} house", conversation)
        world.say(f"my {word} eats apples and {word} bread", conversation)
    world.digest()
    held_out = [f"where does the {w} live" for w in topics] + [f"what {w} eats" for w in topics]
    before = {q: [p.node.id for p in world.recall(q).pages] for q in held_out}
    world.writer = Writer(question=("apples or bread for animals",))
    world.judge.yes = {"eats"}
    rehearse_all(world)
    assert world.engine.journal().entries
    for question, pages in before.items():
        after = [p.node.id for p in world.recall(question).pages]
        assert after[: len(pages)] == pages


# --- experiences, conclusions, skills, goals


def tried(context: str, outcome: str = "exit 0", **fields: object) -> Experience:
    fields = {"source": ExperienceSource.EXECUTOR, "operation": "shell", "success": True} | fields
    return Experience(context=context, outcome=outcome, **fields)


def turns(world: MemoryWorld, kind: GoalKind):
    """One turn of each goal; the report of that kind."""
    reports = [world.rest(world.engine.flywheel()) for _ in world.engine.goals()]
    return next(r for r in reports if r.goal is not None and r.goal.kind is kind)


def test_recall_outcomes_and_feedback_are_experiences(world):
    fact = world.say("heron heron heron")
    world.say("lorem ipsum")
    asked = world.say(QUESTION)
    world.judge.yes = {"heron"}
    world.search(asked.content, question_id=asked.id)
    world.search(asked.content, question_id=asked.id)
    world.engine.learn_cited(query=QUESTION, question_id=asked.id, target_id=fact.id)
    world.engine.learn_not_relevant(query=QUESTION, memory_id=fact.id)
    seen = world.engine.experiences()
    assert [(e.source, e.success) for e in seen] == [
        (ExperienceSource.NOT_RELEVANT, False),
        (ExperienceSource.CITED, True),
        (ExperienceSource.FOUND, True),
    ]
    assert [e.node_ids for e in seen] == [(fact.id,), (fact.id, asked.id), (fact.id, asked.id)]


def test_a_cluster_is_distilled_once_with_its_provenance(world):
    first, second = world.say("cargo needs nightly"), world.say("cargo wants nightly too")
    world.engine.record_experience(tried("cargo build release crate", node_ids=(first.id,)))
    world.engine.record_experience(tried("cargo build release workspace", node_ids=(second.id,)))
    world.engine.record_experience(tried("paint a picture"))
    report = turns(world, GoalKind.IMPROVE)
    made = world.engine.node(report.knowledge_id)
    assert made.kind is NodeKind.KNOWLEDGE
    assert set(made.derived_from) == {first.id, second.id}
    assert "cargo build release crate → exit 0" in made.content
    (entry,) = world.engine.journal().entries
    assert (entry.kind, entry.cause, entry.record_id) == (
        JournalKind.KNOWLEDGE,
        Cause.FLYWHEEL,
        made.id,
    )
    assert turns(world, GoalKind.IMPROVE).knowledge_id is None
    world.digest()
    assert made.id in {p.node.id for p in world.recall("cargo build release").pages}
    assert world.engine.undo(entry.id)
    assert made.id not in {p.node.id for p in world.recall("cargo build release").pages}
    assert turns(world, GoalKind.IMPROVE).knowledge_id is None
    assert world.engine.audit(fix=False, full=True).findings == ()


def test_a_model_may_find_nothing_in_common(world):
    for what in ("crate", "workspace"):
        world.engine.record_experience(tried(f"cargo build release {what}"))
    world.writer = Writer(knowledge=("",))
    assert turns(world, GoalKind.IMPROVE).knowledge_id is None
    assert turns(world, GoalKind.IMPROVE).outcome is RestOutcome.EMPTY
    (asked,) = world.writer.asked
    assert asked.purpose is TextPurpose.KNOWLEDGE
    assert len(asked.passages) == 2


def test_a_written_conclusion_that_nothing_supports_is_taken_back(world):
    sources = [world.say("cargo needs nightly"), world.say("cargo wants nightly too")]
    for node in sources:
        world.engine.record_experience(
            tried(f"cargo build {node.seq} release", node_ids=(node.id,))
        )
    world.writer = Writer(knowledge=("The moon is a cheese",))
    world.judge.out = True
    made = turns(world, GoalKind.IMPROVE).knowledge_id
    assert world.engine.node(made).branch_active
    world.judge.out = False
    world.judge.unknown = {"too"}
    turns(world, GoalKind.TEST)
    assert world.engine.node(made).branch_active
    world.judge.unknown = set()
    turns(world, GoalKind.TEST)
    assert not world.engine.node(made).branch_active
    assert world.engine.journal().entries[0].undone


def test_a_skill_is_proposed_once_and_recorded_when_accepted(world):
    for what in ("crate", "workspace", "binary"):
        world.engine.record_experience(tried(f"cargo build release {what}"))
    assert turns(world, GoalKind.AUTOMATE).proposal_id is not None
    (proposal,) = world.engine.proposals()
    assert proposal.state is ProposalState.OPEN
    assert "cargo" in proposal.name
    assert turns(world, GoalKind.AUTOMATE).proposal_id is None
    made = world.engine.decide_proposal(proposal.id, accepted=True)
    assert world.engine.node(made).kind is NodeKind.SKILL
    assert world.engine.decide_proposal(proposal.id, accepted=True) is None
    assert world.engine.proposals()[0].state is ProposalState.ACCEPTED


def test_a_rejected_skill_is_never_proposed_again(world):
    for what in ("crate", "workspace", "binary"):
        world.engine.record_experience(tried(f"cargo build release {what}"))
    proposal_id = turns(world, GoalKind.AUTOMATE).proposal_id
    assert world.engine.decide_proposal(proposal_id, accepted=False) is None
    for what in ("library", "example"):
        world.engine.record_experience(tried(f"cargo build release {what}"))
    assert turns(world, GoalKind.AUTOMATE).proposal_id is None
    assert len(world.engine.proposals()) == 1


def test_failures_propose_no_skill(world):
    for what in ("crate", "workspace", "binary"):
        world.engine.record_experience(tried(f"cargo build release {what}", success=False))
    assert turns(world, GoalKind.AUTOMATE).proposal_id is None


def test_goals_take_turns_and_are_the_users(world):
    assert [g.kind for g in world.engine.goals()] == list(GoalKind)[:3]
    own = world.engine.add_goal("  find the heron house ")
    assert own.text == "find the heron house"
    assert world.engine.add_goal("   ") is None
    order = [world.rest(world.engine.flywheel()).goal.kind for _ in range(8)]
    assert order == list(GoalKind) * 2
    world.engine.enable_goal(own.id, False)
    assert GoalKind.OWN not in {world.rest(world.engine.flywheel()).goal.kind for _ in range(4)}
    world.engine.reword_goal(own.id, "another")
    assert world.engine.goals()[-1].text == "another"
    assert not world.engine.remove_goal(world.engine.goals()[0].id)
    assert world.engine.remove_goal(own.id)
    world.clock.set_back(10_000)
    assert {world.rest(world.engine.flywheel()).goal.kind for _ in range(3)} == set(
        list(GoalKind)[:3]
    )


def test_a_goal_of_the_users_is_posed_to_the_past_until_it_is_read(world):
    fact = world.say("heron heron heron")
    fill(world, 10)
    world.engine.add_goal(QUESTION)
    for goal in world.engine.goals()[:3]:
        world.engine.enable_goal(goal.id, False)
    world.judge.yes = {"heron"}
    assert world.rest(world.engine.flywheel()).judged > 0
    (entry, *_) = world.engine.journal().entries
    assert (entry.cause, [n.node_id for n in entry.yes]) == (Cause.FLYWHEEL, [fact.id])
    count = world.engine.statistics().learning_events
    for _ in range(5):
        world.rest(world.engine.flywheel())
    assert world.engine.statistics().learning_events == count


def test_what_is_forgotten_leaves_experiences_proposals_and_conclusions(world):
    notes = [world.say(f"cargo note {n}") for n in range(3)]
    for node in notes:
        world.engine.record_experience(
            tried(f"cargo build {node.seq} release", node_ids=(node.id,))
        )
    world.engine.record_experience(tried("paint a picture"))
    made = turns(world, GoalKind.IMPROVE).knowledge_id
    assert world.engine.proposals()
    store = world.engine._stores.experiences
    assert store.forget({notes[0].id}, ()) == {made}
    assert world.engine.proposals() == ()
    assert len(world.engine.experiences()) == 3
    assert store.forget((), {"paint a picture"}) == set()
    assert [e.context for e in world.engine.experiences()] == [
        f"cargo build {notes[2].seq} release",
        f"cargo build {notes[1].seq} release",
    ]


def test_experiences_are_bounded(tmp_path):
    world = MemoryWorld(tmp_path / "m", replace(NO_HOST, rest=RestConfig(experiences_max=5)))
    for n in range(12):
        world.engine.record_experience(tried(f"thing {n}"))
    assert [e.context for e in world.engine.experiences()] == [
        f"thing {n}" for n in range(11, 6, -1)
    ]
    world.engine.close()


def test_a_conclusion_comes_after_what_it_rests_on(world):
    world.say("The heron house is at the lake")
    for what in ("heron house lake", "heron house shore"):
        world.engine.record_experience(tried(what, "the heron house"))
    turns(world, GoalKind.IMPROVE)
    world.digest()
    pages = world.recall("where is the heron house").pages
    assert pages[0].node.kind is NodeKind.MESSAGE
