"""The centre of the window: header, messages, what is going on, the input.

Stable names for drivers and tests: `input` (with `.submit()`), `stop_button`, `transcript_text()`, `phase_text()`, `problem_text()`.
"""

from __future__ import annotations

from PySide6.QtCore import Qt, Signal
from PySide6.QtGui import QDragEnterEvent, QDropEvent, QGuiApplication
from PySide6.QtWidgets import QFrame, QHBoxLayout, QStackedWidget, QToolButton, QVBoxLayout, QWidget
from typing_extensions import override

from growbox_app.api import PhaseChanged, Problem
from growbox_app.text import tr
from ui.panels.composer import Composer, local_files
from ui.panels.controls import (
    ElidedLabel,
    IconButton,
    QuietLabel,
    TextButton,
    Words,
    horizontal_line,
)
from ui.panels.find_bar import FindBar
from ui.panels.ingest_progress import IngestBar
from ui.panels.transcript_view import COLUMN_PIXELS_MAX, MARGIN_PIXELS, TranscriptView
from ui.view_models import wording
from ui.view_models.display import one_line
from ui.view_models.transcript import Transcript

SUGGESTIONS = ("remember", "recall", "explain")


class EmptyState(QWidget):
    """What a conversation shows before its first message: three real things to try.

    Signals: `chosen(str text)`.
    """

    chosen = Signal(str)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("empty_state")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._project = self._host = ""
        self._title = Words("empty.title", look="title")
        self._words = QuietLabel()
        self._words.setWordWrap(True)
        column = QVBoxLayout()
        column.setSpacing(8)
        column.addStretch(2)
        column.addWidget(self._title)
        column.addWidget(self._words)
        column.addSpacing(12)
        self.buttons = [TextButton(f"empty.{name}", kind="suggestion") for name in SUGGESTIONS]
        for button in self.buttons:
            button.clicked.connect(
                lambda _checked=False, chosen=button: self.chosen.emit(chosen.text())
            )
            column.addWidget(button)
        column.addStretch(3)
        row = QHBoxLayout(self)
        row.addStretch(1)
        row.addLayout(column, 8)
        row.addStretch(1)
        self.retranslate()

    def show_server(self, host: str) -> None:
        """Says which server answers; empty: this machine does."""
        self._host = host
        self.retranslate()

    def show_project(self, name: str) -> None:
        """Words the suggestions for a project; empty for none."""
        self._project = name
        self.retranslate()

    def retranslate(self) -> None:
        """Says everything again."""
        there = tr("endpoint.empty_words", host=self._host)
        self._words.setText(there if self._host else tr("empty.words"))
        for button, name in zip(self.buttons, SUGGESTIONS, strict=True):
            key = f"empty.{name}_project" if self._project else f"empty.{name}"
            button.setText(tr(key).format(project=self._project))
            button.setAccessibleName(button.text())


class ProblemBar(QFrame):
    """Known trouble outside a turn, inline: the sentence, its copyable detail, a button that closes it."""

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "problem")
        self.problem: Problem | None = None
        self._words = QuietLabel(look="")
        self._words.setWordWrap(True)
        self._words.setTextInteractionFlags(Qt.TextInteractionFlag.TextSelectableByMouse)
        self._copy = IconButton("copy", "problem_detail.copy")
        self._close = IconButton("x", "problem_detail.close")
        row = QHBoxLayout(self)
        row.setContentsMargins(12, 6, 8, 6)
        row.addWidget(self._words, 1)
        row.addWidget(self._copy, 0, Qt.AlignmentFlag.AlignTop)
        row.addWidget(self._close, 0, Qt.AlignmentFlag.AlignTop)
        self._copy.clicked.connect(self._copy_detail)
        self._close.clicked.connect(lambda: self.say(None))
        self.hide()

    def say(self, problem: Problem | None) -> None:
        """Shows trouble, or nothing."""
        self.problem = problem
        self._copy.setVisible(bool(problem and problem.detail))
        self.retranslate()
        self.setVisible(problem is not None)

    def retranslate(self) -> None:
        """Says the sentence again."""
        self._words.setText(wording.problem(self.problem) if self.problem else "")

    def text(self) -> str:
        """The sentence shown."""
        return self._words.text()

    def _copy_detail(self) -> None:
        if self.problem is not None:
            QGuiApplication.clipboard().setText(self.problem.detail)


