"""Servers in the window: their dialog, their place in the model menu, and the quiet line that says who answers. Event-loop thread."""

from __future__ import annotations

from collections.abc import Callable, Coroutine

from PySide6.QtCore import QObject, Signal
from PySide6.QtGui import QAction, QActionGroup
from PySide6.QtWidgets import QMenu, QWidget
from shiboken6 import isValid

from growbox_app.api import Assistant, ProblemError
from growbox_app.endpoints.address import host_of
from growbox_app.endpoints.face import OFFLINE, Endpoint, EndpointDraft
from growbox_app.tasks import TaskGroup
from growbox_app.text import tr
from ui.panels.controls import refresh
from ui.panels.endpoints_dialog import EndpointsDialog
from ui.view_models import wording
from ui.view_models.display import one_line

NAME_CHARACTERS = 40


class EndpointsFlow(QObject):
    """What the user does with servers.

    Signals: `changed()` after the list or the choice changed; `trouble(Problem)` when there is no dialog to say it in.
    """

    changed = Signal()
    trouble = Signal(object)

    def __init__(self, assistant: Assistant, *, tasks: TaskGroup, parent: QWidget) -> None:
        super().__init__(parent)
        self._assistant = assistant
        self._tasks = tasks
        self._window = parent
        self._dialog: EndpointsDialog | None = None

    # -- shown elsewhere ------------------------------------------------------------------------
    def chosen(self) -> Endpoint | None:
        """The server that answers."""
        return self._assistant.endpoints.chosen()

    def names(self) -> dict[str, str]:
        """Id → name for the settings; the empty id is the model of this machine."""
        named = {item.id: item.name for item in self._assistant.endpoints.all()}
        return {"": tr("endpoint.local")} | named

    def extend_menu(self, menu: QMenu) -> None:
        """Puts the servers into the model menu, behind the models of this machine, and the way to the dialog at its end."""
        actions = menu.actions()
        models = [action for action in actions if action.isCheckable()]
        group = models[0].actionGroup() if models else None
        group = group or QActionGroup(menu)
        behind = actions[len(models)] if len(models) < len(actions) else None
        for endpoint in self._assistant.endpoints.all():
            words = f"{endpoint.name} · {endpoint.host}"
            action = QAction(words.replace("&", "&&"), menu)
            action.setCheckable(True)
            action.triggered.connect(lambda _checked=False, at=endpoint.id: self.choose(at))
            group.addAction(action)
            menu.insertAction(behind, action) if behind is not None else menu.addAction(action)
            action.setChecked(endpoint.chosen)
        more = QAction(tr("endpoint.open"), menu)
        more.triggered.connect(self.open)
        menu.addAction(more)

    # -- wishes ---------------------------------------------------------------------------------
    def open(self) -> None:
        """Shows the dialog."""
        if self._dialog is None:
            self._dialog = dialog = EndpointsDialog(self._window)
            dialog.save_wanted.connect(lambda draft: self._run(lambda: self._save(draft)))
            dialog.test_wanted.connect(lambda draft: self._run(lambda: self._test(draft)))
            dialog.use_wanted.connect(self.choose)
            dialog.remove_wanted.connect(lambda at: self._run(lambda: self._remove(at)))
            dialog.destroyed.connect(self._closed)
            chosen = self.chosen()
            self._show(chosen.id if chosen is not None else "")
        self._dialog.show()
        self._dialog.raise_()

    def choose(self, endpoint_id: str) -> None:
        """Lets a server answer; empty: the model of this machine."""
        self._run(lambda: self._choose(endpoint_id))

    def refresh(self) -> None:
        """Says everything again, and what has changed elsewhere."""
        if self._dialog is not None:
            refresh(self._dialog)
            self._show_offline()

    # -- inside ---------------------------------------------------------------------------------
    def _run(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        self._tasks.start("endpoints", self._guarded(work))

    async def _guarded(self, work: Callable[[], Coroutine[object, object, None]]) -> None:
        try:
            await work()
        except ProblemError as error:
            dialog = self._open_dialog()
            if dialog is None:
                self.trouble.emit(error.problem)
            else:
                dialog.say(wording.problem(error.problem), trouble=True)

    async def _save(self, draft: EndpointDraft) -> None:
        saved = await self._assistant.endpoints.save(draft)
        self._show(saved.id)
        self._say("endpoint.saved_until_end" if saved.key == "until_end" else "endpoint.saved")
        self.changed.emit()

    async def _test(self, draft: EndpointDraft) -> None:
        host = host_of(draft.base_url) or draft.base_url
        self._say("endpoint.testing", host=host)
        models = await self._assistant.endpoints.test(draft)
        dialog = self._open_dialog()
        if dialog is not None:
            dialog.show_models(models)
            key = "endpoint.tested_one" if len(models) == 1 else "endpoint.tested_many"
            self._say(key, host=host, count=len(models))

    async def _choose(self, endpoint_id: str) -> None:
        await self._assistant.endpoints.choose(endpoint_id)
        if self._open_dialog() is not None:
            self._show(endpoint_id or None)
        self.changed.emit()

    async def _remove(self, endpoint_id: str) -> None:
        await self._assistant.endpoints.remove(endpoint_id)
        self._show("")
        self._say("endpoint.removed")
        self.changed.emit()

    def _open_dialog(self) -> EndpointsDialog | None:
        """The dialog; looked up anew after every wait, for it may be closed."""
        return self._dialog if self._dialog is not None and isValid(self._dialog) else None

    def _show(self, current: str | None) -> None:
        dialog = self._open_dialog()
        if dialog is not None:
            endpoints = self._assistant.endpoints.all()
            dialog.show_all(endpoints, offline=self._offline(), current=current)

    def _show_offline(self) -> None:
        dialog = self._open_dialog()
        if dialog is not None:
            dialog.show_offline(offline=self._offline())

    def _offline(self) -> bool:
        return bool(self._assistant.setting(OFFLINE))

    def _say(self, key: str, **fields: object) -> None:
        dialog = self._open_dialog()
        if dialog is not None:
            dialog.say(tr(key, **fields))

    def _closed(self) -> None:
        self._dialog = None


def button_words(endpoint: Endpoint) -> tuple[str, str]:
    """Words and tooltip of the model button while a server answers."""
    model, host = endpoint.model, endpoint.host
    tip = tr("endpoint.menu_tip", model=model, host=host)
    return one_line(f"{model} · {host}", NAME_CHARACTERS), tip


def status_words(endpoint: Endpoint | None) -> str:
    """The permanent line that says where text goes; empty while it stays here."""
    if endpoint is None:
        return ""
    key = "endpoint.here" if endpoint.loopback else "endpoint.there"
    where = tr(key, host=endpoint.host)
    return tr("endpoint.status", model=one_line(endpoint.model, NAME_CHARACTERS), where=where)
