"""Background tasks in the window: the item at the foot, the list, the output, and how they are stopped."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QTextCursor
from PySide6.QtTest import QTest

from growbox_app.clock import SystemClock
from growbox_app.executors.processes import shell_words
from growbox_app.executors.task_board import DoneWhen, TaskBoard
from growbox_app.task_face import TaskState
from growbox_app.task_room import TaskRoom
from growbox_app.text import tr
from memory.values import ConversationId
from tests.fakes.assistant import START_MS, ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.test_accessibility import nameless
from ui.panels.tasks_dialog import TasksDialog

SERVER = "npm run dev"


def item_of(desk: Desk) -> str:
    """What the item at the foot says; nothing while it is not there."""
    button = desk.window.status_line.tasks_button
    return button.text() if button.isVisible() else ""


async def opened(desk: Desk) -> TasksDialog:
    desk.window.run_command("tasks")
    await desk.settle()
    (dialog,) = desk.window.findChildren(TasksDialog)
    return dialog


def rows(dialog: TasksDialog) -> list[list[str]]:
    found = []
    for at in range(dialog.table.topLevelItemCount()):
        item = dialog.table.topLevelItem(at)
        assert item is not None
        found.append([item.text(column) for column in range(4)])
    return found


def begin(assistant: ScriptedAssistant, command: str = SERVER) -> int:
    """A task of a conversation in a project."""
    project = assistant.add_project("growbox", "/home/ada/growbox")
    stored = assistant.add_conversation("Fix CI", [("q", "a")], project)
    return assistant.background_tasks.begin(command, stored.id, began_at_ms=START_MS, seconds=185)


async def test_the_item_is_there_only_while_there_are_tasks(desk: Desk) -> None:
    tasks = desk.assistant.background_tasks
    await desk.open()
    assert item_of(desk) == ""
    first = begin(desk.assistant)
    await desk.settle()
    assert item_of(desk) == "1 task running"
    second = tasks.begin("make", ConversationId("c"), began_at_ms=START_MS)
    await desk.settle()
    assert item_of(desk) == "2 tasks running"
    assert "2 tasks running" in desk.window.status_line.text()
    tasks.end(first, 0)
    tasks.end(second, 0)
    await desk.settle()
    assert item_of(desk) == "No task running"


async def test_tasks_that_ran_before_the_window_was_there_are_shown(desk: Desk) -> None:
    begin(desk.assistant)
    await desk.open()
    assert item_of(desk) == "1 task running"


async def test_one_click_leads_to_the_list(desk: Desk) -> None:
    tasks = desk.assistant.background_tasks
    ended = begin(desk.assistant, "make\n  all")
    tasks.end(ended, 2)
    killed = tasks.begin("./loader", ConversationId("gone"), began_at_ms=START_MS)
    tasks.end(killed, -9)
    server = tasks.begin(SERVER, ConversationId("gone"), began_at_ms=START_MS, seconds=4)
    tasks.listen(server, 5173)
    await desk.open()
    QTest.mouseClick(desk.window.status_line.tasks_button, Qt.MouseButton.LeftButton)
    (dialog,) = desk.window.findChildren(TasksDialog)
    assert not dialog.isModal()
    assert nameless(dialog) == []
    shown = rows(dialog)
    assert [row[:2] for row in shown] == [
        [SERVER, "Running for 4 s · port 5173 open"],
        ["./loader", "Ended after 5 s, by signal 9"],
        ["make all", "Ended after 3 min, exit code 2"],
    ]
    assert [row[3] for row in shown] == ["growbox", "growbox", "Fix CI · growbox"]
    assert all(row[2] for row in shown)
    assert [dialog.button_of(number) is None for number in (ended, killed, server)] == [
        True,
        True,
        False,
    ]
    desk.window.status_line.tasks_button.click()
    assert desk.window.findChildren(TasksDialog) == [dialog]
    dialog.close()


async def test_a_stop_is_asked_for_once_and_shown_until_it_is_done(desk: Desk) -> None:
    tasks = desk.assistant.background_tasks
    number = begin(desk.assistant)
    await desk.open()
    dialog = await opened(desk)
    button = dialog.button_of(number)
    assert button is not None
    button.setFocus()
    button.click()
    await desk.settle()
    assert rows(dialog)[0][1] == "Stopping…"
    assert dialog.button_of(number) is None
    assert dialog.focusWidget() is dialog.table
    assert not dialog.stop_all_button.isEnabled()
    assert item_of(desk) == "1 task running"
    QTest.keyClick(dialog.table, Qt.Key.Key_Delete)
    tasks.end(number, -15)
    await desk.settle()
    assert rows(dialog)[0][1] == "Stopped after 3 min"
    assert item_of(desk) == "No task running"
    assert tasks.asked == [number]
    dialog.close()


async def test_all_can_be_stopped(desk: Desk) -> None:
    tasks = desk.assistant.background_tasks
    over = begin(desk.assistant, "true")
    tasks.end(over, 0)
    numbers = [tasks.begin(SERVER, ConversationId("c"), began_at_ms=START_MS) for _ in range(3)]
    await desk.open()
    dialog = await opened(desk)
    assert dialog.stop_all_button.isEnabled()
    dialog.stop_all_button.click()
    await desk.settle()
    assert tasks.asked == numbers
    assert tasks.tasks[over].state is TaskState.ENDED
    dialog.close()


async def test_the_keyboard_chooses_stops_and_goes_to_the_conversation(desk: Desk) -> None:
    tasks = desk.assistant.background_tasks
    older = begin(desk.assistant)
    tasks.begin("make", ConversationId("gone"), began_at_ms=START_MS)
    tasks.say(older, "ready in 300 ms")
    await desk.open()
    desk.window.menus.action("tasks").trigger()
    (dialog,) = desk.window.findChildren(TasksDialog)
    assert dialog.focusWidget() is dialog.table
    QTest.keyClick(dialog.table, Qt.Key.Key_Return)
    assert desk.window.flow.shown.conversation_id is None  # that one's conversation is not there
    QTest.keyClick(dialog.table, Qt.Key.Key_Down)
    assert dialog.current() == older
    assert dialog.output.toPlainText() == f"$ {SERVER}\nready in 300 ms"
    QTest.keyClick(dialog.table, Qt.Key.Key_Delete)
    assert tasks.asked == [older]
    QTest.keyClick(dialog.table, Qt.Key.Key_Return)
    await desk.settle()
    assert desk.window.flow.shown.conversation_id == tasks.tasks[older].conversation_id
    QTest.keyClick(dialog.table, Qt.Key.Key_Escape)
    await desk.until(lambda: not desk.window.findChildren(TasksDialog))


async def test_the_output_goes_on_while_it_is_shown(desk: Desk) -> None:
    tasks = desk.assistant.background_tasks
    number = begin(desk.assistant)
    await desk.open()
    desk.window.background_tasks._timer.setInterval(5)
    dialog = await opened(desk)
    assert dialog.output.toPlainText() == f"$ {SERVER}\nNo output so far."
    tasks.say(number, "\n".join(f"line {at}" for at in range(400)))
    await desk.until(lambda: dialog.output.toPlainText().endswith("line 399"))
    bar = dialog.output.verticalScrollBar()
    assert bar.value() == bar.maximum() > 0
    bar.setValue(3)
    cursor = QTextCursor(dialog.output.document())
    cursor.movePosition(QTextCursor.MoveOperation.NextWord, QTextCursor.MoveMode.KeepAnchor)
    dialog.output.setTextCursor(cursor)
    bar.setValue(3)
    tasks.say(number, "\n".join(f"line {at}" for at in range(402)))
    await desk.until(lambda: dialog.output.toPlainText().endswith("line 401"))
    assert bar.value() == 3
    assert dialog.output.textCursor().selectedText() == "$ "
    tasks.say(number, "begin", left_out=1_234_567, tail="the \u202eend")
    await desk.until(lambda: "begin" in dialog.output.toPlainText())
    assert (
        dialog.output.toPlainText() == f"$ {SERVER}\nbegin\n⋯ 1 MB left out ⋯\nthe \\u{{202e}}end"
    )
    dialog.close()
    await desk.until(lambda: not desk.window.background_tasks._timer.isActive())


async def test_without_tasks_the_list_says_what_would_be_there(desk: Desk) -> None:
    await desk.open()
    dialog = await opened(desk)
    assert dialog._empty.isVisible()
    assert not dialog.table.isVisible()
    assert not dialog.stop_all_button.isVisible()
    number = begin(desk.assistant)
    await desk.settle()
    assert not dialog._empty.isVisible()
    assert dialog.current() == number
    dialog.close()


async def test_a_new_task_stands_on_top_and_the_chosen_one_stays_chosen(desk: Desk) -> None:
    tasks = desk.assistant.background_tasks
    first = begin(desk.assistant)
    await desk.open()
    dialog = await opened(desk)
    tasks.begin("make", ConversationId("c"), began_at_ms=START_MS)
    await desk.settle()
    assert [row[0] for row in rows(dialog)] == ["make", SERVER]
    assert dialog.current() == first
    del tasks.tasks[first]
    desk.window.background_tasks.show_tasks()
    assert [row[0] for row in rows(dialog)] == ["make"]
    assert dialog.current() == first + 1
    dialog.close()


async def test_it_speaks_chinese(desk: Desk) -> None:
    tasks = desk.assistant.background_tasks
    ended = begin(desk.assistant, "make")
    tasks.end(ended, 2)
    server = tasks.begin(SERVER, ConversationId("c"), began_at_ms=START_MS, seconds=4)
    tasks.listen(server, 5173)
    await desk.open()
    dialog = await opened(desk)
    desk.window.choose("general.language", "zh")
    await desk.settle()
    assert tr.language == "zh"
    assert item_of(desk) == "1 个任务运行中"
    assert dialog.windowTitle() == "后台任务"
    assert [row[1] for row in rows(dialog)] == [
        "已运行 4 秒 · 端口 5173 已响应",
        "运行 3 分钟后结束，退出码 2",
    ]
    assert dialog.output.toPlainText() == f"$ {SERVER}\n目前还没有输出。"
    button = dialog.button_of(server)
    assert button is not None
    assert button.width() >= button.sizeHint().width()
    assert (button.text(), button.accessibleName()) == ("停止", f"停止任务 {server}：{SERVER}")
    assert nameless(dialog) == []
    dialog.close()


@pytest.mark.skipif(sys.platform == "win32", reason="commands for a Unix shell")
async def test_a_real_task_is_seen_and_stopped_from_the_windows_own_loop(
    loop: asyncio.AbstractEventLoop,
    tmp_path: Path,
    assistant: ScriptedAssistant,
) -> None:
    assert asyncio.get_running_loop() is loop
    board = TaskBoard()
    room = TaskRoom(board, SystemClock(), assistant.tell)
    assistant.background_tasks = room  # type: ignore[assignment]
    desk = Desk(tmp_path, assistant)
    try:
        await desk.open()
        board.start(
            shell_words("trap '' TERM; echo up; sleep 300 & wait; sleep 300", tmp_path),
            tmp_path,
            shown="a stubborn server",
            conversation_id=ConversationId("c"),
            sign=(DoneWhen.EXIT, ""),
        )
        await desk.until(lambda: item_of(desk) == "1 task running")
        desk.window.background_tasks._timer.setInterval(20)
        dialog = await opened(desk)
        await desk.until(lambda: dialog.output.toPlainText().endswith("\nup"))
        button = dialog.button_of(1)
        assert button is not None
        button.click()
        await desk.until(lambda: rows(dialog)[0][1] == "Stopping…")
        await desk.until(lambda: rows(dialog)[0][1].startswith("Stopped after"))
        assert item_of(desk) == "No task running"
        dialog.close()
    finally:
        await room.close()
        await desk.close()
