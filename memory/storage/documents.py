"""Documents with versions: which one is the newest, where it is to be cut, which passages it shares with the last.

A document is known by its `uri`. Each version is a node of its own; only the newest is in force. A passage that the newest version
shares with an older one – same words, same context – is the same node: it is moved under the new version and keeps its vector,
its pointers and its time. What is in no version any more leaves recall (`branch_active = 0`) and stays on the timeline. Truth;
callers hold the transaction.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory.errors import require
from memory.storage.database import Database, Row
from memory.storage.timeline import passage_hash
from memory.values import Cut, DocumentDraft, DocumentState, NodeDraft, NodeId

_PARAMETERS_MAX = 500


class DocumentStore:
    """Reads and writes the newest versions and their cuts."""

    def __init__(self, database: Database) -> None:
        self._db = database

    # --- versions

    def states(self, uris: Sequence[str]) -> dict[str, DocumentState]:
        """What is known of these documents."""
        found: dict[str, DocumentState] = {}
        for start in range(0, len(uris), _PARAMETERS_MAX):
            part = uris[start : start + _PARAMETERS_MAX]
            marks = ",".join("?" * len(part))
            rows = self._db.rows(f"SELECT * FROM documents WHERE uri IN ({marks})", part)  # noqa: S608 - only marks
            found |= {str(row["uri"]): _state(row) for row in rows}
        return found

    def under(self, prefix: str, after: str, limit: int) -> tuple[DocumentState, ...]:
        """The next documents whose uri begins with a prefix, in order of uri."""
        rows = self._db.rows(
            "SELECT * FROM documents WHERE uri >= ?1 AND uri > ?2 AND substr(uri, 1, length(?1)) = ?1"
            " ORDER BY uri LIMIT ?3",
            (prefix, after, limit),
        )
        return tuple(_state(row) for row in rows)

    def keep(self, draft: DocumentDraft, node_id: NodeId) -> None:
        """Makes a node the newest version, with the places where it is to be cut."""
        self._db.execute(
            "INSERT INTO documents(uri, node_id, stamp, content_hash) VALUES(?, ?, ?, ?)"
            " ON CONFLICT(uri) DO UPDATE SET node_id = excluded.node_id, stamp = excluded.stamp,"
            " content_hash = excluded.content_hash",
            (draft.uri, node_id, draft.stamp, draft.content_hash),
        )
        self.put_cuts(node_id, draft.cuts)

    def is_newest(self, node_id: NodeId) -> bool:
        """Whether a node is the newest version of a document; an attachment has a name, and no versions."""
        found = self._db.row(
            "SELECT 1 FROM documents d JOIN nodes n ON n.source_uri = d.uri AND n.id = d.node_id WHERE n.id = ?",
            (node_id,),
        )
        return found is not None

    def restamp(self, uri: str, stamp: str) -> None:
        """The host has seen that the content is still the same."""
        self._db.execute("UPDATE documents SET stamp = ? WHERE uri = ?", (stamp, uri))

    def distrust(self, uri: str) -> None:
        """Whatever the host finds there, it is not what is known."""
        self._db.execute("UPDATE documents SET stamp = '', content_hash = '' WHERE uri = ?", (uri,))

    def drop(self, uri: str) -> None:
        """No version is in force any more."""
        self._db.execute("DELETE FROM documents WHERE uri = ?", (uri,))

    # --- cuts

    def put_cuts(self, node_id: NodeId, cuts: Sequence[Cut]) -> None:
        """Keeps where a document is to be cut; they stay with it, so that a repair cuts it again in the same places."""
        plan = msgspec.json.encode([(cut.end, cut.context) for cut in cuts]).decode()
        self._db.execute("INSERT INTO cut_plans(node_id, cuts) VALUES(?, ?)", (node_id, plan))

    def cuts(self, node_id: NodeId) -> tuple[Cut, ...] | None:
        """Where a document is to be cut; None when nobody has said."""
        row = self._db.row("SELECT cuts FROM cut_plans WHERE node_id = ?", (node_id,))
        if row is None:
            return None
        pairs = msgspec.json.decode(row["cuts"], type=list[tuple[int, str]])
        return tuple(Cut(end=end, context=context) for end, context in pairs)

    # --- passages

    def adopt(self, passage: NodeDraft) -> bool:
        """Moves the same passage of an older version under the newest; False when there is none.

        Args:
            passage: as it would be added.
        """
        require(passage.byte_range is not None, "a passage without its place")
        assert passage.byte_range is not None
        row = self._db.row(
            "SELECT seq FROM nodes WHERE source_uri = ? AND passage_hash = ? AND branch_active = 1"
            " AND parent_id <> ? AND deleted_at_ms IS NULL ORDER BY seq LIMIT 1",
            (passage.source_uri, passage_hash(passage), passage.parent_id),
        )
        if row is None:
            return False
        self._db.execute(
            "UPDATE nodes SET parent_id = ?, byte_start = ?, byte_end = ?, project_id = ? WHERE seq = ?",
            (passage.parent_id, *passage.byte_range, passage.project_id, row["seq"]),
        )
        return True

    def others(self, uri: str, newest: NodeId | None, limit: int) -> list[int]:
        """Nodes of a document that are in force and belong to no newest version (None: to none)."""
        rows = self._db.rows(
            "SELECT seq FROM nodes WHERE source_uri = ?1 AND branch_active = 1 AND deleted_at_ms IS NULL"
            " AND (?2 IS NULL OR (id <> ?2 AND parent_id IS NOT ?2)) LIMIT ?3",
            (uri, newest, limit),
        )
        return [int(r[0]) for r in rows]

    def older_versions(self, uri: str, newest: NodeId) -> list[int]:
        """Whole versions of a document, its passages aside, that are still in force."""
        rows = self._db.rows(
            "SELECT seq FROM nodes WHERE source_uri = ? AND branch_active = 1 AND kind = 'document' AND id <> ?",
            (uri, newest),
        )
        return [int(r[0]) for r in rows]

    def retire(self, seqs: Sequence[int]) -> None:
        """These nodes leave recall and stay on the timeline."""
        self._db.execute_many(
            "UPDATE nodes SET branch_active = 0, chunking = 0 WHERE seq = ?", [(s,) for s in seqs]
        )
        self._db.execute_many(
            "DELETE FROM cut_plans WHERE node_id = (SELECT id FROM nodes WHERE seq = ?)",
            [(s,) for s in seqs],
        )

    # --- vectors that the host may still hold

    def note_strays(self, seqs: Sequence[int]) -> None:
        """Their blobs are gone; the vector host, which may be out, has to hear of it."""
        self._db.execute_many(
            "INSERT OR IGNORE INTO stray_vectors(seq) VALUES(?)", [(s,) for s in seqs]
        )

    def strays(self, limit: int) -> list[int]:
        """Some that the host has not heard of."""
        return [int(r[0]) for r in self._db.rows("SELECT seq FROM stray_vectors LIMIT ?", (limit,))]

    def drop_strays(self, seqs: Sequence[int]) -> None:
        """The host was told."""
        self._db.execute_many("DELETE FROM stray_vectors WHERE seq = ?", [(s,) for s in seqs])


def _state(row: Row) -> DocumentState:
    return DocumentState(
        uri=str(row["uri"]),
        node_id=NodeId(row["node_id"]),
        stamp=str(row["stamp"]),
        content_hash=str(row["content_hash"]),
    )
