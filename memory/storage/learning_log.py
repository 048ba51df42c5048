"""The learning log: every act of learning as an appended event, and the distinct queries they mention.

Truth. The pointer store is the fold of this log. A query's text and vector are stored once; `cluster` is the query it was
merged with when it was first seen, so that the fold does not depend on an embedder and always gives the same edges.
"""

# ruff: noqa: S608 - only constants and "?" marks are put together here; values are always bound.

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import StrEnum

import msgspec
import numpy as np

from memory.config import LearningConfig
from memory.ports import Clock
from memory.rest_values import Cause
from memory.storage.database import Database, Row
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
    REHEARSED = "rehearsed"
    """A question posed ahead of time; its targets answer it. Of its `Reading` only pointers are folded: nothing was searched."""
    KNOWLEDGE = "knowledge"
    """A conclusion was recorded as the target; it changes no pointer."""
    UNDO = "undo"
    """Another event is taken back: the fold is one without it."""


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
    A dream names the `debt` it paid on (entry, target), the places `passed` that can be no answer now, and whether it is `paid`.
    `unclear` are the places of a debt that this judge has read twice without a clear answer: the debt is put aside, and nothing is
    stained or refused. `reopened` says that a debt that was put aside is owed again.
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
    debt: tuple[int, int] | None = None
    passed: tuple[tuple[int, int], ...] = ()
    paid: bool = False
    unclear: tuple[tuple[int, int], ...] = ()
    reopened: bool = False


class _Payload(msgspec.Struct, frozen=True, omit_defaults=True):
    query: int
    sources: list[str]
    targets: list[str]
    reading: Reading | None = None
    undoes: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningEvent:
    """For this query cluster, `targets` were (or were not) what `sources` should lead to.

    `undoes` is the event that an undo takes back; `undone` says that this one was taken back.
    """

    id: int
    kind: LearningKind
    created_at_ms: int
    query: int
    sources: tuple[NodeId, ...]
    targets: tuple[NodeId, ...]
    reading: Reading | None = None
    cause: Cause = Cause.USER
    undoes: int = 0
    undone: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class LogFilter:
    """Which events to read, newest first."""

    causes: frozenset[Cause]
    finds_only: bool = False
    undone: bool = True
    since_ms: int | None = None
    text: str = ""
    before_id: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryRef:
    """A stored wording, and the cluster of K samples that it is of."""

    id: int
    cluster: int


_NO_ID = 1 << 62


