"""Commands of the user's machine: their own process group, no input, no secrets in the environment, bounded output, and a sure end.

Event-loop thread; a daemon thread reads each command's output. A command ends with everything it started: when it ends itself, at
its time limit, at the user's stop, when it floods, and when this application ends in whatever way. For the last, on Unix, a second
process in the group waits for a pipe of ours to close; on Windows only an orderly end is covered. What left the group on purpose
(a daemon) is ended only while it is still a descendant.
"""

from __future__ import annotations

import asyncio
import contextlib
import locale
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from growbox_app.executors.answers import CallFailed, Reason

OUTPUT_BYTES_MAX = 32_000
"""Kept of an output, half from its beginning and half from its end."""
FLOOD_BYTES_MAX = 64_000_000
"""A command that says more than this is ended: it says the same for ever."""
GRACE_S = 0.3
_POLL_FIRST_S, _POLL_S = 0.01, 0.1
_REAP_S = 1.0
_READ_BYTES = 65_536

_KEPT = frozenset(
    [
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "LANG",
        "LANGUAGE",
        "TZ",
        "TMPDIR",
        "TMP",
        "TEMP",
        "PWD",
        "DISPLAY",
        "WAYLAND_DISPLAY",
        "VIRTUAL_ENV",
        "CC",
        "CXX",
        "CFLAGS",
        "CXXFLAGS",
        "LDFLAGS",
        "MAKEFLAGS",
        "SYSTEMROOT",
        "SYSTEMDRIVE",
        "WINDIR",
        "COMSPEC",
        "PATHEXT",
        "USERPROFILE",
        "USERNAME",
        "HOMEDRIVE",
        "HOMEPATH",
        "APPDATA",
        "LOCALAPPDATA",
        "PROGRAMDATA",
        "PROGRAMFILES",
        "PROGRAMFILES(X86)",
        "PROGRAMW6432",
        "COMMONPROGRAMFILES",
        "NUMBER_OF_PROCESSORS",
        "PROCESSOR_ARCHITECTURE",
        "OS",
        "PSMODULEPATH",
    ]
)
_KEPT_BY_SHAPE = re.compile(r"LC_\w+|XDG_\w+|\w+_HOME|\w+_ROOT|\w*PATH")
_FOLDERS = re.compile(r"\w*PATH")
"""Lists of folders in which programs, libraries and modules are looked for."""
_RUNS_BY_ITSELF = re.compile(
    r"GIT_\w+|CDPATH|BASH\w*|ENV|PROMPT_COMMAND|(LD|DYLD)_(?!LIBRARY_PATH)\w+|\w+_OPTIONS|PYTHON(HOME|STARTUP)"
)
"""Variables that make an innocent command run something else, go somewhere else, or load a library; whatever their shape."""
_SECRET = re.compile(
    r"KEY|TOKEN|SECRET|PASS|PWD_|CRED|AUTH|COOKIE|SESSION|PRIVATE|RUNTIME|GROWBOX|QT_"
)
_CREDENTIALS_IN_URL = re.compile(r"://[^/\s@]+@")
_QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": "true",
    "DEBIAN_FRONTEND": "noninteractive",
    "PYTHONUNBUFFERED": "1",
    "PYTHONIOENCODING": "utf-8",
    "NoDefaultCurrentDirectoryInExePath": "1",  # Windows: a program of the project's is not found by its bare name
}
_WATCHED = (
    "exec 3<&0 </dev/null; { read -r _ <&3; kill -KILL 0; } >/dev/null 2>&1 & exec 3<&-; "
    '{ echo 19 >/proc/self/autogroup; } 2>/dev/null; exec nice -n 19 "$@"'
)
"""Standard input is our pipe: its end ends the group. The command itself gets no input, and the lowest priority.

Linux: a session of its own may be a scheduling group of its own, in which niceness counts only against itself; so the group is nice, too.
"""
_ESCAPES = re.compile(r"\x1b(\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(\x07|\x1b\\)?|[@-Z\\-_])")
_CONTROLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")


class Ending(StrEnum):
    """Why a command is over."""

    EXIT = "exit"
    TIME = "time"
    STOPPED = "stopped"
    FLOOD = "flood"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ended:
    """A command that is over. `code` is None when it was ended from outside."""

    ending: Ending
    code: int | None
    seconds: float
    output: str


