"""Tools in the window: the dialog of servers and of what was learned. Event-loop thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping

from PySide6.QtCore import QObject, Signal
from PySide6.QtWidgets import QWidget
from shiboken6 import isValid

from growbox_app.api import Assistant, ProblemError
from growbox_app.mcp_client.values import ServerSpec
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from growbox_app.toolbox.face import Remembered
from ui.bridge import Bridge
from ui.panels.controls import refresh
from ui.panels.tools_dialog import ToolsDialog
from ui.view_models import wording


class ToolsFlow(QObject):
    """What the user does with tools.

    Signals: `trouble(Problem)` when there is no dialog to say it in.
    """

    trouble = Signal(object)

    def __init__(
        self, assistant: Assistant, bridge: Bridge, *, tasks: TaskGroup, parent: QWidget
    ) -> None:
        super().__init__(parent)
        bridge.tools_changed.connect(self.show_servers)
        self._assistant = assistant
        self._tasks = tasks
        self._window = parent
        self._dialog: ToolsDialog | None = None

    # -- wishes ---------------------------------------------------------------------------------
    def open(self) -> None:
        """Shows the dialog. No server is started by that: the user checks the one he looks at."""
        if self._dialog is None:
            self._dialog = dialog = ToolsDialog(self._window)
            dialog.save_wanted.connect(
                lambda spec, secrets: self._run(lambda: self._save(spec, secrets))
            )
            dialog.check_wanted.connect(lambda name: self._run(lambda: self._check(name)))
            dialog.remove_wanted.connect(lambda name: self._run(lambda: self._remove(name)))
            dialog.safe_wanted.connect(
                lambda name, tool, safe: self._run(lambda: self._mark(name, tool, safe))
            )
            dialog.forget_wanted.connect(lambda item: self._run(lambda: self._forget(item)))
            dialog.destroyed.connect(self._closed)
            servers = self._assistant.tools.servers()
            dialog.show_servers(servers, current=servers[0].spec.name if servers else "")
            self._run(self._look)
        self._dialog.show()
        self._dialog.raise_()

    def refresh(self) -> None:
        """Says everything again."""
        dialog = self._open_dialog()
        if dialog is not None:
            refresh(dialog)

    def show_servers(self) -> None:
        """Shows how the servers are doing now."""
        dialog = self._open_dialog()
        if dialog is not None:
            dialog.show_servers(self._assistant.tools.servers())

    # -- inside ---------------------------------------------------------------------------------
    def _run(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        self._tasks.start("tools", self._guarded(work))

    async def _guarded(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        try:
            await work()
        except ProblemError as error:
            dialog = self._open_dialog()
            if dialog is None:
                self.trouble.emit(error.problem)
            else:
                dialog.say(wording.problem(error.problem), trouble=True)
                dialog.show_servers(self._assistant.tools.servers())

    async def _look(self) -> None:
        await self._show_lessons()
        there = await self._assistant.tools.has_keyring()
        dialog = self._open_dialog()
        if dialog is not None:
            dialog.show_keyring(there=there)

    async def _show_lessons(self) -> None:
        names = {project.id: project.name for project in await self._assistant.library.projects()}
        dialog = self._open_dialog()
        if dialog is not None:
            dialog.show_lessons(self._assistant.tools.remembered(), names)

    async def _save(self, spec: ServerSpec, secrets: Mapping[str, str]) -> None:
        await self._assistant.tools.save_server(spec, secrets)
        self._show(spec.name)
        await self._check(spec.name)

    async def _check(self, name: str) -> None:
        self._say(tr("tools.saving", server=name))
        await self._assistant.tools.check_server(name)
        self._say("")
        self.show_servers()

    async def _remove(self, name: str) -> None:
        await self._assistant.tools.remove_server(name)
        self._show("")

    async def _mark(self, name: str, tool: str, safe: bool) -> None:
        await self._assistant.tools.mark_safe(name, tool, safe=safe)

    async def _forget(self, item: Remembered | None) -> None:
        await self._assistant.tools.forget(item)
        await self._show_lessons()

    def _open_dialog(self) -> ToolsDialog | None:
        """The dialog; looked up anew after every wait, for it may be closed."""
        return self._dialog if self._dialog is not None and isValid(self._dialog) else None

    def _show(self, current: str) -> None:
        dialog = self._open_dialog()
        if dialog is not None:
            dialog.show_servers(self._assistant.tools.servers(), current=current)

    def _say(self, words: str) -> None:
        dialog = self._open_dialog()
        if dialog is not None:
            dialog.say(words)

    def _closed(self) -> None:
        self._dialog = None
