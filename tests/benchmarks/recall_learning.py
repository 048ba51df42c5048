"""What the exact layer learns: judge calls of a question the first time, again, and in other words; and what that does to others.

*The set.* All answerable questions of two LoCoMo conversations that fall through the gate (`RecallResult.passed_gate`); 40 of
them by a fixed seed; at most 16 judgements each. A search is what the application does: the question is recorded, recalled, and
searched exactly, whatever recall shows. Repeats and paraphrases are each asked of a copy of the folder as it was after the
first round. 24 held-out questions that share evidence with the 40 are asked, each of a fresh copy, before and after learning;
one counts as found when recall or the exact layer shows its evidence.

*The other set.* The same with the other conversations of the file. The limits of learning (`LearningConfig`, `ExactConfig`) were
chosen on the first set alone: figures that end in `_other` say whether they carry over. One rule was found on it: names are
compared by their first letters, so that "American" is "America" (`memory.recall.wording`).

*The judges.* `gold` takes the verdicts from the evidence (figures with `_gold`), `model` is the light model. The paraphrases
are ours, keyed by the hash of the question they restate.

Figures: `repeat_judge_ratio`, `paraphrase_judge_ratio` (judgements against the first time), `heldout_delta` (share of held-out
questions found, after minus before); and of each round `learning_<round>_calls`, `_found`, `_seconds`, with the model `_tokens`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import shutil
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from growbox_app.paths import resources_path
from memory.text import normalise
from tests.benchmarks.recall_data import Corpus, Question
from tests.benchmarks.recall_data import sets as all_sets
from tests.benchmarks.recall_embeddings import EmbeddingCache
from tests.benchmarks.recall_learning_world import GoldJudge, Judge, World, model_judge

CONVERSATIONS = ("conv-26", "conv-30")
QUESTIONS, HELD_OUT, SEED = 40, 24, 20
CATEGORIES = ("1", "2", "3", "4")  # the fifth has no answer
PARAPHRASES = Path(__file__).with_name("recall_learning_paraphrases.json")
JUDGES = ("gold", "model")


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A question of a conversation, and the words it is asked in."""

    world: str
    text: str
    question: Question


def key_of(text: str) -> str:
    """By which a paraphrase finds its question."""
    return hashlib.blake2b(text.encode(), digest_size=8).hexdigest()


@cache
def paraphrases() -> dict[str, str]:
    """By the key of the question."""
    return dict(json.loads(PARAPHRASES.read_text("utf-8")))


def mixed(rows: Sequence[Asked]) -> list[Asked]:
    """In a fixed random order, in which one question more or less moves no other."""
    return sorted(rows, key=lambda row: key_of(f"{SEED} {row.world} {row.text}"))


def falling(worlds: dict[str, World]) -> list[Asked]:
    """All questions with an answer that fall through the gate."""
    return [
        Asked(world=name, text=question.text, question=question)
        for name, world in worlds.items()
        for question in world.corpus.questions
        if question.category in CATEGORIES and not world.recalled(question.text).passed_gate
    ]


def held_out(worlds: dict[str, World], asked: Sequence[Asked]) -> list[Asked]:
    """Other questions on the evidence of those asked."""
    taken = {row.text for row in asked}
    evidence = {(row.world, gold) for row in asked for gold in row.question.gold}
    found = [
        Asked(world=name, text=question.text, question=question)
        for name, world in worlds.items()
        for question in world.corpus.questions
        if question.category in CATEGORIES
        and question.text not in taken
        and any((name, gold) in evidence for gold in question.gold)
    ]
    return mixed(found)[:HELD_OUT]


@dataclass(slots=True)
class Tally:
    """What the questions of a round have cost. `seconds` are those of the searches and of the judgements, kept ones included."""

    asked: int = 0
    calls: int = 0
    found: int = 0
    shown: int = 0
    tokens: int = 0
    seconds: float = 0.0

    def line(self, name: str) -> str:
        """For people."""
        return (
            f"# {name:<12} {self.asked} questions, {self.calls} judge calls, {self.tokens} tokens,"
            f" {self.seconds:.1f} s; {self.found} found, {self.shown} with what recall shows"
        )


