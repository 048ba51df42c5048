"""The About box and the notice of an unexpected end: by eye, by keyboard, in both languages."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtCore import Qt
from PySide6.QtGui import QDesktopServices, QGuiApplication
from PySide6.QtTest import QTest

from growbox_app import notices
from growbox_app.text import tr
from growbox_app.version import version
from tests.gui.conftest import Desk
from ui.crash import places
from ui.panels.about import AboutDialog
from ui.panels.crash_notice import CrashNotice, CrashReport


def clipboard() -> str:
    return QGuiApplication.clipboard().text()


async def about(desk: Desk) -> AboutDialog:
    await desk.open()
    desk.window.run_command("about")
    await desk.settle()
    dialog = desk.window.findChild(AboutDialog)
    assert dialog is not None
    return dialog


async def test_about_lists_every_part_and_shows_the_text_of_one(desk: Desk) -> None:
    dialog = await about(desk)
    everything = notices.load()
    assert dialog.parts.count() == len(everything)
    assert version() in dialog.parts.item(0).text()
    dialog.activateWindow()
    dialog.parts.setFocus()
    for row, notice in enumerate(everything[:12]):
        assert dialog.parts.currentRow() == row
        assert dialog.parts.item(row).text().startswith(notice.name)
        assert notice.text[:200] in dialog.text.toPlainText()
        QTest.keyClick(dialog.parts, Qt.Key.Key_Down)
    dialog.close()


async def test_about_copies_and_opens(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[str] = []
    monkeypatch.setattr(QDesktopServices, "openUrl", lambda url: opened.append(url.toLocalFile()))
    dialog = await about(desk)
    dialog.copy_path_button.click()
    assert clipboard() == str(desk.state.data_path)
    dialog.open_path_button.click()
    assert opened == [str(desk.state.data_path)]
    dialog.copy_facts_button.click()
    facts = clipboard()
    for fact in (f"GrowBox {version()}", "Python 3.", "Qt 6.", "CPU variant"):
        assert fact in facts
    assert str(Path.home()) not in facts
    dialog.close()


async def test_tab_reaches_every_control_and_escape_closes(desk: Desk) -> None:
    dialog = await about(desk)
    reached = set()
    widget = dialog.parts
    for _step in range(40):
        widget = widget.nextInFocusChain()
        if widget.focusPolicy() & Qt.FocusPolicy.TabFocus:
            reached.add(widget)
    controls = {
        dialog.parts,
        dialog.text,
        dialog.copy_path_button,
        dialog.open_path_button,
        dialog.copy_facts_button,
    }
    assert controls <= reached
    assert dialog.text.tabChangesFocus()
    QTest.keyClick(dialog, Qt.Key.Key_Escape)
    assert not dialog.isVisible()


async def test_about_closed_while_the_list_is_read_costs_nothing(desk: Desk) -> None:
    await desk.open()
    desk.window.run_command("about")
    dialog = desk.window.findChild(AboutDialog)
    assert dialog is not None
    dialog.close()
    await desk.settle()  # a failure of the task would fail the test


async def test_about_speaks_both_languages(desk: Desk) -> None:
    dialog = await about(desk)
    assert dialog.windowTitle() == "About GrowBox"
    desk.window.choose("general.language", "zh")
    await desk.settle()
    assert dialog.windowTitle() == "关于 GrowBox"
    assert dialog.copy_facts_button.text() == tr("about.copy_facts")
    assert re.search("[一-鿿]", dialog.parts.accessibleName())
    dialog.close()


async def test_an_unexpected_end_is_said_quietly_and_can_be_copied(desk: Desk) -> None:
    await desk.open()
    desk.window.tell_past_crash("Fatal Python error: Segmentation fault")
    notice = desk.window.findChild(CrashNotice)
    assert notice is not None
    assert notice.isVisible()
    assert not notice.isAncestorOf(desk.window.focusWidget())
    notice.copy_button.click()
    assert "Segmentation fault" in clipboard()
    assert f"GrowBox {version()}" in clipboard()
    notice.show_button.click()
    report = desk.window.findChild(CrashReport)
    assert report is not None
    assert not report.isModal()
    assert report.text.toPlainText().strip() == clipboard().strip()
    desk.window.choose("general.language", "zh")
    await desk.settle()
    assert report.windowTitle() == "崩溃报告"
    assert notice.show_button.text() == "查看报告"
    report.close()
    notice.dismiss_button.click()
    assert not notice.isVisible()


def raised(act: Callable[[], object]) -> BaseException:
    try:
        act()
    except (ValueError, KeyError) as error:
        return error
    raise AssertionError("nothing was raised")


def test_places_name_types_and_lines_and_no_message() -> None:
    def chained() -> None:
        try:
            raise KeyError("what the user wrote")
        except KeyError as error:
            raise ValueError(f"because of {error}") from error

    text = places(raised(chained))
    assert "builtins.ValueError" in text
    assert "builtins.KeyError" in text
    assert "test_about.py" in text
    assert "because of 'what" not in text
    looped = ValueError("a")
    looped.__cause__ = looped
    assert places(looped) == "builtins.ValueError"


def test_places_do_not_name_the_users_home(monkeypatch: pytest.MonkeyPatch) -> None:
    home = Path(__file__).parents[2]
    monkeypatch.setattr(Path, "home", lambda: home)
    assert str(home) not in places(raised(lambda: int("x")))
    assert "~" in places(raised(lambda: int("x")))
