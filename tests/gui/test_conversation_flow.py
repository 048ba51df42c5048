"""The window at work: asking, streaming, stopping, waiting, attaching, drafts, opening, finding."""

import asyncio
from pathlib import Path

from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent

from growbox_app.api import Problem, ProblemCode
from growbox_app.text import tr
from memory.values import NodeStatus, Role
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from ui.panels.source_dialog import SourceDialog
from ui.window_state import WindowState

ANSWER = "Intro line.\n\n```python\nprint(1)\n```\n\nThe **end**."


async def test_a_question_is_answered_in_a_stream(desk: Desk, assistant: ScriptedAssistant) -> None:
    await desk.open()
    panel = desk.window.conversation_panel
    assert panel.pages.currentWidget() is panel.empty_state
    assistant.answers.append(ANSWER)
    assistant.gate = asyncio.Event()
    desk.ask("Which database?")
    await desk.until(lambda: "Intro" in panel.transcript_text())
    assert panel.pages.currentWidget() is panel.view
    assert panel.input.toPlainText() == ""
    assert panel.stop_button.isEnabled()
    assert panel.phase_text() == "writing 11.8 tok/s"
    assistant.gate.set()
    await desk.settle()
    assert "The **end**." in panel.transcript_text()
    assert panel.phase_text() == ""
    assert not panel.stop_button.isVisible()
    answer = desk.window.flow.shown.messages[-1]
    assert answer.status is NodeStatus.COMPLETE
    view = panel.view.view_of(1)
    assert view is not None
    assert view._figures.text() == ("142 tok · 11.8 tok/s · 3,310 reused (97 %) · 102 new in 0.4 s")


async def test_stop_keeps_what_was_written(desk: Desk, assistant: ScriptedAssistant) -> None:
    await desk.open()
    panel = desk.window.conversation_panel
    assistant.gate = asyncio.Event()
    assistant.answers.append("word " * 50)
    desk.ask("Go on")
    await desk.until(lambda: "word" in panel.transcript_text())
    panel.stop_button.click()
    assert not panel.stop_button.isEnabled()
    assert panel.phase_text() == "stopping"
    await desk.settle()
    answer = desk.window.flow.shown.messages[-1]
    assert answer.status is NodeStatus.CANCELLED
    assert answer.text == "word wo"
    assert "stopped" in panel.transcript_text()


