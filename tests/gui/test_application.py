"""The life of the process: start, refusal, second instance, closing, crashes."""

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path

import pytest
from PySide6.QtWidgets import QApplication, QMessageBox

from growbox_app.api import Assistant, ModelStatus, Problem, ProblemCode
from growbox_app.assistant import GrowBox
from growbox_app.clock import SystemClock
from tests.fakes.assistant import ScriptedAssistant
from ui import application
from ui.application import Life
from ui.crash import LOG_BYTES_MAX, CrashLog
from ui.main_window import MainWindow
from ui.window_state import WindowState

TIMEOUT_S = 20


def life(tmp_path: Path, assistant: Assistant) -> Life:
    return Life(tmp_path, lambda: assistant, CrashLog(tmp_path / "logs", SystemClock()))


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not condition():
            await asyncio.sleep(0.002)


async def window_of(running: Life) -> MainWindow:
    def ready() -> bool:
        window = running.window
        return window is not None and window.isVisible() and window.conversation_panel.isEnabled()

    await until(ready)
    assert running.window is not None
    return running.window


async def closed_soon(running: Life) -> None:
    (await window_of(running)).close()


def boxes() -> list[QMessageBox]:
    shown = (widget for widget in QApplication.topLevelWidgets() if widget.isVisible())
    return [widget for widget in shown if isinstance(widget, QMessageBox)]


async def read_and_close_box() -> str:
    await until(lambda: bool(boxes()))
    text = boxes()[0].text()
    boxes()[0].close()
    return text


async def test_the_window_opens_and_closing_ends_everything_in_order(
    loop: asyncio.AbstractEventLoop, tmp_path: Path, assistant: ScriptedAssistant
) -> None:
    running = life(tmp_path, assistant)
    code, _closed = await asyncio.gather(running.run(), closed_soon(running))
    assert code == 0
    assert assistant.started
    assert assistant.shutdowns == 1
    assert assistant.listeners == 0
    geometry, docks = WindowState(tmp_path).geometry()
    assert not geometry.isEmpty()
    assert not docks.isEmpty()


async def test_closing_while_an_answer_is_written_stops_it_first(
    loop: asyncio.AbstractEventLoop, tmp_path: Path, assistant: ScriptedAssistant
) -> None:
    running = life(tmp_path, assistant)
    assistant.gate = asyncio.Event()

    async def ask_and_close() -> None:
        window = await window_of(running)
        window.conversation_panel.composer.show_text("a question that is long")
        window.conversation_panel.input.submit()
        await until(lambda: window.flow.shown.running)
        window.close()

    code, _closed = await asyncio.gather(running.run(), ask_and_close())
    assert code == 0
    assert assistant.stops >= 1


