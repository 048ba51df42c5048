"""Opens the list of decisions about the assistant's calls, and saves what is shown of it. Event-loop thread; the file is written off it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import msgspec
from PySide6.QtCore import QObject, Qt, Signal
from PySide6.QtWidgets import QFileDialog, QWidget

from growbox_app.api import Assistant, Problem, ProblemCode
from growbox_app.audit_log import Decided
from growbox_app.files import write_atomically
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from memory.ports import Clock
from ui.panels.decisions_dialog import DecisionsDialog

DECISIONS_MAX = 2_000
FILE_NAME = "growbox-decisions.jsonl"


class DecisionsFlow(QObject):
    """The list of one window.

    Signals: `trouble(Problem)`.
    """

    trouble = Signal(object)

    def __init__(
        self, assistant: Assistant, clock: Clock, *, tasks: TaskGroup, parent: QWidget
    ) -> None:
        super().__init__(parent)
        self._assistant, self._clock, self._tasks, self._window = assistant, clock, tasks, parent

    def open(self) -> None:
        """Shows the newest decisions."""
        self._tasks.start("decisions", self._open())

    async def _open(self) -> None:
        found = await self._assistant.decisions(DECISIONS_MAX)
        dialog = DecisionsDialog(self._clock.now_ms(), self._window)
        dialog.save_wanted.connect(lambda shown: self._ask_path(shown, dialog))
        dialog.show_decisions(found)
        dialog.show()

    def _ask_path(self, shown: tuple[Decided, ...], parent: QWidget) -> None:
        dialog = QFileDialog(parent, tr("decisions.save"))
        dialog.setAcceptMode(QFileDialog.AcceptMode.AcceptSave)
        dialog.setAttribute(Qt.WidgetAttribute.WA_DeleteOnClose)
        dialog.selectFile(FILE_NAME)
        dialog.fileSelected.connect(lambda name: self.save(shown, Path(name)))
        dialog.open()

    def save(self, shown: tuple[Decided, ...], path: Path) -> None:
        """Writes decisions to a file, a line each."""
        self._tasks.start("save decisions", self._save(shown, path))

    async def _save(self, shown: tuple[Decided, ...], path: Path) -> None:
        content = b"".join(msgspec.json.encode(decided) + b"\n" for decided in shown)
        try:
            await asyncio.to_thread(write_atomically, path, content)
        except OSError as error:
            fields = {"path": str(path)}
            self.trouble.emit(
                Problem(code=ProblemCode.DATA_UNWRITABLE, fields=fields, detail=str(error))
            )
