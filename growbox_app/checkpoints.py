"""Checkpoints: the state of a project's files before each call that changes something, and the way back to it.

Owns `checkpoints/` in the data folder: one shadow repository per project (`growbox_app.shadow`). The user's project gains no file, and
its repository – objects, index, hooks, configuration, commits – is neither read nor written; a commit that the agent made stays.
Invariants: a checkpoint exists whole or not at all; a restore takes one first, so that it can be undone, and overwrites nothing that
somebody else changed unless told to; it can be run again after a crash. The file work runs in threads, one call at a time;
a cancelled call still finishes there.

How to use it: `recover` at start, `take` before a call, `finish` after it (also when it failed). A call that never finished owns every
difference up to the next checkpoint.
"""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Collection
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from growbox_app.executors.base import FileChange
from growbox_app.shadow.values import (
    UNFINISHED,
    Checkpoint,
    CheckpointLimits,
    CheckpointTrouble,
    RestoreReport,
)
from memory.ports import Clock

if TYPE_CHECKING:
    from growbox_app.shadow.archive import Archive

_LOG = logging.getLogger(__name__)
_FOLDER = "checkpoints"
_Result = TypeVar("_Result")


class Checkpoints:
    """All checkpoints of a data folder. One object per data folder; call from the event loop."""

    def __init__(
        self, data_path: Path, clock: Clock, limits: CheckpointLimits | None = None
    ) -> None:
        self._data_path = data_path
        self._base = data_path / _FOLDER
        self._clock = clock
        self._limits = limits or CheckpointLimits()
        self._archive: Archive | None = None
        self._lock = threading.Lock()

    async def take(
        self,
        project_root: Path,
        label: str,
        answer_id: str,
        *,
        paths: Collection[Path] | None = None,
    ) -> Checkpoint:
        """Saves the project's files as they are.

        Args:
            project_root: the project's folder.
            label: what the call is, for the list.
            answer_id: the turn it belongs to.
            paths: what the call itself will change; saved also when ignored, and up to a larger size.

        Raises:
            CheckpointTrouble: it could not be saved; the call should not run.
        """
        return await self._in_thread(
            lambda archive: archive.take(project_root, label, answer_id, tuple(paths or ()))
        )

    async def finish(self, checkpoint_id: str) -> None:
        """Says that the call has ended: what is different now is its doing. Again for a task that went on in the background.

        Trouble is logged, not raised: the call has run, and one that never finished is treated as if all was its doing.
        """
        try:
            await self._in_thread(lambda archive: archive.finish(checkpoint_id))
        except CheckpointTrouble:
            _LOG.exception("the end of a call could not be saved")

    async def recover(self) -> None:
        """Finishes the calls that a crash cut off; before the user's own changes can be taken for the agent's."""
        if await asyncio.to_thread(self._is_unfinished):
            await self._in_thread(lambda archive: archive.recover())

    def _is_unfinished(self) -> bool:
        return any(True for _ in self._base.glob(f"*/{UNFINISHED}"))

    async def list(self, project_root: Path) -> tuple[Checkpoint, ...]:
        """A project's checkpoints, newest first."""
        return await self._in_thread(lambda archive: archive.list(project_root))

    async def restore(
        self,
        checkpoint_id: str,
        *,
        force: bool = False,
        also: Collection[Path] = (),
    ) -> RestoreReport:
        """Brings the files back to what they were before a call, and with it undoes what the agent did after.

        Args:
            checkpoint_id: the call.
            force: overwrite files that somebody else changed as well. Without it such a conflict leaves everything as it is.
            also: files that only somebody else changed, to be brought back too.

        Raises:
            CheckpointTrouble: there is no such checkpoint, or it is damaged.
        """
        return await self._in_thread(
            lambda archive: archive.restore(checkpoint_id, force=force, also=frozenset(also))
        )

    async def restore_turn(
        self, answer_id: str, *, force: bool = False, also: Collection[Path] = ()
    ) -> RestoreReport:
        """Brings the files back to what they were before the first change of a turn.

        Raises:
            CheckpointTrouble: the turn changed nothing that is still known.
        """

        def work(archive: Archive) -> RestoreReport:
            first = archive.first_of(answer_id)
            return archive.restore(first, force=force, also=frozenset(also))

        return await self._in_thread(work)

    async def forget(self, answer_ids: Collection[str]) -> None:
        """Drops the checkpoints of turns that are forgotten, with what only they held.

        Raises:
            CheckpointTrouble: a repository is damaged.
        """
        if self._base.is_dir():
            await self._in_thread(lambda archive: archive.forget(answer_ids))

    async def diff(self, checkpoint_id: str) -> tuple[FileChange, ...]:
        """What the call changed: the first 200 files of up to 1 MB whose content is known.

        Raises:
            CheckpointTrouble: there is no such checkpoint, or it is damaged.
        """
        return await self._in_thread(lambda archive: archive.diff(checkpoint_id))

    async def undone(self, checkpoint_ids: Collection[str]) -> frozenset[str]:
        """Those of some checkpoints, of calls and of restores, that are undone now. Trouble is logged: then none is known to be."""
        try:
            return await self._in_thread(lambda archive: archive.undone(checkpoint_ids))
        except CheckpointTrouble:
            _LOG.exception("what is undone cannot be told")
            return frozenset()

    async def root_of(self, checkpoint_id: str) -> Path:
        """The folder of the project that a checkpoint belongs to.

        Raises:
            CheckpointTrouble: there is no such checkpoint, or it is damaged.
        """
        return await self._in_thread(lambda archive: archive.root_of(checkpoint_id))

    async def _in_thread(self, work: Callable[[Archive], _Result]) -> _Result:
        def locked() -> _Result:
            with self._lock:
                try:
                    return work(self._opened())
                except OSError as error:
                    raise CheckpointTrouble(str(error)) from error

        return await asyncio.to_thread(locked)

    def _opened(self) -> Archive:
        """Under the lock. The import is a fifth of a second, which neither the window nor its thread need wait for."""
        if self._archive is None:
            from growbox_app.shadow.archive import Archive

            self._archive = Archive(self._base, self._clock, self._limits, excluded=self._data_path)
        return self._archive