async def test_a_window_that_cannot_be_filled_still_opens_and_says_so(
    loop: asyncio.AbstractEventLoop,
    tmp_path: Path,
    assistant: ScriptedAssistant,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def broken() -> tuple[ModelStatus, ...]:
        raise ZeroDivisionError("planted")

    monkeypatch.setattr(assistant, "models", broken)
    running = life(tmp_path, assistant)

    async def read_and_close() -> str:
        window = await window_of(running)
        while "crash.log" not in (said := window.status_line.text()):
            await asyncio.sleep(0)
        window.close()
        return said

    code, said = await asyncio.gather(running.run(), read_and_close())
    assert code == 0
    assert "crash.log" in said
    assert assistant.shutdowns == 1
    assert "planted" in capsys.readouterr().err


async def test_a_second_instance_raises_the_first_and_shows_no_window(
    loop: asyncio.AbstractEventLoop,
    tmp_path: Path,
    assistant: ScriptedAssistant,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[Path] = []

    def ask_to_raise(path: Path) -> bool:
        asked.append(path)
        return True

    shown: list[bool] = []
    monkeypatch.setattr(MainWindow, "show", lambda _window: shown.append(True))
    monkeypatch.setattr(application, "ask_to_raise", ask_to_raise)
    assistant.fail_start = Problem(code=ProblemCode.DATA_LOCKED, fields={"owner": "pid 1"})
    running = life(tmp_path, assistant)
    assert await running.run() == 0
    assert asked == [tmp_path]
    assert shown == []
    assert not (tmp_path / "window.ini").exists()


@pytest.mark.parametrize(
    "code", [ProblemCode.DATA_LOCKED, ProblemCode.DATA_TOO_NEW, ProblemCode.DATA_CORRUPT]
)
async def test_a_start_that_fails_says_why_in_a_sentence(
    loop: asyncio.AbstractEventLoop,
    tmp_path: Path,
    assistant: ScriptedAssistant,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    code: ProblemCode,
) -> None:
    monkeypatch.setattr(application, "ask_to_raise", lambda _path: False)
    assistant.fail_start = Problem(
        code=code, fields={"owner": "pid 1", "found": "9", "known": "1", "path": "/d"}
    )

    ended, said = await asyncio.gather(life(tmp_path, assistant).run(), read_and_close_box())
    assert ended == 1
    assert said in capsys.readouterr().err
    assert len(said) > 40
    assert assistant.shutdowns == 1


@pytest.mark.parametrize(
    ("language", "words"),
    [
        ("en", "written by a newer GrowBox (version 99;"),
        ("zh", "由更新版本的 GrowBox 写成（版本 99"),
    ],
)
async def test_real_data_of_a_newer_program_is_refused_in_a_sentence(
    loop: asyncio.AbstractEventLoop,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    language: str,
    words: str,
) -> None:
    raw = sqlite3.connect(tmp_path / "timeline.db")
    raw.execute("PRAGMA user_version = 99")
    raw.close()
    before = (tmp_path / "timeline.db").read_bytes()
    settings = json.dumps({"general.language": language})
    (tmp_path / "settings.json").write_text(settings, encoding="utf-8")
    log = CrashLog(tmp_path / "logs", SystemClock())
    running = Life(tmp_path, lambda: GrowBox(data_path=tmp_path, models_path=tmp_path), log)
    ended, said = await asyncio.gather(running.run(), read_and_close_box())
    assert ended == 1
    assert words in said
    assert said in capsys.readouterr().err
    assert (tmp_path / "timeline.db").read_bytes() == before


async def test_an_unwritable_folder_is_said(
    loop: asyncio.AbstractEventLoop, tmp_path: Path
) -> None:
    def refuse() -> Assistant:
        raise PermissionError(13, "denied")

    running = Life(tmp_path, refuse, CrashLog(tmp_path / "logs", SystemClock()))

    ended, said = await asyncio.gather(running.run(), read_and_close_box())
    assert ended == 1
    assert str(tmp_path) in said


def test_a_crash_is_written_down_and_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = CrashLog(tmp_path / "logs", SystemClock())
    said: list[Path] = []
    log.tell(lambda path, _text: said.append(path))
    try:
        raise ValueError("planted")
    except ValueError as error:
        log.report(error)
    assert said == [log.path]
    assert "ValueError: planted" in log.path.read_text(encoding="utf-8")
    assert "ValueError: planted" in capsys.readouterr().err


def test_the_crash_log_is_bounded(tmp_path: Path) -> None:
    log = CrashLog(tmp_path, SystemClock())
    log.path.write_text("x" * (LOG_BYTES_MAX + 10), encoding="utf-8")
    log.report(ValueError("newest"))
    assert log.path.stat().st_size < LOG_BYTES_MAX
    assert "newest" in log.path.read_text(encoding="utf-8")


def test_a_broken_state_file_costs_only_the_layout(tmp_path: Path) -> None:
    (tmp_path / "window.ini").write_bytes(b"\x00\xff[[[ nonsense")
    state = WindowState(tmp_path)
    assert state.appearance() == ("system", "system")
    assert state.draft("c") == ("", [])
    assert state.geometry()[0].isEmpty()
