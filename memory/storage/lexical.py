"""The lexical index: FTS5 over pre-split terms, keyed by the node's sequence number.

Two columns: `own` are the node's terms, with those of what stands above a passage of a document (its file and headings: people ask
by them), `near` those of the neighbouring messages (LoCoMo: +11 points recall@10). Index and node commit in one transaction, so a
crash cannot part them; `lexical_text` holds exactly what was indexed, so that a delete is exact. Derived: `clear` and re-index rebuild
it from the timeline.
"""

# ruff: noqa: S608 - only constants and "?" marks are put together here; values are always bound.

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from memory.config import StorageConfig
from memory.errors import CorruptStore
from memory.storage.database import Database
from memory.storage.selection import EVERYTHING, condition
from memory.storage.timeline import RECALLABLE, Timeline
from memory.text import TERMS_VERSION, match_expression, terms
from memory.values import Node, NodeKind, Selection

_VERSION_KEY = "lexical_version"
_REBUILT_KEY = "lexical_rebuilt_to"  # present while a rebuild runs: the last re-indexed seq


@dataclass(frozen=True, slots=True, kw_only=True)
class LexicalHit:
    """A match: the node's sequence number and the terms it was indexed with, as text: a search asks hundreds of hits for a few terms."""

    seq: int
    own_text: str
    near_text: str

    @property
    def own(self) -> frozenset[str]:
        """The node's own terms."""
        return frozenset(self.own_text.split())

    @property
    def length(self) -> int:
        """How many own terms, repeats included."""
        return self.own_text.count(" ") // 2

    def times(self, term: str) -> int:
        """How often the node has a term itself."""
        return self.own_text.count(f" {term} ")

    def is_near(self, term: str) -> bool:
        """True when a neighbouring message has a term."""
        return f" {term} " in self.near_text


