"""Settings that cannot be kept, settings typed at the last moment, and words after a change of language."""

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import QEvent
from PySide6.QtWidgets import QApplication, QComboBox, QPlainTextEdit, QSpinBox

from growbox_app.api import Problem, ProblemCode
from growbox_app.text import tr
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from ui.panels.code_block import CodeBlock
from ui.panels.settings_dialog import SettingsDialog

UNWRITABLE = Problem(code=ProblemCode.DATA_UNWRITABLE, fields={"path": "/read-only"})


async def settings(desk: Desk) -> SettingsDialog:
    await desk.open()
    desk.window.open_settings()
    dialog = desk.window._settings_dialog
    assert dialog is not None
    return dialog


async def test_a_setting_that_cannot_be_written_goes_back_and_says_so(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    dialog = await settings(desk)
    assistant.fail_settings = UNWRITABLE
    row = dialog.rows["memory.pages_max"]
    assert isinstance(row.editor, QSpinBox)
    row.editor.setValue(9)
    await desk.settle()
    assert row.editor.value() == 6
    assert "/read-only" in row._trouble.text()
    assert "/read-only" in desk.window.conversation_panel.problem_text()
    desk.window.choose("general.language", "zh")
    await desk.settle()
    assert desk.window.menus._choices["general.language"]["system"].isChecked()
    dialog.close()


async def test_the_dialog_may_close_while_a_setting_is_written(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    dialog = await settings(desk)
    written = asyncio.Event()

    async def slowly(_key: str, _value: object) -> None:
        await written.wait()

    assistant.change_setting = slowly  # type: ignore[method-assign]
    dialog.changed.emit("memory.pages_max", 9)
    await asyncio.sleep(0)
    dialog.close()
    QApplication.sendPostedEvents(None, QEvent.Type.DeferredDelete)
    written.set()
    await desk.settle()
    assert desk.window._settings_dialog is None


async def test_automatic_loads_the_model_it_chooses(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    assistant.model_states["standard"] = "ready"
    await assistant.select_model("standard")
    dialog = await settings(desk)
    dialog.changed.emit("models.chat", "auto")
    await desk.settle()
    assert assistant.selected == "light"
    dialog.close()


@pytest.mark.parametrize("way", ["close", "reject", "quit"])
async def test_instructions_typed_just_before_closing_are_kept(
    desk: Desk, assistant: ScriptedAssistant, way: str
) -> None:
    dialog = await settings(desk)
    area = dialog.rows["models.instructions"].editor
    assert isinstance(area, QPlainTextEdit)
    area.setPlainText("Answer briefly.")
    if way == "quit":
        desk.window.keep()
        await desk.readers.cancel_all()
    else:
        getattr(dialog, way)()
    await desk.settle()
    assert assistant.setting("models.instructions") == "Answer briefly."


async def test_words_that_a_parent_gave_survive_a_change_of_theme_and_language(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    assistant.memories = (assistant.used("one"), assistant.used("two"))
    dialog = await settings(desk)
    window = desk.window
    desk.ask("which?")
    await desk.settle()
    view = window.conversation_panel.view.view_of(1)
    assert view is not None
    window.conversation_panel.empty_state.show_project("thesis")
    for theme_name, language in (("dark", "en"), ("light", "zh")):
        window.choose("appearance.theme", theme_name)
        window.choose("general.language", language)
        await desk.settle()
        assert view.memories_button.text().startswith(tr("answer.used_many", count=2))
        assert "thesis" in window.conversation_panel.empty_state.buttons[0].text()
        close = window.panels.docks["queue"]._close
        assert close.accessibleName() == tr("dock.close_named", name=tr("panel.queue"))
        reset = dialog.rows["memory.pages_max"].reset_button
        label = tr("setting.memory.pages_max.label")
        assert reset.accessibleName() == tr("settings.reset_named", name=label)
        row = window.first_run_page.rows["standard"]
        assert row.download_button.accessibleName().endswith(": Qwen2.5 Coder 1.5B")
    dialog.close()


async def test_what_was_said_before_a_change_of_language_is_said_again(desk: Desk) -> None:
    dialog = await settings(desk)
    window = desk.window
    desk.ask("needle")
    await desk.settle()
    window.run_command("find")
    find = window.conversation_panel.find_bar
    find.field.setText("needle")
    window.sidebar.search_field.setText("nowhere")
    window.sidebar.search_wanted.emit("nowhere")
    await desk.settle()
    log = Path("crash.log")
    window.say_crash(log, "")
    window.choose("general.language", "zh")
    await desk.settle()
    assert find._count.text() == tr("find.count", at=1, count=2)
    assert window.sidebar._nothing.text() == tr("sidebar.nothing_found", text="nowhere")
    assert tr("status.crash", path=log) in window.status_line.text()
    chat = dialog.rows["models.chat"]
    assert isinstance(chat.editor, QComboBox)
    assert chat.editor.itemText(0) == "自动"
    assert "自动" in chat._help.text()
    dialog.close()


async def test_copied_is_said_for_a_moment(desk: Desk, assistant: ScriptedAssistant) -> None:
    await desk.open()
    assistant.answers.append("```python\nprint(1)\n```")
    desk.ask("code")
    await desk.settle()
    block = desk.window.conversation_panel.view.findChild(CodeBlock)
    assert block is not None
    block.copy_button.click()
    assert block.copy_button.accessibleName() == tr("code.copied")
    block._copied.setInterval(0)
    await desk.until(lambda: block.copy_button.accessibleName() == tr("code.copy"))


async def test_a_model_row_promises_nothing_about_this_machine(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    rows = desk.window.first_run_page.rows
    assert rows["light"]._facts.text().startswith(tr("models_page.purpose_chat"))
    assert rows["e5"]._facts.text().startswith(tr("models_page.needed_embedding"))
