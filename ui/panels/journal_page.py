"""The page of the dream journal: the changes, the proposed skills, and the permanent goals."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import QHBoxLayout, QTabWidget, QVBoxLayout, QWidget
from typing_extensions import override

from growbox_app.text import tr
from ui.panels.controls import IconButton, TextButton, Words
from ui.panels.goals_view import GoalsView
from ui.panels.journal_changes import JournalChanges
from ui.panels.skills_view import SkillsView
from ui.view_models import wording


class JournalPage(QWidget):
    """The page. Signals: `left()`; the rest come from `changes`, `skills` and `goals`."""

    left = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("journal_page")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._open_proposals = 0
        self.back_button = IconButton("arrow-left", "journal.back")
        self.back_button.name_shortcut("Esc")
        self._title = Words("journal.title", look="title")
        self.changes = JournalChanges()
        self.skills = SkillsView()
        self.goals = GoalsView()
        self.tabs = QTabWidget()
        self.tabs.setDocumentMode(True)
        for view in (self.changes, self.skills, self.goals):
            self.tabs.addTab(view, "")
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self.back_button)
        top.addWidget(self._title, 1)
        column = QVBoxLayout(self)
        column.setContentsMargins(16, 10, 16, 8)
        column.setSpacing(8)
        column.addLayout(top)
        column.addWidget(self.tabs, 1)
        self.back_button.clicked.connect(self.left)
        self.setFocusProxy(self.changes.list)
        self.retranslate()

    def show_open_proposals(self, count: int) -> None:
        """Says on the tab how many proposals wait for an answer."""
        self._open_proposals = count
        self.retranslate()

    def retranslate(self) -> None:
        """Says everything again."""
        count = self._open_proposals
        skills = tr("journal.tab_skills_open", count=wording.number(count)) if count else ""
        names = (tr("journal.tab_changes"), skills or tr("journal.tab_skills"))
        for at, name in enumerate((*names, tr("journal.tab_goals"))):
            self.tabs.setTabText(at, name)
        self.tabs.setAccessibleName(tr("journal.title"))

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)


class JournalButton(TextButton):
    """The row of the sidebar that opens the journal; it says how much is new."""

    def __init__(self, parent: QWidget | None = None) -> None:
        self._news = 0
        super().__init__("journal.button", icon_name="moon", kind="row", parent=parent)

    def show_news(self, count: int) -> None:
        """Says how many changes the user has not seen."""
        if count != self._news:
            self._news = count
            self.retranslate()

    @override
    def retranslate(self) -> None:
        super().retranslate()
        if self._news:
            count = wording.number(self._news)
            self.setText(tr("journal.button_new", count=count))
            self.setAccessibleName(tr("journal.button_said", count=count))
