"""What tests of rest share: a machine that says what it is told, a judge that is trusted, and a debt in a running application."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial

from growbox_app.assistant import GrowBox
from growbox_app.models.calibration import JudgeCalibration
from memory.engine import MemoryEngine
from memory.requests import Operation
from memory.values import ConversationId, ExactQuery, ExactResult, Node, NodeDraft, NodeKind, Role

QUESTION = "what is the zebra machine title?"


@dataclass
class QuietMachine:
    """Implements `growbox_app.rest.machine.Machine`."""

    battery: bool = False
    others: bool = False

    def on_battery(self) -> bool:
        return self.battery

    def busy(self) -> bool:
        return self.others


def trusted(_tokenizer: str, _language: str, _version: str) -> JudgeCalibration:
    """The scripted engine's readings, taken for good ones."""
    return JudgeCalibration(
        name="scripted", weights={"margin": 2.0}, bias=0.0, yes=0.6, no=0.4, auc=0.95
    )


def _say(engine: MemoryEngine, text: str, conversation: ConversationId) -> Node:
    draft = NodeDraft(
        kind=NodeKind.MESSAGE, role=Role.USER, content=text, conversation_id=conversation
    )
    return engine.record(draft)


def _prepare(notes: int, engine: MemoryEngine) -> ExactQuery:
    conversation = engine.create_conversation().id
    fact = _say(engine, "heron", conversation)
    for n in range(notes):
        _say(engine, f"filler{fact.seq}n{n}x lorem{n}y", conversation)
    asked = _say(engine, QUESTION, conversation)
    engine.learn_cited(query=QUESTION, question_id=asked.id, target_id=fact.id)
    again = _say(engine, f"{QUESTION}?", conversation)
    return ExactQuery(
        text=again.content,
        question_id=again.id,
        exclude=frozenset({again.id}),
        judgements_max=64,
    )


async def owe(app: GrowBox, notes: int = 12) -> int:
    """Makes a debt, as a jump over so many notes leaves it; returns how many are open."""
    memory = app._memory
    query = await memory.call(partial(_prepare, notes))

    def search(engine: MemoryEngine) -> Operation[ExactResult]:
        return engine.search_exactly(query)

    await memory.drive(search)
    return len((await app.mind.ledger()).open)
