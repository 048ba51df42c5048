"""Documents: keeping their versions, and cutting them into passages in slices.

`keep` stores a version and cuts it at once; what a crash or an abandoned generator leaves uncut, `cut_waiting` finishes. A version
is in force from its first slice on, and the passages of the last one until the new one is cut to its end, so that at no moment
anything is out of recall that is in both. Every slice commits.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from memory.engine.journal import Journal
from memory.errors import require
from memory.requests import Operation, Yield
from memory.rest.chunking import check_cuts, chunk_bounds
from memory.storage.stores import Stores
from memory.storage.timeline import CHUNKING_DONE, CHUNKING_NEEDED, CHUNKING_NONE, Unchunked
from memory.storage.vector_index import HostState, Outage
from memory.values import (
    Cut,
    DocumentChange,
    DocumentDraft,
    Node,
    NodeDraft,
    NodeId,
    NodeKind,
    Role,
)

_RETIRED_PER_SLICE = 25
_STRAYS_PER_RUN = 256


class Documents:
    """Documents of open stores. One slice of cutting is about 15 ms."""

    def __init__(self, stores: Stores, journal: Journal) -> None:
        self._stores = stores
        self._journal = journal
        self._config = stores.config.rest
        self._busy: set[NodeId] = set()

    # --- versions

    def keep(self, draft: DocumentDraft) -> Operation[DocumentChange]:
        """Makes a text the newest version of its document, and cuts it. Durable after the first step."""
        require(bool(draft.cuts), "a document without passages")
        check_cuts(draft.text, draft.cuts, self._config.chunk_characters)
        with self._stores.database.transaction():
            node = self._journal.add(_node_of(draft), chunking=CHUNKING_NEEDED)
            older = self._stores.documents.older_versions(draft.uri, node.id)
            self.take_out(older)
            self._stores.documents.keep(draft, node.id)
        self._stores.scan.forget(older)
        self._journal.tell(node)
        with self._at_work(node.id):
            yield Yield()
            tally = _Tally()
            document = self._stores.timeline.unchunked(node.id)
            if document is not None:
                yield from self._cut(document, len(draft.cuts) + 1, tally)
        return DocumentChange(
            node_id=node.id, added=tally.added, kept=tally.kept, retired=tally.retired
        )

    def retire(self, uri: str) -> Operation[int]:
        """The document is gone from where it was: its passages leave recall and stay on the timeline.

        Abandoned in between it is known still, but trusted no more: the host sees that it is gone, or reads it anew.
        """
        with self._stores.database.transaction():
            self._stores.documents.distrust(uri)
        retired = yield from self._retire_others(uri, None)
        with self._stores.database.transaction():
            self._stores.documents.drop(uri)
        return retired

    def _retire_others(self, uri: str, newest: NodeId | None) -> Operation[int]:
        retired = 0
        while seqs := self._stores.documents.others(uri, newest, _RETIRED_PER_SLICE):
            with self._stores.database.transaction():
                self.take_out(seqs)
            self._stores.scan.forget(seqs)
            retired += len(seqs)
            yield Yield()
        return retired

    def take_out(self, seqs: Sequence[int]) -> None:
        """Out of recall, with every key in the timeline's database that leads there.

        The caller holds the transaction, and lets the exact scan forget them after it.
        """
        self._stores.documents.retire(seqs)
        for seq in seqs:
            self._stores.lexical.remove(seq)
        self._stores.vectors.unqueue(seqs)
        self._stores.vectors.remove(seqs)
        self._stores.documents.note_strays(seqs)

    def tell_host(self) -> None:
        """Lets the vector host forget what left recall; what it has not heard of yet is filtered when its node is read."""
        if self._stores.index.state is not HostState.READY:
            return
        seqs = self._stores.documents.strays(_STRAYS_PER_RUN)
        if not seqs:
            return
        try:
            self._stores.index.delete(seqs)
        except Outage:
            return
        with self._stores.database.transaction():
            self._stores.documents.drop_strays(seqs)

    # --- cutting

    def waiting(self) -> int:
        """Documents that wait to be cut and that nobody is at."""
        return self._stores.timeline.unchunked_count() - len(self._busy)

    def cut_waiting(self, chunks_max: int) -> Operation[None]:
        """Cuts what waits, oldest first; at most about so many passages."""
        tally = _Tally()
        while (left := chunks_max - tally.written) > 0:
            document = self._stores.timeline.next_unchunked(self._busy)
            if document is None:
                return
            with self._at_work(document.node.id):
                yield from self._cut(document, left, tally)

    @contextmanager
    def _at_work(self, node_id: NodeId) -> Iterator[None]:
        """Two generators never cut one document."""
        self._busy.add(node_id)
        try:
            yield
        finally:
            self._busy.discard(node_id)

    def _cut(self, document: Unchunked, chunks_max: int, tally: _Tally) -> Operation[None]:
        """Writes the document's next passages; resumes where a crash or an earlier run has stopped."""
        node, at_byte = document.node, document.done_bytes
        cuts = self._stores.documents.cuts(node.id)
        versioned = self._stores.documents.is_newest(node.id)
        whole = cuts is not None and len(cuts) == 1
        start = len(node.content.encode()[:at_byte].decode())
        last = tally.written + chunks_max
        while not whole and start < len(node.content):
            if tally.written >= last or not self._stores.timeline.is_unchunked(node.seq):
                return  # enough for now, or a newer version came meanwhile
            pieces = self._pieces(node, start, cuts)
            with self._stores.database.transaction():
                for piece in pieces:
                    draft = _passage(node, start, piece, at_byte)
                    self._write(draft, tally, versioned=versioned)
                    _, at_byte = draft.byte_range or (0, 0)
                    start = piece.end
            yield Yield()
        if versioned and node.source_uri is not None:
            tally.retired += yield from self._retire_others(node.source_uri, node.id)
        self._finish(node, tally, whole=whole)

    def _pieces(self, node: Node, start: int, cuts: Sequence[Cut] | None) -> Sequence[Cut]:
        """The next slice of passages."""
        count = self._config.chunks_per_slice
        if cuts is not None:
            first = bisect_right(cuts, start, key=lambda cut: cut.end)
            return cuts[first : first + count]
        bounds = chunk_bounds(node.content, start, self._config.chunk_characters, count)
        return [Cut(end=end, context=node.context) for _, end in bounds]

    def _write(self, draft: NodeDraft, tally: _Tally, *, versioned: bool) -> None:
        if versioned and self._stores.documents.adopt(draft):
            tally.kept += 1
            return
        node = self._stores.timeline.add(draft)
        self._stores.lexical.index(node)
        self._stores.vectors.enqueue(node.seq)
        tally.added += 1

    def _finish(self, parent: Node, tally: _Tally, *, whole: bool) -> None:
        """The document leaves recall and its passages answer, or it is its own only passage."""
        if not self._stores.timeline.is_unchunked(parent.seq):
            return
        state = CHUNKING_NONE if whole else CHUNKING_DONE
        with self._stores.database.transaction():
            self._stores.timeline.set_chunking(parent.seq, state)
            if whole:
                self._stores.vectors.enqueue(parent.seq)
                tally.added += 1
            else:
                self._stores.lexical.remove(parent.seq)


class _Tally:
    """What became of the passages so far."""

    def __init__(self) -> None:
        self.added = self.kept = self.retired = 0

    @property
    def written(self) -> int:
        """How many passages were gone through."""
        return self.added + self.kept


def _passage(parent: Node, start: int, piece: Cut, at_byte: int) -> NodeDraft:
    text = parent.content[start : piece.end]
    return NodeDraft(
        kind=NodeKind.CHUNK,
        role=parent.role,
        content=text,
        conversation_id=parent.conversation_id,
        project_id=parent.project_id,
        source_uri=parent.source_uri,
        parent_id=parent.id,
        byte_range=(at_byte, at_byte + len(text.encode())),
        created_at_ms=parent.created_at_ms,
        context=piece.context,
    )


def _node_of(draft: DocumentDraft) -> NodeDraft:
    return NodeDraft(
        kind=NodeKind.DOCUMENT,
        role=Role.NONE,
        content=draft.text,
        project_id=draft.project_id,
        source_uri=draft.uri,
        created_at_ms=draft.created_at_ms,
        context=draft.cuts[0].context if draft.cuts else "",
    )
