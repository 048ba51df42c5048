"""Forgetting what rest has made of a conversation: dreams, rehearsed questions, experiences, conclusions, proposals, skills."""

from __future__ import annotations

import contextlib

import pytest

from memory.requests import (
    NeedEmbeddings,
    NeedText,
    NeedVerdicts,
    Reply,
    Request,
    TextPurpose,
    Written,
)
from memory.rest_values import Experience, ExperienceSource, JournalFilter, JournalKind, RestOutcome
from tests.fakes.driver import drive
from tests.fakes.memory_world import MemoryWorld
from tests.unit.test_forgetting import ANSWER, QUESTION, SECRET, WORDS, Story, bytes_with, silent

RESTED = (*WORDS, "Which phrase", "which phrase", "rehearsed-wording", "skill-of-elstern")


def write(request: NeedText) -> Written:
    """A writer that quotes what it is given."""
    whole = " | ".join(request.passages)
    secret = any(word in whole for word in WORDS)
    question = f"Which {'rehearsed-wording' if secret else 'tool'} paints the garden shed?"
    said = {
        TextPurpose.QUESTION: (question,),
        TextPurpose.KNOWLEDGE: (whole,),
        TextPurpose.SKILL: ("skill-of-elstern" if secret else "skill", whole),
    }
    return Written(writer="w", values=said[request.purpose])


def reply_to(world: MemoryWorld, request: Request) -> Reply:
    """What the host answers."""
    match request:
        case NeedEmbeddings():
            return world.embedder.embed(request.texts, request.kind)
        case NeedVerdicts():
            return world.judge(request)
        case NeedText():
            return write(request)
    return None


def forget_all_but(world: MemoryWorld, kept: str) -> None:
    for conversation in world.engine.conversations():
        if conversation.id != kept:
            world.engine.forgetting.ask(conversation.id)
            drive(world.engine.forgetting.run(conversation.id, silent), world.embedder)


class Rested:
    """A story that was slept over: a debt of the forgotten question, a rehearsal, experiences, a conclusion, a proposal and a skill."""

    def __init__(self, world: MemoryWorld) -> None:
        self.world = world
        world.writer = write
        world.judge.yes = {"Elstern", "twelve jays", "Zinnober"}
        self.debt = world.owe(QUESTION)
        self.story = Story(world)
        engine = world.engine
        told = next(m for m in engine.messages(self.story.secret) if m.content == SECRET)
        for number in range(4):
            asked = world.say(f"how do I open the Aldermoor vault {number}", self.story.secret)
            engine.record_experience(
                Experience(
                    source=ExperienceSource.EXECUTOR,
                    operation="shell",
                    context=asked.content,
                    outcome=f"Elstern {number}",
                    success=True,
                    node_ids=(asked.id, told.id),
                )
            )
        for number in range(2):
            engine.record_experience(
                Experience(
                    source=ExperienceSource.CITED,
                    operation="recall",
                    context=f"which paint for the garden shed {number}",
                    outcome=self.story.kept.content,
                    success=True,
                    node_ids=(self.story.kept.id,),
                )
            )
        world.digest()
        self.slept = world.rest(engine.sleep())
        while world.rest(engine.rehearse()).outcome is not RestOutcome.EMPTY:
            continue
        turns = [world.rest(engine.flywheel()) for _ in range(9)]
        self.concluded = {t.knowledge_id for t in turns if t.knowledge_id is not None}
        accepted, *self.proposed = [p for p in engine.proposals() if "Elstern" in p.text]
        self.skill = engine.decide_proposal(accepted.id, accepted=True)
        made = [e for e in engine.journal().entries if e.kind is JournalKind.KNOWLEDGE]
        assert made[0].undone or engine.undo(made[0].id)
        world.digest()


def test_what_rest_has_made_of_it_goes_with_it(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    rested = Rested(world)
    engine = world.engine
    kinds = {entry.kind for entry in engine.journal(JournalFilter(limit=500)).entries}
    assert {JournalKind.DEBT_CLEARED, JournalKind.REHEARSED, JournalKind.KNOWLEDGE} <= kinds
    assert rested.slept.judged > 0
    assert len(rested.concluded) > 1
    assert rested.skill is not None
    assert all(bytes_with(world.path, word.encode()) for word in RESTED)
    report = rested.story.forget()
    forget_all_but(world, rested.story.other)  # the debt's own, which asked the same
    assert report.left == ()
    assert engine.node(rested.skill) is None
    kept = [n for made in rested.concluded if (n := engine.node(made)) is not None]
    assert {node.derived_from for node in kept} == {(rested.story.kept.id,)}
    assert [e.context for e in engine.experiences() if "shed" not in e.context] == []
    assert len(engine.experiences()) == 2, "what was experienced with others stays"
    assert not [p for p in engine.proposals() if "Elstern" in p.text]
    assert not [e for e in engine.journal().entries if "Aldermoor" in e.question + e.record]
    world.digest()
    assert engine.audit(fix=False, full=True).findings == ()
    world.rest(engine.sleep())
    for _ in range(6):
        world.rest(engine.flywheel())
    engine.close()
    assert bytes_with(world.path, *(word.encode() for word in RESTED)) == []


@pytest.mark.parametrize("begin", ["dream", "sleep", "rehearse", "flywheel"])
@pytest.mark.parametrize("steps", range(1, 9, 2))
def test_rest_that_was_under_way_does_not_bring_it_back(tmp_path, begin, steps):
    world = MemoryWorld(tmp_path / "m")
    rested = Rested(world)
    asked = world.say(QUESTION + " again", rested.story.secret)
    world.answer(asked, ANSWER)
    operation = getattr(world.engine, begin)()
    reply = None
    with contextlib.suppress(StopIteration):
        for _ in range(steps):
            request = operation.send(reply)
            reply = reply_to(world, request)
        forget_all_but(world, rested.story.other)
        while True:
            reply = reply_to(world, operation.send(reply))
    forget_all_but(world, rested.story.other)
    assert world.engine.audit(fix=False, full=True).findings == ()
    world.engine.close()
    assert bytes_with(world.path, *(word.encode() for word in RESTED)) == []


def test_an_undo_is_still_one_after_its_event_was_written_anew(tmp_path):
    """Under a wording of its own, because the first one of its cluster was forgotten."""
    world = MemoryWorld(tmp_path / "m")
    fact = world.say("Aldermoor lies north of the river.")
    world.digest()
    first, second = world.conversation(), world.conversation()
    asked = world.say("where does Aldermoor lie", first)
    world.recall(asked.content)
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    again = world.say("where does Aldermoor lie now", second)
    world.recall(again.content)
    world.engine.learn_cited(query=again.content, question_id=again.id, target_id=fact.id)
    log = world.engine._stores.log
    cited = log.last_id()
    before = log.event(cited)
    assert world.engine.undo(cited)
    world.engine.forgetting.ask(first)
    drive(world.engine.forgetting.run(first, silent), world.embedder)
    event = log.event(cited)
    assert event is not None
    assert before is not None
    assert event.query != before.query
    assert event.undone
    assert world.engine.statistics().edges == 0
    assert world.engine.audit(fix=False, full=True).findings == ()
