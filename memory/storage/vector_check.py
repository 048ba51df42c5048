"""Does the vector host work on this machine? A round trip through the real one, in a folder that is thrown away."""

from __future__ import annotations

import multiprocessing
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
import numpy as np

from memory.config import VectorConfig
from memory.storage import vector_host
from memory.storage.vector_host import HostOptions, HostReply, HostRequest

_DIMENSION = 8
_JOIN_S = 2.0


def check_vector_host(folder: Path, config: VectorConfig) -> str:
    """Starts a host in `folder`, stores a few vectors and finds one. Returns what went wrong, empty when all is well.

    Blocks for about two seconds; any thread.
    """
    context = multiprocessing.get_context("spawn")
    ours, theirs = context.Pipe(duplex=True)
    options = HostOptions(
        folder=str(folder),
        collection="check",
        dimension=_DIMENSION,
        sync_threshold=config.sync_threshold,
        hnsw_batch=config.hnsw_batch,
        ef_construction=config.ef_construction,
        neighbours=config.neighbours,
        ef_search=config.ef_search,
    )
    process = context.Process(
        target=vector_host.main, args=(theirs, msgspec.msgpack.encode(options)), daemon=True
    )
    process.start()
    theirs.close()
    try:
        return _round_trip(ours, config.open_timeout_s)
    except (EOFError, OSError, msgspec.MsgspecError) as error:
        return f"the vector host ended: {error}"
    finally:
        ours.close()
        process.join(_JOIN_S)
        if process.is_alive():
            process.kill()
            process.join()


def _round_trip(pipe: Connection[bytes, bytes], timeout_s: float) -> str:
    vectors = np.eye(_DIMENSION, dtype="<f2")
    requests = (
        HostRequest(id=1, op="upsert", seqs=list(range(_DIMENSION)), vectors=vectors.tobytes()),
        HostRequest(id=2, op="query", vectors=vectors[3].tobytes(), limit=1),
    )
    opened = _receive(pipe, timeout_s)
    if opened.error:
        return opened.error
    for request in requests:
        pipe.send_bytes(msgspec.msgpack.encode(request))
        reply = _receive(pipe, timeout_s)
        if reply.error:
            return reply.error
    return "" if reply.seqs == [3] else f"vector 3 was not found, but {reply.seqs}"


def _receive(pipe: Connection[bytes, bytes], timeout_s: float) -> HostReply:
    if not pipe.poll(timeout_s):
        return HostReply(id=0, error=f"no answer in {timeout_s:g} s")
    return msgspec.msgpack.decode(pipe.recv_bytes(), type=HostReply)
