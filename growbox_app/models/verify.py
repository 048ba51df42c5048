"""Is the model file on this machine the one of the catalogue?

Two depths. Cheap, at each start: size, magic, and a stamp that says "this very file (size, mtime) was hashed and was right".
Full: the sha256, which renews the stamp. The stamp is only a memory of the hash; losing it costs one more hashing. Any thread;
a crash leaves no stamp or a whole one.
"""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path

from growbox_app.api import ProblemCode
from growbox_app.files import write_atomically
from growbox_app.models.catalogue import Model
from growbox_app.models.gguf_header import NotGguf, TruncatedGguf, read_header
from growbox_app.models.transfer import Job, Meter, hash_stream
from growbox_app.models.trouble import trouble


class FileState(StrEnum):
    """Where a model's file stands."""

    MISSING = "missing"
    PARTIAL = "partial"
    UNVERIFIED = "unverified"
    READY = "ready"
    BROKEN = "broken"


def file_state(model: Model, models_path: Path) -> FileState:
    """The cheap check: no hashing, a few milliseconds."""
    path = model.path(models_path)
    try:
        size = path.stat().st_size
    except OSError:
        return FileState.PARTIAL if have_bytes(model, models_path) else FileState.MISSING
    if size != model.size or not _has_magic(path):
        return FileState.BROKEN
    return FileState.READY if _stamp(model, path) == _read_stamp(path) else FileState.UNVERIFIED


def have_bytes(model: Model, models_path: Path) -> int:
    """How much of the file is here, finished or not."""
    path = model.path(models_path)
    for candidate in (path, path.with_name(path.name + ".part")):
        try:
            return candidate.stat().st_size
        except OSError:
            continue
    return 0


def require_ready(model: Model, models_path: Path) -> Path:
    """The file's path, when the cheap check lets it be loaded.

    Raises:
        ProblemError: `MODEL_MISSING` or `MODEL_BROKEN`.
    """
    path = model.path(models_path)
    state = file_state(model, models_path)
    if state in (FileState.READY, FileState.UNVERIFIED):
        return path
    if state is FileState.BROKEN:
        reason, detail = why_broken(path) or ("size", f"expected {model.size} bytes")
        raise trouble(ProblemCode.MODEL_BROKEN, model, path=str(path), reason=reason, detail=detail)
    raise trouble(ProblemCode.MODEL_MISSING, model, path=str(path))


def verify_fully(job: Job) -> None:
    """Hashes the whole file, with progress, and remembers the result.

    Raises:
        ProblemError: `MODEL_MISSING`, `MODEL_BROKEN`.
        TransferCancelled: the caller stopped it.
    """
    path = require_ready(job.model, job.models_path)
    stamp = _stamp(job.model, path)
    with path.open("rb") as stream:
        found = hash_stream(stream, Meter(job, "model_verify", detail=job.model.file))
    if found != job.model.sha256:
        _stamp_path(path).unlink(missing_ok=True)
        raise trouble(
            ProblemCode.MODEL_BROKEN,
            job.model,
            path=str(path),
            reason="other_file",
            detail=f"sha256 {found}, expected {job.model.sha256}",
        )
    remember(job.model, job.models_path, stamp)


def remember(model: Model, models_path: Path, stamp: dict[str, object] | None = None) -> None:
    """Notes that this file was hashed and was right. A read-only models folder is fine: it is then hashed again."""
    path = model.path(models_path)
    try:
        content = json.dumps(stamp or _stamp(model, path)).encode()
        write_atomically(_stamp_path(path), content)
    except OSError:
        return


def why_broken(path: Path) -> tuple[str, str] | None:
    """Why a file cannot be a usable GGUF: a reason (key of `models.reason`) and a detail; None when its header is whole."""
    try:
        read_header(path)
    except NotGguf as error:
        return "not_gguf", str(error)
    except TruncatedGguf as error:
        return "truncated", str(error)
    except OSError as error:
        return "unreadable", str(error)
    return None


def _has_magic(path: Path) -> bool:
    try:
        with path.open("rb") as stream:
            return stream.read(4) == b"GGUF"
    except OSError:
        return False


def _stamp_path(path: Path) -> Path:
    return path.with_name(f".{path.name}.verified")


def _stamp(model: Model, path: Path) -> dict[str, object]:
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns, "sha256": model.sha256}


def _read_stamp(path: Path) -> object:
    try:
        return json.loads(_stamp_path(path).read_bytes())
    except (OSError, ValueError):
        return None
