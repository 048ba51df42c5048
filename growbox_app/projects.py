"""What the user has decided about each project: its folders and their levels, its mode, how far its memory reaches.

One JSON file in the data folder, written whole; event-loop thread, the file is small. A file that cannot be read decides nothing:
every project is then as it was when it was added. A project that was removed is remembered as such, so that its folder, added again,
finds its conversations.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path

import msgspec

from growbox_app.executors.base import Workspace
from growbox_app.files import write_atomically
from growbox_app.safety.values import Mode
from memory.values import Project, ProjectId, Scope

FOLDERS_MAX = 20


class FolderLevel(StrEnum):
    """What the assistant may do in a folder. At most one folder of a project is writable: calls work in it, and checkpoints save it."""

    WRITABLE = "writable"
    READ_ONLY = "read_only"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectFolder:
    """A folder of a project. `is_main`: the one it was made from, which goes only with it."""

    path: Path
    level: FolderLevel
    is_main: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectRules:
    """The user's decisions about one project. `mode` None is what the settings say."""

    folders: tuple[ProjectFolder, ...]
    mode: Mode | None = None
    scope: Scope = Scope.ALL


class _Kept(msgspec.Struct, frozen=True, omit_defaults=True):
    """As it lies in the file. `writable` None: the main folder; empty: none. Paths as text."""

    others: tuple[str, ...] = ()
    writable: str | None = None
    mode: str = ""
    scope: str = Scope.ALL.value
    removed: bool = False


@dataclass(slots=True)
class ProjectBook:
    """The decisions of one data folder."""

    data_path: Path
    _kept: dict[str, _Kept] = field(default_factory=dict)

    def __post_init__(self) -> None:
        try:
            content = self._path.read_bytes()
            self._kept = msgspec.json.decode(content, type=dict[str, _Kept])
        except (OSError, msgspec.MsgspecError):
            self._kept = {}

    @property
    def _path(self) -> Path:
        return self.data_path / "projects.json"

    # --- reading

    def rules(self, project: Project) -> ProjectRules:
        """What holds in a project."""
        kept = self._of(project.id)
        writable = project.path if kept.writable is None else kept.writable
        return ProjectRules(
            folders=tuple(
                ProjectFolder(
                    path=Path(path),
                    level=FolderLevel.WRITABLE if path == writable else FolderLevel.READ_ONLY,
                    is_main=path == project.path,
                )
                for path in (project.path, *kept.others)
            ),
            mode=Mode(kept.mode) if kept.mode in set(Mode) else None,
            scope=Scope(kept.scope) if kept.scope in set(Scope) else Scope.ALL,
        )

    def is_removed(self, project_id: ProjectId) -> bool:
        """Whether the user has taken a project out of the list."""
        return self._of(project_id).removed

    def mode(self, project_id: ProjectId | None, default: Mode, workspace: Workspace) -> Mode:
        """What the assistant may do unasked. Where no folder is writable, nothing but reading.

        Args:
            project_id: the project, if there is one.
            default: what the settings say.
            workspace: as `workspace` has made it.
        """
        kept = self._of(project_id)
        if kept.writable is not None and str(workspace.root) != kept.writable:
            return Mode.READ_ONLY
        return Mode(kept.mode) if kept.mode in set(Mode) else default

    def scope(self, project_id: ProjectId | None) -> Scope:
        """How far recall reaches in a project."""
        scope = self._of(project_id).scope
        return Scope(scope) if scope in set(Scope) else Scope.ALL

    def workspace(self, project: Project) -> Workspace:
        """Where calls may act: the folders that are there, the writable one as root. Looks at the disk.

        Where none is writable, or the writable one is not there, the main folder is the root, and `mode` forbids to change it.
        """
        if self.is_removed(project.id):
            return Workspace()
        folders = [f for f in self.rules(project).folders if is_workspace(f.path)]
        writable = [f.path for f in folders if f.level is FolderLevel.WRITABLE]
        main = [f.path for f in folders if f.is_main]
        root = next(iter((*writable, *main)), None)
        readable = tuple(f.path for f in folders if f.path != root)
        return Workspace(root=root, readable=readable if root is not None else ())

    # --- changing; every method may raise OSError, and then nothing has changed

    def add_folder(self, project: Project, path: Path) -> None:
        """Another folder, to be read only. A known one stays as it is.

        Raises:
            ValueError: there are too many.
        """
        kept = self._of(project.id)
        text = str(path)
        if text == project.path or text in kept.others:
            return
        if len(kept.others) + 1 >= FOLDERS_MAX:
            raise ValueError(f"a project has at most {FOLDERS_MAX} folders")
        self._put(project.id, others=(*kept.others, text))

    def remove_folder(self, project: Project, path: Path) -> None:
        """Takes a folder out; the main one stays."""
        kept = self._of(project.id)
        others = tuple(other for other in kept.others if other != str(path))
        writable = None if kept.writable == str(path) else kept.writable
        self._put(project.id, others=others, writable=writable)

    def set_level(self, project: Project, path: Path, level: FolderLevel) -> None:
        """Makes a folder the writable one, or lets it be read only."""
        if level is FolderLevel.WRITABLE:
            self._put(project.id, writable=None if str(path) == project.path else str(path))
        elif any(
            f.path == path and f.level is FolderLevel.WRITABLE for f in self.rules(project).folders
        ):
            self._put(project.id, writable="")

    def set_mode(self, project_id: ProjectId, mode: Mode | None) -> None:
        """Another mode than the settings say; None: the same."""
        self._put(project_id, mode="" if mode is None else mode.value)

    def set_scope(self, project_id: ProjectId, scope: Scope) -> None:
        """How far recall reaches."""
        self._put(project_id, scope=scope.value)

    def remove(self, project_id: ProjectId) -> None:
        """Out of the list; what was decided about it is forgotten."""
        self._write({**self._kept, project_id: _Kept(removed=True)})

    def restore(self, project_id: ProjectId) -> None:
        """In the list again."""
        if self.is_removed(project_id):
            self._put(project_id, removed=False)

    def _of(self, project_id: ProjectId | None) -> _Kept:
        return self._kept.get(project_id or "", _Kept())

    def _put(self, project_id: ProjectId, **changes: object) -> None:
        changed = msgspec.structs.replace(self._of(project_id), **changes)
        self._write({**self._kept, project_id: changed})

    def _write(self, kept: dict[str, _Kept]) -> None:
        write_atomically(self._path, msgspec.json.encode(kept))
        self._kept = kept


def is_workspace(path: Path) -> bool:
    """Whether calls may act in a folder at all: it is there, and neither a whole disk nor the home."""
    return path.is_dir() and path.resolve() not in (Path(path.anchor), Path.home().resolve())


def shown_projects(projects: Iterable[Project], book: ProjectBook) -> tuple[Project, ...]:
    """Those that the user has not removed."""
    return tuple(project for project in projects if not book.is_removed(project.id))