class QueueRow(QFrame):
    """Follow-ups that wait for the running answer.

    Signals, each with the place in the queue: `withdrawn(int)` (back to the input, to be written on), `dropped(int)`.
    """

    withdrawn = Signal(int)
    dropped = Signal(int)

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self._column = QVBoxLayout(self)
        self._column.setContentsMargins(4, 0, 4, 0)
        self._column.setSpacing(2)
        self._texts: tuple[str, ...] = ()
        self.hide()

    def show_queue(self, texts: tuple[str, ...]) -> None:
        """Shows the waiting texts, first to be sent first."""
        self._texts = texts
        while (item := self._column.takeAt(0)) is not None:
            widget = item.widget()
            if widget is not None:
                widget.hide()
                widget.deleteLater()
        for place, text in enumerate(texts):
            self._column.addWidget(self._line(place, text))
        self.setVisible(bool(texts))

    def _line(self, place: int, text: str) -> QWidget:
        line = QWidget()
        row = QHBoxLayout(line)
        row.setContentsMargins(0, 0, 0, 0)
        row.addWidget(ElidedLabel(tr("queue_row.waiting", text=one_line(text)), look="quiet"), 1)
        edit = IconButton("pencil", "queue_row.withdraw")
        edit.clicked.connect(lambda: self.withdrawn.emit(place))
        remove = IconButton("x", "queue_row.drop")
        remove.clicked.connect(lambda: self.dropped.emit(place))
        row.addWidget(edit)
        row.addWidget(remove)
        return line

    def retranslate(self) -> None:
        """Says the lines again."""
        self.show_queue(self._texts)

    @property
    def texts(self) -> tuple[str, ...]:
        """What waits."""
        return self._texts


