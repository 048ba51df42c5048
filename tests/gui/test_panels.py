"""The panels, the status line, the first-run page, the settings: bound to what the assistant says."""

import asyncio
from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPointF, Qt
from PySide6.QtGui import QMouseEvent
from PySide6.QtWidgets import QApplication, QComboBox, QSpinBox
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from growbox_app.api import (
    ConversationsChanged,
    DeepSearchChanged,
    DeepSearchState,
    EnginePhase,
    EngineStatus,
    MemoryChanged,
    Problem,
    ProblemCode,
    RaiseWindow,
    StatusChanged,
)
from growbox_app.settings.schema import SETTINGS
from growbox_app.text import tr
from memory.events import IndexProgress
from memory.values import (
    BlockKind,
    FatigueSnapshot,
    Fragment,
    LedgerSnapshot,
    NodeId,
    PointerKind,
    QueueEntry,
    QueueSnapshot,
    Role,
    StoreHealth,
)
from tests.fakes.assistant import START_MS, ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.past import search
from ui.bridge import Bridge
from ui.main_window import LAYOUT_VERSION
from ui.panels.prose import ProseView
from ui.panels.queue_model import QueueModel
from ui.theme import theme


async def opened(desk: Desk) -> None:
    stored = desk.assistant.add_conversation(
        "S", [("a question", "an answer that is longer"), ("two", "three")]
    )
    await desk.open()
    desk.window.open_conversation(stored.id)
    await desk.settle()


async def test_the_region_shows_the_window_to_scale(desk: Desk) -> None:
    await opened(desk)
    panel = desk.window.panels.region
    assert panel.figures_text() == "438 / 8,192 tokens"
    assert desk.window.panels.docks["region"].summary() == panel.figures_text()
    assert "reused 97 %" in panel._reuse.text()
    assert panel.list.topLevelItemCount() == 4
    assert panel.list.topLevelItem(0).text(0) == "a question"


async def test_a_click_on_the_strip_opens_the_source(desk: Desk) -> None:
    await opened(desk)
    strip = desk.window.panels.region.strip
    wanted: list[NodeId] = []
    desk.window.panels.region.source_wanted.connect(wanted.append)
    snapshot = await desk.assistant.mind.region(desk.window.flow.shown.conversation_id)
    token = snapshot.system_tokens + 3
    place = QPointF(token / snapshot.window_tokens * strip.width(), 15)
    none, left = Qt.KeyboardModifier.NoModifier, Qt.MouseButton.LeftButton
    QApplication.sendEvent(
        strip, QMouseEvent(QEvent.Type.MouseButtonRelease, place, place, left, left, none)
    )
    await desk.settle()
    assert wanted == [snapshot.blocks[0].block.node_id]


async def test_the_queue_pins_evicts_and_keeps_the_selection(desk: Desk) -> None:
    await opened(desk)
    panel = desk.window.panels.queue
    assert len(panel.model.entries) == 4
    heats = [entry.heat for entry in panel.model.entries]
    assert heats == sorted(heats, reverse=True)
    panel.list.setCurrentIndex(panel.model.index(2))
    chosen = panel.selected()
    assert chosen is not None
    panel.pin_button.click()
    await desk.settle()
    again = panel.selected()
    assert again is not None
    assert again.block_id == chosen.block_id
    assert again.pinned
    assert panel.pin_button.accessibleName() == tr("queue.unpin")
    panel.evict_button.click()
    await desk.settle()
    assert chosen.block_id not in [entry.block_id for entry in panel.model.entries]
    assert desk.window.panels.docks["queue"].summary() == "3 blocks, hottest first"


def test_the_queue_model_is_a_sound_item_model(qtmodeltester: ModelTester) -> None:
    model = QueueModel()
    entry = QueueEntry(
        block_id=1,
        node_id=NodeId("n"),
        title="t",
        kind=BlockKind.USER,
        pointer=PointerKind.REAL,
        heat=1.0,
        tokens=2,
        pinned=False,
        loaded_at_ms=0,
    )
    other = replace(entry, block_id=2)
    model.show_snapshot(QueueSnapshot(conversation_id=None, entries=(entry, other)), 0)
    qtmodeltester.check(model)


