"""One ingest from paths to report: find, compare, read, keep, and let go of what is gone.

Event-loop thread; finding and reading happen elsewhere, storing in slices on the storage thread. What is kept is durable file by file:
an ingest that is cancelled or killed goes on where it stopped when it is asked for again, because a file whose stamp is known
is not read. Cancel by cancelling the task.
"""

from __future__ import annotations

import asyncio
import itertools
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePath
from typing import TYPE_CHECKING

from growbox_app.api import Progress, ProgressSink
from growbox_app.ingest.reader_process import ReaderProcess, ReadReply, ReadRequest
from growbox_app.ingest.reading import VERSION
from growbox_app.ingest.report import IngestReport, SkippedFile, SkipReason, Tally
from growbox_app.ingest.walk import Found, FoundFile, Ignored, WholeFolder, walk
from growbox_app.memory_service import MemoryService, Priority
from memory.ports import Clock
from memory.values import Cut, DocumentDraft, DocumentState, ProjectId

if TYPE_CHECKING:
    from memory.engine import MemoryEngine

FILES_PER_SLICE = 256
_NO_LONGER_TEXT = (SkipReason.BINARY, SkipReason.NO_TEXT)
PLACE_PARTS = 2
"""A passage's context begins with its file and the folder around it: enough to tell two of one name apart."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IngestParts:
    """What an ingest works with. `own_folders` are GrowBox's and are never read."""

    memory: MemoryService
    clock: Clock
    characters_max: int
    own_folders: tuple[Path, ...] = ()


class Ingestion:
    """One ingest. Run it once."""

    def __init__(
        self, parts: IngestParts, progress: ProgressSink, project_id: ProjectId | None
    ) -> None:
        self._parts = parts
        self._memory = parts.memory
        self._progress = progress
        self._project_id = project_id
        self._tally = Tally()
        self._reader = ReaderProcess()

    async def run(self, paths: Sequence[Path]) -> IngestReport:
        """Takes everything in that the paths lead to.

        Raises:
            MemoryEngineError: the memory cannot store; what was kept before stays.
        """
        try:
            files, folders = await self._find(paths)
            for start in range(0, len(files), FILES_PER_SLICE):
                part = files[start : start + FILES_PER_SLICE]
                known = await self._known([file.uri for file in part])
                for place, file in enumerate(part, start=start):
                    self._tell("ingest", place, len(files), file.path.name)
                    await self._take(file, known.get(file.uri))
            seen = {file.uri for file in files}
            for folder in folders:
                await self._let_go(folder.uri, seen)
            self._tell("ingest", len(files), len(files), "")
        finally:
            await self._reader.close()
        return self._tally.report()

    def _tell(self, step: str, done: int, total: int, detail: str) -> None:
        self._progress(Progress(step=step, done=done, total=total, detail=detail))

    # -- finding ------------------------------------------------------------------------------
    async def _find(self, paths: Sequence[Path]) -> tuple[list[FoundFile], list[WholeFolder]]:
        files: list[FoundFile] = []
        folders: list[WholeFolder] = []
        found = walk(paths, excluded=self._parts.own_folders)
        while batch := await asyncio.to_thread(_next, found):
            for item in batch:
                match item:
                    case FoundFile():
                        files.append(item)
                    case WholeFolder():
                        folders.append(item)
                    case Ignored():
                        self._tally.counts["ignored"] += 1
                    case SkippedFile():
                        self._tally.skip(item.path, item.reason)
            self._tell("ingest_finding", 0, 0, str(len(files)))
        return files, folders

    async def _known(self, uris: list[str]) -> dict[str, DocumentState]:
        return await self._memory.call(lambda engine: engine.documents(uris), Priority.BACKGROUND)

    # -- one file -----------------------------------------------------------------------------
    async def _take(self, file: FoundFile, known: DocumentState | None) -> None:
        stamp = f"{VERSION}:{file.size_bytes}:{file.changed_ns}"
        if known is not None and known.stamp == stamp:
            self._tally.counts["unchanged"] += 1
            return
        if not file.size_bytes:
            await self._emptied(file, known)
            return
        reply = await self._reader.read(
            ReadRequest(
                path=os.fsencode(file.path),
                place=_place(file.uri),
                known_hash=known.content_hash if known is not None else "",
                characters_max=self._parts.characters_max,
            )
        )
        if reply.reason is not None:
            self._tally.skip(file.uri, reply.reason)
            if known is not None and reply.reason in _NO_LONGER_TEXT:
                await self._retire(file.uri)
        elif known is not None and reply.content_hash == known.content_hash:
            self._tally.counts["unchanged"] += 1
            await self._memory.call(
                lambda engine: engine.restamp_document(file.uri, stamp), Priority.BACKGROUND
            )
        else:
            await self._keep(file, stamp, reply)
            self._tally.counts["added" if known is None else "changed"] += 1

    async def _emptied(self, file: FoundFile, known: DocumentState | None) -> None:
        """An empty file is nothing to keep; what it said before it was emptied is no longer so."""
        if known is None:
            self._tally.counts["ignored"] += 1
        else:
            await self._retire(file.uri)

    async def _keep(self, file: FoundFile, stamp: str, reply: ReadReply) -> None:
        changed_ms = file.changed_ns // 1_000_000
        draft = DocumentDraft(
            uri=file.uri,
            stamp=stamp,
            content_hash=reply.content_hash,
            text=reply.text,
            cuts=tuple(Cut(end=end, context=context) for end, context in reply.cuts),
            project_id=self._project_id,
            created_at_ms=max(0, min(changed_ms, self._parts.clock.now_ms())),
        )
        change = await self._memory.drive(
            lambda engine: engine.keep_document(draft), Priority.BACKGROUND
        )
        self._tally.counts["passages_added"] += change.added
        self._tally.counts["passages_kept"] += change.kept
        self._tally.counts["passages_retired"] += change.retired

    # -- what is gone -------------------------------------------------------------------------
    async def _let_go(self, folder: str, seen: set[str]) -> None:
        """Documents of a folder whose file is no more. One that is only ignored or unreadable now stays."""
        prefix, after = folder.rstrip(os.sep) + os.sep, ""
        while known := await self._memory.call(_under(prefix, after), Priority.BACKGROUND):
            after = known[-1].uri
            unseen = [state.uri for state in known if state.uri not in seen]
            for uri in await asyncio.to_thread(_missing, unseen):
                await self._retire(uri)

    async def _retire(self, uri: str) -> None:
        retired = await self._memory.drive(
            lambda engine: engine.retire_document(uri), Priority.BACKGROUND
        )
        self._tally.counts["removed"] += 1
        self._tally.counts["passages_retired"] += retired


def _next(found: Iterator[Found]) -> list[Found]:
    return list(itertools.islice(found, FILES_PER_SLICE))


def _under(prefix: str, after: str) -> Callable[[MemoryEngine], tuple[DocumentState, ...]]:
    return lambda engine: engine.documents_under(prefix, after=after)


def _missing(uris: Sequence[str]) -> list[str]:
    return [uri for uri in uris if not os.path.lexists(uri)]


def _place(uri: str) -> str:
    """A file and the folder around it."""
    return "/".join(part.strip("/\\") for part in PurePath(uri).parts[-PLACE_PARTS:]).lstrip("/")
