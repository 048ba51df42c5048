"""Prose and code: nothing is interpreted or fetched, a selection survives streaming."""

from pathlib import Path

import pytest
from PySide6.QtCore import QUrl
from PySide6.QtGui import QGuiApplication, QTextCursor, QTextDocument
from pytestqt.qtbot import QtBot

from ui.panels import prose
from ui.panels.code_block import CodeBlock
from ui.panels.prose import ProseView
from ui.theme import theme
from ui.view_models.markdown import Code, Paragraph, Span, parse


@pytest.fixture
def view(qtbot: QtBot) -> ProseView:
    theme.use("light")
    made = ProseView()
    qtbot.addWidget(made)
    made.resize(500, 200)
    return made


def select(view: ProseView, start: int, end: int) -> None:
    cursor = view.textCursor()
    cursor.setPosition(start)
    cursor.setPosition(end, QTextCursor.MoveMode.KeepAnchor)
    view.setTextCursor(cursor)


def test_blocks_become_text_without_their_marks(view: ProseView) -> None:
    view.add(
        *parse(
            "# Head\n\n"
            + "Some **bold** and `code`. " * 9
            + "\n\n- item\n\n> quote\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\nend"
        )
    )
    text = view.toPlainText()
    assert text.split("\n")[0] == "Head"
    assert "Some bold and code." in text
    assert "•\titem" in text
    assert "*" not in text
    assert text.rstrip().endswith("end")
    assert view.height_for(400) > view.height_for(2_000)


def test_html_is_shown_and_no_resource_is_loaded(view: ProseView, tmp_path: Path) -> None:
    picture = tmp_path / "x.png"
    picture.write_bytes(b"\x89PNG")
    view.add(*parse(f'<img src="file://{picture}"> <b>not bold</b>'))
    assert '<img src="file://' in view.toPlainText()
    for kind in (QTextDocument.ResourceType.ImageResource, QTextDocument.ResourceType.HtmlResource):
        assert view.loadResource(kind, QUrl.fromLocalFile(str(picture))) is None
    assert "<img" not in view.toHtml().lower().split("<body")[1]


def test_only_web_and_mail_links_open_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(
        prose.QDesktopServices, "openUrl", lambda url: opened.append(url.toString())
    )
    for address in (
        "https://e.org/",
        "mailto:a@e.org",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "smb://host/x",
    ):
        prose.open_outside(QUrl(address))
    assert opened == ["https://e.org/", "mailto:a@e.org"]


def test_the_tail_grows_without_touching_what_stands(view: ProseView) -> None:
    view.set_tail("Hel")
    view.set_tail("Hello wor")
    assert view.toPlainText() == "Hello wor"
    view.add(Paragraph(spans=(Span(text="Hello world"),)))
    view.set_tail("next")
    assert view.toPlainText() == "Hello world\nnext"
    view.set_tail("")
    assert view.toPlainText() == "Hello world"


def test_a_selection_survives_streaming(view: ProseView) -> None:
    view.add(Paragraph(spans=(Span(text="finished text"),)))
    view.set_tail("grow")
    select(view, 0, 8)
    for size in range(5, 60):
        view.set_tail("growing and growing and growing and growing and growing!!!"[:size])
    view.add(Paragraph(spans=(Span(text="growing"),)))
    assert view.textCursor().selectedText() == "finished"


def test_a_selection_at_the_end_is_not_stretched(view: ProseView) -> None:
    view.set_tail("abc")
    select(view, 0, 3)
    view.set_tail("abcdef")
    assert view.textCursor().selectedText() == "abc"


def test_a_change_of_theme_keeps_text_and_recolours(view: ProseView) -> None:
    view.add(Paragraph(spans=(Span(text="x", link="https://e.org"),)))
    view.set_tail("tail")
    theme.use("dark")
    view.restyle()
    assert view.toPlainText() == "x\ntail"
    assert theme.hex("link").lower() in view.toHtml().lower()


@pytest.fixture
def code(qtbot: QtBot) -> CodeBlock:
    theme.use("light")
    made = CodeBlock(Code(language="python", text="x = 1", closed=False))
    qtbot.addWidget(made)
    return made


def test_code_grows_plain_and_is_coloured_when_closed(code: CodeBlock, qtbot: QtBot) -> None:
    code.show_block(Code(language="python", text="x = 1\ny", closed=False))
    assert theme.hex("code_number").lower() not in code.text.toHtml().lower()
    code.show_block(Code(language="python", text="x = 1\ny = 2"))
    qtbot.waitUntil(lambda: theme.hex("code_number").lower() in code.text.toHtml().lower())
    assert code.text.toPlainText() == "x = 1\ny = 2"


def test_code_copies_wraps_and_saves(code: CodeBlock, tmp_path: Path) -> None:
    code.show_block(Code(language="python", text="long = " + "1 + " * 200))
    code.copy_button.click()
    assert QGuiApplication.clipboard().text() == code.block.text
    one_line = code.height_for(300)
    code.wrap_button.click()
    assert code.height_for(300) > one_line
    code.save_to(tmp_path / "笔记.py")
    assert (tmp_path / "笔记.py").read_text(encoding="utf-8") == code.block.text + "\n"
    code.save_to(tmp_path / "笔记.py" / "impossible.py")
    assert code._language.text().startswith("Not saved")
