"""One change of the dream journal in full: what was read, what came of it, how it was before and is since, and Undo."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QScrollArea, QVBoxLayout, QWidget

from growbox_app.text import tr
from memory.rest_values import JournalEntry
from ui.panels.controls import QuietLabel, TextButton
from ui.panels.part_box import PartBox
from ui.view_models import journal


class JournalDetail(QScrollArea):
    """The chosen change.

    Signals: `undo_wanted(int entry_id)`, `note_wanted(NodeId)`.
    """

    undo_wanted = Signal(int)
    note_wanted = Signal(object)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("journal_detail")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.setHorizontalScrollBarPolicy(Qt.ScrollBarPolicy.ScrollBarAlwaysOff)
        self._entry: JournalEntry | None = None
        self._now_ms = 0
        self._said = ""
        self.boxes: list[PartBox] = []
        self._title = QuietLabel(look="strong")
        self._title.setWordWrap(True)
        self._facts = QuietLabel()
        self._facts.setWordWrap(True)
        self.trouble = QuietLabel(look="danger")
        self.trouble.setWordWrap(True)
        self.undo_button = TextButton("journal.undo", icon_name="rotate-ccw")
        self.undo_button.clicked.connect(self._undo)
        self._parts = QVBoxLayout()
        self._parts.setSpacing(10)
        self._arrange()
        self.show_entry(None, 0)

    def _arrange(self) -> None:
        top = QHBoxLayout()
        top.setSpacing(8)
        top.addWidget(self._title, 1)
        top.addWidget(self.undo_button, 0, Qt.AlignmentFlag.AlignTop)
        inner = QWidget()
        column = QVBoxLayout(inner)
        column.setContentsMargins(12, 8, 12, 12)
        column.setSpacing(8)
        column.addLayout(top)
        column.addWidget(self._facts)
        column.addWidget(self.trouble)
        column.addLayout(self._parts)
        column.addStretch(1)
        self.setWidget(inner)
        self.viewport().setAutoFillBackground(False)
        inner.setAutoFillBackground(False)

    def show_entry(self, entry: JournalEntry | None, now_ms: int) -> None:
        """Shows another change, or asks to choose one."""
        if entry is None or self._entry is None or entry.id != self._entry.id:
            self._said = ""
        self._entry, self._now_ms = entry, now_ms
        self._build()

    def say(self, words: str) -> None:
        """Says why the change could not be undone."""
        self._said = words
        self._show_trouble()

    def _show_trouble(self) -> None:
        self.trouble.setText(self._said)
        self.trouble.setVisible(bool(self._said))

    def _undo(self) -> None:
        if self._entry is not None:
            self.undo_wanted.emit(self._entry.id)

    def _build(self) -> None:
        for box in self.boxes:
            self._parts.removeWidget(box)
            box.hide()
            box.deleteLater()
        entry = self._entry
        self.boxes = [PartBox(part) for part in journal.parts(entry)] if entry else []
        for box in self.boxes:
            box.note_wanted.connect(self.note_wanted)
            self._parts.addWidget(box)
        self.undo_button.setVisible(entry is not None)
        self.verticalScrollBar().setValue(0)
        self._say_head()

    def _say_head(self) -> None:
        entry = self._entry
        self._title.set_look("strong" if entry else "quiet")
        self._show_trouble()
        if entry is None:
            self._title.setText(tr("journal.choose"))
            self._facts.hide()
            return
        what = journal.what(entry)
        self._title.setText(what)
        facts = [
            tr(f"journal.cause_{entry.cause}"),
            journal.day_name(entry.at_ms, self._now_ms),
            journal.time_of_day(entry.at_ms),
        ]
        if entry.judge:
            facts.append(tr("journal.judge", judge=journal.judge_name(entry.judge)))
        self._facts.setText(" · ".join(facts))
        self._facts.setToolTip(entry.judge)
        self._facts.show()
        self.undo_button.setEnabled(not entry.undone)
        self.undo_button.show_as("journal.undone" if entry.undone else "journal.undo")
        if not entry.undone:
            self.undo_button.setAccessibleName(tr("journal.undo_named", what=what))

    def retranslate(self) -> None:
        """Says everything again."""
        self.setAccessibleName(tr("journal.detail"))
        self._build()
