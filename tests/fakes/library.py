"""A scripted `LibraryFace`: decisions in memory, and forgetting that moves when the test says so. `fail_messages` makes reading fail."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

from growbox_app.api import Problem, ProblemCode, ProblemError
from growbox_app.library_face import ForgetState, Forgetting, ProjectView, SearchHit
from growbox_app.projects import FolderLevel, ProjectFolder, ProjectRules
from growbox_app.safety.values import Grant, Mode
from memory.values import (
    Conversation,
    ConversationId,
    ForgetPreview,
    Node,
    NodeId,
    Project,
    ProjectHoldings,
    ProjectId,
    Scope,
)


class ScriptedLibrary:
    """Works on the dictionaries of a scripted assistant. `tell` is called after every change."""

    def __init__(
        self,
        *,
        projects: dict[ProjectId, Project],
        conversations: dict[ConversationId, Conversation],
        nodes: dict[NodeId, Node],
        add_project: Callable[[str, str], Project],
        tell: Callable[[], None],
    ) -> None:
        self._projects, self._conversations, self._nodes = projects, conversations, nodes
        self._add_project, self._tell = add_project, tell
        self.hidden: dict[ConversationId, Conversation] = {}
        self.views: dict[ProjectId, ProjectView] = {}
        self.shown: dict[ConversationId, Forgetting] = {}
        self.previews: dict[ConversationId, ForgetPreview] = {}
        self.exported: list[tuple[tuple[ConversationId, ...], Path]] = []
        self.default_mode = Mode.MANUAL
        self.fail: Problem | None = None
        self.fail_messages: Problem | None = None

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

    async def projects(self) -> tuple[Project, ...]:
        """Known projects."""
        return tuple(self._projects.values())

    async def open_project(self, path: Path) -> Project:
        """Makes a folder a project."""
        if not path.is_dir():  # noqa: ASYNC240 - a fake
            raise ProblemError(
                Problem(code=ProblemCode.NO_PROJECT_FOLDER, fields={"path": str(path)})
            )
        return self._add_project(path.name, str(path))

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

    async def conversations(self) -> tuple[Conversation, ...]:
        """Newest first."""
        return tuple(sorted(self._conversations.values(), key=lambda item: -item.updated_at_ms))

    async def rename_conversation(self, conversation_id: ConversationId, title: str) -> None:
        """Gives another title."""
        self._conversations[conversation_id] = replace(
            self._conversations[conversation_id], title=title
        )
        self._tell()

    async def messages(self, conversation_id: ConversationId) -> tuple[Node, ...]:
        """In order."""
        await asyncio.sleep(0)
        if self.fail_messages is not None:
            raise ProblemError(self.fail_messages)
        return tuple(
            node for node in self._nodes.values() if node.conversation_id == conversation_id
        )

    async def search(self, text: str) -> tuple[SearchHit, ...]:
        """Substring search."""
        hits = [
            SearchHit(
                node=node,
                conversation=self._conversations[node.conversation_id],
                excerpt=node.content[:120],
            )
            for node in reversed(self._nodes.values())
            if node.conversation_id is not None and text.casefold() in node.content.casefold()
        ]
        return tuple(hits)

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
