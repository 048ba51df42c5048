"""`dev.py bench recall`: does the search find what answers the question? One `figure=value` line each, last.

Every set is written into a memory of its own through `MemoryEngine.record` and asked through `MemoryEngine.search`: what is
measured is the product. In the same run, on the same texts: plain BM25 over the product's own terms, the vectors alone, and
the fusion with one of its parts taken away (lines that begin with `#`). Vectors are kept between runs
(`recall_embeddings.py`); without the data a set is skipped in words.

Beside the order: what the gate knows of it (`recall_gate.py`), and what the exact layer learns (`recall_learning.py`).

`--data DIR` takes other files of the same shape, `--files a.json b.json` only these of the folder; files are known by their
content. `--quick` leaves out ablation, scale, and of learning the model's part.
"""

from __future__ import annotations

import argparse
import shutil
import statistics
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from growbox_app.clock import SystemClock
from growbox_app.models.calibration import embedder_epoch
from memory.config import MemoryConfig, RankingConfig, RestConfig, VectorConfig
from memory.engine import MemoryEngine
from memory.text import normalise
from memory.values import NodeDraft, NodeId, NodeKind, RecallQuery, Role
from tests.benchmarks.recall_baselines import bm25_ranking, vector_ranking
from tests.benchmarks.recall_data import Corpus, sets
from tests.benchmarks.recall_embeddings import EmbeddingCache
from tests.benchmarks.recall_gate import Gated, gate_figures
from tests.benchmarks.recall_learning import measured as learned
from tests.benchmarks.recall_scale import SIZES, Scale
from tests.fakes.driver import drive
from tests.fakes.events import EventRecorder

