"""The left side: new conversation, search over message bodies, projects with their conversations, settings."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, QTimer, Signal
from PySide6.QtGui import QContextMenuEvent, QDragEnterEvent, QDropEvent, QIcon, QKeyEvent
from PySide6.QtWidgets import (
    QAbstractItemDelegate,
    QAbstractItemView,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QStackedWidget,
    QStyledItemDelegate,
    QStyleOptionViewItem,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.library_face import SearchHit
from growbox_app.text import tr
from memory.values import Conversation, ConversationId, Project, ProjectId
from ui.icons import icon
from ui.panels.controls import IconButton, QuietLabel, TextButton
from ui.panels.journal_page import JournalButton
from ui.panels.project_page import folders_in
from ui.panels.queue_model import AnyIndex
from ui.panels.sidebar_menus import RowMenu
from ui.view_models import wording
from ui.view_models.conversations import groups
from ui.view_models.display import one_line

SEARCH_DELAY_MS = 180
ROW_PIXELS = 28
_ID = Qt.ItemDataRole.UserRole
_PROJECT = Qt.ItemDataRole.UserRole.value + 1


class TitleDelegate(QStyledItemDelegate):
    """Rows of an even height; Enter during a composition belongs to the input method."""

    @override
    def sizeHint(self, option: QStyleOptionViewItem, index: AnyIndex) -> QSize:
        return QSize(super().sizeHint(option, index).width(), ROW_PIXELS)


class ConversationTree(QTreeWidget):
    """Projects and conversations.

    Signals: `opened(ConversationId)`, `project_chosen(ProjectId | None)`, `renamed(ConversationId, str)`,
    `delete_wanted(ConversationId)`, `export_wanted(ConversationId)`, `moved(ConversationId, ProjectId | None)`; of a project
    `page_wanted(ProjectId)`, `new_here_wanted(ProjectId)`, `remove_wanted(ProjectId)`.
    """

    opened = Signal(object)
    project_chosen = Signal(object)
    renamed = Signal(object, str)
    delete_wanted = Signal(object)
    export_wanted = Signal(object)
    moved = Signal(object, object)
    page_wanted = Signal(object)
    new_here_wanted = Signal(object)
    remove_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversation_tree")
        self.setProperty("look", "sidebar")
        self.setHeaderHidden(True)
        self.setIndentation(14)
        self.setColumnCount(1)
        self.setItemDelegate(TitleDelegate(self))
        self.setEditTriggers(QAbstractItemView.EditTrigger.EditKeyPressed)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.itemClicked.connect(self._open)
        self.itemActivated.connect(self._open)
        self.itemChanged.connect(self._changed)
        self.projects: tuple[Project, ...] = ()
        self._titles: dict[ConversationId, str] = {}
        self._project_of: dict[ConversationId, ProjectId | None] = {}
        self._collapsed: set[str] = set()
        self._busy: ConversationId | None = None
        self._waiting: ConversationId | None = None
        self.itemCollapsed.connect(lambda item: self._collapsed.add(item.data(0, _PROJECT)))
        self.itemExpanded.connect(lambda item: self._collapsed.discard(item.data(0, _PROJECT)))

    def show_all(
        self,
        projects: tuple[Project, ...],
        conversations: tuple[Conversation, ...],
        current: ConversationId | None,
    ) -> None:
        """Shows the lists; scroll place and an open editor survive when nothing changed."""
        if self.state() == QAbstractItemView.State.EditingState:
            return
        place = self.verticalScrollBar().value()
        self.blockSignals(True)
        self.clear()
        self.projects = projects
        self._titles = {conversation.id: conversation.title for conversation in conversations}
        self._project_of = {item.id: item.project_id for item in conversations}
        for group in groups(projects, conversations):
            parent = (
                self._project_item(group.project) if group.project else self.invisibleRootItem()
            )
            for conversation in group.conversations:
                parent.addChild(self._conversation_item(conversation))
            if group.project is not None:
                parent.setExpanded(group.project.id not in self._collapsed)
        self.select(current)
        self.blockSignals(False)
        self.verticalScrollBar().setValue(place)

    def _project_item(self, project: Project) -> QTreeWidgetItem:
        item = QTreeWidgetItem([project.name])
        item.setData(0, _PROJECT, project.id)
        item.setToolTip(0, project.path)
        item.setIcon(0, icon("folder"))
        font = item.font(0)
        font.setWeight(font.Weight.DemiBold)
        item.setFont(0, font)
        self.addTopLevelItem(item)
        return item

    def _conversation_item(self, conversation: Conversation) -> QTreeWidgetItem:
        item = QTreeWidgetItem([one_line(conversation.title) or tr("conversation.untitled")])
        item.setData(0, _ID, conversation.id)
        item.setFlags(item.flags() | Qt.ItemFlag.ItemIsEditable)
        self._show_mark(item)
        return item

    def _show_mark(self, item: QTreeWidgetItem) -> None:
        """Says on a row that its answer is being made, or that something waits for the user."""
        conversation_id = item.data(0, _ID)
        title = self._titles.get(conversation_id, "")
        if conversation_id == self._waiting:
            item.setIcon(0, icon("circle-alert", "heat_text"))
            title = f"{title}\n{tr('agent.waits')}"
        elif conversation_id == self._busy:
            item.setIcon(0, icon("ellipsis", "accent"))
        else:
            item.setIcon(0, QIcon())
        item.setToolTip(0, title)
        item.setData(0, Qt.ItemDataRole.AccessibleDescriptionRole, title)

    def select(self, conversation_id: ConversationId | None) -> None:
        """Marks the open conversation."""
        item = self._find(conversation_id)
        self.setCurrentItem(item)  # type: ignore[arg-type]  # None clears it; the stub does not know

    def mark_busy(self, conversation_id: ConversationId | None) -> None:
        """Marks the conversation whose answer is being made."""
        before, self._busy = self._busy, conversation_id
        self._mark_again(before, conversation_id)

    def mark_waiting(self, conversation_id: ConversationId | None) -> None:
        """Marks the conversation where something waits for the user."""
        before, self._waiting = self._waiting, conversation_id
        self._mark_again(before, conversation_id)

    def _mark_again(self, *changed: ConversationId | None) -> None:
        self.blockSignals(True)
        for item in (self._find(conversation_id) for conversation_id in changed):
            if item is not None:
                self._show_mark(item)
        self.blockSignals(False)
        self.viewport().update()

    def _find(self, conversation_id: ConversationId | None) -> QTreeWidgetItem | None:
        if conversation_id is None:
            return None
        stack = [self.topLevelItem(at) for at in range(self.topLevelItemCount())]
        while stack:
            item = stack.pop()
            if item is None:
                continue
            if item.data(0, _ID) == conversation_id:
                return item
            stack += [item.child(at) for at in range(item.childCount())]
        return None

    def rename(self, conversation_id: ConversationId | None) -> None:
        """Opens the inline editor of a conversation's title."""
        item = self._find(conversation_id)
        if item is not None:
            self.editItem(item)

    def _open(self, item: QTreeWidgetItem) -> None:
        conversation_id = item.data(0, _ID)
        if conversation_id is not None:
            self.opened.emit(ConversationId(conversation_id))
        else:
            self.project_chosen.emit(ProjectId(item.data(0, _PROJECT)))

    def _changed(self, item: QTreeWidgetItem) -> None:
        conversation_id = item.data(0, _ID)
        title = item.text(0).strip()
        if conversation_id is None or title == self._titles.get(conversation_id):
            return
        if not title:
            self.blockSignals(True)
            item.setText(0, self._titles.get(conversation_id, ""))
            self.blockSignals(False)
            return
        self._titles[conversation_id] = title
        self.renamed.emit(ConversationId(conversation_id), title)

    @override
    def contextMenuEvent(self, event: QContextMenuEvent) -> None:
        """The menu of a row: under the mouse, or – by the keyboard – of the row that has it."""
        by_key = event.reason() is QContextMenuEvent.Reason.Keyboard
        item = self.currentItem() if by_key else self.itemAt(event.pos())
        if item is None:
            return
        place = self.visualItemRect(item).bottomLeft() if by_key else event.pos()
        self.menu_of(item).show_at(self.viewport().mapToGlobal(place))

    def menu_of(self, item: QTreeWidgetItem) -> RowMenu:
        """What can be done with a row."""
        menu = RowMenu(self)
        if item.data(0, _ID) is None:
            self._offer_project(menu, ProjectId(item.data(0, _PROJECT)))
        else:
            self._offer_conversation(menu, item, ConversationId(item.data(0, _ID)))
        return menu

    def _offer_project(self, menu: RowMenu, project_id: ProjectId) -> None:
        menu.offer("sidebar.new_here", lambda: self.new_here_wanted.emit(project_id))
        menu.offer("sidebar.open_project", lambda: self.page_wanted.emit(project_id))
        menu.addSeparator()
        menu.offer("sidebar.remove_project", lambda: self.remove_wanted.emit(project_id))

    def _offer_conversation(
        self, menu: RowMenu, item: QTreeWidgetItem, conversation_id: ConversationId
    ) -> None:
        menu.offer("sidebar.rename", lambda: self.editItem(item), "F2")
        menu.offer_projects(
            self.projects,
            self._project_of.get(conversation_id),
            lambda project_id: self.moved.emit(conversation_id, project_id),
        )
        menu.offer("sidebar.export", lambda: self.export_wanted.emit(conversation_id))
        menu.addSeparator()
        menu.offer("sidebar.delete", lambda: self.delete_wanted.emit(conversation_id), "Del")

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Delete asks about a conversation, or about taking a project out of the list."""
        item = self.currentItem()
        if item is None or event.key() not in (Qt.Key.Key_Delete, Qt.Key.Key_Backspace):
            super().keyPressEvent(event)
        elif item.data(0, _ID) is not None:
            self.delete_wanted.emit(ConversationId(item.data(0, _ID)))
        else:
            self.remove_wanted.emit(ProjectId(item.data(0, _PROJECT)))

    @override
    def closeEditor(self, editor: QWidget, hint: QAbstractItemDelegate.EndEditHint) -> None:
        super().closeEditor(editor, hint)
        self.setFocus()


class SearchResults(QListWidget):
    """Messages found by the search box.

    Signals: `opened(ConversationId, NodeId)`.
    """

    opened = Signal(object, object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "sidebar")
        self.setWordWrap(True)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self.itemClicked.connect(self._open)
        self.itemActivated.connect(self._open)

    def show_hits(self, hits: tuple[SearchHit, ...], now_ms: int) -> None:
        """Shows what was found."""
        self.clear()
        for hit in hits:
            title = one_line(hit.conversation.title, 40) or tr("conversation.untitled")
            head = f"{title} · {wording.age(hit.node.created_at_ms, now_ms)}"
            item = QListWidgetItem(f"{head}\n{one_line(hit.excerpt, 90)}")
            item.setData(_ID, (hit.conversation.id, hit.node.id))
            self.addItem(item)

    def _open(self, item: QListWidgetItem) -> None:
        conversation_id, node_id = item.data(_ID)
        self.opened.emit(conversation_id, node_id)


class SearchField(QLineEdit):
    """The search box; Escape clears it, Down goes to the results."""

    left_down = Signal()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape and self.text():
            self.clear()
        elif event.key() == Qt.Key.Key_Down:
            self.left_down.emit()
        else:
            super().keyPressEvent(event)


class Sidebar(QFrame):
    """The whole left side.

    Signals: `new_wanted()`, `folder_wanted()`, `folders_dropped(list[Path])`, `settings_wanted()`, `search_wanted(str)`,
    `journal_wanted()`; the rest come from `tree` and `results`.
    """

    new_wanted = Signal()
    folders_dropped = Signal(object)
    folder_wanted = Signal()
    settings_wanted = Signal()
    search_wanted = Signal(str)
    journal_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("sidebar")
        self.setProperty("look", "sidebar")
        self.setMinimumWidth(180)
        self.setAcceptDrops(True)
        self.tree = ConversationTree()
        self.results = SearchResults()
        self._searched = ""
        self._nothing = QuietLabel()
        self._nothing.setWordWrap(True)
        self._nothing.setAlignment(Qt.AlignmentFlag.AlignTop)
        self._nothing.setContentsMargins(12, 8, 12, 0)
        self._pages = QStackedWidget()
        for page in (self.tree, self.results, self._nothing):
            self._pages.addWidget(page)
        self.search_field = SearchField()
        self.search_field.setObjectName("search_field")
        self.search_field.setClearButtonEnabled(True)
        self.new_button = TextButton("sidebar.new", icon_name="plus", kind="row")
        self.folder_button = IconButton("folder-plus", "sidebar.open_folder")
        self.settings_button = TextButton("sidebar.settings", icon_name="settings", kind="row")
        self.journal_button = JournalButton()
        self.journal_button.clicked.connect(self.journal_wanted)
        self._arrange()
        self._timer = QTimer(self)
        self._timer.setSingleShot(True)
        self._timer.setInterval(SEARCH_DELAY_MS)
        self._timer.timeout.connect(lambda: self.search_wanted.emit(self.search_field.text()))
        self.search_field.textChanged.connect(self._typed)
        self.search_field.left_down.connect(self._enter_results)
        self.new_button.clicked.connect(self.new_wanted)
        self.folder_button.clicked.connect(self.folder_wanted)
        self.settings_button.clicked.connect(self.settings_wanted)
        self.retranslate()

    def _arrange(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(2)
        top.addWidget(self.new_button, 1)
        top.addWidget(self.folder_button)
        column = QVBoxLayout(self)
        column.setContentsMargins(8, 8, 8, 8)
        column.setSpacing(6)
        column.addLayout(top)
        column.addWidget(self.search_field)
        column.addWidget(self._pages, 1)
        column.addWidget(self.journal_button)
        column.addWidget(self.settings_button)

    def _typed(self, text: str) -> None:
        if text.strip():
            self._timer.start()
        else:
            self._timer.stop()
            self._pages.setCurrentWidget(self.tree)

    def _enter_results(self) -> None:
        if self._pages.currentWidget() is self.results and self.results.count():
            self.results.setCurrentRow(0)
            self.results.setFocus()
        else:
            self.tree.setFocus()

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        """A folder that is dropped here becomes a project; anything else is the window's."""
        if folders_in(event.mimeData()):
            event.acceptProposedAction()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        self.folders_dropped.emit(folders_in(event.mimeData()))
        event.acceptProposedAction()

    def show_hits(self, text: str, hits: tuple[SearchHit, ...], now_ms: int) -> None:
        """Shows the answer to a search, unless another text was typed meanwhile."""
        if text != self.search_field.text() or not text.strip():
            return
        self.results.show_hits(hits, now_ms)
        self._searched = text
        self._say_nothing()
        self._pages.setCurrentWidget(self.results if hits else self._nothing)

    def _say_nothing(self) -> None:
        self._nothing.setText(tr("sidebar.nothing_found", text=one_line(self._searched, 40)))

    def retranslate(self) -> None:
        """Says everything again."""
        self._say_nothing()
        self.tree.setAccessibleName(tr("sidebar.conversations"))
        self.results.setAccessibleName(tr("sidebar.results"))
        self.search_field.setPlaceholderText(tr("sidebar.search"))
        self.search_field.setAccessibleName(tr("sidebar.search"))
