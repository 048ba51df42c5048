"""The vector host: the child process that runs Chroma.

Chroma's native calls hold the interpreter lock (adding 500 vectors froze another thread for 184 ms) and a damaged index can
kill the process, so it lives here, at the lowest priority, and owns nothing that cannot be rebuilt. Frames are msgpack over
a pipe, both ways; nothing is pickled. A reader thread takes requests off the pipe at once – the parent never blocks on
sending – and ends the process the moment the pipe ends. The main thread serves queries before upserts.

Importing this module is cheap: chromadb is imported inside `main`.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import queue
import sys
import threading
from collections.abc import Callable, Sequence
from multiprocessing.connection import Connection
from pathlib import Path
from types import TracebackType
from typing import Protocol

import msgspec
import numpy as np

_VERSION_FILE = "growbox-version"
_FORMAT = "1"
_HERE = "."  # the working directory: hnswlib opens files by an ANSI name on Windows, and "." is always one
_LINK_RATIO_MAX = (
    10  # a healthy HNSW's link lists are far smaller than its vectors (MemPalace PR #1339)
)
_PR_SET_PDEATHSIG, _SIGKILL = 1, 9

READY, DYING = 0, -1  # reply ids that answer no request


class HostOptions(msgspec.Struct, frozen=True):
    """How to open the folder."""

    folder: str
    collection: str
    dimension: int
    sync_threshold: int
    hnsw_batch: int
    ef_construction: int
    neighbours: int
    ef_search: int


class HostRequest(msgspec.Struct, frozen=True, omit_defaults=True):
    """`op` is one of upsert, query, fetch, ids, count, delete. Vectors are float16 bytes, row by row."""

    id: int
    op: str
    seqs: list[int] = []
    vectors: bytes = b""
    limit: int = 0


class HostReply(msgspec.Struct, frozen=True, omit_defaults=True):
    """Answers request `id`; `READY` carries the count of the opened collection, `DYING` the reason in `error`."""

    id: int
    error: str = ""
    seqs: list[int] = []
    scores: list[float] = []
    vectors: bytes = b""
    count: int = 0


class _Collection(Protocol):
    """The part of a Chroma collection that we use."""

    def count(self) -> int: ...
    def upsert(self, *, ids: list[str], embeddings: object) -> None: ...
    def query(
        self, *, query_embeddings: object, n_results: int, include: list[str]
    ) -> dict[str, list[list[object]]]: ...
    def get(
        self, *, ids: list[str] | None = None, include: list[str]
    ) -> dict[str, Sequence[object]]: ...
    def delete(self, *, ids: list[str]) -> None: ...


class DamagedFolder(Exception):
    """The folder fails a check before Chroma touches it."""


def main(connection: Connection[bytes, bytes], options: bytes) -> None:
    """Entry of the child process; ends when the pipe ends."""
    _be_humble()
    requests: queue.PriorityQueue[tuple[int, int, HostRequest]] = queue.PriorityQueue()
    threading.Thread(target=_read, args=(connection, requests), daemon=True).start()
    setup = msgspec.msgpack.decode(options, type=HostOptions)
    with _LastWords(connection):
        host = _Host(setup)
        _send(connection, HostReply(id=READY, count=host.collection.count()))
        while True:
            _send(connection, host.serve(requests.get()[2]))


class _LastWords:
    """Any trouble ends the host: says why, then exits, without a traceback on the user's console.

    No `except`: Rust panics are no `Exception`s, and every failure means the same to the parent – an outage.
    """

    def __init__(self, connection: Connection[bytes, bytes]) -> None:
        self._connection = connection

    def __enter__(self) -> None:
        return None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        name = "" if kind is None else kind.__name__
        _send(self._connection, HostReply(id=DYING, error=f"{name}: {error}"[:500]))
        os._exit(3)


def _send(connection: Connection[bytes, bytes], reply: HostReply) -> None:
    try:
        connection.send_bytes(msgspec.msgpack.encode(reply))
    except OSError:
        os._exit(0)


def _read(
    connection: Connection[bytes, bytes],
    requests: queue.PriorityQueue[tuple[int, int, HostRequest]],
) -> None:
    """Takes requests off the pipe; its end ends the process, whatever the main thread does."""
    try:
        while True:
            request = msgspec.msgpack.decode(connection.recv_bytes(), type=HostRequest)
            urgency = 0 if request.op == "query" else 1
            requests.put((urgency, request.id, request))
    except (EOFError, OSError, msgspec.MsgspecError):
        os._exit(0)


def _be_humble() -> None:
    """Lowest priority, deaf to the terminal's Ctrl-C (the parent decides what it means), dead when the parent is."""
    import signal

    import psutil

    signal.signal(signal.SIGINT, signal.SIG_IGN)

    process = psutil.Process()
    if sys.platform == "win32":
        process.nice(psutil.IDLE_PRIORITY_CLASS)
    else:
        with contextlib.suppress(OSError):
            os.nice(19)
    if sys.platform == "linux":
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, _SIGKILL)


