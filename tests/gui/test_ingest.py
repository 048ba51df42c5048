"""Files dropped on the window: a few small texts go with the message, everything else into the memory, with progress and a report."""

import asyncio
from pathlib import Path

import pytest
from PySide6.QtCore import QMimeData, QPointF, Qt, QUrl
from PySide6.QtGui import QDropEvent
from PySide6.QtWidgets import QWidget

from growbox_app.api import Problem, ProblemCode
from growbox_app.ingest.report import IngestReport, SkippedFile, SkipReason
from growbox_app.text import tr
from tests.fakes.assistant import ScriptedAssistant
from tests.gui.conftest import Desk
from ui.ingest_flow import ATTACHED_BYTES_MAX, ATTACHED_FILES_MAX, belongs_in_memory
from ui.panels.controls import refresh
from ui.panels.ingest_progress import SkippedFiles


def drop(widget: QWidget, *paths: Path) -> None:
    data = QMimeData()
    data.setUrls([QUrl.fromLocalFile(str(path)) for path in paths])
    event = QDropEvent(
        QPointF(5, 5),
        Qt.DropAction.CopyAction,
        data,
        Qt.MouseButton.LeftButton,
        Qt.KeyboardModifier.NoModifier,
    )
    widget.dropEvent(event)
    assert event.isAccepted()


@pytest.fixture
def book(tmp_path: Path) -> Path:
    path = tmp_path / "书.PDF"
    path.write_bytes(b"%PDF-1.4")
    return path


def test_what_goes_into_the_memory(tmp_path: Path, book: Path) -> None:
    note, large = tmp_path / "note.txt", tmp_path / "large.txt"
    note.write_text("small")
    large.write_text("x" * (ATTACHED_BYTES_MAX + 1))
    assert not belongs_in_memory([note] * ATTACHED_FILES_MAX)
    assert belongs_in_memory([note] * (ATTACHED_FILES_MAX + 1))
    assert belongs_in_memory([note, book])
    assert belongs_in_memory([large])
    assert belongs_in_memory([tmp_path])
    assert not belongs_in_memory([tmp_path / "missing.txt"])


@pytest.mark.parametrize("where", ["conversation", "window", "input"])
async def test_a_dropped_folder_is_added_to_the_memory(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path, where: str
) -> None:
    await desk.open()
    panel = desk.window.conversation_panel
    targets = {"conversation": panel, "window": desk.window, "input": panel.input}
    drop(targets[where], tmp_path)
    await desk.settle()
    assert assistant.ingested == [((tmp_path,), None)]
    assert panel.composer.enclosures == []
    assert panel.ingest_bar.text() == (
        "Added to memory. Files: 1 new, 0 changed, 0 unchanged. New passages: 3."
    )
    panel.ingest_bar.close_button.click()
    assert panel.ingest_bar.isHidden()


async def test_a_small_text_dropped_on_the_window_is_attached(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    await desk.open()
    note = tmp_path / "note.txt"
    note.write_text("small")
    drop(desk.window, note)
    await desk.settle()
    assert [item.name for item in desk.window.conversation_panel.composer.enclosures] == [
        "note.txt"
    ]
    assert assistant.ingested == []
    assert desk.window.conversation_panel.ingest_bar.isHidden()


async def test_a_book_that_is_chosen_to_attach_is_added_to_the_memory(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path, book: Path
) -> None:
    await desk.open()
    note = tmp_path / "note.txt"
    note.write_text("small")
    desk.window.flow.attach_files([book, note])
    await desk.settle()
    assert assistant.ingested == [((book,), None)]
    (attached,) = desk.window.conversation_panel.composer.enclosures
    assert attached.name == "note.txt"


async def test_progress_can_be_stopped_and_says_where(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path, book: Path
) -> None:
    await desk.open()
    bar = desk.window.conversation_panel.ingest_bar
    assistant.ingest_gate = asyncio.Event()
    desk.window.ingest.add([book, tmp_path])
    desk.window.ingest.add([tmp_path])
    await desk.until(lambda: book.name in bar.text())
    assert bar.text() == f"Adding to memory: 1 of 2 · {book.name} · Next: 1"
    assert bar.stop_button.isVisible()
    bar.stop_button.click()
    assert not bar.stop_button.isEnabled()
    await desk.settle()
    assert bar.text() == tr("ingest.stopped_early")
    assert len(assistant.ingested) == 1
    desk.window.ingest.add([tmp_path])
    await desk.until(lambda: len(assistant.ingested) == 2)
    assert bar.stop_button.isEnabled()
    assistant.ingest_gate.set()
    await desk.settle()
    assert bar.text().startswith("Added to memory.")


async def test_what_is_added_right_after_a_stop_is_added(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path, book: Path
) -> None:
    await desk.open()
    bar = desk.window.conversation_panel.ingest_bar
    assistant.ingest_gate = asyncio.Event()
    desk.window.ingest.add([book])
    await desk.until(lambda: bool(assistant.ingested))
    desk.window.ingest.stop()
    desk.window.ingest.add([tmp_path])
    assistant.ingest_gate.set()
    await desk.settle()
    assert assistant.ingested == [((book,), None), ((tmp_path,), None)]
    desk.window.ingest.add([book])
    await desk.settle()
    assert len(assistant.ingested) == 3
    assert bar.text().startswith("Added to memory.")


async def test_what_was_left_out_is_shown_with_the_reason(
    desk: Desk, assistant: ScriptedAssistant, book: Path
) -> None:
    await desk.open()
    bar = desk.window.conversation_panel.ingest_bar
    assistant.ingest_report = IngestReport(
        unchanged=2,
        removed=1,
        skipped=(SkippedFile(path=str(book), reason=SkipReason.ENCRYPTED),),
        reasons=((SkipReason.ENCRYPTED, 2),),
    )
    desk.window.ingest.add([book])
    await desk.settle()
    assert "protected by a password: 2" in bar.text()
    assert "Nothing new" in bar.text()
    bar.details_button.click()
    (dialog,) = desk.window.findChildren(SkippedFiles)
    assert dialog.text.toPlainText() == f"{book} · protected by a password\nand 1 more"
    tr.use("zh")
    refresh(desk.window)
    assert "有密码保护 2 个" in bar.text()
    assert "有密码保护" in dialog.text.toPlainText()
    dialog.close()


async def test_trouble_is_one_sentence_and_drops_what_waits(
    desk: Desk, assistant: ScriptedAssistant, book: Path, tmp_path: Path
) -> None:
    await desk.open()
    assistant.fail_ingest = Problem(code=ProblemCode.DISK_FULL, fields={"path": "/d"})
    desk.window.ingest.add([book])
    desk.window.ingest.add([tmp_path])
    await desk.settle()
    panel = desk.window.conversation_panel
    assert "is full" in panel.problem_text()
    assert panel.ingest_bar.isHidden()
    assert len(assistant.ingested) == 1


async def test_what_is_dropped_before_the_memory_is_open_waits_for_it(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    drop(desk.window, tmp_path)
    assert assistant.ingested == []
    await desk.open()
    assert assistant.ingested == [((tmp_path,), None)]


async def test_files_belong_to_the_open_project(
    desk: Desk, assistant: ScriptedAssistant, tmp_path: Path
) -> None:
    await desk.open()
    project = assistant.add_project("thesis", "/thesis")
    desk.window.flow.project_id = project.id
    desk.window.ingest.add([tmp_path])
    await desk.settle()
    assert assistant.ingested == [((tmp_path,), project.id)]
