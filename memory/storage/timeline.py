"""The timeline: projects, conversations and nodes – truth.

Invariants: content is written once (a partial answer is the one exception, until it is finished); `seq` ascends in journal
order; what `add` returned inside a committed transaction is durable. Callers open the transaction, so that the node and
its lexical key commit together.
"""

# ruff: noqa: S608 - only constants and "?" marks are put together here; values are always bound.

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from memory.errors import require
from memory.ports import Clock
from memory.storage.database import Database, Row
from memory.storage.selection import condition
from memory.text import storable
from memory.values import (
    Conversation,
    ConversationId,
    Node,
    NodeDraft,
    NodeId,
    NodeKind,
    NodeStatus,
    Project,
    ProjectId,
    Role,
    Selection,
)

CHUNKING_NONE, CHUNKING_NEEDED, CHUNKING_DONE = 0, 1, 2

# What recall may return. A chunked parent left it; its chunks answer. Source: design 4.5.
RECALLABLE = (
    "n.branch_active = 1 AND n.deleted_at_ms IS NULL AND n.chunking <> 2"
    " AND n.status IN ('complete', 'cancelled') AND n.content <> ''"
)
# What gets a vector: recallable, and not a document that still waits to be chunked.
EMBEDDABLE = f"{RECALLABLE} AND n.chunking = 0"

