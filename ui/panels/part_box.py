"""A heading with a text and with notes that can be opened: what a change of the journal, or a skill, rests on."""

from __future__ import annotations

from PySide6.QtCore import QSize, Qt, Signal
from PySide6.QtGui import QFontMetrics, QResizeEvent
from PySide6.QtWidgets import QPushButton, QSizePolicy, QVBoxLayout, QWidget
from typing_extensions import override

from memory.values import NodeId
from ui.panels.controls import QuietLabel
from ui.view_models.journal import Part

INSET = 12


class NoteLink(QPushButton):
    """A note by its title, which ends in an ellipsis where there is no room."""

    def __init__(self, title: str, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._title = title.replace("&", "&&")
        self.setProperty("kind", "link")
        self.setAccessibleName(title)
        self.setToolTip(title)
        self.setSizePolicy(QSizePolicy.Policy.Ignored, QSizePolicy.Policy.Fixed)

    @override
    def resizeEvent(self, event: QResizeEvent) -> None:
        super().resizeEvent(event)
        room = self.width() - INSET
        shown = QFontMetrics(self.font()).elidedText(self._title, Qt.TextElideMode.ElideRight, room)
        self.setText(shown)

    @override
    def sizeHint(self) -> QSize:
        metrics = QFontMetrics(self.font())
        return QSize(metrics.horizontalAdvance(self._title) + INSET, metrics.height() + 8)


class PartBox(QWidget):
    """One part. Signals: `note_wanted(NodeId)`."""

    note_wanted = Signal(object)

    def __init__(self, part: Part, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(2)
        column.addWidget(QuietLabel(part.heading, look="section"))
        self.links = [self._link(title, node_id) for title, node_id in part.notes]
        text = QuietLabel(part.text, look="quiet" if part.notes else "")
        text.setWordWrap(True)
        text.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        text.setVisible(bool(part.text))
        notes_first = (bool(part.notes) and part.notes[0][1] is None) or len(part.notes) > 1
        if not notes_first:
            column.addWidget(text)
        for link in self.links:
            column.addWidget(link)
        if notes_first:
            column.addWidget(text)

    def _link(self, title: str, node_id: NodeId | None) -> NoteLink:
        link = NoteLink(title)
        link.setEnabled(node_id is not None)
        link.clicked.connect(lambda: self.note_wanted.emit(node_id))
        return link
