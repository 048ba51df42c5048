"""The audit log: every decision about a call of the agent, appended as one line of JSON, read back for a view.

Owns `logs/audit.jsonl` in the data folder and the older files it was rotated to, private to the user and bounded (`BYTES_MAX`, `FILES`).
Each line is durable (flush and fsync) before `append` returns: a decision stands in the log before its call runs. A crash can only tear
the last line; it is left out when reading, and the next line starts on a new one. Secrets are replaced before a line is written.
Blocking, a few milliseconds a line; any thread.
"""

from __future__ import annotations

import contextlib
import logging
import os
import re
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec

from growbox_app.files import sync_folder, write_atomically
from memory.ports import Clock

_LOG = logging.getLogger(__name__)
BYTES_MAX = 2_000_000
FILES = 4
FIELD_CHARACTERS_MAX = 4_000
_TARGETS_MAX = 50
HIDDEN = "[hidden]"

_NAME_OF_ONE = r"(?:pass(?:word|wd|phrase)?|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credentials?)[\w.-]{0,64}"
"""What comes before it in a longer name is not part of the match: no repetition here is without a bound, so no text takes long."""
_SECRETS = (
    # A key in armour, whole or cut off.
    (
        re.compile(
            r"-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|\Z)", re.S
        ),
        HIDDEN,
    ),
    # user:password@ in an address.
    (re.compile(r"([a-zA-Z][\w+.-]{0,30}://[^\s/:@]{0,200}):[^\s/@]+@"), rf"\1:{HIDDEN}@"),
    # Authorization headers.
    (
        re.compile(r"(?i)\b((?:proxy-)?authorization\s*[:=]\s*[\"']?(?:\w+\s+)?)[^\s\"',;]+"),
        rf"\1{HIDDEN}",
    ),
    (re.compile(r"(?i)\b(bearer\s+)[\w.~+/=-]{8,}"), rf"\1{HIDDEN}"),
    # NAME=value, "name": "value", --name value.
    (
        re.compile(
            rf"(?i)(--[\w.-]{{0,64}}{_NAME_OF_ONE}(?:\s+|=)|{_NAME_OF_ONE}[\"']?\s*[:=]\s*)"
            r"(\"[^\"]*\"?|'[^']*'?|[^\s\"'&;,|)}]+)"
        ),
        rf"\1{HIDDEN}",
    ),
    # What is a secret by its own look.
    (
        re.compile(
            r"\b(?:sk-[\w-]{16,}|gh[pousr]_\w{20,}|github_pat_\w{20,}|glpat-[\w-]{16,}|xox[abposr]-[\w-]{10,}"
            r"|hf_[A-Za-z0-9]{20,}|AKIA[A-Z0-9]{16}|ASIA[A-Z0-9]{16}|AIza[\w-]{30,}|npm_\w{30,}"
            r"|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]*)"
        ),
        HIDDEN,
    ),
)


def redacted(text: str) -> str:
    """A text without what looks like a secret: keys, tokens, passwords in addresses and assignments."""
    for pattern, replacement in _SECRETS:
        text = pattern.sub(replacement, text)
    return text


class Decided(msgspec.Struct, frozen=True, kw_only=True):
    """One decision.

    Attributes:
        executor: The ability that was called.
        targets: Paths and hosts.
        command: The command of a shell.
        verdict: What the policy said: allow, ask or deny.
        reason: The policy's translation key.
        by: Who decided: policy, user, or nobody in time.
        allowed: Whether the call ran.
        mode: The project's mode at that moment.
        at_ms: Set by the log.
        conversation: Where it was called; by it, `forget` finds what to blank.
    """

    executor: str
    targets: tuple[str, ...]
    command: str = ""
    verdict: str
    reason: str
    by: str
    allowed: bool
    mode: str = ""
    at_ms: int = 0
    conversation: str = ""


