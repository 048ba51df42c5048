"""Drives the real window as a person would: `python -m tests.e2e.window_driver SCRIPT [FOLDER]`, a child process of the tests.

Each line of standard output is a JSON object `{"step": …}`. Scripts: `tell` (type a fact, stream, stop a long answer, quit),
`wait` (until ended), `recall` (ask in a new conversation), `talk` and `talk_real` (turns for ever, to be killed; `talk` on a scripted engine).
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

SECONDS = 180.0


def main(arguments: list[str], driver_type: type[Driver] | None = None) -> int:
    """Runs one script in a real window."""
    from growbox_app.clock import SystemClock
    from growbox_app.paths import data_path
    from ui import application, event_loop
    from ui.crash import CrashLog

    app = application.make_application(["growbox"])
    crash_log = CrashLog(data_path() / "logs", SystemClock())
    crash_log.install()
    life = application.Life(
        data_path(), lambda: _assistant(scripted=arguments[0] == "talk"), crash_log
    )
    folder = Path(arguments[1]) if len(arguments) > 1 else None
    return event_loop.run(app, _both(life, (driver_type or Driver)(life, folder), arguments[0]))


def _assistant(*, scripted: bool) -> object:
    from growbox_app.assistant import GrowBox, Options
    from growbox_app.paths import data_path, models_path
    from tests.fakes import scripted_engine

    options = (
        Options(engine_target=scripted_engine.run, scripted_engine=True) if scripted else Options()
    )
    return GrowBox(data_path=data_path(), models_path=models_path(), options=options)


async def _both(life: object, driver: Driver, script: str) -> int:
    running = asyncio.get_running_loop().create_task(life.run())  # type: ignore[attr-defined]
    try:
        async with asyncio.timeout(SECONDS if not script.startswith("talk") else None):
            await getattr(driver, script)()
    except TimeoutError:
        say("timeout", text=driver.text)
        os._exit(3)
    driver.window.close()
    return await running


def say(step: str, **facts: object) -> None:
    """One line of the report."""
    print(json.dumps({"step": step} | facts, ensure_ascii=False), flush=True)


class Driver:
    """Hands and eyes."""

    def __init__(self, life: object, folder: Path | None) -> None:
        self._life = life
        self._folder = folder

    @property
    def window(self):
        return self._life.window

    @property
    def panel(self):
        return self.window.conversation_panel

    @property
    def text(self) -> str:
        return self.panel.transcript_text() if self.window else ""

    async def tell(self) -> None:
        await self._ready()
        await self._ask("我最喜欢的数据库是 DuckDB，请记住")
        self._shoot("told")
        self.window.new_conversation()
        await asyncio.sleep(0.2)
        self._type("Write the numbers from 1 to 400, one per line.")
        await self._until(lambda: len(self.text) > 140)
        self._shoot("streaming")
        say("streaming", stop_visible=self.panel.stop_button.isVisible())
        self.panel.stop_button.click()
        await self._until(lambda: not self.window.flow.shown.running)
        say("stopped", text=self.text)

    async def wait(self) -> None:
        await self._ready()
        await self._until(lambda: self._life._closing.is_set())

    async def recall(self) -> None:
        await self._ready()
        self.window.new_conversation()
        await asyncio.sleep(0.2)
        await self._ask("我喜欢哪个数据库？")
        await asyncio.sleep(0.3)
        self._shoot("recalled")
        message = self.window.flow.shown.messages[-1]
        memories = [[m.way.value, m.excerpt] for m in message.memories]
        say("recalled", text=self.text, answer=message.text, memories=memories)

    async def talk(self) -> None:
        await self._talk("slow say:6 message number ")

    async def talk_real(self) -> None:
        await self._talk("Repeat the number ")

    async def _talk(self, prefix: str) -> None:
        await self._ready()
        say("ready", pid=os.getpid())
        number = 0
        while True:
            number += 1
            await self._ask(f"{prefix}{number}")
            ids = [str(message.node_id) for message in self.window.flow.shown.messages]
            say("acknowledged", number=number, count=len(ids))

    async def _ready(self) -> None:
        await self._until(lambda: self.window is not None and self.window.isVisible())
        say("visible")
        await self._until(lambda: self._phase() in {"ready", "failed"})
        say("engine", phase=self._phase())

    def _phase(self) -> str:
        return str(self.window._assistant.engine_status().phase.value)

    async def _ask(self, text: str) -> None:
        before = len(self.window.flow.shown.messages)
        self._type(text)
        await self._until(lambda: len(self.window.flow.shown.messages) >= before + 2)
        await self._until(lambda: not self.window.flow.shown.running)

    def _type(self, text: str) -> None:
        """Letter by letter, then Enter, through Qt's own events."""
        from PySide6.QtCore import Qt
        from PySide6.QtTest import QTest

        field = self.panel.input
        field.setFocus()
        if text.isascii():
            QTest.keyClicks(field, text)
        else:
            field.insertPlainText(text)
        QTest.keyClick(field, Qt.Key.Key_Return)

    def _shoot(self, name: str) -> None:
        if self._folder is not None:
            self.window.grab().save(str(self._folder / f"{name}.png"))

    async def _until(self, condition: Callable[[], bool]) -> None:
        while not condition():
            await asyncio.sleep(0.02)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
