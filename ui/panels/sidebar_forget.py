"""The bar over the window about conversations that are deleted: the words before, the undo, how far it is, and what was proven.

Inline, never modal. Nothing goes before the user has read what goes; the undo counts its seconds; the end stays until it is closed.
"""

from __future__ import annotations

from collections.abc import Sequence

from PySide6.QtCore import Qt, QTimer, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget
from typing_extensions import override

from growbox_app.forgetting import UNDO_S
from growbox_app.library_face import ForgetState, Forgetting
from memory.values import Conversation, ConversationId, ForgetPreview
from ui.panels.controls import IconButton, QuietLabel, TextButton
from ui.view_models import forgetting as words

TICK_MS = 1_000


class _Row(QFrame):
    """One line of the bar."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "bar")
        self.text = QuietLabel(look="")
        self.text.setWordWrap(True)
        self.text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self.buttons = QHBoxLayout()
        self.buttons.setSpacing(8)
        row = QHBoxLayout(self)
        row.setContentsMargins(16, 6, 12, 6)
        row.setSpacing(8)
        row.addWidget(self.text, 1)
        row.addLayout(self.buttons)

    def say(self, text: str) -> None:
        """Shows other words."""
        self.text.setText(text)
        self.setAccessibleName(text)


class AskRow(_Row):
    """What would go. Signals: `agreed()`, `refused()`."""

    agreed = Signal()
    refused = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("forget_ask")
        self.conversation: Conversation | None = None
        self._preview = ForgetPreview()
        self.yes_button = TextButton("forget.yes")
        self.no_button = TextButton("forget.no")
        self.buttons.addWidget(self.yes_button)
        self.buttons.addWidget(self.no_button)
        self.yes_button.clicked.connect(self.agreed)
        self.no_button.clicked.connect(self.refused)
        self.hide()

    def ask(self, conversation: Conversation, preview: ForgetPreview) -> None:
        """Says what would go, and waits."""
        self.conversation, self._preview = conversation, preview
        self.retranslate()
        self.show()
        self.no_button.setFocus()

    def retranslate(self) -> None:
        """Says it again."""
        if self.conversation is not None:
            self.say(words.question(self.conversation.title, self._preview))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.refused.emit()
        else:
            super().keyPressEvent(event)


class ProgressRow(_Row):
    """One conversation on its way out. Signals: `undo_wanted(ConversationId)`, `close_wanted(ConversationId)`."""

    undo_wanted = Signal(object)
    close_wanted = Signal(object)

    def __init__(self, forgetting: Forgetting, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.forgetting = forgetting
        self.seconds = round(UNDO_S)
        self.undo_button = TextButton("forget.undo", icon_name="rotate-ccw")
        self.close_button = IconButton("x", "forget.close")
        self.buttons.addWidget(self.undo_button)
        self.buttons.addWidget(self.close_button)
        conversation_id = forgetting.conversation_id
        self.undo_button.clicked.connect(lambda: self.undo_wanted.emit(conversation_id))
        self.close_button.clicked.connect(lambda: self.close_wanted.emit(conversation_id))
        self.show_state(forgetting)

    def show_state(self, forgetting: Forgetting) -> None:
        """Says how far it is."""
        self.forgetting = forgetting
        ended = forgetting.state in (ForgetState.DONE, ForgetState.FAILED)
        self.undo_button.setVisible(forgetting.state is ForgetState.WAITING)
        self.close_button.setVisible(ended)
        self.retranslate()

    def tick(self) -> None:
        """A second less."""
        if self.forgetting.state is ForgetState.WAITING and self.seconds > 0:
            self.seconds -= 1
            self.retranslate()

    def retranslate(self) -> None:
        """Says it again."""
        self.say(words.progress(self.forgetting, self.seconds))


class ForgetBar(QWidget):
    """The question and the rows.

    Signals: `agreed(ConversationId)`, `undo_wanted(ConversationId)`, `close_wanted(ConversationId)`, `left()` (the keyboard is free again).
    """

    agreed = Signal(object)
    undo_wanted = Signal(object)
    close_wanted = Signal(object)
    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("forget_bar")
        self.question = AskRow()
        self.rows: dict[ConversationId, ProgressRow] = {}
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(0, 0, 0, 0)
        self._column.setSpacing(0)
        self._column.addWidget(self.question)
        self.question.agreed.connect(self._agree)
        self.question.refused.connect(self._refuse)
        self._timer = QTimer(self)
        self._timer.setInterval(TICK_MS)
        self._timer.timeout.connect(self._tick)

    def show_forgettings(self, forgettings: Sequence[Forgetting]) -> None:
        """Shows what is on its way out."""
        known = {forgetting.conversation_id: forgetting for forgetting in forgettings}
        for conversation_id in [at for at in self.rows if at not in known]:
            row = self.rows.pop(conversation_id)
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        for conversation_id, forgetting in known.items():
            if conversation_id in self.rows:
                self.rows[conversation_id].show_state(forgetting)
            else:
                self._add(forgetting)
        waits = any(f.state is ForgetState.WAITING for f in forgettings)
        if waits and not self._timer.isActive():
            self._timer.start()
        elif not waits:
            self._timer.stop()

    def _add(self, forgetting: Forgetting) -> None:
        row = ProgressRow(forgetting)
        row.undo_wanted.connect(self.undo_wanted)
        row.close_wanted.connect(self.close_wanted)
        self.rows[forgetting.conversation_id] = row
        self._column.addWidget(row)

    def _tick(self) -> None:
        for row in self.rows.values():
            row.tick()

    def _agree(self) -> None:
        asked = self.question.conversation
        self.question.hide()
        if asked is not None:
            self.agreed.emit(asked.id)
        self.left.emit()

    def _refuse(self) -> None:
        self.question.hide()
        self.left.emit()
