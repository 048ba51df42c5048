"""The permanent goals: the built-in ones and the user's own. Each can be switched off; one's own can be reworded and removed."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QKeyEvent
from PySide6.QtWidgets import (
    QCheckBox,
    QFrame,
    QHBoxLayout,
    QLineEdit,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)
from typing_extensions import override

from growbox_app.text import tr
from memory.rest_values import Goal, GoalKind
from ui.panels.controls import QuietLabel, TextButton, Words
from ui.view_models import wording
from ui.view_models.display import one_line

GOAL_CHARACTERS = 300


def goal_words(goal: Goal) -> str:
    """The goal in words; a built-in one has no text of its own."""
    return one_line(goal.text, GOAL_CHARACTERS) if goal.text else tr(f"goals.{goal.kind}")


class GoalEditor(QLineEdit):
    """Enter takes the text, Escape leaves it as it was. Signals: `left()`."""

    left = Signal()

    @override
    def keyPressEvent(self, event: QKeyEvent) -> None:
        if event.key() == Qt.Key.Key_Escape:
            self.left.emit()
        else:
            super().keyPressEvent(event)


class GoalRow(QFrame):
    """One goal.

    Signals: `enabled(int, bool)`, `reworded(int, str)`, `removed(int)`.
    """

    enabled = Signal(int, bool)
    reworded = Signal(int, str)
    removed = Signal(int)

    def __init__(self, goal: Goal, now_ms: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.goal = goal
        self._now_ms = now_ms
        own = goal.kind is GoalKind.OWN
        self.setProperty("look", "row")
        self.check = QCheckBox()
        self.check.setChecked(goal.enabled)
        self._words = QuietLabel(look="")
        self._words.setWordWrap(True)
        self._facts = QuietLabel()
        self.editor = GoalEditor()
        self.editor.hide()
        self.reword_button = TextButton("goals.reword", kind="quiet")
        self.remove_button = TextButton("goals.remove", kind="quiet")
        self.reword_button.setVisible(own)
        self.remove_button.setVisible(own)
        self._arrange()
        self.check.clicked.connect(lambda checked: self.enabled.emit(goal.id, checked))
        self.reword_button.clicked.connect(self._edit)
        self.remove_button.clicked.connect(lambda: self.removed.emit(goal.id))
        self.editor.returnPressed.connect(self._take)
        self.editor.left.connect(self._leave)
        self.retranslate()

    def _arrange(self) -> None:
        words = QVBoxLayout()
        words.setSpacing(1)
        words.addWidget(self._words)
        words.addWidget(self.editor)
        words.addWidget(self._facts)
        row = QHBoxLayout(self)
        row.setContentsMargins(0, 6, 0, 6)
        row.setSpacing(8)
        row.addWidget(self.check, 0, Qt.AlignmentFlag.AlignTop)
        row.addLayout(words, 1)
        row.addWidget(self.reword_button, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self.remove_button, 0, Qt.AlignmentFlag.AlignTop)

    def _edit(self) -> None:
        self.editor.setText(self.goal.text)
        self._words.hide()
        self.editor.show()
        self.editor.setFocus()
        self.editor.selectAll()

    def _leave(self) -> None:
        self.editor.hide()
        self._words.show()
        self.reword_button.setFocus()

    def _take(self) -> None:
        text = self.editor.text().strip()
        self._leave()
        if text and text != self.goal.text:
            self.reworded.emit(self.goal.id, text)

    def retranslate(self) -> None:
        """Says everything again."""
        goal = self.goal
        words = goal_words(goal)
        self._words.setText(words)
        self.check.setAccessibleName(words)
        self.editor.setAccessibleName(tr("goals.reword_named", goal=words))
        self.reword_button.setAccessibleName(tr("goals.reword_named", goal=words))
        self.remove_button.setAccessibleName(tr("goals.remove_named", goal=words))
        facts = [] if goal.kind is GoalKind.OWN else [tr("goals.built_in")]
        when = wording.clock_time(goal.visited_at_ms, self._now_ms) if goal.visited_at_ms else ""
        facts.append(tr("goals.visited", when=when) if when else tr("goals.never"))
        self._facts.setText(" · ".join(facts))


class GoalsView(QScrollArea):
    """All goals, and a field for a new one.

    Signals: `added(str)`, `enabled(int, bool)`, `reworded(int, str)`, `removed(int)`.
    """

    added = Signal(str)
    enabled = Signal(int, bool)
    reworded = Signal(int, str)
    removed = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("goals_view")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._goals: tuple[Goal, ...] = ()
        self.rows: list[GoalRow] = []
        self._intro = Words("goals.intro", look="quiet")
        self._intro.setWordWrap(True)
        self.field = QLineEdit()
        self.add_button = TextButton("goals.add")
        self.refusal = QuietLabel(look="danger")
        self.refusal.setWordWrap(True)
        self.refusal.hide()
        self._column = QVBoxLayout()
        self._column.setSpacing(0)
        self._arrange()
        self.add_button.clicked.connect(self._add)
        self.field.returnPressed.connect(self._add)
        self.field.textChanged.connect(lambda _text: self._show_room())
        self._show_room()
        self.retranslate()

    def _arrange(self) -> None:
        bottom = QHBoxLayout()
        bottom.setSpacing(8)
        bottom.addWidget(self.field, 1)
        bottom.addWidget(self.add_button)
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 8, 0, 8)
        column.setSpacing(8)
        column.addWidget(self._intro)
        column.addLayout(self._column)
        column.addLayout(bottom)
        column.addWidget(self.refusal)
        column.addStretch(1)
        self.setWidget(inner)
        self.viewport().setAutoFillBackground(False)
        inner.setAutoFillBackground(False)

    def _show_room(self) -> None:
        self.add_button.setEnabled(bool(self.field.text().strip()))
        self.refusal.hide()

    def _add(self) -> None:
        text = self.field.text().strip()
        if text:
            self.added.emit(text)

    def take(self, *, added: bool) -> None:
        """Says whether the new goal was taken."""
        if added:
            self.field.clear()
        self.refusal.setText(tr("goals.refused"))
        self.refusal.setVisible(not added)

    def show_goals(self, goals: tuple[Goal, ...], now_ms: int) -> None:
        """Shows another list; the same one stays as it is."""
        if goals == self._goals:
            return
        self._goals = goals
        focused = next((row.goal.id for row in self.rows if row.check.hasFocus()), None)
        for row in self.rows:
            self._column.removeWidget(row)
            row.hide()
            row.deleteLater()
        self.rows = [GoalRow(goal, now_ms) for goal in goals]
        for row in self.rows:
            row.enabled.connect(self.enabled)
            row.reworded.connect(self.reworded)
            row.removed.connect(self.removed)
            self._column.addWidget(row)
            if row.goal.id == focused:
                row.check.setFocus()

    def retranslate(self) -> None:
        """Says everything again."""
        self.setAccessibleName(tr("goals.list"))
        self.field.setPlaceholderText(tr("goals.own_hint"))
        self.field.setAccessibleName(tr("goals.new"))
        if not self.refusal.isHidden():
            self.refusal.setText(tr("goals.refused"))
