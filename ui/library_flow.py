"""Projects and conversations as things one keeps: the sidebar's menus, the project page, the bar about what is deleted.

Joins `Assistant.library` and the widgets on the event-loop thread. Everything shown is a snapshot that is pulled after a change.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path

from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QStackedWidget, QWidget

from growbox_app.api import Assistant, ProblemError
from growbox_app.export import file_name
from growbox_app.library_face import ForgetState
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from memory.values import Conversation, ConversationId, Project, ProjectId
from ui.panels.project_page import ProjectPage
from ui.panels.sidebar import Sidebar
from ui.panels.sidebar_forget import ForgetBar
from ui.window_state import WindowState

Work = Callable[[], Coroutine[object, object, object]]


class LibraryFlow(QObject):
    """What the window does with projects and conversations beside talking.

    Signals: `trouble(Problem)`, `exported(Path)`, `said(str key)`, `new_wanted(ProjectId)`, `open_wanted(ConversationId)`,
    `gone(ConversationId)` (hide it), `left()` (the page, for the conversation), `ingest_wanted(list[Path])`.
    """

    trouble = Signal(object)
    exported = Signal(object)
    said = Signal(str)
    new_wanted = Signal(object)
    open_wanted = Signal(object)
    gone = Signal(object)
    left = Signal()
    ingest_wanted = Signal(object)

    def __init__(
        self,
        assistant: Assistant,
        *,
        sidebar: Sidebar,
        pages: QStackedWidget,
        tasks: TaskGroup,
        state: WindowState,
        parent: QWidget,
    ) -> None:
        super().__init__(parent)
        self._library, self._tasks, self._state = assistant.library, tasks, state
        self._sidebar, self._pages, self._window = sidebar, pages, parent
        self._conversations: dict[ConversationId, Conversation] = {}
        self._pruned = False
        self.page = ProjectPage()
        self.bar = ForgetBar()
        pages.addWidget(self.page)
        self._connect_tree()
        self._connect_page()
        self.bar.agreed.connect(self._forget)
        self.bar.undo_wanted.connect(self._keep)
        self.bar.close_wanted.connect(self._library.dismiss)
        self.bar.left.connect(sidebar.tree.setFocus)

    def _connect_tree(self) -> None:
        tree = self._sidebar.tree
        tree.page_wanted.connect(self.open_page)
        tree.new_here_wanted.connect(self.new_wanted)
        tree.remove_wanted.connect(lambda at: self.open_page(at, removing=True))
        tree.delete_wanted.connect(self.ask_delete)
        tree.export_wanted.connect(self.ask_export)
        tree.moved.connect(
            lambda at, project: self._start(
                "move", lambda: self._library.move_conversation(at, project)
            )
        )

    def _connect_page(self) -> None:
        page, library = self.page, self._library
        page.left.connect(self.left)
        page.ingest_wanted.connect(lambda path: self.ingest_wanted.emit([path]))
        page.add_folder_wanted.connect(self._ask_folder)
        page.folders_dropped.connect(self._add_folders)
        page.removed.connect(self._remove_project)
        page.level_chosen.connect(
            lambda path, level: self._change(lambda at: library.set_level(at, path, level))
        )
        page.folder_removed.connect(
            lambda path: self._change(lambda at: library.remove_folder(at, path))
        )
        page.mode_chosen.connect(lambda mode: self._change(lambda at: library.set_mode(at, mode)))
        page.scope_chosen.connect(
            lambda scope: self._change(lambda at: library.set_scope(at, scope))
        )
        page.revoked.connect(lambda grant: self._change(lambda at: library.revoke(at, grant)))

    def _start(self, name: str, work: Work) -> None:
        self._tasks.start(name, self._guarded(work))

    async def _guarded(self, work: Work) -> None:
        try:
            await work()
        except ProblemError as error:
            self.trouble.emit(error.problem)

    # -- what changed elsewhere -------------------------------------------------------------------
    async def refresh(
        self, projects: tuple[Project, ...], conversations: dict[ConversationId, Conversation]
    ) -> None:
        """Takes lists that were just read, and pulls what the page and the bar show."""
        if not self._pruned:
            self._pruned = True
            self._state.prune_drafts(conversations)
        self._conversations = conversations
        forgettings = self._library.forgettings()
        for forgetting in forgettings:
            if forgetting.state is not ForgetState.WAITING:
                self._state.keep_draft(forgetting.conversation_id, "", [])
                self._state.save()  # before the files are searched
        self.bar.show_forgettings(forgettings)
        shown = self.page.view
        if shown is not None and self._is_shown():
            if shown.project.id in {project.id for project in projects}:
                self.page.show_view(await self._library.project(shown.project.id))
            else:
                self.left.emit()

    def _is_shown(self) -> bool:
        return self._pages.currentWidget() is self.page

    # -- projects -----------------------------------------------------------------------------------
    def open_page(self, project_id: ProjectId | None, *, removing: bool = False) -> None:
        """Shows the page of a project; without one, nothing."""
        if project_id is not None:
            self._start("project", lambda: self._open_page(project_id, removing=removing))

    async def _open_page(self, project_id: ProjectId, *, removing: bool) -> None:
        self.page.show_view(await self._library.project(project_id))
        self._pages.setCurrentWidget(self.page)
        if removing:
            self.page.ask_remove()
        else:
            self.page.back_button.setFocus()

    def _change(self, work: Callable[[ProjectId], Coroutine[object, object, object]]) -> None:
        """Changes the project that is shown, and shows it as it then is, also when that failed."""
        view = self.page.view
        if view is not None:
            project_id = view.project.id
            self._start(
                "change project", lambda: self._changed(project_id, lambda: work(project_id))
            )

    async def _changed(self, project_id: ProjectId, work: Work) -> None:
        try:
            await work()
        finally:
            self.page.show_view(await self._library.project(project_id))

    def _ask_folder(self) -> None:
        dialog = QFileDialog(self._window, tr("project.add_folder_title"))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        self._open_dialog(dialog, lambda name: self._add_folders([Path(name)]))

    def _open_dialog(self, dialog: QFileDialog, take: Callable[[str], None]) -> None:
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(take)
        dialog.open()

    def _add_folders(self, paths: list[Path]) -> None:
        for path in paths:
            self._change(partial(self._add_folder, path))

    async def _add_folder(self, path: Path, project_id: ProjectId) -> None:
        await self._library.add_folder(project_id, path)

    def _remove_project(self) -> None:
        view = self.page.view
        if view is not None:
            self.left.emit()
            self._start("remove project", lambda: self._library.remove_project(view.project.id))

    # -- conversations --------------------------------------------------------------------------------
    def ask_delete(self, conversation_id: ConversationId | None) -> None:
        """Says what would go with a conversation, and waits for a yes."""
        conversation = self._of(conversation_id)
        if conversation is not None:
            self._start("preview", lambda: self._ask_delete(conversation))
        else:
            self.said.emit("sidebar.none_open")

    async def _ask_delete(self, conversation: Conversation) -> None:
        self.bar.question.ask(conversation, await self._library.preview(conversation.id))

    def _forget(self, conversation_id: ConversationId) -> None:
        self._start("forget", lambda: self._forgotten(conversation_id))

    async def _forgotten(self, conversation_id: ConversationId) -> None:
        await self._library.forget(conversation_id)
        self.gone.emit(conversation_id)

    def _keep(self, conversation_id: ConversationId) -> None:
        self._start("keep", lambda: self._kept(conversation_id))

    async def _kept(self, conversation_id: ConversationId) -> None:
        await self._library.keep(conversation_id)
        self.open_wanted.emit(conversation_id)

    def ask_export(self, conversation_id: ConversationId | None) -> None:
        """Lets the user choose a file for a conversation."""
        conversation = self._of(conversation_id)
        if conversation is None:
            self.said.emit("sidebar.none_open")
            return
        dialog = QFileDialog(self._window, tr("export.choose"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setNameFilter(tr("export.files"))
        dialog.setDefaultSuffix("md")
        dialog.selectFile(file_name(conversation))
        self._open_dialog(dialog, lambda name: self.export(conversation.id, Path(name)))

    def export(self, conversation_id: ConversationId, path: Path) -> None:
        """Writes a conversation to a file."""
        self._start("export", lambda: self._export(conversation_id, path))

    async def _export(self, conversation_id: ConversationId, path: Path) -> None:
        await self._library.export([conversation_id], path)
        self.exported.emit(path)

    def _of(self, conversation_id: ConversationId | None) -> Conversation | None:
        return None if conversation_id is None else self._conversations.get(conversation_id)
