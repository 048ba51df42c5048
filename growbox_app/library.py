"""Projects and conversations as things one keeps: implements `growbox_app.library_face.LibraryFace`.

Joins the memory, the two small files about projects (`projects.json`, `grants.json`) and forgetting. Event-loop thread; disks are looked
at beside it.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from growbox_app.api import Problem, ProblemCode, ProblemError
from growbox_app.executors.base import Workspace
from growbox_app.export import file_names, markdown_of
from growbox_app.files import write_atomically
from growbox_app.forgetting import Forgetter
from growbox_app.grants import GrantBook
from growbox_app.library_face import Forgetting, ProjectView, SearchHit
from growbox_app.memory_service import MemoryService
from growbox_app.problems import guarded
from growbox_app.projects import (
    FOLDERS_MAX,
    FolderLevel,
    ProjectBook,
    is_workspace,
    shown_projects,
)
from growbox_app.safety.values import Grant, Mode
from memory.text import title
from memory.values import (
    Conversation,
    ConversationId,
    ForgetPreview,
    Node,
    Project,
    ProjectHoldings,
    ProjectId,
    Scope,
)

EXCERPT_CHARACTERS = 160
"""Shown of a message that a search has found."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LibraryParts:
    """What the library works with. `default_mode` is what the settings say; `changed` is called when lists are to be read anew."""

    memory: MemoryService
    book: ProjectBook
    grants: GrantBook
    forgetter: Forgetter
    data_path: Path
    default_mode: Callable[[], Mode]
    changed: Callable[[], None]


