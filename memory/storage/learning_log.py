"""The learning log: every act of learning as an appended event, and the distinct queries they mention.

Truth. The pointer store is the fold of this log. A query's text and vector are stored once; `cluster` is the query it was
merged with when it was first seen, so that the fold does not depend on an embedder and always gives the same edges.
"""

# ruff: noqa: S608 - only constants and "?" marks are put together here; values are always bound.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec
import numpy as np

from memory.config import LearningConfig
from memory.ports import Clock
from memory.storage.database import Database
from memory.storage.vectors import Vector, VectorStore, calibrated_questions, pack, unpack
from memory.text import folded, normalise, storable
from memory.values import NodeId


class LearningKind(StrEnum):
    """What was learned."""

    USED = "used"
    NOT_RELEVANT = "not_relevant"
    CITED = "cited"
    """Pinned by the user: a jump leads from the first source to each target."""
    READ = "read"
    """A batch of a search of the past, see `Reading`; its targets were answered yes."""


class Pulled(msgspec.Struct, frozen=True, array_like=True):
    """A found node, and how many windows it lay behind the newest one."""

    target: str
    windows: int


class Reading(msgspec.Struct, frozen=True, omit_defaults=True):
    """What one batch of a search has read and left behind.

    `cluster` is the first wording of the question, `asked` the one that was judged; `judge` is the judge epoch ("": no judge
    took part). `no` and `yes` are its answers, `light` the nodes reached by jumps,
    `fragments` the (entry, target) pairs between which a jump skipped, `refuted` the edges that led to a no. `paused_at` is
    where the scan stands when the search's budget was used up with this batch, `newest` the newest node it knew.
    """

    cluster: int = 0
    asked: int = 0
    judge: str = ""
    no: tuple[tuple[int, int], ...] = ()
    yes: tuple[int, ...] = ()
    light: tuple[int, ...] = ()
    fragments: tuple[tuple[int, int], ...] = ()
    anchors: tuple[Pulled, ...] = ()
    refuted: tuple[tuple[str, str], ...] = ()
    paused_at: int = 0
    newest: int = 0


class _Payload(msgspec.Struct, frozen=True, omit_defaults=True):
    query: int
    sources: list[str]
    targets: list[str]
    reading: Reading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningEvent:
    """For this query cluster, `targets` were (or were not) what `sources` should lead to."""

    id: int
    kind: LearningKind
    created_at_ms: int
    query: int
    sources: tuple[NodeId, ...]
    targets: tuple[NodeId, ...]
    reading: Reading | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRef:
    """A stored wording, and the cluster of K samples that it is of."""

    id: int
    cluster: int


def query_key(text: str) -> str:
    """Two questions with one key are the same question."""
    return storable(folded(normalise(text)))


