"""The frozen app as the smoke test handles it: start, ask, look into its data, end. Standard library only.

The data are read from outside, read-only, and only while the app runs: then nothing of the test's is left in them.
"""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from collections import Counter
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import smoke_trace
from console import Trouble
from smoke_surroundings import Surroundings, tool, wait_until

_SUFFIX = ".exe" if sys.platform == "win32" else ""
_CLOSED = 'exec "$@" <&- >&- 2>&-'
_TAIL_CHARACTERS = 600

Answer: TypeAlias = dict[str, Any]
"""The JSON object of `growbox-cli ask --json`."""


@dataclass(frozen=True, kw_only=True)
class Node:
    """A row of the timeline that matters here."""

    role: str
    status: str
    content: str
    trace: str


@dataclass(frozen=True, kw_only=True)
class Asked:
    """What a command-line question came to."""

    code: int
    answer: Answer
    words: str
    """What was said on the error stream."""


def flavour(app: Path) -> str:
    """`full`, `light` or `slim`, by the models that lie in the app folder."""
    chat = [path.name for path in (app / "models").glob("*.gguf") if "e5" not in path.name]
    if not chat:
        return "slim"
    return "light" if all("0.5b" in name for name in chat) else "full"


def version(app: Path) -> str:
    """The app folder's VERSION."""
    path = app / "VERSION"
    return path.read_text(encoding="utf-8").strip() if path.exists() else ""


class App:
    """The programs of one app folder in their surroundings. At most one window at a time."""

    def __init__(
        self,
        surroundings: Surroundings,
        *,
        display: str | None,
        trace: bool,
        timeout_s: float,
        start_by: str | None,
    ) -> None:
        """Starts nothing yet.

        Args:
            surroundings: already made.
            display: name of the X display.
            trace: run everything under strace.
            timeout_s: for one answer.
            start_by: command that opens the window, as the app's system sees it; None: the program in the app folder.
        """
        self.surroundings = surroundings
        self.timeout_s = timeout_s
        self._environment = surroundings.environment(display)
        self._trace = trace
        self._start_by = start_by or surroundings.inside(surroundings.app / f"GrowBox{_SUFFIX}")
        self._runs = 0
        self._window: subprocess.Popen[bytes] | None = None
        self.started_s = 0.0

    def start(self, *, closed_streams: bool = False) -> None:
        """Starts the window program; `started_s` is the moment before."""
        command = self._command(self._start_by, closed_streams=closed_streams)
        with self._log().open("ab") as log:
            self.started_s = time.monotonic()
            self._window = subprocess.Popen(
                command,
                env=self._environment,
                cwd=self.surroundings.working,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def ended(self) -> int | None:
        """The window program's exit code; None while it runs."""
        return None if self._window is None else self._window.poll()

    def wait(self, seconds: float) -> int:
        """Waits for the window program's end.

        Raises:
            Trouble: it goes on running.
        """
        assert self._window is not None
        try:
            return self._window.wait(seconds)
        except subprocess.TimeoutExpired as error:
            raise Trouble(f"The window did not end within {seconds:.0f} s.") from error

    def ask_to_end(self) -> None:
        """Where there is no X: Windows closes the window, others are asked by signal."""
        assert self._window is not None
        if sys.platform == "win32":
            subprocess.run(["taskkill", "/PID", str(self._window.pid)], check=True)
        else:
            self._window.terminate()

    def ask(self, text: str) -> Asked:
        """Asks by `growbox-cli`; a window that is open answers."""
        return self.run("ask", text, "--json")

    def run(self, *arguments: str) -> Asked:
        """Runs a command of `growbox-cli` that prints JSON.

        Raises:
            Trouble: no answer in time, or one that is not JSON.
        """
        program = self.surroundings.app / f"growbox-cli{_SUFFIX}"
        command = [*self._command(self.surroundings.inside(program)), *arguments]
        try:
            done = subprocess.run(
                command,
                env=self._environment,
                cwd=self.surroundings.working,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=self.timeout_s,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise Trouble(f"No answer within {self.timeout_s:.0f} s.") from error
        words = done.stderr.decode(errors="replace").strip()
        try:
            answer: Answer = json.loads(done.stdout)
        except ValueError as error:
            raise Trouble(
                f"The command line gave no JSON (exit code {done.returncode}): {words[-_TAIL_CHARACTERS:]}"
            ) from error
        return Asked(code=done.returncode, answer=answer, words=words)

    def nodes(self) -> list[Node]:
        """What was said so far; empty until the data folder is there."""
        path = self.surroundings.data / "timeline.db"
        if not path.exists():
            return []
        try:
            with closing(
                sqlite3.connect(f"{path.as_uri()}?mode=ro", uri=True, timeout=2)
            ) as database:
                rows = database.execute(
                    "SELECT role, status, content, coalesce(trace, '') FROM nodes"
                    " WHERE deleted_at_ms IS NULL ORDER BY seq"
                ).fetchall()
        except sqlite3.OperationalError:  # the schema is just being written
            return []
        return [Node(role=row[0], status=row[1], content=row[2], trace=row[3]) for row in rows]

    def processes(self) -> Counter[str]:
        """The app's living processes, counted by name."""
        return Counter(self.surroundings.processes().values())

    def kill(self) -> None:
        """Ends whatever is left of the app."""
        if self._window is not None and self._window.poll() is None:
            self._window.kill()
        if sys.platform == "linux":
            for process in self.surroundings.processes():
                os.kill(process, signal.SIGKILL)
            wait_until(lambda: not self.surroundings.processes(), seconds=5)
        if self._window is not None:
            self._window.wait(10)

    def log_tail(self) -> str:
        """The end of what the window program printed."""
        path = self._log()
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        return text.strip()[-_TAIL_CHARACTERS:]

    def crash_report(self) -> str:
        """The end of the crash log; empty when there is none."""
        path = self.surroundings.data / "logs" / "crash.log"
        text = path.read_text(encoding="utf-8", errors="replace") if path.exists() else ""
        return text.strip()[-_TAIL_CHARACTERS:]

    def traffic(self) -> smoke_trace.Traffic:
        """What the traced runs did."""
        found = smoke_trace.Traffic()
        for path in sorted(self.surroundings.scratch.glob("trace-*.log")):
            with path.open(encoding="utf-8", errors="replace") as lines:
                smoke_trace.read(lines, found)
        return found

    def _log(self) -> Path:
        return self.surroundings.scratch / "window.log"

    def _command(self, program: str, *, closed_streams: bool = False) -> list[str]:
        words = [*self.surroundings.enter(), program]
        if closed_streams and sys.platform != "win32":
            words = ["/bin/sh", "-c", _CLOSED, "sh", *words]
        if not self._trace:
            return words
        self._runs += 1
        log = self.surroundings.scratch / f"trace-{self._runs}.log"
        return [tool(smoke_trace.STRACE[0]), *smoke_trace.STRACE[1:], "-o", str(log), *words]