class ConversationPanel(QWidget):
    """Everything about one conversation.

    Signals: `stop_wanted()`, `mood_wanted()`, `model_wanted()`, `phase_changed(PhaseChanged | None)`.
    """

    stop_wanted = Signal()
    phase_changed = Signal(object)
    mood_wanted = Signal()
    model_wanted = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("conversation_panel")
        self.setAttribute(Qt.WidgetAttribute.WA_StyledBackground)
        self._phase: PhaseChanged | None = None
        self.setAcceptDrops(True)
        self.view = TranscriptView()
        self.empty_state = EmptyState()
        self.pages = QStackedWidget()
        self.pages.addWidget(self.empty_state)
        self.pages.addWidget(self.view)
        self.composer = Composer()
        self.input = self.composer.field
        self.problem_bar = ProblemBar()
        self.ingest_bar = IngestBar()
        self.queue_row = QueueRow()
        self.find_bar = FindBar()
        self.find_bar.hide()
        column = QVBoxLayout(self)
        column.setContentsMargins(0, 0, 0, 0)
        column.setSpacing(0)
        column.addWidget(self._make_header())
        column.addWidget(horizontal_line())
        column.addWidget(self.find_bar)
        column.addWidget(self.pages, 1)
        column.addLayout(self._make_foot())
        self.show_phase(None)
        self.retranslate()

    def _make_header(self) -> QWidget:
        header = QWidget()
        header.setFixedHeight(44)
        self._title = ElidedLabel(look="strong")
        self._title.setObjectName("conversation_title")
        self.model_button = QToolButton()
        self.model_button.setObjectName("model_button")
        self.model_button.setProperty("look", "words")
        self.model_button.setPopupMode(QToolButton.ToolButtonPopupMode.InstantPopup)
        self.mood_button = QToolButton()
        self.mood_button.setObjectName("mood_button")
        self.mood_button.setProperty("look", "words")
        self.mood_button.clicked.connect(self.mood_wanted)
        row = QHBoxLayout(header)
        row.setContentsMargins(MARGIN_PIXELS, 0, 12, 0)
        row.setSpacing(4)
        row.addWidget(self._title, 1)
        row.addWidget(self.model_button)
        row.addWidget(self.mood_button)
        return header

    def _make_foot(self) -> QHBoxLayout:
        self._phase_words = QuietLabel()
        self._phase_words.setObjectName("phase_line")
        self.stop_button = TextButton("composer.stop", icon_name="circle-stop", kind="plain")
        self.stop_button.setObjectName("stop_button")
        self.stop_button.clicked.connect(self.stop_wanted)
        self._phase_row = QWidget()
        row = QHBoxLayout(self._phase_row)
        row.setContentsMargins(4, 0, 0, 0)
        row.addWidget(self._phase_words, 1)
        row.addWidget(self.stop_button)
        inner = QWidget()
        inner.setMaximumWidth(COLUMN_PIXELS_MAX)
        column = QVBoxLayout(inner)
        column.setContentsMargins(0, 4, 0, 12)
        column.setSpacing(6)
        for widget in (
            self.ingest_bar,
            self.problem_bar,
            self._phase_row,
            self.queue_row,
            self.composer,
        ):
            column.addWidget(widget)
        foot = QHBoxLayout()
        foot.setContentsMargins(MARGIN_PIXELS, 0, MARGIN_PIXELS, 0)
        foot.addStretch(1)
        foot.addWidget(inner, 1000)
        foot.addStretch(1)
        return foot

    # -- content ------------------------------------------------------------------------------
    def show_transcript(self, transcript: Transcript, now_ms: int) -> None:
        """Shows a conversation."""
        self.view.show_transcript(transcript, now_ms)
        self.show_phase(transcript.phase)
        self.refresh_page()

    def refresh_page(self) -> None:
        """Shows the messages, or the empty state when there are none."""
        transcript = self.view.transcript
        self.pages.setCurrentWidget(self.view if transcript.messages else self.empty_state)
        self._show_title()

    def _show_title(self) -> None:
        conversation = self.view.transcript.conversation
        self._title.say((conversation.title if conversation else "") or tr("conversation.untitled"))

    def show_phase(self, phase: PhaseChanged | None) -> None:
        """Says what the turn is doing, or nothing when none runs."""
        self._phase = phase
        self.phase_changed.emit(phase)
        words = wording.phase(phase) if phase else ""
        self._phase_words.setText(tr("agent.waits") if self.view.transcript.waits else words)
        self._phase_row.setVisible(phase is not None)
        self.stop_button.setEnabled(phase is not None)

    def show_stopping(self) -> None:
        """Says that stopping was heard; the button cannot be pressed twice."""
        if self._phase is not None:
            self.stop_button.setEnabled(False)
            self._phase_words.setText(tr("phase.stopping"))

    def phase_text(self) -> str:
        """The phase line."""
        return self._phase_words.text()

    def problem_text(self) -> str:
        """The sentence of the problem bar; empty when none is shown."""
        return self.problem_bar.text()

    def transcript_text(self) -> str:
        """All messages as text, as the reader sees them."""
        return "\n\n".join(
            wording.message_text(message) for message in self.view.transcript.messages
        )

    def open_find(self) -> None:
        """Opens the find bar."""
        self.find_bar.open_bar()

    @override
    def dragEnterEvent(self, event: QDragEnterEvent) -> None:
        if local_files(event.mimeData()):
            event.acceptProposedAction()

    @override
    def dropEvent(self, event: QDropEvent) -> None:
        self.composer.files_dropped.emit(local_files(event.mimeData()))
        event.acceptProposedAction()

    def retranslate(self) -> None:
        """Says everything again."""
        self.show_phase(self._phase)
        self._show_title()
        self.setAccessibleName(tr("conversation.name"))
        self.stop_button.setToolTip(tr("composer.stop_tip"))