async def test_the_ledger_is_honest_when_empty_and_lists_debts(desk: Desk) -> None:
    await desk.open()
    panel = desk.window.panels.ledger
    assert panel._empty.text() == "No open fragments. They appear when a jump skips notes unread."
    assert not panel._empty.isHidden()
    assert panel.table.isHidden()
    debt = Fragment(
        entry_seq=40, target_seq=7, query="where?", created_at_ms=START_MS, remaining=31
    )
    desk.assistant.mind.ledger_snapshot = LedgerSnapshot(open=(debt,), cleared=5, nodes=0)
    await desk.window.panels.pull()
    assert panel._empty.isHidden()
    assert panel.counts_text() == "1 open · 5 cleared · 0 memories"
    assert panel.table.topLevelItem(0).text(0) == "where?"
    assert "7 – 40 · 31 of 32 notes unread" in panel.table.topLevelItem(0).toolTip(0)
    assert desk.window.panels.docks["ledger"].windowTitle() == "Fragments 1"


async def test_the_fatigue_meter_shows_parts_and_weights(desk: Desk) -> None:
    desk.assistant.mind.fatigue_snapshot = FatigueSnapshot(
        total=0.58, miss=0.7, eviction=0.5, debt=0.5, accesses=200, history=((0, 0.1), (1, 0.58))
    )
    await desk.open()
    panel = desk.window.panels.fatigue
    assert panel.total_text() == "0.58 · tired"
    assert [value.text() for value in panel._values] == ["0.4 × 0.70", "0.2 × 0.50", "0.4 × 0.50"]
    assert desk.window.conversation_panel.mood_button.text() == "◐ tired"


async def test_memory_events_pull_fresh_snapshots(desk: Desk) -> None:
    desk.assistant.mind.health = (StoreHealth(name="vectors", ok=True, items=1, lag=0, bytes=0),)
    await desk.open()
    assert "Background: idle" in desk.window.status_line.text()
    desk.assistant.mind.pending = 1_234
    desk.assistant.mind.health = (StoreHealth(name="vectors", ok=False, items=1, lag=9, bytes=0),)
    desk.assistant.tell(MemoryChanged(events=(IndexProgress(done=1, pending=1_234),)))
    await desk.settle()
    assert "Indexing 1,234 memories" in desk.window.status_line.text()
    assert "Trouble: search by meaning" in desk.window.status_line.text()


async def test_the_bridge_tells_only_the_last_news_of_a_search(desk: Desk) -> None:
    await desk.open()
    stored = desk.assistant.add_conversation("S", [("q", "a"), ("q", "b")])
    answers = [
        n.id for n in await desk.assistant.library.messages(stored.id) if n.role is Role.ASSISTANT
    ]
    told: list[DeepSearchChanged] = []
    desk.window.bridge.search_changed.connect(told.append)
    for state in (DeepSearchState.RUNNING, DeepSearchState.PAUSED):
        for answer_id in answers:
            desk.assistant.tell_search(search(answer_id, state))
    await desk.settle()
    assert [change.search.answer_id for change in told] == answers
    assert {change.search.state for change in told} == {DeepSearchState.PAUSED}


async def test_a_layout_is_kept_and_one_of_another_set_of_panels_is_not(desk: Desk) -> None:
    await desk.open()
    desk.window.panels.docks["queue"].hide()
    desk.window.keep()
    again = Desk(desk.state.data_path, ScriptedAssistant())
    assert again.window.panels.docks["queue"].isHidden()
    older = desk.window.saveState(LAYOUT_VERSION - 1)
    desk.state.keep_geometry(desk.window.saveGeometry(), older)
    desk.state.save()
    await again.close()
    fresh = Desk(desk.state.data_path, ScriptedAssistant())
    docks = fresh.window.panels.docks
    assert not any(dock.isHidden() for dock in docks.values())
    assert fresh.window.tabifiedDockWidgets(docks["queue"]) == [docks["pointers"]]
    await fresh.close()


