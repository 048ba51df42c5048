"""The top-level hook: an unexpected error is written to the crash log and said in the status line, never swallowed.

Owns `logs/crash.log` in the data folder; the file is cut to its newer half when it grows over its limit. A crash while writing leaves at
most a torn last line.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType

from memory.ports import Clock

LOG_BYTES_MAX = 1_000_000


class CrashLog:
    """Writes unexpected errors down and tells the window."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.path = folder / "crash.log"
        self._clock = clock
        self._say: Callable[[Path, str], None] | None = None

    def tell(self, say: Callable[[Path, str], None] | None) -> None:
        """From now on also calls `say(path, text)`; None ends that."""
        self._say = say

    def install(self) -> None:
        """Takes what Python would otherwise print and forget: errors in slots and in the main program."""
        sys.excepthook = self._hook

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
        moment = datetime.fromtimestamp(self._clock.now_ms() / 1000, tz=UTC).isoformat(
            timespec="seconds"
        )
        try:
            self._append(f"{moment}\n{text}\n")
        except OSError as trouble:
            sys.stderr.write(f"{self.path}: {trouble}\n")
        sys.stderr.write(text)
        if self._say is not None:
            self._say(self.path, text)

    def _append(self, entry: str) -> None:
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists() and self.path.stat().st_size > LOG_BYTES_MAX:
            kept = self.path.read_bytes()[-LOG_BYTES_MAX // 2 :]
            self.path.write_bytes(kept)
        with self.path.open("a", encoding="utf-8") as stream:
            stream.write(entry)
