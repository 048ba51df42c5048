"""A program and everything it starts, as one thing: a process group of its own, the lowest priority, and a sure end.

It ends when told to, and when this application ends in whatever way: on Unix a second process in the group waits for a pipe of ours to
close; on Windows only an orderly end is covered. What left the group on purpose (a daemon) is ended only while it is still a descendant.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

import psutil

REAP_S = 1.0
_HUMBLY = '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 "$@"'
"""Linux: a session of its own may be a scheduling group of its own, in which niceness counts only against itself; so the group is nice, too."""
_DEAF = (
    "exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 & exec 3<&-; " + _HUMBLY
)
"""Standard input is our pipe: its end ends the group. The program itself gets no input."""
_SPOKEN_TO = (
    'watch=$1; shift; { read -r _ <"$watch"; kill -KILL 0; } </dev/null >/dev/null 2>&1 & '
    + _HUMBLY
)
"""Standard input is the program's; our pipe comes beside it."""


class ProcessGroup:
    """A running program. `end` on any thread."""

    def __init__(
        self, words: Sequence[str], cwd: Path, variables: Mapping[str, str], *, spoken_to: bool
    ) -> None:
        """Starts it: with an input, and errors apart from its output; or, not `spoken_to`, with neither.

        Raises:
            OSError: it cannot be started.
            ValueError: no program can have such words.
        """
        self._watch: int | None = None
        self._ending = threading.Lock()
        self.process = self._start(words, cwd, variables, spoken_to=spoken_to)

    def _start(
        self, words: Sequence[str], cwd: Path, variables: Mapping[str, str], *, spoken_to: bool
    ) -> subprocess.Popen[bytes]:
        errors = subprocess.PIPE if spoken_to else subprocess.STDOUT
        if sys.platform == "win32":
            return subprocess.Popen(  # noqa: S603 - the policy has judged the words, or the user has set them up
                words,
                cwd=cwd,
                env=variables,
                stdin=subprocess.PIPE if spoken_to else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=errors,
                creationflags=subprocess.CREATE_NEW_PROCESS_GROUP
                | subprocess.CREATE_NO_WINDOW
                | subprocess.IDLE_PRIORITY_CLASS,
            )
        theirs, ours = os.pipe()
        script = [_SPOKEN_TO, "growbox", f"/dev/fd/{theirs}"] if spoken_to else [_DEAF, "growbox"]
        try:
            process = subprocess.Popen(  # noqa: S603 - as above
                ["/bin/sh", "-c", *script, *words],
                cwd=cwd,
                env=variables,
                stdin=subprocess.PIPE if spoken_to else theirs,
                stdout=subprocess.PIPE,
                stderr=errors,
                pass_fds=(theirs,) if spoken_to else (),
                start_new_session=True,
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self._watch = ours
        return process

    def ask_to_end(self) -> None:
        """The polite signal, to the whole group."""
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGTERM)

    def end(self, known: Sequence[psutil.Process] = ()) -> None:
        """Ends it and everything it started, at once, with descendants that are `known` already. Idempotent."""
        descendants = [*known, *self.descendants()]
        with self._ending:
            watch, self._watch = self._watch, None
        if sys.platform != "win32" and watch is not None:
            # The watching process is in the group until now, so the number cannot be another group's.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self.process.pid, signal.SIGKILL)
            os.close(watch)
        for process in descendants:  # on Windows all, on Unix those that left the group
            with contextlib.suppress(psutil.Error):
                process.kill()
        with contextlib.suppress(OSError):
            self.process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(REAP_S)

    def descendants(self) -> list[psutil.Process]:
        """None of a program that is over: its number may be another's by now."""
        if self.process.poll() is not None:
            return []
        try:
            return psutil.Process(self.process.pid).children(recursive=True)
        except psutil.Error:
            return []
