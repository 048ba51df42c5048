"""Commands of the user's machine: no input, no secrets in the environment, bounded output, and a sure end.

Event-loop thread; a daemon thread reads each command's output. A command ends with everything it started (`process_group.py`): when it
ends itself, at its time limit, at the user's stop, when it floods, and when this application ends in whatever way.
"""

from __future__ import annotations

import asyncio
import contextlib
import locale
import os
import re
import shutil
import sys
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from growbox_app.executors.answers import CallFailed, Reason
from growbox_app.executors.process_group import REAP_S, ProcessGroup

OUTPUT_BYTES_MAX = 32_000
"""Kept of an output, half from its beginning and half from its end."""
FLOOD_BYTES_MAX = 64_000_000
"""A command that says more than this is ended: it says the same for ever."""
GRACE_S = 0.3
_POLL_FIRST_S, _POLL_S = 0.01, 0.1
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
        try:
            self._group = ProcessGroup(words, cwd, environment(cwd), spoken_to=False)
        except (OSError, ValueError) as error:
            raise CallFailed(
                f"the command could not be started: {error}", Reason.CANNOT_START
            ) from error
        self._process = self._group.process
        self._reader = threading.Thread(target=self._read, name="command-output", daemon=True)
        self._reader.start()

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
        self._group.ask_to_end()

    async def stop(self) -> None:
        """Lets it tidy up for a moment, then ends it and everything it started; nothing of that on the loop's thread.

        What left the group is looked for first: once the command is gone, nothing says whose it was.
        """
        descendants = await asyncio.to_thread(self._group.descendants)
        await self._end_gently()
        await asyncio.to_thread(self.end, descendants)

    def end(self, known: Sequence[psutil.Process] = ()) -> None:
        """Ends it and everything it started, at once, with descendants that are `known` already. Idempotent."""
        self._group.end(known)

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
        await self.read_out()
        return Ended(
            ending=ending,
            code=code if ending is Ending.EXIT else None,
            seconds=self.seconds,
            output=self.output.text(),
        )

    async def read_out(self) -> None:
        """Of a command that is over: waits until its last words have been read."""
        await asyncio.to_thread(self._reader.join, REAP_S)

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
