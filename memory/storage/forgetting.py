"""What it takes to forget a conversation: which nodes are part of it, where else they are named, and their rows.

A wish to forget is one row of `meta`, written in the transaction that takes the nodes out of recall; it goes when nothing is left. So
whatever happens in between, the next start knows what was wanted and does it again from the top: every step here may be repeated.
Truth changes here as nowhere else: rows of the timeline are deleted, not marked. Callers hold the transaction.
"""

# ruff: noqa: S608 - only constants and "?" marks are put together here; values are always bound.

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import msgspec

from memory.rest_values import ProposalState
from memory.storage.database import Database, Row
from memory.storage.experiences import ExperienceStore, skill_text
from memory.storage.learning_log import LearningLog, query_key
from memory.text import normalise
from memory.values import ConversationId, NodeId, NodeKind

_WISH = "forget:"
_NODE_ID = re.compile(r"\bn-[0-9a-f]{32}\b")
_QUOTING = (NodeKind.KNOWLEDGE, NodeKind.SKILL)
"""Kinds whose text may quote each of its sources."""
_MERGE_PAGES = 500
_PARAMETERS_MAX = 500
_QUERY_CHARACTERS = 2_000
"""Hosts cut long questions for learning; both forms of a question are looked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mention:
    """A node that stays and names one that goes."""

    seq: int
    conversation_id: ConversationId | None
    derived_from: str
    trace: str | None


class _Payload(msgspec.Struct, frozen=True, omit_defaults=True):
    """`hidden` when it was asked for; `drawn` and `wordings` are what else goes, from the moment on when it is deleted."""

    hidden: list[int]
    drawn: list[int] = []
    wordings: list[int] = []


class ForgettingStore:
    """Reads and deletes what belongs to a conversation."""

    def __init__(
        self, database: Database, experiences: ExperienceStore, log: LearningLog, limit: int
    ) -> None:
        """`limit` is up to how many characters experiences quote a question."""
        self._db = database
        self._experiences = experiences
        self._log = log
        self._limit = limit

    # --- the journal

    def wishes(self) -> tuple[ConversationId, ...]:
        """Conversations that are to be forgotten and are not yet, the oldest conversation first."""
        rows = self._db.rows(
            "SELECT substr(key, ?) FROM meta WHERE key GLOB ? ORDER BY key",
            (len(_WISH) + 1, f"{_WISH}*"),
        )
        return tuple(ConversationId(row[0]) for row in rows)

    def is_wished(self, conversation_id: ConversationId) -> bool:
        """Whether a conversation is to be forgotten."""
        return self._db.meta(_WISH + conversation_id) is not None

    def hide(self, conversation_id: ConversationId, seqs: Sequence[int], now_ms: int) -> None:
        """Writes the wish down and takes the nodes out of recall."""
        hidden = [seq for seq in seqs if self._number("deleted_at_ms IS NULL", seq)]
        payload = msgspec.json.encode(_Payload(hidden=hidden)).decode()
        self._db.set_meta(_WISH + conversation_id, payload)
        self._db.execute_many(
            "UPDATE nodes SET deleted_at_ms = ? WHERE seq = ?", [(now_ms, s) for s in hidden]
        )
        self._db.execute_many(
            "UPDATE nodes SET status = 'cancelled' WHERE seq = ? AND status = 'partial'",
            [(s,) for s in hidden],
        )
        self._db.execute_many("DELETE FROM embed_queue WHERE seq = ?", [(s,) for s in hidden])

    def _number(self, what: str, seq: int) -> int:
        return self._db.number(f"SELECT {what} FROM nodes WHERE seq = ?", (seq,))

    def show_again(self, conversation_id: ConversationId) -> list[int]:
        """Takes a wish back, as far as its nodes are still there; returns them."""
        stored = self._db.meta(_WISH + conversation_id)
        if stored is None:
            return []
        hidden = msgspec.json.decode(stored, type=_Payload).hidden
        self._db.execute_many(
            "UPDATE nodes SET deleted_at_ms = NULL WHERE seq = ?", [(s,) for s in hidden]
        )
        self.end(conversation_id)
        return hidden

    def plan(self, conversation_id: ConversationId) -> tuple[list[int], frozenset[int]]:
        """Nodes and stored questions that go. Durable: half of the way there, nobody could tell any more what was drawn from it."""
        stored = self._db.meta(_WISH + conversation_id) or '{"hidden": []}'
        before = msgspec.json.decode(stored, type=_Payload)
        seqs = sorted({*before.hidden, *before.drawn, *self.members(conversation_id)})
        made = self._log.worded_for(frozenset(self.ids(seqs).values()))
        wordings = {*before.wordings, *self.wordings(seqs), *made}
        payload = msgspec.structs.replace(
            before, drawn=sorted(set(seqs) - set(before.hidden)), wordings=sorted(wordings)
        )
        self._db.set_meta(_WISH + conversation_id, msgspec.json.encode(payload).decode())
        return seqs, frozenset(wordings)

    def end(self, conversation_id: ConversationId) -> None:
        """Nothing is left to do."""
        self._db.execute("DELETE FROM meta WHERE key = ?", (_WISH + conversation_id,))

    # --- what belongs to it

    def members(self, conversation_id: ConversationId) -> list[int]:
        """Sequence numbers of everything that goes: messages, notes, its own attachments and tool outputs, and their passages."""
        rows = self._db.rows("SELECT seq FROM nodes WHERE conversation_id = ?", (conversation_id,))
        seqs = {int(row[0]) for row in rows} | self._attachments(conversation_id)
        while more := (self._descendants(seqs) | self._drawn(seqs)) - seqs:
            seqs |= more
        return sorted(seqs)

    def _attachments(self, conversation_id: ConversationId) -> set[int]:
        """Documents without versions that only this conversation was given, or that hold what its calls put out."""
        own, others = set[str](), set[str]()
        for row in self._db.rows(
            "SELECT derived_from, conversation_id FROM nodes WHERE role = 'user' AND derived_from <> '[]'"
        ):
            found = own if row["conversation_id"] == conversation_id else others
            found.update(msgspec.json.decode(row["derived_from"], type=list[str]))
        for row in self._db.rows("SELECT conversation_id, node_id FROM blocks"):
            found = own if row["conversation_id"] == conversation_id else others
            found.add(str(row["node_id"]))
        return {
            int(row["seq"])
            for row in self._rows_of(
                "seq",
                "id IN ({}) AND kind = 'document' AND conversation_id IS NULL AND parent_id IS NULL"
                " AND NOT EXISTS (SELECT 1 FROM documents d WHERE d.uri = nodes.source_uri)",
                sorted(own - others),
            )
        }

    def _descendants(self, seqs: Collection[int]) -> set[int]:
        """Passages of the members, what was distilled from nothing but them, and conclusions and skills from them and others."""
        ids = set(self.ids(sorted(seqs)).values())
        found = {int(r["seq"]) for r in self._rows_of("seq", "parent_id IN ({})", sorted(ids))}
        for row in self._db.rows(
            "SELECT seq, kind, derived_from FROM nodes WHERE kind NOT IN ('message', 'chunk') AND derived_from <> '[]'"
        ):
            sources = msgspec.json.decode(row["derived_from"], type=list[str])
            quotes = row["kind"] in _QUOTING and not ids.isdisjoint(sources)
            if quotes or ids.issuperset(sources):
                found.add(int(row["seq"]))
        return found

    def _drawn(self, seqs: Collection[int]) -> set[int]:
        """Conclusions and skills from experiences that name no node, only the question."""
        places = sorted(seqs)
        ids = frozenset(self.ids(places).values())
        conclusions, proposals = self._experiences.drawn(ids, self.asked(places))
        found = {int(r["seq"]) for r in self._rows_of("seq", "id IN ({})", sorted(conclusions))}
        taken = [skill_text(p.name, p.text) for p in proposals if p.state is ProposalState.ACCEPTED]
        skills = self._rows_of("seq", "kind = 'skill' AND content IN ({})", taken)
        return found | {int(r["seq"]) for r in skills}

    def forget_experiences(self, seqs: Sequence[int]) -> None:
        """Deletes what was experienced with nodes, and what is proposed because of it."""
        self._experiences.forget(frozenset(self.ids(seqs).values()), self.asked(seqs))

    def _rows_of(self, columns: str, where: str, values: Sequence[str | int]) -> Iterator[Row]:
        for start in range(0, len(values), _PARAMETERS_MAX):
            part = values[start : start + _PARAMETERS_MAX]
            marks = ",".join("?" * len(part))
            yield from self._db.rows(
                f"SELECT {columns} FROM nodes WHERE {where.format(marks)}", part
            )

    def ids(self, seqs: Sequence[int]) -> dict[int, NodeId]:
        """The ids of nodes, tombstones included."""
        rows = self._rows_of("seq, id", "seq IN ({})", seqs)
        return {int(row["seq"]): NodeId(row["id"]) for row in rows}

    def texts(self, seqs: Sequence[int]) -> Iterator[tuple[str, str]]:
        """(kind, content) of nodes, tombstones included."""
        for row in self._rows_of("kind, content", "seq IN ({})", seqs):
            yield str(row["kind"]), str(row["content"])

    def kinds(self, seqs: Sequence[int]) -> list[str]:
        """Their kinds."""
        return [str(row["kind"]) for row in self._rows_of("kind", "seq IN ({})", seqs)]

    # --- where else they are named

    def mentions(
        self, ids: Collection[NodeId], after_seq: int, limit: int
    ) -> tuple[list[Mention], int]:
        """The next nodes outside that name one of `ids` in what they were made from or in their trace, and where to go on."""
        rows = self._db.rows(
            "SELECT seq, id, conversation_id, derived_from, trace FROM nodes WHERE seq > ?"
            " AND (derived_from <> '[]' OR trace IS NOT NULL) ORDER BY seq LIMIT ?",
            (after_seq, limit),
        )
        found = [
            Mention(
                seq=int(row["seq"]),
                conversation_id=row["conversation_id"],
                derived_from=str(row["derived_from"]),
                trace=row["trace"],
            )
            for row in rows
            if row["id"] not in ids
            and any(
                n in ids for n in _NODE_ID.findall(f"{row['derived_from']} {row['trace'] or ''}")
            )
        ]
        return found, int(rows[-1]["seq"]) if rows else 0

    def residents(self, ids: Collection[NodeId]) -> set[ConversationId]:
        """Conversations in whose window one of the nodes stands."""
        rows = self._db.rows("SELECT DISTINCT conversation_id, node_id FROM blocks")
        return {ConversationId(row[0]) for row in rows if row[1] in ids}

    def unmention(self, mention: Mention, ids: Collection[NodeId]) -> None:
        """Takes the nodes out of another node's provenance and trace; its text is its own and stays."""
        sources = msgspec.json.decode(mention.derived_from, type=list[str])
        kept = json.dumps([source for source in sources if source not in ids])
        trace = mention.trace
        if trace is not None:
            trace = json.dumps(_without(json.loads(trace), ids), ensure_ascii=False)
        self._db.execute(
            "UPDATE nodes SET derived_from = ?, trace = ? WHERE seq = ?", (kept, trace, mention.seq)
        )

    def drop_region(self, conversation_id: ConversationId) -> None:
        """The window of a conversation is filled anew at its next turn."""
        self._db.execute("DELETE FROM blocks WHERE conversation_id = ?", (conversation_id,))
        self._db.execute("DELETE FROM regions WHERE conversation_id = ?", (conversation_id,))

    # --- their rows

    def delete_nodes(self, seqs: Sequence[int]) -> None:
        """Deletes nodes with everything keyed by them, but the lexical keys. Inside `unchecked`."""
        rows = list(self._rows_of("seq, id, kind", "seq IN ({})", seqs))
        places = [(int(row["seq"]),) for row in rows]
        documents = [(str(row["id"]),) for row in rows if row["kind"] == "document"]
        self._db.execute_many(
            "DELETE FROM vectors WHERE epoch IN (SELECT id FROM epochs) AND seq = ?", places
        )
        for table in ("embed_queue", "stray_vectors"):
            self._db.execute_many(f"DELETE FROM {table} WHERE seq = ?", places)
        for table in ("documents", "cut_plans"):
            self._db.execute_many(f"DELETE FROM {table} WHERE node_id = ?", documents)
        self._db.execute_many("DELETE FROM nodes WHERE seq = ?", places)

    @contextmanager
    def unchecked(self) -> Iterator[None]:
        """A transaction without SQLite's look for references: without an index it would read every vector for every node."""
        self._db.execute("PRAGMA foreign_keys = OFF")
        try:
            with self._db.transaction():
                yield
        finally:
            self._db.execute("PRAGMA foreign_keys = ON")

    def delete_conversation(self, conversation_id: ConversationId) -> None:
        """Deletes the empty conversation."""
        self.drop_region(conversation_id)
        self._db.execute("DELETE FROM conversations WHERE id = ?", (conversation_id,))

    # --- questions

    def asked(self, seqs: Sequence[int]) -> set[str]:
        """How the messages among nodes would stand among the stored questions."""
        return {
            query_key(form)
            for kind, text in self.texts(seqs)
            if kind == "message"
            for form in (text, text[:_QUERY_CHARACTERS], normalise(text)[: self._limit])
        }

    def wordings(self, seqs: Sequence[int]) -> set[int]:
        """Stored questions that were asked in the given nodes."""
        found = {
            self._db.number("SELECT id FROM queries WHERE text = ?", (asked,))
            for asked in self.asked(seqs)
        }
        return found - {0}

    def heirs(self, wordings: Collection[int]) -> dict[int, int]:
        """Under which wording goes on what was merged with one that goes; none: with nothing."""
        found: dict[int, int] = {}
        for wording in sorted(wordings):
            rows = self._db.rows(
                "SELECT id FROM queries WHERE cluster = ? AND id <> ? ORDER BY id",
                (wording, wording),
            )
            left = [int(row[0]) for row in rows if row[0] not in wordings]
            if left:
                found[wording] = left[0]
        return found

    def delete_wordings(self, wordings: Collection[int], heirs: Mapping[int, int]) -> None:
        """Deletes stored questions."""
        self._db.execute_many(
            "UPDATE queries SET cluster = ? WHERE cluster = ?",
            [(heir, wording) for wording, heir in heirs.items()],
        )
        self._db.execute_many("DELETE FROM queries WHERE id = ?", [(w,) for w in wordings])

    # --- the files themselves

    def merge_lexical(self) -> bool:
        """One slice of merging the lexical index into one piece, in which no deleted key is left; False when it is."""
        return self._merge(-_MERGE_PAGES)

    def merge_lexical_further(self) -> bool:
        """The slices that follow the first."""
        return self._merge(_MERGE_PAGES)

    def _merge(self, pages: int) -> bool:
        """Source: SQLite, "FTS5", 6.8: done when fewer than two rows changed."""
        before = self._db.connection.total_changes
        self._db.execute("INSERT INTO lexical(lexical, rank) VALUES('merge', ?)", (pages,))
        return self._db.connection.total_changes - before >= 2

    def truncate_log(self) -> None:
        """Empties the write-ahead log, which holds pages as they were."""
        self._db.execute("PRAGMA wal_checkpoint(TRUNCATE)")

    def vacuum(self) -> None:
        """Writes the whole file anew. The copy goes to a file that is unlinked at once: it can be larger than memory."""
        self._db.execute("PRAGMA temp_store = FILE")
        try:
            self._db.execute("VACUUM")
        finally:
            self._db.execute("PRAGMA temp_store = MEMORY")

    def said_elsewhere(self, text: str) -> bool:
        """Whether what is left says it too, in whatever column text stands."""
        columns = (
            ("nodes", "content"),
            ("nodes", "trace"),
            ("nodes", "context"),
            ("blocks", "text"),
            ("conversations", "title"),
            ("queries", "text"),
            ("queries", "said"),
            ("goals", "text"),
            ("experiences", "context"),
            ("experiences", "outcome"),
            ("proposals", "text"),
        )
        return any(
            self._db.row(f"SELECT 1 FROM {table} WHERE instr({column}, ?) LIMIT 1", (text,))
            for table, column in columns
        )


def _without(value: object, ids: Collection[str]) -> object:
    """JSON without the list items that name one of the ids."""
    if isinstance(value, list):
        return [_without(item, ids) for item in value if not _names(item, ids)]
    if isinstance(value, dict):
        return {key: _without(item, ids) for key, item in value.items()}
    return value


def _names(item: object, ids: Collection[str]) -> bool:
    values: Iterable[object] = item.values() if isinstance(item, dict) else [item]
    return any(
        isinstance(text, str) and any(named in ids for named in _NODE_ID.findall(text))
        for text in values
    )
