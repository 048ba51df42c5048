"""The input: input methods, pasting, growing, recalling."""

import time
from collections.abc import Iterator

import pytest
from PySide6.QtCore import QMimeData, Qt, QUrl
from PySide6.QtGui import QInputMethodEvent, QKeyEvent
from PySide6.QtWidgets import QApplication
from pytestqt.qtbot import QtBot

from growbox_app.api import Attachment
from memory.values import NodeId
from ui.panels.composer import PASTE_BYTES_MAX, Chip, Composer
from ui.theme import theme


@pytest.fixture
def composer(qtbot: QtBot) -> Iterator[Composer]:
    theme.use("light")
    made = Composer()
    qtbot.addWidget(made)
    made.resize(600, 200)
    made.show()
    return made


class Sent:
    """Counts what was sent."""

    def __init__(self, composer: Composer) -> None:
        self.texts: list[str] = []
        composer.submitted.connect(lambda: self.texts.append(composer.text()))


def press(
    composer: Composer, key: Qt.Key, modifiers: Qt.KeyboardModifier = Qt.KeyboardModifier.NoModifier
) -> None:
    for kind in (QKeyEvent.Type.KeyPress, QKeyEvent.Type.KeyRelease):
        text = "\r" if key == Qt.Key.Key_Return else ""
        QApplication.sendEvent(composer.field, QKeyEvent(kind, key, modifiers, text))


def compose(composer: Composer, preedit: str, commit: str = "") -> None:
    event = QInputMethodEvent(preedit, [])
    if commit:
        event.setCommitString(commit)
    QApplication.sendEvent(composer.field, event)


def test_enter_sends_and_shift_enter_breaks_the_line(composer: Composer) -> None:
    sent = Sent(composer)
    composer.show_text("one")
    press(composer, Qt.Key.Key_Return, Qt.KeyboardModifier.ShiftModifier)
    assert composer.text() == "one\n"
    assert sent.texts == []
    press(composer, Qt.Key.Key_Return)
    assert sent.texts == ["one\n"]


def test_enter_during_a_composition_never_sends(composer: Composer) -> None:
    sent = Sent(composer)
    compose(composer, "nihao")
    assert composer.field.composing()
    press(composer, Qt.Key.Key_Return)
    press(composer, Qt.Key.Key_Enter)
    composer.field.submit()
    assert sent.texts == []
    assert "\n" not in composer.text()


def test_enter_after_the_commit_sends_exactly_once(composer: Composer) -> None:
    sent = Sent(composer)
    compose(composer, "nihao")
    press(composer, Qt.Key.Key_Return)
    compose(composer, "", "你好")
    assert not composer.field.composing()
    assert composer.text() == "你好"
    press(composer, Qt.Key.Key_Return)
    assert sent.texts == ["你好"]


def test_a_small_paste_enters_the_field_without_its_format(composer: Composer) -> None:
    mime = QMimeData()
    mime.setText("plain")
    mime.setHtml("<b>plain</b>")
    composer.field.insertFromMimeData(mime)
    assert composer.text() == "plain"
    assert composer.field.textCursor().charFormat().fontWeight() in (0, 400)


@pytest.mark.parametrize("text", ["x" * 1_000_000, "界" * 3_000])
def test_a_large_paste_never_enters_the_field_and_is_quick(composer: Composer, text: str) -> None:
    handed: list[str] = []
    composer.large_text.connect(handed.append)
    mime = QMimeData()
    mime.setText(text)
    started = time.perf_counter()
    composer.field.insertFromMimeData(mime)
    QApplication.processEvents()
    assert time.perf_counter() - started < 0.1
    assert handed == [text]
    assert composer.text() == ""
    assert len(text.encode()) > PASTE_BYTES_MAX


def test_dropped_files_are_handed_out_as_paths(composer: Composer) -> None:
    handed: list[object] = []
    composer.files_dropped.connect(handed.append)
    mime = QMimeData()
    mime.setUrls([QUrl.fromLocalFile("/tmp/笔记 📒.txt")])
    composer.field.insertFromMimeData(mime)
    assert [str(path) for path in handed[0]] == ["/tmp/笔记 📒.txt"]  # type: ignore[attr-defined]
    assert composer.text() == ""


def test_up_recalls_only_in_an_empty_field(composer: Composer) -> None:
    wanted: list[bool] = []
    composer.recall_wanted.connect(lambda: wanted.append(True))
    press(composer, Qt.Key.Key_Up)
    assert wanted == [True]
    composer.show_text("text")
    press(composer, Qt.Key.Key_Up)
    assert wanted == [True]


def test_the_field_grows_with_its_text_to_its_share_of_the_window(composer: Composer) -> None:
    composer.window().resize(600, 500)
    small = composer.field.height()
    composer.show_text("line\n" * 4)
    assert small < composer.field.height() < 200
    composer.show_text("line\n" * 100)
    assert composer.field.height() <= 0.4 * composer.window().height() + 1
    composer.show_text("")
    assert composer.field.height() == small


def test_chips_can_be_removed(composer: Composer) -> None:
    first = Attachment(node_id=NodeId("a"), name="a.txt", size_bytes=10)
    second = Attachment(node_id=NodeId("b"), name="b.txt", size_bytes=2_000)
    composer.show_enclosures([first, second])
    composer._remove(first)
    assert composer.enclosures == [second]


def test_many_attachments_do_not_widen_the_window(composer: Composer) -> None:
    composer.show_enclosures([])
    narrow = composer.minimumSizeHint().width()
    name = "a very long name of a file " * 10
    composer.show_enclosures(
        [Attachment(node_id=NodeId(f"n{at}"), name=name, size_bytes=10) for at in range(30)]
    )
    assert composer.minimumSizeHint().width() <= narrow + 100
    QApplication.processEvents()
    chips = composer.findChildren(Chip)
    assert chips[0].width() < 400
    assert chips[0].toolTip() == name
    bar = composer.chips.horizontalScrollBar()
    assert bar.value() == bar.maximum() > 0
    last = chips[-1]
    assert last.mapTo(composer, last.rect().bottomRight()).x() <= composer.width()


def test_a_hint_goes_with_the_next_key(composer: Composer) -> None:
    composer.hint("composer.empty")
    assert composer.hint_text
    composer.field.insertPlainText("a")
    assert composer.hint_text == ""
