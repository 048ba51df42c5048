"""Text files as they are on disk: encoding, byte order mark and line ends are found, kept and put back. Blocking; any thread.

Invariant: what is read and encoded again unchanged is the same bytes; a file for which that does not hold is refused. A change is
written to a temporary file beside it, synced and renamed: a crash leaves the old file or the new one, and at most a temporary
`.growbox-<process>-….tmp`, which the next change in that folder removes.
"""

from __future__ import annotations

import codecs
import contextlib
import os
import re
import secrets
import stat
from dataclasses import dataclass
from pathlib import Path

import psutil

from growbox_app.executors.answers import CallFailed, Reason
from growbox_app.executors.base import FileChange
from growbox_app.executors.paths import unmoved
from growbox_app.files import sync_folder
from growbox_app.ingest.decoding import NotText, decode

FILE_BYTES_MAX = 10_000_000
"""A larger file is neither read nor changed as a whole."""
_ENCODINGS = (
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
    (b"", "utf-8"),
    (b"", "gb18030"),
    (b"", "cp1252"),
    (b"", "latin-1"),
)
_BINARY = getattr(os, "O_BINARY", 0)
_LINE_END = re.compile(r"\r\n|\r|\n")
_TEMPORARY = re.compile(r"\.growbox-(\d{1,9})-\w+\.tmp")


@dataclass(frozen=True, slots=True, kw_only=True)
class TextFile:
    """A text file. `text` has a line feed for every line end; `ends` are the real ones, in order, where they are not all alike."""

    text: str
    encoding: str = "utf-8"
    mark: bytes = b""
    line_end: str = "\n"
    ends: tuple[str, ...] = ()

    def encode(self, text: str) -> bytes:
        """Another text as bytes of this file: its encoding, mark and line ends. In a file with mixed ones each line keeps its own.

        Raises:
            CallFailed: the encoding has no such character.
        """
        try:
            return self.mark + self._with_ends(text).encode(self.encoding)
        except UnicodeEncodeError as error:
            wrong = text[error.start : error.start + 1] if error.start < len(text) else "?"
            found = next((c for c in text if not _has(self.encoding, c)), wrong)
            raise CallFailed(
                f"the file is stored as {self.encoding}, which has no character {found!r}",
                Reason.ENCODING,
            ) from error

    def _with_ends(self, text: str) -> str:
        text = _LINE_END.sub("\n", text)
        if not self.ends:
            return text.replace("\n", self.line_end)
        return "".join(
            line + end for line, end in zip(text.split("\n"), self._ends_for(text), strict=True)
        )

    def _ends_for(self, text: str) -> list[str]:
        """Line ends for a text of which beginning and end are mostly this file's: counted from both sides."""
        wanted = text.count("\n")
        old, new = self.text.split("\n"), text.split("\n")
        alike = 0
        while alike < min(wanted, len(self.ends)) and old[alike] == new[alike]:
            alike += 1
        behind = 0
        while behind < min(wanted, len(self.ends)) - alike and old[-1 - behind] == new[-1 - behind]:
            behind += 1
        middle = [self.line_end] * (wanted - alike - behind)
        last = list(self.ends[len(self.ends) - behind :])
        return [*self.ends[:alike], *middle, *last, ""]


def _has(encoding: str, character: str) -> bool:
    try:
        character.encode(encoding)
    except UnicodeEncodeError:
        return False
    return True


def text_file(data: bytes) -> TextFile:
    """The text of a file's bytes.

    Raises:
        CallFailed: it is no text, or in an encoding that cannot be put back.
    """
    try:
        raw = decode(data)
    except NotText as error:
        kind = "a binary file" if error.binary else "text in an unknown encoding"
        raise CallFailed(
            f"this is {kind} of {size(len(data))}, not readable as text", Reason.NOT_TEXT
        ) from error
    mark, encoding = _encoding(data, raw)
    ends = tuple(_LINE_END.findall(raw))
    commonest = max(("\n", "\r\n", "\r"), key=ends.count) if ends else "\n"
    mixed = len(set(ends)) > 1
    return TextFile(
        text=_LINE_END.sub("\n", raw),
        encoding=encoding,
        mark=mark,
        line_end=commonest,
        ends=ends if mixed else (),
    )


