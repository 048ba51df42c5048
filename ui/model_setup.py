"""Gets the models onto this machine: the first-run page's actions, the model menu in the header. Event-loop thread."""

from __future__ import annotations

import asyncio
from pathlib import Path

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget

from growbox_app.api import Assistant, ModelStatus, Problem, ProblemError, Progress
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from ui.panels.first_run import FirstRunPage

_NOT_USABLE = ("missing", "partial", "broken")  # an unverified file is verified while it is loaded


def setup_needed(models: tuple[ModelStatus, ...]) -> bool:
    """Whether a model that is needed is not there yet."""
    return any(model.selected and model.state in _NOT_USABLE for model in models)


class ModelSetup(QObject):
    """Models and the page that shows them.

    Signals: `needed(bool)` when the page should come or may go; `trouble(Problem)`; `page_wanted()`; `listed()` after a new list.
    """

    needed = Signal(bool)
    trouble = Signal(object)
    page_wanted = Signal()
    listed = Signal()

    def __init__(
        self, assistant: Assistant, page: FirstRunPage, *, tasks: TaskGroup, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._assistant = assistant
        self._page = page
        self._tasks = tasks
        self._running: dict[str, asyncio.Task[None]] = {}
        self.models: tuple[ModelStatus, ...] = ()
        page.download_wanted.connect(lambda model_id: self.obtain(model_id))
        page.file_chosen.connect(self.obtain)
        page.cancel_wanted.connect(self.cancel)
        page.select_wanted.connect(self.select)

    async def update(self) -> None:
        """Reads the catalogue's state anew."""
        self.models = await self._assistant.models()
        self._page.show_models(self.models)
        self.listed.emit()
        self.needed.emit(setup_needed(self.models))

    async def _update(self) -> None:
        try:
            await self.update()
        except ProblemError as error:
            self.trouble.emit(error.problem)

    def obtain(self, model_id: str, file: Path | None = None) -> None:
        """Downloads a model, or takes it from a file."""
        if model_id not in self._running:
            task = self._tasks.start(f"obtain {model_id}", self._obtain(model_id, file))
            self._running[model_id] = task
            task.add_done_callback(lambda _done: self._running.pop(model_id, None))

    async def _obtain(self, model_id: str, file: Path | None) -> None:
        row = self._page.rows[model_id]
        row.show_progress(Progress(step="preparing", done=0, total=0))
        trouble: Problem | None = None
        try:
            await self._assistant.obtain_model(model_id, row.show_progress, file)
        except ProblemError as error:
            trouble = error.problem
        finally:
            row.show_problem(trouble)
        await self._update()

    def cancel(self, model_id: str) -> None:
        """Stops a download; what is there is kept for later."""
        task = self._running.get(model_id)
        if task is not None:
            task.cancel()
            task.add_done_callback(lambda _done: self._tasks.start("models", self._update()))

    def select(self, model_id: str) -> None:
        """Uses another chat model."""
        self._tasks.start("select model", self._select(model_id))

    async def _select(self, model_id: str) -> None:
        try:
            await self._assistant.select_model(model_id)
        except ProblemError as error:
            self.trouble.emit(error.problem)
        await self._update()

    def fill_menu(self, menu: QMenu) -> None:
        """Puts the usable chat models and the way to the page into the header's menu."""
        menu.clear()
        group = QActionGroup(menu)
        for model in self.models:
            if model.purpose == "chat" and model.state == "ready":
                action = QAction(model.name, menu)
                action.setCheckable(True)
                action.setChecked(model.selected)
                action.triggered.connect(
                    lambda _checked=False, chosen=model.id: self.select(chosen)
                )
                group.addAction(action)
                menu.addAction(action)
        menu.addSeparator()
        more = QAction(tr("menu.models"), menu)
        more.triggered.connect(self.page_wanted)
        menu.addAction(more)

    def names(self) -> dict[str, str]:
        """Id → name of the chat models."""
        return {model.id: model.name for model in self.models if model.purpose == "chat"}