def _event_of(row: Row, undone: Collection[int]) -> LearningEvent:
    payload = msgspec.json.decode(row["payload"], type=_Payload)
    return LearningEvent(
        id=row["id"],
        kind=LearningKind(row["kind"]),
        created_at_ms=row["created_at_ms"],
        query=payload.query,
        sources=tuple(NodeId(s) for s in payload.sources),
        targets=tuple(NodeId(t) for t in payload.targets),
        reading=payload.reading,
        cause=Cause(row["cause"]),
        undoes=payload.undoes,
        undone=row["id"] in undone,
    )


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
        sources: Sequence[NodeId] = (),
        targets: Sequence[NodeId] = (),
        reading: Reading | None = None,
        cause: Cause = Cause.USER,
    ) -> int:
        """Appends an event and returns its id; the caller holds the transaction."""
        payload = _Payload(
            query=query, sources=list(sources), targets=list(targets), reading=reading
        )
        return self._write(kind, payload, cause)

    def take_back(self, event_id: int) -> bool:
        """Appends that an event is undone; False where there is none, or it is undone already. The caller holds the transaction."""
        found = self.event(event_id)
        if found is None or found.undone or found.kind is LearningKind.UNDO:
            return False
        payload = _Payload(query=found.query, sources=[], targets=[], undoes=event_id)
        self._write(LearningKind.UNDO, payload, Cause.USER)
        return True

    def _write(self, kind: LearningKind, payload: _Payload, cause: Cause) -> int:
        cursor = self._db.execute(
            "INSERT INTO learning_log(kind, created_at_ms, payload, cause) VALUES(?, ?, ?, ?)",
            (kind, self._clock.now_ms(), msgspec.json.encode(payload).decode(), cause),
        )
        return int(cursor.lastrowid or 0)

    def after(self, event_id: int, limit: int) -> list[LearningEvent]:
        """The next events; those that were taken back, sooner or later, are marked."""
        rows = self._db.rows(
            "SELECT * FROM learning_log WHERE id > ? ORDER BY id LIMIT ?", (event_id, limit)
        )
        undone = self.undone() if rows else frozenset()
        return [_event_of(row, undone) for row in rows]

    def event(self, event_id: int) -> LearningEvent | None:
        """One event."""
        row = self._db.row("SELECT * FROM learning_log WHERE id = ?", (event_id,))
        return None if row is None else _event_of(row, self.undone())

    def made(self, node_id: NodeId) -> LearningEvent | None:
        """The event by which a conclusion was recorded."""
        row = self._db.row(
            "SELECT * FROM learning_log WHERE kind = 'knowledge' AND cause = 'flywheel'"
            " AND json_extract(payload, '$.targets[0]') = ?",
            (node_id,),
        )
        return None if row is None else _event_of(row, self.undone())

    def undone(self) -> frozenset[int]:
        """Events that were taken back."""
        rows = self._db.rows("SELECT payload FROM learning_log WHERE kind = 'undo'")
        return frozenset(msgspec.json.decode(r[0], type=_Payload).undoes for r in rows)

    def taken_back(self, cluster: int) -> frozenset[NodeId]:
        """Nodes that the user does not want to be found again for a cluster of questions: finds that were undone."""
        rows = self._db.rows(
            "SELECT * FROM learning_log WHERE id IN"
            " (SELECT json_extract(payload, '$.undoes') FROM learning_log WHERE kind = 'undo')"
        )
        events = (_event_of(row, frozenset()) for row in rows)
        return frozenset(
            target
            for e in events
            if e.reading is not None and cluster in (e.query, e.reading.cluster, e.reading.asked)
            for target in e.targets
        )

    def find(self, wanted: LogFilter, limit: int) -> list[LearningEvent]:
        """Events, newest first; undos are none of them, they mark what they took back."""
        marks = ",".join("?" * len(wanted.causes))
        undone = self.undone()
        gone = ",".join(str(i) for i in sorted(undone)) if not wanted.undone else ""
        rows = self._db.rows(
            f"SELECT l.* FROM learning_log l WHERE l.cause IN ({marks}) AND l.kind <> 'undo'"
            " AND l.id < ? AND l.created_at_ms >= ?"
            f" AND l.id NOT IN ({gone})"
            " AND (? OR json_array_length(l.payload, '$.targets') > 0)"
            " AND (? = '' OR EXISTS (SELECT 1 FROM queries q"
            "  WHERE q.id = json_extract(l.payload, '$.query') AND instr(q.text, ?) > 0))"
            " ORDER BY l.id DESC LIMIT ?",
            (
                *sorted(wanted.causes),
                _NO_ID if wanted.before_id is None else wanted.before_id,
                0 if wanted.since_ms is None else wanted.since_ms,
                int(not wanted.finds_only),
                query_key(wanted.text),
                query_key(wanted.text),
                limit,
            ),
        )
        return [_event_of(row, undone) for row in rows]

    def count_after(self, event_id: int, causes: Collection[Cause]) -> int:
        """Events of these causes after one, without those taken back."""
        marks = ",".join("?" * len(causes))
        rows = self._db.rows(
            f"SELECT id FROM learning_log WHERE cause IN ({marks}) AND id > ? AND kind <> 'undo'",
            (*sorted(causes), event_id),
        )
        undone = self.undone()
        return sum(int(r[0]) not in undone for r in rows)

    def replace(self, event: LearningEvent) -> None:
        """Writes an event anew, without what was forgotten; the caller holds the transaction."""
        payload = _Payload(
            query=event.query,
            sources=list(event.sources),
            targets=list(event.targets),
            reading=event.reading,
            undoes=event.undoes,
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

    def remove_idle_undos(self) -> None:
        """Deletes undos whose event is no more; the caller holds the transaction."""
        self._db.execute(
            "DELETE FROM learning_log WHERE kind = 'undo' AND NOT EXISTS"
            " (SELECT 1 FROM learning_log e WHERE e.id = json_extract(learning_log.payload, '$.undoes'))"
        )

    def worded_for(self, node_ids: Collection[NodeId]) -> set[int]:
        """Wordings that nobody had used before a rehearsal, or a conclusion, of one of the nodes: they were made from it."""
        rows = self._db.rows(
            "SELECT id, json_extract(payload, '$.targets[0]') AS target,"
            " json_extract(payload, '$.reading.asked') AS asked FROM learning_log"
            " WHERE kind IN ('rehearsed', 'knowledge') ORDER BY id"
        )
        return {
            int(row["asked"])
            for row in rows
            if row["asked"] and row["target"] in node_ids and not self._was_used(row)
        }

    def _was_used(self, made: Row) -> bool:
        row = self._db.row(
            "SELECT 1 FROM learning_log WHERE id < ? AND (json_extract(payload, '$.query') = ?"
            " OR json_extract(payload, '$.reading.asked') = ?) LIMIT 1",
            (made["id"], made["asked"], made["asked"]),
        )
        return row is not None

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
        """The query, stored when it is new; one that waits for its vector gets it. The caller holds the transaction."""
        key = query_key(text)
        row = self._db.row("SELECT id, cluster, epoch FROM queries WHERE text = ?", (key,))
        if row is not None:
            if vector is not None and row[2] != self._epoch_id():
                self.set_vector(int(row[0]), vector)
            return QueryRef(id=int(row[0]), cluster=int(row[1]))
        nearest = None if vector is None else self._nearest(vector)
        blob = None if vector is None else pack(vector)
        cursor = self._db.execute(
            "INSERT INTO queries(text, said, cluster, epoch, vector) VALUES(?, ?, 0, ?, ?)",
            (key, storable(normalise(text)), None if blob is None else self._epoch_id(), blob),
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
        """The texts of stored queries, as they were worded first."""
        found: dict[int, str] = {}
        unique = sorted(set(queries))
        for start in range(0, len(unique), 500):
            part = unique[start : start + 500]
            marks = ",".join("?" * len(part))
            rows = self._db.rows(
                f"SELECT id, coalesce(said, text) FROM queries WHERE id IN ({marks})", part
            )
            found.update((int(r[0]), str(r[1])) for r in rows)
        return found

    def vector(self, query_id: int) -> Vector | None:
        """A stored query's vector of this epoch."""
        return self.vectors([query_id]).get(query_id)

    def vectors(self, queries: Sequence[int]) -> dict[int, Vector]:
        """The vectors of this epoch of some stored queries; few, a number that is bounded elsewhere."""
        marks = ",".join("?" * len(queries))
        rows = self._db.rows(
            f"SELECT id, vector FROM queries WHERE epoch = ? AND id IN ({marks})",
            (self._epoch_id(), *queries),
        )
        return {int(r[0]): unpack(r[1]) for r in rows if r[1] is not None}

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
