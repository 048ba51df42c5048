"""The menu bar: one table of commands with their keys, which Help lists too."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from PySide6.QtCore import Qt
from PySide6.QtGui import QAction, QActionGroup, QKeySequence
from PySide6.QtWidgets import QMainWindow, QMenu

from growbox_app.text import tr


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """Something a menu offers. `name` is the translation key `command.<name>`; `keys` is a portable key sequence (Ctrl is ⌘ on macOS)."""

    menu: str
    name: str
    keys: str = ""
    gap_before: bool = False


COMMANDS = (
    Command(menu="file", name="new_conversation", keys="Ctrl+N"),
    Command(menu="file", name="open_folder", keys="Ctrl+O"),
    Command(menu="file", name="project", keys="Ctrl+Shift+P"),
    Command(menu="file", name="attach", keys="Ctrl+Shift+A"),
    Command(menu="file", name="ingest_files", keys="Ctrl+Shift+I", gap_before=True),
    Command(menu="file", name="ingest_folder", keys="Ctrl+Shift+O"),
    Command(menu="file", name="models", gap_before=True),
    Command(menu="file", name="servers"),
    Command(menu="file", name="tools"),
    Command(menu="file", name="settings", keys="Ctrl+,"),
    Command(menu="file", name="quit", keys="Ctrl+Q", gap_before=True),
    Command(menu="conversation", name="input", keys="Ctrl+L"),
    Command(menu="conversation", name="send", keys="Ctrl+Return"),
    Command(menu="conversation", name="stop", keys="Ctrl+."),
    Command(menu="conversation", name="rename", gap_before=True),
    Command(menu="conversation", name="export", keys="Ctrl+Shift+E"),
    Command(menu="conversation", name="delete"),
    Command(menu="conversation", name="find", keys="Ctrl+F"),
    Command(menu="conversation", name="search", keys="Ctrl+K"),
    Command(menu="view", name="panel_region", keys="Ctrl+1"),
    Command(menu="view", name="panel_queue", keys="Ctrl+2"),
    Command(menu="view", name="panel_ledger", keys="Ctrl+3"),
    Command(menu="view", name="panel_fatigue", keys="Ctrl+4"),
    Command(menu="view", name="panel_stains", keys="Ctrl+5"),
    Command(menu="view", name="panel_pointers", keys="Ctrl+6"),
    Command(menu="view", name="tasks", keys="Ctrl+Shift+T", gap_before=True),
    Command(menu="view", name="reset_layout", gap_before=True),
    Command(menu="memory", name="journal", keys="Ctrl+Shift+J"),
    Command(menu="memory", name="dream", keys="Ctrl+Shift+D", gap_before=True),
    Command(menu="memory", name="dream_all"),
    Command(menu="memory", name="sleep"),
    Command(menu="memory", name="nap"),
    Command(menu="memory", name="wake"),
    Command(menu="help", name="keys", keys="F1"),
    Command(menu="help", name="decisions"),
    Command(menu="help", name="about"),
)
MENUS = ("file", "conversation", "view", "memory", "help")
CHOICES = ("general.language", "appearance.theme")


def shortcuts() -> tuple[tuple[str, str], ...]:
    """(translation key, key sequence) of every command that has a key."""
    return tuple((f"command.{command.name}", command.keys) for command in COMMANDS if command.keys)


class Menus:
    """The menu bar of a window. `run(name)` carries a command out, `choose(key, value)` changes a setting."""

    def __init__(
        self, window: QMainWindow, run: Callable[[str], None], choose: Callable[[str, str], None]
    ) -> None:
        self._menus: dict[str, QMenu] = {}
        self._actions: dict[str, QAction] = {}
        self._choices: dict[str, dict[str, QAction]] = {}
        self._submenus: dict[str, QMenu] = {}
        for name in MENUS:
            menu = QMenu(window)
            window.menuBar().addMenu(menu)
            self._menus[name] = menu
        for command in COMMANDS:
            self._add(window, command, run)
        for key in CHOICES:
            self._add_choice(window, key, choose)
        self.retranslate()

    def _add(self, window: QMainWindow, command: Command, run: Callable[[str], None]) -> None:
        action = QAction(window)
        action.setObjectName(f"command_{command.name}")
        action.setShortcut(QKeySequence(command.keys))
        action.setShortcutContext(Qt.ShortcutContext.WindowShortcut)
        action.setMenuRole(_ROLES.get(command.name, QAction.MenuRole.NoRole))
        action.triggered.connect(lambda: run(command.name))
        if command.name.startswith("panel_"):
            action.setCheckable(True)
        menu = self._menus[command.menu]
        if command.gap_before:
            menu.addSeparator()
        menu.addAction(action)
        self._actions[command.name] = action

    def _add_choice(
        self, window: QMainWindow, key: str, choose: Callable[[str, str], None]
    ) -> None:
        submenu = QMenu(window)
        group = QActionGroup(window)
        values = {
            "general.language": ("system", "en", "zh"),
            "appearance.theme": ("system", "light", "dark"),
        }[key]
        self._choices[key] = {}
        for value in values:
            action = QAction(window)
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, chosen=value: choose(key, chosen))
            group.addAction(action)
            submenu.addAction(action)
            self._choices[key][value] = action
        self._submenus[key] = submenu
        if key == CHOICES[0]:
            self._menus["view"].addSeparator()
        self._menus["view"].addMenu(submenu)

    def action(self, name: str) -> QAction:
        """The action of a command."""
        return self._actions[name]

    def show_choice(self, key: str, value: str) -> None:
        """Marks the choice in force."""
        action = self._choices[key].get(value)
        if action is not None:
            action.setChecked(True)

    def retranslate(self) -> None:
        """Says everything again."""
        for name, menu in self._menus.items():
            menu.setTitle(tr(f"menu.{name}"))
        for name, action in self._actions.items():
            action.setText(tr(f"command.{name}"))
        for key, submenu in self._submenus.items():
            submenu.setTitle(tr(f"setting.{key}.label"))
            for value, action in self._choices[key].items():
                action.setText(tr(f"choice.{key}.{value}"))


_ROLES = {
    "quit": QAction.MenuRole.QuitRole,
    "about": QAction.MenuRole.AboutRole,
    "settings": QAction.MenuRole.PreferencesRole,
}
