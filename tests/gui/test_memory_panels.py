"""Context region and index queue: to scale, in words, by keyboard, and rows that move."""

from __future__ import annotations

import itertools
import random
import time
from dataclasses import replace

import pytest
from PySide6.QtCore import QAbstractAnimation, QEvent, QPersistentModelIndex, QPoint, Qt
from PySide6.QtGui import QHelpEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip
from pytestqt.modeltest import ModelTester
from pytestqt.qtbot import QtBot

from growbox_app.api import Phase, PhaseChanged
from growbox_app.text import tr
from memory.values import BlockKind, ConversationId, PointerKind, QueueEntry, QueueSnapshot
from tests.fakes.assistant import START_MS
from tests.gui.conftest import Desk
from tests.gui.memory_blocks import (
    RESERVE,
    SYSTEM,
    WINDOW,
    queue_of,
    region_of,
    shown_blocks,
)
from ui import motion
from ui.panels.context_region import ContextRegionPanel
from ui.panels.index_queue import IndexQueuePanel
from ui.panels.queue_model import QueueModel, longest_ascent
from ui.panels.queue_rows import MOTION_MS, ROW_PIXELS
from ui.panels.region_strip import RegionStrip
from ui.theme import theme
from ui.view_models import region
from ui.view_models.block_words import describe_part

NOW_MS = START_MS + 3_600_000


@pytest.fixture(autouse=True)
def look(qtbot: QtBot) -> None:
    """English, light."""
    tr.use("en")
    theme.use("light", conversation_pixels=15)


def strip_of(qtbot: QtBot, count: int, width: int = 400) -> RegionStrip:
    strip = RegionStrip()
    qtbot.addWidget(strip)
    strip.now_ms = NOW_MS
    strip.resize(width, strip.height())
    strip.show_snapshot(region_of(shown_blocks(count)))
    return strip


# -- the strip --------------------------------------------------------------------------------
@pytest.mark.parametrize("count", [0, 1, 3, 60])
@pytest.mark.parametrize("width", [180, 400, 1111])
def test_the_boxes_of_the_strip_are_the_window(qtbot: QtBot, count: int, width: int) -> None:
    strip = strip_of(qtbot, count, width)
    boxes = [strip.box(part) for part in strip._parts]
    assert sum(box.width() for box in boxes) == pytest.approx(width)
    assert all(a.right() == pytest.approx(b.left()) for a, b in itertools.pairwise(boxes))
    reserve = boxes[-1]
    assert reserve.width() == pytest.approx(width * RESERVE / WINDOW)


def test_the_boundary_is_where_the_last_prompt_stopped_reusing() -> None:
    blocks = shown_blocks(12)
    assert region.boundary(region_of(())) is None
    assert region.boundary(region_of(blocks, reused=1_000)) == 1_000
    assert region.boundary(region_of(blocks, reused=0)) == 0


def test_the_boundary_tells_the_truth_after_answer_and_eviction() -> None:
    blocks = shown_blocks(12)
    newest = SYSTEM + sum(shown.block.tokens for shown in blocks if shown.block.turn < 2)
    # The second call of a turn with a tool reused the question too; it was new to the turn all the same.
    assert region.boundary(region_of(blocks, reused=newest + 200)) == newest
    # A turn that left meanwhile took its share of the reused tokens along.
    rest = tuple(shown for shown in blocks if shown.block.turn != 0)
    moved = SYSTEM + sum(shown.block.tokens for shown in rest if shown.block.turn < 2)
    assert region.boundary(region_of(rest, reused=newest)) == moved


def test_while_reading_the_boundary_is_this_turns(qtbot: QtBot) -> None:
    strip = strip_of(qtbot, 12)
    snapshot = region_of(shown_blocks(12))
    assert strip.boundary == snapshot.newest_turn_start
    strip.show_unread(3_000)
    assert strip.boundary == snapshot.used_tokens - 3_000
    strip.show_unread(10)  # a tool's result: the question before it is new too
    assert strip.boundary == snapshot.newest_turn_start
    strip.show_unread(99_999)
    assert strip.boundary == 0


async def test_phases_of_a_turn_move_the_boundary(desk: Desk) -> None:
    await desk.open()
    panels = desk.window.panels
    panels.region.show_snapshot(region_of(shown_blocks(12)), NOW_MS)
    said = desk.window.conversation_panel.show_phase
    before = panels.region.strip.boundary
    said(PhaseChanged(phase=Phase.READING, total=3_000))
    reading = panels.region.strip.boundary
    assert reading != before
    said(PhaseChanged(phase=Phase.WRITING, rate=9.0))
    assert panels.region.strip.boundary == reading
    said(None)
    assert panels.region.strip.boundary == before


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("reused", [0, 1_000, WINDOW])
@pytest.mark.parametrize("width", [60, 180, 400])
def test_the_boundary_is_painted_wherever_it_lies(
    qtbot: QtBot, language: str, reused: int, width: int
) -> None:
    tr.use(language)
    strip = strip_of(qtbot, 3, width)
    strip.show_snapshot(region_of(()))
    bare = strip.grab().toImage()
    strip.show_snapshot(replace(region_of((), reused=reused), prompt_tokens=500))
    assert strip.grab().toImage() != bare


