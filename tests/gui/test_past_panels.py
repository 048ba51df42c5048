"""Stain map, pointer graph and fragment ledger: to scale, in words, by mouse and by keyboard."""

from __future__ import annotations

from dataclasses import replace

import pytest
from PySide6.QtCore import QEvent, QPoint, QPointF, Qt
from PySide6.QtGui import QHelpEvent, QMouseEvent, QWheelEvent
from PySide6.QtTest import QTest
from PySide6.QtWidgets import QApplication, QToolTip, QTreeWidgetItem, QWidget
from pytestqt.qtbot import QtBot

from growbox_app.text import tr
from memory.values import (
    Depth,
    Fragment,
    LedgerSnapshot,
    NeighbourhoodSnapshot,
    Node,
    NodeId,
    Role,
    StainSnapshot,
)
from tests.fakes.assistant import START_MS
from tests.gui.conftest import Desk
from tests.gui.past import FIRST, LAST, moment, neighbourhood, stain_map
from ui.main_window import DOCKS_PIXELS
from ui.panels.fragment_ledger import FragmentLedgerPanel
from ui.panels.pointer_graph import PointerGraphPanel
from ui.panels.source_dialog import SourceDialog
from ui.panels.stain_band import BAND_PIXELS, MARK_PIXELS, StainBand
from ui.panels.stain_map import StainMapPanel
from ui.theme import theme
from ui.view_models import ledger, pointers, stains

NOW_MS = START_MS + 3_600_000
NONE, LEFT = Qt.KeyboardModifier.NoModifier, Qt.MouseButton.LeftButton


@pytest.fixture(autouse=True)
def look(qtbot: QtBot) -> None:
    """English, light."""
    tr.use("en")
    theme.use("light", conversation_pixels=15)


def move(widget: QWidget, kind: QEvent.Type, x: float, y: float) -> None:
    """One event of the left button."""
    place = QPointF(x, y)
    held = Qt.MouseButton.NoButton if kind is QEvent.Type.MouseButtonRelease else LEFT
    QApplication.sendEvent(
        widget, QMouseEvent(kind, place, widget.mapToGlobal(place), LEFT, held, NONE)
    )


def click(widget: QWidget, x: float, y: float) -> None:
    move(widget, QEvent.Type.MouseButtonPress, x, y)
    move(widget, QEvent.Type.MouseButtonRelease, x, y)


def wheel(widget: QWidget, x: float, turned: int, held: Qt.KeyboardModifier = NONE) -> None:
    place = QPointF(x, 20)
    QApplication.sendEvent(
        widget,
        QWheelEvent(
            place,
            widget.mapToGlobal(place),
            QPoint(),
            QPoint(0, turned),
            Qt.MouseButton.NoButton,
            held,
            Qt.ScrollPhase.NoScrollPhase,
            False,
        ),
    )


# -- the stain map ----------------------------------------------------------------------------
@pytest.fixture
def band(qtbot: QtBot) -> StainBand:
    """A band of a thousand notes, a thousand pixels wide."""
    made = StainBand()
    qtbot.addWidget(made)
    made.now_ms = NOW_MS
    made.resize(LAST, made.height())
    made.show_snapshot(stain_map())
    return made


def test_the_band_is_to_scale(band: StainBand) -> None:
    for x in (0, 99, 100, 199, 200, 400, 409, 410, 999):
        assert band.seq_at(x + 0.5) == FIRST + x
    picture = band.grab().toImage()
    ratio, middle = picture.devicePixelRatio(), MARK_PIXELS + BAND_PIXELS // 4
    deep = theme.color("stain_deep")
    row = [picture.pixelColor(int(x * ratio), int(middle * ratio)) == deep for x in range(LAST - 1)]
    assert [x for x in range(1, LAST - 1) if row[x] != row[x - 1]] == [400, 410, 800]


@pytest.mark.parametrize("name", ["light", "dark"])
def test_depth_is_told_by_height_and_not_by_colour_alone(band: StainBand, name: str) -> None:
    theme.use(name)
    picture = band.grab().toImage()
    ratio = picture.devicePixelRatio()

    def colours(seq: int) -> tuple[str, str]:
        top, bottom = (MARK_PIXELS + BAND_PIXELS * share for share in (0.25, 0.8))
        x = seq - FIRST
        rows = [
            {picture.pixelColor(int((x + at) * ratio), int(y * ratio)).name() for at in range(9)}
            for y in (top, bottom)
        ]
        return tuple(" ".join(sorted(row)) for row in rows)  # type: ignore[return-value]

    surface = theme.color("surface").name()
    assert colours(300) == (surface, surface)
    upper, lower = colours(150)
    assert upper == surface
    assert theme.color("stain_light").name() in lower
    assert theme.color("stain_deep").name() in lower  # the stripes
    assert colours(900) == (theme.color("stain_deep").name(),) * 2


