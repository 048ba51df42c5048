"""What the last questions were: their vectors and entry nodes, so that learning needs no model.

A bounded LRU in memory; losing it costs one embedding.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

import numpy as np

from memory.errors import require
from memory.requests import EmbedKind, NeedEmbeddings, Operation
from memory.storage.learning_log import query_key
from memory.storage.vectors import Vector
from memory.values import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """Where a search of the past has stopped, and what it has put before which judge: the next slice asks about no node again."""

    judge: str
    cursor: int
    forced: bool
    tried: frozenset[int]


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentQuery:
    """A question's vector (None: the embedder was out), the nodes that recall entered by, and its last exact search."""

    vector: Vector | None
    entries: tuple[NodeId, ...] = ()
    searched: Slice | None = None


class RecentQueries:
    """By normalised text."""

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._queries: OrderedDict[str, RecentQuery] = OrderedDict()

    def __len__(self) -> int:
        return len(self._queries)

    def find(self, text: str) -> RecentQuery | None:
        """The question if it was asked lately."""
        key = query_key(text)
        if key in self._queries:
            self._queries.move_to_end(key)
        return self._queries.get(key)

    def remember(self, text: str, query: RecentQuery) -> None:
        """Keeps it, and drops the one not used for longest."""
        key = query_key(text)
        self._queries[key] = query
        self._queries.move_to_end(key)
        while len(self._queries) > self._entries_max:
            self._queries.popitem(last=False)

    def clear(self) -> None:
        """Forgets all."""
        self._queries.clear()


def embedded(text: str, recent: RecentQueries, dimension: int) -> Operation[Vector | None]:
    """A question's vector, remembered or asked for; None when the embedder is out."""
    known = recent.find(text)
    if known is not None and known.vector is not None:
        return known.vector
    reply = yield NeedEmbeddings(texts=(text,), kind=EmbedKind.QUERY)
    if reply is None:
        return None
    require(isinstance(reply, np.ndarray), "an embedding request was answered otherwise")
    assert isinstance(reply, np.ndarray)
    require(reply.shape == (1, dimension), "a vector of a wrong shape")
    vector: Vector = reply[0].astype(np.float32)
    return vector
