"""What set-up says and how it starts programs: plain lines, one progress line, known trouble as one sentence.

Standard library only. A set-up child runs in its own process group and never outlives us: whatever ends the wait (Ctrl-C, an
error) ends the group first.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TextIO

_STOP_GRACE_S = 5.0


class Trouble(Exception):
    """Known trouble; the text is a sentence for the user that says what to do."""


class Console:
    """Where set-up talks to. `ask` sends everything to stderr, so that its own output stays clean."""

    def __init__(self) -> None:
        self._chosen: TextIO | None = None
        self._line_open = False

    @property
    def stream(self) -> TextIO:
        """Standard output, whatever it is now, unless another was chosen."""
        return self._chosen or sys.stdout

    @stream.setter
    def stream(self, stream: TextIO) -> None:
        self._chosen = stream

    def say(self, text: str) -> None:
        """Prints one line, after closing an open progress line."""
        if self._line_open:
            self.stream.write("\n")
            self._line_open = False
        self.stream.write(f"{text}\n")
        self.stream.flush()

    def heading(self, text: str) -> None:
        """Prints a section heading."""
        self.say(f"\n== {text} ==")

    def progress(self, text: str) -> None:
        """Rewrites the progress line on a terminal; in a log prints a line (callers throttle)."""
        if not self.stream.isatty():
            self.say(text)
            return
        self.stream.write(f"\r\x1b[2K{text[:110]}")
        self.stream.flush()
        self._line_open = True


console = Console()


def span(seconds: float) -> str:
    """`42 s`, `3 min`, `1 h 05 min`."""
    if seconds < 90:
        return f"{max(0, round(seconds))} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"


def stream_lines(
    command: Sequence[str | Path],
    *,
    log: Path,
    environment: Mapping[str, str] | None = None,
    on_line: Callable[[str], None],
) -> int:
    """Runs a program, gives each line of its output to `on_line` and all of it to `log`; returns the exit code."""
    log.parent.mkdir(parents=True, exist_ok=True)
    process = subprocess.Popen(
        [str(word) for word in command],
        env=None if environment is None else dict(environment),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        start_new_session=os.name != "nt",
        text=True,
        encoding="utf-8",
        errors="replace",
    )
    assert process.stdout is not None
    try:
        with log.open("w", encoding="utf-8") as copy:
            for line in process.stdout:
                copy.write(line)
                on_line(line.rstrip())
        return process.wait()
    finally:
        _stop(process)
        process.stdout.close()


def run_group(command: Sequence[str | Path], *, output: TextIO) -> int:
    """Runs a program in its own process group, its output going to `output`; returns the exit code.

    Only we see Ctrl-C then, and end the group: one message, not one from each process.
    """
    process = subprocess.Popen(
        [str(word) for word in command],
        stdin=subprocess.DEVNULL,
        stdout=output,
        start_new_session=os.name != "nt",
        text=True,
    )
    try:
        return process.wait()
    finally:
        _stop(process)


def _stop(process: subprocess.Popen[str]) -> None:
    """Ends what is left of a child and its group."""
    if process.poll() is not None:
        return
    for kind in (signal.SIGTERM, getattr(signal, "SIGKILL", signal.SIGTERM)):
        if os.name == "nt":
            process.terminate()
        else:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, kind)
        with suppress(subprocess.TimeoutExpired):
            process.wait(_STOP_GRACE_S)
            return


def output_of(command: Sequence[str | Path]) -> str | None:
    """What a short program prints; None when it fails or does not exist."""
    try:
        done = subprocess.run(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
            encoding="utf-8",
            errors="replace",
            timeout=120,
            check=True,
        )
    except (OSError, subprocess.SubprocessError):
        return None
    return done.stdout
