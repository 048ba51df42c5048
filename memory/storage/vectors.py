"""Embeddings as float16 blobs in `timeline.db`, and the exact scan over them.

The blobs are what Chroma is rebuilt from, so nothing is ever embedded twice. `vectors.id` ascends in the order of storing;
an epoch's `high_water` is the last id that the vector host has acknowledged. `embed_queue` lists the nodes that still wait;
node, queue entry and later blob change in transactions, so a crash loses no node and embeds none twice.
"""

# ruff: noqa: S608 - only constants and "?" marks are put together here; values are always bound.

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from memory.background import BACKGROUND_VERSION
from memory.config import VectorConfig
from memory.errors import require
from memory.storage.database import Database
from memory.storage.selection import EVERYTHING
from memory.storage.timeline import EMBEDDABLE, Timeline
from memory.values import EmbedderEpoch, Selection

Vector: TypeAlias = NDArray[np.float32]
_WIDE = 10  # times the wanted rows are looked through for those of a selection
Scored: TypeAlias = tuple[int, float]  # sequence number, cosine


def pack(vector: Vector) -> bytes:
    """float32[d] to little-endian float16 bytes."""
    return vector.astype("<f2").tobytes()


def unpack(blob: bytes) -> Vector:
    """The inverse, up to float16 rounding."""
    return np.frombuffer(blob, dtype="<f2").astype(np.float32)


def calibrated(cosine: float, epoch: EmbedderEpoch) -> float:
    """Similarity of a question and a passage, 0..1. Source: design 4.4 "Calibration"."""
    return _scaled(cosine, epoch.floor, epoch.ceiling)


def calibrated_questions(cosine: float, epoch: EmbedderEpoch) -> float:
    """Similarity of two questions, 0..1: what edges, vetoes and merges of K samples compare."""
    return _scaled(cosine, epoch.question_floor, epoch.question_ceiling)


def _scaled(cosine: float, floor: float, ceiling: float) -> float:
    return min(1.0, max(0.0, (cosine - floor) / (ceiling - floor)))


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredVector:
    """A blob with its place in the order of storing."""

    id: int
    seq: int
    vector: Vector


