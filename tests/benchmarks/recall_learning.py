"""What the exact layer learns: judge calls of a question the first time, again, and in other words; and what that does to others.

40 questions of two LoCoMo conversations that fall through the gate first (fixed seed), a budget of 16 judgements each. A search is
what the application does: the question is recorded, recalled, and searched exactly. `--judge gold` takes the verdicts from the
evidence, `model` from the light model. Repeats and paraphrases are each asked of a copy of the folder as it was after the
first round. 24 held-out questions that share evidence with the 40 are asked, each of a fresh copy, before and after learning.

Figures: `repeat_judge_ratio`, `paraphrase_judge_ratio` (judgements against the first time), `heldout_delta` (share of held-out
questions found, after minus before). The paraphrases are ours, keyed by the hash of the question they restate.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import hashlib
import json
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

import msgspec

from growbox_app.engine import entry
from growbox_app.engine import protocol as p
from growbox_app.engine.client import EngineClient
from growbox_app.engine.supervisor import BACKGROUND_TOKENS
from growbox_app.models.calibration import embedder_epoch
from growbox_app.models.catalogue import find
from growbox_app.oracle import EngineOracle
from growbox_app.paths import resources_path
from memory.config import MemoryConfig, VectorConfig
from memory.engine import MemoryEngine
from memory.requests import Judgement, NeedEmbeddings, NeedVerdicts, Operation, Verdict
from memory.values import ExactQuery, ExactResult, NodeDraft, NodeId, NodeKind, RecallQuery, Role
from tests.benchmarks.judge import Readings
from tests.benchmarks.recall_data import Corpus, Question, locomo
from tests.benchmarks.recall_embeddings import EmbeddingCache
from tests.fakes.clock import FakeClock
from tests.fakes.events import EventRecorder
from tests.real_models import LIGHT, LIGHT_ID, real_load

CONVERSATIONS = ("conv-26", "conv-30")
QUESTIONS, HELD_OUT, BUDGET, SEED = 40, 24, 16, 20
CATEGORIES = ("1", "2", "3", "4")  # the fifth has no answer
PARAPHRASES = Path(__file__).with_name("recall_learning_paraphrases.json")
Gold: TypeAlias = frozenset[NodeId]
Judge: TypeAlias = Callable[[NeedVerdicts, Gold], Judgement | None]


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
        self.ids: dict[str, NodeId] = {}
        self.recalled: Gold = frozenset()

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
        while self.drive(self.engine.digest(), None):
            pass

    def copy(self, folder: Path) -> World:
        """The same folder elsewhere, as a crash would leave it."""
        shutil.copytree(self.folder, folder)
        copied = World(folder, self.corpus, self._embeddings)
        copied.ids = self.ids
        return copied

    def drive(self, operation: Operation[object], judge: Judge | None, about: object = None):
        """Runs an operation to its end."""
        reply = None
        while True:
            try:
                request = operation.send(reply)
            except StopIteration as stop:
                return stop.value
            match request:
                case NeedEmbeddings():
                    reply = self._embeddings.embed(request.texts, request.kind)
                case NeedVerdicts() if judge is not None:
                    reply = judge(request, about)
                case _:
                    reply = None

    def ask(self, text: str, question: Question, judge: Judge) -> ExactResult:
        """As the application does it: recorded, recalled, then searched exactly."""
        node = self.engine.record(
            NodeDraft(
                kind=NodeKind.MESSAGE,
                role=Role.USER,
                content=text,
                conversation_id=self.engine.create_conversation().id,
            )
        )
        exclude = frozenset({node.id})
        recalled = self.drive(self.engine.recall(RecallQuery(text=text, exclude=exclude)), judge)
        self.recalled = frozenset(page.node.id for page in recalled.pages)
        query = ExactQuery(text=text, question_id=node.id, exclude=exclude, judgements_max=BUDGET)
        return self.drive(self.engine.search_exactly(query), judge, self.gold(question))

    def gold(self, question: Question) -> frozenset[NodeId]:
        """The nodes that answer a question."""
        return frozenset(self.ids[g] for g in question.gold)


def gold_judge(request: NeedVerdicts, gold: frozenset[NodeId]) -> Judgement:
    """Knows the evidence."""
    verdicts = tuple(Verdict.YES if i in gold else Verdict.NO for i, _ in request.candidates)
    return Judgement(judge="gold", trusted=True, verdicts=verdicts)


class _KeptClient:
    """The engine's client, whose readings are kept between runs."""

    def __init__(self, client: EngineClient) -> None:
        self._client = client
        self._readings = Readings(find(LIGHT_ID))
        self.next_id = client.next_id

    async def request(self, asked: p.Judge, kind: type[p.DoneJudge]) -> p.DoneJudge:
        """The kept readings, and new ones for the rest."""
        left = self._readings.missing(asked)
        if left.candidates:
            self._readings.put(left, await self._client.request(left, kind))
        blank = self._readings.get(asked, asked.blank)
        assert blank is not None
        readings = tuple(self._readings.get(asked, text) for text in asked.candidates)
        return p.DoneJudge(id=asked.id, blank=blank, readings=readings)


