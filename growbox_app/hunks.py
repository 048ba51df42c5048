"""The hunks of a change to a text file, for a reader to accept one by one. Pure; any thread.

Works on bytes and splits them after each LF, so that whatever subset is accepted, every line is one of the two files' own, byte for
byte: CRLF, byte order marks and a missing last line end included. All hunks give `after`, none gives `before`.
"""

from __future__ import annotations

import dataclasses
import difflib
import re
from collections.abc import Mapping, Set
from dataclasses import dataclass
from typing import TypeAlias

from growbox_app.executors.base import FileChange

CONTEXT_LINES = 3
NO_LINE_END = "\\ No newline at end of file"
TEXT_BYTES_MAX = 2_000_000
"""A larger file is one hunk: nobody reads it line by line, and comparing it would take long."""
_LINES_MAX = 20_000
_LINE = re.compile(rb"[^\n]*\n|[^\n]+")
_Opcode: TypeAlias = tuple[str, int, int, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Hunk:
    """A group of changed lines with what stands around them.

    Attributes:
        index: Its number within the change.
        header: As in a unified diff, `@@ -12,3 +12,4 @@`; sizes where there is no text.
        lines: Each with its sign (` `, `-`, `+`) and without its LF; bytes that are no text are escaped.
        is_text: False for a binary or very large file: no lines, accepted whole or not at all.
    """

    index: int
    header: str
    lines: tuple[str, ...]
    is_text: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class DiffHunk:
    """One hunk of a change, as a unified diff shows it. `index` is its number within the approval.

    `editable`: the user may write something else in the place of `text`.
    """

    index: int
    path: str
    header: str
    lines: tuple[str, ...]
    editable: bool = False

    @property
    def text(self) -> str:
        """What would stand there, without the last line end."""
        return "\n".join(line[1:].removesuffix("\r") for line in self.lines if line[:1] in " +")


def hunks_of(change: FileChange) -> tuple[Hunk, ...]:
    """The hunks of a change. A file that is made or removed is one, even when it is empty."""
    if change.before == change.after:
        return ()
    if not _is_text(change):
        sizes = (len(change.before or b""), len(change.after or b""))
        header = f"@@ -{sizes[0]} B +{sizes[1]} B @@"
        return (Hunk(index=0, header=header, lines=(), is_text=False),)
    before, after = _lines(change.before), _lines(change.after)
    return tuple(
        _hunk(index, group, before, after) for index, group in enumerate(_groups(before, after))
    )


def editable(change: FileChange) -> bool:
    """Whether a reader may write something else in the place of a hunk: what the file would become is plain UTF-8."""
    if not change.after or not _is_text(change):
        return False
    try:
        change.after.decode()
    except UnicodeDecodeError:
        return False
    return True


def apply(
    change: FileChange, accepted: Set[int], texts: Mapping[int, str] | None = None
) -> FileChange:
    """The change with only these hunks, and in some of them `texts`, without their last line end, for what would stand there.

    A file that would be made or removed is one hunk: it is, or it is not. Another text takes over the line ends of the hunk.

    Raises:
        ValueError: there is no such hunk.
    """
    count = len(hunks_of(change))
    if not accepted <= set(range(count)):
        raise ValueError(f"hunks {sorted(accepted)} of {count}")
    texts = {index: text for index, text in (texts or {}).items() if index in accepted}
    if len(accepted) == count and not texts:
        return change
    if not accepted:
        return dataclasses.replace(change, after=change.before)
    before, after = _lines(change.before), _lines(change.after)
    content: list[bytes] = []
    position = 0
    for index, group in enumerate(_groups(before, after)):
        if index not in accepted:
            continue
        if index in texts:
            shown = after[group[0][3] : group[-1][4]]
            content += [*before[position : group[0][1]], _written(texts[index], shown)]
            position = group[-1][2]
            continue
        for tag, i1, i2, j1, j2 in group:
            if tag != "equal":
                content += before[position:i1] + after[j1:j2]
                position = i2
    content += before[position:]
    return dataclasses.replace(change, after=b"".join(content))


def _written(text: str, instead_of: list[bytes]) -> bytes:
    """Another text with the line ends of these lines."""
    if not text:
        return b""
    ended = [line for line in instead_of if line.endswith(b"\n")]
    end = b"\r\n" if ended and all(line.endswith(b"\r\n") for line in ended) else b"\n"
    bare = bool(instead_of) and not instead_of[-1].endswith(b"\n")
    return text.encode().replace(b"\n", end) + (b"" if bare else end)


def unified(change: FileChange, name: str) -> str:
    """The change as a unified diff for a reader or a model; bytes that are no text are escaped."""
    found = hunks_of(change)
    old, new = (
        "/dev/null" if content is None else name for content in (change.before, change.after)
    )
    if any(not hunk.is_text for hunk in found):
        return f"Binary files {old} and {new} differ\n"
    lines = [f"--- {old}", f"+++ {new}"] if found else []
    for hunk in found:
        lines += (hunk.header, *hunk.lines)
    return "".join(f"{line}\n" for line in lines)


def _is_text(change: FileChange) -> bool:
    for content in (change.before or b"", change.after or b""):
        if len(content) > TEXT_BYTES_MAX:
            return False
        if b"\0" in content or len(_lines(content)) > _LINES_MAX:
            return False
    return True


def _lines(content: bytes | None) -> list[bytes]:
    return _LINE.findall(content or b"")


def _groups(before: list[bytes], after: list[bytes]) -> list[list[_Opcode]]:
    if not before and not after:  # an empty file is made or removed
        return [[("equal", 0, 0, 0, 0)]]
    matcher = difflib.SequenceMatcher(None, before, after)
    return [list(group) for group in matcher.get_grouped_opcodes(CONTEXT_LINES)]


def _hunk(index: int, group: list[_Opcode], before: list[bytes], after: list[bytes]) -> Hunk:
    lines: list[str] = []
    for tag, i1, i2, j1, j2 in group:
        lines += _shown(" " if tag == "equal" else "-", before[i1:i2])
        if tag != "equal":
            lines += _shown("+", after[j1:j2])
    first, last = group[0], group[-1]
    old, new = _range(first[1], last[2]), _range(first[3], last[4])
    return Hunk(index=index, header=f"@@ -{old} +{new} @@", lines=tuple(lines))


def _shown(sign: str, lines: list[bytes]) -> list[str]:
    shown = []
    for line in lines:
        shown.append(sign + line.removesuffix(b"\n").decode("utf-8", "backslashreplace"))
        if not line.endswith(b"\n"):
            shown.append(NO_LINE_END)
    return shown


def _range(start: int, end: int) -> str:
    """As diff does: a side without lines names the line before it."""
    return f"{start + 1 if end > start else start},{end - start}"
