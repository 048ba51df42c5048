"""The vector index: the parent's side of the vector host, and its lifecycle.

Derived and optional: whatever happens to the host is an *outage* (`Outage` from `query`), never an error of recall – the
linear scan answers. Storage thread only. Nothing here waits for the host but `query` (a short time-out), the audit,
and `wait_for_acknowledgement` (10 ms).

States: down → opening → verifying → ready. A death or hang before it is ready, an answer that disagrees with truth, or a second
death without one acknowledged batch between sets the folder aside (`vectors.broken-<ms>`) and starts from the blobs. Restarts
back off and end; the host then stays down until the next start of the program. Upserts travel in small batches, at most
two in flight; an epoch's high-water mark advances with their acknowledgement. A crash loses at most the marks: the gap
is sent again, and upserts are idempotent.
"""

from __future__ import annotations

import multiprocessing
import re
import shutil
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnProcess
from pathlib import Path

import msgspec
import numpy as np

from memory.config import VectorConfig
from memory.events import EventSink, StoreTrouble
from memory.ports import Clock
from memory.storage import vector_host
from memory.storage.vector_host import DYING, READY, HostOptions, HostReply, HostRequest
from memory.storage.vectors import Scored, StoredVector, Vector, VectorStore, pack

_JOIN_S = 2.0
_COSINE_TOLERANCE = 0.02  # float16 rounding is 0.001; a zeroed or shifted file is far off


class HostState(StrEnum):
    """Where the host is in its life."""

    DOWN = "down"
    OPENING = "opening"
    VERIFYING = "verifying"
    READY = "ready"
    GIVEN_UP = "given up"


