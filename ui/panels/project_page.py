"""The page of a project: folders and what may be done in them, what was allowed, the mode, the memory, and how to remove it.

Shows a `ProjectView` and emits wishes; the next view it is given is the answer.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TypeVar

from PySide6.QtCore import QMimeData, Qt, QTimer, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QKeyEvent
from PySide6.QtWidgets import (
    QApplication,
    QComboBox,
    QFrame,
    QHBoxLayout,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.library_face import ProjectView
from growbox_app.projects import FOLDERS_MAX, ProjectFolder
from growbox_app.safety.values import Grant
from growbox_app.text import tr
from ui.panels.controls import ElidedLabel, IconButton, QuietLabel, TextButton, Words
from ui.view_models import projects as words

T = TypeVar("T", bound=QWidget)

PAGE_PIXELS = 720
LEVEL_PIXELS = 150


class FolderRow(QFrame):
    """One folder. Signals: `level_chosen(Path, FolderLevel)`, `remove_wanted(Path)`."""

    level_chosen = Signal(object, object)
    remove_wanted = Signal(object)

    def __init__(
        self, folder: ProjectFolder, *, missing: bool, parent: QWidget | None = None
    ) -> None:
        super().__init__(parent)
        self.setProperty("look", "row")
        self.folder, self._missing = folder, missing
        self._path = ElidedLabel()
        self._mark = QuietLabel(look="danger" if missing else "quiet")
        self.level_box = QComboBox()
        self.level_box.setFixedWidth(LEVEL_PIXELS)
        self.level_box.activated.connect(
            lambda at: self.level_chosen.emit(folder.path, words.LEVELS[at])
        )
        self.remove_button = IconButton("x", "project.remove_folder")
        policy = self.remove_button.sizePolicy()
        policy.setRetainSizeWhenHidden(True)
        self.remove_button.setSizePolicy(policy)
        self.remove_button.setVisible(not folder.is_main)
        self.remove_button.clicked.connect(lambda: self.remove_wanted.emit(folder.path))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 4, 0, 4)
        row.setSpacing(8)
        row.addWidget(self._path, 1)
        row.addWidget(self._mark)
        row.addWidget(self.level_box)
        row.addWidget(self.remove_button)
        self.retranslate()

    def retranslate(self) -> None:
        """Says everything again."""
        path = str(self.folder.path)
        self._path.say(path)
        marks = [tr("project.main")] if self.folder.is_main else []
        marks += [tr("project.missing")] if self._missing else []
        self._mark.setText(" · ".join(marks))
        fill(self.level_box, [words.level_words(level) for level in words.LEVELS])
        self.level_box.setCurrentIndex(words.LEVELS.index(self.folder.level))
        self.level_box.setAccessibleName(tr("project.level", path=path))
        self.remove_button.setAccessibleName(tr("project.remove_folder_named", path=path))


class GrantRow(QFrame):
    """One thing that was allowed. Signals: `revoke_wanted(Grant)`."""

    revoke_wanted = Signal(object)

    def __init__(self, grant: Grant, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "row")
        self.grant = grant
        self._words = ElidedLabel()
        self.revoke_button = TextButton("project.revoke")
        self.revoke_button.clicked.connect(lambda: self.revoke_wanted.emit(grant))
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 4, 0, 4)
        row.setSpacing(8)
        row.addWidget(self._words, 1)
        row.addWidget(self.revoke_button)
        self.retranslate()

    def retranslate(self) -> None:
        """Says everything again."""
        what = words.grant_words(self.grant)
        self._words.say(what)
        self.revoke_button.setAccessibleName(tr("project.revoke_named", what=what))


class RemoveBox(QFrame):
    """Asks before a project leaves the list. Signals: `agreed()`, `refused()`."""

    agreed = Signal()
    refused = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("remove_project")
        self.setProperty("look", "card")
        self._name = ""
        self._text = QuietLabel(look="")
        self._text.setWordWrap(True)
        self.yes_button = TextButton("project.remove_yes")
        self.no_button = TextButton("project.remove_no")
        buttons = QHBoxLayout()
        buttons.addStretch(1)
        buttons.addWidget(self.yes_button)
        buttons.addWidget(self.no_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(8)
        column.addWidget(self._text)
        column.addLayout(buttons)
        self.yes_button.clicked.connect(self.agreed)
        self.no_button.clicked.connect(self.refused)
        self.hide()

    def ask(self, name: str) -> None:
        """Says what goes and what stays."""
        self._name = name
        self.retranslate()
        self.show()
        self.no_button.setFocus()

    def retranslate(self) -> None:
        """Says it again."""
        asked = tr("project.remove_ask", name=self._name)
        self._text.setText(f"{asked}\n{tr('project.remove_what')}")
        self.setAccessibleName(self._text.text())

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.refused.emit()
        else:
            super().keyPressEvent(event)


class ProjectPage(QScrollArea):
    """The page.

    Signals: `left()`, `add_folder_wanted()`, `folders_dropped(list[Path])`, `level_chosen(Path, FolderLevel)`,
    `folder_removed(Path)`, `mode_chosen(Mode | None)`, `scope_chosen(Scope)`, `revoked(Grant | None)`, `ingest_wanted(Path)`,
    `removed()`.
    """

    left = Signal()
    add_folder_wanted = Signal()
    folders_dropped = Signal(object)
    level_chosen = Signal(object, object)
    folder_removed = Signal(object)
    mode_chosen = Signal(object)
    scope_chosen = Signal(object)
    revoked = Signal(object)
    ingest_wanted = Signal(object)
    removed = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("project_page")
        self.setProperty("look", "conversation")
        self.setWidgetResizable(True)
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setAcceptDrops(True)
        self.view: ProjectView | None = None
        self.folder_rows: list[FolderRow] = []
        self.grant_rows: list[GrantRow] = []
        self._make_controls()
        self._connect()
        self._arrange()
        self.retranslate()

    def _make_controls(self) -> None:
        self.back_button = TextButton("project.back", icon_name="arrow-left", kind="quiet")
        self.title = QuietLabel(look="hero")
        self._folders = QVBoxLayout()
        self._folders.setSpacing(0)
        self._none_writable = Words("project.none_writable", look="quiet")
        self._none_writable.setWordWrap(True)
        self.add_button = TextButton("project.add_folder", icon_name="folder-plus")
        self.mode_box = QComboBox()
        self._grants = QVBoxLayout()
        self._grants.setSpacing(0)
        self._no_grants = Words("project.grants_none", look="quiet")
        self._no_grants.setWordWrap(True)
        self.revoke_button = TextButton("project.revoke_all")
        self.scope_box = QComboBox()
        self.holdings = QuietLabel(look="")
        self.holdings.setWordWrap(True)
        self.ingest_button = TextButton("project.add_files", icon_name="plus")
        self.remove_button = TextButton("project.remove")
        self.remove_box = RemoveBox()

    def _connect(self) -> None:
        self.back_button.clicked.connect(self.left)
        self.add_button.clicked.connect(self.add_folder_wanted)
        self.mode_box.activated.connect(lambda at: self.mode_chosen.emit(words.MODES[at]))
        self.scope_box.activated.connect(lambda at: self.scope_chosen.emit(words.SCOPES[at]))
        self.revoke_button.clicked.connect(lambda: self.revoked.emit(None))
        self.ingest_button.clicked.connect(self._ingest)
        self.remove_button.clicked.connect(self.ask_remove)
        self.remove_box.agreed.connect(self.removed)
        self.remove_box.refused.connect(self._stay)

    def _arrange(self) -> None:
        page = QWidget()
        page.setMaximumWidth(PAGE_PIXELS)
        column = QVBoxLayout(page)
        column.setContentsMargins(24, 16, 24, 24)
        column.setSpacing(8)
        top = QHBoxLayout()
        top.addWidget(self.back_button)
        top.addStretch(1)
        column.addLayout(top)
        column.addWidget(self.title)
        column.addSpacing(8)
        _section(column, "project.folders", "project.folders_help")
        column.addLayout(self._folders)
        column.addWidget(self._none_writable)
        column.addLayout(_leading(self.add_button))
        column.addSpacing(16)
        _section(column, "project.mode", "project.mode_help")
        column.addWidget(self.mode_box)
        column.addSpacing(16)
        _section(column, "project.grants")
        column.addWidget(self._no_grants)
        column.addLayout(self._grants)
        column.addLayout(_leading(self.revoke_button))
        column.addSpacing(16)
        _section(column, "project.memory")
        column.addWidget(self.scope_box)
        column.addWidget(self.holdings)
        column.addLayout(_leading(self.ingest_button))
        column.addSpacing(24)
        column.addLayout(_leading(self.remove_button))
        column.addWidget(self.remove_box)
        column.addStretch(1)
        outer = QWidget()
        row = QHBoxLayout(outer)
        row.setContentsMargins(0, 0, 0, 0)
        row.addStretch(1)
        row.addWidget(page, 100)
        row.addStretch(1)
        self.setWidget(outer)

    # -- showing ------------------------------------------------------------------------------
    def show_view(self, view: ProjectView) -> None:
        """Shows a project; the keyboard stays where it was, as far as that is still there."""
        before, self.view = self.view, view
        if before is None or before.project.id != view.project.id:
            self.remove_box.hide()
            self.remove_button.show()
            self.verticalScrollBar().setValue(0)
        if before is None or (before.rules.folders, before.missing) != (
            view.rules.folders,
            view.missing,
        ):
            self._show_folders(view)
        if before is None or before.grants != view.grants:
            self._show_grants(view)
        self.retranslate()

    def _show_folders(self, view: ProjectView) -> None:
        at = _place_of_focus(self.folder_rows)
        _empty(self._folders, self.folder_rows)
        for folder in view.rules.folders:
            row = FolderRow(folder, missing=folder.path in view.missing)
            row.level_chosen.connect(self.level_chosen)
            row.remove_wanted.connect(self.folder_removed)
            self._folders.addWidget(row)
            self.folder_rows.append(row)
        if at is not None:
            self.folder_rows[min(at, len(self.folder_rows) - 1)].level_box.setFocus()

    def _show_grants(self, view: ProjectView) -> None:
        at = _place_of_focus(self.grant_rows)
        _empty(self._grants, self.grant_rows)
        for grant in view.grants:
            row = GrantRow(grant)
            row.revoke_wanted.connect(self.revoked)
            self._grants.addWidget(row)
            self.grant_rows.append(row)
        if at is not None:
            rows = self.grant_rows
            (rows[min(at, len(rows) - 1)].revoke_button if rows else self.scope_box).setFocus()

    def retranslate(self) -> None:
        """Says everything again."""
        self.mode_box.setAccessibleName(tr("project.mode"))
        self.scope_box.setAccessibleName(tr("project.scope"))
        view = self.view
        if view is None:
            return
        self.title.setText(view.project.name)
        self.setAccessibleName(f"{tr('project.title')}: {view.project.name}")
        fill(self.mode_box, [words.mode_words(mode, view.default_mode) for mode in words.MODES])
        self.mode_box.setCurrentIndex(words.MODES.index(view.rules.mode))
        fill(self.scope_box, [words.scope_words(scope) for scope in words.SCOPES])
        self.scope_box.setCurrentIndex(words.SCOPES.index(view.rules.scope))
        self.holdings.setText(words.holdings_words(view.holdings))
        read_only = words.is_read_only(view)
        self._none_writable.setVisible(read_only)
        self.mode_box.setEnabled(not read_only)
        self._no_grants.setVisible(not view.grants)
        self.revoke_button.setVisible(len(view.grants) > 1)
        self.add_button.setEnabled(len(view.rules.folders) < FOLDERS_MAX)

    # -- wishes -------------------------------------------------------------------------------
    def ask_remove(self) -> None:
        """Asks whether the project shall leave the list."""
        if self.view is not None:
            self.remove_button.hide()
            self.remove_box.ask(self.view.project.name)
            QTimer.singleShot(0, lambda: self.ensureWidgetVisible(self.remove_box))

    def _stay(self) -> None:
        self.remove_box.hide()
        self.remove_button.show()
        self.remove_button.setFocus()

    def _ingest(self) -> None:
        if self.view is not None:
            self.ingest_wanted.emit(Path(self.view.project.path))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if folders_in(event.mimeData()):
            event.acceptProposedAction()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        self.folders_dropped.emit(folders_in(event.mimeData()))
        event.acceptProposedAction()


def folders_in(data: QMimeData) -> list[Path]:
    """The folders among what is dragged."""
    paths = [Path(url.toLocalFile()) for url in data.urls() if url.isLocalFile()]
    return [path for path in paths if path.is_dir()]


def fill(box: QComboBox, names: Sequence[str]) -> None:
    """Gives a box its words, without a signal, when they are others."""
    if [box.itemText(at) for at in range(box.count())] != list(names):
        box.clear()
        box.addItems(list(names))


def _section(column: QVBoxLayout, key: str, help_key: str = "") -> None:
    column.addWidget(Words(key, look="strong"))
    if help_key:
        words_of_help = Words(help_key, look="quiet")
        words_of_help.setWordWrap(True)
        column.addWidget(words_of_help)


def _leading(widget: QWidget) -> QHBoxLayout:
    row = QHBoxLayout()
    row.addWidget(widget)
    row.addStretch(1)
    return row


def _place_of_focus(rows: Sequence[QWidget]) -> int | None:
    """Which row has the keyboard."""
    return next((at for at, row in enumerate(rows) if _has_focus(row)), None)


def _has_focus(row: QWidget) -> bool:
    focus = QApplication.focusWidget()
    return row.isAncestorOf(focus) if focus else False  # the stub does not know that it may be None


def _empty(layout: QVBoxLayout, rows: list[T]) -> None:
    for row in rows:
        layout.removeWidget(row)
        row.hide()
        row.deleteLater()
    rows.clear()