async def test_the_bridge_merges_a_burst_into_one_signal(desk: Desk) -> None:
    bridge = Bridge(desk.assistant)
    batches: list[tuple[object, ...]] = []
    counts = {"status": 0, "conversations": 0, "raise": 0}
    bridge.memory_changed.connect(batches.append)
    bridge.status_changed.connect(lambda: counts.update(status=counts["status"] + 1))
    bridge.conversations_changed.connect(
        lambda: counts.update(conversations=counts["conversations"] + 1)
    )
    bridge.raise_requested.connect(lambda: counts.update({"raise": counts["raise"] + 1}))
    for at in range(100):
        desk.assistant.tell(MemoryChanged(events=(IndexProgress(done=at, pending=0),)))
        desk.assistant.tell(StatusChanged())
        desk.assistant.tell(ConversationsChanged())
    desk.assistant.tell(RaiseWindow())
    assert counts["raise"] == 1
    await desk.until(lambda: bool(batches))
    assert len(batches) == 1
    assert len(batches[0]) == 100
    assert (counts["status"], counts["conversations"]) == (1, 1)
    listeners = desk.assistant.listeners
    bridge.close()
    assert desk.assistant.listeners == listeners - 1
    await desk.settle()


async def test_the_first_run_page_downloads_with_progress_and_goes_away(desk: Desk) -> None:
    assistant, window = desk.assistant, desk.window
    assistant.selected = "standard"
    assistant.status = EngineStatus(phase=EnginePhase.STOPPED)
    await desk.open()
    page = window.first_run_page
    assert window.pages.currentWidget() is page
    assert not page.start_button.isEnabled()
    row = page.rows["standard"]
    assert row.state_text() == tr("models.state.missing")
    assert "1.1 GB" in row._facts.text()
    assistant.gate = asyncio.Event()
    row.download_button.click()
    await desk.until(lambda: "50 %" in row.state_text())
    assert row.state_text() == "downloading · 50 % · 12 MB/s · 40 s left"
    assert not row.cancel_button.isHidden()
    assistant.gate.set()
    await desk.settle()
    assert row.state_text() == tr("models_page.used")
    assert window.pages.currentWidget() is page
    assistant.status = EngineStatus(phase=EnginePhase.READY, model_name="Qwen")
    assistant.tell(StatusChanged())
    await desk.settle()
    assert window.pages.currentWidget() is window.conversation_panel


async def test_a_download_can_be_cancelled_and_its_trouble_is_a_sentence(desk: Desk) -> None:
    assistant = desk.assistant
    assistant.selected = "standard"
    assistant.status = EngineStatus(phase=EnginePhase.STOPPED)
    await desk.open()
    row = desk.window.first_run_page.rows["standard"]
    assistant.gate = asyncio.Event()
    row.download_button.click()
    await desk.until(lambda: "50 %" in row.state_text())
    row.cancel_button.click()
    await desk.settle()
    assert row.state_text() == tr("models.state.missing")
    assert row.problem_text() == ""
    assistant.gate = None
    assistant.model_problem = Problem(code=ProblemCode.NO_NETWORK, fields={"host": "example.org"})
    row.download_button.click()
    await desk.settle()
    assert row.problem_text() == tr("problem.no_network", host="example.org")
    assert not row.download_button.isHidden()


