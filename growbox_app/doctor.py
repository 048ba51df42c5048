"""`doctor`: does GrowBox work on this machine, part by part? For users with trouble, and for the smoke test of a build.

Touches no data: the vector host is tried in a temporary folder, the CPU variants in processes of their own.
"""

from __future__ import annotations

import importlib
import platform
import sqlite3
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from growbox_app.engine import canary, native
from growbox_app.executors.confinement import bubblewrap
from growbox_app.ingest.check import check_readers
from growbox_app.models.catalogue import Model, Purpose, catalogue
from growbox_app.models.verify import file_state, is_here
from growbox_app.secrets import system_backend
from growbox_app.shadow.values import CheckpointTrouble
from growbox_app.text import tr
from growbox_app.version import version
from memory.config import VectorConfig
from memory.storage.vector_check import check_vector_host

_SPEED_TOKENS = 64
_SPEAK = ("httpx", "mcp.client", "mcp.client.streamable_http")
"""What speaks to servers, and is loaded only when there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One part: whether it works, and what to know about it, as a sentence."""

    part: str
    ok: bool
    words: str


def examine(models_path: Path, *, say: Callable[[Finding], None]) -> bool:
    """Checks every part, telling each finding as it is known; whether all parts work. Blocks for up to a minute."""
    findings = [Finding(part="program", ok=True, words=_program())]
    say(findings[0])
    for check in (
        _database,
        _vectors,
        _documents,
        _hands,
        _connections,
        lambda: _models(models_path),
        lambda: _processor(models_path),
    ):
        findings.append(check())
        say(findings[-1])
    return all(finding.ok for finding in findings)


def fields(finding: Finding) -> dict[str, object]:
    """A finding as JSON has it."""
    return asdict(finding)


def _program() -> str:
    return tr(
        "doctor.program",
        version=version(),
        python=platform.python_version(),
        system=platform.platform(),
    )


def _database() -> Finding:
    try:
        with sqlite3.connect(":memory:") as connection:
            connection.execute("CREATE VIRTUAL TABLE t USING fts5(x)")
    except sqlite3.Error as error:
        return Finding(part="database", ok=False, words=str(error))
    return Finding(
        part="database", ok=True, words=tr("doctor.database", version=sqlite3.sqlite_version)
    )


def _vectors() -> Finding:
    with tempfile.TemporaryDirectory(
        prefix="growbox-doctor-", ignore_cleanup_errors=True
    ) as folder:
        problem = check_vector_host(Path(folder) / "vectors", VectorConfig())
    return Finding(part="vectors", ok=not problem, words=problem or tr("doctor.vectors"))


def _documents() -> Finding:
    """The readers of files: a grammar or a parser that a build forgot is missed only here."""
    try:
        count = check_readers()
    except (ImportError, OSError, ValueError) as error:
        return Finding(part="documents", ok=False, words=f"{type(error).__name__}: {error}")
    return Finding(part="documents", ok=True, words=tr("doctor.documents", count=count))


def _hands() -> Finding:
    """What makes it safe to let the assistant change files and run commands."""
    with tempfile.TemporaryDirectory(prefix="growbox-doctor-", ignore_cleanup_errors=True) as name:
        try:
            # Here, because no other command of the command line needs it.
            from growbox_app.shadow.check import check_checkpoints, check_commands

            folder = Path(name).resolve()
            ill = "" if check_checkpoints(folder) else tr("doctor.checkpoints_ill")
            ill = ill or ("" if check_commands(folder / "project") else tr("doctor.commands_ill"))
        except (ImportError, OSError, ValueError, CheckpointTrouble) as error:
            ill = f"{type(error).__name__}: {error}"
    confined = tr("doctor.confined" if bubblewrap() else "doctor.unconfined")
    return Finding(part="hands", ok=not ill, words=ill or f"{tr('doctor.hands')} {confined}")


def _connections() -> Finding:
    """What servers of the user's need; none is asked. A library that a build forgot is missed only here."""
    try:
        for name in _SPEAK:
            importlib.import_module(name)
        keyring = system_backend()
    except ImportError as error:
        return Finding(part="connections", ok=False, words=f"{type(error).__name__}: {error}")
    key = "doctor.no_keyring" if keyring is None else "doctor.keyring"
    return Finding(part="connections", ok=True, words=f"{tr('doctor.connections')} {tr(key)}")


def _models(models_path: Path) -> Finding:
    here = [model.name for model in catalogue() if is_here(model, models_path)]
    broken = [
        model.name for model in catalogue() if file_state(model, models_path).value == "broken"
    ]
    chat = _chat_model(models_path)
    words = tr("doctor.models", names=", ".join(here) or "–")
    if broken:
        words += " " + tr("doctor.models_broken", names=", ".join(broken))
    return Finding(part="models", ok=chat is not None and not broken, words=words)


def _processor(models_path: Path) -> Finding:
    """Tries the variants as the engine does, then times the chosen one against AVX2."""
    files = native.variant_files()
    model = _chat_model(models_path)
    if not files or model is None:
        key = "doctor.processor_plain" if not files else "doctor.processor_no_model"
        return Finding(part="processor", ok=True, words=tr(key))
    path = str(model.path(models_path))
    threads = max(1, psutil.cpu_count(logical=False) or 1)
    dead: list[str] = []
    forced = native.forced_variant()
    for name in [forced] if forced else canary.ranked(files):
        speed = canary.trial(name, path, threads=threads, tokens=_SPEED_TOKENS)
        if speed.survived:
            return Finding(
                part="processor",
                ok=True,
                words=_speeds(name, dead, speed.tokens_per_s, _avx2(path, threads)),
            )
        dead.append(f"{name} ({speed.exit_code})")
    return Finding(
        part="processor", ok=False, words=tr("doctor.processor_dead", names=", ".join(dead))
    )


def _avx2(path: str, threads: int) -> float:
    files = native.variant_files()
    if native.AVX2_VARIANT not in files:
        return 0.0
    return canary.trial(
        native.AVX2_VARIANT, path, threads=threads, tokens=_SPEED_TOKENS
    ).tokens_per_s


def _speeds(name: str, dead: list[str], speed: float, avx2: float) -> str:
    words = tr("doctor.processor", variant=name, speed=f"{speed:.0f}", avx2=f"{avx2:.0f}")
    if dead:
        words += " " + tr("doctor.processor_refused", names=", ".join(dead))
    if name in native.PLAIN_VARIANTS:
        words += " " + tr("processor.slow")
    return words


def _chat_model(models_path: Path) -> Model | None:
    """The smallest chat model that is here."""
    here = [m for m in catalogue() if m.purpose is Purpose.CHAT and is_here(m, models_path)]
    return min(here, key=lambda model: model.size, default=None)
