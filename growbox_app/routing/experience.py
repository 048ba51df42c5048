"""How calls ended: a rolling log in the data folder, from which tools are ranked and calls are advised against.

Not memory: nothing of it is ever recalled into a prompt by itself (seed defect 17). Bounded (`RECORDS_MAX`), durable line by line,
forgettable in whole or in part. Only endings that say something about the call come in: no outage, no stop, no refusal – see
`lessons.py`. Event-loop thread; writing is a few hundred microseconds. A crash tears at most the last line, which is then left out.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec

from growbox_app.files import write_atomically
from memory.ports import Clock
from memory.text import content_terms

RECORDS_MAX = 2000
SLACK = 200
"""Lines that may stand in the file beyond that, so that it is not written whole for each."""
MATCHES_MAX = 200
WORDS_MAX = 5
FAILURE = -0.3
FADE_PER_HOUR = 0.01
"""This and the numbers above: seed item M17."""
HOUR_MS = 3_600_000


class Record(msgspec.Struct, frozen=True, kw_only=True):
    """How one call ended. `shape` is what is alike in calls of this kind (see `lessons.shape_of`), empty where nothing is.

    `words` are of the question, `why` is what the reader saw of a failure. `infeasible`: it cannot work here as things are.
    """

    at_ms: int
    tool: str
    ok: bool
    shape: str = ""
    project: str = ""
    conversation: str = ""
    words: tuple[str, ...] = ()
    infeasible: bool = False
    why: str = ""


class Experience:
    """The log of one data folder."""

    def __init__(self, data_path: Path, clock: Clock) -> None:
        self._path = data_path / "tool_experience.jsonl"
        self._clock = clock
        self._records: list[Record] | None = None

    @property
    def records(self) -> tuple[Record, ...]:
        """All, oldest first."""
        return tuple(self._all())

    def add(self, record: Record) -> None:
        """Keeps how a call ended; where the folder takes nothing, until the end of this run."""
        records = self._all()
        records.append(record)
        with contextlib.suppress(OSError):
            if len(records) > RECORDS_MAX + SLACK:
                del records[:-RECORDS_MAX]
                self._write(records)
            else:
                self._append(record)

    def forget(self, unwanted: Callable[[Record], bool]) -> int:
        """Takes records out; returns how many.

        Raises:
            OSError: the file still has them.
        """
        before = self._all()
        kept = [record for record in before if not unwanted(record)]
        if len(kept) < len(before):
            self._write(kept)
            self._records = kept
        return len(before) - len(kept)

    def score(self, tool: str, wish: str) -> float:
        """0..1: how well a tool did for wishes like this, lately."""
        asked = frozenset(content_terms(wish))
        now = self._clock.now_ms()
        values = []
        for record in reversed(self._all()):
            likeness = _jaccard(asked, record.words) if record.tool == tool else 0.0
            if likeness > 0.0:
                hours = max(now - record.at_ms, 0) / HOUR_MS
                worth = 1.0 if record.ok else FAILURE
                values.append(likeness * math.exp(-FADE_PER_HOUR * hours) * worth)
                if len(values) == MATCHES_MAX:
                    break
        return min(max(sum(values) / len(values), 0.0), 1.0) if values else 0.0

    # -- the file ---------------------------------------------------------------------------------
    def _all(self) -> list[Record]:
        if self._records is None:
            self._records = list(_read(self._path))[-RECORDS_MAX:]
        return self._records

    def _append(self, record: Record) -> None:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        # Begun on a new line: the one before may be torn.
        with self._path.open("ab") as stream:
            stream.write(b"\n" + msgspec.json.encode(record))

    def _write(self, records: Iterable[Record]) -> None:
        write_atomically(self._path, b"\n".join(msgspec.json.encode(record) for record in records))


def _jaccard(asked: frozenset[str], words: tuple[str, ...]) -> float:
    """The question's words against the few that are kept: a long question is not unlike for being long."""
    past = frozenset(words)
    if not asked or not past:
        return 0.0
    common = len(asked & past)
    return common / (min(len(asked), WORDS_MAX) + len(past) - min(common, WORDS_MAX))


def _read(path: Path) -> Iterable[Record]:
    try:
        content = path.read_bytes()
    except OSError:
        return
    for line in content.split(b"\n"):
        if line:
            with contextlib.suppress(msgspec.MsgspecError):
                yield msgspec.json.decode(line, type=Record)