class Outage(Exception):
    """The host did not answer. Never leaves `memory`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Flight:
    """A batch on its way: its request, and the blob id up to which it reaches."""

    request_id: int
    up_to: int


class VectorIndex:
    """Chroma behind a pipe."""

    def __init__(
        self,
        folder: Path,
        store: VectorStore,
        config: VectorConfig,
        *,
        clock: Clock,
        sink: EventSink,
    ) -> None:
        self.folder = folder
        self._store = store
        self._config = config
        self._clock = clock
        self._sink = sink
        self.state = HostState.DOWN
        self.problem = ""
        self._process: SpawnProcess | None = None
        self._pipe: Connection[bytes, bytes] | None = None
        self._next_id = READY + 1
        self._flights: list[_Flight] = []
        self._submitted_to = 0
        self._sample: dict[int, Vector] = {}
        self._sample_request = 0
        self._failures = 0
        self._deaths_since_ack = 0
        self._restart_at_s = 0.0
        self._deadline_s = 0.0

    # --- lifecycle

    def start(self) -> None:
        """Starts the child if it is down and its time has come; returns at once."""
        if not self._config.host or self.state is not HostState.DOWN:
            return
        if self._clock.monotonic_s() < self._restart_at_s:
            return
        context = multiprocessing.get_context("spawn")
        ours, theirs = context.Pipe(duplex=True)
        process = context.Process(
            target=vector_host.main,
            args=(theirs, self._options()),
            name="growbox-vectors",
            daemon=True,
        )
        process.start()
        theirs.close()
        self._process, self._pipe = process, ours
        self.state = HostState.OPENING
        self._deadline_s = self._clock.monotonic_s() + self._config.open_timeout_s

    def _options(self) -> bytes:
        config = self._config
        return msgspec.msgpack.encode(
            HostOptions(
                folder=str(self.folder),
                collection=collection_name(self._store.epoch.name),
                dimension=self._store.epoch.dimension,
                sync_threshold=config.sync_threshold,
                hnsw_batch=config.hnsw_batch,
                ef_construction=config.ef_construction,
                neighbours=config.neighbours,
                ef_search=config.ef_search,
            )
        )

    def close(self) -> None:
        """Ends the child; idempotent. Closing the pipe is the signal, killing the fallback."""
        self._drop_process()
        if self.state is not HostState.GIVEN_UP:
            self.state = HostState.DOWN

    def _drop_process(self) -> None:
        if self._pipe is not None:
            self._pipe.close()
            self._pipe = None
        if self._process is not None:
            self._process.join(_JOIN_S)
            if self._process.is_alive():
                self._process.kill()
                self._process.join(_JOIN_S)
            self._process = None
        self._flights.clear()
        self._sample.clear()

    def _fail(self, problem: str, *, damaged: bool) -> None:
        """The host is gone or not to be trusted."""
        opening = self.state in (HostState.OPENING, HostState.VERIFYING)
        self._drop_process()
        self.problem = problem
        self._deaths_since_ack += 1
        if damaged or opening or self._deaths_since_ack > 1:
            self._set_aside()
            self._deaths_since_ack = 0
        waits = self._config.restart_backoff_s
        if self._failures >= len(waits):
            self.state = HostState.GIVEN_UP
        else:
            self.state = HostState.DOWN
            self._restart_at_s = self._clock.monotonic_s() + waits[self._failures]
        self._failures += 1
        self._sink.emit(StoreTrouble(store="vectors", problem=problem))

    def _set_aside(self) -> None:
        """Moves the folder away for inspection, keeps the newest such, and lets the blobs be sent again."""
        self._store.set_high_water(0)
        if not self.folder.exists():
            return
        target = self.folder.with_name(f"{self.folder.name}.broken-{self._clock.now_ms()}")
        try:
            self.folder.rename(target)
        except OSError:
            shutil.rmtree(self.folder, ignore_errors=True)
        for old in self.broken_folders()[: -self._config.broken_folders_max]:
            shutil.rmtree(old, ignore_errors=True)

    def broken_folders(self) -> list[Path]:
        """Folders that were set aside, oldest first."""
        return sorted(self.folder.parent.glob(f"{self.folder.name}.broken-*"))

    # --- the pipe

    def _send(
        self, op: str, *, seqs: Sequence[int] = (), vectors: bytes = b"", limit: int = 0
    ) -> int:
        request = HostRequest(
            id=self._next_id, op=op, seqs=list(seqs), vectors=vectors, limit=limit
        )
        self._next_id += 1
        if self._pipe is None:
            raise Outage(self.problem)
        try:
            self._pipe.send_bytes(msgspec.msgpack.encode(request))
        except OSError as error:
            self._fail("the vector host is gone", damaged=False)
            raise Outage(self.problem) from error
        return request.id

    def _receive(self, timeout_s: float) -> HostReply | None:
        """The next frame, or None when there is none in time or the host has just failed."""
        if self._pipe is None:
            return None
        try:
            if not self._pipe.poll(timeout_s):
                return None
            return msgspec.msgpack.decode(self._pipe.recv_bytes(), type=HostReply)
        except (EOFError, OSError, msgspec.MsgspecError):
            self._fail("the vector host ended", damaged=False)
            return None

    def wait_for_acknowledgement(self) -> None:
        """Gives a busy host one short moment; nothing is waited for when no batch is in flight."""
        if self._flights:
            reply = self._receive(self._config.acknowledgement_wait_s)
            if reply is not None:
                self._absorb(reply)

    def poll(self) -> None:
        """Absorbs what the host has said, and notices a hang. Never waits."""
        while (reply := self._receive(0.0)) is not None:
            self._absorb(reply)
        opening = self.state in (HostState.OPENING, HostState.VERIFYING)
        if self._flights and self._clock.monotonic_s() > self._deadline_s:
            self._fail("the vector host has fallen silent", damaged=False)
        elif opening and self._clock.monotonic_s() > self._deadline_s:
            self._fail("the vector host did not open in time", damaged=True)

    def _absorb(self, reply: HostReply) -> None:
        if reply.id == DYING:
            self._fail(reply.error, damaged=False)
        elif reply.id == READY:
            self._opened(reply.count)
        elif reply.id == self._sample_request and self.state is HostState.VERIFYING:
            self._verify(reply)
        elif self._flights and reply.id == self._flights[0].request_id:
            flight = self._flights.pop(0)
            self._expect_acknowledgement()
            self._store.set_high_water(flight.up_to)
            self._deaths_since_ack = 0

    def _expect_acknowledgement(self) -> None:
        self._deadline_s = self._clock.monotonic_s() + self._config.silence_timeout_s

    def _opened(self, count: int) -> None:
        """Open. A wrong count means that the folder is not ours: everything is sent again."""
        mark = self._store.high_water
        expected = self._store.count_up_to(mark)
        if count < expected:
            self._store.set_high_water(0)
            mark = 0
        self._submitted_to = mark
        stored = self._store.sample(mark, self._config.sample_rows)
        self._sample = {s.seq: s.vector for s in stored}
        self.state = HostState.VERIFYING
        if self._sample:
            self._sample_request = self._send("fetch", seqs=list(self._sample))
        else:
            self._now_ready()

    def _verify(self, reply: HostReply) -> None:
        """Compares a few stored vectors with truth: a zeroed file opens without a word."""
        matrix = np.frombuffer(reply.vectors, dtype="<f2").astype(np.float32)
        rows = matrix.reshape(-1, self._store.epoch.dimension)
        agreeing = [
            seq
            for seq, row in zip(reply.seqs, rows, strict=True)
            if abs(float(row @ self._sample[seq]) - 1.0) < _COSINE_TOLERANCE
        ]
        if set(agreeing) != set(self._sample):
            self._fail("the vector folder disagrees with the timeline", damaged=True)
        else:
            self._now_ready()

    def _now_ready(self) -> None:
        self.state = HostState.READY
        if self.problem:
            self.problem = ""
            self._sink.emit(StoreTrouble(store="vectors", problem=""))

    # --- work

    def submit_gap(self) -> bool:
        """Sends the next blobs that the host does not have; True when it took any."""
        sent = False
        while (
            self.state is HostState.READY
            and len(self._flights) < self._config.batches_in_flight_max
        ):
            batch = self._store.after(self._submitted_to, self._config.batch_rows)
            if not batch:
                break
            self._submit(batch)
            sent = True
        return sent

    def _submit(self, batch: Sequence[StoredVector]) -> None:
        try:
            request_id = self._send(
                "upsert",
                seqs=[s.seq for s in batch],
                vectors=b"".join(pack(s.vector) for s in batch),
            )
        except Outage:
            return
        self._submitted_to = batch[-1].id
        if not self._flights:
            self._expect_acknowledgement()
        self._flights.append(_Flight(request_id=request_id, up_to=batch[-1].id))

    def _ask(self, op: str, timeout_s: float, *, vectors: bytes = b"", limit: int = 0) -> HostReply:
        """Sends a request and waits for its answer; other answers that come first are absorbed."""
        self.poll()
        if self.state is not HostState.READY:
            raise Outage(self.problem or self.state)
        request_id = self._send(op, vectors=vectors, limit=limit)
        deadline = self._clock.monotonic_s() + timeout_s
        while (left := deadline - self._clock.monotonic_s()) > 0:
            reply = self._receive(left)
            if reply is None:
                break
            if reply.id == request_id:
                return reply
            self._absorb(reply)
        raise Outage(f"no answer to {op} in {timeout_s:g} s")

    def query(self, vector: Vector, limit: int) -> list[Scored]:
        """Approximate nearest neighbours: (seq, cosine), best first.

        Raises:
            Outage: not ready, dead, or slower than the time-out.
        """
        reply = self._ask("query", self._config.query_timeout_s, vectors=pack(vector), limit=limit)
        return sorted(
            zip(reply.seqs, reply.scores, strict=True), key=lambda hit: (-hit[1], -hit[0])
        )

    def count(self) -> int:
        """Vectors that the host holds (audit).

        Raises:
            Outage: as `query`.
        """
        return self._ask("count", self._config.audit_timeout_s).count

    def ids(self) -> set[int]:
        """Sequence numbers that the host holds (audit).

        Raises:
            Outage: as `query`.
        """
        return set(self._ask("ids", self._config.audit_timeout_s).seqs)

    def delete(self, seqs: Sequence[int]) -> None:
        """Deletes vectors that truth does not have; the answer is not waited for."""
        self._send("delete", seqs=seqs)

    def resend(self) -> None:
        """Lets every blob be sent again; upserts replace what is there."""
        self._store.set_high_water(0)
        self._flights.clear()
        self._submitted_to = 0

    def discard(self) -> None:
        """Ends the host and deletes its folder; the next start fills a new one from the blobs.

        Deleting through Chroma would not do: deleted vectors stay in its files.
        """
        self.close()
        self.state = HostState.DOWN
        self._failures = self._deaths_since_ack = 0
        self._restart_at_s = 0.0
        self.resend()
        for folder in (self.folder, *self.broken_folders()):
            shutil.rmtree(folder, ignore_errors=True)

    def file_bytes(self) -> int:
        """Size on disk, folders set aside included."""
        folders = [self.folder, *self.broken_folders()]
        return sum(f.stat().st_size for d in folders for f in d.rglob("*") if f.is_file())


def collection_name(epoch: str) -> str:
    """A name that Chroma takes: 3–512 of `[a-zA-Z0-9._-]`, alphanumeric at both ends."""
    safe = re.sub(r"[^a-zA-Z0-9._-]", "-", epoch)[:200]
    mark = f"{_checksum(epoch):08x}"
    return f"e{safe}.{mark}"


def _checksum(text: str) -> int:
    return zlib.crc32(text.encode("utf-8", "surrogatepass"))
