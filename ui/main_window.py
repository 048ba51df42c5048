"""The window: puts the parts together and carries commands out. No business of its own.

Stable names: `conversation_panel` (`.input`, `.stop_button`, `.transcript_text()`), `sidebar`, `status_line`, `panels`, `first_run_page`.
Closing is a request (`close_wanted`); the application shuts down in order and then lets the process end.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from PySide6.QtCore import QByteArray, Qt, Signal
from PySide6.QtGui import QCloseEvent, QDragEnterEvent, QDropEvent, QResizeEvent
from PySide6.QtWidgets import (
    QFileDialog,
    QMainWindow,
    QMenu,
    QSplitter,
    QStackedWidget,
    QTabWidget,
    QVBoxLayout,
    QWidget,
)
from shiboken6 import isValid
from typing_extensions import override

from growbox_app.api import Assistant, EnginePhase, Problem, ProblemError, Progress
from growbox_app.endpoints.face import CHOSEN
from growbox_app.notices import load as load_notices
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from memory.ports import Clock
from memory.values import Conversation, ConversationId, NodeId, Project, ProjectId
from ui.bridge import Bridge
from ui.conversation_flow import ConversationFlow
from ui.decisions_flow import DecisionsFlow
from ui.endpoints_flow import EndpointsFlow, button_words, status_words
from ui.facts import facts
from ui.ingest_flow import IngestFlow
from ui.journal_flow import JournalFlow, JournalTasks
from ui.library_flow import LibraryFlow
from ui.memory_panels import MemoryPanels
from ui.menus import Menus, shortcuts
from ui.model_setup import ModelSetup
from ui.notifications import Notifier
from ui.panels.about import AboutDialog
from ui.panels.composer import local_files
from ui.panels.controls import refresh
from ui.panels.conversation import ConversationPanel
from ui.panels.crash_notice import CrashNotice
from ui.panels.first_run import FirstRunPage
from ui.panels.help_dialogs import KeysDialog
from ui.panels.settings_dialog import SettingRow, SettingsDialog
from ui.panels.sidebar import Sidebar
from ui.panels.status_line import StatusLine
from ui.qt_language import use_qt_language
from ui.rest_flow import RestFlow, RestPlaces
from ui.tasks_flow import TasksFlow
from ui.theme import theme
from ui.tools_flow import ToolsFlow
from ui.view_models import wording
from ui.window_state import WindowState

DEFAULT_SIZE = (1280, 800)
SIDEBAR_PIXELS = 220
DOCKS_PIXELS = 300
# Grows with the set of panels: Qt has no place for a panel that a kept layout does not know, so such a layout is not taken.
LAYOUT_VERSION = 2
# What can be done before the memory is open.
_ALWAYS = ("quit", "keys", "about", "reset_layout", "input", "send")


@dataclass(frozen=True, slots=True, kw_only=True)
class Tasks:
    """Who keeps the window's tasks.

    `readers` only show things and are cancelled before the assistant shuts down; `turns` write (a question, an attachment) and live until it has.
    """

    readers: TaskGroup
    turns: TaskGroup


class MainWindow(QMainWindow):
    """The window of one assistant.

    Signals: `close_wanted()`.
    """

    close_wanted = Signal()

    def __init__(
        self,
        assistant: Assistant,
        *,
        state: WindowState,
        clock: Clock,
        tasks: Tasks,
    ) -> None:
        super().__init__()
        self.setObjectName("main_window")
        self.setWindowTitle("GrowBox")
        self._assistant, self._state, self._clock = assistant, state, clock
        self._tasks = readers = tasks.readers
        self._writers = tasks.turns
        self._conversations: dict[ConversationId, Conversation] = {}
        self._projects: tuple[Project, ...] = ()
        self._page_is_forced = False
        self._engine_problem: Problem | None = None
        self._settings_dialog: SettingsDialog | None = None
        self.conversation_panel = ConversationPanel()
        self.sidebar = Sidebar()
        self.status_line = StatusLine()
        self.first_run_page = FirstRunPage()
        self.panels = MemoryPanels(
            assistant, self.status_line, tasks=readers, clock=clock, parent=self
        )
        self.flow = ConversationFlow(
            assistant, self.conversation_panel, tasks=tasks.turns, clock=clock, state=state
        )
        self.ingest = IngestFlow(
            assistant,
            self.conversation_panel.ingest_bar,
            tasks=tasks.turns,
            project=lambda: self.flow.project_id,
        )
        self.setup = ModelSetup(assistant, self.first_run_page, tasks=readers, parent=self)
        self.endpoints = EndpointsFlow(assistant, tasks=tasks.turns, parent=self)
        self.bridge = Bridge(assistant, self)
        self.tools = ToolsFlow(assistant, self.bridge, tasks=tasks.turns, parent=self)
        self.background_tasks = TasksFlow(
            assistant, self.bridge, self.status_line, self._titles_of, clock=clock, parent=self
        )
        self.background_tasks.conversation_wanted.connect(self.open_conversation)
        self.decisions = DecisionsFlow(assistant, clock, tasks=readers, parent=self)
        self.notifier = Notifier(self, lambda: bool(assistant.setting("agent.notify")))
        self.notifier.follow(self.flow)
        self.menus = Menus(self, self.run_command, self.choose)
        self._arrange()
        self._connect()
        self._add_rest(tasks)
        self._restore()

    # -- layout -------------------------------------------------------------------------------
    def _arrange(self) -> None:
        self.pages = QStackedWidget()
        self.pages.addWidget(self.conversation_panel)
        self.pages.addWidget(self.first_run_page)
        self.library = LibraryFlow(
            self._assistant,
            sidebar=self.sidebar,
            pages=self.pages,
            tasks=self._writers,
            state=self._state,
            parent=self,
        )
        self._splitter = QSplitter(Qt.Orientation.Horizontal)
        self._splitter.setChildrenCollapsible(False)
        self._splitter.setHandleWidth(1)
        self._splitter.addWidget(self.sidebar)
        self._splitter.addWidget(self.pages)
        self._splitter.setStretchFactor(1, 1)
        self.sidebar.setEnabled(
            False
        )  # until `start` has filled it; the input takes questions at once
        self._splitter.setSizes([SIDEBAR_PIXELS, DEFAULT_SIZE[0] - SIDEBAR_PIXELS - DOCKS_PIXELS])
        centre = QWidget()
        self._column = column = QVBoxLayout(centre)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self.library.bar)
        column.addWidget(self._splitter, 1)
        self.setCentralWidget(centre)
        self.statusBar().setSizeGripEnabled(False)
        self.statusBar().addWidget(self.status_line, 1)
        self.setDockNestingEnabled(True)
        self.setTabPosition(Qt.DockWidgetArea.AllDockWidgetAreas, QTabWidget.TabPosition.North)
        self.setMinimumSize(760, 480)
        self.setAcceptDrops(True)
        self.resize(*DEFAULT_SIZE)
        self.arrange_docks()

    def arrange_docks(self) -> None:
        """Puts the panels where they are at first."""
        docks = self.panels.docks
        for dock in docks.values():
            dock.setFloating(False)
            self.addDockWidget(Qt.DockWidgetArea.RightDockWidgetArea, dock)
            dock.show()
        self.splitDockWidget(docks["region"], docks["queue"], Qt.Orientation.Vertical)
        self.splitDockWidget(docks["queue"], docks["ledger"], Qt.Orientation.Vertical)
        self.tabifyDockWidget(docks["queue"], docks["pointers"])
        self.tabifyDockWidget(docks["ledger"], docks["stains"])
        self.tabifyDockWidget(docks["stains"], docks["fatigue"])
        docks["queue"].raise_()
        docks["ledger"].raise_()
        widths = [DOCKS_PIXELS] * len(docks)
        self.resizeDocks(list(docks.values()), widths, Qt.Orientation.Horizontal)
        stacked = [docks["region"], docks["queue"], docks["ledger"]]
        self.resizeDocks(stacked, [230, 220, 280], Qt.Orientation.Vertical)

    def _restore(self) -> None:
        geometry, docks = self._state.geometry()
        if not geometry.isEmpty():
            self.restoreGeometry(geometry)
        if not docks.isEmpty():
            self.restoreState(docks, LAYOUT_VERSION)
        sidebar: QByteArray = self._state.sidebar()
        if not sidebar.isEmpty():
            self._splitter.restoreState(sidebar)
        for dock in self.panels.docks.values():
            dock.visibilityChanged.connect(self._docks_changed)
        self._docks_changed()

    def keep(self) -> None:
        """Keeps layout, drafts and what was just typed into a setting; no question is sent any more."""
        if self._settings_dialog is not None:
            self._settings_dialog.flush()
        self.flow.close()
        self._state.keep_geometry(self.saveGeometry(), self.saveState(LAYOUT_VERSION))
        self._state.keep_sidebar(self._splitter.saveState())
        self._state.save()

    def stop_updates(self) -> None:
        """Listens to nothing and pulls nothing any more; the assistant is about to shut down."""
        theme.changed.disconnect(self.refresh_words)
        self.bridge.close()
        self.rest.close()
        self.background_tasks.close()
        self.notifier.over()
        self.panels.close()

    def _connect(self) -> None:
        sidebar, flow, panels, setup = self.sidebar, self.flow, self.panels, self.setup
        sidebar.new_wanted.connect(self.new_conversation)
        self._connect_library()
        sidebar.settings_wanted.connect(self.open_settings)
        sidebar.search_wanted.connect(
            lambda text: self._start("search", lambda: self._search(text))
        )
        sidebar.tree.opened.connect(self.open_conversation)
        sidebar.tree.project_chosen.connect(self._choose_project)
        sidebar.tree.renamed.connect(
            lambda at, title: self._start(
                "rename", lambda: self._assistant.library.rename_conversation(at, title)
            )
        )
        sidebar.results.opened.connect(self.open_conversation)
        flow.opened.connect(self._conversation_opened)
        flow.busy_changed.connect(sidebar.tree.mark_busy)
        flow.waiting_changed.connect(sidebar.tree.mark_waiting)
        self.notifier.chosen.connect(self.come_forward)
        flow.memory_touched.connect(panels.refresh)
        flow.ingest_wanted.connect(self.ingest.add)
        for part in (self.ingest, self.decisions, self.endpoints, self.tools):
            part.trouble.connect(self.say_problem)
        self.endpoints.changed.connect(self._endpoints_changed)
        self.conversation_panel.phase_changed.connect(panels.show_phase)
        panels.trouble.connect(self.say_problem)
        panels.conversation_wanted.connect(self.open_conversation)
        panels.mood_changed.connect(self._show_mood)
        setup.trouble.connect(self.say_problem)
        setup.needed.connect(self._setup_needed)
        setup.page_wanted.connect(lambda: self.show_models(forced=False))
        setup.listed.connect(self._show_model)
        self.conversation_panel.view.source_wanted.connect(panels.open_source)
        self.conversation_panel.view.pointers_wanted.connect(panels.show_pointers)
        self.conversation_panel.mood_wanted.connect(lambda: self.run_command("panel_fatigue"))
        self.conversation_panel.composer.attach_button.clicked.connect(self.ask_files)
        self.first_run_page.language_chosen.connect(
            lambda value: self.choose("general.language", value)
        )
        self.first_run_page.finished.connect(self.leave_models)
        self.bridge.status_changed.connect(self._status_changed)
        self.bridge.conversations_changed.connect(
            lambda: self._start("conversations", self.update_conversations)
        )
        self.bridge.memory_changed.connect(lambda _events: panels.refresh())
        self.bridge.search_changed.connect(flow.search_changed)
        self.bridge.raise_requested.connect(self.come_forward)
        theme.changed.connect(self.refresh_words)
        self._model_menu = QMenu(self)
        self._model_menu.aboutToShow.connect(self._fill_model_menu)
        self.conversation_panel.model_button.setMenu(self._model_menu)

    def _add_rest(self, tasks: Tasks) -> None:
        """The background mind: meter, ledger and status line, and the page of its journal."""
        places = RestPlaces(
            fatigue=self.panels.fatigue, ledger=self.panels.ledger, status_line=self.status_line
        )
        self.rest = RestFlow(self._assistant, places, tasks=tasks.readers, clock=self._clock)
        self.journal = JournalFlow(
            self._assistant,
            self.sidebar,
            self.pages,
            tasks=JournalTasks(readers=tasks.readers, writers=tasks.turns),
            clock=self._clock,
        )
        self.panels.docks["fatigue"].visibilityChanged.connect(self.rest.watch)
        self.bridge.rest_changed.connect(self.rest.show_status)
        self.rest.news_changed.connect(self.journal.show_news)
        self.rest.ended.connect(self.panels.refresh)
        self.rest.trouble.connect(self.say_problem)
        self.journal.trouble.connect(self.say_problem)
        self.journal.changed.connect(self.panels.refresh)
        self.journal.left.connect(self._leave_project)
        self.journal.note_wanted.connect(self.panels.open_source)
        self.status_line.rest_wanted.connect(lambda: self.panels.show_panel("fatigue"))

    def _connect_library(self) -> None:
        library = self.library
        self.sidebar.folder_wanted.connect(self.ask_folder)
        self.sidebar.folders_dropped.connect(self._open_folders)
        library.trouble.connect(self.say_problem)
        library.said.connect(self.status_line.say)
        library.exported.connect(lambda path: self.status_line.say("export.done", path=path))
        library.new_wanted.connect(self._new_in)
        library.open_wanted.connect(self.open_conversation)
        library.gone.connect(self._conversation_gone)
        library.left.connect(self._leave_project)
        library.ingest_wanted.connect(self.ingest.add)

    # -- life ---------------------------------------------------------------------------------
    async def start(self) -> None:
        """Fills the window after the assistant has started; what cannot be read is said and costs only itself."""
        self.apply_settings()
        steps = (self.setup.update, self.update_conversations, self._open_last)
        try:
            problems = [await self._trouble_of(step) for step in steps]
        finally:
            if not self.flow.opened_once:
                self.flow.new_conversation()
            self.sidebar.setEnabled(True)
        self._show_engine()
        for problem in filter(None, problems):
            self.say_problem(problem)
        self.conversation_panel.input.setFocus()
        self.show_progress(None)
        self.ingest.begin()
        self.rest.look()
        self.panels.refresh()

    async def _open_last(self) -> None:
        last = self._conversations.get(ConversationId(self._state.last_conversation()))
        if last is not None and not self.flow.opened_once:
            await self.flow.open(last)

    def show_progress(self, progress: Progress | None) -> None:
        """Shows a step of the start, or of getting the model ready."""
        self.status_line.show_progress(progress)
        self.first_run_page.show_progress(progress)

    def apply_settings(self) -> None:
        """Takes language, theme and text size from the settings."""
        language = str(self._assistant.setting("general.language"))
        choice = str(self._assistant.setting("appearance.theme"))
        size = self._assistant.setting("appearance.font_size")
        tr.use(language)
        use_qt_language(tr.language)
        pixels = size if isinstance(size, int) else None
        changed = theme.use(choice, conversation_pixels=pixels)
        self._state.keep_appearance(language, choice)
        self.menus.show_choice("general.language", language)
        self.menus.show_choice("appearance.theme", choice)
        self.first_run_page.show_language(language)
        if not changed:
            self.refresh_words()

    def refresh_words(self) -> None:
        """Renews every word and colour in the window and its dialogs."""
        self.menus.retranslate()
        refresh(self)
        self.sidebar.tree.viewport().update()
        self._show_tree()
        self._show_model()
        self.panels.refresh()
        self.rest.look()
        self.journal.refresh()
        self.endpoints.refresh()
        self.tools.refresh()
        self.background_tasks.refresh()
        if self._settings_dialog is not None:
            refresh(self._settings_dialog)

    def _start(self, name: str, work: Callable[[], Coroutine[object, object, object]]) -> None:
        self._tasks.start(name, self._guarded(work))

    async def _guarded(self, work: Callable[[], Coroutine[object, object, object]]) -> None:
        problem = await self._trouble_of(work)
        if problem is not None:
            self.say_problem(problem)

    async def _trouble_of(
        self, work: Callable[[], Coroutine[object, object, object]]
    ) -> Problem | None:
        # A callable, not a coroutine: one that is cancelled before its first step would leave the coroutine unawaited.
        try:
            await work()
        except ProblemError as error:
            return error.problem
        return None

    def say_problem(self, problem: Problem) -> None:
        """Says known trouble inline."""
        self.conversation_panel.problem_bar.say(problem)

    def say_crash(self, path: Path, _text: str) -> None:
        """Says that something unexpected happened and where it was written down."""
        self.status_line.say("status.crash", path=path)

    def tell_past_crash(self, traces: str) -> None:
        """Says that the last run ended unexpectedly; the report is made of versions and `traces`."""
        notice = CrashNotice(lambda: f"{facts(self._cpu_variant())}\n\n{traces}\n", self)
        self._column.insertWidget(0, notice)
        notice.show()

    def _cpu_variant(self) -> str:
        return self._assistant.engine_status().cpu_variant

    def come_forward(self) -> None:
        """Shows the window in front of others."""
        self.showNormal() if self.isMinimized() else self.show()
        self.raise_()
        self.activateWindow()

    # -- conversations ------------------------------------------------------------------------
    async def update_conversations(self) -> None:
        """Reads the lists of the sidebar anew."""
        self._projects = await self._assistant.library.projects()
        listed = await self._assistant.library.conversations()
        self._conversations = {item.id: item for item in listed}
        self._show_tree()
        await self.library.refresh(self._projects, self._conversations)
        shown = self.flow.shown.conversation_id
        if shown is not None and shown in self._conversations:
            self.flow.title_changed(self._conversations[shown])

    def _show_tree(self) -> None:
        projects = self._projects
        conversations = tuple(self._conversations.values())
        self.sidebar.tree.show_all(projects, conversations, self.flow.shown.conversation_id)

    def _titles_of(self, conversation_id: ConversationId) -> tuple[str, str]:
        """What a conversation and its project are called; empty where that is not known."""
        conversation = self._conversations.get(conversation_id)
        if conversation is None:
            return "", ""
        names = (item.name for item in self._projects if item.id == conversation.project_id)
        return conversation.title, next(names, "")

    def new_conversation(self) -> None:
        """Shows an empty conversation."""
        self.leave_models()
        self.flow.new_conversation()

    def _open_project_page(self) -> None:
        """The page of the project at hand; without one, a folder is chosen to be one."""
        if self.flow.project_id is None:
            self.ask_folder()
        else:
            self.library.open_page(self.flow.project_id)

    def _new_in(self, project_id: ProjectId) -> None:
        """Shows an empty conversation of a project."""
        self._choose_project(project_id)
        self.new_conversation()

    def _conversation_gone(self, conversation_id: ConversationId) -> None:
        if self.flow.shown.conversation_id == conversation_id:
            self.flow.new_conversation()

    def _leave_project(self) -> None:
        self.leave_models()
        self.conversation_panel.input.setFocus()

    def open_conversation(
        self, conversation_id: ConversationId, node_id: NodeId | None = None
    ) -> None:
        """Shows a stored conversation."""
        self.leave_models()
        self._start("open conversation", lambda: self._open(conversation_id, node_id))

    async def _open(self, conversation_id: ConversationId, node_id: NodeId | None) -> None:
        if conversation_id not in self._conversations:
            await self.update_conversations()
        conversation = self._conversations.get(conversation_id)
        if conversation is not None:
            await self.flow.open(conversation, node_id)

    def _conversation_opened(self, conversation_id: ConversationId | None) -> None:
        self.panels.show_conversation(conversation_id)
        self.sidebar.tree.select(conversation_id)
        conversation = self._conversations.get(conversation_id) if conversation_id else None
        if conversation is not None:
            self._choose_project(conversation.project_id)

    def _choose_project(self, project_id: ProjectId | None) -> None:
        self.flow.choose_project(project_id)
        names = {project.id: project.name for project in self._projects}
        self.conversation_panel.empty_state.show_project(
            names.get(project_id, "") if project_id else ""
        )

    async def _search(self, text: str) -> None:
        hits = await self._assistant.library.search(text)
        self.sidebar.show_hits(text, hits, self._clock.now_ms())

    def ask_folder(self) -> None:
        """Lets the user choose a folder and makes it a project."""
        self._choose_folder(
            "sidebar.open_folder",
            lambda path: self._start("open folder", lambda: self.open_folder(path)),
        )

    def _open_folders(self, paths: list[Path]) -> None:
        for path in paths:
            self._start("open folder", partial(self.open_folder, path))

    async def open_folder(self, path: Path) -> None:
        """Makes a folder a project and starts a conversation in it."""
        project = await self._assistant.library.open_project(path)
        await self.update_conversations()
        self._choose_project(project.id)
        self.flow.new_conversation()

    def ask_files(self) -> None:
        """Lets the user choose text files to attach."""
        self._choose_files("composer.attach", self.flow.attach_files)

    def _choose_files(self, key: str, take: Callable[[list[Path]], None]) -> None:
        dialog = QFileDialog(self, tr(key))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFiles)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.filesSelected.connect(lambda names: take([Path(name) for name in names]))
        dialog.open()

    def ask_ingest_folder(self) -> None:
        """Lets the user choose a folder to add to the memory."""
        self._choose_folder("ingest.chooser", lambda path: self.ingest.add([path]))

    def _choose_folder(self, key: str, take: Callable[[Path], None]) -> None:
        dialog = QFileDialog(self, tr(key))
        dialog.setFileMode(QFileDialog.FileMode.Directory)
        dialog.setOption(QFileDialog.Option.ShowDirsOnly)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda name: take(Path(name)))
        dialog.open()

    # -- models and status ------------------------------------------------------------------------
    def _status_changed(self) -> None:
        self._show_engine()
        self._start("models", self.setup.update)
        self.rest.look()
        self.panels.refresh()

    def _show_engine(self) -> None:
        status = self._assistant.engine_status()
        self.status_line.show_engine(status)
        self.first_run_page.show_engine(status)
        self._show_model()
        bar = self.conversation_panel.problem_bar
        if (
            bar.problem is not None
            and bar.problem == self._engine_problem
            and status.problem is None
        ):
            bar.say(None)
        self._engine_problem = status.problem
        if status.phase is EnginePhase.READY or self.endpoints.chosen() is not None:
            if self._page_is_forced:
                self.leave_models()
            self.flow.engine_ready()
        elif status.phase is EnginePhase.FAILED and status.problem is not None:
            self.say_problem(status.problem)

    def _show_model(self) -> None:
        status = self._assistant.engine_status()
        chosen = [
            model.name for model in self.setup.models if model.selected and model.purpose == "chat"
        ]
        name = status.model_name or (chosen[0] if chosen else tr("engine.no_model"))
        tip = tr("conversation.model", name=name)
        server = self.endpoints.chosen()
        if server is not None:
            name, tip = button_words(server)
        self.status_line.show_server(status_words(server))
        there = server.host if server is not None and not server.loopback else ""
        self.conversation_panel.empty_state.show_server(there)
        button = self.conversation_panel.model_button
        button.setText(f"{name} ▾".replace("&", "&&"))
        button.setAccessibleName(tip)
        button.setToolTip(tip)
        judge = wording.judge(self._assistant.mind.judge_skills(), status.model_name)
        self.panels.ledger.show_judge(judge)
        self.conversation_panel.view.judge = judge

    def _fill_model_menu(self) -> None:
        self.setup.fill_menu(self._model_menu)
        self.endpoints.extend_menu(self._model_menu)

    def _endpoints_changed(self) -> None:
        """Another server answers, or the list of them is another."""
        self._show_engine()
        row = self._setting_row(CHOSEN)
        if row is not None:
            row.show_choices(self.endpoints.names())
            self._show_setting(CHOSEN)

    def _show_mood(self, word: str, total: float) -> None:
        button = self.conversation_panel.mood_button
        button.setText(f"◐ {tr(f'fatigue.{word}')}")
        button.setAccessibleName(tr("conversation.mood", total=f"{total:.2f}"))
        button.setToolTip(tr("conversation.mood", total=f"{total:.2f}"))

    def _setup_needed(self, needed: bool) -> None:
        ready = self._assistant.engine_status().phase is EnginePhase.READY
        answers = ready or self.endpoints.chosen() is not None
        if needed and not answers and self.pages.currentWidget() is not self.first_run_page:
            self.show_models(forced=True)

    def show_models(self, *, forced: bool) -> None:
        """Shows the models page; a forced one goes away by itself when the model answers."""
        self._page_is_forced = forced
        self.pages.setCurrentWidget(self.first_run_page)

    def leave_models(self) -> None:
        """Goes back to the conversation."""
        self._page_is_forced = False
        self.pages.setCurrentWidget(self.conversation_panel)

    # -- settings and commands --------------------------------------------------------------------
    def choose(self, key: str, value: object) -> None:
        """Changes a setting."""
        self._writers.start(f"setting {key}", self.change_setting(key, value))

    async def change_setting(self, key: str, value: object) -> None:
        """Changes a setting and shows the result, or why it was refused."""
        refused = ""
        try:
            if key == "models.chat":
                await self._assistant.select_model(str(value))
            elif key == CHOSEN:
                await self._assistant.endpoints.choose(str(value))
            else:
                await self._assistant.change_setting(key, value)
        except ValueError as error:
            refused = tr("settings.refused", reason=error)
        except ProblemError as error:
            self.say_problem(error.problem)
            self._show_setting(key)
            refused = wording.problem(error.problem)
        else:
            self._show_setting(key)
        row = self._setting_row(key)
        if refused and row is not None:
            row.show_trouble(refused)
        if key.startswith(("general.", "appearance.")):
            self.apply_settings()
        if key.startswith("network."):
            self.endpoints.refresh()
            self.tools.show_servers()
            self._show_engine()

    def _setting_row(self, key: str) -> SettingRow | None:
        """The row of an open settings dialog; looked up anew after every wait, for the dialog may be closed."""
        return self._settings_dialog.rows[key] if self._settings_dialog is not None else None

    def _show_setting(self, key: str) -> None:
        row = self._setting_row(key)
        if row is not None:
            row.show_value(row.setting.validate(self._assistant.setting(key)))

    def open_settings(self) -> None:
        """Shows the settings beside the work."""
        if self._settings_dialog is None:
            names = {"models.chat": self.setup.names(), CHOSEN: self.endpoints.names()}
            dialog = SettingsDialog(self._assistant.setting, names, self)
            dialog.changed.connect(self.choose)
            dialog.servers_wanted.connect(self.endpoints.open)
            dialog.tools_wanted.connect(self.tools.open)
            dialog.models_wanted.connect(lambda: self.show_models(forced=False))
            dialog.destroyed.connect(self._settings_closed)
            self._settings_dialog = dialog
        self._settings_dialog.show()
        self._settings_dialog.raise_()
        self._settings_dialog.search_field.setFocus()

    def _settings_closed(self) -> None:
        self._settings_dialog = None

    def open_about(self) -> None:
        """Shows what GrowBox is made of; the list follows when it is read."""
        judge = wording.judge(
            self._assistant.mind.judge_skills(), self._assistant.engine_status().model_name
        )
        dialog = AboutDialog(self._state.data_path, self._cpu_variant, self, judge=judge)
        dialog.show()
        self._start("notices", lambda: self._fill_about(dialog))

    async def _fill_about(self, dialog: AboutDialog) -> None:
        notices = await asyncio.to_thread(load_notices)
        if isValid(dialog):  # it may be closed by now
            dialog.show_notices(notices)

    def run_command(self, name: str) -> None:
        """Carries a menu command out."""
        if not self.sidebar.isEnabled() and name not in _ALWAYS:
            return
        if name.startswith("panel_"):
            self._toggle_panel(name.removeprefix("panel_"))
            return
        panel = self.conversation_panel
        commands: dict[str, Callable[[], object]] = {
            "new_conversation": self.new_conversation,
            "open_folder": self.ask_folder,
            "attach": self.ask_files,
            "ingest_files": lambda: self._choose_files("ingest.chooser", self.ingest.add),
            "ingest_folder": self.ask_ingest_folder,
            "models": lambda: self.show_models(forced=False),
            "servers": self.endpoints.open,
            "tools": self.tools.open,
            "tasks": self.background_tasks.open,
            "settings": self.open_settings,
            "quit": self.close,
            "input": panel.input.setFocus,
            "send": panel.input.submit,
            "stop": self.flow.stop,
            "rename": lambda: self.sidebar.tree.rename(self.flow.shown.conversation_id),
            "project": self._open_project_page,
            "export": lambda: self.library.ask_export(self.flow.shown.conversation_id),
            "delete": lambda: self.library.ask_delete(self.flow.shown.conversation_id),
            "find": panel.open_find,
            "search": self._focus_search,
            "reset_layout": self.arrange_docks,
            "journal": self.journal.open,
            "dream": self.rest.dream,
            "dream_all": self.rest.dream_all,
            "sleep": self.rest.sleep,
            "nap": self.rest.nap,
            "wake": self.rest.wake,
            "keys": lambda: KeysDialog(shortcuts(), self).show(),
            "decisions": self.decisions.open,
            "about": self.open_about,
        }
        commands[name]()

    def _focus_search(self) -> None:
        self.sidebar.search_field.setFocus()
        self.sidebar.search_field.selectAll()

    def _toggle_panel(self, key: str) -> None:
        """Shows and focuses a panel; hides it when it was in front already."""
        dock = self.panels.docks[key]
        if dock.isVisible() and not dock.visibleRegion().isEmpty():
            dock.hide()
        else:
            dock.show()
            dock.raise_()
            dock.widget().setFocus()
        self._docks_changed()

    def _docks_changed(self) -> None:
        for key, dock in self.panels.docks.items():
            self.menus.action(f"panel_{key}").setChecked(not dock.isHidden())
            dock.show_tabbed(tabbed=bool(self.tabifiedDockWidgets(dock)))

    # -- events -------------------------------------------------------------------------------
    @override
    def closeEvent(self, event: QCloseEvent) -> None:
        """Closing is asked for; the application does it in order."""
        event.ignore()
        self.close_wanted.emit()

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if local_files(event.mimeData()):
            event.acceptProposedAction()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        """What is dropped beside the conversation is taken like what is dropped on it."""
        self.flow.take_files(local_files(event.mimeData()))
        event.acceptProposedAction()

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self.conversation_panel.composer.fit()
