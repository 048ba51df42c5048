"""The menus of the sidebar's tree: what can be done with a project, and with a conversation. They only emit; `ui/library_flow.py` does it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QPoint, Qt
from PySide6.QtGui import QAction, QKeySequence
from PySide6.QtWidgets import QMenu, QWidget

from growbox_app.text import tr
from memory.values import Project, ProjectId
from ui.view_models.display import one_line

NAME_CHARACTERS = 40


class RowMenu(QMenu):
    """A menu that deletes itself; `offer` adds what can be done."""

    def __init__(self, parent: QWidget) -> None:
        super().__init__(parent)
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)

    def offer(self, key: str, do: Callable[[], None], keys: str = "") -> None:
        """One entry; `keys` are shown, the tree itself listens for them."""
        action = QAction(tr(key), self)
        if keys:
            action.setShortcut(QKeySequence(keys))
            action.setShortcutContext(Qt.ShortcutContext.WidgetShortcut)
            action.setShortcutVisibleInContextMenu(True)
        action.triggered.connect(do)
        self.addAction(action)

    def offer_projects(
        self,
        projects: Sequence[Project],
        current: ProjectId | None,
        choose: Callable[[ProjectId | None], None],
    ) -> None:
        """A submenu of where a conversation can move; where it is now is marked."""
        submenu = self.addMenu(tr("sidebar.move"))
        entries: list[tuple[ProjectId | None, str]] = [
            (project.id, one_line(project.name, NAME_CHARACTERS)) for project in projects
        ]
        for project_id, name in (*entries, (None, tr("sidebar.no_project"))):
            action = QAction(name.replace("&", "&&"), submenu)
            action.setCheckable(True)
            action.setChecked(project_id == current)
            action.setEnabled(project_id != current)
            action.triggered.connect(lambda _checked=False, chosen=project_id: choose(chosen))
            submenu.addAction(action)

    def show_at(self, place: QPoint) -> None:
        """Opens it, with the first entry marked, so that the keyboard goes on there."""
        self.popup(place)
        if self.actions():
            self.setActiveAction(self.actions()[0])
