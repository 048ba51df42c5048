"""Search at 10,000 and 100,000 nodes: real vectors, perturbed, and texts of the same words; every mode, filtered too.

The rows are written into the tables as the product would have left them (writing 100,000 nodes one durable commit at a time
takes an hour and measures the disk); the rate at which the product itself takes nodes in is measured on 2,000 of them.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import psutil

from growbox_app.clock import SystemClock
from growbox_app.models.calibration import embedder_epoch
from memory.background import passages
from memory.config import MemoryConfig, RagMode, RestConfig, VectorConfig
from memory.engine import MemoryEngine
from memory.requests import EmbedKind, Matrix
from memory.storage.vector_index import HostState
from memory.storage.vectors import pack
from memory.text import normalise, terms
from memory.values import NodeDraft, NodeKind, RecallQuery, Role, Scope
from tests.benchmarks.recall_data import Corpus
from tests.benchmarks.recall_embeddings import EmbeddingCache
from tests.fakes.driver import drive
from tests.fakes.events import EventRecorder

SIZES = (10_000, 100_000)
QUESTIONS, TAKEN_IN = 150, 2_000
TURNS = 20  # of one conversation
_NOISE = 0.35  # of a unit vector: neighbours stay neighbours, none is a copy
_HOUR_MS = 3_600_000
_HOST_WAIT_S = 900.0


class _Known:
    """Vectors at hand, so that only the search is measured."""

    def __init__(self, cache: EmbeddingCache) -> None:
        self._cache = cache

    def embed(self, texts: tuple[str, ...], kind: EmbedKind) -> Matrix:
        return self._cache.embed(texts, kind)


class Scale:
    """A memory of so many nodes."""

    def __init__(self, folder: Path, corpora: Sequence[Corpus], nodes: int) -> None:
        self._folder = folder
        self._nodes = nodes
        self._random = random.Random(nodes)
        self._cache = EmbeddingCache()
        self._embedder = _Known(self._cache)
        self._texts = [p.text for c in corpora for p in c.passages]
        self._vectors = self._cache.matrix(self._texts, "passage")
        asked = [normalise(q.text) for c in corpora for q in c.questions]
        self._questions = self._random.sample(asked, min(QUESTIONS, len(asked)))
        self._cache.fill(self._questions, "query")
        self._now_ms = SystemClock().now_ms()

    def _open(self, mode: RagMode) -> MemoryEngine:
        config = MemoryConfig(
            vectors=VectorConfig(host=mode is not RagMode.LINEAR, rag_mode=mode),
            rest=RestConfig(texts_per_run=512),
        )
        return MemoryEngine.open(
            self._folder,
            config=config,
            clock=SystemClock(),
            sink=EventRecorder(),
            embedder=embedder_epoch(),
        )

    def measure(self, modes: Sequence[RagMode] = tuple(RagMode)) -> dict[str, float]:
        """All figures of this size."""
        name = f"{self._nodes // 1000}k"
        figures = {f"ingest_nodes_s_{name}": self._write()}
        process = psutil.Process()
        for mode in sorted(
            modes, key=lambda m: m is not RagMode.LINEAR
        ):  # before others have left room
            before = process.memory_info().rss
            engine = self._open(mode)
            if mode is not RagMode.LINEAR:
                self._fill_host(engine)
            for label, query in self._queries().items():
                times = self._ask(engine, query)
                key = f"{mode}{label}_{name}"
                figures[f"search_p50_ms_{key}"] = float(np.percentile(times, 50))
                figures[f"search_p99_ms_{key}"] = float(np.percentile(times, 99))
                print(f"# {key}: p50 {figures[f'search_p50_ms_{key}']:.1f} ms", flush=True)
            if mode is RagMode.LINEAR:
                figures[f"rss_mb_{name}"] = (process.memory_info().rss - before) / 1e6
            engine.close()
        figures[f"search_p99_ms_{name}"] = max(
            v for k, v in figures.items() if k.startswith("search_p99_ms_")
        )
        figures[f"disk_mb_{name}"] = (
            sum(f.stat().st_size for f in self._folder.rglob("*") if f.is_file()) / 1e6
        )
        return figures

    def _queries(self) -> dict[str, RecallQuery]:
        """The ways to ask: everything, one kind, one project, half the time, and all of these at once (a node of 300)."""
        return {
            "": RecallQuery(text=""),
            "_kind": RecallQuery(text="", kinds=frozenset({NodeKind.MESSAGE})),
            "_project": RecallQuery(text="", project_id=self._project, scope=Scope.PROJECT),
            "_dates": RecallQuery(text="", since_ms=self._now_ms - self._nodes // 2 * _HOUR_MS),
            "_few": RecallQuery(
                text="",
                kinds=frozenset({NodeKind.CHUNK}),
                project_id=self._project,
                scope=Scope.PROJECT,
                since_ms=self._now_ms - self._nodes // 10 * _HOUR_MS,
            ),
        }

    def _ask(self, engine: MemoryEngine, query: RecallQuery) -> list[float]:
        times = []
        for text in self._questions:
            self._cache.embed((text,), EmbedKind.QUERY)
            started = time.perf_counter()
            drive(engine.search(replace(query, text=text), limit=10), self._embedder)
            times.append((time.perf_counter() - started) * 1000)
        return times[len(times) // 10 :]  # the first ones load what a running program has loaded

    # --- writing

    def _write(self) -> float:
        """Fills the folder; nodes per second of the product's own way, indexing included, embedding not."""
        engine = self._open(RagMode.LINEAR)
        self._project = engine.open_project("/bench", "bench").id
        database = engine._stores.database
        conversation = None
        started = time.perf_counter()
        for i in range(TAKEN_IN):
            if i % TURNS == 0:
                conversation = engine.create_conversation().id
            engine.record(
                NodeDraft(
                    kind=NodeKind.MESSAGE,
                    role=Role.USER,
                    content=self._texts[i % len(self._texts)],
                    conversation_id=conversation,
                    created_at_ms=self._now_ms - (self._nodes - i) * _HOUR_MS,
                )
            )
        while drive(engine.digest(), self._embedder):
            pass
        rate = TAKEN_IN / (time.perf_counter() - started)
        engine._stores.vectors.put_background(self._cache.matrix(list(passages()), "passage"))
        database.execute("PRAGMA synchronous = OFF")
        for part in self._parts(TAKEN_IN):
            self._insert(engine, part)
        engine.close()
        return rate

    def _parts(self, first: int) -> Iterator[range]:
        for start in range(first, self._nodes, 2_000):
            yield range(start, min(start + 2_000, self._nodes))

    def _insert(self, engine: MemoryEngine, part: range) -> None:
        """Rows as the product leaves them: a tenth in a project, a third in chunks."""
        database, epoch = engine._stores.database, engine._stores.vectors._epoch_id
        rows = [self._random.randrange(len(self._texts)) for _ in part]
        noise = np.random.default_rng(part.start).standard_normal(
            (len(rows), self._vectors.shape[1])
        )
        noise *= _NOISE / np.linalg.norm(noise, axis=1, keepdims=True)
        vectors = self._vectors[rows] + noise.astype(np.float32)
        vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
        texts = [self._varied(row) for row in rows]
        indexed = [" ".join(terms(text)) for text in texts]
        near = [
            " ".join(
                (indexed[max(0, i - 1)] + " " + indexed[min(len(rows) - 1, i + 1)]).split()[:200]
            )
            for i in range(len(rows))
        ]
        with database.transaction():
            database.execute_many(
                "INSERT INTO nodes(seq, id, kind, role, content, created_at_ms, project_id, status,"
                " source_uri) VALUES(?, ?, ?, ?, ?, ?, ?, 'complete', ?)",
                [
                    (
                        seq + 1,
                        f"n-{seq:08}",
                        "chunk" if seq % 3 == 0 else "message",
                        "none" if seq % 3 == 0 else "user",
                        text,
                        self._now_ms - (self._nodes - seq) * _HOUR_MS,
                        self._project if seq % 10 == 0 else None,
                        f"file{seq // 60}" if seq % 3 == 0 else None,
                    )
                    for seq, text in zip(part, texts, strict=True)
                ],
            )
            keys = [(s + 1, own, n) for s, own, n in zip(part, indexed, near, strict=True)]
            database.execute_many("INSERT INTO lexical_text(seq, own, near) VALUES(?, ?, ?)", keys)
            database.execute_many("INSERT INTO lexical(rowid, own, near) VALUES(?, ?, ?)", keys)
            database.execute_many(
                "INSERT INTO vectors(epoch, seq, vector) VALUES(?, ?, ?)",
                [(epoch, s + 1, pack(v)) for s, v in zip(part, vectors, strict=True)],
            )

    def _varied(self, row: int) -> str:
        """A text with some words of another."""
        words, other = self._texts[row].split(), self._random.choice(self._texts).split()
        return " ".join(words[: max(3, len(words) * 2 // 3)] + other[: len(other) // 3])

    def _fill_host(self, engine: MemoryEngine) -> None:
        """Until Chroma holds every vector."""
        index, store = engine._stores.index, engine._stores.vectors
        index.start()
        pause, deadline = threading.Event(), time.monotonic() + _HOST_WAIT_S
        while store.lag() > 0 or index.state is not HostState.READY:
            index.poll()
            if not index.submit_gap():
                pause.wait(0.005)
            if time.monotonic() > deadline:
                raise RuntimeError("the vector host was not filled in time")
