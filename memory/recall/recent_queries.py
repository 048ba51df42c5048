"""What the last questions were: their vectors and entry nodes, so that learning needs no model.

A bounded LRU in memory; losing it costs one embedding.
"""

from __future__ import annotations

from collections import OrderedDict
from dataclasses import dataclass

from memory.storage.learning_log import query_key
from memory.storage.vectors import Vector
from memory.values import NodeId


@dataclass(frozen=True, slots=True, kw_only=True)
class RecentQuery:
    """A question's vector (None: the embedder was out) and the nodes that recall entered by."""

    vector: Vector | None
    entries: tuple[NodeId, ...] = ()


class RecentQueries:
    """By normalised text."""

    def __init__(self, entries_max: int) -> None:
        self._entries_max = entries_max
        self._queries: OrderedDict[str, RecentQuery] = OrderedDict()

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
