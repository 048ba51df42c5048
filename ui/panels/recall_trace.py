"""The recall trace under an answer: each memory used, how it was found, its score, and what one may do with it."""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import QFrame, QHBoxLayout, QVBoxLayout, QWidget

from growbox_app.api import DeepSearch, TurnStats, UsedMemory
from growbox_app.text import tr
from ui.panels.controls import ElidedLabel, QuietLabel, TextButton
from ui.view_models import searching, wording
from ui.view_models.display import broken_lines, one_line, title_line

EXCERPT_CHARACTERS = 280


class TraceRow(QFrame):
    """One used memory.

    Signals: `source_wanted(NodeId)`, `pointers_wanted(NodeId)`, `rejected(NodeId)`.
    """

    source_wanted = Signal(object)
    pointers_wanted = Signal(object)
    rejected = Signal(object)

    def __init__(self, memory: UsedMemory, now_ms: int, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._memory = memory
        self._now_ms = now_ms
        self.setProperty("look", "row")
        self._title = ElidedLabel(
            title_line(memory.title) or one_line(memory.excerpt, 60), look="strong"
        )
        self._figures = QuietLabel()
        self._figures.setWordWrap(True)
        self._excerpt = QuietLabel(
            one_line(broken_lines(memory.excerpt), EXCERPT_CHARACTERS), look=""
        )
        self._excerpt.setWordWrap(True)
        self.open_button = TextButton("trace.open", kind="quiet")
        self.pointers_button = TextButton("trace.pointers", kind="quiet")
        self.reject_button = TextButton("trace.not_relevant", kind="quiet")
        self.open_button.clicked.connect(lambda: self.source_wanted.emit(memory.node_id))
        self.pointers_button.clicked.connect(lambda: self.pointers_wanted.emit(memory.node_id))
        self.reject_button.clicked.connect(self._reject)
        buttons = QHBoxLayout()
        buttons.setContentsMargins(0, 0, 0, 0)
        buttons.setSpacing(4)
        for button in (self.open_button, self.pointers_button, self.reject_button):
            buttons.addWidget(button)
        buttons.addStretch(1)
        column = QVBoxLayout(self)
        column.setContentsMargins(12, 8, 8, 6)
        column.setSpacing(3)
        column.addWidget(self._title)
        column.addWidget(self._excerpt)
        column.addWidget(self._figures)
        column.addLayout(buttons)
        self.retranslate()

    def retranslate(self) -> None:
        """Says the figures again."""
        when = wording.clock_time(self._memory.created_at_ms, self._now_ms)
        self._figures.setText(f"{wording.memory_figures(self._memory)} · {when}")
        self._figures.setToolTip(tr(f"way_help.{self._memory.way}"))

    def _reject(self) -> None:
        self.reject_button.setEnabled(False)
        self.reject_button.show_as("trace.noted")
        self.rejected.emit(self._memory.node_id)


class RecallTrace(QFrame):
    """All memories of one answer, what was found later by reading the past, and what both have cost.

    Signals: `source_wanted(NodeId)`, `pointers_wanted(NodeId)`, `rejected(NodeId)`.
    """

    source_wanted = Signal(object)
    pointers_wanted = Signal(object)
    rejected = Signal(object)

    def __init__(
        self,
        memories: tuple[UsedMemory, ...],
        stats: TurnStats,
        now_ms: int,
        *,
        search: DeepSearch | None = None,
        judge: str = "",
        parent: QWidget | None = None,
    ) -> None:
        super().__init__(parent)
        self._stats = stats
        self._search = search
        self._judge = judge
        self._now_ms = now_ms
        self.setProperty("look", "trace")
        self.setAccessibleName(tr("trace.name"))
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 4, 0, 4)
        column.setSpacing(0)
        used = {memory.node_id for memory in memories}
        later = search.memories if search else ()
        found = [memory for memory in later if memory.node_id not in used]
        self.rows = [TraceRow(memory, now_ms) for memory in (*memories, *found)]
        for row in self.rows:
            row.source_wanted.connect(self.source_wanted)
            row.pointers_wanted.connect(self.pointers_wanted)
            row.rejected.connect(self.rejected)
            column.addWidget(row)
        self._cost = QuietLabel()
        self._cost.setWordWrap(True)
        self._cost.setContentsMargins(12, 4, 8, 4)
        self._cost.setAlignment(Qt.AlignmentFlag.AlignLeft)
        column.addWidget(self._cost)
        self.retranslate()

    def retranslate(self) -> None:
        """Says the cost again."""
        self.setAccessibleName(tr("trace.name"))
        lines = [wording.cost_line(self._stats)]
        if self._search is not None:
            lines += [searching.trace_line(self._search, self._now_ms), self._judge]
        self._cost.setText("\n".join(line for line in lines if line))

    def show_search(self, search: DeepSearch) -> None:
        """Says again what reading the past has cost; what it found is listed when the trace is opened anew."""
        self._search = search
        self.retranslate()

    def cost_text(self) -> str:
        """The lines about cost."""
        return self._cost.text()
