"""`.venv` and what is in it: made, filled and checked so that an interruption at any moment only costs doing it again.

Each step leaves a stamp inside `.venv` as its last act, with what it was made from; a step whose stamp does not match what is
wanted now removes the stamp, works, and writes it again.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

import llama_wheel
import machine
from console import Trouble, console, output_of, run_group, stream_lines
from folders import ROOT, VENV, cache_path, venv_python

LOCK_FILE = ROOT / "requirements.lock"
_PROBE = (
    "import importlib.util as u, json, sys;"
    "print(json.dumps([list(sys.version_info[:2]), sys.prefix, u.find_spec('pip') is not None,"
    " u.find_spec('llama_cpp') is not None, u.find_spec('PySide6') is not None]))"
)
_HELD_BY_ANOTHER = (errno.EACCES, errno.EAGAIN, errno.EDEADLK)
_LOCK_POLL_S = 0.5
_PIP = ("-m", "pip", "--disable-pip-version-check", "--no-input")


def prepare_environment() -> None:
    """Brings `.venv` to the state that the lock file and the wheel key ask for; does nothing when it is there already.

    Raises:
        Trouble: a step failed; the sentence says which and where its log is.
    """
    with one_at_a_time("setup"):
        facts = _probe()
        if facts is None:
            _create()
            facts = _probe()
            if facts is None:
                raise Trouble(f"{VENV} cannot be used. Remove it and start again.")
        _install_requirements(complete=facts["has_qt"])
        _install_llama(complete=facts["has_llama"])
        _make_importable()


def needs_compiler() -> bool:
    """Whether the next set-up has to build llama.cpp."""
    facts = _probe()
    installed = facts is not None and facts["has_llama"] and _stamp_matches("llama", _llama_key())
    return not installed and llama_wheel.cached_wheel() is None


def _probe() -> dict[str, bool] | None:
    """Facts about `.venv`; None when it is missing, unfinished, moved, or of an unsuitable Python."""
    answer = output_of([venv_python(), "-I", "-c", _PROBE]) if venv_python().exists() else None
    try:
        version, prefix, has_pip, has_llama, has_qt = json.loads(answer or "")
    except ValueError:
        return None
    if not has_pip or not (3, 11) <= tuple(version) < (3, 14) or not Path(prefix).samefile(VENV):
        return None
    return {"has_llama": has_llama, "has_qt": has_qt}


def _create() -> None:
    console.say(f"Making {VENV} (Python {sys.version.split()[0]})")
    if VENV.is_symlink() or VENV.is_file():
        VENV.unlink()
    elif VENV.exists():
        shutil.rmtree(VENV)
    log = cache_path() / "logs" / "venv.log"
    if stream_lines([sys.executable, "-m", "venv", VENV], log=log, on_line=_ignore) != 0:
        raise Trouble(f"Making {VENV} failed:\n{_tail(log)}")


def _install_requirements(*, complete: bool) -> None:
    wanted = hashlib.sha256(LOCK_FILE.read_bytes()).hexdigest()
    if complete and _stamp_matches("requirements", wanted):
        return
    console.say("Installing the packages of requirements.lock")
    with _stamped("requirements", wanted):
        _pip_install(["--require-hashes", "--requirement", LOCK_FILE], "packages")


def _install_llama(*, complete: bool) -> None:
    wanted = _llama_key()
    if complete and _stamp_matches("llama", wanted):
        return
    wheel = llama_wheel.cached_wheel()
    fresh = wheel is None
    with _stamped("llama", wanted):
        _install_wheel(wheel or llama_wheel.build_wheel(venv_python()))
        if not fresh and not _llama_works():
            # A home folder shared with an older system: its C library refuses the wheel, so build it here.
            llama_wheel.discard_wheel()
            machine.prepare(display=False, compiler=True)
            _install_wheel(llama_wheel.build_wheel(venv_python()))
        if not _llama_works():
            raise Trouble(
                "llama.cpp is installed but does not load. Try: .venv/bin/python -c 'import llama_cpp'"
            )


def _llama_key() -> str:
    return llama_wheel.wheel_folder().name


def _llama_works() -> bool:
    return output_of([venv_python(), "-I", "-c", "import llama_cpp"]) is not None


def _install_wheel(wheel: Path) -> None:
    _pip_install(["--no-deps", "--force-reinstall", "--no-index", wheel], "llama.cpp")


def _pip_install(arguments: list[str | Path], what: str) -> None:
    log = cache_path() / "logs" / f"pip-{what}.log"

    def follow(line: str) -> None:
        word, _, rest = line.strip().partition(" ")
        if word in ("Collecting", "Installing") and console.stream.isatty():
            console.progress(f"{what}: {word.lower()} {rest}")

    command = [venv_python(), *_PIP, "install", "--progress-bar", "off", *arguments]
    # A pip.conf that says `user = true` would make pip refuse to install into .venv.
    environment = {**os.environ, "PIP_USER": "0"}
    if stream_lines(command, log=log, environment=environment, on_line=follow) != 0:
        raise Trouble(f"Installing {what} failed. The end of {log}:\n{_tail(log)}")


def _make_importable() -> None:
    """Puts the source tree on `.venv`'s path, so that programs start from any working directory.

    A `.pth` line rather than PYTHONPATH: that variable would leak into every program that GrowBox starts for its user. Written
    as an escaped string, because Python before 3.13 reads `.pth` files in the locale's encoding.
    """
    line = f"import sys; sys.path.append({str(ROOT)!a})\n"
    for folder in _site_packages():
        path = folder / "growbox.pth"
        if not path.exists() or path.read_text(encoding="ascii") != line:
            path.write_text(line, encoding="ascii")


def _site_packages() -> list[Path]:
    windows = VENV / "Lib" / "site-packages"
    return [windows] if windows.is_dir() else sorted(VENV.glob("lib/python3.*/site-packages"))


def _stamp_matches(name: str, wanted: str) -> bool:
    try:
        return (VENV / f".growbox-{name}").read_text(encoding="ascii") == wanted
    except (OSError, ValueError):
        return False


@contextmanager
def _stamped(name: str, wanted: str) -> Iterator[None]:
    """Runs a step between removing its stamp and writing it."""
    stamp = VENV / f".growbox-{name}"
    stamp.unlink(missing_ok=True)
    yield
    stamp.write_text(wanted, encoding="ascii")


@contextmanager
def one_at_a_time(work: str) -> Iterator[None]:
    """Waits until no other `work` (a name, shown to the user) runs on this source tree; a process's end frees the lock."""
    name = hashlib.sha256(str(ROOT).encode()).hexdigest()[:12]
    path = cache_path() / "locks" / f"{work}-{name}"
    path.parent.mkdir(parents=True, exist_ok=True)
    # Append: opening must leave alone what another process has locked.
    with path.open("a") as stream:
        if not _try_lock(stream):
            console.say(f"Another {work} of this folder is running; waiting for it.")
            # Asking again and again: Windows' own waiting lock gives up after ten seconds.
            while not _try_lock(stream):
                _pause(_LOCK_POLL_S)
        yield


def _try_lock(stream: TextIO) -> bool:
    try:
        if sys.platform == "win32":
            import msvcrt

            msvcrt.locking(stream.fileno(), msvcrt.LK_NBLCK, 1)
        else:
            import fcntl

            fcntl.flock(stream, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in _HELD_BY_ANOTHER:
            return False
        raise
    return True


def _pause(seconds: float) -> None:
    threading.Event().wait(seconds)


def run_models(*arguments: str) -> int:
    """Runs `python -m growbox_app.models` with its output where ours goes."""
    command = [str(venv_python()), "-P", "-m", "growbox_app.models", *arguments]
    return run_group(command, output=console.stream)


def _ignore(_line: str) -> None:
    """The line is in the log."""


def _tail(log: Path) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return "\n".join(f"  {line}" for line in lines[-8:])
