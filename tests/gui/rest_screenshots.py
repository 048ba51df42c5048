"""Takes pictures of the meter, the ledger and the dream journal: `python -m tests.gui.rest_screenshots FOLDER`.

Both themes and languages at the default size and at the smallest usable one. For eyes, not for comparison.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from dataclasses import replace
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from growbox_app.rest.schedule import RestPhase, RestReason, RestStatus
from memory.rest_values import JournalKind
from memory.values import DebtState
from tests.fakes.assistant import START_MS, ScriptedAssistant
from tests.gui.conftest import Desk
from tests.gui.rest_past import MINUTE_MS, TRUSTED, entries, experiences, proposals
from tests.gui.screenshots import fill
from ui import event_loop
from ui.theme import theme

SIZES = ((1280, 800), (1024, 640), (1800, 1000))
COMING = RestStatus(
    coming=RestPhase.SLEEPING, reason=RestReason.DEBTS, in_s=221, debts=12, fatigue=0.41, news=3
)
GOAL = {"en": "What do we still not know about the index?", "zh": "关于索引我们还有什么不知道？"}


async def made(language: str, theme_name: str) -> ScriptedAssistant:
    """A night's work."""
    assistant = ScriptedAssistant()
    fill(assistant, language)
    ids = [memory.node_id for memory in assistant.memories]
    assistant.mind.skills = TRUSTED
    assistant.rest.now = COMING
    assistant.rest.entries = entries(ids, language, START_MS + 60 * MINUTE_MS)
    assistant.rest.known_proposals = list(proposals(language))
    assistant.rest.known_experiences = experiences(ids, language)
    await assistant.rest.add_goal(GOAL[language])
    await assistant.change_setting("appearance.theme", theme_name)
    await assistant.change_setting("general.language", language)
    return assistant


async def scenes(folder: Path, theme_name: str, language: str, size: tuple[int, int]) -> None:
    """One look."""
    assistant = await made(language, theme_name)
    desk = Desk(Path(tempfile.mkdtemp()), assistant)
    window, rest = desk.window, assistant.rest
    window.resize(*size)
    await desk.open()
    window.open_conversation((await assistant.library.conversations())[1].id)

    async def shoot(scene: str) -> None:
        await asyncio.sleep(0.1)
        await desk.settle()
        name = f"{theme_name}-{language}-{size[0]}-{scene}.png"
        window.grab().save(str(folder / name))

    window.panels.show_panel("fatigue")
    await shoot("coming")
    dreaming = replace(COMING, phase=RestPhase.DREAMING, judged=12, discoveries=2, remaining=48)
    rest.tell(replace(dreaming, asked=True))
    await shoot("dreaming")
    window.panels.show_panel("ledger")
    await shoot("ledger-dreaming")
    rest.tell(COMING)
    await shoot("ledger")
    owed, *others = assistant.mind.ledger_snapshot.open
    aside = tuple(replace(d, remaining=3, state=DebtState.UNSURE) for d in others)
    assistant.mind.ledger_snapshot = replace(
        assistant.mind.ledger_snapshot, open=(owed,), unclear=aside
    )
    await window.panels.pull()
    ledger = window.panels.ledger
    ledger.table.setCurrentItem(ledger.table.topLevelItem(1))
    await shoot("ledger-unclear")
    read = rest.entries[0]
    told = replace(read, id=99, kind=JournalKind.PUT_ASIDE, yes=(), no=(), no_count=0)
    rest.entries.append(replace(told, unclear=read.no, unclear_count=4))
    window.run_command("journal")
    await desk.settle()
    page = window.journal.page
    page.changes.list.setCurrentIndex(page.changes.list.journal.index(1))
    await shoot("journal")
    page.changes.list.setCurrentIndex(page.changes.list.journal.index(0))
    await shoot("journal-unclear")
    page.tabs.setCurrentWidget(page.skills)
    page.skills.cards[0].why_button.setChecked(True)
    await shoot("skills")
    page.tabs.setCurrentWidget(page.goals)
    await shoot("goals")
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
                for size in SIZES:
                    await scenes(folder, theme_name, language, size)

    event_loop.run(application, everything())


if __name__ == "__main__":
    main()
