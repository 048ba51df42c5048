"""A memory folder for the learning benchmark, and the two judges that answer its searches.

The gold judge knows the evidence. The light model judges through the application's own oracle; its readings are kept between
runs (`judge.Readings`), so what a judgement takes is measured apart, on candidates that are read anew.
"""

from __future__ import annotations

import asyncio
import contextlib
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import msgspec

from growbox_app import judging
from growbox_app.engine import entry
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient
from growbox_app.engine.supervisor import BACKGROUND_TOKENS
from growbox_app.models.calibration import embedder_epoch
from growbox_app.models.catalogue import find
from growbox_app.oracle import EngineOracle
from memory.config import MemoryConfig, VectorConfig
from memory.engine import MemoryEngine
from memory.requests import Judgement, NeedEmbeddings, NeedVerdicts, Operation, Verdict
from memory.values import (
    ExactQuery,
    ExactResult,
    NodeDraft,
    NodeId,
    NodeKind,
    RecallQuery,
    RecallResult,
    Role,
)
from tests.benchmarks.judge import Readings
from tests.benchmarks.recall_data import Corpus, Question
from tests.benchmarks.recall_embeddings import EmbeddingCache
from tests.fakes.clock import FakeClock
from tests.fakes.events import EventRecorder
from tests.real_models import LIGHT, LIGHT_ID, real_load

BUDGET = 16
_TIMED = 8


@dataclass(slots=True)
class Spent:
    """What a judge has been asked for: passes of the model and their tokens, the shared head left out."""

    passes: int = 0
    tokens: int = 0


class Judge(Protocol):
    """Answers for a question whose evidence is `gold`."""

    spent: Spent
    seconds_each: float

    def __call__(self, request: NeedVerdicts, gold: frozenset[NodeId]) -> Judgement | None:
        """The verdicts."""
        ...


@dataclass(slots=True)
class GoldJudge:
    """Knows the evidence, and costs nothing."""

    spent: Spent = field(default_factory=Spent)
    seconds_each: float = 0.0

    def __call__(self, request: NeedVerdicts, gold: frozenset[NodeId]) -> Judgement:
        """Yes to the evidence, no to all else."""
        self.spent.passes += len(request.candidates)
        verdicts = tuple(Verdict.YES if i in gold else Verdict.NO for i, _ in request.candidates)
        return Judgement(judge="gold", trusted=True, verdicts=verdicts)


class _KeptClient:
    """The engine's client, whose readings are kept between runs."""

    def __init__(self, client: EngineClient, spent: Spent) -> None:
        self._client = client
        self._spent = spent
        self._readings = Readings(find(LIGHT_ID))
        self.next_id = client.next_id

    async def request(self, asked: p.Judge, kind: type[p.DoneJudge]) -> p.DoneJudge:
        """The kept readings, and new ones for the rest."""
        await self._count(asked)
        left = self._readings.missing(asked)
        if left.candidates:
            self._readings.put(left, await self._client.request(left, kind))
        blank = self._readings.get(asked, asked.blank)
        assert blank is not None
        readings = tuple(self._readings.get(asked, text) for text in asked.candidates)
        return p.DoneJudge(id=asked.id, blank=blank, readings=readings)

    async def _count(self, asked: p.Judge) -> None:
        if asked.candidates:
            frame = "".join((asked.before, asked.between, asked.query, asked.after))
            texts = (frame, *asked.candidates)
            done = await self._client.request(p.Count(id=self.next_id(), texts=texts), p.DoneCount)
            self._spent.passes += len(asked.candidates)
            self._spent.tokens += len(asked.candidates) * done.counts[0] + sum(done.counts[1:])

    async def seconds_each(self, asked: p.Judge) -> float:
        """One judgement, read anew, the head being cached."""
        await self._client.request(
            msgspec.structs.replace(asked, id=self.next_id(), candidates=()), p.DoneJudge
        )
        started = time.perf_counter()
        await self._client.request(msgspec.structs.replace(asked, id=self.next_id()), p.DoneJudge)
        return (time.perf_counter() - started) / len(asked.candidates)


class _Loaded:
    """What the oracle needs of the engine."""

    def __init__(self, client: _KeptClient, loaded: p.DoneLoad) -> None:
        self.client = client
        self.loaded = loaded


