"""Servers in the window: adding, testing, choosing, removing, and what the window says of where text goes."""

from __future__ import annotations

from PySide6.QtWidgets import QComboBox, QLineEdit, QMenu

from growbox_app.api import EnginePhase, EngineStatus, Problem, ProblemCode
from growbox_app.endpoints.face import CHOSEN, Endpoint, EndpointDraft
from growbox_app.endpoints.http import Server, chunks
from growbox_app.endpoints.reply import Reply
from tests.fakes.assistant import ScriptedAssistant
from tests.fakes.chat_server import chat_server, says
from tests.gui.conftest import Desk
from ui.panels.endpoints_dialog import EndpointsDialog

REMOTE = EndpointDraft(base_url="https://api.example.com/v1", model="big-1", key="sk-very-secret-1")
LOCAL = EndpointDraft(base_url="http://localhost:8080/v1", model="qwen3-8b", name="llama")


async def opened(desk: Desk) -> EndpointsDialog:
    await desk.open()
    desk.window.run_command("servers")
    dialog = desk.window.endpoints._dialog
    assert dialog is not None
    return dialog


async def chosen(desk: Desk, draft: EndpointDraft) -> Endpoint:
    endpoint = await desk.assistant.endpoints.save(draft)
    await desk.assistant.endpoints.choose(endpoint.id)
    await desk.settle()
    return endpoint


async def test_a_server_is_tested_saved_and_used(desk: Desk, assistant: ScriptedAssistant) -> None:
    dialog = await opened(desk)
    dialog.address_field.setText("http://localhost:8080")
    assert "on this computer" in dialog.where()
    dialog.test_button.click()
    await desk.settle()
    assert "localhost:8080 answers and has 1 model" in dialog.said()
    assert dialog.model_field.currentText() == "qwen3-8b"
    assert dialog.context_field.value() == 40960
    dialog.key_field.setText("sk-very-secret-1")
    dialog.save_button.click()
    await desk.settle()
    assert assistant.endpoints.drafts[-1].key == "sk-very-secret-1"
    assert dialog.key_field.text() == ""
    assert "keyring" in dialog.key_field.placeholderText()
    dialog.use_button.click()
    await desk.settle()
    assert "qwen3-8b · localhost:8080" in desk.window.conversation_panel.model_button.text()
    assert "on this computer" in desk.window.status_line.text()
    dialog.close()


async def test_a_key_can_be_forgotten_and_is_else_left_alone(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await assistant.endpoints.save(REMOTE)
    dialog = await opened(desk)
    dialog.list.setCurrentRow(0)
    dialog.save_button.click()
    await desk.settle()
    assert assistant.endpoints.drafts[-1].key is None
    assert not dialog.forget_key_button.isHidden()
    dialog.forget_key_button.click()
    dialog.save_button.click()
    await desk.settle()
    assert assistant.endpoints.drafts[-1].key == ""
    assert dialog.forget_key_button.isHidden()
    dialog.close()


async def test_the_key_field_shows_no_characters(desk: Desk) -> None:
    dialog = await opened(desk)
    assert dialog.key_field.echoMode() is QLineEdit.EchoMode.Password
    dialog.close()


async def test_trouble_is_said_in_the_dialog(desk: Desk, assistant: ScriptedAssistant) -> None:
    dialog = await opened(desk)
    dialog.address_field.setText("https://api.example.com/v1")
    assert "go to api.example.com" in dialog.where()
    assert "offline" in dialog.where()
    fields = {"host": "api.example.com"}
    assistant.endpoints.fail = Problem(code=ProblemCode.ENDPOINT_OFFLINE, fields=fields)
    dialog.test_button.click()
    await desk.settle()
    assert "Switch Offline off" in dialog.said()
    dialog.address_field.setText("http://api.example.com/v1")
    assert "not encrypted" in dialog.where()
    await assistant.change_setting("network.offline", value=False)
    desk.window.choose("network.offline", value=False)
    await desk.settle()
    assert "offline" not in dialog.where()
    dialog.close()


async def test_the_window_says_permanently_where_text_goes(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    assert "example" not in desk.window.status_line.text()
    await chosen(desk, REMOTE)
    assert "Answers: big-1 · text goes to api.example.com" in desk.window.status_line.text()
    assert "api.example.com" in desk.window.conversation_panel.model_button.toolTip()
    assert "api.example.com" in desk.window.conversation_panel.empty_state._words.text()
    desk.window.choose("general.language", "zh")
    await desk.settle()
    assert "文字发往 api.example.com" in desk.window.status_line.text()


async def test_the_model_menu_offers_servers_and_marks_the_one_that_answers(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    await assistant.endpoints.save(LOCAL)
    await chosen(desk, REMOTE)
    desk.window._fill_model_menu()
    menu: QMenu = desk.window._model_menu
    marks = {action.text(): action.isChecked() for action in menu.actions() if action.isCheckable()}
    assert marks == {
        "Qwen2.5 Coder 0.5B": False,
        "llama · localhost:8080": False,
        "big-1 · api.example.com": True,
    }
    llama = next(action for action in menu.actions() if action.text().startswith("llama"))
    llama.trigger()
    await desk.settle()
    answering = assistant.endpoints.chosen()
    assert answering is not None
    assert answering.name == "llama"


async def test_the_settings_choose_who_answers(desk: Desk, assistant: ScriptedAssistant) -> None:
    endpoint = await assistant.endpoints.save(LOCAL)
    await desk.open()
    desk.window.open_settings()
    dialog = desk.window._settings_dialog
    assert dialog is not None
    editor = dialog.rows[CHOSEN].editor
    assert isinstance(editor, QComboBox)
    assert [editor.itemText(at) for at in range(editor.count())] == [
        "The model of this machine",
        "llama",
    ]
    desk.window.choose(CHOSEN, endpoint.id)
    await desk.settle()
    assert assistant.endpoints.chosen() is not None
    dialog.close()


async def test_without_a_model_of_its_own_the_window_works_with_a_server(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    problem = Problem(code=ProblemCode.MODEL_MISSING, fields={"model": "Qwen"})
    assistant.model_states["light"] = "missing"
    assistant.status = EngineStatus(phase=EnginePhase.FAILED, problem=problem)
    await desk.open()
    assert desk.window.pages.currentWidget() is desk.window.first_run_page
    await chosen(desk, LOCAL)
    assert desk.window.pages.currentWidget() is desk.window.conversation_panel


async def test_a_server_is_removed(desk: Desk, assistant: ScriptedAssistant) -> None:
    endpoint = await assistant.endpoints.save(LOCAL)
    dialog = await opened(desk)
    dialog.show_all(assistant.endpoints.all(), offline=True, current=endpoint.id)
    dialog.remove_button.click()
    await desk.settle()
    assert assistant.endpoints.all() == ()
    assert dialog.list.count() == 0
    assert dialog.remove_button.isHidden()
    dialog.close()


async def test_a_stream_comes_through_on_the_loop_of_the_window(desk: Desk) -> None:
    await desk.open()
    async with chat_server(says("on ", "Qt's ", "loop")) as server:
        body = {"model": "m", "messages": [], "stream": True}
        asked = Server(base_url=server.url, model="m")
        reply = Reply()
        text = [reply.take(chunk) async for chunk in chunks(asked, body, lambda: False)]
        assert "".join(text) == "on Qt's loop"
