"""Takes pictures of the window with 0, 3 and 60 resident blocks: `python -m tests.gui.panel_screenshots FOLDER`.

Both themes and languages at the default size; with `QT_SCALE_FACTOR=2` the same at 200 %. For eyes, not for comparison.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from tests.fakes.assistant import START_MS, ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.memory_blocks import queue_of, region_of, shown_blocks
from tests.gui.screenshots import fill
from ui import event_loop
from ui.theme import theme


async def scenes(folder: Path, theme_name: str, language: str) -> None:
    """One look."""
    assistant = ScriptedAssistant()
    fill(assistant, language)
    await assistant.change_setting("appearance.theme", theme_name)
    await assistant.change_setting("general.language", language)
    desk = Desk(Path(tempfile.mkdtemp()), assistant)
    window = desk.window
    window.resize(1280, 800)
    await desk.open()
    listed = await assistant.conversations()
    window.open_conversation(listed[1].id)
    await desk.settle()
    desk.ask("怎么备份它？" if language == "zh" else "And how do I back it up?")
    await desk.settle()
    for count in (0, 3, 60):
        blocks = shown_blocks(count, language)
        now_ms = START_MS + 3_600_000 * 3
        window.panels.region.show_snapshot(region_of(blocks), now_ms)
        window.panels.queue.show_snapshot(queue_of(blocks), now_ms)
        if blocks:
            window.panels.queue.list.setCurrentIndex(window.panels.queue.model.index(1))
        await asyncio.sleep(0.2)
        window.grab().save(str(folder / f"{theme_name}-{language}-{count}.png"))
    await desk.close()


def main() -> None:
    """All looks."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    application = QApplication([])
    application.setQuitOnLastWindowClosed(False)
    application.setStyle("Fusion")
    theme.use("light")

    async def everything() -> None:
        for theme_name in ("light", "dark"):
            for language in ("en", "zh"):
                await scenes(folder, theme_name, language)

    event_loop.run(application, everything())


if __name__ == "__main__":
    main()