def test_hovering_says_dates_and_state(band: StainBand) -> None:
    said: list[str] = []
    band.said.connect(said.append)
    place = QPoint(150, 20)
    QApplication.sendEvent(band, QHelpEvent(QEvent.Type.ToolTip, place, band.mapToGlobal(place)))
    assert QToolTip.text() == band.words_at(150)
    assert "100 notes · skimmed" in QToolTip.text()
    QToolTip.hideText()
    move(band, QEvent.Type.MouseMove, 300, 20)
    assert said[-1].endswith("200 notes · never read")


def test_a_click_opens_the_note_and_a_drag_pans(band: StainBand) -> None:
    opened: list[int] = []
    band.note_chosen.connect(opened.append)
    click(band, 420.5, 20)
    assert opened == [421]
    assert band.mark == 421
    band.zoom(4, 0.5)
    assert band.view is not None
    start = band.view.start
    move(band, QEvent.Type.MouseButtonPress, 500, 20)
    move(band, QEvent.Type.MouseMove, 400, 20)
    move(band, QEvent.Type.MouseButtonRelease, 400, 20)
    assert band.view.start == pytest.approx(start + 25)
    assert opened == [421]


def test_the_wheel_zooms_where_the_mouse_is_and_pans_with_shift(band: StainBand) -> None:
    before = band.seq_at(250)
    wheel(band, 250, 120)
    assert band.view is not None
    assert band.view.notes == pytest.approx(LAST / stains.ZOOM_STEP)
    assert band.seq_at(250) == before
    start = band.view.start
    wheel(band, 250, -120, Qt.KeyboardModifier.ShiftModifier)
    assert band.view.start > start
    for _ in range(9):
        wheel(band, 250, -120)
    assert band.view.whole


