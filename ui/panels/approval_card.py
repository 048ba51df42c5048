"""The card in the conversation that asks whether a call may run: what it would do, why it is asked, and the answers.

It never takes the focus and is never modal. For its first moments nothing on it allows anything, so that a key or a click that
was meant for something else does not; Enter allows only while the card itself has the focus, and what cannot be undone wants
Ctrl (⌘) with it, or a click. Denying is always possible. It answers once. GUI thread. Source: ui.md "Approvals".
"""

from __future__ import annotations

from PySide6.QtCore import QEvent, Qt, QTimer, Signal
from PySide6.QtGui import QFocusEvent, QKeyEvent, QPainter, QPaintEvent, QResizeEvent
from PySide6.QtWidgets import (
    QApplication,
    QBoxLayout,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.approval_face import (
    Approval,
    ApprovalAnswer,
    ApprovalScope,
)
from growbox_app.text import tr
from ui.icons import icon
from ui.panels.command_parts import CAREFUL_RISKS, CommandParts
from ui.panels.controls import ICON_PIXELS, QuietLabel, TextButton
from ui.panels.edit_field import ENTER, EditField
from ui.panels.folded_lines import FoldedLines
from ui.panels.hunk_view import HunkView, RestView
from ui.panels.mono_text import MonoText
from ui.theme import theme
from ui.view_models import wording
from ui.view_models.display import editable, one_line, visible

ARMED_AFTER_MS = 700
"""Source: ui.md "Approvals"."""
HUNKS_SHOWN = 24
"""More changes than these are not laid out one by one."""


class ApprovalCard(QFrame):
    """The card.

    Signals: `answered(ApprovalAnswer)`.
    """

    answered = Signal(object)

    def __init__(self, approval: Approval, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.approval = approval
        self._done = False
        self.setProperty("look", "approval")
        self.setFocusPolicy(Qt.FocusPolicy.StrongFocus)
        self._arming = QTimer(self)
        self._arming.setSingleShot(True)
        self._arming.setInterval(ARMED_AFTER_MS)
        self._arming.timeout.connect(self.arm)
        self._make_head()
        self._make_hunks()
        self._make_answers()
        self._lay_out()
        self._arming.start()
        self.retranslate()
        self.restyle()
        self._show_state()

    @property
    def careful(self) -> bool:
        """Whether Enter alone is not enough."""
        return self.approval.risk in CAREFUL_RISKS

    @property
    def armed(self) -> bool:
        """Whether something on it can allow: its first moments are over, and it has not been answered."""
        return not self._arming.isActive() and not self._done

    # -- making -------------------------------------------------------------------------------
    def _make_head(self) -> None:
        approval = self.approval
        self._picture = QuietLabel()
        self._title = QuietLabel(look="strong")
        self._risk = QuietLabel(look="danger" if self.careful else "quiet")
        self._folder = QuietLabel()
        for label in (self._title, self._risk, self._folder):
            label.setWordWrap(True)
        self.command = MonoText("agent.command")
        self.command.show_lines(tuple(approval.command.split("\n")))
        self.whole = FoldedLines("agent.arguments", head=40, tail=20)
        self.whole.show_lines(tuple(visible(line) for line in approval.whole.split("\n")))
        # One command alone says no more than the card's own line.
        self.parts = CommandParts(approval.parts if len(approval.parts) > 1 else ())
        self.command_field: EditField | None = None

    def _make_hunks(self) -> None:
        hunks = self.approval.hunks
        shown = hunks if len(hunks) <= HUNKS_SHOWN + 1 else hunks[:HUNKS_SHOWN]
        rest = hunks[len(shown) :]
        paths = {*self.approval.paths, *(hunk.path for hunk in hunks)}
        titled = len(paths) == 1 and not (self.approval.command or self.approval.whole)
        self.hunks = [HunkView(hunk, named=not titled) for hunk in shown]
        self.rest = RestView(rest) if rest else None
        for view in self.hunks:
            view.chosen_changed.connect(self._show_state)
            view.edit_left.connect(lambda: self.edit(False))
        if self.rest is not None:
            self.rest.chosen_changed.connect(self._show_state)

    def _make_answers(self) -> None:
        path_key = "agent.allow_command" if self.approval.command else "agent.allow_path"
        kind = "plain" if self.careful else "primary"
        self.once_button = TextButton("agent.allow", kind=kind)
        self.path_button = TextButton(path_key)
        self.project_button = TextButton("agent.allow_project")
        self.edit_button = TextButton("agent.edit", icon_name="pencil", kind="quiet")
        self.edit_button.setVisible(self.may_edit)
        self.edit_button.clicked.connect(lambda: self.edit(not self.editing))
        self.deny_button = TextButton("agent.deny")
        self.once_button.clicked.connect(lambda: self.allow(ApprovalScope.ONCE))
        self.path_button.clicked.connect(lambda: self.allow(ApprovalScope.PATH))
        self.project_button.clicked.connect(lambda: self.allow(ApprovalScope.PROJECT))
        self.deny_button.clicked.connect(self.deny)
        self.word = QLineEdit()
        self.word.returnPressed.connect(self.deny)

    def _lay_out(self) -> None:
        head = QHBoxLayout()
        head.setSpacing(8)
        # One line of words stands level with picture and button; more grow downwards.
        level = self.edit_button.sizeHint().height()
        self._picture.setFixedHeight(level)
        self._title.setMinimumHeight(level)
        head.addWidget(self._picture, 0, Qt.AlignmentFlag.AlignTop)
        head.addWidget(self._title, 1)
        head.addWidget(self.edit_button, 0, Qt.AlignmentFlag.AlignTop)
        buttons = self._buttons = QHBoxLayout()
        buttons.setSpacing(6)
        for button in (self.once_button, self.path_button, self.project_button):
            buttons.addWidget(button, 0, Qt.AlignmentFlag.AlignLeft)
        buttons.addStretch(1)
        refusal = QHBoxLayout()
        refusal.setSpacing(6)
        refusal.addWidget(self.deny_button)
        refusal.addWidget(self.word, 1)
        self._column = column = QVBoxLayout(self)
        column.setContentsMargins(12, 10, 12, 10)
        column.setSpacing(8)
        column.addLayout(head)
        shown = (self.command, self.whole, self.parts, self._folder)
        for widget in (self._risk, *shown, *self.hunks):
            column.addWidget(widget)
        if self.rest is not None:
            column.addWidget(self.rest)
        column.addLayout(buttons)
        column.addLayout(refusal)
        approval = self.approval
        self.path_button.setVisible(ApprovalScope.PATH in approval.scopes)
        self.project_button.setVisible(ApprovalScope.PROJECT in approval.scopes)
        self.command.setVisible(bool(approval.command))
        self.whole.setVisible(bool(approval.whole))
        self.parts.setVisible(bool(self.parts.views))
        self._folder.setVisible(bool(approval.command and approval.cwd))

    # -- editing ------------------------------------------------------------------------------
    @property
    def may_edit(self) -> bool:
        """Whether something of it can be written anew here."""
        command = self.approval.command
        by_command = self.approval.editable and bool(command) and editable(command)
        return by_command or any(view.editable for view in self.hunks)

    @property
    def editing(self) -> bool:
        """Whether the user writes in it."""
        fields = (self.command_field, *(view.field for view in self.hunks))
        return any(field is not None for field in fields)

    def edit(self, on: bool) -> None:
        """Lets the user write what is to be done instead, or shows again what the assistant wants."""
        if self._done or on is self.editing:
            return
        focused = QApplication.focusWidget()
        if focused is not None and self.isAncestorOf(focused):
            self.setFocus()
        for view in self.hunks:
            view.edit(on)
        self._edit_command(on and self.approval.editable and editable(self.approval.command))
        fields = (self.command_field, *(view.field for view in self.hunks))
        first = next((field for field in fields if field is not None), None)
        for field in filter(None, fields):
            field.show()
            field.textChanged.connect(self._show_state)
        if first is not None:
            first.setFocus()
        self._show_state()

    def _edit_command(self, on: bool) -> None:
        if on:
            field = self.command_field = EditField("agent.edit_command", self.approval.command)
            field.left.connect(lambda: self.edit(False))
            self._column.insertWidget(self._column.indexOf(self.command), field)
        elif self.command_field is not None:
            self.command_field.hide()
            self.command_field.deleteLater()
            self.command_field = None
        self.command.setVisible(bool(self.approval.command) and not on)
        self.parts.setVisible(bool(self.parts.views) and not on)

    def _new_command(self) -> str:
        """Another command of the user; empty while it is what it was."""
        edited = self.command_field.edited() if self.command_field is not None else None
        return (edited or "").strip()

    def _texts(self) -> dict[int, str]:
        found = ((view.hunk.index, view.text()) for view in self.hunks)
        return {index: text for index, text in found if text is not None}

    def _is_emptied(self) -> bool:
        """Whether the user has left no command."""
        return self.command_field is not None and not self.command_field.toPlainText().strip()

    # -- answers ------------------------------------------------------------------------------
    def arm(self) -> None:
        """Its first moments are over."""
        self._arming.stop()
        self._show_state()

    def chosen(self) -> frozenset[int] | None:
        """The accepted changes; None for all."""
        chosen = [view.hunk.index for view in self.hunks if view.box.isChecked()]
        if self.rest is not None and self.rest.box.isChecked():
            chosen += [hunk.index for hunk in self.rest.hunks]
        return None if len(chosen) == len(self.approval.hunks) else frozenset(chosen)

    def allow(self, scope: ApprovalScope) -> None:
        """Lets the call run, unless it is too early or nothing of it was chosen."""
        hunks, texts, command = self.chosen(), self._texts(), self._new_command()
        if self.armed and (hunks is None or hunks) and not self._is_emptied():
            self._answer(
                ApprovalAnswer(
                    id=self.approval.id,
                    allowed=True,
                    scope=ApprovalScope.ONCE if texts or command else scope,
                    hunks=hunks,
                    texts=texts,
                    command=command,
                )
            )

    def deny(self) -> None:
        """Says no, with what the user has written."""
        if not self._done:
            self._answer(
                ApprovalAnswer(id=self.approval.id, allowed=False, word=self.word.text().strip())
            )

    def _answer(self, answer: ApprovalAnswer) -> None:
        self._done = True
        focused = QApplication.focusWidget()
        if focused is not None and self.isAncestorOf(focused):
            self.setFocus()  # else Qt would hand it to whatever comes next
        self._show_state()
        self.answered.emit(answer)

    def _show_state(self) -> None:
        chosen = self.chosen()
        some = chosen is not None
        edited = bool(self._texts() or self._new_command())
        possible = self.armed and (not some or bool(chosen)) and not self._is_emptied()
        key = "agent.allow_edited" if edited else "agent.allow_some" if some else "agent.allow"
        self.once_button.show_as(key)
        self.once_button.setEnabled(possible)
        # What holds from now on is not about a part of this change, nor about what the user wrote himself.
        self.path_button.setEnabled(possible and not some and not edited)
        self.project_button.setEnabled(possible and not some and not edited)
        self.edit_button.show_as("agent.edit_back" if self.editing else "agent.edit")
        boxes = [view.box for view in self.hunks] + ([self.rest.box] if self.rest else [])
        for widget in (self.deny_button, self.word, self.edit_button, *boxes):
            widget.setEnabled(not self._done)
        empty = some and not chosen
        self.once_button.setToolTip(tr("agent.no_hunk") if empty else self._key_words())
        self._fold_buttons()

    def _key_words(self) -> str:
        return tr("agent.key_allow_careful" if self.careful else "agent.key_allow")

    # -- words --------------------------------------------------------------------------------
    def retranslate(self) -> None:
        """Says everything again."""
        approval = self.approval
        verb = wording.named("agent.verb", approval.executor)
        target = (
            ""
            if approval.command or approval.whole
            else ", ".join(approval.paths) or approval.arguments
        )
        self._title.setText(f"{verb} {one_line(visible(target), 300)}".strip())
        reason = tr(f"safety.reason.{approval.reason}", **approval.details)
        risk = tr("agent.risk", risk=tr(f"safety.risk.{approval.risk}"))
        edited = [tr("agent.edited_again")] if approval.edited else []
        self._risk.setText(wording.sentences(*edited, risk, visible(reason)))
        self._folder.setText(tr("agent.in_folder", path=visible(approval.cwd)))
        self.word.setPlaceholderText(tr("agent.word"))
        self.word.setAccessibleName(tr("agent.word"))
        self.deny_button.setToolTip(tr("agent.key_deny"))
        self.setAccessibleName(f"{tr('agent.approval')}: {self._title.text()}")
        what = [self._risk.text(), visible(approval.command), self._key_words()]
        self.setAccessibleDescription(" ".join(part for part in what if part))
        self._show_state()

    def restyle(self) -> None:
        """Draws the icon again."""
        token = "danger_text" if self.careful else "accent"
        self._picture.setPixmap(icon("circle-alert", token).pixmap(ICON_PIXELS, ICON_PIXELS))

    # -- events -------------------------------------------------------------------------------
    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        self._fold_buttons()

    def _fold_buttons(self) -> None:
        """One below the other where they do not fit side by side."""
        shown = (self.once_button, self.path_button, self.project_button)
        wanted = sum(b.sizeHint().width() + 6 for b in shown if not b.isHidden())
        side_by_side = wanted <= self.contentsRect().width() - 24
        self._buttons.setDirection(
            QBoxLayout.Direction.LeftToRight if side_by_side else QBoxLayout.Direction.TopToBottom
        )

    @override
    def event(self, event: QEvent) -> bool:
        """Ctrl+Enter on the card is not the window's "Send"."""
        asks = event.type() is QEvent.Type.ShortcutOverride and self.hasFocus()
        if asks and isinstance(event, QKeyEvent) and event.key() in ENTER:
            event.accept()
            return True
        return super().event(event)

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        """Enter counts on the card itself only; a part of it that has the focus passes its keys on to here."""
        if event.key() == Qt.Key.Key_Escape:
            self.deny()
        elif event.key() in ENTER and self.hasFocus() and not event.isAutoRepeat():
            with_control = bool(event.modifiers() & Qt.KeyboardModifier.ControlModifier)
            if with_control or not self.careful:
                self.allow(ApprovalScope.ONCE)
        elif event.key() not in ENTER:
            super().keyPressEvent(event)

    @override
    def focusInEvent(self, event: QFocusEvent) -> None:
        super().focusInEvent(event)
        self.update()

    @override
    def focusOutEvent(self, event: QFocusEvent) -> None:
        super().focusOutEvent(event)
        self.update()

    @override
    def paintEvent(self, event: QPaintEvent) -> None:
        """The focus is always seen."""
        super().paintEvent(event)
        if self.hasFocus():
            painter = QPainter(self)
            painter.setRenderHint(QPainter.RenderHint.Antialiasing)
            painter.setPen(theme.color("accent"))
            painter.drawRoundedRect(self.rect().adjusted(0, 0, -1, -1), 8, 8)
