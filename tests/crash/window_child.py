"""A window process that ends as it is told: `python -m tests.crash.window_child WHAT DATA_FOLDER`.

`read` prints what the window says of earlier runs, then closes it. `error` raises in a slot, `segfault` dies in native code, `wait` does
nothing. The last two and `error` print `ready` when the window is up. The assistant is scripted; everything else is the program.
"""

from __future__ import annotations

import ctypes
import json
import sys
from collections.abc import Callable
from pathlib import Path

from PySide6.QtCore import QTimer
from PySide6.QtWidgets import QApplication

from tests.fakes.assistant import ScriptedAssistant
from ui import application
from ui.main_window import MainWindow
from ui.panels.crash_notice import CrashNotice

LOOK_MS = 10


def main(arguments: list[str]) -> int:
    what, folder = arguments
    actions: dict[str, Callable[[MainWindow], None]] = {
        "read": read,
        "error": fail,
        "segfault": die,
        "wait": lambda _window: say("ready"),
    }
    timer = QTimer()
    said: list[MainWindow] = []
    tell = application.Life._tell_past_crash

    def tell_and_note(life: application.Life, window: MainWindow) -> None:
        tell(life, window)
        said.append(window)

    application.Life._tell_past_crash = tell_and_note  # type: ignore[method-assign]

    def look() -> None:
        for window in QApplication.topLevelWidgets():
            if isinstance(window, MainWindow) and window in said and settled(window):
                timer.stop()
                actions[what](window)

    def assistant() -> ScriptedAssistant:
        timer.timeout.connect(look)
        timer.start(LOOK_MS)
        return ScriptedAssistant()

    return application.run(Path(folder), assistant)


def settled(window: MainWindow) -> bool:
    """Shown and filled."""
    return (
        window.isVisible()
        and window.conversation_panel.input.isEnabled()
        and window.sidebar.isEnabled()
    )


def say(word: object) -> None:
    print(json.dumps(word), flush=True)


def read(window: MainWindow) -> None:
    notice = window.findChild(CrashNotice)
    say(notice._report() if notice is not None else None)
    window.close()


def fail(_window: MainWindow) -> None:
    QTimer.singleShot(50, lambda: say("ready"))
    raise ValueError("my secret words")


def die(_window: MainWindow) -> None:
    say("ready")
    ctypes.string_at(0)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
