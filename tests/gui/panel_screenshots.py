"""Takes pictures of the window with 0, 3 and 60 resident blocks, and of the panels of the past: `python -m tests.gui.panel_screenshots FOLDER`.

Both themes and languages at the default size; with `QT_SCALE_FACTOR=2` the same at 200 %. For eyes, not for comparison.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtCore import Qt
from PySide6.QtWidgets import QApplication

from growbox_app.api import DeepSearchState
from memory.values import NodeId
from tests.fakes.assistant import START_MS, ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.memory_blocks import queue_of, region_of, shown_blocks
from tests.gui.past import moment, neighbourhood, search, stain_map
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
    listed = await assistant.library.conversations()
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
    await past_scenes(folder, desk, f"{theme_name}-{language}", language)
    await desk.close()


async def past_scenes(folder: Path, desk: Desk, name: str, language: str) -> None:
    """Stain map, pointer graph, ledger, trace, and the line of the search in each of its states."""
    window, assistant = desk.window, desk.assistant
    panels, view = window.panels, window.conversation_panel.view
    middle = assistant.memories[0].node_id
    others = tuple(NodeId(f"n{at}") for at in range(2, 7))
    assistant.mind.stain_snapshot = stain_map()
    for node_id in (middle, *others):
        assistant.mind.neighbourhoods[node_id] = neighbourhood(node_id, others, language)
    answer = window.flow.shown.messages[-1]
    panels._dates.update({seq: moment(seq) for seq in range(1_001)})
    panels.show_pointers(middle)
    panels.docks["stains"].raise_()
    await asyncio.sleep(0.05)
    await desk.settle()
    panels.pointers.list.setCurrentItem(panels.pointers.list.topLevelItem(2))
    panels.stains.band._move_mark(590)
    found = assistant.memories[1:2]
    for state in DeepSearchState:
        memories = found if state is DeepSearchState.FOUND else ()
        assistant.tell_search(search(answer.node_id, state, memories))
        await desk.settle()
        await asyncio.sleep(0.05)
        window.grab().save(str(folder / f"{name}-search-{state}.png"))
    shown = view.view_of(len(view.transcript.messages) - 1)
    assert shown is not None
    shown.memories_button.setChecked(True)
    shown.cite_button.click()
    panels.docks["ledger"].raise_()
    panels.ledger.table.setCurrentItem(panels.ledger.table.topLevelItem(1))
    await asyncio.sleep(0.05)
    await desk.settle()
    shown.setFocus()
    view.jump_to_newest()
    window.grab().save(str(folder / f"{name}-trace.png"))
    window.resizeDocks([panels.docks["pointers"]], [620], Qt.Orientation.Horizontal)
    await asyncio.sleep(0.1)
    window.grab().save(str(folder / f"{name}-wide.png"))


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