class Library:
    """The library of one data folder."""

    def __init__(self, parts: LibraryParts) -> None:
        self._parts, self._memory = parts, parts.memory
        self._book, self._grants, self._forgetter = parts.book, parts.grants, parts.forgetter

    # -- for the application ----------------------------------------------------------------------
    async def resume(self) -> None:
        """Goes on with what is to be forgotten."""
        await self._forgetter.resume()

    async def workspace(self, project_id: ProjectId | None) -> Workspace:
        """Where calls of a project may act."""
        found = next((p for p in await self._all() if p.id == project_id), None)
        if found is None:
            return Workspace()
        return await asyncio.to_thread(self._book.workspace, found)

    def mode(self, project_id: ProjectId | None, workspace: Workspace) -> Mode:
        """What the assistant may do there unasked."""
        return self._book.mode(project_id, self._parts.default_mode(), workspace)

    def scope(self, project_id: ProjectId | None) -> Scope:
        """How far recall reaches there."""
        return self._book.scope(project_id)

    # -- projects -----------------------------------------------------------------------------------
    async def projects(self) -> tuple[Project, ...]:
        """See `LibraryFace.projects`."""
        return shown_projects(await self._all(), self._book)

    async def open_project(self, path: Path) -> Project:
        """See `LibraryFace.open_project`."""
        real = await _folder(path)
        name = real.name or str(real)
        project = await self._memory.for_face(lambda engine: engine.open_project(str(real), name))
        await self._kept(lambda: self._book.restore(project.id))
        return project

    async def project(self, project_id: ProjectId) -> ProjectView:
        """See `LibraryFace.project`."""
        project = await self._project(project_id)
        rules = self._book.rules(project)
        holdings: ProjectHoldings = await self._memory.for_face(
            lambda engine: engine.holdings(project_id)
        )
        folders = [folder.path for folder in rules.folders]
        missing = await asyncio.to_thread(
            lambda: frozenset(path for path in folders if not path.is_dir())
        )
        return ProjectView(
            project=project,
            rules=rules,
            default_mode=self._parts.default_mode(),
            grants=self._grants.listed(project_id),
            holdings=holdings,
            missing=missing,
        )

    async def add_folder(self, project_id: ProjectId, path: Path) -> None:
        """See `LibraryFace.add_folder`."""
        project, real = await self._project(project_id), await _folder(path)
        if not await asyncio.to_thread(is_workspace, real):
            fields = {"path": str(real)}
            raise ProblemError(Problem(code=ProblemCode.FOLDER_TOO_WIDE, fields=fields))
        try:
            await self._kept(lambda: self._book.add_folder(project, real))
        except ValueError as error:
            fields = {"count": str(FOLDERS_MAX)}
            raise ProblemError(Problem(code=ProblemCode.TOO_MANY_FOLDERS, fields=fields)) from error

    async def remove_folder(self, project_id: ProjectId, path: Path) -> None:
        """See `LibraryFace.remove_folder`."""
        project = await self._project(project_id)
        await self._kept(lambda: self._book.remove_folder(project, path))

    async def set_level(self, project_id: ProjectId, path: Path, level: FolderLevel) -> None:
        """See `LibraryFace.set_level`."""
        project = await self._project(project_id)
        await self._kept(lambda: self._book.set_level(project, path, level))

    async def set_mode(self, project_id: ProjectId, mode: Mode | None) -> None:
        """See `LibraryFace.set_mode`."""
        await self._kept(lambda: self._book.set_mode(project_id, mode))

    async def set_scope(self, project_id: ProjectId, scope: Scope) -> None:
        """See `LibraryFace.set_scope`."""
        await self._kept(lambda: self._book.set_scope(project_id, scope))

    async def revoke(self, project_id: ProjectId, grant: Grant | None) -> None:
        """See `LibraryFace.revoke`."""
        if grant is None:
            await self._kept(lambda: self._grants.withdraw(project_id))
        else:
            await self._kept(lambda: self._grants.revoke(project_id, grant))

    async def remove_project(self, project_id: ProjectId) -> None:
        """See `LibraryFace.remove_project`."""
        await self._kept(lambda: self._grants.withdraw(project_id))
        await self._kept(lambda: self._book.remove(project_id))

    async def _kept(self, change: Callable[[], None]) -> None:
        """Changes one of the small files."""
        try:
            await asyncio.to_thread(change)
        except OSError as error:
            fields = {"path": str(self._parts.data_path)}
            raise ProblemError(
                Problem(code=ProblemCode.DATA_UNWRITABLE, fields=fields, detail=str(error))
            ) from error
        self._parts.changed()

    async def _project(self, project_id: ProjectId) -> Project:
        found = next((p for p in await self._all() if p.id == project_id), None)
        if found is None:
            detail = f"no project {project_id}"
            raise ProblemError(Problem(code=ProblemCode.INTERNAL, fields={"detail": detail}))
        return found

    async def _all(self) -> tuple[Project, ...]:
        return await self._memory.for_face(lambda engine: engine.projects())

    # -- conversations --------------------------------------------------------------------------------
    async def conversations(self) -> tuple[Conversation, ...]:
        """See `LibraryFace.conversations`."""
        return await self._memory.for_face(lambda engine: engine.conversations())

    async def rename_conversation(self, conversation_id: ConversationId, title: str) -> None:
        """See `LibraryFace.rename_conversation`."""
        await self._memory.for_face(
            lambda engine: engine.rename_conversation(conversation_id, title)
        )
        self._parts.changed()

    async def messages(self, conversation_id: ConversationId) -> tuple[Node, ...]:
        """See `LibraryFace.messages`."""
        return await self._memory.for_face(lambda engine: engine.messages(conversation_id))

    async def search(self, text: str) -> tuple[SearchHit, ...]:
        """See `LibraryFace.search`."""
        nodes = await self._memory.for_face(lambda engine: engine.search_messages(text))
        by_id = {conversation.id: conversation for conversation in await self.conversations()}
        return tuple(
            SearchHit(
                node=node,
                conversation=by_id[node.conversation_id],
                excerpt=title(node.content, EXCERPT_CHARACTERS),
            )
            for node in nodes
            if node.conversation_id in by_id
        )

    async def move_conversation(
        self, conversation_id: ConversationId, project_id: ProjectId | None
    ) -> None:
        """See `LibraryFace.move_conversation`."""
        await self._memory.for_face(
            lambda engine: engine.move_conversation(conversation_id, project_id)
        )
        self._parts.changed()

    async def preview(self, conversation_id: ConversationId) -> ForgetPreview:
        """See `LibraryFace.preview`."""
        return await guarded(self._forgetter.preview(conversation_id))

    async def forget(self, conversation_id: ConversationId) -> None:
        """See `LibraryFace.forget`."""
        await guarded(self._forgetter.forget(conversation_id))

    async def keep(self, conversation_id: ConversationId) -> None:
        """See `LibraryFace.keep`."""
        await guarded(self._forgetter.keep(conversation_id))

    def forgettings(self) -> tuple[Forgetting, ...]:
        """See `LibraryFace.forgettings`."""
        return self._forgetter.forgettings()

    def dismiss(self, conversation_id: ConversationId) -> None:
        """See `LibraryFace.dismiss`."""
        self._forgetter.dismiss(conversation_id)

    async def export(
        self, conversation_ids: Sequence[ConversationId], target: Path
    ) -> tuple[Path, ...]:
        """See `LibraryFace.export`."""
        projects = {project.id: project for project in await self._all()}
        wanted = set(conversation_ids)
        chosen = [found for found in await self.conversations() if found.id in wanted]
        names = file_names(chosen)
        paths = [target] if len(conversation_ids) == 1 else [target / name for name in names]
        for conversation, path in zip(chosen, paths, strict=True):
            messages = await self.messages(conversation.id)
            project = projects.get(conversation.project_id) if conversation.project_id else None
            text = markdown_of(conversation, messages, project)
            try:
                await asyncio.to_thread(write_atomically, path, text.encode(errors="replace"))
            except OSError as error:
                fields = {"path": str(path), "reason": error.strerror or str(error)}
                raise ProblemError(
                    Problem(code=ProblemCode.EXPORT_FAILED, fields=fields, detail=str(error))
                ) from error
        return tuple(paths)


async def _folder(path: Path) -> Path:
    """A folder as it really lies.

    Raises:
        ProblemError: it is none.
    """
    real = await asyncio.to_thread(lambda: path.expanduser().resolve())
    if not await asyncio.to_thread(real.is_dir):
        fields = {"path": str(path)}
        raise ProblemError(Problem(code=ProblemCode.NO_PROJECT_FOLDER, fields=fields))
    return real
