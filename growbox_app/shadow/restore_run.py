"""Carrying out a restore: what the user decided, the writing, the report. Blocking; can be run again after a crash."""

from __future__ import annotations

import dataclasses
import logging
from collections.abc import Collection, Sequence
from pathlib import Path

from growbox_app.shadow.folder import ProjectFolder
from growbox_app.shadow.restoring import Change, Fate
from growbox_app.shadow.store import ShadowStore
from growbox_app.shadow.values import ABSENT, FOLDER_MODE, RestoreReport

_LOG = logging.getLogger(__name__)


def chosen(
    changes: Sequence[Change], folder: ProjectFolder, *, force: bool, also: Collection[Path]
) -> list[Change]:
    """The changes, with what the user decided about conflicts (`force`) and other people's files (`also`)."""
    decided = []
    for change in changes:
        wanted = (change.fate is Fate.CONFLICT and force) or (
            change.fate is Fate.KEEP and folder.absolute(change.path) in also
        )
        if wanted and change.then.is_saved:
            fate = Fate.REMOVE if change.then == ABSENT else Fate.RESTORE
            decided.append(dataclasses.replace(change, fate=fate))
        else:
            decided.append(change)
    return decided


def carry_out(
    store: ShadowStore, folder: ProjectFolder, changes: Sequence[Change]
) -> frozenset[bytes]:
    """Removes (the deepest first), then writes; returns the paths where that was not possible."""
    removed = [change for change in changes if change.fate is Fate.REMOVE]
    removed.sort(key=lambda change: change.path.count(b"/"), reverse=True)
    written = [change for change in changes if change.fate is Fate.RESTORE]
    return frozenset(
        change.path for change in (*removed, *written) if not _is_done(store, folder, change)
    )


def _is_done(store: ShadowStore, folder: ProjectFolder, change: Change) -> bool:
    if _has_moved_on(folder, change):
        _LOG.warning("a file changed while it was being restored; it is left alone")
        return False
    try:
        if change.fate is Fate.REMOVE:
            folder.remove(change.path)
        else:
            is_folder = change.then.mode == FOLDER_MODE
            content = b"" if is_folder else store.content(change.then.sha)
            folder.write(change.path, change.then, content)
    except OSError as error:
        _LOG.warning("a file could not be restored: %s", type(error).__name__)
        return False
    return True


def _has_moved_on(folder: ProjectFolder, change: Change) -> bool:
    """Whether a file is no longer what was just saved of it."""
    if FOLDER_MODE in (change.now.mode, change.then.mode) or not change.now.is_saved:
        return False
    return folder.now(change.path) != change.now


def report(
    folder: ProjectFolder,
    changes: Sequence[Change],
    *,
    undo_id: str | None = None,
    failed: frozenset[bytes] = frozenset(),
) -> RestoreReport:
    """What a restore did; without `undo_id`, what keeps it from being done."""

    def of(fate: Fate, *, files_only: bool = False) -> tuple[Path, ...]:
        found = [change for change in changes if change.fate is fate and change.path not in failed]
        if files_only:
            found = [change for change in found if change.now.mode != FOLDER_MODE]
        return tuple(folder.absolute(change.path) for change in found)

    is_done = undo_id is not None
    return RestoreReport(
        is_done=is_done,
        undo_id=undo_id,
        restored=of(Fate.RESTORE) if is_done else (),
        removed=of(Fate.REMOVE, files_only=True) if is_done else (),
        conflicts=of(Fate.CONFLICT),
        kept=of(Fate.KEEP),
        not_saved=of(Fate.NOT_SAVED),
        failed=tuple(folder.absolute(path) for path in sorted(failed)),
    )