class ModelJudge:
    """The light model, through the application's own oracle."""

    def __init__(self, runner: asyncio.Runner, client: EngineClient) -> None:
        load = real_load(client.next_id(), LIGHT.parent / ".cpu_variant.json")
        load = msgspec.structs.replace(load, background_tokens=BACKGROUND_TOKENS)
        self.spent = Spent()
        self._runner = runner
        kept = _KeptClient(client, self.spent)
        loaded = runner.run(client.request(load, p.DoneLoad))
        self._oracle = EngineOracle(_Loaded(kept, loaded))  # type: ignore[arg-type]
        self.seconds_each = runner.run(kept.seconds_each(_timed()))

    def __call__(self, request: NeedVerdicts, gold: frozenset[NodeId]) -> Judgement | None:
        """What the model thinks; the evidence is not its business."""
        return self._runner.run(self._oracle.judge(request))


def _timed() -> p.Judge:
    """Candidates of the length of a turn."""
    line = "[8 May, 2023] Ann: I went to the pottery class on Monday and made a bowl, then we had dinner, number"
    return judging.request(
        0, "en", "When was Ann at the class?", [f"{line} {n}." for n in range(_TIMED)]
    )


@contextlib.contextmanager
def model_judge() -> Iterator[ModelJudge]:
    """The light model in its own process."""
    with asyncio.Runner() as runner:
        client = runner.run(_opened())
        try:
            yield ModelJudge(runner, client)
        finally:
            runner.run(client.close())


async def _opened() -> EngineClient:
    return EngineClient(entry.run, on_death=lambda _code: None)


class World:
    """A memory folder with one conversation of the set in it."""

    def __init__(self, folder: Path, corpus: Corpus, embeddings: EmbeddingCache) -> None:
        self.folder = folder
        self.corpus = corpus
        self._embeddings = embeddings
        self.engine = MemoryEngine.open(
            folder,
            config=MemoryConfig(vectors=VectorConfig(host=False)),
            clock=FakeClock(),
            sink=EventRecorder(),
            embedder=embedder_epoch(),
        )
        self.engine._stores.database.execute("PRAGMA synchronous = OFF")
        self.ids: dict[str, NodeId] = {}
        self.search_s = 0.0

    def fill(self) -> None:
        """Records every turn and indexes it."""
        sessions: dict[str, str] = {}
        for passage in self.corpus.passages:
            if passage.group not in sessions:
                sessions[passage.group] = self.engine.create_conversation(title=passage.group).id
            draft = NodeDraft(
                kind=NodeKind.MESSAGE,
                role=Role.USER,
                content=passage.text,
                conversation_id=sessions[passage.group],
                created_at_ms=passage.at_ms,
            )
            self.ids[passage.id] = self.engine.record(draft).id
        while self.drive(self.engine.digest()):
            pass

    def copy(self, folder: Path) -> World:
        """The same folder elsewhere, as a crash would leave it."""
        shutil.copytree(self.folder, folder)
        copied = World(folder, self.corpus, self._embeddings)
        copied.ids = self.ids
        return copied

    def recalled(self, text: str, exclude: frozenset[NodeId] = frozenset()) -> RecallResult:
        """What the search says to a question that nobody has recorded."""
        return self.drive(self.engine.recall(RecallQuery(text=text, exclude=exclude)))

    def ask(
        self, text: str, question: Question, judge: Judge
    ) -> tuple[frozenset[NodeId], ExactResult]:
        """As the application does it: recorded, recalled, then searched exactly. What recall shows, and the search's result."""
        node = self.engine.record(
            NodeDraft(
                kind=NodeKind.MESSAGE,
                role=Role.USER,
                content=text,
                conversation_id=self.engine.create_conversation().id,
            )
        )
        exclude = frozenset({node.id})
        shown = frozenset(page.node.id for page in self.recalled(text, exclude).pages)
        query = ExactQuery(text=text, question_id=node.id, exclude=exclude, judgements_max=BUDGET)
        return shown, self.drive(self.engine.search_exactly(query), judge, self.gold(question))

    def gold(self, question: Question) -> frozenset[NodeId]:
        """The nodes that answer a question."""
        return frozenset(self.ids[g] for g in question.gold)

    def drive(
        self,
        operation: Operation[object],
        judge: Judge | None = None,
        gold: frozenset[NodeId] = frozenset(),
    ):
        """Runs an operation to its end; `search_s` takes what it takes by itself."""
        reply = None
        while True:
            started = time.perf_counter()
            try:
                request = operation.send(reply)
            except StopIteration as stop:
                return stop.value
            finally:
                self.search_s += time.perf_counter() - started
            match request:
                case NeedEmbeddings():
                    reply = self._embeddings.embed(request.texts, request.kind)
                case NeedVerdicts() if judge is not None:
                    reply = judge(request, gold)
                case _:
                    reply = None