DEPTH = 20
UNANSWERABLE = "5"
"""The category of conversations' questions whose answer was never said: the gate has nothing to know there."""
CONFIG = MemoryConfig(vectors=VectorConfig(host=False), rest=RestConfig(texts_per_run=512))
ABLATION = {
    "without words": {"words": 0.0, "code_words": 0.0},
    "one weight for prose and code": {"code_words": RankingConfig().words},
    "without hub correction": {"hub": 0.0},
    "without neighbours": {"near": 0.0, "next_near": 0.0},
    "without session": {"around": 0.0},
    "without speaker": {"speaker": 0.0},
    "without asking": {"asking": 0.0},
    "without substance": {"substance": 0.0},
    "without spread": {"spread": 0.0},
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ranking:
    """What one way found for each question of a corpus: passage ids, best first."""

    corpus: Corpus
    found: list[list[str]]


class Store:
    """A corpus in a memory."""

    def __init__(self, folder: Path, corpus: Corpus, cache: EmbeddingCache) -> None:
        self.corpus = corpus
        self._folder = folder
        self._cache = cache
        self._ids: dict[NodeId, str] = {}
        engine = self._open(CONFIG)
        engine._stores.database.execute("PRAGMA synchronous = OFF")
        cache.fill([p.text for p in corpus.passages], "passage")
        cache.fill([normalise(q.text) for q in corpus.questions], "query")
        groups = {
            g: engine.create_conversation().id
            for g in dict.fromkeys(p.group for p in corpus.passages)
        }
        for passage in corpus.passages:
            message = corpus.kind is NodeKind.MESSAGE
            node = engine.record(
                NodeDraft(
                    kind=corpus.kind,
                    role=Role.USER if message else Role.NONE,
                    content=passage.text,
                    conversation_id=groups[passage.group] if message else None,
                    source_uri=None if message else passage.group or passage.id,
                    created_at_ms=passage.at_ms,
                )
            )
            self._ids[node.id] = passage.id
        while drive(engine.digest(), cache):
            pass
        engine.close()

    def _open(self, config: MemoryConfig) -> MemoryEngine:
        return MemoryEngine.open(
            self._folder,
            config=config,
            clock=SystemClock(),
            sink=EventRecorder(),
            embedder=embedder_epoch(),
        )

    def ranking(self, times: list[float], **changes: float) -> Ranking:
        """Asks every question; `times` takes the milliseconds of each, the question's embedding left out."""
        config = replace(CONFIG, ranking=replace(CONFIG.ranking, **changes))
        engine = self._open(config)
        found: list[list[str]] = []
        for question in self.corpus.questions:
            timed = _Timed(self._cache)
            started = time.perf_counter()
            pages = drive(engine.search(RecallQuery(text=question.text), limit=DEPTH), timed)
            times.append((time.perf_counter() - started - timed.seconds) * 1000)
            found.append([self._ids[page.node.id] for page in pages])
        engine.close()
        return Ranking(corpus=self.corpus, found=found)

    def recalled(self) -> tuple[list[Gated], dict[str, float]]:
        """What the gate says to each question; and of what may be shown how much was meant, and how much of that is shown."""
        engine = self._open(CONFIG)
        rows: list[Gated] = []
        sharp: list[float] = []
        full: list[float] = []
        for question in self.corpus.questions:
            result = drive(engine.recall(RecallQuery(text=question.text)), self._cache)
            right = sum(self._ids[page.node.id] in question.gold for page in result.pages)
            if result.pages:
                sharp.append(right / len(result.pages))
            full.append(right / len(question.gold))
            if question.category == UNANSWERABLE:
                continue
            rows.append(
                Gated(
                    certainty=result.certainty,
                    best_score=result.best_score,
                    passed=result.passed_gate,
                    shown=right > 0,
                )
            )
        engine.close()
        name = self.corpus.name
        return rows, {
            f"{name}_gate_precision": statistics.fmean(sharp) if sharp else 0.0,
            f"{name}_gate_recall": statistics.fmean(full),
        }


class _Timed:
    """Measures what embedding costs."""

    def __init__(self, cache: EmbeddingCache) -> None:
        self._cache = cache
        self.seconds = 0.0

    def embed(self, texts: tuple[str, ...], kind: object) -> object:
        started = time.perf_counter()
        matrix = self._cache.embed(texts, kind)  # type: ignore[arg-type]
        self.seconds += time.perf_counter() - started
        return matrix


# --- figures


def share_found(ranking: Ranking, depth: int) -> Iterator[tuple[str, float]]:
    """(category, share of the gold passages among the first `depth`) of each question."""
    for question, found in zip(ranking.corpus.questions, ranking.found, strict=True):
        yield question.category, len(question.gold.intersection(found[:depth])) / len(question.gold)


def reciprocal_rank(ranking: Ranking, depth: int = 10) -> float:
    """Mean of 1 / place of the first gold passage."""
    total = 0.0
    for question, found in zip(ranking.corpus.questions, ranking.found, strict=True):
        places = [i for i, name in enumerate(found[:depth], 1) if name in question.gold]
        total += 1 / places[0] if places else 0.0
    return total / len(ranking.found)


def conversation_figures(rankings: Sequence[Ranking], suffix: str = "") -> dict[str, float]:
    """rec@k and all@10 by category, and all@10 of sessions."""
    figures: dict[str, float] = {}
    for depth in (5, 10, 20):
        shares = [pair for r in rankings for pair in share_found(r, depth)]
        figures[f"locomo_rec{depth}{suffix}"] = statistics.fmean(s for _, s in shares)
        if depth == 10:
            by_category: dict[str, list[float]] = defaultdict(list)
            for category, share in shares:
                by_category[category].append(share)
            for category, values in sorted(by_category.items()):
                figures[f"locomo_cat{category}_rec10{suffix}"] = statistics.fmean(values)
                figures[f"locomo_cat{category}_all10{suffix}"] = statistics.fmean(
                    v == 1.0 for v in values
                )
    figures[f"locomo_session_all10{suffix}"] = statistics.fmean(
        all_ for r in rankings for all_ in _sessions(r)
    )
    return figures


def _sessions(ranking: Ranking) -> Iterator[bool]:
    """Whether the first ten distinct sessions hold all that the answer needs."""
    group = {p.id: p.group for p in ranking.corpus.passages}
    for question, found in zip(ranking.corpus.questions, ranking.found, strict=True):
        sessions = list(dict.fromkeys(group[name] for name in found))[:10]
        yield {group[name] for name in question.gold} <= set(sessions)


def passage_figures(ranking: Ranking, suffix: str = "") -> dict[str, float]:
    """R@1, R@5, R@10 and MRR@10 where one passage answers."""
    name = ranking.corpus.name
    figures = {
        f"{name}_r{depth}{suffix}": statistics.fmean(
            share > 0 for _, share in share_found(ranking, depth)
        )
        for depth in (1, 5, 10)
    }
    return figures | {f"{name}_mrr10{suffix}": reciprocal_rank(ranking)}


# --- the run


class Run:
    """Builds the stores of the sets that are there and measures them."""

    def __init__(self, folder: Path, *, quick: bool) -> None:
        self._folder = folder
        self._quick = quick
        self._cache = EmbeddingCache()
        self.figures: dict[str, float] = {}

    def measure(self, name: str, corpora: Sequence[Corpus]) -> None:
        """One set: fusion, baselines, ablation."""
        stores = [Store(self._folder / c.name, c, self._cache) for c in corpora]
        times: list[float] = []
        found = self._figures([s.ranking(times) for s in stores])
        print(f"# {name:10} {'fusion':30} {_main(found)}", flush=True)
        self.figures |= found
        self.figures[f"{name}_ms_p50"] = float(np.percentile(times, 50))
        self.figures[f"{name}_ms_p99"] = float(np.percentile(times, 99))
        words = [Ranking(corpus=c, found=bm25_ranking(c, DEPTH)) for c in corpora]
        self.figures |= self._figures(words, "_bm25")
        meaning = [Ranking(corpus=c, found=vector_ranking(c, self._cache, DEPTH)) for c in corpora]
        self.figures |= self._figures(meaning, "_vectors")
        asked = [s.recalled() for s in stores]
        self.figures |= gate_figures(name, [row for rows, _ in asked for row in rows])
        if len(stores) == 1:
            self.figures |= asked[0][1]
        if self._quick:
            return
        for label, changes in ABLATION.items():
            found = self._figures([s.ranking([], **changes) for s in stores])
            print(f"# {name:10} {label:30} {_main(found)}", flush=True)

    def scale(self, found: Mapping[str, Sequence[Corpus]]) -> None:
        """Speed, memory and disk of large memories made of the conversations and sentences."""
        corpora = [*found["locomo"], *found["cmrc_sent"]]
        for nodes in SIZES if corpora else ():
            folder = self._folder / f"scale{nodes}"
            self.figures |= Scale(folder, corpora, nodes).measure()
            shutil.rmtree(folder, ignore_errors=True)

    def _figures(self, rankings: Sequence[Ranking], suffix: str = "") -> dict[str, float]:
        if rankings[0].corpus.kind is NodeKind.MESSAGE:
            return conversation_figures(rankings, suffix)
        return passage_figures(rankings[0], suffix)


def _main(figures: dict[str, float]) -> str:
    """The figures a reader compares."""
    shown = ("locomo_rec10", "locomo_cat1_all10", "_r5", "_mrr10")
    return " ".join(f"{k}={v:.3f}" for k, v in figures.items() if k.endswith(shown))


def chosen(data: Path, files: Sequence[str] | None) -> list[Path]:
    """The files to measure with; says so where there are none."""
    paths = sorted(data.glob("*.json")) if files is None else [data / f for f in files]
    missing = [p for p in paths if not p.exists()]
    if missing or not paths:
        print(f"# skipped: no {', '.join(p.name for p in missing) or 'data'} in {data}")
    return [p for p in paths if p.exists()]


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(prog="bench recall")
    parser.add_argument("--data", type=Path, default=Path("../shared/data"))
    parser.add_argument("--files", nargs="*", default=None)
    parser.add_argument("--quick", action="store_true")
    options = parser.parse_args()
    folder = Path(tempfile.mkdtemp(prefix="growbox-recall-"))
    try:
        run = Run(folder, quick=options.quick)
        found = sets(chosen(options.data, options.files))
        for name, corpora in found.items():
            if corpora:
                run.measure(name, corpora)
        if found["locomo"]:
            run.figures |= learned(
                found["locomo"], ("gold",) if options.quick else ("gold", "model")
            )
        if not options.quick:
            run.scale(found)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    for figure, value in run.figures.items():
        print(f"{figure}={value:.4f}")


if __name__ == "__main__":
    main()
