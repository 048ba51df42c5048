"""A memory engine in a folder, with a fake clock, embedder and sink, and the few verbs that tests speak in."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from memory.config import MemoryConfig, RestConfig, VectorConfig
from memory.engine import MemoryEngine
from memory.requests import NeedText, Operation, Written
from memory.values import (
    ConversationId,
    ExactQuery,
    ExactResult,
    Fragment,
    Node,
    NodeDraft,
    NodeId,
    NodeKind,
    NodeStatus,
    RecallQuery,
    RecallResult,
    Role,
)
from tests.fakes.clock import FakeClock
from tests.fakes.driver import drive
from tests.fakes.embedder import EPOCH, HashEmbedder
from tests.fakes.events import EventRecorder
from tests.fakes.judge import ScriptedJudge

T = TypeVar("T")
NO_HOST = MemoryConfig(vectors=VectorConfig(host=False), rest=RestConfig(texts_per_run=64))


class MemoryWorld:
    """Opens, speaks, closes. The vector host is off unless the configuration says otherwise."""

    def __init__(self, path: Path, config: MemoryConfig = NO_HOST) -> None:
        self.path = path
        self.config = config
        self.clock = FakeClock()
        self.events = EventRecorder()
        self.embedder = HashEmbedder()
        self.judge = ScriptedJudge()
        self.writer: Callable[[NeedText], Written | None] | None = None
        self.notes: list[Node] = []
        self.epoch = EPOCH
        self.engine = self._open()

    def _open(self) -> MemoryEngine:
        return MemoryEngine.open(
            self.path,
            config=self.config,
            clock=self.clock,
            sink=self.events,
            embedder=self.epoch,
        )

    def reopen(self) -> None:
        """Closes and opens again."""
        self.engine.close()
        self.engine = self._open()

    def use_epoch(self, name: str) -> None:
        """Another embedder, from the next opening on."""
        self.epoch = replace(EPOCH, name=name)

    def conversation(self) -> ConversationId:
        return self.engine.create_conversation().id

    def say(self, text: str, conversation: ConversationId | None = None, **fields: object) -> Node:
        """The user says something."""
        draft = NodeDraft(
            kind=NodeKind.MESSAGE,
            role=Role.USER,
            content=text,
            conversation_id=conversation or self.conversation(),
        )
        return self.engine.record(replace(draft, **fields))

    def answer(
        self,
        question: Node,
        text: str,
        *,
        derived_from: tuple[NodeId, ...] = (),
        status: NodeStatus = NodeStatus.COMPLETE,
    ) -> Node:
        """The assistant answers."""
        partial = self.engine.begin_answer(question=question)
        return self.engine.finish_answer(
            partial.id, content=text, status=status, derived_from=derived_from
        )

    def digest(self, runs_max: int = 1000) -> None:
        """Until nothing is pending."""
        for _ in range(runs_max):
            if not drive(self.engine.digest(), self.embedder):
                return
        raise AssertionError("digest never ends")

    def recall(self, text: str, **fields: object) -> RecallResult:
        return drive(self.engine.recall(replace(RecallQuery(text=text), **fields)), self.embedder)

    def search(self, text: str, **fields: object) -> ExactResult:
        """The exact layer, with the world's judge."""
        query = replace(ExactQuery(text=text), **fields)
        return drive(self.engine.search_exactly(query), self.embedder, self.judge)

    def rest(self, operation: Operation[T]) -> T:
        """A dream, rehearsal, sleep or turn of the flywheel, with the world's judge and writer."""
        return drive(operation, self.embedder, self.judge, self.writer)

    def owe(self, question: str = "what is the zebra machine title?", notes: int = 20) -> Fragment:
        """A debt: a pinned memory far back is found by a jump over so many notes."""
        conversation = self.conversation()
        fact = self.say("heron", conversation)
        self.notes = [
            self.say(f"filler{fact.seq}n{n}x lorem{n}y", conversation) for n in range(notes)
        ]
        asked = self.say(question, conversation)
        self.engine.learn_cited(query=question, question_id=asked.id, target_id=fact.id)
        again = self.say(f"{question}?", conversation)
        self.search(again.content, question_id=again.id)
        debts = self.engine.ledger().open
        return next(d for d in debts if (d.entry_seq, d.target_seq) == (asked.seq, fact.seq))

    def found(self, text: str, **fields: object) -> list[str]:
        """Contents of the pages, best first."""
        return [page.node.content for page in self.recall(text, **fields).pages]