class _Loaded:
    """What the oracle needs of the engine."""

    def __init__(self, client: EngineClient, loaded: p.DoneLoad) -> None:
        self.client = _KeptClient(client)
        self.loaded = loaded


@contextlib.contextmanager
def model_judge() -> Iterator[Judge]:
    """The light model, through the application's own oracle."""
    with asyncio.Runner() as runner:
        client = runner.run(_opened())
        load = real_load(client.next_id(), LIGHT.parent / ".cpu_variant.json")
        load = msgspec.structs.replace(load, background_tokens=BACKGROUND_TOKENS)
        try:
            oracle = EngineOracle(_Loaded(client, runner.run(client.request(load, p.DoneLoad))))
            yield lambda request, _gold: runner.run(oracle.judge(request))
        finally:
            runner.run(client.close())


async def _opened() -> EngineClient:
    return EngineClient(entry.run, on_death=lambda _code: None)


def key_of(text: str) -> str:
    """By which a paraphrase finds its question."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


def gated(world: World) -> list[tuple[float, Question]]:
    """Every question with an answer, and how near it comes to passing the gate: below 0 it falls through."""
    gate = MemoryConfig().recall.gate
    found = []
    for question in world.corpus.questions:
        if question.category in CATEGORIES:
            result = world.drive(world.engine.recall(RecallQuery(text=question.text)), None)
            found.append((result.best_score - gate, question))
    return found


def chosen(by_world: dict[str, list[tuple[float, Question]]]) -> list[tuple[str, Question]]:
    """A fixed choice among those that fall through the gate; where these are too few, those that do first."""
    every = [(score, name, q) for name in sorted(by_world) for score, q in by_world[name]]
    random.Random(SEED).shuffle(every)
    if sum(score < 0 for score, _, _ in every) >= QUESTIONS:
        every = [item for item in every if item[0] < 0]
    else:
        every.sort(key=lambda item: item[0])
    return [(name, question) for _, name, question in every[:QUESTIONS]]


def held_out(corpora: Sequence[Corpus], asked: Sequence[tuple[str, Question]]):
    """Other questions on the evidence of those asked."""
    texts = {q.text for _, q in asked}
    found = []
    for corpus in corpora:
        evidence = {g for name, q in asked if name == corpus.name for g in q.gold}
        found += [
            (corpus.name, q)
            for q in corpus.questions
            if q.category in CATEGORIES and q.text not in texts and q.gold & evidence
        ]
    random.Random(SEED).shuffle(found)
    return found[:HELD_OUT]


@dataclass(slots=True)
class Tally:
    """What some questions have cost."""

    asked: int = 0
    judged: int = 0
    found: int = 0
    shown: int = 0
    seconds: float = 0.0

    def add(self, world: World, question: Question, result: ExactResult, seconds: float) -> None:
        """Counts one search."""
        self.asked += 1
        self.judged += result.judged
        gold = world.gold(question)
        found = bool(gold & {page.node.id for page in result.pages})
        self.found += found
        self.shown += found or bool(gold & world.recalled)
        self.seconds += seconds

    def line(self, name: str) -> str:
        """For people."""
        return (
            f"# {name:<12} {self.asked} questions, {self.judged} judgements,"
            f" {self.found} found, {self.shown} with what recall shows, {self.seconds:.1f} s"
        )


def rounds(data: Path, judge: Judge, folder: Path) -> dict[str, float]:
    """All rounds, with one judge."""
    embeddings = EmbeddingCache()
    corpora = [c for c in locomo(data / "locomo_dev.json") if c.name in CONVERSATIONS]
    fresh = {c.name: World(folder / c.name, c, embeddings) for c in corpora}
    for world in fresh.values():
        world.fill()
    every = [q.text for c in corpora for q in c.questions]
    every += json.loads(PARAPHRASES.read_text("utf-8")).values() if PARAPHRASES.exists() else []
    embeddings.fill(every, "query")
    embeddings.fill(every, "passage")
    asked = chosen({name: gated(world) for name, world in fresh.items()})
    paraphrases = json.loads(PARAPHRASES.read_text("utf-8")) if PARAPHRASES.exists() else {}
    others = held_out(corpora, asked)
    copies = 0

    def once(world: World, text: str, question: Question, tally: Tally) -> ExactResult:
        started = time.perf_counter()
        result = world.ask(text, question, judge)
        tally.add(world, question, result, time.perf_counter() - started)
        return result

    def apart(worlds: dict[str, World], rows, tally: Tally) -> None:
        nonlocal copies
        for name, text, question in rows:
            copies += 1
            world = worlds[name].copy(folder / f"copy{copies}")
            once(world, text, question, tally)
            world.engine.close()
            shutil.rmtree(world.folder)

    before, first, again, other_words, after = (Tally() for _ in range(5))
    held = [(name, q.text, q) for name, q in others]
    apart(fresh, held, before)
    restated_first = 0
    for name, question in asked:
        judged = once(fresh[name], question.text, question, first).judged
        restated_first += judged if key_of(question.text) in paraphrases else 0
    apart(fresh, [(name, q.text, q) for name, q in asked], again)
    restated = [
        (name, paraphrases[key_of(q.text)], q) for name, q in asked if key_of(q.text) in paraphrases
    ]
    apart(fresh, restated, other_words)
    apart(fresh, held, after)
    for name, tally in (
        ("held before", before),
        ("first", first),
        ("again", again),
        ("paraphrased", other_words),
        ("held after", after),
    ):
        print(tally.line(name))
    for world in fresh.values():
        world.engine.close()
    return {
        "learning_questions": first.asked,
        "learning_first_judged": first.judged,
        "learning_first_found": first.found,
        "learning_paraphrase_found": other_words.found,
        "repeat_judge_ratio": again.judged / max(1, first.judged),
        "paraphrase_judge_ratio": other_words.judged / max(1, restated_first),
        "heldout_delta": (after.shown - before.shown) / max(1, after.asked),
    }


def measured(data: Path, judge: str) -> dict[str, float]:
    """With the judge of that name."""
    with tempfile.TemporaryDirectory(prefix="growbox-learning-") as folder:
        if judge == "gold":
            return rounds(data, gold_judge, Path(folder))
        with model_judge() as model:
            return rounds(data, model, Path(folder))


def run(data: Path, *, judge: str = "model") -> dict[str, float]:
    """All figures, by name."""
    return measured(data, judge)


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(prog="recall_learning", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=resources_path().parent.parent / "shared" / "data"
    )
    parser.add_argument("--judge", choices=("gold", "model"), default="model")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        print(f"There is no evaluation data at {arguments.data}; name its folder with --data.")
        return 0
    for name, value in run(arguments.data, judge=arguments.judge).items():
        print(f"{name}={value:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
