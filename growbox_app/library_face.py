"""The face of projects and conversations as things one keeps: values, and what the window may ask for.

Every `async` method may raise `ProblemError`. Lists, and what is being forgotten, are snapshots to pull when `ConversationsChanged` was told.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Protocol

from growbox_app.projects import FolderLevel, ProjectRules
from growbox_app.safety.values import Grant, Mode
from memory.values import (
    Conversation,
    ConversationId,
    ForgetPreview,
    ForgetReport,
    Node,
    Project,
    ProjectHoldings,
    ProjectId,
    Scope,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ProjectView:
    """A project with what was decided about it. `missing` are folders that are not there now; `default_mode` is the settings'."""

    project: Project
    rules: ProjectRules
    default_mode: Mode
    grants: tuple[Grant, ...] = ()
    holdings: ProjectHoldings = field(default_factory=ProjectHoldings)
    missing: frozenset[Path] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class SearchHit:
    """A message found by the sidebar's search."""

    node: Node
    conversation: Conversation
    excerpt: str


class ForgetState(StrEnum):
    """How far a conversation is gone."""

    WAITING = "waiting"
    """Hidden; can be taken back for some seconds."""
    RUNNING = "running"
    DONE = "done"
    FAILED = "failed"
    """Trouble with the disk; tried again at the next start."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forgetting:
    """A conversation on its way out. `step` is `delete`, `copies`, `rewrite` or `prove`; `total` 0 means unknown."""

    conversation_id: ConversationId
    title: str
    state: ForgetState
    step: str = ""
    done: int = 0
    total: int = 0
    report: ForgetReport | None = None
    preview: ForgetPreview = field(default_factory=ForgetPreview)


class LibraryFace(Protocol):
    """Projects, conversations, and what is forgotten."""

    async def projects(self) -> tuple[Project, ...]:
        """Known projects, newest use first."""
        ...

    async def open_project(self, path: Path) -> Project:
        """Makes a folder a project (idempotent), or brings one back that was removed."""
        ...

    async def project(self, project_id: ProjectId) -> ProjectView:
        """A project as it is now."""
        ...

    async def add_folder(self, project_id: ProjectId, path: Path) -> None:
        """One more folder, to be read only."""
        ...

    async def remove_folder(self, project_id: ProjectId, path: Path) -> None:
        """Takes a folder out of the project; on the disk nothing changes."""
        ...

    async def set_level(self, project_id: ProjectId, path: Path, level: FolderLevel) -> None:
        """Lets the assistant write in a folder (and in no other of the project), or only read it."""
        ...

    async def set_mode(self, project_id: ProjectId, mode: Mode | None) -> None:
        """Sets a mode for this project alone; None: as in the settings."""
        ...

    async def set_scope(self, project_id: ProjectId, scope: Scope) -> None:
        """Says how far recall reaches in this project."""
        ...

    async def revoke(self, project_id: ProjectId, grant: Grant | None) -> None:
        """Asks again for one thing that was allowed, or (None) for everything."""
        ...

    async def remove_project(self, project_id: ProjectId) -> None:
        """Takes a project out of the list; its conversations stay, and stay searchable."""
        ...

    async def conversations(self) -> tuple[Conversation, ...]:
        """All conversations, newest first."""
        ...

    async def rename_conversation(self, conversation_id: ConversationId, title: str) -> None:
        """Gives a conversation another title."""
        ...

    async def messages(self, conversation_id: ConversationId) -> tuple[Node, ...]:
        """User and assistant messages of the active branch, oldest first."""
        ...

    async def search(self, text: str) -> tuple[SearchHit, ...]:
        """Finds messages by their words or any substring, newest first."""
        ...

    async def move_conversation(
        self, conversation_id: ConversationId, project_id: ProjectId | None
    ) -> None:
        """Gives a conversation to another project, or to none."""
        ...

    async def preview(self, conversation_id: ConversationId) -> ForgetPreview:
        """What goes with a conversation."""
        ...

    async def forget(self, conversation_id: ConversationId) -> None:
        """Hides a conversation at once, and deletes it for good some seconds later."""
        ...

    async def keep(self, conversation_id: ConversationId) -> None:
        """Takes `forget` back while it is waiting; later it changes nothing."""
        ...

    def forgettings(self) -> tuple[Forgetting, ...]:
        """Conversations on their way out, oldest first, those just gone included."""
        ...

    def dismiss(self, conversation_id: ConversationId) -> None:
        """The user has seen that it is gone."""
        ...

    async def export(
        self, conversation_ids: Sequence[ConversationId], target: Path
    ) -> tuple[Path, ...]:
        """Writes conversations as Markdown: one to the file `target`, several as files into the folder `target`."""
        ...