class LearningLog:
    """Appends and reads events and queries."""

    def __init__(
        self, database: Database, store: VectorStore, config: LearningConfig, clock: Clock
    ) -> None:
        self._db = database
        self._store = store
        self._config = config
        self._clock = clock

    def append(
        self,
        kind: LearningKind,
        *,
        query: int,
        sources: Sequence[NodeId],
        targets: Sequence[NodeId],
        reading: Reading | None = None,
    ) -> LearningEvent:
        """Appends an event; the caller holds the transaction."""
        now = self._clock.now_ms()
        payload = _Payload(
            query=query, sources=list(sources), targets=list(targets), reading=reading
        )
        cursor = self._db.execute(
            "INSERT INTO learning_log(kind, created_at_ms, payload) VALUES(?, ?, ?)",
            (kind, now, msgspec.json.encode(payload).decode()),
        )
        return LearningEvent(
            id=int(cursor.lastrowid or 0),
            kind=kind,
            created_at_ms=now,
            query=query,
            sources=tuple(sources),
            targets=tuple(targets),
            reading=reading,
        )

    def after(self, event_id: int, limit: int) -> list[LearningEvent]:
        """The next events."""
        rows = self._db.rows(
            "SELECT * FROM learning_log WHERE id > ? ORDER BY id LIMIT ?", (event_id, limit)
        )
        events = []
        for row in rows:
            payload = msgspec.json.decode(row["payload"], type=_Payload)
            events.append(
                LearningEvent(
                    id=row["id"],
                    kind=LearningKind(row["kind"]),
                    created_at_ms=row["created_at_ms"],
                    query=payload.query,
                    sources=tuple(NodeId(s) for s in payload.sources),
                    targets=tuple(NodeId(t) for t in payload.targets),
                    reading=payload.reading,
                )
            )
        return events

    def replace(self, event: LearningEvent) -> None:
        """Writes an event anew, without what was forgotten; the caller holds the transaction."""
        payload = _Payload(
            query=event.query,
            sources=list(event.sources),
            targets=list(event.targets),
            reading=event.reading,
        )
        self._db.execute(
            "UPDATE learning_log SET payload = ? WHERE id = ?",
            (msgspec.json.encode(payload).decode(), event.id),
        )

    def remove(self, event_ids: Sequence[int]) -> None:
        """Deletes events that taught from what was forgotten; the caller holds the transaction."""
        self._db.execute_many(
            "DELETE FROM learning_log WHERE id = ?", [(event_id,) for event_id in event_ids]
        )

    def count(self) -> int:
        """Events ever."""
        return self._db.number("SELECT count(*) FROM learning_log")

    def last_id(self) -> int:
        """The newest event, 0 when there is none."""
        return self._db.number("SELECT max(id) FROM learning_log")

    # --- queries

    def known(self, text: str) -> int | None:
        """The id of a wording that is stored."""
        row = self._db.row("SELECT id FROM queries WHERE text = ?", (query_key(text),))
        return None if row is None else int(row[0])

    def likeness(self, queries: Sequence[int], vector: Vector) -> dict[int, float]:
        """How near some stored queries are to a question, without a ceiling: 1 is the mean of related probe pairs."""
        unique = sorted(set(queries))
        marks = ",".join("?" * len(unique))
        rows = self._db.rows(
            f"SELECT id, vector FROM queries WHERE epoch = ? AND id IN ({marks})",
            (self._epoch_id(), *unique),
        )
        low, high = self._store.epoch.question_floor, self._store.epoch.question_ceiling
        return {int(r[0]): (float(unpack(r[1]) @ vector) - low) / (high - low) for r in rows}

    def cluster(self, text: str, vector: Vector | None) -> int:
        """The cluster of a query, see `keep`."""
        return self.keep(text, vector).cluster

    def keep(self, text: str, vector: Vector | None) -> QueryRef:
        """The query, stored when it is new. The caller holds the transaction."""
        key = query_key(text)
        row = self._db.row("SELECT id, cluster FROM queries WHERE text = ?", (key,))
        if row is not None:
            return QueryRef(id=int(row[0]), cluster=int(row[1]))
        nearest = None if vector is None else self._nearest(vector)
        blob = None if vector is None else pack(vector)
        cursor = self._db.execute(
            "INSERT INTO queries(text, cluster, epoch, vector) VALUES(?, 0, ?, ?)",
            (key, None if blob is None else self._epoch_id(), blob),
        )
        new_id = int(cursor.lastrowid or 0)
        cluster = new_id if nearest is None else nearest
        self._db.execute("UPDATE queries SET cluster = ? WHERE id = ?", (cluster, new_id))
        return QueryRef(id=new_id, cluster=cluster)

    def _epoch_id(self) -> int:
        return self._db.number("SELECT id FROM epochs WHERE name = ?", (self._store.epoch.name,))

    def _nearest(self, vector: Vector) -> int | None:
        rows = self._db.rows(
            "SELECT id, vector FROM queries WHERE epoch = ? AND cluster = id ORDER BY id DESC LIMIT ?",
            (self._epoch_id(), self._config.clusters_compared),
        )
        if not rows:
            return None
        cosines = np.stack([unpack(r[1]) for r in rows]) @ vector
        best = int(np.argmax(cosines))
        if calibrated_questions(float(cosines[best]), self._store.epoch) < self._config.merge:
            return None
        return int(rows[best][0])

    def similarities(
        self, queries: Sequence[int], text: str, vector: Vector | None
    ) -> dict[int, float]:
        """How near each stored query is to a new one: 1 for the same text, unknown ones are left out."""
        found: dict[int, float] = {}
        key = query_key(text)
        unique = sorted(set(queries))
        for start in range(0, len(unique), 500):
            part = unique[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self._db.rows(
                f"SELECT id, text, epoch, vector FROM queries WHERE id IN ({marks})", part
            )
            for row in rows:
                if row["text"] == key:
                    found[row["id"]] = 1.0
                elif (
                    vector is not None
                    and row["vector"] is not None
                    and row["epoch"] == self._epoch_id()
                ):
                    cosine = float(unpack(row["vector"]) @ vector)
                    found[row["id"]] = calibrated_questions(cosine, self._store.epoch)
        own = self._db.row("SELECT cluster FROM queries WHERE text = ?", (key,))
        if own is not None and own[0] in unique:
            found[int(own[0])] = 1.0
        return found

    def texts(self, queries: Sequence[int]) -> dict[int, str]:
        """The texts of stored queries."""
        found: dict[int, str] = {}
        unique = sorted(set(queries))
        for start in range(0, len(unique), 500):
            part = unique[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self._db.rows(f"SELECT id, text FROM queries WHERE id IN ({marks})", part)
            found.update((int(r[0]), str(r[1])) for r in rows)
        return found

    def unembedded(self, limit: int) -> list[tuple[int, str]]:
        """Queries without a vector of this epoch."""
        rows = self._db.rows(
            "SELECT id, text FROM queries WHERE epoch IS NOT ? ORDER BY id DESC LIMIT ?",
            (self._epoch_id(), limit),
        )
        return [(int(r[0]), str(r[1])) for r in rows]

    def set_vector(self, query_id: int, vector: Vector) -> None:
        """Stores a query's vector of this epoch."""
        self._db.execute(
            "UPDATE queries SET epoch = ?, vector = ? WHERE id = ?",
            (self._epoch_id(), pack(vector), query_id),
        )
