"""The words of the project page. Pure."""

from __future__ import annotations

from growbox_app.library_face import ProjectView
from growbox_app.projects import FolderLevel
from growbox_app.safety.values import Grant, GrantKind, Mode
from growbox_app.text import tr
from memory.values import ProjectHoldings, Scope
from ui.view_models.forgetting import counted

MODES: tuple[Mode | None, ...] = (None, Mode.MANUAL, Mode.AUTO, Mode.READ_ONLY)
SCOPES: tuple[Scope, ...] = (Scope.ALL, Scope.PROJECT)
LEVELS: tuple[FolderLevel, ...] = (FolderLevel.WRITABLE, FolderLevel.READ_ONLY)


def mode_words(mode: Mode | None, default: Mode) -> str:
    """What a mode means; None names the one of the settings."""
    if mode is None:
        return tr("project.mode_default", mode=tr(f"project.mode_{default.value}"))
    return tr(f"project.mode_{mode.value}")


def scope_words(scope: Scope) -> str:
    """How far the memory reaches."""
    return tr(f"project.scope_{scope.value}")


def level_words(level: FolderLevel) -> str:
    """What may be done in a folder."""
    return tr(f"project.level_{level.value}")


def grant_words(grant: Grant) -> str:
    """What was allowed, in plain words."""
    value = grant.value
    if grant.kind is GrantKind.EXECUTOR:
        key = f"tool.{value}"
        value = value if tr(key) == key else tr(key)  # a server's tool has no words of ours
    return tr(f"project.grant_{grant.kind.value}", value=value)


def holdings_words(holdings: ProjectHoldings) -> str:
    """What the memory has of a project."""
    parts = [
        counted("sidebar.conversations", holdings.conversations),
        counted("forget.messages", holdings.messages),
        counted("project.documents", holdings.documents),
        counted("project.passages", holdings.passages),
    ]
    if holdings.waiting:
        parts.append(counted("project.waiting", holdings.waiting))
    return " · ".join(parts)


def is_read_only(view: ProjectView) -> bool:
    """Whether no folder may be changed."""
    return all(folder.level is FolderLevel.READ_ONLY for folder in view.rules.folders)
