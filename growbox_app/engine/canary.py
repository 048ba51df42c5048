"""Proves a CPU variant in a throw-away process before the engine uses it.

A variant can load and score well and still die at the first prompt (a machine that advertises AMX and does not let
programs use it). So the parent ranks the variants by their own score, runs a few tokens of the real model through the best
one in a process of its own, and steps down while that process dies. The choice is remembered per CPU, library and model.

Source: reference `frozen_facts.md` "CPU variants"; design 3.
"""

from __future__ import annotations

import contextlib
import ctypes
import hashlib
import json
import multiprocessing
import os
import platform
import threading
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path

from growbox_app.engine import native
from growbox_app.engine.worker import prepare_child
from growbox_app.files import write_atomically

CANARY_TOKENS = 8
CANARY_S = 60.0
"""A slow disk may need a while to read the model; a hang is a failure like a crash."""


def choose_variant(model_path: str, *, memory: Path, threads: int) -> str:
    """The best variant that survives the canary; empty where the library has none. Blocks for seconds at first use.

    Args:
        model_path: the chat model; the canary must run the same kinds of matrices.
        memory: file that remembers the choice.
        threads: threads of the canary.

    Raises:
        RuntimeError: no variant survives.
    """
    forced = native.forced_variant()
    if forced is not None:
        return forced
    files = native.variant_files()
    if not files:
        return ""
    key = _key(files, model_path)
    remembered = _recall(memory, key)
    if remembered in files:
        return remembered
    for name in ranked(files):
        if trial(name, model_path, threads=threads).survived:
            with contextlib.suppress(OSError):  # forgetting it costs one more canary
                write_atomically(memory, json.dumps({"key": key, "variant": name}).encode())
            return name
    raise RuntimeError("no CPU variant of llama.cpp runs on this machine")


def ranked(files: dict[str, Path]) -> list[str]:
    """Usable variants, best score first, as the libraries score themselves in a child process."""
    parent, child = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_score_all, args=(child, {name: str(path) for name, path in files.items()})
    )
    process.start()
    child.close()
    scores: dict[str, int] = {}
    try:
        if parent.poll(CANARY_S):
            scores = json.loads(parent.recv_bytes())
    except EOFError:
        scores = {}
    finally:
        process.join(1)
        process.kill()
        parent.close()
    return sorted((n for n in scores if scores[n] > 0), key=lambda n: (-scores[n], n))


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """How a variant did in its own process. `exit_code` is negative for a signal; `tokens_per_s` is of the prompt."""

    survived: bool
    exit_code: int | None
    tokens_per_s: float = 0.0


def trial(variant: str, model_path: str, *, threads: int, tokens: int = CANARY_TOKENS) -> Trial:
    """Lets a process with this variant decode a batch of `tokens` (at least two) and one more; blocks until it ends."""
    parent, child = multiprocessing.get_context("spawn").Pipe()
    process = multiprocessing.get_context("spawn").Process(
        target=_sing, args=(child, variant, model_path, threads, tokens)
    )
    process.start()
    child.close()
    process.join(CANARY_S)
    if process.is_alive():
        process.kill()
        process.join()
    try:
        seconds = float(parent.recv_bytes()) if parent.poll(0) else 0.0
    except (EOFError, OSError, ValueError):
        seconds = 0.0
    finally:
        parent.close()
    survived = process.exitcode == 0 and seconds > 0
    speed = tokens / seconds if survived else 0.0
    return Trial(survived=survived, exit_code=process.exitcode, tokens_per_s=speed)


def _key(files: dict[str, Path], model_path: str) -> str:
    parts = [platform.machine(), _cpu_flags(), str(Path(model_path).stat().st_size)]
    parts += [f"{name}:{path.stat().st_size}" for name, path in sorted(files.items())]
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def _cpu_flags() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        return platform.processor()
    return next((line for line in lines if line.startswith(("flags", "Features"))), "")


def _recall(memory: Path, key: str) -> str:
    try:
        stored = json.loads(memory.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return ""
    return str(stored.get("variant", "")) if stored.get("key") == key else ""


def _score_all(pipe: Connection, files: dict[str, str]) -> None:
    _stay_short()
    base = next(native.library_folder().glob("*ggml-base*"), None)
    if base is not None:
        ctypes.CDLL(str(_soname(base)), mode=ctypes.RTLD_GLOBAL)
    scores: dict[str, int] = {}
    for name, path in files.items():
        try:
            scores[name] = int(ctypes.CDLL(path).ggml_backend_score())
        except (OSError, AttributeError):
            scores[name] = 0
    pipe.send_bytes(json.dumps(scores).encode())


def _soname(base: Path) -> Path:
    versioned = base.with_name("libggml-base.so.0")
    return versioned if versioned.exists() else base


def _sing(pipe: Connection, variant: str, model_path: str, threads: int, tokens: int) -> None:
    """Decodes `tokens` at once, then one: the crash needs at least two in one batch."""
    _stay_short()
    os.environ.update(native.SPIN_ENVIRONMENT)
    from growbox_app.engine import host

    seconds = host.canary_decode(variant, model_path, threads=threads, tokens=tokens)
    pipe.send_bytes(str(seconds).encode())
    os._exit(0)


def _stay_short() -> None:
    """No core dump, no life without the parent, no life beyond the time-out."""
    prepare_child()
    timer = threading.Timer(CANARY_S, os._exit, (1,))
    timer.daemon = True
    timer.start()
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
