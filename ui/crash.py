"""What goes wrong unexpectedly is written down, said in the window, and told once more at the next start; it never leaves the machine.

Owns three kinds of files in `logs/` of the data folder:

- `crash.log`: every unexpected Python error with its message, bounded. The window says it at once, in its status line.
- `native-crash.log`: what `faulthandler` writes when native code dies. Empty after a clean end.
- `running-<pid>`: one per running window, removed by a clean end. One whose process is gone means that this run ended unexpectedly, by a
  crash, a kill or a power cut. Its first line names the run; then come the places of the run's unexpected errors. An error that the window
  survived and that was followed by a clean end is not told again.

A report is made of the last two kinds: types and places, never messages, because a message may quote what the user wrote. Reading does
not consume: the files are removed when the window really shows the report (`PastRuns.forget`), so that a start that ends because another
instance runs hides nothing. A crash while writing leaves a torn last line, which is shown as it is.
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import sys
import traceback
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from io import TextIOWrapper
from pathlib import Path
from types import TracebackType

import psutil

from growbox_app.version import version
from memory.ports import Clock

LOG_BYTES_MAX = 1_000_000
NATIVE_LOG_NAME = "native-crash.log"
_MARKER = "running-"
# A process id is used again after a restart of the machine; its start time, read twice, may differ by rounding only.
_SAME_START_S = 5.0
_TRACE_CHARACTERS_MAX = 20_000


class CrashLog:
    """Writes unexpected errors down and tells the window."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.path = folder / "crash.log"
        self._clock = clock
        self._say: Callable[[Path, str], None] | None = None
        self._marker: Path | None = None
        self._native: TextIOWrapper | None = None

    def tell(self, say: Callable[[Path, str], None] | None) -> None:
        """From now on also calls `say(path, text)`; None ends that."""
        self._say = say

    # -- the mark of a running window ---------------------------------------------------------
    def install(self) -> None:
        """Takes what Python would otherwise print and forget, and native crashes; marks this run as running.

        An unwritable folder is no reason to stop: the start will say so in a sentence.
        """
        sys.excepthook = self._hook
        folder = self.path.parent
        with contextlib.suppress(OSError):
            folder.mkdir(parents=True, exist_ok=True)
            self._native = (folder / NATIVE_LOG_NAME).open("a", encoding="utf-8")
            faulthandler.enable(self._native)
            marker = folder / f"{_MARKER}{os.getpid()}"
            run = {
                "pid": os.getpid(),
                "process_started_s": psutil.Process().create_time(),
                "started": self._moment(),
                "version": version(),
            }
            marker.write_text(json.dumps(run) + "\n", encoding="utf-8")
            self._marker = marker

    def close(self) -> None:
        """A clean end: this run leaves no mark. Also when the session ends under us, which no user takes for a crash."""
        if self._marker is not None:
            with contextlib.suppress(OSError):
                self._marker.unlink(missing_ok=True)
            self._marker = None
        if self._native is not None:
            faulthandler.disable()
            # Windows writes here about exceptions that were then handled; a clean end proves it.
            with contextlib.suppress(OSError):
                os.ftruncate(self._native.fileno(), 0)
            self._native.close()
            self._native = None

    # -- Python errors ------------------------------------------------------------------------
    def _hook(
        self, kind: type[BaseException], error: BaseException, trace: TracebackType | None
    ) -> None:
        if issubclass(kind, KeyboardInterrupt):
            sys.__excepthook__(kind, error, trace)
            return
        self.report(error.with_traceback(trace))

    def report(self, error: BaseException) -> None:
        """Writes one error down."""
        text = "".join(traceback.format_exception(error))
        try:
            self._append(f"{self._moment()}\n{text}\n")
            if self._marker is not None:
                with self._marker.open("a", encoding="utf-8") as stream:
                    stream.write(f"{self._moment()}\n{places(error)}\n")
        except OSError as trouble:
            sys.stderr.write(f"{self.path}: {trouble}\n")
        sys.stderr.write(text)
        if self._say is not None:
            self._say(self.path, text)

    def _moment(self) -> str:
        now = datetime.fromtimestamp(self._clock.now_ms() / 1000, tz=UTC)
        return now.isoformat(timespec="seconds")

    def _append(self, entry: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size > LOG_BYTES_MAX:
            kept = self.path.read_bytes()[-LOG_BYTES_MAX // 2 :]
            self.path.write_bytes(kept)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(entry)


def places(error: BaseException) -> str:
    """Where an error came from, with its causes: types, files and lines. No message, and no name of the user's home folder."""
    parts: list[str] = []
    seen: set[int] = set()
    found: BaseException | None = error
    while found is not None and id(found) not in seen:
        seen.add(id(found))
        frames = "".join(traceback.format_tb(found.__traceback__))
        parts.append(f"{frames}{type(found).__module__}.{type(found).__qualname__}")
        context = None if found.__suppress_context__ else found.__context__
        found = found.__cause__ or context
    return _without_home("\nafter\n".join(parts))


def _without_home(text: str) -> str:
    home = str(Path.home())
    return text.replace(home, "~") if len(home) > 1 else text


@dataclass(frozen=True, slots=True, kw_only=True)
class PastRuns:
    """Runs that ended unexpectedly, and what they left. `text` is the traces, or a sentence that there are none."""

    text: str
    files: tuple[Path, ...]
    native_log: Path

    def forget(self) -> None:
        """The report is shown: the next start does not tell it again."""
        for path in self.files:
            with contextlib.suppress(OSError):
                path.unlink(missing_ok=True)
        with contextlib.suppress(OSError):
            os.truncate(self.native_log, 0)


def past_crashes(folder: Path) -> PastRuns | None:
    """Looks for runs that ended unexpectedly; None where there is none. Changes nothing.

    Args:
        folder: the `logs` folder.
    """
    dead = [path for path in sorted(folder.glob(f"{_MARKER}*")) if not _is_alive(path)]
    if not dead:
        return None
    native_log = folder / NATIVE_LOG_NAME
    parts = [_told(path) for path in dead]
    native = _without_home(_read(native_log))
    if native:
        parts.append(native)
    elif all(len(part.splitlines()) < 2 for part in parts):
        parts.append("No trace was left: GrowBox was killed, or the machine lost power.")
    return PastRuns(text="\n\n".join(parts), files=tuple(dead), native_log=native_log)


def _told(marker: Path) -> str:
    """What a run left in its marker, its first line in words."""
    first, _, rest = _read(marker).partition("\n")
    try:
        run = json.loads(first)
        first = f"The run of GrowBox {run['version']} that began at {run['started']} ended unexpectedly."
    except (ValueError, KeyError, TypeError):
        pass  # torn by a power cut: shown as it is
    return f"{first}\n{rest}".strip()


def _is_alive(marker: Path) -> bool:
    """Whether the process that wrote the marker still runs."""
    try:
        run = json.loads(marker.read_text(encoding="utf-8").partition("\n")[0])
        process = psutil.Process(run["pid"])
        same = abs(process.create_time() - run["process_started_s"]) < _SAME_START_S
        return bool(same) and process.status() != psutil.STATUS_ZOMBIE
    except psutil.AccessDenied:
        return True
    except (OSError, ValueError, KeyError, TypeError, psutil.NoSuchProcess):
        return False


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()[-_TRACE_CHARACTERS_MAX:]
    except OSError:
        return ""