class VectorStore:
    """Blobs and queue of one embedder epoch."""

    def __init__(self, database: Database, epoch: EmbedderEpoch) -> None:
        require(epoch.ceiling > epoch.floor, "an embedder's ceiling must be above its floor")
        require(epoch.question_ceiling > epoch.question_floor, "the same holds for questions")
        self._db = database
        self.epoch = epoch
        self._epoch_id = self._open_epoch()

    def _open_epoch(self) -> int:
        """Finds or makes the epoch; for a new one every node waits to be embedded."""
        with self._db.transaction():
            row = self._db.row(
                "SELECT id, dimension FROM epochs WHERE name = ?", (self.epoch.name,)
            )
            if row is not None:
                require(
                    row["dimension"] == self.epoch.dimension, "one epoch name with two dimensions"
                )
                epoch_id = int(row["id"])
            else:
                cursor = self._db.execute(
                    "INSERT INTO epochs(name, dimension) VALUES(?, ?)",
                    (self.epoch.name, self.epoch.dimension),
                )
                epoch_id = int(cursor.lastrowid or 0)
            if self._db.meta("embed_epoch") != self.epoch.name:
                self._db.execute("DELETE FROM embed_queue")
                self._enqueue_missing(epoch_id)
                self._db.set_meta("embed_epoch", self.epoch.name)
        return epoch_id

    def _enqueue_missing(self, epoch_id: int) -> int:
        return self._db.execute(
            f"INSERT OR IGNORE INTO embed_queue(seq) SELECT n.seq FROM nodes n WHERE {EMBEDDABLE}"
            " AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.epoch = ? AND v.seq = n.seq)",
            (epoch_id,),
        ).rowcount

    # --- queue

    def enqueue(self, seq: int) -> None:
        """A node waits to be embedded (if it may be)."""
        self._db.execute(
            f"INSERT OR IGNORE INTO embed_queue(seq) SELECT n.seq FROM nodes n WHERE n.seq = ? AND {EMBEDDABLE}",
            (seq,),
        )

    def waiting(self, limit: int) -> list[tuple[int, str]]:
        """(seq, text) of the next nodes to embed, newest first: what was just said is asked for soonest."""
        rows = self._db.rows(
            "SELECT q.seq, CASE n.context WHEN '' THEN n.content ELSE n.context || char(10) || n.content END FROM embed_queue q JOIN nodes n ON n.seq = q.seq"
            " ORDER BY q.seq DESC LIMIT ?",
            (limit,),
        )
        return [(int(r[0]), str(r[1])) for r in rows]

    def waiting_count(self) -> int:
        """How many wait."""
        return self._db.number("SELECT count(*) FROM embed_queue")

    def unqueued_count(self) -> int:
        """Nodes that have neither blob nor queue entry, and entries that cannot be embedded (audit)."""
        missing = self._db.number(
            f"SELECT count(*) FROM nodes n WHERE {EMBEDDABLE}"
            " AND NOT EXISTS (SELECT 1 FROM vectors v WHERE v.epoch = ? AND v.seq = n.seq)"
            " AND NOT EXISTS (SELECT 1 FROM embed_queue q WHERE q.seq = n.seq)",
            (self._epoch_id,),
        )
        stray = self._db.number(
            "SELECT count(*) FROM embed_queue q WHERE NOT EXISTS"
            f" (SELECT 1 FROM nodes n WHERE n.seq = q.seq AND {EMBEDDABLE})"
        )
        return missing + stray

    def repair_queue(self) -> int:
        """Enqueues nodes that have neither blob nor queue entry, drops entries that cannot be embedded (audit)."""
        with self._db.transaction():
            dropped = self._db.execute(
                "DELETE FROM embed_queue WHERE NOT EXISTS (SELECT 1 FROM nodes n"
                f" WHERE n.seq = embed_queue.seq AND {EMBEDDABLE})"
            ).rowcount
            return dropped + self._enqueue_missing(self._epoch_id)

    # --- blobs

    def put(self, seqs: Sequence[int], matrix: NDArray[np.float32]) -> None:
        """Stores float32[n, dimension] for n nodes and takes them off the queue, in one transaction.

        A node that was forgotten while its text was being embedded gets none.
        """
        require(matrix.shape == (len(seqs), self.epoch.dimension), "vectors of a wrong shape")
        require(bool(np.isfinite(matrix).all()), "vectors that are not finite")
        with self._db.transaction():
            self._db.execute_many(
                "INSERT OR IGNORE INTO vectors(epoch, seq, vector) SELECT ?1, ?2, ?3"
                " WHERE EXISTS (SELECT 1 FROM nodes WHERE seq = ?2 AND deleted_at_ms IS NULL)",
                [(self._epoch_id, seq, pack(row)) for seq, row in zip(seqs, matrix, strict=True)],
            )
            self._db.execute_many("DELETE FROM embed_queue WHERE seq = ?", [(s,) for s in seqs])

    def after(self, stored_id: int, limit: int) -> list[StoredVector]:
        """The next blobs in the order of storing."""
        rows = self._db.rows(
            "SELECT id, seq, vector FROM vectors WHERE +epoch = ? AND id > ? ORDER BY id LIMIT ?",
            (self._epoch_id, stored_id, limit),
        )
        return [StoredVector(id=r[0], seq=r[1], vector=unpack(r[2])) for r in rows]

    def sample(self, up_to_id: int, limit: int) -> list[StoredVector]:
        """A few blobs stored up to an id: the oldest and the newest of them."""
        half = limit // 2
        rows = self._db.rows(
            "SELECT id, seq, vector FROM ("
            "  SELECT * FROM (SELECT * FROM vectors WHERE epoch = ?1 AND id <= ?2 ORDER BY id LIMIT ?3)"
            "  UNION SELECT * FROM (SELECT * FROM vectors WHERE epoch = ?1 AND id <= ?2"
            "   ORDER BY id DESC LIMIT ?3)) ORDER BY id",
            (self._epoch_id, up_to_id, half),
        )
        return [StoredVector(id=r[0], seq=r[1], vector=unpack(r[2])) for r in rows]

    def of(self, seqs: Sequence[int]) -> dict[int, Vector]:
        """Blobs by sequence number."""
        marks = ",".join("?" * len(seqs))
        rows = self._db.rows(
            f"SELECT seq, vector FROM vectors WHERE epoch = ? AND seq IN ({marks})",
            (self._epoch_id, *seqs),
        )
        return {int(r[0]): unpack(r[1]) for r in rows}

    def spread(self, first_rows: int, limit: int) -> dict[int, Vector]:
        """Blobs spread evenly over the first so many rows, by sequence number."""
        bounds = self._db.row(
            "SELECT min(id), max(id) FROM (SELECT id FROM vectors WHERE +epoch = ? ORDER BY id LIMIT ?)",
            (self._epoch_id, first_rows),
        )
        if bounds is None or bounds[0] is None:
            return {}
        found: dict[int, Vector] = {}
        for wanted in np.unique(np.linspace(bounds[0], bounds[1], limit).astype(np.int64)).tolist():
            row = self._db.row(
                "SELECT seq, vector FROM vectors WHERE +epoch = ? AND id >= ? ORDER BY id LIMIT 1",
                (self._epoch_id, wanted),
            )
            if row is not None:
                found[int(row[0])] = unpack(row[1])
        return found

    def count(self) -> int:
        """Blobs of this epoch."""
        return self._db.counted("SELECT count(*) FROM vectors WHERE epoch = ?", (self._epoch_id,))

    def seqs(self, up_to_id: int | None = None) -> set[int]:
        """Sequence numbers that have a blob, optionally only those stored up to an id."""
        rows = self._db.rows(
            "SELECT seq FROM vectors WHERE epoch = ?1 AND (?2 IS NULL OR id <= ?2)",
            (self._epoch_id, up_to_id),
        )
        return {int(r[0]) for r in rows}

    def damaged(self) -> list[int]:
        """Sequence numbers whose blob has a wrong length (audit)."""
        rows = self._db.rows(
            "SELECT seq FROM vectors WHERE epoch = ? AND length(vector) <> ?",
            (self._epoch_id, 2 * self.epoch.dimension),
        )
        return [int(r[0]) for r in rows]

    def unqueue(self, seqs: Sequence[int]) -> None:
        """These nodes wait no more."""
        self._db.execute_many("DELETE FROM embed_queue WHERE seq = ?", [(s,) for s in seqs])

    def remove(self, seqs: Sequence[int]) -> None:
        """Deletes blobs of this epoch."""
        self._db.execute_many(
            "DELETE FROM vectors WHERE epoch = ? AND seq = ?", [(self._epoch_id, s) for s in seqs]
        )

    # --- the background

    def background(self) -> NDArray[np.float32] | None:
        """float32[passages, dimension] of the background passages; None until they are embedded."""
        rows = self._db.rows(
            "SELECT vector FROM background WHERE epoch = ? AND version = ? ORDER BY place",
            (self._epoch_id, BACKGROUND_VERSION),
        )
        return np.stack([unpack(r[0]) for r in rows]) if rows else None

    def put_background(self, matrix: NDArray[np.float32]) -> None:
        """Stores them, in place of an older version's."""
        with self._db.transaction():
            self._db.execute("DELETE FROM background WHERE epoch = ?", (self._epoch_id,))
            self._db.execute_many(
                "INSERT INTO background(epoch, version, place, vector) VALUES(?, ?, ?, ?)",
                [
                    (self._epoch_id, BACKGROUND_VERSION, place, pack(row))
                    for place, row in enumerate(matrix)
                ],
            )

    # --- the host's high-water mark

    @property
    def high_water(self) -> int:
        """The last blob id that the host has acknowledged."""
        return self._db.number("SELECT high_water FROM epochs WHERE id = ?", (self._epoch_id,))

    def set_high_water(self, stored_id: int) -> None:
        """Advances or resets it."""
        self._db.execute(
            "UPDATE epochs SET high_water = ? WHERE id = ?", (stored_id, self._epoch_id)
        )

    def count_up_to(self, stored_id: int) -> int:
        """Blobs stored up to an id: what the host must hold."""
        return self._db.number(
            "SELECT count(*) FROM vectors WHERE epoch = ? AND id <= ?", (self._epoch_id, stored_id)
        )

    def lag(self) -> int:
        """Blobs that the host has not acknowledged."""
        return self._db.number(
            "SELECT count(*) FROM vectors WHERE epoch = ? AND id > ?",
            (self._epoch_id, self.high_water),
        )


