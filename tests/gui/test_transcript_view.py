"""The scrolling conversation: few widgets, a reader's place that does not move."""

from collections.abc import Iterator

import pytest
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from growbox_app.api import TextDelta
from memory.values import NodeId, NodeStatus, Role
from ui.panels.transcript_view import TranscriptView
from ui.theme import theme
from ui.view_models.markdown import StreamingMarkdown
from ui.view_models.transcript import Message, Transcript

MANY = 500


def message(at: int, text: str) -> Message:
    role = Role.ASSISTANT if at % 2 else Role.USER
    return Message(node_id=NodeId(f"n{at}"), role=role, created_at_ms=at * 60_000, text=text)


@pytest.fixture
def view(qtbot: QtBot) -> Iterator[TranscriptView]:
    theme.use("light")
    made = TranscriptView()
    qtbot.addWidget(made)
    made.resize(800, 600)
    made.show()
    transcript = Transcript()
    transcript.messages = [
        message(
            at,
            f"Message **{at}**\n\n" + "words and more words " * (at % 40) + "\n\n```py\nx = 1\n```",
        )
        for at in range(MANY)
    ]
    made.show_transcript(transcript, MANY * 60_000)
    return made


def add_live(view: TranscriptView) -> Message:
    live = message(MANY + 1, "")
    live.status = NodeStatus.PARTIAL
    live.stream = StreamingMarkdown()
    view.transcript.messages.append(live)
    view.messages_added()
    return live


def grow(view: TranscriptView, text: str) -> None:
    view.transcript.take(TextDelta(text=text))
    view.finish_stream()


def place_of(view: TranscriptView, index: int) -> int:
    shown = view.view_of(index)
    assert shown is not None
    return shown.y()


def test_five_hundred_messages_cost_a_screen_of_widgets(view: TranscriptView) -> None:
    assert len(view.visible_views()) < 25
    bar = view.verticalScrollBar()
    for step in range(60):
        bar.setValue(bar.maximum() * (60 - step) // 60)
        QApplication.processEvents()
        assert len(view.visible_views()) < 40
    assert 0 not in view.visible_views()
    view.scroll_to(0)
    assert 0 in view.visible_views()
    assert MANY - 1 not in view.visible_views()


def test_it_opens_at_the_newest_message(view: TranscriptView) -> None:
    assert view.following
    last = view.view_of(MANY - 1)
    assert last is not None
    assert last.geometry().bottom() <= view.viewport().height()
    assert not view.newest_button.isVisible()


def test_messages_do_not_overlap(view: TranscriptView) -> None:
    for value in (0, 5_000, 20_000, view.verticalScrollBar().maximum()):
        view.verticalScrollBar().setValue(value)
        QApplication.processEvents()
        shown = [view.visible_views()[index] for index in sorted(view.visible_views())]
        indexes = sorted(view.visible_views())
        for at in range(len(shown) - 1):
            if indexes[at + 1] == indexes[at] + 1:
                assert shown[at].geometry().bottom() + 1 == shown[at + 1].y()


def test_the_end_is_followed_while_the_reader_is_there(view: TranscriptView) -> None:
    add_live(view)
    for _line in range(40):
        grow(view, "another line of the answer\n\n")
    bar = view.verticalScrollBar()
    assert bar.value() == bar.maximum()


def test_the_readers_place_stays_while_the_answer_grows(view: TranscriptView) -> None:
    add_live(view)
    view.scroll_to(MANY - 20)
    before = place_of(view, MANY - 20)
    for _line in range(40):
        grow(view, "another line of the answer\n\n")
    assert place_of(view, MANY - 20) == before
    assert view.newest_button.isVisible()
    view.newest_button.click()
    assert view.following
    assert not view.newest_button.isVisible()


def test_the_readers_place_stays_when_heights_above_turn_out_otherwise(
    view: TranscriptView,
) -> None:
    view.scroll_to(100)
    before = place_of(view, 100)
    view._heights[50] += 777
    view._place()
    assert place_of(view, 100) == before


def test_a_message_with_a_selection_is_kept(view: TranscriptView) -> None:
    last = view.view_of(MANY - 1)
    assert last is not None
    assert last.select_words("Message") is not None
    view.scroll_to(0)
    assert view.view_of(MANY - 1) is last


def test_streamed_and_stored_answers_look_the_same(view: TranscriptView) -> None:
    text = "Intro\n\n- a\n- b\n\n```py\nx = 1\n\ny = 2\n```\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nEnd **bold**"
    live = add_live(view)
    for start in range(0, len(text), 5):
        grow(view, text[start : start + 5])
    streamed = view.view_of(MANY)
    assert streamed is not None
    live.stream = None
    live.status = NodeStatus.COMPLETE
    view.finish_stream()
    blocks, _cut = live.blocks()
    assert streamed._shown_blocks() == blocks
    assert len(streamed._segments) == 3


def test_the_found_place_is_selected_and_in_view(view: TranscriptView) -> None:
    places = view.transcript.find("message **37")
    assert places == [37, *range(370, 380)]
    view.show_match(places[0], "37")
    shown = view.view_of(37)
    assert shown is not None
    assert shown.y() + shown.height() >= 0
    assert shown.holds_reader()


def test_a_new_width_measures_again(view: TranscriptView) -> None:
    view.resize(420, 600)
    QApplication.processEvents()
    for shown in view.visible_views().values():
        assert shown.width() <= 420