def test_the_keyboard_reaches_every_note(band: StainBand) -> None:
    opened: list[int] = []
    band.note_chosen.connect(opened.append)
    control = Qt.KeyboardModifier.ControlModifier
    marks: list[int | None] = []
    keys = (
        (Qt.Key.Key_Home, NONE),
        (Qt.Key.Key_Right, control),
        (Qt.Key.Key_Right, control),
        (Qt.Key.Key_Left, control),
        (Qt.Key.Key_End, NONE),
        (Qt.Key.Key_Right, NONE),
        (Qt.Key.Key_Left, NONE),
        (Qt.Key.Key_PageUp, NONE),
    )
    for key, held in keys:
        QTest.keyClick(band, key, held)
        marks.append(band.mark)
    step = round(LAST * 1 / 60)
    assert marks == [1, 101, 201, 101, LAST, LAST, LAST - step, LAST - step - LAST // 2]
    for _ in range(30):
        QTest.keyClick(band, Qt.Key.Key_Plus)
    assert band.view is not None
    assert band.view.notes == stains.NOTES_MIN
    mark = band.mark
    assert mark is not None
    QTest.keyClick(band, Qt.Key.Key_Right)
    QTest.keyClick(band, Qt.Key.Key_Return)
    assert opened == [mark + 1]
    assert band.accessibleDescription() == band.words_at(mark + 1)
    QTest.keyClick(band, Qt.Key.Key_Minus)
    QTest.keyClick(band, Qt.Key.Key_0)
    assert band.view.whole


def test_a_band_that_changes_keeps_zoom_and_mark(band: StainBand) -> None:
    click(band, 420.5, 20)
    band.zoom(4)
    assert band.view is not None
    start, notes = band.view.start, band.view.notes
    band.show_snapshot(replace(stain_map(), last_seq=LAST + 10, nodes=LAST + 10))
    assert (band.view.start, band.view.notes, band.mark) == (start, notes, 421)
    band.show_snapshot(replace(stain_map(), last_seq=100, nodes=100, spans=()))
    assert band.mark is None


def test_the_map_says_what_it_has_and_its_buttons_move(qtbot: QtBot) -> None:
    panel = StainMapPanel()
    qtbot.addWidget(panel)
    assert not panel._empty.isHidden()
    panel.show_snapshot(replace(stain_map(), spans=()), NOW_MS)
    assert panel._empty.isHidden()
    assert panel.words() == tr("stains.nothing_read")
    summaries: list[str] = []
    panel.summary_changed.connect(summaries.append)
    panel.show_snapshot(stain_map(), NOW_MS)
    assert summaries == ["21 % deep · 18 % light"]
    assert panel.words() == tr("stains.hint")
    assert not panel.all_button.isEnabled()
    panel.in_button.click()
    assert panel.all_button.isEnabled()
    panel.out_button.click()
    panel.in_button.click()
    panel.all_button.click()
    assert panel.band.view == stains.all_of(stain_map())
    tr.use("zh")
    panel.retranslate()
    assert [panel._names[depth].text() for depth in (Depth.DEEP, Depth.LIGHT, None)] == [
        "深染",
        "浅染",
        "未染",
    ]


async def test_the_map_is_pulled_when_it_is_in_sight_and_opens_notes(desk: Desk) -> None:
    stored = desk.assistant.add_conversation("S", [("first question", "a")])
    last = (await desk.assistant.library.messages(stored.id))[-1]
    await desk.open()
    panels = desk.window.panels
    desk.assistant.mind.stain_snapshot = StainSnapshot(
        first_seq=1,
        last_seq=last.seq,
        first_ms=START_MS,
        last_ms=last.created_at_ms,
        nodes=last.seq,
    )
    await desk.settle()
    assert panels.stains.band.view is None
    desk.window.run_command("panel_stains")
    await desk.until(lambda: panels.stains.band.view is not None)
    panels.stains.note_chosen.emit(1)
    await desk.settle()
    (dialog,) = desk.window.findChildren(SourceDialog)
    assert dialog.text.toPlainText() == "first question"
    dialog.close()


@pytest.mark.parametrize("language", ["en", "zh"])
async def test_turning_to_another_tab_makes_no_panel_wider(desk: Desk, language: str) -> None:
    await desk.assistant.change_setting("general.language", language)
    await desk.open()
    panels = desk.window.panels
    panels.stains.show_snapshot(stain_map(), NOW_MS)
    panels.pointers.show_snapshot(neighbourhood(NodeId("m"), OTHERS), NOW_MS)
    panels.ledger.show_snapshot(LedgerSnapshot(open=(debt(1),), cleared=0, nodes=9), NOW_MS, {})
    for key, dock in panels.docks.items():
        assert dock.widget().minimumSizeHint().width() <= DOCKS_PIXELS, key


# -- the pointer graph ------------------------------------------------------------------------
OTHERS = tuple(NodeId(f"o{at}") for at in range(5))


@pytest.fixture
def graph(qtbot: QtBot) -> PointerGraphPanel:
    """A memory with five neighbours."""
    made = PointerGraphPanel()
    qtbot.addWidget(made)
    made.resize(320, 460)
    made.show_snapshot(neighbourhood(NodeId("m"), OTHERS), NOW_MS)
    made.show()
    return made


def row(graph: PointerGraphPanel, at: int) -> QTreeWidgetItem:
    item = graph.list.topLevelItem(at)
    assert item is not None
    return item


def test_nothing_selected_and_nothing_learned_are_said(qtbot: QtBot) -> None:
    graph = PointerGraphPanel()
    qtbot.addWidget(graph)
    graph.show_snapshot(None, NOW_MS)
    assert graph._empty.text() == tr("pointers.unselected")
    assert graph.back_button.isHidden()
    graph.show_snapshot(NeighbourhoodSnapshot(node_id=NodeId("m"), title="A memory"), NOW_MS)
    assert graph._empty.text() == tr("pointers.none")
    assert (graph._title.text(), graph.canvas.isHidden(), graph.list.isHidden()) == (
        "A memory",
        True,
        True,
    )
    assert not graph.source_button.isHidden()


def test_choosing_an_edge_lists_its_questions_with_weight_and_age(
    graph: PointerGraphPanel,
) -> None:
    assert graph._empty.isHidden()
    graph.list.setCurrentItem(row(graph, 2))
    assert [row(graph, at).isExpanded() for at in range(5)] == [False, False, True, False, False]
    item = row(graph, 2)
    questions = [item.child(at) for at in range(item.childCount())]
    assert [[question.text(column) for column in (0, 1)] for question in questions] == [
        ["+ How do I open the index?", "×1"],
        ["− What is for lunch?", "×1"],
    ]
    assert all(question.text(2) for question in questions)
    chosen = graph.selected()
    assert chosen is not None
    assert graph.canvas._chosen == chosen.key
    graph.list.setCurrentItem(questions[1])
    assert graph.selected() == chosen


def test_a_pinned_jump_is_marked(graph: PointerGraphPanel) -> None:
    assert not row(graph, 1).icon(0).isNull()
    assert row(graph, 0).icon(0).isNull()
    role = Qt.ItemDataRole.AccessibleTextRole
    assert str(row(graph, 1).data(0, role)).endswith("pinned jump")


@pytest.mark.parametrize("width", [300, 900])
def test_the_picture_is_clicked_at_boxes_and_lines(graph: PointerGraphPanel, width: int) -> None:
    graph.canvas.resize(width, 300)
    wanted: list[NodeId] = []
    graph.node_wanted.connect(wanted.append)
    drawn = graph.canvas.drawing()
    assert len(drawn.boxes) == 5
    neighbour, box = drawn.boxes[3]
    edge = graph.canvas.path(neighbour, box, drawn).pointAtPercent(0.5)
    click(graph.canvas, edge.x() + 1, edge.y() + 2)
    assert graph.selected() == neighbour
    assert wanted == []
    place = QPoint(int(box.left) + 20, int(box.middle))
    help_event = QHelpEvent(QEvent.Type.ToolTip, place, graph.canvas.mapToGlobal(place))
    QApplication.sendEvent(graph.canvas, help_event)
    assert QToolTip.text() == pointers.describe(neighbour)
    QToolTip.hideText()
    click(graph.canvas, place.x(), place.y())
    assert wanted == [neighbour.node_id]


def test_hotter_edges_are_painted_thicker(graph: PointerGraphPanel) -> None:
    graph.canvas.resize(900, 300)
    drawn = graph.canvas.drawing()
    picture = graph.canvas.grab().toImage()
    ratio = picture.devicePixelRatio()
    ground = picture.pixelColor(int(450 * ratio), int(5 * ratio))

    def thickness(at: int) -> int:
        neighbour, box = drawn.boxes[at]
        middle = graph.canvas.path(neighbour, box, drawn).pointAtPercent(0.5)
        x = int((middle.x() + 1) * ratio)
        column = range(int((middle.y() - 8) * ratio), int((middle.y() + 12) * ratio))
        return sum(picture.pixelColor(x, y) != ground for y in column)

    assert thickness(0) > thickness(4)


async def test_show_pointers_under_an_answer_brings_the_graph(desk: Desk) -> None:
    assistant = desk.assistant
    assistant.memories = (assistant.used("a memory"),)
    memory = assistant.memories[0].node_id
    other = assistant.add_node(Role.USER, "another memory").id
    assistant.mind.neighbourhoods[memory] = neighbourhood(memory, (other,))
    stored = assistant.add_conversation("S", [("q", "a")])
    await desk.open()
    desk.window.open_conversation(stored.id)
    await desk.settle()
    panels = desk.window.panels
    assert panels.pointers.node_id is None
    view = desk.window.conversation_panel.view.view_of(1)
    assert view is not None
    view.memories_button.setChecked(True)
    assert view.trace is not None
    view.trace.rows[0].pointers_button.click()
    await desk.settle()
    assert panels.pointers.node_id == memory
    assert not panels.docks["pointers"].visibleRegion().isEmpty()
    graph = panels.pointers
    graph.list.setCurrentItem(row(graph, 0))
    QTest.keyClick(graph.list, Qt.Key.Key_Return)
    await desk.settle()
    assert graph.node_id == other
    assert graph.back_button.isEnabled()
    graph.source_button.click()
    await desk.settle()
    (dialog,) = desk.window.findChildren(SourceDialog)
    assert dialog.text.toPlainText() == "another memory"
    dialog.close()
    graph.back_button.click()
    await desk.settle()
    assert graph.node_id == memory
    assert not graph.back_button.isEnabled()
    graph.list.setCurrentItem(row(graph, 0))
    QTest.keyClick(graph.list, Qt.Key.Key_Return)
    await desk.until(lambda: graph.node_id == other)
    graph.list.back_wanted.emit()
    await desk.until(lambda: graph.node_id == memory)


async def test_a_memory_chosen_in_the_queue_stands_in_the_middle(desk: Desk) -> None:
    stored = desk.assistant.add_conversation("S", [("q", "a")])
    await desk.open()
    desk.window.open_conversation(stored.id)
    await desk.settle()
    panels = desk.window.panels
    panels.queue.list.setCurrentIndex(panels.queue.model.index(1))
    entry = panels.queue.selected()
    assert entry is not None
    await desk.settle()
    desk.window.run_command("panel_pointers")
    await desk.until(lambda: panels.pointers.node_id == entry.node_id)


# -- the ledger -------------------------------------------------------------------------------
def debt(at: int, remaining: int = 30) -> Fragment:
    return Fragment(
        entry_seq=100 + 40 * at,
        target_seq=80 + 20 * at,
        query=f"question {at}",
        created_at_ms=START_MS,
        remaining=remaining,
    )


def test_a_chosen_debt_stays_chosen_and_leads_to_both_ends(qtbot: QtBot) -> None:
    panel = FragmentLedgerPanel()
    qtbot.addWidget(panel)
    times = {seq: moment(seq) for seq in range(FIRST, LAST)}
    panel.show_snapshot(LedgerSnapshot(open=(debt(2), debt(1)), cleared=1, nodes=9), NOW_MS, times)
    opened: list[int] = []
    panel.note_chosen.connect(opened.append)
    panel.older_button.click()
    assert opened == []
    assert not panel.older_button.isEnabled()
    QTest.keyClick(panel.table, Qt.Key.Key_Down)
    item = panel.table.topLevelItem(1)
    assert item is not None
    panel.table.setCurrentItem(item)
    smaller = LedgerSnapshot(open=(debt(2), debt(1, 12)), cleared=1, nodes=9)
    panel.show_snapshot(smaller, NOW_MS, times)
    chosen = panel.selected()
    assert chosen is not None
    assert (chosen.fragment.query, chosen.fragment.remaining) == ("question 1", 12)
    panel.older_button.click()
    panel.newer_button.click()
    panel.table.itemActivated.emit(panel.table.currentItem(), 0)
    assert opened == [100, 140, 100]
    panel.table.viewport().grab()
    many = tuple(debt(at) for at in range(ledger.ROWS_MAX + 3))
    panel.show_snapshot(LedgerSnapshot(open=many, cleared=0, nodes=9), NOW_MS, times)
    assert panel.table.topLevelItemCount() == ledger.ROWS_MAX
    assert panel._more.text() == "3 more wait; they are read later."
    assert panel.counts_text().startswith("203 open")


@pytest.mark.parametrize("name", ["light", "dark"])
def test_the_bar_of_a_debt_is_as_long_as_what_was_read(qtbot: QtBot, name: str) -> None:
    theme.use(name)
    panel = FragmentLedgerPanel()
    qtbot.addWidget(panel)
    panel.resize(400, 200)
    lengths = []
    for remaining in (39, 20, 0):
        only = replace(debt(1), target_seq=100, entry_seq=140, remaining=remaining)
        panel.show_snapshot(LedgerSnapshot(open=(only,), cleared=0, nodes=9), NOW_MS, {})
        picture = panel.table.viewport().grab().toImage()
        accent = theme.color("accent")
        ys = range(picture.height())
        lengths.append(
            max(sum(picture.pixelColor(x, y) == accent for x in range(picture.width())) for y in ys)
        )
    assert lengths[0] == 0
    assert lengths[1] == pytest.approx(lengths[2] * 19 / 39, abs=2)


async def test_the_dates_of_the_ends_are_looked_up_once(desk: Desk) -> None:
    first = desk.assistant.add_node(Role.USER, "one")
    second = desk.assistant.add_node(Role.USER, "two")
    fragment = replace(debt(0), target_seq=first.seq, entry_seq=second.seq, remaining=0)
    desk.assistant.mind.ledger_snapshot = LedgerSnapshot(open=(fragment,), cleared=0, nodes=0)
    await desk.open()
    asked: list[int] = []
    look_up = desk.assistant.mind.node_at

    async def noted(seq: int) -> Node | None:
        asked.append(seq)
        return await look_up(seq)

    desk.assistant.mind.node_at = noted  # type: ignore[method-assign]
    panels = desk.window.panels
    panels._dates.clear()
    await panels.pull()
    await panels.pull()
    assert sorted(asked) == [first.seq, second.seq]
    item = panels.ledger.table.topLevelItem(0)
    assert item is not None
    assert stains.dates(first.created_at_ms, second.created_at_ms, NOW_MS) in item.toolTip(0)
