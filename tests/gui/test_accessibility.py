"""Every control has a name, the keyboard reaches what matters."""

import asyncio

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QAccessible
from PySide6.QtWidgets import (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QDialog,
    QLineEdit,
    QPlainTextEdit,
    QProgressBar,
    QScrollBar,
    QTabBar,
    QTextEdit,
    QWidget,
)

from growbox_app.api import EnginePhase, EngineStatus, Problem, ProblemCode
from memory.values import NodeId
from tests.fakes.assistant import START_MS
from tests.gui.conftest import Desk
from tests.gui.rest_past import entries, proposals
from ui.panels.about import AboutDialog
from ui.panels.help_dialogs import KeysDialog

CONTROLS = (
    QAbstractButton,
    QAbstractItemView,
    QAbstractSpinBox,
    QComboBox,
    QLineEdit,
    QPlainTextEdit,
    QTextEdit,
    QProgressBar,
)
# Parts of a Qt control that it names itself, or that are reached through it.
INNER = (
    "qt_menubar_ext_button",
    "qt_spinbox_lineedit",
    "qt_tabbar",
    "ScrollLeftButton",
    "ScrollRightButton",
    "qt_toolbar_ext_button",
)


def nameless(root: QWidget) -> list[str]:
    found = []
    for widget in root.findChildren(QWidget):
        if not isinstance(widget, CONTROLS) or isinstance(widget, QScrollBar | QTabBar):
            continue
        parent = widget.parentWidget()
        inside = isinstance(parent, QComboBox | QAbstractSpinBox | QLineEdit | QTabBar) or (
            parent is not None and isinstance(parent.parentWidget(), QComboBox)
        )
        if (
            inside
            or widget.objectName() in INNER
            or widget.metaObject().className() in ("QHeaderView", "QTableCornerButton")
        ):
            continue
        interface = QAccessible.queryAccessibleInterface(widget)
        name = (
            interface.text(QAccessible.Text.Name)
            if interface is not None
            else widget.accessibleName()
        )
        if not name.strip():
            found.append(
                f"{widget.metaObject().className()} {widget.objectName()} in {parent.objectName() if parent else ''}"
            )
    return found


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_every_control_has_a_name(desk: Desk, language: str) -> None:
    assistant, window = desk.assistant, desk.window
    await assistant.change_setting("general.language", language)
    assistant.memories = (assistant.used("a memory"),)
    assistant.selected = "standard"
    stored = assistant.add_conversation("S", [("q", "text\n\n```py\nx\n```\n")])
    await desk.open()
    window.open_conversation(stored.id)
    await desk.settle()
    assistant.notices.append(Problem(code=ProblemCode.ENGINE_DIED, detail="native line"))
    assistant.gate = asyncio.Event()
    desk.ask("more")
    await desk.until(lambda: window.flow.shown.running)
    desk.ask("follow-up")
    view = window.conversation_panel.view.view_of(1)
    assert view is not None
    view.memories_button.setChecked(True)
    window.conversation_panel.open_find()
    window.say_problem(Problem(code=ProblemCode.DISK_FULL, detail="x"))
    window.open_settings()
    window.run_command("keys")
    window.run_command("about")
    assistant.rest.entries = entries([NodeId("n1")], language, START_MS)
    assistant.rest.known_proposals = list(proposals(language))
    await assistant.rest.add_goal("a goal")
    window.run_command("journal")
    page = window.journal.page
    await desk.until(lambda: bool(page.skills.cards) and len(page.goals.rows) == 4)
    page.changes.list.setCurrentIndex(page.changes.list.journal.index(1))
    assert nameless(window) == []
    for dialog in window.findChildren(QDialog):
        assert nameless(dialog) == []
        dialog.close()
    assert not any(dialog.isModal() for dialog in window.findChildren(QDialog))
    assistant.gate.set()
    await desk.settle()


async def test_the_tab_key_goes_from_the_sidebar_to_the_conversation(desk: Desk) -> None:
    stored = desk.assistant.add_conversation("S", [("q", "a")])
    await desk.open()
    window = desk.window
    window.open_conversation(stored.id)
    await desk.settle()
    order: list[QWidget] = []
    widget: QWidget = window.sidebar.new_button
    for _step in range(400):
        if (
            widget.focusPolicy() & Qt.FocusPolicy.TabFocus
            and widget.isVisibleTo(window)
            and widget.isEnabled()
        ):
            order.append(widget)
        widget = widget.nextInFocusChain()
        if widget is window.sidebar.new_button:
            break
    wanted = [
        window.sidebar.new_button,
        window.sidebar.search_field,
        window.sidebar.tree,
        window.conversation_panel.view,
        window.conversation_panel.input,
        window.conversation_panel.composer.send_button,
    ]
    places = [order.index(widget) for widget in wanted]
    assert places == sorted(places)


async def test_dialogs_of_help_show_keys_and_version(desk: Desk) -> None:
    await desk.open()
    desk.window.run_command("keys")
    desk.window.run_command("about")
    keys = desk.window.findChild(KeysDialog)
    about = desk.window.findChild(AboutDialog)
    assert keys is not None
    assert about is not None
    keys.close()
    about.close()


async def test_the_first_run_page_is_named_and_tries_input(desk: Desk) -> None:
    desk.assistant.selected = "standard"
    desk.assistant.status = EngineStatus(phase=EnginePhase.LOADING, progress=0.4, model_name="Qwen")
    await desk.open()
    page = desk.window.first_run_page
    assert nameless(page) == []
    page.try_field.setText("你好")
    assert page.try_field.text() == "你好"
    page.language_box.setCurrentIndex(2)
    page.language_box.activated.emit(2)
    await desk.settle()
    assert desk.assistant.setting("general.language") == "zh"