class AuditLog:
    """The log of one data folder."""

    def __init__(
        self, data_path: Path, clock: Clock, *, bytes_max: int = BYTES_MAX, files: int = FILES
    ) -> None:
        self._path = data_path / "logs" / "audit.jsonl"
        self._clock = clock
        self._bytes_max = bytes_max
        self._files = files
        self._lock = threading.Lock()

    def append(self, decided: Decided) -> None:
        """Writes a decision, without secrets, durably.

        Raises:
            OSError: it is not in the log; what needs a record must not run.
        """
        line = msgspec.json.encode(
            msgspec.structs.replace(
                decided,
                targets=_shortened(decided.targets),
                command=_shown(decided.command),
                at_ms=self._clock.now_ms(),
            )
        )
        with self._lock:
            self._make_room(len(line) + 1)
            is_new = not self._path.exists()
            descriptor = os.open(
                self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | getattr(os, "O_BINARY", 0), 0o600
            )
            with os.fdopen(descriptor, "ab") as stream:
                # One write: two processes may mix lines, but not halves of them.
                stream.write((b"\n" if _ends_torn(descriptor) else b"") + line + b"\n")
                stream.flush()
                os.fsync(stream.fileno())
            if is_new:
                sync_folder(self._path.parent)

    def recent(self, count: int) -> tuple[Decided, ...]:
        """The newest decisions, newest first. Lines that cannot be read are left out."""
        found: list[Decided] = []
        with self._lock:
            for path in self._paths():
                for line in _lines_backwards(path):
                    if len(found) >= count:
                        return tuple(found)
                    with contextlib.suppress(msgspec.MsgspecError):
                        found.append(msgspec.json.decode(line, type=Decided))
        return tuple(found)

    def forget(self, conversation: str) -> None:
        """Takes paths and commands out of the decisions of a conversation; that they were made stays.

        Raises:
            OSError: a file cannot be written; it is then as it was.
        """
        with self._lock:
            for path in self._paths():
                lines = list(_lines_backwards(path))
                kept = [_blanked(line, conversation) for line in lines]
                if kept != lines:
                    write_atomically(path, b"".join(line + b"\n" for line in reversed(kept)))
                    path.chmod(0o600)

    def _paths(self) -> list[Path]:
        """The files, newest first."""
        older = [self._path.with_suffix(f".{number}.jsonl") for number in range(1, self._files)]
        return [self._path, *older]

    def _make_room(self, size: int) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        try:
            is_full = self._path.stat().st_size + size > self._bytes_max
        except FileNotFoundError:
            return
        if not is_full:
            return
        paths = self._paths()
        if len(paths) == 1:
            self._path.unlink()
        for newer, older in zip(paths[-2::-1], paths[:0:-1], strict=True):
            if newer.exists():
                newer.replace(older)


def _shortened(targets: tuple[str, ...]) -> tuple[str, ...]:
    kept = tuple(_shown(target) for target in targets[:_TARGETS_MAX])
    left_out = len(targets) - len(kept)
    return (*kept, f"… +{left_out}") if left_out else kept


def _shown(text: str) -> str:
    """Redacted before it is cut, so that a cut hides no secret from the patterns; names that are no text are escaped."""
    storable = redacted(text).encode("utf-8", "surrogatepass").decode("utf-8", "backslashreplace")
    return storable[:FIELD_CHARACTERS_MAX]


def _blanked(line: bytes, conversation: str) -> bytes:
    """A line as it is, or, of the conversation, without what tells of it. One that cannot be read is taken for one of it."""
    try:
        decided = msgspec.json.decode(line, type=Decided)
    except msgspec.MsgspecError:
        return b"{}" if conversation.encode() in line else line
    if decided.conversation != conversation:
        return line
    return msgspec.json.encode(
        msgspec.structs.replace(decided, targets=(), command="", conversation="")
    )


def _ends_torn(descriptor: int) -> bool:
    """Whether the last line was cut off by a crash."""
    if os.lseek(descriptor, 0, os.SEEK_END) == 0:
        return False
    os.lseek(descriptor, -1, os.SEEK_END)
    return os.read(descriptor, 1) != b"\n"


def _lines_backwards(path: Path) -> Iterator[bytes]:
    """The files are small enough to be read whole."""
    try:
        content = path.read_bytes()
    except FileNotFoundError:
        return
    yield from (line for line in reversed(content.split(b"\n")) if line)
