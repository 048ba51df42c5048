"""The background tasks: what runs since when and where, what it says, and how to stop it. Beside the work, never modal.

GUI thread. Rows are kept by the number of their task, so that focus, choice and place stay while times and output go on.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QKeyEvent, QTextCursor
from PySide6.QtWidgets import (
    QDialog,
    QHBoxLayout,
    QHeaderView,
    QPlainTextEdit,
    QSplitter,
    QTreeWidget,
    QTreeWidgetItem,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.task_face import BackgroundTask, TaskOutput, TaskState
from growbox_app.text import tr
from memory.values import ConversationId
from ui.panels.controls import QuietLabel, TextButton
from ui.theme import theme
from ui.view_models import tasks as words
from ui.view_models import wording

SIZE = (900, 560)
ROW_PIXELS = 30
BUTTON_GAP = 8
COLUMNS = ("command", "state", "began", "where", "")
"""The last holds the buttons."""
WIDTHS = (220, 240, 72, 190)
_LIST_SHARE = (2, 3)

Titles = Callable[[ConversationId], tuple[str, str]]


class TaskTable(QTreeWidget):
    """Rows with a key to stop what they stand for.

    Signals: `delete_pressed()`.
    """

    delete_pressed = Signal()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Delete:
            self.delete_pressed.emit()
        else:
            super().keyPressEvent(event)


class TasksDialog(QDialog):
    """List and output. `titles` names a conversation and its project.

    Signals: `stop_wanted(number)`, `stop_all_wanted()`, `chosen()` when another task is to be shown, `conversation_wanted(ConversationId)`.
    """

    stop_wanted = Signal(int)
    stop_all_wanted = Signal()
    chosen = Signal()
    conversation_wanted = Signal(object)

    def __init__(self, titles: Titles, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("tasks_dialog")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self._titles = titles
        self._tasks: dict[int, BackgroundTask] = {}
        self._rows: dict[int, QTreeWidgetItem] = {}
        self._now_ms = 0
        self._said = TaskOutput()
        self._shown = 0
        self._make_table()
        self.output = QPlainTextEdit()
        self.output.setReadOnly(True)
        self.output.setTabChangesFocus(True)
        self.output.setUndoRedoEnabled(False)
        self._empty = QuietLabel()
        self._empty.setWordWrap(True)
        self._empty.setAlignment(Qt.AlignmentFlag.AlignCenter)
        self._hint = QuietLabel()
        self.stop_all_button = TextButton("tasks.stop_all", icon_name="circle-stop")
        self.stop_all_button.clicked.connect(self.stop_all_wanted)
        self._lay_out()
        room = self.screen().availableGeometry()
        self.resize(min(SIZE[0], room.width() - 64), min(SIZE[1], room.height() - 96))
        self.retranslate()
        self.restyle()

    def _make_table(self) -> None:
        self.table = table = TaskTable()
        table.setRootIsDecorated(False)
        table.setUniformRowHeights(True)
        table.setColumnCount(len(COLUMNS))
        header = table.header()
        header.setStretchLastSection(False)
        for column, width in enumerate(WIDTHS):
            table.setColumnWidth(column, width)
        header.setSectionResizeMode(0, QHeaderView.ResizeMode.Stretch)
        header.setSectionResizeMode(len(COLUMNS) - 1, QHeaderView.ResizeMode.Fixed)
        table.currentItemChanged.connect(lambda _item, _before: self.chosen.emit())
        table.itemActivated.connect(lambda item, _column: self._go(item))
        table.delete_pressed.connect(self._stop_current)

    def _lay_out(self) -> None:
        self._split = split = QSplitter(Qt.Orientation.Vertical)
        split.setChildrenCollapsible(False)
        split.setHandleWidth(8)
        for widget, share in zip((self.table, self.output), _LIST_SHARE, strict=True):
            split.addWidget(widget)
            split.setStretchFactor(split.count() - 1, share)
        split.setSizes([share * 100 for share in _LIST_SHARE])
        close = TextButton("source.close")
        close.clicked.connect(self.close)
        for button in (self.stop_all_button, close):
            button.setAutoDefault(False)  # Enter in the list or in the output is not meant for it
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self._hint)
        buttons.addStretch(1)
        buttons.addWidget(self.stop_all_button)
        buttons.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(8)
        column.addWidget(split, 1)
        column.addWidget(self._empty, 1)
        column.addLayout(buttons)

    # -- what is shown --------------------------------------------------------------------------
    def show_tasks(self, tasks: Sequence[BackgroundTask], now_ms: int) -> None:
        """Lists the tasks as they come; the one that was chosen stays so."""
        self._now_ms = now_ms
        self._tasks = {task.number: task for task in tasks}
        for number in [number for number in self._rows if number not in self._tasks]:
            item = self._rows.pop(number)
            self.table.takeTopLevelItem(self.table.indexOfTopLevelItem(item))
        for at, task in enumerate(tasks):
            if task.number not in self._rows:
                self._rows[task.number] = item = QTreeWidgetItem()
                item.setData(0, Qt.ItemDataRole.UserRole, task.number)
                item.setSizeHint(0, QSize(0, ROW_PIXELS))
                self.table.insertTopLevelItem(at, item)
            self._fill(self._rows[task.number], task)
        if self.table.currentItem() is None and tasks:
            self.table.setCurrentItem(self._rows[tasks[0].number])
        self._split.setVisible(bool(tasks))
        self._empty.setVisible(not tasks)
        self._hint.setVisible(bool(tasks))
        self.stop_all_button.setVisible(bool(tasks))
        self.stop_all_button.setEnabled(any(task.state is TaskState.RUNNING for task in tasks))

    def current(self) -> int:
        """The number of the task whose output is to be shown; 0: none."""
        return _number(self.table.currentItem())

    def show_output(self, said: TaskOutput) -> None:
        """Shows what the chosen task says. The place stays where the reader put it; at the end it follows the end."""
        number = self.current()
        if said != self._said or number != self._shown:
            another, self._shown, self._said = number != self._shown, number, said
            self._write(follow=another)

    def button_of(self, number: int) -> TextButton | None:
        """The button that stops a task; None for one that is over, or is being stopped."""
        button = self.table.itemWidget(self._rows[number], len(COLUMNS) - 1)
        return button if isinstance(button, TextButton) else None

    # -- inside ---------------------------------------------------------------------------------
    def _fill(self, item: QTreeWidgetItem, task: BackgroundTask) -> None:
        cells = (
            words.command(task),
            words.state(task),
            wording.clock_time(task.began_at_ms, self._now_ms),
            words.where(task, self._titles(task.conversation_id)),
        )
        tips = (task.command, cells[1], "", f"{cells[3]}\n{tr('tasks.go_tip')}")
        for column, (cell, tip) in enumerate(zip(cells, tips, strict=True)):
            item.setText(column, cell)
            item.setToolTip(column, tip)
        self._fill_button(item, task)

    def _fill_button(self, item: QTreeWidgetItem, task: BackgroundTask) -> None:
        button = self.button_of(task.number)
        if task.state is not TaskState.RUNNING:
            if button is not None:
                self._keep_focus(button)
                self.table.removeItemWidget(item, len(COLUMNS) - 1)
            return
        if button is None:
            button = TextButton("tasks.stop", icon_name="circle-stop", kind="quiet")
            button.setAutoDefault(False)
            number = task.number
            button.clicked.connect(lambda: self.stop_wanted.emit(number))
            self.table.setItemWidget(item, len(COLUMNS) - 1, button)
            self._make_room()
        name = tr("tasks.stop_named", number=task.number, command=words.command(task))
        button.setAccessibleName(name)
        button.setToolTip(tr("tasks.stop_tip"))

    def _make_room(self) -> None:
        """A column does not ask how wide the widgets in it would be."""
        buttons = [button for button in map(self.button_of, self._rows) if button is not None]
        width = max((button.sizeHint().width() for button in buttons), default=0)
        self.table.setColumnWidth(len(COLUMNS) - 1, width + BUTTON_GAP)

    def _keep_focus(self, button: QWidget) -> None:
        """A button that goes must not take the keyboard with it to wherever comes next."""
        if button.hasFocus():
            self.table.setFocus()

    def _write(self, *, follow: bool = False) -> None:
        task = self._tasks.get(self._shown)
        text = words.output(task, self._said) if task is not None else ""
        bar = self.output.verticalScrollBar()
        at_end, place = follow or bar.value() >= bar.maximum(), bar.value()
        before = self.output.toPlainText()
        if before and text.startswith(before):
            # Appended, so that what the reader has marked stays marked.
            cursor = QTextCursor(self.output.document())
            cursor.movePosition(QTextCursor.MoveOperation.End)
            cursor.insertText(text[len(before) :])
        else:
            self.output.setPlainText(text)
        bar.setValue(bar.maximum() if at_end else place)

    def _stop_current(self) -> None:
        task = self._tasks.get(self.current())
        if task is not None and task.state is TaskState.RUNNING:
            self.stop_wanted.emit(task.number)

    def _go(self, item: QTreeWidgetItem) -> None:
        task = self._tasks.get(_number(item))
        if task is not None and any(self._titles(task.conversation_id)):
            self.conversation_wanted.emit(task.conversation_id)

    def retranslate(self) -> None:
        """Says everything again."""
        self.setWindowTitle(tr("tasks.title"))
        self.table.setAccessibleName(tr("tasks.title"))
        self.table.setHeaderLabels([tr(f"tasks.column_{name}") if name else "" for name in COLUMNS])
        self.output.setAccessibleName(tr("tasks.output"))
        self._empty.setText(tr("tasks.empty"))
        self._hint.setText(tr("tasks.hint"))
        self._write()
        self.show_tasks(tuple(self._tasks.values()), self._now_ms)
        self._make_room()

    def restyle(self) -> None:
        """Takes the font of the theme."""
        self.output.setFont(theme.code_font())


def _number(item: QTreeWidgetItem | None) -> int:
    return int(item.data(0, Qt.ItemDataRole.UserRole)) if item is not None else 0
