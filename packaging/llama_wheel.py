"""The llama-cpp-python wheel: built once per kind of machine, kept in the user's cache, never built for the building CPU.

Owns `<cache>/wheels/llama_cpp_python-<version>-<key>/`: one wheel and its sha256 beside it. A wheel whose hash is missing or
does not match was cut short and is built again. The build happens in a folder beside it that is renamed at the end, so Ctrl-C
at any moment leaves either nothing of use or a whole wheel; what it leaves is removed by the next build.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import tempfile
import time
from pathlib import Path

from console import Trouble, console, span, stream_lines
from folders import cache_path

VERSION = "0.3.36"
SDIST_SHA256 = "832db0699007f1be95a7e41ef12e88926b02ba836461e36a36372db2760c1a2e"
_SIDECAR = "wheel.sha256"
_STEP = re.compile(r"\[(\d+)/(\d+)\]")
_LOG_LINES_SHOWN = 15
_REPORT_EVERY_S = 15.0
_RAM_PER_JOB_BYTES = 1 << 30
# They would change the wheel: a stray -march=native is exactly what must not get in.
_FOREIGN_VARIABLES = (
    "SOURCE_DATE_EPOCH",
    "CFLAGS",
    "CXXFLAGS",
    "CPPFLAGS",
    "LDFLAGS",
    "FORCE_CMAKE",
    "SKBUILD_CMAKE_ARGS",
)


def cmake_arguments(system: str, machine: str) -> tuple[str, ...]:
    """The build's switches for an operating system and machine, as `platform` names them.

    Never native: such a build died with an illegal instruction on a CPU that advertises AMX. On x86-64 one wheel carries all
    CPU variants and the engine chooses when it runs. Source: design section 3.
    """
    common = ("-DLLAVA_BUILD=OFF", "-DCMAKE_BUILD_TYPE=Release")
    if system != "Darwin" and machine.lower() in ("x86_64", "amd64"):
        return ("-DGGML_NATIVE=OFF", "-DGGML_BACKEND_DL=ON", "-DGGML_CPU_ALL_VARIANTS=ON", *common)
    if system == "Darwin" and machine == "arm64":
        return ("-DGGML_NATIVE=OFF", "-DGGML_METAL=ON", *common)
    return ("-DGGML_NATIVE=OFF", *common)


def wheel_folder(system: str | None = None, machine: str | None = None) -> Path:
    """The cache folder of the wheel for this kind of machine.

    The key holds what the bytes depend on. The wheel is `py3-none-<platform>`: the Python version is no part of it.
    """
    system = system or platform.system()
    machine = machine or platform.machine()
    facts = [
        VERSION,
        SDIST_SHA256,
        cmake_arguments(system, machine),
        "py3-none",
        system,
        machine.lower(),
    ]
    key = hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:16]
    return cache_path() / "wheels" / f"llama_cpp_python-{VERSION}-{key}"


def cached_wheel() -> Path | None:
    """The wheel in the cache, if it is whole."""
    folder = wheel_folder()
    try:
        expected, name = (folder / _SIDECAR).read_text(encoding="utf-8").split()
        wheel = folder / name
        return wheel if _sha256(wheel) == expected else None
    except (OSError, ValueError):
        return None


def build_wheel(python: Path) -> Path:
    """Builds the wheel with `python`'s pip and puts it into the cache.

    Raises:
        Trouble: the build failed; the sentence names the log.
    """
    folder = wheel_folder()
    folder.parent.mkdir(parents=True, exist_ok=True)
    for stale in folder.parent.glob(".build-*"):
        shutil.rmtree(stale, ignore_errors=True)
    workspace = Path(tempfile.mkdtemp(prefix=".build-", dir=folder.parent))
    try:
        result = workspace / "result"
        _compile(python, workspace, result)
        wheel = next(result.glob("*.whl"))
        (result / _SIDECAR).write_text(f"{_sha256(wheel)}  {wheel.name}\n", encoding="utf-8")
        shutil.rmtree(folder, ignore_errors=True)
        result.replace(folder)
    finally:
        shutil.rmtree(workspace, ignore_errors=True)
    return folder / wheel.name


def discard_wheel() -> None:
    """Removes the cached wheel: it was built for another system than this one has become."""
    shutil.rmtree(wheel_folder(), ignore_errors=True)


def _compile(python: Path, workspace: Path, result: Path) -> None:
    requirement = workspace / "requirement.txt"
    requirement.write_text(
        f"llama-cpp-python=={VERSION} --hash=sha256:{SDIST_SHA256}\n", encoding="utf-8"
    )
    temporary = workspace / "tmp"
    temporary.mkdir()
    # --no-cache-dir: pip's own wheel cache could hand us a wheel that somebody built with other switches.
    command: list[str | Path] = [
        python,
        "-m",
        "pip",
        "wheel",
        "--verbose",
        "--no-deps",
        "--no-cache-dir",
    ]
    command += ["--no-binary", "llama-cpp-python", "--disable-pip-version-check", "--no-input"]
    command += ["--wheel-dir", result, "--requirement", requirement]
    log = cache_path() / "logs" / "llama-build.log"
    console.say(
        "Building llama.cpp, once for this machine: 5 to 30 minutes. Later set-ups reuse it."
    )
    follow = BuildProgress()
    code = stream_lines(command, log=log, environment=_environment(temporary), on_line=follow)
    if code != 0:
        tail = "\n".join(f"  {line}" for line in follow.last_lines)
        raise Trouble(f"llama.cpp could not be built. The end of {log}:\n{tail}")
    console.say(f"llama.cpp is built ({span(follow.elapsed_s())}).")


def _environment(temporary: Path) -> dict[str, str]:
    environment = {key: value for key, value in os.environ.items() if key not in _FOREIGN_VARIABLES}
    environment["CMAKE_ARGS"] = " ".join(cmake_arguments(platform.system(), platform.machine()))
    environment.setdefault("CMAKE_BUILD_PARALLEL_LEVEL", str(_jobs()))
    # In our own folder, so that an interrupted build leaves no gigabytes in the system's temporary folder.
    environment.update(dict.fromkeys(("TMPDIR", "TEMP", "TMP"), str(temporary)))
    return environment


def _jobs() -> int:
    """One compiler per core, but no more than the memory holds."""
    cores = os.cpu_count() or 1
    try:
        ram = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError):
        return cores
    return max(1, min(cores, ram // _RAM_PER_JOB_BYTES))


class BuildProgress:
    """Turns ninja's `[n/m]` lines into a percentage and the time left, and keeps the last lines for a failure."""

    def __init__(self) -> None:
        self.last_lines: list[str] = []
        self._started_s = time.monotonic()
        self._first_step: tuple[float, int] | None = None
        self._reported_s = float("-inf")

    def elapsed_s(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started_s

    def __call__(self, line: str) -> None:
        """Takes one line of the build's output."""
        if line.strip():
            self.last_lines = [*self.last_lines, line.strip()[:200]][-_LOG_LINES_SHOWN:]
        match = _STEP.search(line[:40])
        now = time.monotonic()
        pause_s = 0.2 if console.stream.isatty() else _REPORT_EVERY_S
        if match is None or now - self._reported_s < pause_s:
            return
        self._reported_s = now
        console.progress(self.text(int(match[1]), int(match[2]), now))

    def text(self, done: int, total: int, now: float) -> str:
        """`llama.cpp 42 % (160/387), about 5 min left`."""
        if self._first_step is None:
            self._first_step = (now, done)
        since, before = self._first_step
        text = f"llama.cpp {100 * done // max(1, total)} % ({done}/{total})"
        if done > before:
            text += f", about {span((now - since) / (done - before) * (total - done))} left"
        return text


def _sha256(path: Path) -> str:
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()
