"""Getting a model file into its folder so that a crash leaves the old state or the new one, never half.

Owns the `.part` file beside the model and its lock (two processes never write one `.part`), the free-space check, the final
check of size and sha256, and the rename. A crash or a cancel leaves the `.part`, which the next attempt continues. Runs on a
worker thread. All trouble leaves here as `ProblemError`.
"""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from growbox_app.api import ProblemCode, ProblemError, Progress, ProgressSink
from growbox_app.files import sync_folder
from growbox_app.models.catalogue import Model
from growbox_app.models.trouble import trouble, why_not_gguf

GGUF_MAGIC = b"GGUF"
_BLOCK_BYTES = 1 << 20
_SPACE_MARGIN_BYTES = 128 << 20
_REPORT_EVERY_S = 0.1
_RATE_WINDOW_S = 5.0
_RATE_AFTER_S = 0.5
# Windows locks byte ranges; this one lies far behind any file, so reading the file is not barred.
_LOCK_OFFSET = 1 << 60


class TransferCancelled(Exception):
    """The caller's `cancelled` said so. The `.part` file stays and the next attempt continues it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """What to get and how to report. `cancelled` is asked several times a second, from the worker thread."""

    model: Model
    models_path: Path
    progress: ProgressSink
    cancelled: Callable[[], bool]

    def check_cancelled(self) -> None:
        """Raises `TransferCancelled` when asked to stop."""
        if self.cancelled():
            raise TransferCancelled(self.model.id)


class Meter:
    """Progress of one step with its rate over the last seconds, reported at most ten times a second."""

    def __init__(
        self, job: Job, step: str, *, done: int = 0, total: int | None = None, detail: str = ""
    ) -> None:
        self._job = job
        self._step = step
        self._total = job.model.size if total is None else total
        self._reported_s = float("-inf")
        self._window = [(time.monotonic(), done)]
        self.detail = detail
        self.at(done)

    def at(self, done: int) -> None:
        """Says how far the step is, in bytes. Also the place where a cancel is noticed."""
        self._job.check_cancelled()
        now = time.monotonic()
        if now - self._reported_s < _REPORT_EVERY_S and done < self._total:
            return
        self._reported_s = now
        self._window.append((now, done))
        while len(self._window) > 2 and now - self._window[0][0] > _RATE_WINDOW_S:
            del self._window[0]
        rate = self._rate()
        self._job.progress(
            Progress(
                step=self._step,
                done=done,
                total=self._total,
                rate=rate,
                left_s=(self._total - done) / rate if rate > 0 else None,
                detail=self.detail,
            )
        )

    def _rate(self) -> float:
        """Bytes per second over the window; 0, meaning unknown, before there is enough to say."""
        (since, before), (now, done) = self._window[0], self._window[-1]
        return (done - before) / (now - since) if now - since >= _RATE_AFTER_S else 0.0


class PartFile:
    """The growing `.part` of one model, locked for this process. Use through `open_part`."""

    def __init__(self, job: Job, stream: BinaryIO, path: Path) -> None:
        self._job = job
        self._stream = stream
        self.path = path
        self.have = path.stat().st_size

    def append(self, content: bytes) -> None:
        """Adds bytes at the end.

        Raises:
            ProblemError: `CHECKSUM` for bytes that cannot be this model: no GGUF magic, or too many. The part is emptied.
        """
        self._stream.seek(self.have)
        self._stream.write(content)
        self.have += len(content)
        if self.have > self._job.model.size:
            self.reject("size", f"more than {self._job.model.size} bytes")
        if self.have - len(content) < len(GGUF_MAGIC) <= self.have:
            head = self._read_at(0, 64)
            if not head.startswith(GGUF_MAGIC):
                why = f"starts with {head[:16]!r}, not with {GGUF_MAGIC!r}"
                self.reject(why_not_gguf(head), why)

    def truncate(self, size: int) -> None:
        """Keeps the first `size` bytes."""
        self._stream.truncate(size)
        self.have = size

    def reject(self, reason: str, why: str) -> None:
        """Empties the part and raises `CHECKSUM`: these bytes are of no use to a next attempt.

        Args:
            reason: a key of `models.reason` in the translations.
            why: what was seen, to be copied.
        """
        self.truncate(0)
        raise trouble(
            ProblemCode.CHECKSUM,
            self._job.model,
            path=str(self.path),
            reason=reason,
            detail=why,
        )

    def copy_from(self, source: Path, step: str) -> None:
        """Replaces the part by the bytes of a file."""
        self.truncate(0)
        meter = Meter(self._job, step, detail=source.name)
        with source.open("rb") as stream:
            while block := stream.read(_BLOCK_BYTES):
                self.append(block)
                meter.at(self.have)

    def sha256(self, start: int, size: int) -> str:
        """The hash of a range that an earlier attempt may have written; no progress, a few seconds at most."""
        digest = hashlib.sha256()
        for offset in range(start, start + size, _BLOCK_BYTES):
            self._job.check_cancelled()
            digest.update(self._read_at(offset, min(_BLOCK_BYTES, start + size - offset)))
        return digest.hexdigest()

    def _read_at(self, offset: int, size: int) -> bytes:
        self._stream.seek(offset)
        return self._stream.read(size)

    def verify(self) -> None:
        """Checks size and sha256, with progress, and makes the bytes durable.

        Raises:
            ProblemError: `DOWNLOAD_FAILED` when bytes are missing (the part stays), `CHECKSUM` when they are wrong.
        """
        model = self._job.model
        if self.have < model.size:
            raise trouble(
                ProblemCode.DOWNLOAD_FAILED,
                model,
                reason="incomplete",
                detail=f"{self.have} of {model.size} bytes",
            )
        self._stream.flush()
        self._stream.seek(0)
        found = hash_stream(self._stream, Meter(self._job, "model_verify", detail=model.file))
        if found != model.sha256:
            self.reject("checksum", f"sha256 {found}, expected {model.sha256}")
        os.fsync(self._stream.fileno())


def hash_stream(stream: BinaryIO, meter: Meter) -> str:
    """The sha256 of the rest of a stream, reported block by block."""
    digest = hashlib.sha256()
    done = 0
    while block := stream.read(_BLOCK_BYTES):
        digest.update(block)
        done += len(block)
        meter.at(done)
    return digest.hexdigest()


@contextmanager
def open_part(job: Job) -> Iterator[PartFile]:
    """Opens and locks the `.part`; when the block ends well, it takes the model's name. The block must `verify()`.

    Raises:
        ProblemError: known trouble, `DISK_FULL` and `DATA_UNWRITABLE` included.
        TransferCancelled: the caller stopped it.
    """
    path = job.models_path / job.model.file
    part_path = path.with_name(path.name + ".part")
    with translated(job):
        job.models_path.mkdir(parents=True, exist_ok=True)
        part_path.touch()
        with part_path.open("r+b") as stream:
            _lock(stream, part_path, job)
            part = PartFile(job, stream, part_path)
            try:
                check_space(job, job.model.size - part.have)
                yield part
            finally:
                if part.have == 0:
                    _discard(part_path)
            if os.name != "nt":
                # Under the lock, so that nobody else opens what is about to be the model. Windows renames no open file.
                part_path.replace(path)
        if os.name == "nt":
            part_path.replace(path)
        sync_folder(job.models_path)


def _discard(path: Path) -> None:
    with suppress(OSError):
        path.unlink()


def check_space(job: Job, need: int) -> None:
    """Raises `DISK_FULL` when fewer than `need` bytes and a margin are free in the models folder."""
    free = shutil.disk_usage(job.models_path).free
    if need > 0 and free < need + _SPACE_MARGIN_BYTES:
        raise _disk_full(job, need + _SPACE_MARGIN_BYTES - free, free)


@contextmanager
def translated(job: Job) -> Iterator[None]:
    """Turns the operating system's refusals into known trouble."""
    try:
        yield
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            raise _disk_full(job, job.model.size, 0) from error
        path = str(error.filename or job.models_path)
        raise trouble(
            ProblemCode.DATA_UNWRITABLE, job.model, path=path, detail=str(error)
        ) from error


def _disk_full(job: Job, need: int, free: int) -> ProblemError:
    return trouble(
        ProblemCode.DISK_FULL,
        job.model,
        need=bytes_text(need),
        free=bytes_text(free),
        path=str(job.models_path),
    )


def bytes_text(size: float) -> str:
    """`1.1 GB`, `491 MB`: decimal units, as disks and downloads are sold."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"


def _lock(stream: BinaryIO, path: Path, job: Job) -> None:
    """Takes the file's lock; the operating system frees it when the process ends, however it ends."""
    try:
        if sys.platform == "win32":
            import msvcrt

            stream.seek(_LOCK_OFFSET)
            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if not os.path.samestat(os.fstat(stream.fileno()), path.stat()):
            raise BlockingIOError("renamed meanwhile")
    except OSError as error:
        raise trouble(
            ProblemCode.DOWNLOAD_FAILED, job.model, reason="busy", detail=str(error)
        ) from error
