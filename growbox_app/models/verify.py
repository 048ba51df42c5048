"""Is the model file on this machine the one of the catalogue?

Two depths. Cheap, at each start: size, magic, and a stamp that says "this very file (size, mtime) was hashed, and this was its
hash" – the right one or another. Full: the sha256, which renews the stamp. The stamp is only a memory of the hash; losing it costs
one more hashing. Any thread; a crash leaves no stamp or a whole one.
"""

from __future__ import annotations

import json
from contextlib import suppress
from enum import StrEnum
from pathlib import Path

from growbox_app.api import ProblemCode, ProblemError
from growbox_app.files import write_atomically
from growbox_app.models.catalogue import Model
from growbox_app.models.gguf_header import NotGguf, TruncatedGguf, read_header
from growbox_app.models.transfer import GGUF_MAGIC, Job, Meter, hash_stream
from growbox_app.models.trouble import trouble, why_not_gguf


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
        plausible = _is_plausible(model, path)
        hashed = _hash_noted(path, models_path)
    except OSError:
        return FileState.PARTIAL if have_bytes(model, models_path) else FileState.MISSING
    if not plausible:
        return FileState.BROKEN
    if hashed is None:
        return FileState.UNVERIFIED
    return FileState.READY if hashed == model.sha256 else FileState.BROKEN


def is_here(model: Model, models_path: Path) -> bool:
    """Whether the cheap check would let the file be loaded."""
    return file_state(model, models_path) in (FileState.READY, FileState.UNVERIFIED)


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
    path = _require_plausible(model, models_path)
    hashed = _hash_noted(path, models_path)
    if hashed not in (None, model.sha256):
        raise _wrong_hash(model, path, str(hashed))
    return path


def verify_fully(job: Job) -> None:
    """Hashes the whole file, with progress, and notes the hash, whichever it is. Does not trust an earlier note.

    Raises:
        ProblemError: `MODEL_MISSING`, `MODEL_BROKEN`.
        TransferCancelled: the caller stopped it.
    """
    model = job.model
    path = _require_plausible(model, job.models_path)
    # Before reading: a file that changes meanwhile does not fit its note.
    facts = _facts(path)
    with path.open("rb") as stream:
        found = hash_stream(stream, Meter(job, "model_verify", detail=model.file))
    _note(_stamp_path(path, job.models_path), {**facts, "sha256": found})
    if found != model.sha256:
        raise _wrong_hash(model, path, found)


def remember(model: Model, models_path: Path) -> None:
    """Notes that this file was hashed and was right. A read-only models folder is fine: it is then hashed again."""
    path = model.path(models_path)
    with suppress(OSError):
        _note(_stamp_path(path, models_path), {**_facts(path), "sha256": model.sha256})


def _require_plausible(model: Model, models_path: Path) -> Path:
    path = model.path(models_path)
    try:
        plausible = _is_plausible(model, path)
    except OSError as error:
        raise trouble(
            ProblemCode.MODEL_MISSING, model, path=str(path), detail=str(error)
        ) from error
    if not plausible:
        reason, detail = why_broken(path) or ("size", f"expected {model.size} bytes")
        raise trouble(ProblemCode.MODEL_BROKEN, model, path=str(path), reason=reason, detail=detail)
    return path


def _is_plausible(model: Model, path: Path) -> bool:
    """Whether size and first bytes speak for the file.

    Raises:
        OSError: there is no such file.
    """
    return path.stat().st_size == model.size and _head(path).startswith(GGUF_MAGIC)


def _wrong_hash(model: Model, path: Path, found: str) -> ProblemError:
    return trouble(
        ProblemCode.MODEL_BROKEN,
        model,
        path=str(path),
        reason="checksum",
        detail=f"sha256 {found}, expected {model.sha256}",
    )


def why_broken(path: Path) -> tuple[str, str] | None:
    """Why a file cannot be a usable GGUF: a reason (key of `models.reason`) and a detail; None when its header is whole."""
    try:
        read_header(path)
    except NotGguf as error:
        return why_not_gguf(_head(path)), str(error)
    except TruncatedGguf as error:
        return "truncated", str(error)
    except OSError as error:
        return "unreadable", str(error)
    return None


def _head(path: Path) -> bytes:
    """The first bytes; none when they cannot be read."""
    try:
        with path.open("rb") as stream:
            return stream.read(64)
    except OSError:
        return b""


def _stamp_path(path: Path, models_path: Path) -> Path:
    """Always in the user's models folder: the one that came with the program is not written to."""
    kind = "" if path.parent == models_path else ".bundled"
    return models_path / f".{path.name}{kind}.verified"


def _facts(path: Path) -> dict[str, object]:
    """What makes it this very file."""
    status = path.stat()
    return {"size": status.st_size, "mtime_ns": status.st_mtime_ns}


def _note(stamp_path: Path, stamp: dict[str, object]) -> None:
    with suppress(OSError):
        stamp_path.parent.mkdir(parents=True, exist_ok=True)
        write_atomically(stamp_path, json.dumps(stamp).encode())


def _hash_noted(path: Path, models_path: Path) -> object:
    """The hash that this very file had when it was hashed; None when it has not been, or changed since.

    Raises:
        OSError: there is no such file.
    """
    facts = _facts(path)
    try:
        stamp = json.loads(_stamp_path(path, models_path).read_bytes())
    except (OSError, ValueError):
        return None
    if not isinstance(stamp, dict):
        return None
    sha256 = stamp.pop("sha256", None)
    return sha256 if stamp == facts else None