def environment(project: Path | None = None, of: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a command gets of our environment: what programs need to be found and to find their files, and no secrets.

    Nothing is looked for in the project, or in the folder that happens to be the current one: else a file of the project could be
    run under the name of a command that the policy knows. Without a project the second holds.
    """
    source = dict(os.environ if of is None else of)
    if getattr(sys, "frozen", False):
        # The bundle's own libraries are not those of the user's programs.
        for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH"):
            source.pop(name, None)
            if f"{name}_ORIG" in source:
                source[name] = source[f"{name}_ORIG"]
    kept = {name: value for name, value in source.items() if _is_kept(name.upper(), value)}
    for name in [name for name in kept if _FOLDERS.fullmatch(name.upper())]:
        kept[name] = _outside(kept[name], project)
        if not kept[name]:
            del kept[name]
    return {"PATH": _outside(os.defpath, project)} | kept | _QUIET


def _outside(folders: str, project: Path | None) -> str:
    """Those of a list that are absolute and not in the project, as written and as resolved."""
    roots = {project, Path(os.path.realpath(project))} if project is not None else set()
    kept = [
        folder
        for folder in folders.split(os.pathsep)
        if Path(folder).is_absolute()
        and not any(
            form.is_relative_to(root)
            for root in roots
            for form in (Path(os.path.normpath(folder)), Path(os.path.realpath(folder)))
        )
    ]
    return os.pathsep.join(kept)


def program(name: str, project: Path) -> str | None:
    """Where a program is, for work in a project; None: it is not on this machine."""
    return shutil.which(name, path=environment(project)["PATH"])


def _is_kept(name: str, value: str) -> bool:
    if _RUNS_BY_ITSELF.fullmatch(name):
        return False
    if name not in _KEPT and (_KEPT_BY_SHAPE.fullmatch(name) is None or _SECRET.search(name)):
        return False
    return _CREDENTIALS_IN_URL.search(value) is None


def shell_words(command: str, project: Path) -> list[str]:
    """The words that run a command line.

    Raises:
        CallFailed: this machine has no shell.
    """
    if sys.platform == "win32":
        shell = program("powershell.exe", project) or program("pwsh.exe", project)
        if shell is None:
            raise CallFailed("there is no PowerShell on this computer", Reason.CANNOT_START)
        utf8 = "[Console]::OutputEncoding=[Text.Encoding]::UTF8;"
        return [shell, "-NoLogo", "-NoProfile", "-NonInteractive", "-Command", utf8 + command]
    shell = program("bash", project) or "/bin/sh"
    return [shell, "-c", command]


class Output:
    """The beginning and the end of what a command says. Any thread."""

    def __init__(self) -> None:
        self.total = 0
        self._head = bytearray()
        self._tail = bytearray()
        self._lock = threading.Lock()

    def add(self, data: bytes) -> None:
        """Takes what came."""
        half = OUTPUT_BYTES_MAX // 2
        with self._lock:
            self.total += len(data)
            room = half - len(self._head)
            self._head += data[:room]
            self._tail += data[room:]
            if len(self._tail) > 4 * half:
                del self._tail[:-half]

    def text(self) -> str:
        """As a reader would see it on a terminal; what is left out is named."""
        head, left_out, tail = self.parts()
        if not left_out:
            return head
        return f"{head}\n[… {left_out} of {self.total} bytes not shown …]\n{tail}"

    def parts(self) -> tuple[str, int, str]:
        """Beginning, bytes left out behind it, and end; all is in the beginning when nothing is left out."""
        half = OUTPUT_BYTES_MAX // 2
        with self._lock:
            head, tail = bytes(self._head), bytes(self._tail[-half:])
            left_out = self.total - len(head) - len(tail)
        if not left_out:
            return readable(head + tail), 0, ""
        return readable(head), left_out, readable(tail)


def readable(data: bytes) -> str:
    """Output as text: without colours and controls, overwritten lines as they were last."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        # Half characters at the cut stay marks; another encoding is only tried where it is the system's.
        other = locale.getpreferredencoding(False)
        encoding = "utf-8" if sys.platform != "win32" else other
        text = data.decode(encoding, "replace")
    text = _ESCAPES.sub("", text.replace("\r\n", "\n"))
    lines = [line.rstrip("\r").rsplit("\r", 1)[-1].rstrip() for line in text.split("\n")]
    return _CONTROLS.sub("", "\n".join(lines)).strip("\n")


class Command:
    """A running command and what it says. Event-loop thread; `end` on any."""

    def __init__(self, words: Sequence[str], cwd: Path) -> None:
        """Starts it.

        Raises:
            CallFailed: it cannot be started.
        """
        self.output = Output()
        self._started = asyncio.get_running_loop().time()
        self._watch: int | None = None
        self._ending = threading.Lock()
        try:
            self._process = self._start(words, cwd)
        except (OSError, ValueError) as error:
            raise CallFailed(
                f"the command could not be started: {error}", Reason.CANNOT_START
            ) from error
        self._reader = threading.Thread(target=self._read, name="command-output", daemon=True)
        self._reader.start()

    def _start(self, words: Sequence[str], cwd: Path) -> subprocess.Popen[bytes]:
        if sys.platform == "win32":
            return subprocess.Popen(  # noqa: S603 - the policy has judged the words
                words,
                cwd=cwd,
                env=environment(cwd),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                creationflags=subprocess.CREATE_NEW_PROCESS_GROUP
                | subprocess.CREATE_NO_WINDOW
                | subprocess.IDLE_PRIORITY_CLASS,
            )
        theirs, ours = os.pipe()
        try:
            process = subprocess.Popen(  # noqa: S603 - the policy has judged the words
                ["/bin/sh", "-c", _WATCHED, "growbox", *words],
                cwd=cwd,
                env=environment(cwd),
                stdin=theirs,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        except BaseException:
            os.close(ours)
            raise
        finally:
            os.close(theirs)
        self._watch = ours
        return process

    @property
    def seconds(self) -> float:
        """Since its start."""
        return asyncio.get_running_loop().time() - self._started

    def code(self) -> int | None:
        """Its exit code; None while it runs."""
        return self._process.poll()

    def _read(self) -> None:
        stream = self._process.stdout
        assert stream is not None
        with stream, contextlib.suppress(OSError, ValueError):
            while data := os.read(stream.fileno(), _READ_BYTES):
                self.output.add(data)

    def ask_to_end(self) -> None:
        """The polite signal, to the whole group."""
        if sys.platform != "win32":
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGTERM)

    async def stop(self) -> None:
        """Lets it tidy up for a moment, then ends it and everything it started; nothing of that on the loop's thread.

        What left the group is looked for first: once the command is gone, nothing says whose it was.
        """
        descendants = await asyncio.to_thread(self._descendants)
        await self._end_gently()
        await asyncio.to_thread(self.end, descendants)

    def end(self, known: Sequence[psutil.Process] = ()) -> None:
        """Ends it and everything it started, at once, with descendants that are `known` already. Idempotent."""
        descendants = [*known, *self._descendants()]
        with self._ending:
            watch, self._watch = self._watch, None
        if sys.platform != "win32" and watch is not None:
            # The watching process is in the group until now, so the number cannot be another group's.
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(self._process.pid, signal.SIGKILL)
            os.close(watch)
        for process in descendants:  # on Windows all, on Unix those that left the group
            with contextlib.suppress(psutil.Error):
                process.kill()
        with contextlib.suppress(OSError):
            self._process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_REAP_S)

    async def finish(self, *, seconds: float, cancelled: asyncio.Event) -> Ended:
        """Waits until it is over, and makes it so. A cancelled caller ends it, too."""
        ending, pause = Ending.EXIT, _POLL_FIRST_S
        try:
            while (code := self.code()) is None:
                if (over := self._over(seconds, cancelled)) is not None:
                    ending = over
                    break
                await asyncio.sleep(pause)
                pause = min(pause * 1.5, _POLL_S)
            if ending is not Ending.EXIT:
                await self._end_gently()
        finally:
            self.end()
        await asyncio.to_thread(self._reader.join, _REAP_S)
        return Ended(
            ending=ending,
            code=code if ending is Ending.EXIT else None,
            seconds=self.seconds,
            output=self.output.text(),
        )

    def _over(self, seconds: float, cancelled: asyncio.Event) -> Ending | None:
        if cancelled.is_set():
            return Ending.STOPPED
        if self.seconds >= seconds:
            return Ending.TIME
        return Ending.FLOOD if self.output.total > FLOOD_BYTES_MAX else None

    async def _end_gently(self) -> None:
        """Gives it a moment to tidy up."""
        self.ask_to_end()
        for _ in range(round(GRACE_S / _POLL_FIRST_S)):
            if self.code() is not None:
                return
            await asyncio.sleep(_POLL_FIRST_S)

    def _descendants(self) -> list[psutil.Process]:
        """None of a command that is over: its number may be another's by now."""
        if self.code() is not None:
            return []
        try:
            return psutil.Process(self._process.pid).children(recursive=True)
        except psutil.Error:
            return []
