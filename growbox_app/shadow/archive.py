"""All shadow repositories of a data folder, and what is done with them: take, finish, restore, look, keep within bounds. Blocking.

One thread at a time; `growbox_app.checkpoints` sees to that, and imports this module only when there is something to do, because dulwich
takes its time. Beside each repository's references lies the mark `unfinished`, from before a checkpoint is written until its call has
ended: a start looks for these marks and for nothing else. A mark that is lost costs nothing but that the next `take` finishes the call.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import logging
import os
import shutil
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path

from growbox_app.executors.base import FileChange
from growbox_app.shadow.folder import ProjectFolder
from growbox_app.shadow.restore_run import carry_out, chosen, report
from growbox_app.shadow.restoring import Fate, Step, judge
from growbox_app.shadow.store import Record, ShadowStore
from growbox_app.shadow.undoing import undone
from growbox_app.shadow.values import (
    ABSENT,
    FOLDER_MODE,
    UNFINISHED,
    Checkpoint,
    CheckpointKind,
    CheckpointLimits,
    CheckpointTrouble,
    RestoreReport,
    Skipped,
    SkipReason,
    Snapshot,
)
from memory.ports import Clock

_LOG = logging.getLogger(__name__)
_DAY_MS = 86_400_000
_PRUNE_EVERY = 20
DIFF_FILES_MAX = 200
DIFF_BYTES_MAX = 1_000_000


@dataclasses.dataclass(slots=True)
class _Project:
    """A project whose repository was opened in this run."""

    key: str
    folder: ProjectFolder
    taken: int = 0


class Archive:
    """The repositories in one folder. `excluded` is never saved: GrowBox's own data."""

    def __init__(
        self, base: Path, clock: Clock, limits: CheckpointLimits, *, excluded: Path
    ) -> None:
        self._base = base
        self._clock = clock
        self._limits = limits
        self._excluded = excluded
        self._projects: dict[str, _Project] = {}

    # --- taking

    def take(self, root: Path, label: str, answer_id: str, paths: Sequence[Path]) -> Checkpoint:
        """Saves a project's files as they are. Damaged checkpoints are set aside first."""
        project = self._project(root)
        try:
            taken = self._take_in(project, label, answer_id, paths)
        except CheckpointTrouble:
            _LOG.exception("the checkpoints of a project are damaged; they are set aside")
            self._set_aside(project)
            taken = self._take_in(project, label, answer_id, paths)
        outside = tuple(
            Skipped(path=path, reason=SkipReason.OUTSIDE)
            for path in paths
            if project.folder.relative(path) is None
        )
        return _with_skipped(taken, outside)

    def _take_in(
        self, project: _Project, label: str, answer_id: str, paths: Sequence[Path]
    ) -> Checkpoint:
        folder = project.folder
        named = {key for path in paths if (key := folder.relative(path)) is not None}
        with self._open(project) as store:
            newest = _newest(store)
            if newest is not None and not newest.is_finished:
                self._finish_in(store, folder, newest.number)
            snapshot = folder.read(store.keep, named=named)
            record = self._new_record(store, folder.root, label, answer_id)
            _put(store, record, snapshot)
            project.taken += 1
            if project.taken % _PRUNE_EVERY == 1:
                self._prune(store, folder)
            return _checkpoint_of(project.key, record, folder, snapshot.skipped)

    def _new_record(
        self,
        store: ShadowStore,
        root: Path,
        label: str,
        answer_id: str,
        *,
        kind: CheckpointKind = CheckpointKind.CALL,
    ) -> Record:
        numbers = store.numbers()
        now = self._clock.now_ms()
        return Record(
            number=max(now, numbers[-1] + 1 if numbers else 0),
            root=os.fsencode(root).hex(),
            created_at_ms=now,
            label=label,
            answer_id=answer_id,
            kind=kind,
        )

    def finish(self, checkpoint_id: str) -> None:
        """Writes what a call left, as long as its checkpoint is the newest."""
        project, number = self._find(checkpoint_id)
        with self._open(project) as store:
            if store.numbers()[-1:] == [number]:
                self._finish_in(store, project.folder, number)

    def _finish_in(
        self,
        store: ShadowStore,
        folder: ProjectFolder,
        number: int,
        *,
        restores: int | None = None,
    ) -> None:
        """Files that were saved before are looked at whatever the rules say now."""
        before, _ = store.snapshots(number)
        after = folder.read(store.keep, watched=before.watched)
        store.put_after(number, after, restores=restores)
        (store.path / UNFINISHED).unlink(missing_ok=True)

    def recover(self) -> None:
        """Finishes the calls that a crash cut off, in every project whose folder is there."""
        for path in self._repositories():
            if not (path / UNFINISHED).exists():
                continue
            try:
                self._recover(path)
            except (
                CheckpointTrouble,
                OSError,
            ):  # one damaged repository is not the others' trouble
                _LOG.exception("a call that was cut off could not be finished")

    def _recover(self, path: Path) -> None:
        with _opened(path) as store:
            newest = _newest(store)
        root = Path(os.fsdecode(bytes.fromhex(newest.root))) if newest is not None else None
        if newest is None or root is None or newest.is_finished:
            (path / UNFINISHED).unlink(missing_ok=True)
        elif root.is_dir():  # a folder that is not there now was not emptied by the call
            with self._open(self._project(root)) as store:
                self._finish_in(store, self._project(root).folder, newest.number)

    # --- restoring

    def restore(self, checkpoint_id: str, *, force: bool, also: frozenset[Path]) -> RestoreReport:
        """Brings the files back to what they were before a call."""
        project, number = self._find(checkpoint_id)
        folder = project.folder
        with self._open(project) as store:
            newest = _newest(store)
            if newest is not None and not newest.is_finished:
                self._finish_in(store, folder, newest.number)
            watched: set[bytes] = set()
            for step in _steps_since(store, number):
                watched |= step.before.watched | step.after.watched
            current = folder.read(store.keep, watched=watched)
            changes = chosen(
                judge(_steps_since(store, number), current), folder, force=force, also=also
            )
            if any(change.fate is Fate.CONFLICT for change in changes):
                return report(folder, changes)
            label = store.record(number).label
            record = self._new_record(store, folder.root, label, "", kind=CheckpointKind.RESTORE)
            _put(store, record, current)
            failed = carry_out(store, folder, changes)
            self._finish_in(store, folder, record.number, restores=number)
            undo_id = f"{project.key}-{record.number}"
            return report(folder, changes, undo_id=undo_id, failed=failed)

    def first_of(self, answer_id: str) -> str:
        """The first checkpoint of a turn.

        Raises:
            CheckpointTrouble: there is none.
        """
        for path in self._repositories():
            with _opened(path) as store:
                for number in store.numbers():
                    record = store.record(number)
                    if record.answer_id == answer_id and record.kind is CheckpointKind.CALL:
                        return f"{path.name}-{number}"
        raise CheckpointTrouble(f"no checkpoint of {answer_id}")

    def forget(self, answer_ids: Collection[str]) -> None:
        """Drops the checkpoints of some turns, with what only they held, and the damaged repositories that were set aside."""
        for aside in self._base.glob("*.broken-*"):
            shutil.rmtree(aside, ignore_errors=True)
        for path in self._repositories():
            with _opened(path) as store:
                gone = [n for n in store.numbers() if store.record(n).answer_id in answer_ids]
                if gone:
                    store.drop(gone)
                    store.collect()
                    if path.name in self._projects:
                        self._projects[path.name].folder.forget()

    # --- looking

    def undone(self, checkpoint_ids: Collection[str]) -> frozenset[str]:
        """Those of some checkpoints that are undone now."""
        keys = {checkpoint_id.partition("-")[0] for checkpoint_id in checkpoint_ids}
        found: set[str] = set()
        for path in (path for path in self._repositories() if path.name in keys):
            with _opened(path) as store:
                gone = undone(store.record(number) for number in store.numbers())
            found |= {f"{path.name}-{number}" for number in gone}
        return frozenset(checkpoint_ids) & found

    def list(self, root: Path) -> tuple[Checkpoint, ...]:
        """A project's checkpoints, newest first."""
        project = self._project(root)
        if not self._path_of(project.key).is_dir():
            return ()
        with self._open(project) as store:
            return tuple(
                _checkpoint_of(
                    project.key, store.record(number), project.folder, store.skipped(number)
                )
                for number in reversed(store.numbers())
            )

    def root_of(self, checkpoint_id: str) -> Path:
        """The folder of the project that a checkpoint belongs to."""
        return self._find(checkpoint_id)[0].folder.root

    def diff(self, checkpoint_id: str) -> tuple[FileChange, ...]:
        """What a call changed."""
        project, number = self._find(checkpoint_id)
        with self._open(project) as store:
            before, after = store.snapshots(number)
            if after is None:
                after = project.folder.read(store.keep, watched=before.watched)
            paths = sorted(before.entries.keys() | after.entries.keys())
            found = (_change_of(store, project.folder, path, before, after) for path in paths)
            shown = [change for change in found if change is not None]
            return tuple(shown[:DIFF_FILES_MAX])

    # --- repositories

    def _project(self, root: Path) -> _Project:
        root = Path(os.path.realpath(root))
        key = hashlib.blake2b(os.fsencode(root), digest_size=8).hexdigest()
        if key not in self._projects:
            folder = ProjectFolder(
                root, self._clock, limits=self._limits, excluded=(self._excluded,)
            )
            self._projects[key] = _Project(key, folder)
            if self._path_of(key).is_dir():
                ShadowStore.sweep(self._path_of(key))
        return self._projects[key]

    def _repositories(self) -> Iterator[Path]:
        """All that are in use; what was set aside has a suffix."""
        found = sorted(self._base.iterdir()) if self._base.is_dir() else []
        yield from (path for path in found if path.is_dir() and not path.suffix)

    def _path_of(self, key: str) -> Path:
        return self._base / key

    def _find(self, checkpoint_id: str) -> tuple[_Project, int]:
        key, _, number = checkpoint_id.partition("-")
        path = self._path_of(key)
        if not (key.isalnum() and number.isdecimal() and path.is_dir()):
            raise CheckpointTrouble(f"there is no checkpoint {checkpoint_id}")
        if key not in self._projects:
            with _opened(path) as store:
                root = os.fsdecode(bytes.fromhex(store.record(int(number)).root))
            self._project(Path(root))
        if key not in self._projects:
            raise CheckpointTrouble("the project's folder has moved")
        return self._projects[key], int(number)

    @contextlib.contextmanager
    def _open(self, project: _Project) -> Iterator[ShadowStore]:
        path = self._path_of(project.key)
        if not (path / "HEAD").is_file():
            project.folder.forget()
            ShadowStore.create(path)
        with _opened(path) as store:
            try:
                yield store
                store.flush()
            except BaseException:
                project.folder.forget()  # what it read may not have been written
                raise

    def _set_aside(self, project: _Project) -> None:
        path = self._path_of(project.key)
        path.rename(path.with_suffix(f".broken-{self._clock.now_ms()}"))
        project.folder.forget()

    def _prune(self, store: ShadowStore, folder: ProjectFolder) -> None:
        """Keeps within the bounds; the newest checkpoint always stays."""
        numbers = store.numbers()
        oldest_ms = self._clock.now_ms() - self._limits.kept_days * _DAY_MS
        kept = numbers[-self._limits.kept :]
        kept = [n for n in kept if n >= oldest_ms] or numbers[-1:]
        dropped = numbers[: len(numbers) - len(kept)]
        while store.size_bytes() > self._limits.store_bytes or dropped:
            if not dropped:
                dropped, kept = kept[: len(kept) // 2], kept[len(kept) // 2 :]
                if not dropped:
                    return
            store.drop(dropped)
            dropped = []
            store.collect()
            folder.forget()


@contextlib.contextmanager
def _opened(path: Path) -> Iterator[ShadowStore]:
    store = ShadowStore(path)
    try:
        yield store
    finally:
        store.close()


def _put(store: ShadowStore, record: Record, before: Snapshot) -> None:
    """Writes a checkpoint, and first the mark that its call has not ended."""
    (store.path / UNFINISHED).touch()
    store.put(record, before)


def _newest(store: ShadowStore) -> Record | None:
    numbers = store.numbers()
    return store.record(numbers[-1]) if numbers else None


def _steps_since(store: ShadowStore, number: int) -> Iterator[Step]:
    numbers = store.numbers()
    if number not in numbers:
        raise CheckpointTrouble(f"there is no checkpoint {number}")
    for later in numbers[numbers.index(number) :]:
        before, after = store.snapshots(later)
        if after is not None:
            yield Step(before=before, after=after)


def _checkpoint_of(
    key: str, record: Record, folder: ProjectFolder, skipped: Mapping[bytes, SkipReason]
) -> Checkpoint:
    return Checkpoint(
        id=f"{key}-{record.number}",
        root=folder.root,
        created_at_ms=record.created_at_ms,
        label=record.label,
        answer_id=record.answer_id,
        kind=record.kind,
        is_finished=record.is_finished,
        skipped=tuple(
            Skipped(path=folder.absolute(path), reason=reason) for path, reason in skipped.items()
        ),
    )


def _with_skipped(checkpoint: Checkpoint, more: tuple[Skipped, ...]) -> Checkpoint:
    return dataclasses.replace(checkpoint, skipped=(*checkpoint.skipped, *more))


def _change_of(
    store: ShadowStore, folder: ProjectFolder, path: bytes, before: Snapshot, after: Snapshot
) -> FileChange | None:
    """None when nothing changed, or when a content is unknown or too large to show."""
    old, new = before.state(path), after.state(path)
    if old is None or new is None or old == new:
        return None
    if not (old.is_saved and new.is_saved) or FOLDER_MODE in (old.mode, new.mode):
        return None
    contents = [None if entry == ABSENT else store.content(entry.sha) for entry in (old, new)]
    if any(content is not None and len(content) > DIFF_BYTES_MAX for content in contents):
        return None
    return FileChange(path=folder.absolute(path), before=contents[0], after=contents[1])