class Rounds:
    """All rounds with one set and one judge."""

    def __init__(
        self, folder: Path, corpora: Sequence[Corpus], judge: Judge, embeddings: EmbeddingCache
    ) -> None:
        self._folder = folder
        self._judge = judge
        self._copies = 0
        _embed(corpora, embeddings)
        self._worlds = {c.name: World(folder / c.name, c, embeddings) for c in corpora}
        for world in self._worlds.values():
            world.fill()

    def run(self) -> dict[str, float]:
        """The figures, without their suffix."""
        fall = falling(self._worlds)
        asked = mixed(fall)[:QUESTIONS]
        known = [row for row in asked if key_of(row.text) in paraphrases()]
        restated = [
            Asked(world=row.world, text=paraphrases()[key_of(row.text)], question=row.question)
            for row in known
        ]
        held = held_out(self._worlds, asked)
        before = self._apart("before", held)
        first, calls = self._first(asked)
        again = self._apart("again", asked)
        other_words = self._apart("paraphrase", restated)
        after = self._apart("after", held)
        rounds = {"first": first, "again": again, "paraphrase": other_words}
        for world in self._worlds.values():
            world.engine.close()
        figures: dict[str, float] = {
            "learning_fall": len(fall),
            "learning_questions": len(asked),
            "learning_paraphrases": len(restated),
            "repeat_judge_ratio": again.calls / max(1, first.calls),
            "paraphrase_judge_ratio": other_words.calls / max(1, sum(calls[r.text] for r in known)),
            "heldout_delta": (after.shown - before.shown) / max(1, after.asked),
            "heldout_questions": after.asked,
        }
        for name, tally in rounds.items():
            figures |= {
                f"learning_{name}_calls": tally.calls,
                f"learning_{name}_found": tally.found,
                f"learning_{name}_seconds": tally.seconds,
            }
            if tally.tokens:
                figures[f"learning_{name}_tokens"] = tally.tokens
        return figures

    def _first(self, rows: Sequence[Asked]) -> tuple[Tally, dict[str, int]]:
        """One after another, in one folder; also the judge calls of each question."""
        tally = Tally()
        calls: dict[str, int] = {}
        for row in rows:
            spent = tally.calls
            self._ask(self._worlds[row.world], row, tally)
            calls[row.text] = tally.calls - spent
        print(tally.line("first"), flush=True)
        return tally, calls

    def _apart(self, name: str, rows: Sequence[Asked]) -> Tally:
        """Each of a copy of the folder as it is now."""
        tally = Tally()
        for row in rows:
            self._copies += 1
            world = self._worlds[row.world].copy(self._folder / f"copy{self._copies}")
            self._ask(world, row, tally)
            world.engine.close()
            shutil.rmtree(world.folder)
        print(tally.line(name), flush=True)
        return tally

    def _ask(self, world: World, row: Asked, tally: Tally) -> None:
        spent = self._judge.spent
        passes, tokens, searched_s = spent.passes, spent.tokens, world.search_s
        shown, result = world.ask(row.text, row.question, self._judge)
        gold = world.gold(row.question)
        found = bool(gold & {page.node.id for page in result.pages})
        tally.asked += 1
        tally.calls += result.judged
        tally.found += found
        tally.shown += found or bool(gold & shown)
        tally.tokens += spent.tokens - tokens
        tally.seconds += (spent.passes - passes) * self._judge.seconds_each
        tally.seconds += world.search_s - searched_s


def _embed(corpora: Sequence[Corpus], embeddings: EmbeddingCache) -> None:
    """All at once: one start of the model."""
    questions = [q.text for c in corpora for q in c.questions]
    questions += [paraphrases()[k] for q in questions if (k := key_of(q)) in paraphrases()]
    embeddings.fill([normalise(text) for text in questions], "query")
    embeddings.fill([*questions, *(p.text for c in corpora for p in c.passages)], "passage")


def measured(corpora: Sequence[Corpus], judges: Sequence[str]) -> dict[str, float]:
    """Both sets with each of the judges; a set without conversations is left out."""
    by_set = {
        "": [c for c in corpora if c.name in CONVERSATIONS],
        "_other": [c for c in corpora if c.name not in CONVERSATIONS],
    }
    embeddings = EmbeddingCache()
    figures: dict[str, float] = {}
    for judge in judges:
        suffix = "_gold" if judge == "gold" else ""
        for name, chosen in by_set.items():
            if chosen:
                print(f"# learning, {judge} judge, {', '.join(c.name for c in chosen)}")
                found = _with_judge(judge, chosen, embeddings)
                figures |= {f"{key}{name}{suffix}": value for key, value in found.items()}
    return figures


def _with_judge(
    judge: str, corpora: Sequence[Corpus], embeddings: EmbeddingCache
) -> dict[str, float]:
    with tempfile.TemporaryDirectory(prefix="growbox-learning-") as folder:
        if judge == "gold":
            return Rounds(Path(folder), corpora, GoldJudge(), embeddings).run()
        with model_judge() as model:
            return Rounds(Path(folder), corpora, model, embeddings).run()


def main() -> int:
    """Prints the figures."""
    parser = argparse.ArgumentParser(prog="recall_learning", description=__doc__)
    parser.add_argument(
        "--data", type=Path, default=resources_path().parent.parent / "shared" / "data"
    )
    parser.add_argument("--judge", nargs="+", choices=JUDGES, default=list(JUDGES))
    parser.add_argument("--only", nargs="+", help="only these conversations")
    arguments = parser.parse_args()
    if not arguments.data.is_dir():
        print(f"There is no evaluation data at {arguments.data}; name its folder with --data.")
        return 0
    corpora = all_sets(sorted(arguments.data.glob("*.json")))["locomo"]
    if arguments.only:
        corpora = [c for c in corpora if c.name in arguments.only]
    for name, value in measured(corpora, arguments.judge).items():
        print(f"{name}={value:.4f}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