class LexicalIndex:
    """Reads and writes the index. Writers hold the transaction."""

    def __init__(self, database: Database, timeline: Timeline, config: StorageConfig) -> None:
        self._db = database
        self._timeline = timeline
        self._config = config

    # --- writing

    def index(self, node: Node) -> None:
        """Indexes a node and refreshes the keys of its neighbours."""
        before, after = self._timeline.neighbours(node)
        self._write(node, before, after)
        for neighbour in (before, after):
            if neighbour is not None and self.contains(neighbour.seq):
                self._write(neighbour, *self._timeline.neighbours(neighbour))

    def remove(self, seq: int) -> None:
        """Takes a node out; nothing happens when it is not in."""
        row = self._db.row("SELECT own, near FROM lexical_text WHERE seq = ?", (seq,))
        if row is not None:
            self._db.execute(
                "INSERT INTO lexical(lexical, rowid, own, near) VALUES('delete', ?, ?, ?)",
                (seq, row["own"], row["near"]),
            )
            self._db.execute("DELETE FROM lexical_text WHERE seq = ?", (seq,))

    def _write(self, node: Node, before: Node | None, after: Node | None) -> None:
        own = " ".join([*terms(node.context), *terms(self._head(node))])
        near = " ".join(self._edge_terms(before) + self._edge_terms(after))
        self.remove(node.seq)
        self._db.execute(
            "INSERT INTO lexical_text(seq, own, near) VALUES(?, ?, ?)", (node.seq, own, near)
        )
        self._db.execute(
            "INSERT INTO lexical(rowid, own, near) VALUES(?, ?, ?)", (node.seq, own, near)
        )

    def _head(self, node: Node) -> str:
        document = node.kind is NodeKind.DOCUMENT
        limit = (
            self._config.document_head_characters if document else self._config.index_characters_max
        )
        return node.content[:limit]

    def _edge_terms(self, neighbour: Node | None) -> list[str]:
        if neighbour is None:
            return []
        limit = self._config.neighbour_terms_max
        return terms(neighbour.content[: limit * 8])[:limit]

    # --- reading

    def contains(self, seq: int) -> bool:
        """True when the node is indexed."""
        return self._db.row("SELECT 1 FROM lexical_text WHERE seq = ?", (seq,)) is not None

    def count(self) -> int:
        """Indexed nodes."""
        return self._db.counted("SELECT count(*) FROM lexical_docsize")  # its rows are small

    def frequencies(self, query_terms: Sequence[str]) -> dict[str, int]:
        """In how many nodes each term occurs, as own or near."""
        if not query_terms:
            return {}
        marks = ",".join("?" * len(query_terms))
        rows = self._db.rows(
            f"SELECT term, doc FROM lexical_terms WHERE term IN ({marks})", list(query_terms)
        )
        found = {str(r[0]): int(r[1]) for r in rows}
        return {term: found.get(term, 0) for term in query_terms}

    def search(
        self,
        query_terms: Sequence[str],
        limit: int,
        near_weight: float,
        selection: Selection = EVERYTHING,
    ) -> list[LexicalHit]:
        """Best matches by BM25 among the selected nodes, best first; newest first among equals.

        What became unrecallable a moment ago may be among them: whoever reads the nodes leaves it out.
        """
        if not query_terms:
            return []
        best = self._best(query_terms, limit, near_weight, selection)
        found = self.keys(best)
        return [found[seq] for seq in best if seq in found]

    def _best(
        self,
        query_terms: Sequence[str],
        limit: int,
        near_weight: float,
        selection: Selection,
    ) -> list[int]:
        """Sequence numbers, best first. A selection costs a look at the node of every match.

        CROSS JOIN fixes that order: the other one, a search in the index for every selected node, takes ten times as long.
        """
        extra, values = condition(selection)
        joined = ""
        if extra:
            joined = f" CROSS JOIN nodes n ON n.seq = lexical.rowid AND {RECALLABLE} {extra}"
        rows = self._db.rows(
            f"SELECT lexical.rowid FROM lexical{joined} WHERE lexical MATCH ?"
            " ORDER BY bm25(lexical, 1.0, ?), lexical.rowid DESC LIMIT ?",
            (*values, match_expression(query_terms), near_weight, limit),
        )
        return [int(r[0]) for r in rows]

    def mean_length(self, seqs: Sequence[int]) -> float | None:
        """Mean number of own terms of the given nodes; None when none has a key."""
        marks = ",".join("?" * len(seqs))
        row = self._db.row(
            "SELECT avg(length(own) - length(replace(own, ' ', '')) + 1)"
            f" FROM lexical_text WHERE seq IN ({marks})",
            list(seqs),
        )
        return None if row is None or row[0] is None else float(row[0])

    def messages_with_all(self, query_terms: Sequence[str], limit: int) -> list[int]:
        """Sequence numbers of messages that have every term themselves, newest first."""
        if not query_terms:
            return []
        quoted = " AND ".join(match_expression((t,)) for t in query_terms)
        rows = self._db.rows(
            "SELECT n.seq FROM (SELECT rowid AS seq FROM lexical WHERE lexical MATCH ?) m"
            f" JOIN nodes n ON n.seq = m.seq AND n.kind = 'message' AND {RECALLABLE}"
            " ORDER BY n.seq DESC LIMIT ?",
            (f"own : ({quoted})", limit),
        )
        return [int(r[0]) for r in rows]

    def keys(self, seqs: Sequence[int]) -> dict[int, LexicalHit]:
        """What the given nodes were indexed with."""
        marks = ",".join("?" * len(seqs))
        rows = self._db.rows(
            f"SELECT seq, own, near FROM lexical_text WHERE seq IN ({marks})", list(seqs)
        )
        return {int(r[0]): _hit(int(r[0]), str(r[1]), str(r[2])) for r in rows}

    # --- rebuilding

    def needs_rebuild(self) -> bool:
        """True while a rebuild is unfinished, or when the term algorithm has changed."""
        return (
            self._db.meta(_REBUILT_KEY) is not None or self._db.meta(_VERSION_KEY) != TERMS_VERSION
        )

    def start_rebuild(self) -> None:
        """Empties the index and remembers that everything must be indexed again."""
        with self._db.transaction():
            self.clear()
            self._db.set_meta(_REBUILT_KEY, "0")
            self._db.set_meta(_VERSION_KEY, TERMS_VERSION)

    def clear(self) -> None:
        """Empties the index without reading it, so that a damaged one goes as well."""
        self._db.execute("INSERT INTO lexical(lexical) VALUES('delete-all')")
        self._db.execute("DELETE FROM lexical_text")

    def continue_rebuild(self, limit: int) -> bool:
        """Indexes the next nodes; True when more are left.

        An unstarted rebuild (the algorithm changed) is started.
        """
        mark = self._db.meta(_REBUILT_KEY)
        if mark is None or self._db.meta(_VERSION_KEY) != TERMS_VERSION:
            self.start_rebuild()
            mark = "0"
        rows = self._db.rows(
            f"SELECT n.seq FROM nodes n WHERE n.seq > ? AND {RECALLABLE} ORDER BY n.seq LIMIT ?",
            (int(mark), limit),
        )
        seqs = [int(r[0]) for r in rows]
        with self._db.transaction():
            for node in self._timeline.recallable(seqs).values():
                self._write(node, *self._timeline.neighbours(node))
            if len(seqs) < limit:
                self._db.execute("DELETE FROM meta WHERE key = ?", (_REBUILT_KEY,))
                return False
            self._db.set_meta(_REBUILT_KEY, str(seqs[-1]))
        return True

    def adopt_version(self) -> None:
        """Marks an empty, new index as current."""
        if self.count() == 0 and self._timeline.count() == 0:
            self._db.set_meta(_VERSION_KEY, TERMS_VERSION)

    def missing(self) -> list[int]:
        """Recallable nodes without a key (audit)."""
        rows = self._db.rows(
            f"SELECT n.seq FROM nodes n WHERE {RECALLABLE}"
            " AND NOT EXISTS (SELECT 1 FROM lexical_text t WHERE t.seq = n.seq)"
        )
        return [int(r[0]) for r in rows]

    def orphans(self) -> list[int]:
        """Keys without a recallable node (audit)."""
        rows = self._db.rows(
            "SELECT t.seq FROM lexical_text t WHERE NOT EXISTS"
            f" (SELECT 1 FROM nodes n WHERE n.seq = t.seq AND {RECALLABLE})"
        )
        return [int(r[0]) for r in rows]

    def is_sound(self) -> bool:
        """FTS5's own comparison of index and content (slow; full audit)."""
        try:
            self._db.execute("INSERT INTO lexical(lexical, rank) VALUES('integrity-check', 1)")
        except CorruptStore:
            return False
        return True


def _hit(seq: int, own: str, near: str) -> LexicalHit:
    """Two blanks between terms, so that repeats of one are counted each."""
    return LexicalHit(seq=seq, own_text=_spaced(own), near_text=_spaced(near))


def _spaced(text: str) -> str:
    return f" {text.replace(' ', '  ')} " if text else ""
