"""A vector index that is brute force in this process; the twin of `memory.storage.vector_index.VectorIndex`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from memory.storage.vector_index import HostState, Outage
from memory.storage.vectors import Scored, Vector, VectorStore


class ExactIndex:
    """Takes blobs in batches and acknowledges them at the next `poll`, as the host does."""

    def __init__(self, store: VectorStore, batch_rows: int = 32) -> None:
        self._store = store
        self._batch_rows = batch_rows
        self._vectors: dict[int, Vector] = {}
        self._acknowledged: list[int] = []
        self._submitted_to = 0
        self.state = HostState.DOWN

    def start(self) -> None:
        self.state = HostState.READY
        self._submitted_to = self._store.high_water

    def poll(self) -> None:
        for stored_id in self._acknowledged:
            self._store.set_high_water(stored_id)
        self._acknowledged.clear()

    def submit_gap(self) -> bool:
        batch = self._store.after(self._submitted_to, self._batch_rows)
        if self.state is not HostState.READY or not batch:
            return False
        self._vectors.update({stored.seq: stored.vector for stored in batch})
        self._submitted_to = batch[-1].id
        self._acknowledged.append(batch[-1].id)
        return True

    def query(self, vector: Vector, limit: int) -> list[Scored]:
        self._need()
        found = [(seq, float(np.dot(v, vector))) for seq, v in self._vectors.items()]
        return sorted(found, key=lambda hit: (-hit[1], -hit[0]))[:limit]

    def count(self) -> int:
        self._need()
        return len(self._vectors)

    def ids(self) -> set[int]:
        self._need()
        return set(self._vectors)

    def delete(self, seqs: Sequence[int]) -> None:
        self._need()
        for seq in seqs:
            self._vectors.pop(seq, None)

    def resend(self) -> None:
        self._store.set_high_water(0)
        self._submitted_to = 0

    def close(self) -> None:
        self.state = HostState.DOWN

    def _need(self) -> None:
        if self.state is not HostState.READY:
            raise Outage(self.state)