class _Host:
    """One open collection."""

    def __init__(self, options: HostOptions) -> None:
        folder = Path(options.folder)
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        os.chdir(folder)  # chromadb reads `.env` from the working directory while it is imported
        _check_version(folder)
        _check_files(folder)
        self._options = options
        self.collection = _open(options)
        (folder / _VERSION_FILE).write_text(_version(), encoding="ascii")
        self._probe()
        self._operations: dict[str, Callable[[HostRequest], HostReply]] = {
            "upsert": self._upsert,
            "query": self._query,
            "fetch": self._fetch,
            "ids": self._ids,
            "count": self._count,
            "delete": self._delete,
        }

    def _probe(self) -> None:
        """Makes Chroma load the index now, where a crash counts as a failed open."""
        if self.collection.count():
            probe = np.ones((1, self._options.dimension), dtype=np.float32)
            self.collection.query(query_embeddings=probe, n_results=1, include=["distances"])

    def serve(self, request: HostRequest) -> HostReply:
        """Runs one request."""
        return self._operations[request.op](request)

    def _matrix(self, request: HostRequest) -> object:
        flat = np.frombuffer(request.vectors, dtype="<f2").astype(np.float32)
        return flat.reshape(-1, self._options.dimension)

    def _upsert(self, request: HostRequest) -> HostReply:
        self.collection.upsert(ids=[str(s) for s in request.seqs], embeddings=self._matrix(request))
        return HostReply(id=request.id)

    def _query(self, request: HostRequest) -> HostReply:
        found = self.collection.query(
            query_embeddings=self._matrix(request), n_results=request.limit, include=["distances"]
        )
        seqs = [int(str(i)) for i in found["ids"][0]]
        cosines = [1.0 - float(str(d)) for d in found["distances"][0]]
        return HostReply(id=request.id, seqs=seqs, scores=cosines)

    def _fetch(self, request: HostRequest) -> HostReply:
        found = self.collection.get(ids=[str(s) for s in request.seqs], include=["embeddings"])
        seqs = [int(str(i)) for i in found["ids"]]
        matrix = np.asarray(found["embeddings"], dtype="<f2")
        return HostReply(id=request.id, seqs=seqs, vectors=matrix.tobytes())

    def _ids(self, request: HostRequest) -> HostReply:
        found = self.collection.get(include=[])
        return HostReply(id=request.id, seqs=[int(str(i)) for i in found["ids"]])

    def _count(self, request: HostRequest) -> HostReply:
        return HostReply(id=request.id, count=self.collection.count())

    def _delete(self, request: HostRequest) -> HostReply:
        self.collection.delete(ids=[str(s) for s in request.seqs])
        return HostReply(id=request.id)


class _Client(Protocol):
    """The part of a Chroma client that we use."""

    def get_or_create_collection(
        self, name: str, *, configuration: object, embedding_function: None
    ) -> _Collection: ...


def _open(options: HostOptions) -> _Collection:
    import chromadb
    from chromadb.config import Settings

    settings = Settings(
        anonymized_telemetry=False,
        allow_reset=False,
        is_persistent=True,
        persist_directory=_HERE,
        migrations="apply",
        chroma_otel_collection_endpoint="",
    )
    client: _Client = chromadb.PersistentClient(path=_HERE, settings=settings)
    return _collection(client, options)


def _collection(client: _Client, options: HostOptions) -> _Collection:
    """`embedding_function=None` everywhere: the default one downloads a model."""
    hnsw = {
        "space": "cosine",
        "ef_construction": options.ef_construction,
        "ef_search": options.ef_search,
        "max_neighbors": options.neighbours,
        "num_threads": 1,
        "batch_size": options.hnsw_batch,
        "sync_threshold": options.sync_threshold,
    }
    return client.get_or_create_collection(
        options.collection, configuration={"hnsw": hnsw}, embedding_function=None
    )


def _version() -> str:
    return f"{_FORMAT} chromadb {importlib.metadata.version('chromadb')}"


def _check_version(folder: Path) -> None:
    """An index of another Chroma version crashed natively on first access (MemPalace #2252): rebuild instead."""
    marker = folder / _VERSION_FILE
    content = any(folder.glob("*.sqlite3"))
    found = marker.read_text(encoding="ascii", errors="replace") if marker.exists() else ""
    if content and found and found != _version():
        raise DamagedFolder(f"written by {found!r}")


def _check_files(folder: Path) -> None:
    """File sizes that only a torn write explains, looked at before native code reads them."""
    for vectors in folder.glob("*/data_level0.bin"):
        size = vectors.stat().st_size
        links = vectors.with_name("link_lists.bin")
        if size == 0 or (links.exists() and links.stat().st_size > _LINK_RATIO_MAX * size):
            raise DamagedFolder("the index files do not fit each other")
