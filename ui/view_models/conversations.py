"""The sidebar's tree: projects with their conversations, then conversations without a project; newest first."""

from __future__ import annotations

from dataclasses import dataclass

from memory.values import Conversation, Project, ProjectId


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """A project and its conversations; `project` None holds those of no project."""

    project: Project | None
    conversations: tuple[Conversation, ...]


def groups(
    projects: tuple[Project, ...], conversations: tuple[Conversation, ...]
) -> tuple[Group, ...]:
    """Conversations under their projects, in the order given; a conversation of an unknown project stands free."""
    known = {project.id for project in projects}
    by_project: dict[ProjectId | None, list[Conversation]] = {None: []}
    for conversation in conversations:
        key = conversation.project_id if conversation.project_id in known else None
        by_project.setdefault(key, []).append(conversation)
    made = [
        Group(project=project, conversations=tuple(by_project.get(project.id, ())))
        for project in projects
    ]
    return (*made, Group(project=None, conversations=tuple(by_project[None])))
