"""All stores of one data folder, opened in order and closed in reverse.

Order: process lock, timeline (truth), pointer store, vector index. Owns no logic; the parts of the engine share this value.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from memory.config import MemoryConfig, VectorConfig
from memory.events import EventSink, StoreTrouble
from memory.ports import Clock
from memory.storage.database import Database, translated_os
from memory.storage.documents import DocumentStore
from memory.storage.experiences import ExperienceStore
from memory.storage.learning_log import LearningLog
from memory.storage.lexical import LexicalIndex
from memory.storage.pointer_store import PointerStore
from memory.storage.process_lock import ProcessLock
from memory.storage.regions import RegionStore
from memory.storage.schema import migrate, refuse_newer
from memory.storage.timeline import Timeline
from memory.storage.vector_folder import prepare, vector_folder
from memory.storage.vector_index import VectorIndex
from memory.storage.vectors import LinearScan, VectorStore
from memory.values import EmbedderEpoch


@dataclass(frozen=True, slots=True, kw_only=True)
class Stores:
    """Open stores of a data folder, and what they were opened with."""

    path: Path
    config: MemoryConfig
    clock: Clock
    sink: EventSink
    lock: ProcessLock
    database: Database
    timeline: Timeline
    documents: DocumentStore
    lexical: LexicalIndex
    vectors: VectorStore
    scan: LinearScan
    log: LearningLog
    experiences: ExperienceStore
    pointers: PointerStore
    index: VectorIndex
    regions: RegionStore

    @property
    def epoch(self) -> EmbedderEpoch:
        """The embedder whose vectors are in use."""
        return self.vectors.epoch

    def close(self) -> None:
        """Idempotent; the lock goes last."""
        self.index.close()
        self.pointers.close()
        self.database.close()
        self.lock.release()


def open_stores(
    path: Path, *, config: MemoryConfig, clock: Clock, sink: EventSink, embedder: EmbedderEpoch
) -> Stores:
    """Opens everything; on any error what was opened is closed again.

    Raises:
        DataFolderLocked, DataTooNew, CorruptStore, StorageError.
    """
    try:
        path.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise translated_os(error, path) from error
    lock = ProcessLock(path / "lock")
    database: Database | None = None
    try:
        refuse_newer(path / "timeline.db")
        database = Database(path / "timeline.db", config.storage)
        migrate(database, backups_max=config.storage.backups_max)
        return _assemble(
            path, lock, database, config=config, clock=clock, sink=sink, embedder=embedder
        )
    except BaseException:
        if database is not None:
            database.close()
        lock.release()
        raise


def _index(
    path: Path, vectors: VectorStore, config: VectorConfig, *, clock: Clock, sink: EventSink
) -> VectorIndex:
    """The index in its place. Where that cannot be kept from other users there is none: the exact scan answers."""
    folder = vector_folder(path.absolute())
    if not prepare(folder, path.absolute()):
        config = replace(config, host=False)
        sink.emit(StoreTrouble(store="vectors", problem=f"{folder} cannot be made private"))
    return VectorIndex(folder, vectors, config, clock=clock, sink=sink)


def _assemble(  # noqa: PLR0913 - the composition root of storage takes what it wires
    path: Path,
    lock: ProcessLock,
    database: Database,
    *,
    config: MemoryConfig,
    clock: Clock,
    sink: EventSink,
    embedder: EmbedderEpoch,
) -> Stores:
    timeline = Timeline(database, clock)
    vectors = VectorStore(database, embedder)
    log = LearningLog(database, vectors, config.learning, clock)
    return Stores(
        path=path,
        config=config,
        clock=clock,
        sink=sink,
        lock=lock,
        database=database,
        timeline=timeline,
        documents=DocumentStore(database),
        lexical=LexicalIndex(database, timeline, config.storage),
        vectors=vectors,
        scan=LinearScan(vectors, timeline, config.vectors),
        log=log,
        experiences=ExperienceStore(database, clock),
        pointers=PointerStore(path / "pointers", log, config.learning),
        index=_index(path, vectors, config.vectors, clock=clock, sink=sink),
        regions=RegionStore(database),
    )