async def test_enter_while_a_turn_runs_queues_in_order(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    panel = desk.window.conversation_panel
    assistant.gate = asyncio.Event()
    desk.ask("first question")
    await desk.until(lambda: desk.window.flow.shown.running)
    desk.ask("second")
    desk.ask("third")
    assert panel.queue_row.texts == ("second", "third")
    panel.queue_row.withdrawn.emit(1)
    assert panel.input.toPlainText() == "third"
    assistant.gate.set()
    await desk.settle()
    assert [request.text for request in assistant.requests] == ["first question", "second"]
    assert panel.queue_row.texts == ()
    assert assistant.requests[1].conversation_id == desk.window.flow.shown.conversation_id


async def test_an_empty_question_is_a_hint_and_no_turn(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    desk.ask(" \n\t ")
    await desk.settle()
    assert assistant.requests == []
    assert desk.window.conversation_panel.composer.hint_text == tr("composer.empty")


async def test_a_refused_question_returns_to_the_input_with_a_sentence(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    panel = desk.window.conversation_panel
    assistant.fail_next = Problem(code=ProblemCode.MODEL_MISSING, fields={"model": "Qwen"})
    desk.ask("lost?")
    await desk.settle()
    assert panel.input.toPlainText() == "lost?"
    assert "Qwen" in panel.problem_text()
    assert panel.problem_bar.isVisible()
    panel.input.submit()
    await desk.settle()
    assert not panel.problem_bar.isVisible()
    assert "You said: lost?" in panel.transcript_text()


async def test_a_notice_is_one_line_in_the_conversation(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    assistant.notices.append(Problem(code=ProblemCode.ENGINE_DIED))
    desk.ask("hello")
    await desk.settle()
    assert tr("problem.engine_died") in desk.window.conversation_panel.transcript_text()


async def test_a_turn_goes_on_while_another_conversation_is_read(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    other = assistant.add_conversation("Other", [("old question", "old answer")])
    await desk.open()
    window = desk.window
    assistant.gate = asyncio.Event()
    assistant.answers.append("a long answer " * 5)
    desk.ask("first")
    await desk.until(lambda: window.flow.shown.running)
    running = window.flow.shown
    window.open_conversation(other.id)
    await desk.until(lambda: window.flow.shown.conversation_id == other.id)
    assert window.conversation_panel.phase_text() == ""
    assistant.gate.set()
    await desk.until(lambda: not window.flow.busy)
    assert running.messages[-1].text == "a long answer " * 5
    assert "old answer" in window.conversation_panel.transcript_text()
    assert "a long answer" not in window.conversation_panel.transcript_text()


async def test_coming_back_to_the_running_conversation_shows_the_stream(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    other = assistant.add_conversation("Other", [("q", "a")])
    await desk.open()
    window = desk.window
    assistant.gate = asyncio.Event()
    desk.ask("first")
    await desk.until(lambda: window.flow.shown.running)
    running = window.flow.shown
    window.open_conversation(other.id)
    await desk.until(lambda: window.flow.shown is not running)
    assert running.conversation_id is not None
    window.open_conversation(running.conversation_id)
    await desk.until(lambda: window.flow.shown is running)
    assert window.conversation_panel.stop_button.isVisible()
    assistant.gate.set()
    await desk.settle()
    assert "You said: first" in window.conversation_panel.transcript_text()


async def test_a_large_paste_becomes_an_attachment_of_the_next_question(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()
    panel = desk.window.conversation_panel
    mime = QMimeData()
    mime.setText("x" * 1_000_000)
    panel.input.insertFromMimeData(mime)
    await desk.settle()
    (attachment,) = panel.composer.enclosures
    assert attachment.size_bytes == 1_000_000
    assert panel.input.toPlainText() == ""
    panel.input.submit()
    assert panel.composer.hint_text == tr("composer.ask_with_file")
    desk.ask("What is in it?")
    await desk.settle()
    assert assistant.requests[0].attachments == (attachment,)
    assert panel.composer.enclosures == []
    asked = panel.view.view_of(0)
    assert asked is not None
    assert "Pasted text (1 MB)" in asked._figures.text()


async def test_submitting_at_once_waits_for_the_attachment(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    note = tmp_path / "笔记 📒.txt"
    note.write_text("内容", encoding="utf-8")
    await desk.open()
    desk.window.flow.attach_files([note])
    desk.ask("summarise")
    await desk.settle()
    assert [item.name for item in assistant.requests[0].attachments] == ["笔记 📒.txt"]


async def test_a_file_dropped_anywhere_on_the_conversation_is_attached(
    desk: Desk, tmp_path: Path
) -> None:
    note = tmp_path / "note.txt"
    note.write_text("content", encoding="utf-8")
    await desk.open()
    panel = desk.window.conversation_panel
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile(str(note))])
    drop = QDropEvent(
        QPointF(50, 50),
        Qt.DropAction.CopyAction,
        mime,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    panel.dropEvent(drop)
    await desk.settle()
    assert [item.name for item in panel.composer.enclosures] == ["note.txt"]


async def test_a_binary_file_is_refused_in_words(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    binary = tmp_path / "a.bin"
    binary.write_bytes(b"\0\1\2")
    await desk.open()
    desk.window.flow.attach_files([binary])
    await desk.settle()
    assert desk.window.conversation_panel.composer.hint_text == tr("composer.not_text")
    assert desk.window.conversation_panel.composer.enclosures == []


async def test_drafts_are_kept_per_conversation_and_over_a_restart(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    first = assistant.add_conversation("First", [("q", "a")])
    second = assistant.add_conversation("Second", [("q", "a")])
    await desk.open()
    window = desk.window
    window.open_conversation(first.id)
    await desk.settle()
    window.conversation_panel.composer.show_text("half a thought")
    window.open_conversation(second.id)
    await desk.settle()
    assert window.conversation_panel.input.toPlainText() == ""
    window.open_conversation(first.id)
    await desk.settle()
    assert window.conversation_panel.input.toPlainText() == "half a thought"
    window.keep()
    assert WindowState(tmp_path).draft(first.id) == ("half a thought", [])
    assert WindowState(tmp_path).last_conversation() == first.id


async def test_up_recalls_the_last_question(desk: Desk, assistant: ScriptedAssistant) -> None:
    await desk.open()
    desk.ask("remember this")
    await desk.settle()
    desk.window.conversation_panel.input.recall_wanted.emit()
    assert desk.window.conversation_panel.input.toPlainText() == "remember this"


async def test_the_trace_opens_sources_and_takes_a_judgement(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    assistant.memories = (
        assistant.used("We chose DuckDB"),
        assistant.used("Loader notes", way="pointer"),
    )
    await desk.open()
    window = desk.window
    desk.ask("which?")
    await desk.settle()
    view = window.conversation_panel.view.view_of(1)
    assert view is not None
    assert view.memories_button.text() == "used 2 memories · rag 1 · pointer 1"
    view.memories_button.click()
    assert view.trace is not None
    row = view.trace.rows[1]
    assert row._figures.text().startswith("pointer · score 0.80 · meaning 0.74 · words 0.50")
    row.reject_button.click()
    row.open_button.click()
    await desk.settle()
    assert assistant.mind.rejected == [
        (window.flow.shown.messages[1].node_id, assistant.memories[1].node_id)
    ]
    assert not row.reject_button.isEnabled()
    dialog = window.findChild(SourceDialog)
    assert dialog is not None
    assert not dialog.isModal()
    assert dialog.text.toPlainText() == "Loader notes"
    dialog.close()


async def test_a_source_leads_to_its_conversation(desk: Desk, assistant: ScriptedAssistant) -> None:
    stored = assistant.add_conversation("Stored", [("where is it?", "here it is")])
    await desk.open()
    node = next(
        node for node in await assistant.library.messages(stored.id) if node.role is Role.ASSISTANT
    )
    desk.window.panels.open_source(node.id)
    await desk.settle()
    dialog = desk.window.findChild(SourceDialog)
    assert dialog is not None
    dialog.go_button.click()
    await desk.settle()
    assert desk.window.flow.shown.conversation_id == stored.id


async def test_search_finds_message_bodies_and_opens_them(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    stored = assistant.add_conversation("Stored", [("about needles", "in haystacks")])
    await desk.open()
    sidebar = desk.window.sidebar
    sidebar.search_field.setText("haystack")
    sidebar.search_wanted.emit("haystack")
    await desk.settle()
    assert sidebar.results.count() == 1
    sidebar.results.itemActivated.emit(sidebar.results.item(0))
    await desk.settle()
    assert desk.window.flow.shown.conversation_id == stored.id
    sidebar.search_field.setText("nowhere")
    sidebar.search_wanted.emit("nowhere")
    await desk.settle()
    assert sidebar.results.count() == 0
    assert "nowhere" in sidebar._nothing.text()


async def test_a_rename_is_stored_and_shown(desk: Desk, assistant: ScriptedAssistant) -> None:
    stored = assistant.add_conversation("Old name", [("q", "a")])
    await desk.open()
    desk.window.open_conversation(stored.id)
    await desk.settle()
    item = desk.window.sidebar.tree._find(stored.id)
    assert item is not None
    item.setText(0, "新名字")
    await desk.settle()
    assert [item.title for item in await assistant.library.conversations()] == ["新名字"]
    assert desk.window.conversation_panel._title.text() == "新名字"


async def test_find_walks_through_the_places(desk: Desk, assistant: ScriptedAssistant) -> None:
    stored = assistant.add_conversation(
        "S",
        [(f"question {at}", f"answer needle {at}" if at % 3 == 0 else "none") for at in range(12)],
    )
    await desk.open()
    window = desk.window
    window.open_conversation(stored.id)
    await desk.settle()
    window.run_command("find")
    bar = window.conversation_panel.find_bar
    assert bar.isVisible()
    bar.field.setText("needle")
    assert bar._count.text() == "1 of 4"
    bar.moved.emit("needle", -1)
    assert bar._count.text() == "4 of 4"
    bar.field.setText("absent")
    assert bar._count.text() == tr("find.none")
    bar.closed.emit()
    assert not bar.isVisible()


async def test_a_folder_becomes_a_project_with_its_own_suggestions(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    folder = tmp_path / "项目 emoji 🌱"
    folder.mkdir()
    await desk.open()
    window = desk.window
    await window.open_folder(folder)
    await desk.settle()
    button = window.conversation_panel.empty_state.buttons[0]
    assert "项目 emoji 🌱" in button.text()
    button.click()
    window.conversation_panel.input.submit()
    await desk.settle()
    assert assistant.requests[0].project_id is not None
    window._start("open", lambda: window.open_folder(tmp_path / "missing"))
    await desk.settle()
    assert "missing" in window.conversation_panel.problem_text()


async def test_a_turn_that_breaks_says_so_and_the_next_one_works(
    desk: Desk, assistant: ScriptedAssistant
) -> None:
    await desk.open()

    async def broken(_request: object) -> object:
        raise ZeroDivisionError
        yield

    good = assistant.ask
    assistant.ask = broken  # type: ignore[method-assign, assignment]
    desk.ask("boom")
    await desk.settle()
    assert [type(error) for error in desk.failures] == [ZeroDivisionError]
    desk.failures.clear()
    assistant.ask = good  # type: ignore[method-assign]
    assert not desk.window.flow.busy
    desk.ask("again")
    await desk.settle()
    assert "You said: again" in desk.window.conversation_panel.transcript_text()
