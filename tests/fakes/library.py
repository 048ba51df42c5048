"""A scripted `LibraryFace`: decisions in memory, and forgetting that moves when the test says so."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from growbox_app.api import Problem, ProblemError
from growbox_app.library_face import ForgetState, Forgetting, ProjectView
from growbox_app.projects import FolderLevel, ProjectFolder, ProjectRules
from growbox_app.safety.values import Grant, Mode
from memory.values import (
    Conversation,
    ConversationId,
    ForgetPreview,
    Project,
    ProjectHoldings,
    ProjectId,
    Scope,
)


class ScriptedLibrary:
    """Works on the dictionaries of a scripted assistant. `tell` is called after every change."""

    def __init__(
        self,
        projects: dict[ProjectId, Project],
        conversations: dict[ConversationId, Conversation],
        tell: Callable[[], None],
    ) -> None:
        self._projects, self._conversations, self._tell = projects, conversations, tell
        self.hidden: dict[ConversationId, Conversation] = {}
        self.views: dict[ProjectId, ProjectView] = {}
        self.shown: dict[ConversationId, Forgetting] = {}
        self.previews: dict[ConversationId, ForgetPreview] = {}
        self.exported: list[tuple[tuple[ConversationId, ...], Path]] = []
        self.default_mode = Mode.MANUAL
        self.fail: Problem | None = None

    def view(self, project_id: ProjectId) -> ProjectView:
        """A project as it is now."""
        project = self._projects[project_id]
        main = ProjectFolder(path=Path(project.path), level=FolderLevel.WRITABLE, is_main=True)
        return self.views.setdefault(
            project_id,
            ProjectView(
                project=project,
                rules=ProjectRules(folders=(main,)),
                default_mode=self.default_mode,
                holdings=ProjectHoldings(conversations=2, messages=14, documents=31, passages=402),
            ),
        )

    def put(self, project_id: ProjectId, view: ProjectView) -> None:
        """Makes it so."""
        if self.fail is not None:
            raise ProblemError(self.fail)
        self.views[project_id] = view
        self._tell()

    async def project(self, project_id: ProjectId) -> ProjectView:
        """See `LibraryFace`."""
        return self.view(project_id)

    async def add_folder(self, project_id: ProjectId, path: Path) -> None:
        """See `LibraryFace`."""
        view = self.view(project_id)
        folder = ProjectFolder(path=path, level=FolderLevel.READ_ONLY)
        rules = replace(view.rules, folders=(*view.rules.folders, folder))
        self.put(project_id, replace(view, rules=rules))

    async def remove_folder(self, project_id: ProjectId, path: Path) -> None:
        """See `LibraryFace`."""
        view = self.view(project_id)
        folders = tuple(folder for folder in view.rules.folders if folder.path != path)
        self.put(project_id, replace(view, rules=replace(view.rules, folders=folders)))

    async def set_level(self, project_id: ProjectId, path: Path, level: FolderLevel) -> None:
        """See `LibraryFace`."""
        view = self.view(project_id)
        others = FolderLevel.READ_ONLY if level is FolderLevel.WRITABLE else None
        folders = tuple(
            replace(folder, level=level if folder.path == path else others or folder.level)
            for folder in view.rules.folders
        )
        self.put(project_id, replace(view, rules=replace(view.rules, folders=folders)))

    async def set_mode(self, project_id: ProjectId, mode: Mode | None) -> None:
        """See `LibraryFace`."""
        view = self.view(project_id)
        self.put(project_id, replace(view, rules=replace(view.rules, mode=mode)))

    async def set_scope(self, project_id: ProjectId, scope: Scope) -> None:
        """See `LibraryFace`."""
        view = self.view(project_id)
        self.put(project_id, replace(view, rules=replace(view.rules, scope=scope)))

    async def revoke(self, project_id: ProjectId, grant: Grant | None) -> None:
        """See `LibraryFace`."""
        view = self.view(project_id)
        kept = tuple(g for g in view.grants if grant is not None and g != grant)
        self.put(project_id, replace(view, grants=kept))

    async def remove_project(self, project_id: ProjectId) -> None:
        """See `LibraryFace`."""
        del self._projects[project_id]
        self._tell()

    async def move_conversation(
        self, conversation_id: ConversationId, project_id: ProjectId | None
    ) -> None:
        """See `LibraryFace`."""
        moved = replace(self._conversations[conversation_id], project_id=project_id)
        self._conversations[conversation_id] = moved
        self._tell()

    async def preview(self, conversation_id: ConversationId) -> ForgetPreview:
        """See `LibraryFace`."""
        count = self._conversations[conversation_id].message_count
        return self.previews.get(conversation_id, ForgetPreview(messages=count))

    async def forget(self, conversation_id: ConversationId) -> None:
        """See `LibraryFace`."""
        gone = self._conversations.pop(conversation_id)
        self.hidden[conversation_id] = gone
        self.tell(
            Forgetting(conversation_id=conversation_id, title=gone.title, state=ForgetState.WAITING)
        )

    def tell(self, forgetting: Forgetting) -> None:
        """A conversation is so far gone."""
        self.shown[forgetting.conversation_id] = forgetting
        self._tell()

    async def keep(self, conversation_id: ConversationId) -> None:
        """See `LibraryFace`."""
        self._conversations[conversation_id] = self.hidden.pop(conversation_id)
        self.dismiss(conversation_id)

    def forgettings(self) -> tuple[Forgetting, ...]:
        """See `LibraryFace`."""
        return tuple(self.shown.values())

    def dismiss(self, conversation_id: ConversationId) -> None:
        """See `LibraryFace`."""
        del self.shown[conversation_id]
        self._tell()

    async def export(
        self, conversation_ids: Sequence[ConversationId], target: Path
    ) -> tuple[Path, ...]:
        """See `LibraryFace`."""
        if self.fail is not None:
            raise ProblemError(self.fail)
        self.exported.append((tuple(conversation_ids), target))
        return (target,)