async def test_a_failed_engine_is_said_and_unsaid(desk: Desk) -> None:
    await desk.open()
    problem = Problem(code=ProblemCode.ENGINE_GIVEN_UP, fields={"count": "3"})
    desk.assistant.status = EngineStatus(phase=EnginePhase.FAILED, problem=problem)
    desk.assistant.tell(StatusChanged())
    await desk.settle()
    assert "3 times" in desk.window.conversation_panel.problem_text()
    assert "Model not running" in desk.window.status_line.text()
    desk.assistant.status = EngineStatus(phase=EnginePhase.READY, model_name="Qwen")
    desk.assistant.tell(StatusChanged())
    await desk.settle()
    assert desk.window.conversation_panel.problem_text() == ""


async def test_language_and_theme_change_live(desk: Desk) -> None:
    await opened(desk)
    window = desk.window
    window.choose("general.language", "zh")
    await desk.settle()
    assert window.panels.docks["region"].windowTitle() == "上下文区域"
    assert window.menus.action("stop").text() == "停止"
    assert window.conversation_panel.input.placeholderText() == tr("composer.placeholder")
    assert window.panels.region.figures_text() == "438 / 8,192 词元"
    view = window.conversation_panel.view.view_of(0)
    assert view is not None
    assert view._speaker.text() == "您"
    window.choose("appearance.theme", "dark")
    await desk.settle()
    assert theme.name == "dark"
    prose = view.findChild(ProseView)
    assert prose is not None
    assert theme.hex("text").lower() in prose.toHtml().lower()
    assert window.menus._choices["appearance.theme"]["dark"].isChecked()
    assert desk.state.appearance() == ("zh", "dark")


async def test_settings_are_generated_searched_changed_and_reset(desk: Desk) -> None:
    await desk.open()
    window = desk.window
    window.open_settings()
    dialog = window._settings_dialog
    assert dialog is not None
    assert set(dialog.rows) == set(SETTINGS)
    dialog.search_field.setText("temper")
    assert [key for key, row in dialog.rows.items() if not row.isHidden()] == ["models.temperature"]
    dialog.search_field.setText("")
    row = dialog.rows["memory.pages_max"]
    assert row.reset_button.isHidden()
    assert isinstance(row.editor, QSpinBox)
    row.editor.setValue(9)
    await desk.settle()
    assert desk.assistant.setting("memory.pages_max") == 9
    assert not row.reset_button.isHidden()
    row.reset_button.click()
    await desk.settle()
    assert desk.assistant.setting("memory.pages_max") == 6
    assert row.editor.value() == 6
    assert tr("settings.needs_restart") in dialog.rows["models.context_tokens"]._help.text()
    chat = dialog.rows["models.chat"].editor
    assert isinstance(chat, QComboBox)
    assert next(chat.itemText(at) for at in range(chat.count())) == tr("settings.auto")
    dialog.changed.emit("memory.pages_max", 99)
    await desk.settle()
    assert "between 0 and 20" in row._trouble.text()
    dialog.close()


@pytest.mark.parametrize("key", ["region", "queue", "ledger", "fatigue", "stains", "pointers"])
async def test_panels_are_toggled_by_their_keys_and_restored(desk: Desk, key: str) -> None:
    await desk.open()
    dock = desk.window.panels.docks[key]
    dock.raise_()
    dock.close()
    await desk.settle()
    assert not desk.window.menus.action(f"panel_{key}").isChecked()
    desk.window.menus.action(f"panel_{key}").trigger()
    await desk.settle()
    assert dock.isVisible()
    assert desk.window.menus.action(f"panel_{key}").isChecked()


def test_every_shortcut_of_the_design_is_there(qtbot: QtBot) -> None:
    from ui.menus import COMMANDS

    keys = {command.keys for command in COMMANDS}
    assert {
        "Ctrl+N",
        "Ctrl+K",
        "Ctrl+F",
        "Ctrl+L",
        "Ctrl+Return",
        "Ctrl+.",
        "Ctrl+1",
        "Ctrl+2",
        "Ctrl+3",
        "Ctrl+4",
        "Ctrl+,",
    } <= keys
    named = [command.keys for command in COMMANDS if command.keys]
    assert len(named) == len(set(named))
