"""`digest`: one bounded run of background indexing, in slices.

Documents are chunked first (cheap, and makes them findable by word), then missing lexical keys, then vectors for at most a
batch of texts, then the vector host is fed. Every slice commits, so that a crash or a wake-up loses at most one.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import numpy as np

from memory.background import passages
from memory.engine.documents import Documents
from memory.errors import require
from memory.events import IndexProgress
from memory.recall.hybrid import wants_ann
from memory.recall.neighbour_cache import NeighbourCache
from memory.requests import EmbedKind, Matrix, NeedEmbeddings, Operation, Yield
from memory.storage.stores import Stores
from memory.storage.vector_index import HostState
from memory.values import NodeId


class Digestion:
    """Background indexing over open stores."""

    def __init__(self, stores: Stores, cache: NeighbourCache, documents: Documents) -> None:
        self._stores = stores
        self._documents = documents
        self._config = stores.config.rest
        self._cache = cache

    def run(self) -> Operation[bool]:
        """One run; True when more is pending. An embedder outage ends it and changes nothing."""
        self._stores.index.poll()
        yield from self._fold_pointers()
        yield from self._documents.cut_waiting(self._config.chunks_per_run)
        yield from self._index_words()
        if not (yield from self._embed()):
            return False
        self._feed_host()
        return self._pending()

    def catch_up(self, exclude: Collection[NodeId]) -> Operation[None]:
        """One batch of the newest nodes that have no vector yet, before a recall: what was said last is often asked for next.

        Without it a fact told just before the program ended would not be found just after it started. An outage of the
        embedder changes nothing.

        Args:
            exclude: nodes that the recall will not return (the question itself).
        """
        skipped = {n.seq for n in self._stores.timeline.nodes(sorted(exclude)).values()}
        waiting = self._stores.vectors.waiting(self._config.texts_per_run)
        if not any(seq not in skipped for seq, _ in waiting):
            return
        if self._stores.vectors.background() is not None or (yield from self._embed_background()):
            yield from self._embed_waiting(waiting)

    def _fold_pointers(self) -> Operation[None]:
        more = True
        while more:
            more, changed = self._stores.pointers.catch_up()
            self._cache.invalidate(changed)
            if more:
                yield Yield()

    def _index_words(self) -> Operation[None]:
        lexical = self._stores.lexical
        while lexical.needs_rebuild() and lexical.continue_rebuild(
            self._config.lexical_rows_per_slice
        ):
            yield Yield()

    # --- vectors

    def _embed(self) -> Operation[bool]:
        """Embeds the next nodes, or – when none wait – learned queries. False: the embedder is out."""
        if self._stores.vectors.background() is None and not (yield from self._embed_background()):
            return False
        waiting = self._stores.vectors.waiting(self._config.texts_per_run)
        if waiting:
            return (yield from self._embed_waiting(waiting))
        queries = self._stores.log.unembedded(self._config.texts_per_run)
        if queries:
            matrix = yield from self._vectors([text for _, text in queries], EmbedKind.QUERY)
            if matrix is None:
                return False
            with self._stores.database.transaction():
                for (query_id, _), vector in zip(queries, matrix, strict=True):
                    self._stores.log.set_vector(query_id, vector)
        return True

    def _embed_waiting(self, waiting: Sequence[tuple[int, str]]) -> Operation[bool]:
        matrix = yield from self._vectors([text for _, text in waiting], EmbedKind.PASSAGE)
        if matrix is None:
            return False
        self._stores.vectors.put([seq for seq, _ in waiting], matrix)
        self._report()
        return True

    def _embed_background(self) -> Operation[bool]:
        """Once per embedder, before the first node: no node has a vector that cannot be judged."""
        texts, step = passages(), self._config.texts_per_run
        parts: list[Matrix] = []
        for start in range(0, len(texts), step):
            part = yield from self._vectors(texts[start : start + step], EmbedKind.PASSAGE)
            if part is None:
                return False
            parts.append(part)
        self._stores.vectors.put_background(np.concatenate(parts))
        return True

    def _vectors(self, texts: Sequence[str], kind: EmbedKind) -> Operation[Matrix | None]:
        reply = yield NeedEmbeddings(texts=tuple(texts), kind=kind)
        if reply is None:
            return None
        require(isinstance(reply, np.ndarray), "an embedding request was answered otherwise")
        assert isinstance(reply, np.ndarray)
        shape = (len(texts), self._stores.epoch.dimension)
        require(reply.shape == shape, "vectors of a wrong shape")
        return reply

    def _report(self) -> None:
        pending = self._stores.vectors.waiting_count()
        done = self._stores.vectors.count()
        self._stores.sink.emit(IndexProgress(done=done, pending=pending))

    def _feed_host(self) -> None:
        """Starts the host only when it is of use: it costs 200 MB and a second of one core."""
        index = self._stores.index
        enough = self._stores.config.vectors.start_lag_min
        if self._stores.vectors.lag() >= enough or wants_ann(self._stores):
            index.start()
        index.wait_for_acknowledgement()
        index.poll()
        index.submit_gap()
        self._documents.tell_host()

    def _pending(self) -> bool:
        """More to do at once. A host that is still opening is not waited for: a later run feeds it."""
        stores = self._stores
        work = (
            self._documents.waiting() or stores.vectors.waiting_count() or stores.log.unembedded(1)
        )
        filling = stores.index.state is HostState.READY and stores.vectors.lag() > 0
        return bool(work) or filling