def test_hotter_blocks_are_brighter_and_every_block_is_seen() -> None:
    heats = [0.0, 0.2, 0.5, 1.0, 2.5, 4.0]
    shares = [region.brightness(heat, 4.0) for heat in heats]
    assert shares == sorted(set(shares))
    assert shares[0] == region.BRIGHTNESS_MIN
    assert shares[-1] == 1.0
    assert region.heat_share(0.3, 0.3) == pytest.approx(0.3)
    for name in ("light", "dark"):
        theme.use(name)
        saturations = [
            theme.between("surface_alt", "block_assistant", share).hsvSaturationF()
            for share in shares
        ]
        assert saturations == sorted(saturations)


def test_protected_turns_are_one_span_at_the_end() -> None:
    snapshot = region_of(shown_blocks(12))
    first = next(part for part in region.parts(snapshot) if part.block and part.block.protected)
    assert region.protected_spans(snapshot) == ((first.start, snapshot.used_tokens),)
    assert region.protected_spans(region_of(())) == ()


@pytest.mark.parametrize(
    ("language", "wanted"),
    [
        (
            "en",
            (
                "Memory · You · 2 Nov {clock}",
                "400 tokens · 4.9 % of the window · heat 0.1",
                "pinned · recent turn, stays · KV-cached",
                "We pick DuckDB for the index: one file, fast column scans 1",
            ),
        ),
        (
            "zh",
            (
                "记忆 · 您 · 11月2日 {clock}",
                "400 词元 · 占窗口 4.9 % · 热度 0.1",
                "已固定 · 近期轮次，会保留 · KV 缓存",
                "索引用 DuckDB：一个文件，列扫描快 1",
            ),
        ),
    ],
)
def test_hovering_tells_all_about_a_block(language: str, wanted: tuple[str, ...]) -> None:
    from ui.view_models import wording

    tr.use(language)
    shown = replace(shown_blocks(1, language)[0], pinned=True)
    part = region.Part(kind=BlockKind.MEMORY, start=SYSTEM, tokens=400, block=shown)
    said = describe_part(part, window=WINDOW, now_ms=NOW_MS, cached_to=WINDOW)
    clock = wording.local_time(shown.created_at_ms).strftime("%H:%M")
    assert [line.replace(" 月 ", "月").replace(" 日", "日") for line in said] == [
        line.format(clock=clock) for line in wanted
    ]
    assert tr("region.new") in describe_part(part, window=WINDOW, now_ms=NOW_MS, cached_to=0)[2]


def test_hovering_free_room_and_reserve_tells_their_size(qtbot: QtBot) -> None:
    strip = strip_of(qtbot, 0)
    reserve = strip._parts[-1]
    assert strip.describe(reserve) == "Kept for the answer\n1,024 tokens · 12.5 % of the window"
    place = QPoint(int(strip.box(reserve).center().x()), 12)
    event = QHelpEvent(QEvent.Type.ToolTip, place, strip.mapToGlobal(place))
    assert QApplication.sendEvent(strip, event)
    assert QToolTip.text() == strip.describe(reserve)
    QToolTip.hideText()


def test_the_arrow_keys_walk_the_blocks_and_enter_opens(qtbot: QtBot) -> None:
    strip = strip_of(qtbot, 3)
    opened: list[int] = []
    strip.block_clicked.connect(lambda shown: opened.append(shown.block.id))
    walked = []
    for key in (
        Qt.Key.Key_Return,
        Qt.Key.Key_Right,
        Qt.Key.Key_Right,
        Qt.Key.Key_Right,
        Qt.Key.Key_Right,
        Qt.Key.Key_Left,
        Qt.Key.Key_Home,
        Qt.Key.Key_End,
    ):
        QTest.keyClick(strip, key)
        current = strip.current_part()
        walked.append(current.block.block.id if current and current.block else 0)
    assert walked == [0, 1, 2, 3, 3, 2, 1, 3]
    QTest.keyClick(strip, Qt.Key.Key_Return)
    assert opened == [3]
    current = strip.current_part()
    assert current is not None
    assert strip.accessibleDescription() == strip.describe(current).replace("\n", ". ")
    strip.show_snapshot(region_of(shown_blocks(2)))
    assert strip.current_part() is None
    QToolTip.hideText()


