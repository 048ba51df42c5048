"""What sleep pays, finds and saves, on a ledger of 100 debts from LoCoMo dev with at most 800 unread (question, node) pairs.

Each debt is what a jump leaves: a question of two conversations (fixed seed), and eight places between the note where the jump
started and the one where it landed. Every other gap lies around a note that answers the question, the rest anywhere. Then it
sleeps once, until it ends by itself. Before and after it, each on a fresh copy of the folder: 12 of the questions asked again
("later"), and as many others that share evidence with them (held out), with a budget of 16 judgements.

Figures: `debts_paid_per_min`, `discovery_precision` (share of the finds that are gold evidence), `judge_calls_before` and `_after`
(judgements per later question), `heldout_delta` (share of held-out questions whose evidence is shown, after minus before: the harm
test). `--judge gold` takes the verdicts from the evidence, `model` from the light model. `debts_put_aside` are those of which the judge
was not sure of everything, not even at a second look (`second_looks`, how many of them got an answer, and how many of those were
right); `debts_left` are still owed, and must be none. What a judgement takes is measured on some that are read anew, so that
readings kept from an earlier run make no minute shorter. Then the later questions are asked in the folders themselves, the flywheel turns
until it draws no more conclusions from them, and the held-out ones are asked once more: `conclusions`, `conclusions_delta`.
`sleep_tokens` is what the judge read for the sleep (a reading kept from an earlier run costs nothing anew, but is counted).

`ttft_sleep_extra_s`: the whole application with the light model, asked while it sleeps and while it is idle, in turn (median of
`--turns`): how much later its first word comes. `--part ledger` and `--part ttft` run one of the two alone.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from growbox_app.paths import resources_path
from memory.recall.pointer_walk import Question as Posed
from memory.recall.recent_queries import embedded
from memory.requests import Judgement, NeedVerdicts, Operation, Verdict
from memory.rest_values import Cause, JournalFilter, RestOutcome, SleepReport
from memory.storage.learning_log import Reading, query_key
from memory.text import normalise
from memory.values import NodeId
from tests.benchmarks.recall_data import Corpus, Question, locomo
from tests.benchmarks.recall_embeddings import EmbeddingCache
from tests.benchmarks.recall_learning import CATEGORIES, CONVERSATIONS, Asked, Tally, held_out
from tests.benchmarks.recall_learning_world import GoldJudge, Judge, World, model_judge
from tests.e2e.program import ROOT, environment, use_light_model

TURNS, TURN_S = 20, 60.0
DEBTS, GAP, LATER, SEED = 100, 8, 12, 7


@dataclass(frozen=True, slots=True)
class Sizes:
    """How many debts are made, and how many questions are asked again, of each kind."""

    debts: int = DEBTS
    later: int = LATER


FULL = Sizes()


@dataclass(frozen=True, slots=True)
class Owed:
    """A debt that was made: the question, and between which places."""

    name: str
    question: Question
    entry: int
    target: int


def owe(worlds: dict[str, World], count: int) -> list[Owed]:
    """Writes the debts into the ledgers, as jumps leave them."""
    chance = random.Random(SEED)
    rows = [
        (name, q)
        for name in sorted(worlds)
        for q in worlds[name].corpus.questions
        if q.category in CATEGORIES
    ]
    chance.shuffle(rows)
    made: list[Owed] = []
    taken: set[tuple[str, int]] = set()
    for name, question in rows:
        if len(made) == count:
            break
        debt = _placed(worlds[name], name, question, chance, near=len(made) % 2 == 0)
        if debt is not None and (name, debt.target) not in taken:
            taken.add((name, debt.target))
            made.append(debt)
            _jump(worlds[name], debt)
    return made


def _placed(
    world: World, name: str, question: Question, chance: random.Random, *, near: bool
) -> Owed | None:
    last = len(world.ids)
    gold = [
        node.seq for node in (world.engine.node(i) for i in sorted(world.gold(question))) if node
    ]
    low = (
        chance.choice(gold) - chance.randint(1, GAP) if near else chance.randint(1, last - GAP - 1)
    )
    if low < 1 or low + GAP + 1 > last:
        return None
    return Owed(name, question, entry=low + GAP + 1, target=low)


def _jump(world: World, debt: Owed) -> None:
    """What a search that jumped from the entry to the target has learned."""
    vector = world.drive(_embedded(world, debt.question.text), None)
    world.engine._learning.read(
        Posed(text=normalise(debt.question.text), vector=vector),
        cluster=None,
        sources=(),
        found=(),
        reading=Reading(light=(debt.target,), fragments=((debt.entry, debt.target),)),
        cause=Cause.SEARCH,
    )


def _embedded(world: World, text: str) -> Operation[object]:
    engine = world.engine
    return (yield from embedded(text, engine._recaller.recent, engine._stores.epoch.dimension))


@dataclass(slots=True)
class Second:
    """Second looks: how many, how many were answered, and rightly. Their texts are the only ones of several lines."""

    looks: int = 0
    answers: int = 0
    right: int = 0

    def count(
        self, request: NeedVerdicts, judgement: Judgement | None, gold: frozenset[NodeId]
    ) -> None:
        """One batch."""
        verdicts = () if judgement is None else judgement.verdicts
        for (node_id, text), verdict in zip(request.candidates, verdicts, strict=False):
            if "\n" in text:
                self.looks += 1
                self.answers += verdict is not Verdict.UNKNOWN
                self.right += verdict is (Verdict.YES if node_id in gold else Verdict.NO)


class Sleepers:
    """All worlds asleep, one after the other, and what that came to."""

    def __init__(self, worlds: dict[str, World], judge: Judge) -> None:
        self._worlds = worlds
        self._judge = judge
        self.seconds = 0.0
        self.reports: list[SleepReport] = []
        self.second = Second()

    def sleep(self) -> None:
        """Each until it ends by itself."""
        for world in self._worlds.values():
            answers = {query_key(q.text): world.gold(q) for q in world.corpus.questions}

            def judge(
                request: NeedVerdicts,
                _gold: frozenset[NodeId],
                known: dict[str, frozenset[NodeId]] = answers,
            ) -> Judgement | None:
                gold = known.get(query_key(request.query), frozenset())
                judgement = self._judge(request, gold)
                self.second.count(request, judgement, gold)
                return judgement

            passes, own_s = self._judge.spent.passes, world.search_s
            self.reports.append(world.drive(world.engine.sleep(), judge))
            passes = self._judge.spent.passes - passes
            self.seconds += world.search_s - own_s + passes * self._judge.seconds_each

    def total(self, name: str) -> int:
        """One number of all reports."""
        return sum(getattr(report, name) for report in self.reports)


def finds(worlds: dict[str, World]) -> tuple[int, int]:
    """Discoveries of dreams and rehearsals, and how many of them are gold evidence."""
    found = right = 0
    for world in worlds.values():
        answers = {query_key(q.text): world.gold(q) for q in world.corpus.questions}
        for entry in world.engine.journal(JournalFilter(limit=100_000, finds_only=True)).entries:
            gold = answers.get(query_key(entry.question), frozenset())
            found += len(entry.yes)
            right += sum(node.node_id in gold for node in entry.yes)
    return found, right


def asked_apart(
    worlds: dict[str, World], rows: Sequence[Asked], judge: Judge, folder: Path
) -> Tally:
    """Each question of a fresh copy of its world. `shown` counts those whose evidence the search or the judge brings."""
    tally = Tally()
    for row in rows:
        world = worlds[row.world].copy(folder / "copy")
        started, tokens = time.perf_counter(), judge.spent.tokens
        shown, result = world.ask(row.text, row.question, judge)
        gold = world.gold(row.question)
        found = bool(gold & {page.node.id for page in result.pages})
        tally.asked += 1
        tally.calls += result.judged
        tally.found += found
        tally.shown += found or bool(gold & shown)
        tally.tokens += judge.spent.tokens - tokens
        tally.seconds += time.perf_counter() - started
        world.engine.close()
        shutil.rmtree(world.folder)
    return tally


def concluded(worlds: dict[str, World], later: Sequence[Asked], judge: Judge) -> int:
    """Asks, and lets the flywheel draw its conclusions from the answers; how many it drew."""
    for row in later:
        worlds[row.world].ask(row.text, row.question, judge)
    made = 0
    for world in worlds.values():
        idle = 0
        while idle < len(world.engine.goals()):
            report = world.drive(world.engine.flywheel(), judge, frozenset())
            made += report.knowledge_id is not None
            idle = 0 if report.outcome is RestOutcome.DONE else idle + 1
        while world.drive(world.engine.digest(), None):
            pass
    return made


def unread(worlds: dict[str, World]) -> int:
    """(question, node) pairs that are owed."""
    return sum(d.remaining for w in worlds.values() for d in w.engine.ledger().open)


def rounds(data: Path, judge: Judge, folder: Path, sizes: Sizes) -> dict[str, float]:
    """Owes, asks, sleeps, asks again."""
    embeddings = EmbeddingCache()
    corpora: list[Corpus] = [c for c in locomo(data / "locomo_dev.json") if c.name in CONVERSATIONS]
    worlds = {c.name: World(folder / c.name, c, embeddings) for c in corpora}
    for world in worlds.values():
        world.fill()
    every = [q.text for c in corpora for q in c.questions]
    embeddings.fill(every, "query")
    debts = owe(worlds, sizes.debts)
    pairs = unread(worlds)
    asked = [Asked(world=d.name, text=d.question.text, question=d.question) for d in debts]
    later = random.Random(SEED).sample(asked, min(sizes.later, len(asked)))
    others = held_out(worlds, asked)[: sizes.later]
    before = asked_apart(worlds, later, judge, folder)
    held_before = asked_apart(worlds, others, judge, folder)
    sleepers = Sleepers(worlds, judge)
    tokens = judge.spent.tokens
    sleepers.sleep()
    tokens = judge.spent.tokens - tokens
    found, right = finds(worlds)
    after = asked_apart(worlds, later, judge, folder)
    held_after = asked_apart(worlds, others, judge, folder)
    conclusions = concluded(worlds, later, judge)
    held_concluded = asked_apart(worlds, others, judge, folder)
    print(f"# {len(debts)} debts, {pairs} unread pairs; sleep: {sleepers.reports}")
    for name, tally in (
        ("later before", before),
        ("later after", after),
        ("held before", held_before),
        ("held after", held_after),
        ("concluded", held_concluded),
    ):
        print(tally.line(name))
    ledgers = [world.engine.ledger() for world in worlds.values()]
    for world in worlds.values():
        world.engine.close()
    return {
        "debts_paid_per_min": sleepers.total("cleared") / max(1e-9, sleepers.seconds / 60),
        "debts_put_aside": sum(len(w.unclear) for w in ledgers),
        "unclear_notes": sum(w.unclear_notes for w in ledgers),
        "debts_left": sum(len(w.open) for w in ledgers),
        "second_looks": sleepers.second.looks,
        "second_answers": sleepers.second.answers,
        "second_right": sleepers.second.right,
        "sleep_judged": sleepers.total("judged"),
        "sleep_tokens": tokens,
        "discoveries": found,
        "discovery_precision": right / max(1, found),
        "judge_calls_before": before.calls / max(1, before.asked),
        "judge_calls_after": after.calls / max(1, after.asked),
        "heldout_delta": (held_after.shown - held_before.shown) / max(1, held_after.asked),
        "conclusions": conclusions,
        "conclusions_delta": (held_concluded.shown - held_after.shown) / max(1, held_after.asked),
    }


def run(data: Path, *, judge: str = "model", sizes: Sizes = FULL) -> dict[str, float]:
    """All figures, by name."""
    with tempfile.TemporaryDirectory(prefix="growbox-rest-") as folder:
        if judge == "gold":
            return rounds(data, GoldJudge(), Path(folder), sizes)
        with model_judge() as model:
            return rounds(data, model, Path(folder), sizes)


def first_words(turns: int) -> dict[str, float]:
    """Time to first token asleep and idle, measured in a process of its own."""
    with tempfile.TemporaryDirectory(prefix="growbox-rest-") as folder:
        data = Path(folder) / "data"
        quiet = {"rest.enabled": False, "memory.search_past": False, "models.answer_tokens": 8}
        use_light_model(data, **quiet)
        done = subprocess.run(
            [sys.executable, "-m", "tests.benchmarks.rest_live", str(turns)],
            cwd=ROOT,
            env=environment(data),
            capture_output=True,
            text=True,
            timeout=TURN_S * (turns + 4),
            check=False,
        )
    print("".join(f"# {line}\n" for line in done.stderr.splitlines() if "asleep" in line), end="")
    if done.returncode:
        raise SystemExit(done.stderr[-2000:])
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(prog="rest", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=resources_path().parent.parent / "shared" / "data"
    )
    parser.add_argument("--judge", choices=("gold", "model"), default="model")
    parser.add_argument("--part", choices=("all", "ledger", "ttft"), default="all")
    parser.add_argument("--turns", type=int, default=TURNS)
    parser.add_argument("--debts", type=int, default=DEBTS)
    parser.add_argument("--later", type=int, default=LATER)
    arguments = parser.parse_args()
    figures: dict[str, float] = {}
    if arguments.part != "ttft" and not arguments.data.is_dir():
        print(f"There is no evaluation data at {arguments.data}; name its folder with --data.")
    elif arguments.part != "ttft":
        sizes = Sizes(debts=arguments.debts, later=arguments.later)
        figures |= run(arguments.data, judge=arguments.judge, sizes=sizes)
    if arguments.part != "ledger":
        figures |= first_words(arguments.turns)
    for name, value in figures.items():
        print(f"{name}={value:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