_NODE = """
SELECT n.seq, n.id, n.kind, n.role, n.content, n.created_at_ms, n.conversation_id, n.project_id, n.reply_to,
  n.branch_active, n.status, n.derived_from, n.source_uri, n.parent_id, n.byte_start, n.byte_end, n.hits, n.token_ids,
  n.tokenizer, n.trace, n.context,
  (SELECT e.name FROM epochs e WHERE EXISTS (SELECT 1 FROM vectors v WHERE v.epoch = e.id AND v.seq = n.seq)
   ORDER BY e.id DESC LIMIT 1) AS epoch
FROM nodes n
"""
_PARAMETERS_MAX = (
    500  # per statement; SQLite's own limit is far higher, but a plan is cached per count
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Unchunked:
    """A document that waits to be split, and the byte where the next chunk starts."""

    node: Node
    done_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A node's place: whether recall may return it, and whether that can still change (a stored branch, a running answer)."""

    seq: int
    recallable: bool
    settled: bool


def pack_ids(token_ids: Sequence[int] | None) -> bytes | None:
    """Token ids as little-endian int32."""
    return None if token_ids is None else np.asarray(token_ids, dtype="<i4").tobytes()


def unpack_ids(blob: bytes | None) -> tuple[int, ...] | None:
    """The inverse."""
    return None if blob is None else tuple(np.frombuffer(blob, dtype="<i4").tolist())


def passage_hash(draft: NodeDraft) -> str:
    """By which a chunk is known again in the next version of its document: what it says, and what stands above it."""
    said = f"{draft.context}\0{storable(draft.content)}".encode()
    return hashlib.blake2b(said, digest_size=16).hexdigest()


_KINDS = {
    kind.value: kind for kind in NodeKind
}  # four times as fast as the enumeration's own look-up
_ROLES = {role.value: role for role in Role}
_STATUSES = {status.value: status for status in NodeStatus}


def node_of(row: Row) -> Node:
    """A node from a row of `_NODE`. Its columns are taken by their place: a search makes some hundred nodes."""
    (
        seq, node_id, kind, role, content, created_at_ms, conversation_id, project_id, reply_to,
        branch_active, status, derived_from, source_uri, parent_id, start, end, hits, token_ids,
        tokenizer, trace, context, epoch,
    ) = row  # fmt: skip
    return Node(
        id=NodeId(node_id),
        seq=seq,
        kind=_KINDS[kind],
        role=_ROLES[role],
        content=content,
        created_at_ms=created_at_ms,
        conversation_id=conversation_id,
        project_id=project_id,
        reply_to=reply_to,
        branch_active=bool(branch_active),
        status=_STATUSES[status],
        derived_from=_ids_of(derived_from),
        source_uri=source_uri,
        parent_id=parent_id,
        byte_range=None if start is None else (start, end),
        embedding_epoch=epoch,
        hits=hits,
        token_ids=unpack_ids(token_ids),
        tokenizer=tokenizer,
        trace=trace,
        context=context,
    )


def _ids_of(text: str) -> tuple[NodeId, ...]:
    if text == "[]":
        return ()
    return tuple(NodeId(i) for i in msgspec.json.decode(text, type=list[str]))


class Timeline:
    """Reads and writes truth."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    def _new_id(self, prefix: str) -> str:
        """Sorts roughly by time, never collides. Source: the ULID layout, in hex."""
        return f"{prefix}-{self._clock.now_ms():012x}{os.urandom(10).hex()}"

    # --- projects and conversations

    def open_project(self, path: str, name: str) -> Project:
        """The project of a path; made when new."""
        row = self._db.row("SELECT * FROM projects WHERE path = ?", (path,))
        if row is None:
            project = Project(
                id=ProjectId(self._new_id("p")),
                name=storable(name),
                path=path,
                created_at_ms=self._clock.now_ms(),
            )
            self._db.execute(
                "INSERT INTO projects(id, name, path, created_at_ms) VALUES(?, ?, ?, ?)",
                (project.id, project.name, project.path, project.created_at_ms),
            )
            return project
        return _project_of(row)

    def projects(self) -> tuple[Project, ...]:
        """All, by name."""
        return tuple(
            _project_of(r) for r in self._db.rows("SELECT * FROM projects ORDER BY name, id")
        )

    def create_conversation(self, project_id: ProjectId | None, title: str) -> Conversation:
        """An empty conversation."""
        now = self._clock.now_ms()
        conversation = Conversation(
            id=ConversationId(self._new_id("c")),
            title=storable(title),
            project_id=project_id,
            created_at_ms=now,
            updated_at_ms=now,
        )
        self._db.execute(
            "INSERT INTO conversations(id, title, project_id, created_at_ms, updated_at_ms)"
            " VALUES(?, ?, ?, ?, ?)",
            (conversation.id, conversation.title, project_id, now, now),
        )
        return conversation

    def conversations(self, only: ConversationId | None = None) -> tuple[Conversation, ...]:
        """All, or one; newest updated first."""
        rows = self._db.rows(
            "SELECT c.*, (SELECT count(*) FROM nodes n WHERE n.conversation_id = c.id"
            " AND n.kind = 'message' AND n.branch_active = 1 AND n.deleted_at_ms IS NULL) AS messages"
            " FROM conversations c WHERE (?1 IS NULL OR c.id = ?1)"
            " AND NOT EXISTS (SELECT 1 FROM meta m WHERE m.key = 'forget:' || c.id)"
            " ORDER BY c.updated_at_ms DESC, c.rowid DESC",
            (only,),
        )
        return tuple(
            Conversation(
                id=ConversationId(r["id"]),
                title=r["title"],
                project_id=r["project_id"],
                created_at_ms=r["created_at_ms"],
                updated_at_ms=r["updated_at_ms"],
                message_count=r["messages"],
            )
            for r in rows
        )

    def rename_conversation(self, conversation_id: ConversationId, title: str) -> None:
        """Changes a title; an unknown id changes nothing."""
        self._db.execute(
            "UPDATE conversations SET title = ? WHERE id = ?", (storable(title), conversation_id)
        )

    def move_conversation(
        self, conversation_id: ConversationId, project_id: ProjectId | None
    ) -> None:
        """Gives a conversation, and what was said in it, to another project (None: to none). The caller holds the transaction."""
        for table, key in (("conversations", "id"), ("nodes", "conversation_id")):
            self._db.execute(
                f"UPDATE {table} SET project_id = ? WHERE {key} = ?", (project_id, conversation_id)
            )

    # --- nodes: writing

    def add(self, draft: NodeDraft, *, chunking: int = CHUNKING_NONE) -> Node:
        """Appends a node. The caller holds the transaction."""
        now = self._clock.now_ms()
        start, end = draft.byte_range or (None, None)
        node_id = self._new_id("n")
        self._db.execute(
            "INSERT INTO nodes(id, kind, role, content, created_at_ms, conversation_id, project_id,"
            " reply_to, status, derived_from, source_uri, parent_id, byte_start, byte_end, chunking, context,"
            " passage_hash) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
            (
                node_id,
                draft.kind,
                draft.role,
                storable(draft.content),
                now if draft.created_at_ms is None else draft.created_at_ms,
                draft.conversation_id,
                draft.project_id,
                draft.reply_to,
                draft.status,
                msgspec.json.encode(draft.derived_from).decode(),
                draft.source_uri,
                draft.parent_id,
                start,
                end,
                chunking,
                draft.context,
                passage_hash(draft) if draft.kind is NodeKind.CHUNK else None,
            ),
        )
        self._touch(draft.conversation_id, now)
        node = self.node(NodeId(node_id))
        require(node is not None, "a node that was just written cannot be read")
        assert node is not None
        return node

    def _touch(self, conversation_id: ConversationId | None, now: int) -> None:
        self._db.execute(
            "UPDATE conversations SET updated_at_ms = max(updated_at_ms, ?) WHERE id = ?",
            (now, conversation_id),
        )

    def checkpoint(self, node_id: NodeId, content: str, trace: str | None = None) -> None:
        """Replaces the text of a partial answer, and the host's JSON about it unless none is given."""
        cursor = self._db.execute(
            "UPDATE nodes SET content = ?, trace = coalesce(?, trace)"
            " WHERE id = ? AND status = 'partial'",
            (storable(content), trace, node_id),
        )
        require(cursor.rowcount == 1, "only a partial answer can be checkpointed")

    def annotate(self, node_id: NodeId, trace: str) -> None:
        """Replaces the host's own JSON about an answer; its content stays as it was written."""
        self._db.execute(
            "UPDATE nodes SET trace = ? WHERE id = ? AND status <> 'partial'", (trace, node_id)
        )

    def finish(
        self,
        node_id: NodeId,
        *,
        content: str,
        status: NodeStatus,
        derived_from: Sequence[NodeId],
        trace: str | None,
        sampled: tuple[Sequence[int] | None, str | None] = (None, None),
    ) -> Node:
        """Closes a partial answer; `sampled` are its token ids and their tokenizer."""
        require(status is not NodeStatus.PARTIAL, "an answer cannot be finished as partial")
        cursor = self._db.execute(
            "UPDATE nodes SET content = ?, status = ?, derived_from = ?, trace = ?, token_ids = ?,"
            " tokenizer = ? WHERE id = ? AND status = 'partial'",
            (
                storable(content),
                status,
                msgspec.json.encode(list(derived_from)).decode(),
                trace,
                pack_ids(sampled[0]),
                sampled[1],
                node_id,
            ),
        )
        require(cursor.rowcount == 1, "only a partial answer can be finished")
        node = self.node(node_id)
        assert node is not None
        self._touch(node.conversation_id, self._clock.now_ms())
        return node

    def add_hits(self, node_ids: Iterable[NodeId], by: int = 1) -> None:
        """Counts one citation for each, or takes one back."""
        self._db.execute_many(
            "UPDATE nodes SET hits = max(0, hits + ?) WHERE id = ?", [(by, i) for i in node_ids]
        )

    def set_chunking(self, seq: int, state: int) -> None:
        """Marks a document as waiting, chunked or whole."""
        self._db.execute("UPDATE nodes SET chunking = ? WHERE seq = ?", (state, seq))

    # --- nodes: reading

    def node(self, node_id: NodeId) -> Node | None:
        """A node by id; tombstones are not found."""
        row = self._db.row(f"{_NODE} WHERE n.id = ? AND n.deleted_at_ms IS NULL", (node_id,))
        return None if row is None else node_of(row)

    def node_at(self, seq: int) -> Node | None:
        """A node by sequence number; tombstones are not found."""
        row = self._db.row(f"{_NODE} WHERE n.seq = ? AND n.deleted_at_ms IS NULL", (seq,))
        return None if row is None else node_of(row)

    def nodes(self, node_ids: Sequence[NodeId]) -> dict[NodeId, Node]:
        """Those of the ids that exist."""
        found: dict[NodeId, Node] = {}
        for start in range(0, len(node_ids), _PARAMETERS_MAX):
            part = node_ids[start : start + _PARAMETERS_MAX]
            marks = ",".join("?" * len(part))
            for row in self._db.rows(
                f"{_NODE} WHERE n.id IN ({marks}) AND n.deleted_at_ms IS NULL", part
            ):
                found[NodeId(row["id"])] = node_of(row)
        return found

    def recallable(self, seqs: Sequence[int]) -> dict[int, Node]:
        """Those of the sequence numbers that recall may return."""
        marks = ",".join("?" * len(seqs))
        rows = self._db.rows(f"{_NODE} WHERE n.seq IN ({marks}) AND {RECALLABLE}", list(seqs))
        return {row["seq"]: node_of(row) for row in rows}

    def admitted(self, seqs: Sequence[int], selection: Selection) -> list[int]:
        """Those of the sequence numbers whose nodes are selected and recallable, in the given order."""
        extra, values = condition(selection)
        marks = ",".join("?" * len(seqs))
        rows = self._db.rows(
            f"SELECT n.seq FROM nodes n WHERE n.seq IN ({marks}) AND {RECALLABLE} {extra}",
            (*seqs, *values),
        )
        kept = {int(r[0]) for r in rows}
        return [seq for seq in seqs if seq in kept]

    def selected(self, selection: Selection) -> list[int]:
        """Sequence numbers of all selected recallable nodes, ascending."""
        extra, values = condition(selection)
        rows = self._db.rows(f"SELECT n.seq FROM nodes n WHERE {RECALLABLE} {extra}", values)
        return sorted(int(r[0]) for r in rows)

    def messages(self, conversation_id: ConversationId) -> tuple[Node, ...]:
        """The active branch of a conversation, in order."""
        rows = self._db.rows(
            f"{_NODE} WHERE n.conversation_id = ? AND n.kind = 'message' AND n.branch_active = 1"
            " AND n.deleted_at_ms IS NULL ORDER BY n.seq",
            (conversation_id,),
        )
        return tuple(node_of(r) for r in rows)

    def neighbours(self, node: Node) -> tuple[Node | None, Node | None]:
        """The finished messages just before and just after, in the same conversation."""
        if node.conversation_id is None or node.kind is not NodeKind.MESSAGE:
            return None, None
        where = (
            f"{_NODE} WHERE n.conversation_id = ? AND n.kind = 'message' AND n.branch_active = 1"
            " AND n.deleted_at_ms IS NULL AND n.status <> 'partial' AND n.seq"
        )
        values = (node.conversation_id, node.seq)
        before = self._db.row(f"{where} < ? ORDER BY n.seq DESC LIMIT 1", values)
        after = self._db.row(f"{where} > ? ORDER BY n.seq LIMIT 1", values)
        return (
            None if before is None else node_of(before),
            None if after is None else node_of(after),
        )

    def answers_to(self, node_ids: Sequence[NodeId]) -> dict[NodeId, tuple[Node, ...]]:
        """Finished answers by the question they reply to."""
        answers: dict[NodeId, tuple[Node, ...]] = {}
        for start in range(0, len(node_ids), _PARAMETERS_MAX):
            part = node_ids[start : start + _PARAMETERS_MAX]
            marks = ",".join("?" * len(part))
            rows = self._db.rows(
                f"{_NODE} WHERE n.reply_to IN ({marks}) AND {RECALLABLE} ORDER BY n.seq", part
            )
            for node in map(node_of, rows):
                assert node.reply_to is not None
                answers[node.reply_to] = (*answers.get(node.reply_to, ()), node)
        return answers

    def newest_texts(self, before_seq: int, limit: int, *, messages: bool) -> list[tuple[int, str]]:
        """(seq, content) of searchable nodes below a sequence number, newest first."""
        where = f"{RECALLABLE} AND n.kind = 'message'" if messages else RECALLABLE
        rows = self._db.rows(
            f"SELECT n.seq, n.content FROM nodes n WHERE n.seq < ? AND {where}"
            " ORDER BY n.seq DESC LIMIT ?",
            (before_seq, limit),
        )
        return [(int(r[0]), str(r[1])) for r in rows]

    def window(self, before_seq: int, above_seq: int, limit: int) -> list[Place]:
        """The nodes between two sequence numbers (both excluded), newest first, those that recall skips included."""
        rows = self._db.rows(
            f"SELECT n.seq, ({RECALLABLE}) AS recallable, (n.branch_active = 1 AND n.status <> 'partial') AS settled"
            " FROM nodes n WHERE n.seq < ? AND n.seq > ? ORDER BY n.seq DESC LIMIT ?",
            (before_seq, above_seq, limit),
        )
        return [Place(seq=r[0], recallable=bool(r[1]), settled=bool(r[2])) for r in rows]

    def next_recallable(self, after_seq: int) -> Node | None:
        """The first node above a sequence number that recall may return."""
        row = self._db.row(
            f"{_NODE} WHERE n.seq > ? AND {RECALLABLE} ORDER BY n.seq LIMIT 1", (after_seq,)
        )
        return None if row is None else node_of(row)

    def of_kind(self, kind: NodeKind, limit: int) -> tuple[Node, ...]:
        """Recallable nodes of a kind, the oldest first."""
        rows = self._db.rows(
            f"{_NODE} WHERE n.kind = ? AND {RECALLABLE} ORDER BY n.seq LIMIT ?", (kind, limit)
        )
        return tuple(node_of(r) for r in rows)

    def recallable_count(self, first_seq: int, last_seq: int) -> int:
        """Nodes that recall may return in an interval, both ends included."""
        return self._db.number(
            f"SELECT count(*) FROM nodes n WHERE n.seq BETWEEN ? AND ? AND {RECALLABLE}",
            (first_seq, last_seq),
        )

    def times(self, seqs: Sequence[int]) -> dict[int, int]:
        """When nodes were made, by sequence number."""
        found: dict[int, int] = {}
        for start in range(0, len(seqs), _PARAMETERS_MAX):
            part = seqs[start : start + _PARAMETERS_MAX]
            marks = ",".join("?" * len(part))
            rows = self._db.rows(
                f"SELECT seq, created_at_ms FROM nodes WHERE seq IN ({marks})", part
            )
            found.update((int(r[0]), int(r[1])) for r in rows)
        return found

    def partial_ids(self) -> list[NodeId]:
        """Answers that a crash left unfinished."""
        rows = self._db.rows("SELECT id FROM nodes WHERE status = 'partial' ORDER BY seq")
        return [NodeId(r[0]) for r in rows]

    def next_unchunked(self, busy: Iterable[NodeId] = ()) -> Unchunked | None:
        """The oldest document that waits to be chunked, those aside that somebody is at."""
        rows = self._db.rows("SELECT id FROM nodes WHERE chunking = 1 ORDER BY seq")
        taken = set(busy)
        waiting = next((NodeId(r[0]) for r in rows if r[0] not in taken), None)
        return None if waiting is None else self.unchunked(waiting)

    def unchunked(self, node_id: NodeId) -> Unchunked | None:
        """A document that waits to be chunked; None when it does not, or not any more."""
        row = self._db.row(
            f"{_NODE} WHERE n.id = ? AND n.chunking = 1 AND n.branch_active = 1", (node_id,)
        )
        if row is None:
            return None
        node = node_of(row)
        done = self._db.number("SELECT max(byte_end) FROM nodes WHERE parent_id = ?", (node.id,))
        return Unchunked(node=node, done_bytes=done)

    def is_unchunked(self, seq: int) -> bool:
        """Whether a document still waits: a newer version may have come meanwhile."""
        return bool(self._db.number("SELECT chunking = 1 FROM nodes WHERE seq = ?", (seq,)))

    def unchunked_count(self) -> int:
        """How many wait."""
        return self._db.number("SELECT count(*) FROM nodes WHERE chunking = 1")

    def chunks(self, parent_id: NodeId) -> tuple[Node, ...]:
        """The chunks of a document, in order."""
        rows = self._db.rows(
            f"{_NODE} WHERE n.parent_id = ? AND n.branch_active = 1 ORDER BY n.byte_start",
            (parent_id,),
        )
        return tuple(node_of(r) for r in rows)

    def chunked_ids(self) -> list[NodeId]:
        """Documents that were chunked (audit). The chunks of an older version belong to the newest as far as they are in it."""
        rows = self._db.rows("SELECT id FROM nodes WHERE chunking = 2 AND branch_active = 1")
        return [NodeId(r[0]) for r in rows]

    def unchunk(self, parent_id: NodeId, state: int) -> None:
        """Lets a document be chunked again (audit): its torn chunks leave recall."""
        now = self._clock.now_ms()
        self._db.execute(
            "UPDATE nodes SET deleted_at_ms = ?, parent_id = NULL WHERE parent_id = ?",
            (now, parent_id),
        )
        self._db.execute("UPDATE nodes SET chunking = ? WHERE id = ?", (state, parent_id))

    def count(self) -> int:
        """Nodes that are not tombstones."""
        return self._db.number("SELECT count(*) FROM nodes WHERE deleted_at_ms IS NULL")

    def last_seq(self) -> int:
        """The newest sequence number, 0 when empty."""
        return self._db.number("SELECT max(seq) FROM nodes")

    def conversation_count(self) -> int:
        """How many conversations."""
        return self._db.number("SELECT count(*) FROM conversations")


def _project_of(row: Row) -> Project:
    return Project(
        id=ProjectId(row["id"]),
        name=row["name"],
        path=row["path"],
        created_at_ms=row["created_at_ms"],
    )