def test_the_caption_says_used_and_reused_in_both_languages(qtbot: QtBot) -> None:
    panel = ContextRegionPanel()
    qtbot.addWidget(panel)
    snapshot = replace(region_of(shown_blocks(12)), reused_tokens=2_000)
    panel.show_snapshot(snapshot, NOW_MS)
    used, reused = snapshot.used_tokens, 2_000 / snapshot.prompt_tokens
    assert panel.figures_text() == f"{used:,} / 8,192 tokens"
    start = f"{used / WINDOW * 100:.0f} % used · reused {reused * 100:.0f} % · 1,024 reserved"
    assert panel._reuse.text().startswith(start)
    tr.use("zh")
    panel.retranslate()
    assert panel._reuse.text().startswith(f"已用 {used / WINDOW * 100:.0f} % · 复用")


# -- the queue --------------------------------------------------------------------------------
def entries_of(count: int) -> list[QueueEntry]:
    return list(queue_of(shown_blocks(count)).entries)


def queue(entries: list[QueueEntry], conversation: str = "c") -> QueueSnapshot:
    return QueueSnapshot(conversation_id=ConversationId(conversation), entries=tuple(entries))


@pytest.fixture
def panel(qtbot: QtBot, monkeypatch: pytest.MonkeyPatch) -> IndexQueuePanel:
    """A queue on the screen, with motion."""
    monkeypatch.setattr(motion, "reduced", lambda: False)
    made = IndexQueuePanel()
    qtbot.addWidget(made)
    made.resize(300, 420)
    made.show()
    return made


def test_what_may_stay_is_a_longest_ascent() -> None:
    assert longest_ascent([]) == frozenset()
    assert longest_ascent([3, 0, 1, 2]) == {0, 1, 2}
    assert longest_ascent([0, 2, 1, 3]) in ({0, 1, 3}, {0, 2, 3})
    assert len(longest_ascent(list(range(9, -1, -1)))) == 1


def test_any_change_of_the_queue_keeps_the_model_sound(qtmodeltester: ModelTester) -> None:
    model = QueueModel()
    qtmodeltester.check(model)
    chance = random.Random(7)
    pool = entries_of(24)
    for _ in range(60):
        wanted = chance.sample(pool, chance.randrange(1, len(pool)))
        held = {
            entry.block_id: QPersistentModelIndex(model.index(row))
            for row, entry in enumerate(model.entries)
        }
        assert model.show_snapshot(queue(wanted), NOW_MS) or not held
        assert model.entries == tuple(wanted)
        rows = {entry.block_id: row for row, entry in enumerate(wanted)}
        for block_id, index in held.items():
            assert index.isValid() == (block_id in rows)
            assert not index.isValid() or index.row() == rows[block_id]


def test_one_block_that_rises_is_one_move(qtbot: QtBot) -> None:
    model = QueueModel()
    entries = entries_of(60)
    model.show_snapshot(queue(entries), NOW_MS)
    moves: list[tuple[int, int]] = []
    resets: list[int] = []
    model.rowsMoved.connect(lambda _p, start, _e, _d, row: moves.append((start, row)))
    model.modelReset.connect(lambda: resets.append(1))
    model.show_snapshot(queue([entries[40], *entries[:40], *entries[41:]]), NOW_MS)
    model.show_snapshot(queue(entries), NOW_MS)
    assert moves == [(40, 0), (0, 41)]
    assert resets == []


def test_rows_move_within_the_time_and_keep_the_selection(
    qtbot: QtBot, panel: IndexQueuePanel
) -> None:
    entries = entries_of(12)
    panel.show_snapshot(queue(entries), NOW_MS)
    panel.list.setCurrentIndex(panel.model.index(5))
    chosen = panel.selected()
    assert chosen is not None
    assert not panel.rows.running
    order = [entries[5], *entries[:5], *entries[6:]]
    panel.show_snapshot(queue(order), NOW_MS)
    assert panel.rows.running
    assert MOTION_MS <= 150
    assert panel.rows.offset(entries[5].block_id) == 5 * ROW_PIXELS
    assert panel.rows.offset(entries[0].block_id) == -ROW_PIXELS
    assert panel.rows.offset(entries[9].block_id) == 0
    assert panel.selected() == chosen
    assert panel.list.currentIndex().row() == 0
    qtbot.waitUntil(lambda: not panel.rows.running, timeout=5_000)
    assert panel.model.entries == tuple(order)
    assert panel.rows.offset(entries[5].block_id) == 0
    assert panel.rows._animation.state() is QAbstractAnimation.State.Stopped