def _encoding(data: bytes, raw: str) -> tuple[bytes, str]:
    """The mark and encoding that make these bytes of this text."""
    for mark, encoding in _ENCODINGS:
        with contextlib.suppress(UnicodeEncodeError):
            if data.startswith(mark) and mark + raw.encode(encoding) == data:
                return mark, encoding
    raise CallFailed(
        "this text is in an encoding that could not be written back unchanged", Reason.ENCODING
    )


def read_bytes(path: Path, name: str) -> bytes:
    """All bytes of a regular file.

    Raises:
        CallFailed: a folder, a device, too large, unreadable.
        FileNotFoundError: there is no such file.
    """
    try:
        # Without O_NONBLOCK, opening a pipe would wait for a writer.
        descriptor = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0) | _BINARY)
        with os.fdopen(descriptor, "rb") as stream:
            status = os.fstat(stream.fileno())
            if not stat.S_ISREG(status.st_mode):
                raise CallFailed(f"{name} is no regular file", Reason.NOT_A_FILE)
            if status.st_size > FILE_BYTES_MAX:
                raise CallFailed(
                    f"{name} has {size(status.st_size)}, more than {size(FILE_BYTES_MAX)}; "
                    "look for the part you need with code_search or shell",
                    Reason.TOO_LARGE,
                )
            return stream.read(FILE_BYTES_MAX + 1)
    except FileNotFoundError:
        raise
    except OSError as error:
        if path.is_dir():
            raise CallFailed(f"{name} is a folder; use file_list", Reason.NOT_A_FILE) from error
        raise CallFailed(f"{name} cannot be read: {error.strerror}", Reason.UNREADABLE) from error


def write_change(change: FileChange) -> None:
    """Makes a planned change, if the file is still what it was when it was planned.

    Raises:
        CallFailed: it has changed since, a link was put in its way, or it cannot be written; it is then untouched.
    """
    path = change.path
    if not unmoved(path):
        raise CallFailed(
            "the path leads elsewhere now; nothing was changed, plan again", Reason.CHANGED
        )
    if _now(path) != change.before:
        raise CallFailed(
            "the file changed in the meantime; nothing was written: read it again, then repeat",
            Reason.CHANGED,
        )
    try:
        if change.after is None:
            path.unlink()
        else:
            _replace(path, change.after, new=change.before is None)
        sync_folder(path.parent)
    except OSError as error:
        raise CallFailed(
            f"the file could not be written: {error.strerror}", Reason.UNWRITABLE
        ) from error


def _now(path: Path) -> bytes | None:
    try:
        return read_bytes(path, path.name)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _replace(path: Path, content: bytes, *, new: bool) -> None:
    """The rename that makes the file the new one; the mode of an existing file stays."""
    path.parent.mkdir(parents=True, exist_ok=True)
    _sweep(path.parent)
    temporary = path.with_name(f".growbox-{os.getpid()}-{secrets.token_hex(4)}.tmp")
    # As a program would make it: the process's mask is applied to the mode.
    descriptor = os.open(temporary, os.O_CREAT | os.O_EXCL | os.O_WRONLY | _BINARY, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as stream:
            stream.write(content)
            stream.flush()
            os.fsync(stream.fileno())
        if not new:
            temporary.chmod(stat.S_IMODE(path.stat().st_mode))
        temporary.replace(path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise


def _sweep(folder: Path) -> None:
    """Removes what processes that are gone left half-written."""
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        for entry in entries:
            match = _TEMPORARY.fullmatch(entry.name)
            if match is not None and not psutil.pid_exists(int(match.group(1))):
                Path(entry.path).unlink(missing_ok=True)


def is_temporary(name: str) -> bool:
    """Whether a file's name is that of a half-written change."""
    return _TEMPORARY.fullmatch(name) is not None


def size(count: int) -> str:
    """Bytes for a reader."""
    if count < 1_000:
        return f"{count} bytes"
    return f"{count / 1e3:.1f} KB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"
