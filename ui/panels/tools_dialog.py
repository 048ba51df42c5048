"""The servers that bring tools, and what was learned about tools: set up, looked at, forgotten. Beside the work, never modal.

Shows and asks; what is saved, started and forgotten is the flow's business. A secret is typed here and never shown again. GUI thread.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QDialog,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QListWidget,
    QListWidgetItem,
    QPlainTextEdit,
    QVBoxLayout,
    QWidget,
)

from growbox_app.mcp_client.values import ServerSpec, ServerState, ServerStatus, ToolSpec
from growbox_app.mcp_client.words import place_of, spec_of, status_words, trouble_words
from growbox_app.text import tr
from growbox_app.toolbox.face import Remembered
from memory.values import ProjectId
from ui.panels.controls import QuietLabel, TextButton, Words, horizontal_line
from ui.view_models.display import one_line

SIZE = (780, 640)
LIST_PIXELS = 210
SECRETS_PIXELS = 58
LESSONS_PIXELS = 96
TOOL_CHARACTERS = 160


class ToolsDialog(QDialog):
    """Everything about tools.

    Signals: `save_wanted(ServerSpec, dict secrets)`, `check_wanted(str name)`, `remove_wanted(str name)`,
    `safe_wanted(str name, str tool, bool safe)`, `forget_wanted(Remembered | None)`.
    """

    save_wanted = Signal(object, object)
    check_wanted = Signal(str)
    remove_wanted = Signal(str)
    safe_wanted = Signal(str, str, bool)
    forget_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("tools_dialog")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self._servers: tuple[ServerStatus, ...] = ()
        self._lessons: tuple[Remembered, ...] = ()
        self._projects: Mapping[ProjectId, str] = {}
        self._keyring = True
        self._sure = False
        self._make_servers()
        self._make_lessons()
        self._lay_out()
        self._connect()
        room = self.screen().availableGeometry()
        self.resize(min(SIZE[0], room.width() - 64), min(SIZE[1], room.height() - 96))
        self.retranslate()
        self._fill()

    def _make_servers(self) -> None:
        self.list = QListWidget()
        self.list.setFixedWidth(LIST_PIXELS)
        self.new_button = TextButton("tools.add", icon_name="plus")
        self.name_field = QLineEdit()
        self.place_field = QLineEdit()
        self.secrets_field = QPlainTextEdit()
        self.secrets_field.setFixedHeight(SECRETS_PIXELS)
        self.secrets_field.setTabChangesFocus(True)
        self.save_button = TextButton("tools.save", icon_name="save", kind="primary")
        self.check_button = TextButton("tools.check", icon_name="rotate-ccw")
        self.remove_button = TextButton("tools.remove", icon_name="x")
        self.tools = QListWidget()
        self._state = QuietLabel()
        self._hint = QuietLabel()
        self._unasked = Words("tools.unasked", look="quiet")
        self._said = QuietLabel()
        for label in (self._state, self._hint, self._said):
            label.setWordWrap(True)
        self._hint.setContentsMargins(0, 2, 0, 2)

    def _make_lessons(self) -> None:
        self.lessons = QListWidget()
        self.lessons.setFixedHeight(LESSONS_PIXELS)
        self.forget_button = TextButton("lessons.forget")
        self.forget_all_button = TextButton("lessons.forget_all")
        self._no_lessons = Words("lessons.none", look="quiet")

    # -- arranging ------------------------------------------------------------------------------
    def _lay_out(self) -> None:
        left = QVBoxLayout()
        left.setSpacing(8)
        left.addWidget(self.list, 1)
        left.addWidget(self.new_button, 0, Qt.AlignmentFlag.AlignLeft)
        halves = QHBoxLayout()
        halves.setSpacing(16)
        halves.addLayout(left)
        halves.addLayout(self._right(), 1)
        intro = Words("tools.intro", look="quiet")
        lessons_intro = Words("lessons.intro", look="quiet")
        for label in (intro, lessons_intro):
            label.setWordWrap(True)
        forget = QHBoxLayout()
        forget.setSpacing(8)
        forget.addWidget(self.forget_button)
        forget.addWidget(self.forget_all_button)
        forget.addStretch(1)
        outer = QVBoxLayout(self)
        outer.setContentsMargins(20, 16, 20, 16)
        outer.setSpacing(8)
        outer.addWidget(intro)
        outer.addLayout(halves, 1)
        outer.addWidget(horizontal_line())
        outer.addWidget(Words("lessons.title", look="section"))
        outer.addWidget(lessons_intro)
        outer.addWidget(self._no_lessons)
        outer.addWidget(self.lessons)
        outer.addLayout(forget)

    def _right(self) -> QVBoxLayout:
        form = QGridLayout()
        form.setHorizontalSpacing(12)
        form.setVerticalSpacing(8)
        form.setColumnStretch(1, 1)
        fields = (self.name_field, self.place_field, self.secrets_field)
        for row, (key, field) in enumerate(zip(("name", "place", "secrets"), fields, strict=True)):
            top = Qt.AlignmentFlag.AlignTop if field is self.secrets_field else Qt.AlignmentFlag(0)
            form.addWidget(Words(f"tools.{key}"), row, 0, top)
            form.addWidget(field, row, 1)
        form.addWidget(self._hint, len(fields), 1)
        buttons = QHBoxLayout()
        buttons.setSpacing(8)
        buttons.addWidget(self.save_button)
        buttons.addWidget(self.check_button)
        buttons.addStretch(1)
        buttons.addWidget(self.remove_button)
        right = QVBoxLayout()
        right.setSpacing(8)
        right.addLayout(form)
        right.addLayout(buttons)
        right.addWidget(self._said)
        right.addWidget(self._state)
        right.addWidget(self._unasked)
        right.addWidget(self.tools, 1)
        right.addStretch(0)
        return right

    def _connect(self) -> None:
        self.list.currentRowChanged.connect(lambda _row: self._fill())
        self.new_button.clicked.connect(self.begin_new)
        self.save_button.clicked.connect(self._save)
        self.check_button.clicked.connect(lambda: self.check_wanted.emit(self.current_name()))
        self.remove_button.clicked.connect(self._remove)
        self.tools.itemChanged.connect(self._marked)
        self.lessons.currentRowChanged.connect(lambda _row: self._show_forget())
        self.forget_button.clicked.connect(self._forget)
        self.forget_all_button.clicked.connect(lambda: self.forget_wanted.emit(None))

    # -- what is shown --------------------------------------------------------------------------
    def show_servers(self, servers: Sequence[ServerStatus], *, current: str | None = None) -> None:
        """Shows the servers, and one of them; None: the one that was shown, and what is being typed stays."""
        wanted = self.current_name() if current is None else current
        before = self.current()
        self._servers = tuple(servers)
        names = [status.spec.name for status in servers]
        self.list.blockSignals(True)
        self.list.clear()
        for status in servers:
            item = QListWidgetItem(f"{status.spec.name}\n{status_words(status)}")
            item.setToolTip(place_of(status.spec))
            self.list.addItem(item)
        self.list.setCurrentRow(names.index(wanted) if wanted in names else -1)
        self.list.blockSignals(False)
        if current is not None or _place(self.current()) != _place(before):
            self._fill()
        self._show_status()

    def show_keyring(self, *, there: bool) -> None:
        """Says whether secrets can be kept."""
        self._keyring = there
        self._show_hint()

    def show_lessons(
        self, lessons: Sequence[Remembered], projects: Mapping[ProjectId, str]
    ) -> None:
        """Shows what was learned; `projects` are names by id."""
        self._lessons, self._projects = tuple(lessons), projects
        self.lessons.clear()
        for item in self._lessons:
            self.lessons.addItem(self._lesson(item))
        self.lessons.setVisible(bool(lessons))
        self._no_lessons.setVisible(not lessons)
        self.forget_all_button.setVisible(bool(lessons))
        self._show_forget()

    def _lesson(self, item: Remembered) -> QListWidgetItem:
        line = tr("lessons.line", what=item.shape, worked=item.worked, failed=item.failed)
        project = self._projects.get(item.project or ProjectId("")) or tr("lessons.elsewhere")
        verdict = tr(f"lessons.{item.counsel}")
        row = QListWidgetItem(one_line(f"{verdict} · {line} · {project}", TOOL_CHARACTERS))
        row.setToolTip("\n".join(part for part in (row.text(), item.why) if part))
        return row

    def current(self) -> ServerStatus | None:
        """The server that is shown; None while a new one is typed."""
        row = self.list.currentRow()
        return self._servers[row] if 0 <= row < len(self._servers) else None

    def current_name(self) -> str:
        """Its name; empty for a new one."""
        status = self.current()
        return status.spec.name if status is not None else ""

    def begin_new(self) -> None:
        """Empties the form for another server."""
        self.list.setCurrentRow(-1)
        self._fill()
        self.name_field.setFocus()

    def draft(self) -> tuple[ServerSpec, Mapping[str, str]]:
        """What is typed."""
        status = self.current()
        return spec_of(
            self.name_field.text(),
            self.place_field.text(),
            self.secrets_field.toPlainText(),
            before=status.spec if status is not None else None,
        )

    def say(self, text: str, *, trouble: bool = False) -> None:
        """Says how the last wish ended."""
        self._said.set_look("danger" if trouble else "quiet")
        self._said.setText(text)
        self._said.setVisible(bool(text))

    def said(self) -> str:
        """What stands there."""
        return self._said.text()

    def state(self) -> str:
        """What stands of the shown server."""
        return self._state.text()

    # -- inside ---------------------------------------------------------------------------------
    def _fill(self) -> None:
        status = self.current()
        spec = status.spec if status is not None else None
        self._sure = False
        self.name_field.setText(spec.name if spec else "")
        self.name_field.setReadOnly(spec is not None)
        self.place_field.setText(place_of(spec) if spec else "")
        self.secrets_field.setPlainText(
            "\n".join(f"{name}=" for name in spec.secret_names) if spec else ""
        )
        self.check_button.setVisible(spec is not None)
        self.remove_button.setVisible(spec is not None)
        self.remove_button.show_as("tools.remove")
        self.say("")
        self._show_hint()
        self._show_status()

    def _show_hint(self) -> None:
        status = self.current()
        names = status.spec.secret_names if status is not None else ()
        lines = [tr("tools.secrets_kept", names=", ".join(names))] if names else []
        if not self._keyring:
            lines.append(tr("tools.secrets_no_keyring"))
        self._hint.setText("\n".join(lines))
        self._hint.setVisible(bool(lines))

    def _show_status(self) -> None:
        status = self.current()
        self._state.setVisible(status is not None)
        tools = status.tools if status is not None else ()
        self._unasked.setVisible(bool(tools))
        self.tools.setVisible(bool(tools))
        if status is None:
            return
        is_failed = status.state is ServerState.FAILED
        self._state.set_look("danger" if is_failed else "quiet")
        words = trouble_words(status.spec.name, status.reason, status.detail)
        self._state.setText(words if is_failed else status_words(status))
        self.check_button.setEnabled(status.state is not ServerState.STARTING)
        self._show_tools(status.spec, tools)

    def _show_tools(self, spec: ServerSpec, tools: Sequence[ToolSpec]) -> None:
        row = self.tools.currentRow()
        self.tools.blockSignals(True)
        self.tools.clear()
        for tool in tools:
            words = " · ".join(part for part in (tool.name, tool.description) if part)
            item = QListWidgetItem(one_line(words, TOOL_CHARACTERS))
            item.setToolTip(words)
            item.setFlags(item.flags() | Qt.ItemFlag.ItemIsUserCheckable)
            safe = tool.name in spec.safe_tools
            item.setCheckState(Qt.CheckState.Checked if safe else Qt.CheckState.Unchecked)
            item.setData(Qt.ItemDataRole.UserRole, tool.name)
            self.tools.addItem(item)
        self.tools.setCurrentRow(row)
        self.tools.blockSignals(False)

    def _show_forget(self) -> None:
        self.forget_button.setVisible(bool(self._lessons))
        self.forget_button.setEnabled(self.lessons.currentRow() >= 0)

    def _save(self) -> None:
        spec, secrets = self.draft()
        self.save_wanted.emit(spec, dict(secrets))

    def _remove(self) -> None:
        """Asks once more on the button itself."""
        if not self._sure:
            self._sure = True
            self.remove_button.show_as("tools.remove_sure")
            return
        self.remove_wanted.emit(self.current_name())

    def _marked(self, item: QListWidgetItem) -> None:
        safe = item.checkState() is Qt.CheckState.Checked
        tool = str(item.data(Qt.ItemDataRole.UserRole))
        self.safe_wanted.emit(self.current_name(), tool, safe)

    def _forget(self) -> None:
        row = self.lessons.currentRow()
        if 0 <= row < len(self._lessons):
            self.forget_wanted.emit(self._lessons[row])

    def retranslate(self) -> None:
        """Says everything again."""
        self.setWindowTitle(tr("tools.title"))
        self.list.setAccessibleName(tr("tools.title"))
        self.lessons.setAccessibleName(tr("lessons.title"))
        self.name_field.setAccessibleName(tr("tools.name"))
        self.place_field.setAccessibleName(tr("tools.place"))
        self.place_field.setPlaceholderText(tr("tools.place_hint"))
        self.secrets_field.setAccessibleName(tr("tools.secrets"))
        self.secrets_field.setPlaceholderText(tr("tools.secrets_hint"))
        self.tools.setAccessibleName(tr("tools.unasked"))
        self.show_servers(self._servers)
        self.show_lessons(self._lessons, self._projects)
        self._show_hint()


def _place(status: ServerStatus | None) -> ServerSpec | None:
    """What the form shows of a server."""
    return replace(status.spec, safe_tools=frozenset()) if status is not None else None