def test_a_row_that_still_moves_goes_on_from_where_it_is(panel: IndexQueuePanel) -> None:
    entries = entries_of(4)
    panel.show_snapshot(queue(entries), NOW_MS)
    turned = [entries[1], entries[0], *entries[2:]]
    panel.show_snapshot(queue(turned), NOW_MS)
    panel.rows._animation.setCurrentTime(MOTION_MS // 2)
    drawn = panel.rows.offset(entries[0].block_id)
    assert -ROW_PIXELS < drawn < 0
    panel.show_snapshot(queue(entries), NOW_MS)
    assert panel.rows.offset(entries[0].block_id) == pytest.approx(ROW_PIXELS + drawn)


def test_nothing_moves_when_motion_is_reduced(
    panel: IndexQueuePanel, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(motion, "reduced", lambda: True)
    entries = entries_of(6)
    panel.show_snapshot(queue(entries), NOW_MS)
    panel.show_snapshot(queue(entries[::-1]), NOW_MS)
    assert not panel.rows.running
    assert panel.model.entries == tuple(entries[::-1])


def test_another_conversation_is_shown_at_once(panel: IndexQueuePanel) -> None:
    entries = entries_of(6)
    panel.show_snapshot(queue(entries), NOW_MS)
    panel.show_snapshot(queue(entries[::-1], "other"), NOW_MS)
    assert not panel.rows.running
    assert panel.model.entries == tuple(entries[::-1])


def test_rows_that_come_from_far_are_one_animation_and_start_in_reach(
    panel: IndexQueuePanel,
) -> None:
    entries = entries_of(200)
    panel.show_snapshot(queue(entries), NOW_MS)
    panel.show_snapshot(queue(entries[::-1]), NOW_MS)
    reach = panel.list.viewport().height()
    assert len(panel.findChildren(QAbstractAnimation)) <= 1
    assert max(abs(panel.rows.offset(entry.block_id)) for entry in entries) == reach


def test_two_hundred_rows_cost_little_more_each_than_twenty(panel: IndexQueuePanel) -> None:
    def cost(count: int) -> float:
        entries = entries_of(count)
        other = [*entries[::2], *entries[1::2]]
        best = float("inf")
        for _ in range(5):
            panel.show_snapshot(queue(entries), NOW_MS)
            panel.list.grab()
            started = time.perf_counter()
            panel.show_snapshot(queue(other), NOW_MS)
            panel.list.grab()
            best = min(best, time.perf_counter() - started)
        return best

    small, large = cost(20), cost(200)
    assert large < 12 * small, (small, large)


def test_a_placeholder_is_hollow_and_a_real_pointer_filled(panel: IndexQueuePanel) -> None:
    entry = replace(entries_of(1)[0], heat=4.0, title="", pointer=PointerKind.REAL)
    pictures = []
    for pointer in PointerKind:
        panel.show_snapshot(queue([replace(entry, pointer=pointer)], str(pointer)), NOW_MS)
        pictures.append(panel.list.viewport().grab().toImage())
    middle = QPoint(4 + 12, ROW_PIXELS // 2)
    hollow, real = (picture.pixelColor(middle) for picture in pictures)
    assert hollow == theme.color("surface")
    assert real == theme.color("heat")


@pytest.mark.parametrize(
    ("language", "kind"), [("en", "Memory · placeholder"), ("zh", "记忆 · 占位")]
)
def test_a_row_says_everything_in_words(panel: IndexQueuePanel, language: str, kind: str) -> None:
    tr.use(language)
    entry = next(e for e in entries_of(4) if e.kind is BlockKind.MEMORY)
    panel.show_snapshot(queue([replace(entry, pinned=True, tokens=1_240)]), NOW_MS)
    role = Qt.ItemDataRole.AccessibleTextRole
    words = str(panel.model.data(panel.model.index(0), role))
    assert entry.title in words
    for part in (kind, "1,240", tr("region.pinned"), tr("queue.heat", value=f"{entry.heat:.1f}")):
        assert part in words
    assert str(panel.model.data(panel.model.index(0), Qt.ItemDataRole.ToolTipRole)).endswith(
        str(panel.model.data(panel.model.index(0), Qt.ItemDataRole.AccessibleDescriptionRole))
    )


# -- under an answer --------------------------------------------------------------------------
async def test_a_stored_answer_shows_its_figures_again(desk: Desk) -> None:
    await desk.open()
    desk.ask("hello")
    await desk.settle()
    conversation = (await desk.assistant.library.conversations())[0]
    desk.window.new_conversation()
    await desk.settle()
    desk.window.open_conversation(conversation.id)
    await desk.settle()
    view = desk.window.conversation_panel.view.view_of(1)
    assert view is not None
    assert view._figures.text().endswith("3,310 reused (97 %) · 102 new in 0.4 s")
    assert "First word after 0.6 s" in view._figures.toolTip()
