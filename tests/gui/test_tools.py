"""Tools in the window: setting servers up, looking at them, letting tools run unasked, removing, and what was learned."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt

from growbox_app.api import Problem, ProblemCode
from growbox_app.clock import SystemClock
from growbox_app.mcp_client.service import McpParts, McpService
from growbox_app.mcp_client.values import ServerSpec
from growbox_app.routing.lessons import Counsel
from growbox_app.secrets import Secrets
from growbox_app.text import tr
from growbox_app.toolbox.face import Remembered
from tests.conftest import ROOT
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.test_accessibility import nameless
from ui.panels.tools_dialog import ToolsDialog

HUB = ServerSpec(name="hub", command="npx", args=("-y", "@hub/server", "my folder"))
LESSON = Remembered(
    tool="shell",
    shape="npm test",
    project=None,
    counsel=Counsel.VETO,
    failing=0.8,
    worked=0,
    failed=2,
    why="exit code 127",
)


async def opened(desk: Desk) -> ToolsDialog:
    await desk.open()
    desk.window.run_command("tools")
    await desk.settle()
    dialog = desk.window.tools._dialog
    assert dialog is not None
    return dialog


async def test_a_server_is_set_up_and_checked(desk: Desk, assistant: ScriptedAssistant) -> None:
    dialog = await opened(desk)
    assert nameless(dialog) == []
    dialog.new_button.click()
    dialog.name_field.setText("hub")
    dialog.place_field.setText("npx -y @hub/server 'my folder'")
    dialog.secrets_field.setPlainText("HUB_TOKEN=very-secret\n\nREGION=")
    dialog.save_button.click()
    await desk.settle()
    (status,) = assistant.tools.servers()
    assert (status.spec.command, status.spec.args) == (HUB.command, HUB.args)
    assert status.spec.secret_names == ("HUB_TOKEN", "REGION")
    assert assistant.tools.secrets == {"HUB_TOKEN": "very-secret"}
    assert dialog.state() == "Ready · 2 tools"
    assert dialog.secrets_field.toPlainText() == "HUB_TOKEN=\nREGION="
    assert dialog.tools.count() == 2
    dialog.close()


async def test_a_tool_may_run_unasked(desk: Desk, assistant: ScriptedAssistant) -> None:
    await assistant.tools.save_server(HUB, {})
    await assistant.tools.check_server("hub")
    dialog = await opened(desk)
    dialog.place_field.setText("being typed")
    item = dialog.tools.item(0)
    assert item.checkState() is Qt.CheckState.Unchecked
    item.setCheckState(Qt.CheckState.Checked)
    await desk.settle()
    assert assistant.tools.servers()[0].spec.safe_tools == {"list_issues"}
    assert dialog.place_field.text() == "being typed"
    dialog.close()


async def test_trouble_is_said_with_what_to_do(desk: Desk, assistant: ScriptedAssistant) -> None:
    await assistant.tools.save_server(ServerSpec(name="b", command="broken"), {})
    dialog = await opened(desk)
    dialog.check_button.click()
    await desk.settle()
    assert "ended unexpectedly" in dialog.state()
    assert "no licence found" in dialog.state()
    assistant.tools.fail = Problem(
        code=ProblemCode.SERVER_INVALID, fields={"reason": tr("mcp.invalid.name")}
    )
    dialog.save_button.click()
    await desk.settle()
    assert "small letters" in dialog.said()
    dialog.close()


async def test_removing_wants_a_second_click(desk: Desk, assistant: ScriptedAssistant) -> None:
    await assistant.tools.save_server(HUB, {})
    dialog = await opened(desk)
    dialog.remove_button.click()
    await desk.settle()
    assert assistant.tools.servers()
    dialog.remove_button.click()
    await desk.settle()
    assert not assistant.tools.servers()
    assert dialog.name_field.text() == ""
    dialog.close()


async def test_what_was_learned_can_be_seen_and_forgotten(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    other = Remembered(
        tool="hub__x",
        shape="hub__x",
        project=None,
        counsel=Counsel.WORKS,
        failing=0.1,
        worked=3,
        failed=0,
    )
    assistant.tools.lessons = [LESSON, other]
    assistant.tools.keyring = False
    dialog = await opened(desk)
    assert dialog.lessons.item(0).text().startswith("Not tried for now · npm test")
    assert "exit code 127" in dialog.lessons.item(0).toolTip()
    assert not dialog.forget_button.isEnabled()
    dialog.lessons.setCurrentRow(0)
    dialog.forget_button.click()
    await desk.settle()
    assert assistant.tools.lessons == [other]
    dialog.forget_all_button.click()
    await desk.settle()
    assert not assistant.tools.lessons
    assert dialog.lessons.isHidden()
    dialog.close()


async def test_the_settings_lead_there_and_words_are_renewed(desk: Desk) -> None:
    await desk.open()
    desk.window.open_settings()
    settings = desk.window._settings_dialog
    assert settings is not None
    settings.tools_button.click()
    await desk.settle()
    dialog = desk.window.tools._dialog
    assert dialog is not None
    tr.use("zh")
    desk.window.tools.refresh()
    assert dialog.windowTitle() == "工具（MCP）"
    dialog.close()
    settings.close()


async def test_a_real_server_is_asked_from_the_windows_own_loop(
    loop: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    parts = McpParts(
        data_path=tmp_path,
        secrets=Secrets(lambda: None),
        clock=SystemClock(),
        offline=lambda: True,
        changed=lambda: None,
    )
    servers = McpService(parts)
    try:
        spec = ServerSpec(
            name="s", command=sys.executable, args=("-m", "tests.fakes.mcp_server", "stdio")
        )
        await servers.put(spec, {})
        outcome = await servers.call("s", "add", {"a": 40}, asyncio.Event())
        assert outcome.text == "42"
    finally:
        await servers.close()
