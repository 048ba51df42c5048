"""Shows the source of a memory in full, beside the work: never modal."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QDialog, QHBoxLayout, QPlainTextEdit, QVBoxLayout, QWidget

from growbox_app.text import tr
from memory.values import Conversation, Node, NodeKind
from ui.panels.controls import ElidedLabel, QuietLabel, TextButton
from ui.theme import theme
from ui.view_models import wording
from ui.view_models.display import broken_lines, head, one_line

SHOWN_CHARACTERS_MAX = 1_000_000


class SourceDialog(QDialog):
    """One node in full.

    Signals: `conversation_wanted(ConversationId, NodeId)`.
    """

    conversation_wanted = Signal(object, object)

    def __init__(
        self,
        node: Node,
        conversation: Conversation | None,
        now_ms: int,
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self.setObjectName("source_dialog")
        self.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        self.setModal(False)
        self._node, self._conversation, self._now_ms = node, conversation, now_ms
        self._title = ElidedLabel(look="title")
        self._facts = QuietLabel()
        self._facts.setWordWrap(True)
        self.text = QPlainTextEdit()
        self.text.setReadOnly(True)
        self.text.setFont(theme.font(theme.conversation_pixels))
        shown, cut = head(node.content, SHOWN_CHARACTERS_MAX)
        self.text.setPlainText(broken_lines(shown) + ("\n…" if cut else ""))
        self.go_button = TextButton("source.go", icon_name="message-square")
        self.go_button.setVisible(conversation is not None)
        self.go_button.clicked.connect(self._go)
        close = TextButton("source.close")
        close.clicked.connect(self.close)
        buttons = QHBoxLayout()
        buttons.addWidget(self.go_button)
        buttons.addStretch(1)
        buttons.addWidget(close)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 14, 16, 14)
        column.setSpacing(8)
        column.addWidget(self._title)
        column.addWidget(self._facts)
        column.addWidget(self.text, 1)
        column.addLayout(buttons)
        self.resize(620, 460)
        self.retranslate()

    def retranslate(self) -> None:
        """Says everything again."""
        node = self._node
        name = node.source_uri or one_line(node.content, 80) or tr("source.title")
        self.setWindowTitle(tr("source.title"))
        self._title.say(name)
        facts = [tr(f"kind.{node.kind}"), wording.clock_time(node.created_at_ms, self._now_ms)]
        if node.kind is NodeKind.MESSAGE:
            facts.insert(1, wording.speaker(node.role))
        if self._conversation is not None:
            facts.append(self._conversation.title or tr("conversation.untitled"))
        self._facts.setText(" · ".join(facts))
        self.text.setAccessibleName(tr("source.text"))

    def _go(self) -> None:
        if self._conversation is not None:
            self.conversation_wanted.emit(self._conversation.id, self._node.id)
            self.close()