class LinearScan:
    """Exact nearest neighbours: a float32 matrix of the first rows in memory, the rest read from the file.

    Rows append in the order of storing. What became unrecallable is filtered when its node is read, and `forget` takes rows out
    whose blobs are gone. `reset` drops the matrix after a repair.
    """

    def __init__(self, store: VectorStore, timeline: Timeline, config: VectorConfig) -> None:
        self._store = store
        self._timeline = timeline
        self._config = config
        self._dimension = store.epoch.dimension
        self.reset()

    def reset(self) -> None:
        """Forgets what was loaded."""
        self._matrix: NDArray[np.float32] = np.empty((0, self._dimension), dtype=np.float32)
        self._seqs: NDArray[np.int64] = np.empty(0, dtype=np.int64)
        self._rows = 0
        self._loaded_to = 0

    def forget(self, seqs: Sequence[int]) -> None:
        """Takes the rows of these nodes out."""
        kept = ~np.isin(self._seqs[: self._rows], np.array(seqs, dtype=np.int64))
        if kept.all():
            return
        self._matrix = self._matrix[: self._rows][kept]
        self._seqs = self._seqs[: self._rows][kept]
        self._rows = len(self._seqs)

    def _append(self, batch: Sequence[StoredVector]) -> None:
        needed = self._rows + len(batch)
        if needed > len(self._seqs):
            capacity = min(max(needed, 2 * len(self._seqs), 256), self._config.resident_rows_max)
            capacity = max(capacity, needed)
            matrix = np.empty((capacity, self._dimension), dtype=np.float32)
            seqs = np.empty(capacity, dtype=np.int64)
            matrix[: self._rows], seqs[: self._rows] = (
                self._matrix[: self._rows],
                self._seqs[: self._rows],
            )
            self._matrix, self._seqs = matrix, seqs
        for row, stored in enumerate(batch, start=self._rows):
            self._matrix[row] = stored.vector
            self._seqs[row] = stored.seq
        self._rows = needed
        self._loaded_to = batch[-1].id

    def load(self) -> Iterator[None]:
        """Brings the matrix up to date; each step is one bounded slice."""
        while (room := self._config.resident_rows_max - self._rows) > 0:
            batch = self._store.after(self._loaded_to, min(room, self._config.slice_rows))
            if not batch:
                return
            self._append(batch)
            if len(batch) < self._config.slice_rows:
                return
            yield

    def search(
        self,
        vector: Vector,
        limit: int,
        found: list[Scored],
        selection: Selection = EVERYTHING,
    ) -> Iterator[None]:
        """Fills `found` with the best (seq, cosine) among the selected, best first, newest first among equals.

        Yields between slices. Of a selection, the best of everything are looked through first: where a quarter of what is
        wanted is among them, those are the best of the selection, and enough.
        """
        if selection == EVERYTHING:
            yield from self._search(vector, limit, found)
            return
        wide: list[Scored] = []
        yield from self._search(vector, limit * _WIDE, wide)
        kept = set(self._timeline.admitted([seq for seq, _ in wide], selection))
        hits = [hit for hit in wide if hit[0] in kept]
        if len(hits) >= limit // 4 or len(wide) < limit * _WIDE:
            found.extend(hits[:limit])
            return
        chosen = self._timeline.selected(selection)
        if len(chosen) > self._config.slice_rows:
            yield from self._search(vector, limit, found, np.array(chosen, dtype=np.int64))
            return
        blobs = self._store.of(chosen)
        if blobs:
            seqs = np.array(list(blobs), dtype=np.int64)
            found.extend(_top(np.stack(list(blobs.values())), seqs, vector, limit))

    def _search(
        self,
        vector: Vector,
        limit: int,
        found: list[Scored],
        chosen: NDArray[np.int64] | None = None,
    ) -> Iterator[None]:
        """Over all rows; with `chosen`, only those among its sequence numbers count."""
        yield from self.load()
        best = _top(self._matrix[: self._rows], self._seqs[: self._rows], vector, limit, chosen)
        at = self._loaded_to
        while self._rows >= self._config.resident_rows_max:
            batch = self._store.after(at, self._config.slice_rows)
            if not batch:
                break
            at = batch[-1].id
            seqs = np.array([s.seq for s in batch], dtype=np.int64)
            best += _top(np.stack([s.vector for s in batch]), seqs, vector, limit, chosen)
            yield
        best.sort(key=lambda hit: (-hit[1], -hit[0]))
        found.extend(best[:limit])


def _top(
    matrix: NDArray[np.float32],
    seqs: NDArray[np.int64],
    vector: Vector,
    limit: int,
    chosen: NDArray[np.int64] | None = None,
) -> list[Scored]:
    """The best rows; with `chosen`, only those among its sequence numbers."""
    if not len(seqs):
        return []
    cosines = matrix @ vector
    if chosen is not None:
        kept = np.isin(seqs, chosen)
        seqs, cosines = seqs[kept], cosines[kept]
    best = np.arange(len(seqs))
    if len(seqs) > limit:
        best = np.argpartition(-cosines, limit - 1)[:limit]
    hits = [(int(seqs[i]), float(cosines[i])) for i in best]
    return sorted(hits, key=lambda hit: (-hit[1], -hit[0]))
