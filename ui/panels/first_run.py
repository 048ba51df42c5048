"""The first-run page: what stays here, the models with their state, and a field to try Chinese input.

Shown while a needed model is missing, broken, or being checked or loaded for the first time. Also reachable later as "Models".
"""

from __future__ import annotations

from pathlib import Path

from PySide6.QtCore import Qt, Signal
from PySide6.QtWidgets import (
    QComboBox,
    QFileDialog,
    QFrame,
    QGridLayout,
    QHBoxLayout,
    QLineEdit,
    QProgressBar,
    QScrollArea,
    QVBoxLayout,
    QWidget,
)

from growbox_app.api import EnginePhase, EngineStatus, ModelStatus, Problem, ProblemCode, Progress
from growbox_app.text import tr
from ui.panels.controls import QuietLabel, TextButton, Words
from ui.view_models import wording

LANGUAGE_CHOICES = ("system", "en", "zh")
PAGE_PIXELS = 720
_UNUSABLE = ("missing", "partial", "broken")


class ModelRow(QFrame):
    """One model: facts, state, and what can be done about it.

    Signals: `download_wanted(str id)`, `file_chosen(str id, Path)`, `cancel_wanted(str id)`, `select_wanted(str id)`.
    """

    download_wanted = Signal(str)
    file_chosen = Signal(str, object)
    cancel_wanted = Signal(str)
    select_wanted = Signal(str)

    def __init__(self, status: ModelStatus, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setProperty("look", "card")
        self.status = status
        self._progress: Progress | None = None
        self._problem: Problem | None = None
        self._name = QuietLabel(status.name, look="strong")
        self._facts = QuietLabel()
        self._state = QuietLabel(look="")
        self._bar = QProgressBar()
        self._bar.setTextVisible(False)
        self._bar.setFixedHeight(4)
        self._bar.setRange(0, 1000)
        self._trouble = QuietLabel(look="danger")
        self._trouble.setWordWrap(True)
        self.download_button = TextButton(
            "models_page.download", icon_name="download", kind="primary"
        )
        self.file_button = TextButton("models_page.choose_file", icon_name="folder-open")
        self.cancel_button = TextButton("models_page.cancel", icon_name="x")
        self.use_button = TextButton("models_page.use", icon_name="check")
        self.download_button.clicked.connect(lambda: self.download_wanted.emit(self.status.id))
        self.cancel_button.clicked.connect(lambda: self.cancel_wanted.emit(self.status.id))
        self.use_button.clicked.connect(lambda: self.select_wanted.emit(self.status.id))
        self.file_button.clicked.connect(self._ask_file)
        self._arrange()
        self.retranslate()

    def _arrange(self) -> None:
        grid = QGridLayout(self)
        grid.setContentsMargins(14, 10, 14, 10)
        grid.setHorizontalSpacing(8)
        grid.setVerticalSpacing(4)
        grid.setColumnStretch(0, 1)
        grid.addWidget(self._name, 0, 0)
        grid.addWidget(self._state, 0, 1, Qt.AlignmentFlag.AlignRight)
        grid.addWidget(self._facts, 1, 0, 1, 2)
        grid.addWidget(self._bar, 2, 0, 1, 2)
        grid.addWidget(self._trouble, 3, 0, 1, 2)
        row = QHBoxLayout()
        row.setSpacing(8)
        for button in (self.download_button, self.use_button, self.file_button, self.cancel_button):
            row.addWidget(button)
        row.addStretch(1)
        grid.addLayout(row, 4, 0, 1, 2)

    def show_status(self, status: ModelStatus) -> None:
        """Shows another state."""
        self.status = status
        self.retranslate()

    def show_progress(self, progress: Progress | None) -> None:
        """Shows how far a download or check is; None when it ended."""
        self._progress = progress
        if progress is not None:
            self._problem = None
        self.retranslate()

    def show_problem(self, problem: Problem | None) -> None:
        """Says what went wrong and what to do."""
        self._progress = None
        self._problem = problem
        self.retranslate()

    def state_text(self) -> str:
        """State or progress in words."""
        return self._state.text()

    def problem_text(self) -> str:
        """The trouble in words; empty when there is none."""
        return self._trouble.text()

    def retranslate(self) -> None:
        """Says everything again."""
        status, progress = self.status, self._progress
        self._name.setText(status.name)
        facts = [
            tr(f"models_page.purpose_{status.purpose}"),
            wording.size(status.size_bytes),
            tr("models_page.ram", size=wording.size(status.ram_bytes)),
            status.licence,
        ]
        if status.purpose == "embedding":
            facts.insert(0, tr("models_page.needed_embedding"))
        self._facts.setText(" · ".join(facts))
        selected = status.selected and status.state == "ready"
        state = (
            wording.progress(progress)
            if progress
            else tr("models_page.used" if selected else f"models.state.{status.state}")
        )
        self._state.setText(state)
        self._bar.setVisible(progress is not None)
        self._bar.setAccessibleName(state)
        if progress is not None:
            self._bar.setRange(0, 1000 if progress.total else 0)
            self._bar.setValue(
                round(1000 * progress.done / progress.total) if progress.total else 0
            )
        self._trouble.setText(wording.problem(self._problem) if self._problem else "")
        self._trouble.setVisible(self._problem is not None)
        busy, unusable = progress is not None, status.state in _UNUSABLE
        self.download_button.setVisible(unusable and not busy)
        self.download_button.show_as(
            "models_page.resume" if status.state == "partial" else "models_page.download"
        )
        self.file_button.setVisible(unusable and not busy)
        self.cancel_button.setVisible(busy)
        self.download_button.set_kind("primary" if status.selected else "plain")
        self.use_button.setVisible(
            status.state == "ready"
            and not status.selected
            and status.purpose == "chat"
            and not busy
        )
        for button in (self.download_button, self.file_button, self.cancel_button, self.use_button):
            button.setAccessibleName(f"{button.text()}: {status.name}")

    def _ask_file(self) -> None:
        dialog = QFileDialog(self, tr("models_page.choose_file"))
        dialog.setFileMode(QFileDialog.FileMode.ExistingFile)
        dialog.setNameFilters(["GGUF (*.gguf)", f"{tr('models_page.all_files')} (*)"])
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.fileSelected.connect(lambda name: self.file_chosen.emit(self.status.id, Path(name)))
        dialog.open()


class FirstRunPage(QScrollArea):
    """The page.

    Signals: `download_wanted(str)`, `file_chosen(str, Path)`, `cancel_wanted(str)`, `select_wanted(str)`, `language_chosen(str)`,
    `finished()`.
    """

    download_wanted = Signal(str)
    file_chosen = Signal(str, object)
    cancel_wanted = Signal(str)
    select_wanted = Signal(str)
    language_chosen = Signal(str)
    finished = Signal()

    def __init__(self, parent: QWidget | None = None) -> None:
        super().__init__(parent)
        self.setObjectName("first_run_page")
        self.setFrameShape(QFrame.Shape.NoFrame)
        self.setWidgetResizable(True)
        self.setProperty("look", "conversation")
        self.setFocusPolicy(Qt.FocusPolicy.NoFocus)
        self.rows: dict[str, ModelRow] = {}
        self._engine = QuietLabel(look="strong")
        self._engine.setWordWrap(True)
        self._engine_bar = QProgressBar()
        self._engine_bar.setTextVisible(False)
        self._engine_bar.setFixedHeight(4)
        self._engine_bar.setRange(0, 1000)
        self._status = EngineStatus(phase=EnginePhase.STOPPED)
        self._progress: Progress | None = None
        self._models = QVBoxLayout()
        self._models.setSpacing(8)
        self.language_box = QComboBox()
        self.language_box.setObjectName("language_box")
        self.try_field = QLineEdit()
        self.try_field.setObjectName("try_input_field")
        self.start_button = TextButton("first_run.start", kind="primary")
        self.start_button.clicked.connect(self.finished)
        self._fill_page()
        self.language_box.activated.connect(
            lambda at: self.language_chosen.emit(LANGUAGE_CHOICES[at])
        )
        self.retranslate()

    def _fill_page(self) -> None:
        words = Words("first_run.words")
        words.setWordWrap(True)
        head = QHBoxLayout()
        head.setSpacing(8)
        head.addWidget(Words("first_run.title", look="hero"), 1)
        head.addWidget(self.language_box)
        column = QVBoxLayout()
        column.setSpacing(10)
        column.addLayout(head)
        column.addWidget(words)
        column.addSpacing(8)
        column.addWidget(Words("first_run.models", look="section"))
        column.addLayout(self._models)
        column.addWidget(self._engine)
        column.addWidget(self._engine_bar)
        column.addSpacing(8)
        column.addWidget(Words("first_run.try_input", look="section"))
        column.addWidget(self.try_field)
        column.addSpacing(4)
        column.addWidget(self.start_button, 0, Qt.AlignmentFlag.AlignLeft)
        column.addStretch(1)
        inner = QWidget()
        inner.setMaximumWidth(PAGE_PIXELS)
        inner.setLayout(column)
        page = QWidget()
        row = QHBoxLayout(page)
        row.setContentsMargins(24, 28, 24, 24)
        row.addStretch(1)
        row.addWidget(inner, 1000)
        row.addStretch(1)
        self.setWidget(page)

    def show_models(self, models: tuple[ModelStatus, ...]) -> None:
        """Shows the catalogue; rows keep their progress."""
        for status in sorted(models, key=lambda model: not model.selected):
            row = self.rows.get(status.id)
            if row is None:
                row = ModelRow(status)
                row.download_wanted.connect(self.download_wanted)
                row.file_chosen.connect(self.file_chosen)
                row.cancel_wanted.connect(self.cancel_wanted)
                row.select_wanted.connect(self.select_wanted)
                self.rows[status.id] = row
                self._models.addWidget(row)
            else:
                row.show_status(status)

    def show_progress(self, progress: Progress | None) -> None:
        """Shows a step of getting the models ready (checking a file)."""
        self._progress = progress
        self.retranslate()

    def show_engine(self, status: EngineStatus) -> None:
        """Shows whether the model is loaded."""
        self._status = status
        self.retranslate()

    def retranslate(self) -> None:
        """Says everything again."""
        at = max(0, self.language_box.currentIndex())
        self.language_box.clear()
        self.language_box.addItems(
            [tr(f"choice.general.language.{choice}") for choice in LANGUAGE_CHOICES]
        )
        self.language_box.setCurrentIndex(at)
        self.language_box.setAccessibleName(tr("first_run.language"))
        self.try_field.setPlaceholderText(tr("first_run.try_placeholder"))
        self.try_field.setAccessibleName(tr("first_run.try_input"))
        loading = self._status.phase in (EnginePhase.STARTING, EnginePhase.LOADING)
        self._engine.setText(self._engine_words())
        self._engine.setVisible(bool(self._engine.text()))
        self._engine_bar.setVisible(loading)
        self._engine_bar.setAccessibleName(self._engine.text())
        self._engine_bar.setValue(round(1000 * self._status.progress))
        self.start_button.setEnabled(self._status.phase is EnginePhase.READY)

    def _engine_words(self) -> str:
        """What the model process does; silent about a missing model, which the rows say already."""
        status = self._status
        if status.phase is EnginePhase.STOPPED:
            return wording.progress(self._progress) if self._progress is not None else ""
        if status.phase is EnginePhase.FAILED and status.problem is not None:
            missing = status.problem.code is ProblemCode.MODEL_MISSING
            return "" if missing else wording.problem(status.problem)
        return wording.engine(status)

    def show_language(self, choice: str) -> None:
        """Marks the language in force."""
        self.language_box.setCurrentIndex(
            LANGUAGE_CHOICES.index(choice) if choice in LANGUAGE_CHOICES else 0
        )
