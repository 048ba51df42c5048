"""Projects and conversations as things one keeps: menus, the project page, deleting with words and undo, export, moving."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPoint, QPointF, Qt, QUrl
from PySide6.QtGui import QContextMenuEvent, QDropEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QFileDialog

from growbox_app.api import Problem, ProblemCode
from growbox_app.library_face import ForgetState, Forgetting
from growbox_app.projects import FolderLevel
from growbox_app.safety.values import Grant, GrantKind, Mode
from growbox_app.text import tr
from memory.values import Conversation, ForgetPreview, ForgetReport, Project, Scope
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.test_accessibility import nameless


def world(assistant: ScriptedAssistant) -> tuple[Project, Conversation]:
    project = assistant.add_project("growbox", "/home/ada/growbox")
    assistant.add_project("thesis", "/home/ada/thesis")
    assistant.add_conversation("Weekend list", [("Milk", "Noted.")])
    return project, assistant.add_conversation("Fix CI", [("Why?", "A key.")], project)


def entries(desk: Desk, row_id: str) -> dict[str, object]:
    """The menu of a row, by words."""
    tree = desk.window.sidebar.tree
    item = tree._find(row_id) or next(
        tree.topLevelItem(at)
        for at in range(tree.topLevelItemCount())
        if tree.topLevelItem(at).text(0) == row_id
    )
    menu = tree.menu_of(item)
    return {action.text(): action for action in menu.actions() if action.text()}


def choose(desk: Desk, row_id: str, key: str) -> None:
    entries(desk, row_id)[tr(key)].trigger()


async def test_a_conversation_is_deleted_after_words_and_can_be_kept(desk: Desk) -> None:
    _, stored = world(desk.assistant)
    desk.assistant.library.previews[stored.id] = ForgetPreview(
        messages=2, notes=1, documents=3, elsewhere=1
    )
    await desk.open()
    window = desk.window
    window.open_conversation(stored.id)
    await desk.settle()
    choose(desk, stored.id, "sidebar.delete")
    await desk.settle()
    asked = window.library.bar.question
    assert asked.isVisible()
    assert asked.no_button.hasFocus()
    for part in ("Fix CI", "2 messages", "1 note", "3 attachments", "another conversation"):
        assert part in asked.text.text()
    QTest.keyClick(asked.no_button, Qt.Key.Key_Escape)
    assert not asked.isVisible()
    assert window.sidebar.tree.hasFocus()
    assert stored.id in desk.assistant._conversations

    window.run_command("delete")
    await desk.settle()
    asked.yes_button.click()
    await desk.settle()
    assert window.flow.shown.conversation_id is None
    assert window.sidebar.tree._find(stored.id) is None
    row = window.library.bar.rows[stored.id]
    assert "10 s" in row.text.text()
    row.tick()
    assert "9 s" in row.text.text()
    row.undo_button.click()
    await desk.settle()
    assert window.library.bar.rows == {}
    assert window.flow.shown.conversation_id == stored.id


async def test_the_bar_follows_a_deletion_to_its_proof(desk: Desk) -> None:
    _, stored = world(desk.assistant)
    await desk.open()
    desk.state.keep_draft(stored.id, "half a thought about it", [])
    library, bar = desk.assistant.library, desk.window.library.bar
    await library.forget(stored.id)
    await desk.settle()
    for step, words in (("delete", "removing messages"), ("prove", "3 of 12")):
        library.tell(
            Forgetting(
                conversation_id=stored.id,
                title="Fix CI",
                state=ForgetState.RUNNING,
                step=step,
                done=3,
                total=12,
            )
        )
        await desk.settle()
        row = bar.rows[stored.id]
        assert words in row.text.text()
        assert not row.undo_button.isVisible()
    report = ForgetReport(conversation_id=stored.id, nodes=2, files=12, searched=True)
    done = Forgetting(
        conversation_id=stored.id, title="Fix CI", state=ForgetState.DONE, report=report
    )
    library.tell(done)
    await desk.settle()
    assert "nothing of it is left" in row.text.text()
    assert desk.state.draft(stored.id) == ("", [])
    for changed, words in (
        (replace(report, left=("/data/logs/odd.log",)), "odd.log"),
        (replace(report, searched=False), "interrupted"),
        (replace(report, shared=2), "other conversations"),
    ):
        library.tell(replace(done, report=changed))
        await desk.settle()
        assert words in row.text.text()
    row.close_button.click()
    await desk.settle()
    assert bar.rows == {}


async def test_delete_on_the_keyboard_asks_about_the_row(desk: Desk) -> None:
    project, stored = world(desk.assistant)
    await desk.open()
    window = desk.window
    tree = window.sidebar.tree
    tree.setFocus()
    tree.select(stored.id)
    QTest.keyClick(tree, Qt.Key.Key_Delete)
    await desk.settle()
    assert window.library.bar.question.isVisible()
    tree.setCurrentItem(tree.topLevelItem(0))
    QTest.keyClick(tree, Qt.Key.Key_Delete)
    await desk.settle()
    page = window.library.page
    assert window.pages.currentWidget() is page
    assert page.remove_box.isVisible()
    assert project.name in page.remove_box._text.text()
    page.remove_box.yes_button.click()
    await desk.settle()
    assert project.id not in desk.assistant._projects
    assert window.pages.currentWidget() is window.conversation_panel
    assert tree._find(stored.id) is not None, "its conversations stay"
    assert tree._find(stored.id).parent() is None


async def test_the_menu_key_opens_the_menu_of_the_row(desk: Desk) -> None:
    _, stored = world(desk.assistant)
    await desk.open()
    tree = desk.window.sidebar.tree
    tree.select(stored.id)
    place = QPoint(0, 0)
    event = QContextMenuEvent(QContextMenuEvent.Reason.Keyboard, place, place)
    QApplication.sendEvent(tree.viewport(), event)
    menu = QApplication.activePopupWidget()
    assert menu is not None
    assert menu.activeAction().text() == tr("sidebar.rename")
    menu.close()


async def test_a_conversation_moves_to_another_project(desk: Desk) -> None:
    _, stored = world(desk.assistant)
    await desk.open()
    submenu = entries(desk, stored.id)[tr("sidebar.move")].menu()
    marks = {action.text(): action.isChecked() for action in submenu.actions()}
    assert marks == {"growbox": True, "thesis": False, tr("sidebar.no_project"): False}
    next(action for action in submenu.actions() if action.text() == "thesis").trigger()
    await desk.settle()
    assert desk.window.sidebar.tree._find(stored.id).parent().text(0) == "thesis"


async def test_a_conversation_is_exported_where_the_user_says(desk: Desk, tmp_path: Path) -> None:
    _, stored = world(desk.assistant)
    await desk.open()
    window = desk.window
    choose(desk, stored.id, "sidebar.export")
    dialog = window.findChild(QFileDialog)
    assert dialog is not None
    dialog.fileSelected.emit(str(tmp_path / "ci.md"))
    await desk.settle()
    assert desk.assistant.library.exported == [((stored.id,), tmp_path / "ci.md")]
    assert "ci.md" in window.status_line.text()
    dialog.close()
    desk.assistant.library.fail = Problem(
        code=ProblemCode.EXPORT_FAILED, fields={"path": "x", "reason": "no room"}
    )
    window.library.export(stored.id, tmp_path / "ci.md")
    await desk.settle()
    assert window.conversation_panel.problem_bar.problem.code is ProblemCode.EXPORT_FAILED


async def test_new_conversations_begin_in_the_project_they_were_asked_for(desk: Desk) -> None:
    project, _ = world(desk.assistant)
    await desk.open()
    choose(desk, "growbox", "sidebar.new_here")
    desk.ask("where am I?")
    await desk.settle()
    assert desk.assistant.requests[-1].project_id == project.id


async def test_a_folder_dropped_on_the_sidebar_becomes_a_project(
    desk: Desk, tmp_path: Path
) -> None:
    await desk.open()
    folder = tmp_path / "dropped"
    folder.mkdir()
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(folder))])
    event = QDropEvent(
        QPointF(5, 5),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    desk.window.sidebar.dropEvent(event)
    await desk.settle()
    assert [project.path for project in desk.assistant._projects.values()] == [str(folder)]


async def test_folders_have_levels_and_can_be_taken_out(desk: Desk, tmp_path: Path) -> None:
    project, _ = world(desk.assistant)
    await desk.open()
    window, library = desk.window, desk.assistant.library
    choose(desk, "growbox", "sidebar.open_project")
    await desk.settle()
    page = window.library.page
    assert page.title.text() == "growbox"
    page.folders_dropped.emit([tmp_path])
    await desk.settle()
    assert [row.folder.path for row in page.folder_rows] == [Path(project.path), tmp_path]
    second = page.folder_rows[1]
    assert second.level_box.currentText() == tr("project.level_read_only")
    second.level_box.activated.emit(0)
    await desk.settle()
    levels = [row.folder.level for row in page.folder_rows]
    assert levels == [FolderLevel.READ_ONLY, FolderLevel.WRITABLE]
    page.folder_rows[1].level_box.activated.emit(1)
    await desk.settle()
    assert page._none_writable.isVisible()
    assert not page.mode_box.isEnabled()
    page.folder_rows[1].remove_button.click()
    await desk.settle()
    assert len(page.folder_rows) == 1
    assert not page.folder_rows[0].remove_button.isVisible(), "the main one goes with the project"
    library.views[project.id] = replace(
        library.views[project.id], missing=frozenset({Path(project.path)})
    )
    window.library.open_page(project.id)
    await desk.settle()
    assert tr("project.missing") in page.folder_rows[0]._mark.text()


async def test_what_was_allowed_is_said_in_words_and_taken_back(desk: Desk) -> None:
    project, _ = world(desk.assistant)
    library = desk.assistant.library
    grants = (
        Grant(kind=GrantKind.PATH, value="/home/ada/growbox/notes"),
        Grant(kind=GrantKind.COMMAND, value="pytest"),
        Grant(kind=GrantKind.EXECUTOR, value="file_edit"),
    )
    library.views[project.id] = replace(library.view(project.id), grants=grants)
    await desk.open()
    window = desk.window
    window.library.open_page(project.id)
    await desk.settle()
    page = window.library.page
    shown = [row._words.text() for row in page.grant_rows]
    assert shown == ["Read and change /home/ada/growbox/notes", "Run pytest", "Use file edit"]
    page.grant_rows[1].revoke_button.setFocus()
    page.grant_rows[1].revoke_button.click()
    await desk.settle()
    assert [row.grant for row in page.grant_rows] == [grants[0], grants[2]]
    assert page.grant_rows[1].revoke_button.hasFocus(), "the keyboard stays in the list"
    page.revoke_button.click()
    await desk.settle()
    assert page.grant_rows == []
    assert page._no_grants.isVisible()


async def test_mode_and_memory_of_a_project(desk: Desk) -> None:
    project, _ = world(desk.assistant)
    await desk.open()
    window, library = desk.window, desk.assistant.library
    window.library.open_page(project.id)
    await desk.settle()
    page = window.library.page
    assert "As in the settings" in page.mode_box.currentText()
    page.mode_box.activated.emit(3)
    page.scope_box.activated.emit(1)
    await desk.settle()
    rules = library.views[project.id].rules
    assert (rules.mode, rules.scope) == (Mode.READ_ONLY, Scope.PROJECT)
    assert page.mode_box.currentIndex() == 3
    assert "31 files" in page.holdings.text()
    library.fail = Problem(code=ProblemCode.DATA_UNWRITABLE, fields={"path": "/data"})
    page.mode_box.activated.emit(0)
    await desk.settle()
    assert library.views[project.id].rules.mode is Mode.READ_ONLY
    page.add_button.setFocus()
    QTest.keyClick(page.add_button, Qt.Key.Key_Escape)
    assert window.pages.currentWidget() is window.conversation_panel


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_everything_on_the_page_and_the_bar_has_a_name(desk: Desk, language: str) -> None:
    project, stored = world(desk.assistant)
    tr.use(language)
    library = desk.assistant.library
    grant = Grant(kind=GrantKind.HOST, value="example.org")
    library.views[project.id] = replace(library.view(project.id), grants=(grant,))
    await desk.open()
    await library.add_folder(project.id, Path("/srv/data"))
    desk.window.library.open_page(project.id, removing=True)
    desk.window.library.ask_delete(stored.id)
    await desk.settle()
    await library.forget(stored.id)
    await desk.settle()
    assert nameless(desk.window) == []


async def test_commands_without_a_conversation_say_so(desk: Desk) -> None:
    await desk.open()
    for command in ("delete", "export"):
        desk.window.status_line.say("")
        desk.window.run_command(command)
        assert tr("sidebar.none_open") in desk.window.status_line.text()
    desk.window.run_command("project")
    dialog = desk.window.findChild(QFileDialog)
    assert dialog is not None, "without a project, a folder is chosen to be one"
    dialog.close()


async def test_drafts_of_conversations_that_are_gone_go_at_the_next_start(desk: Desk) -> None:
    _, stored = world(desk.assistant)
    desk.state.keep_draft("c-gone", "a thought", [])
    desk.state.keep_draft(stored.id, "another", [])
    desk.state.keep_draft("new", "a third", [])
    await desk.open()
    assert desk.state.draft("c-gone") == ("", [])
    assert desk.state.draft(stored.id)[0] == "another"
    assert desk.state.draft("new")[0] == "a third"
