"""The audit of all stores against truth, and the rebuild of everything derived.

Fault model. A process may die at any instruction (SIGKILL), also between two stores; power may fail (truth is `synchronous=
FULL`; derived stores may lose their last commits); a derived file may be missing, truncated, zeroed or foreign; the clock
may go backwards. Not covered: bytes of `timeline.db` that change and still pass SQLite's own integrity check.

What each fault leaves, and who repairs it: a node without key, blob or queue entry (here); a vector host behind or ahead of
its mark (here, or at its start); a pointer store behind the log (its start) or different from its fold (here); a region
block without a node (here). The cheap form counts; the full form compares contents.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from memory.errors import CorruptStore
from memory.storage.stores import Stores
from memory.storage.timeline import CHUNKING_NEEDED
from memory.storage.vector_index import HostState, Outage
from memory.values import AuditFinding, AuditReport, NodeId

_REBUILD_SLICE_ROWS = 50


class Audit:
    """Checks of one set of stores."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._findings: list[AuditFinding] = []

    def run(self, *, fix: bool, full: bool) -> AuditReport:
        """Checks, and repairs when asked to."""
        self._findings = []
        self._timeline(full=full)
        self._lexical(fix=fix, full=full)
        self._blobs(fix=fix)
        self._host(fix=fix, full=full)
        self._pointers(fix=fix, full=full)
        self._regions(fix=fix)
        if full:
            self._chunks(fix=fix)
        return AuditReport(findings=tuple(self._findings), nodes=self._stores.timeline.count())

    def _found(
        self, store: str, problem: str, count: int, *, fix: bool, repair: Callable[[], object]
    ) -> None:
        if count:
            if fix:
                repair()
            self._findings.append(
                AuditFinding(store=store, problem=problem, count=count, fixed=fix)
            )

    def _timeline(self, *, full: bool) -> None:
        database = self._stores.database
        if full:
            rows = database.rows("PRAGMA integrity_check(10)")
            problems = [str(r[0]) for r in rows if r[0] != "ok"]
            if problems:
                raise CorruptStore("timeline", database.path, "; ".join(problems))
            broken = len(database.rows("PRAGMA foreign_key_check"))
            if broken:
                self._findings.append(
                    AuditFinding(
                        store="timeline", problem="dangling references", count=broken, fixed=False
                    )
                )

    def _lexical(self, *, fix: bool, full: bool) -> None:
        lexical = self._stores.lexical
        if lexical.needs_rebuild():
            self._found("lexical", "unfinished rebuild", 1, fix=fix, repair=self._index_all)
            return
        missing, orphans = lexical.missing(), lexical.orphans()
        self._found(
            "lexical",
            "nodes not indexed",
            len(missing),
            fix=fix,
            repair=lambda: self._index(missing),
        )
        self._found(
            "lexical",
            "keys without a node",
            len(orphans),
            fix=fix,
            repair=lambda: self._unindex(orphans),
        )
        if full:
            unsound = int(not lexical.is_sound())
            self._found("lexical", "index damaged", unsound, fix=fix, repair=self._index_all)

    def _index(self, seqs: list[int]) -> None:
        with self._stores.database.transaction():
            for seq in seqs:
                for node in self._stores.timeline.recallable([seq]).values():
                    self._stores.lexical.index(node)

    def _unindex(self, seqs: list[int]) -> None:
        with self._stores.database.transaction():
            for seq in seqs:
                self._stores.lexical.remove(seq)

    def _index_all(self) -> None:
        self._stores.lexical.start_rebuild()
        while self._stores.lexical.continue_rebuild(_REBUILD_SLICE_ROWS):
            continue

    def _blobs(self, *, fix: bool) -> None:
        vectors = self._stores.vectors
        damaged = vectors.damaged()
        self._found(
            "vectors",
            "damaged blobs",
            len(damaged),
            fix=fix,
            repair=lambda: self._drop_blobs(damaged),
        )
        unqueued = vectors.unqueued_count()
        self._found("vectors", "queue disagrees", unqueued, fix=fix, repair=vectors.repair_queue)

    def _drop_blobs(self, seqs: list[int]) -> None:
        with self._stores.database.transaction():
            self._stores.vectors.remove(seqs)
            self._stores.vectors.repair_queue()
        self._stores.scan.reset()

    def _host(self, *, fix: bool, full: bool) -> None:
        """An absent host is no finding: it is allowed to be out, and is checked when it opens."""
        index, vectors = self._stores.index, self._stores.vectors
        index.poll()
        broken = len(index.broken_folders()) - self._stores.config.vectors.broken_folders_max
        if broken > 0:
            self._findings.append(
                AuditFinding(
                    store="chroma", problem="old broken folders", count=broken, fixed=False
                )
            )
        if index.state is not HostState.READY:
            return
        try:
            held = index.ids() if full else None
            count = len(held) if held is not None else index.count()
        except Outage:
            return
        expected = vectors.seqs(vectors.high_water) if full else set()
        short = max(0, vectors.count_up_to(vectors.high_water) - count)
        missing = len(expected - held) if held is not None else short
        self._found("chroma", "vectors missing", missing, fix=fix, repair=index.resend)
        if held is not None:
            foreign = sorted(held - vectors.seqs())
            self._found(
                "chroma",
                "vectors without a blob",
                len(foreign),
                fix=fix,
                repair=lambda: index.delete(foreign),
            )

    def _pointers(self, *, fix: bool, full: bool) -> None:
        problems = self._stores.pointers.problems(full=full)
        self._found(
            "pointers",
            problems[0] if problems else "",
            len(problems),
            fix=fix,
            repair=self._stores.pointers.rebuild,
        )

    def _regions(self, *, fix: bool) -> None:
        orphans = self._stores.regions.orphans()

        def repair() -> None:
            with self._stores.database.transaction():
                for conversation_id, block_id in orphans:
                    self._stores.regions.drop_blocks(conversation_id, [block_id])

        self._found("regions", "blocks without a node", len(orphans), fix=fix, repair=repair)

    def _chunks(self, *, fix: bool) -> None:
        """Every chunked document must be the concatenation of its chunks."""
        torn = [parent for parent in self._stores.timeline.chunked_ids() if self._is_torn(parent)]

        def repair() -> None:
            with self._stores.database.transaction():
                for parent in torn:
                    self._stores.timeline.unchunk(parent, CHUNKING_NEEDED)
                self._unindex(self._stores.lexical.orphans())

        self._found("timeline", "torn chunks", len(torn), fix=fix, repair=repair)

    def _is_torn(self, parent_id: NodeId) -> bool:
        parent = self._stores.timeline.node(parent_id)
        chunks = self._stores.timeline.chunks(parent_id)
        return parent is not None and "".join(c.content for c in chunks) != parent.content


def rebuild(stores: Stores) -> Iterator[None]:
    """Recreates every derived store from truth; each step is one bounded slice."""
    stores.lexical.start_rebuild()
    while stores.lexical.continue_rebuild(_REBUILD_SLICE_ROWS):
        yield
    stores.vectors.repair_queue()
    stores.scan.reset()
    yield
    stores.index.discard()
    yield
    stores.pointers.rebuild()
    yield
