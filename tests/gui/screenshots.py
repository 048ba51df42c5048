"""Takes pictures of the window with the scripted assistant: `python -m tests.gui.screenshots FOLDER`.

Every scene in both themes and languages at the default and the least size. For eyes, not for comparison.
"""

from __future__ import annotations

import asyncio
import os
import sys
import tempfile
from pathlib import Path

os.environ.setdefault("QT_QPA_PLATFORM", "offscreen")

from PySide6.QtWidgets import QApplication

from growbox_app.api import EnginePhase, EngineStatus, Problem, ProblemCode
from memory.values import FatigueSnapshot, Fragment, LedgerSnapshot
from tests.fakes.assistant import START_MS, ScriptedAssistant
from tests.gui.conftest import Desk
from ui import event_loop
from ui.theme import theme

SIZES = ((1280, 800), (1024, 640))
ENGLISH = (
    "Which DB did we pick for the index, and how do I open it?",
    "**DuckDB** – you chose it on 3 Nov because the whole index fits in one file and scans columns fast.\n\n"
    "Open it read-only from the loader:\n\n"
    "```python\nimport duckdb\n\ndef open_index(path: str) -> duckdb.DuckDBPyConnection:\n"
    '    """Opens the index without taking the write lock."""\n'
    "    return duckdb.connect(path, read_only=True)  # one writer, many readers\n```\n\n"
    "Two things to keep in mind:\n\n1. `read_only=True` fails when the file is missing.\n2. Close the connection before the nightly rebuild.\n\n"
    "| store | size | scan |\n|---|--:|--:|\n| DuckDB | 48 MB | 0.21 s |\n| SQLite | 71 MB | 1.90 s |\n",
)
CHINESE = (
    "我们给索引选了哪个数据库？怎么打开？",
    "**DuckDB**：您在 11 月 3 日选定它，因为整个索引只有一个文件，列扫描也快。\n\n在加载器里以只读方式打开：\n\n"
    '```python\nimport duckdb\n\ndef open_index(path: str):\n    """只读打开索引，不占用写锁。"""\n'
    "    return duckdb.connect(path, read_only=True)\n```\n\n有两点需要注意：\n\n"
    "1. 文件不存在时 `read_only=True` 会失败。\n2. 夜间重建之前请关闭连接。\n\n"
    "| 存储 | 大小 | 扫描 |\n|---|--:|--:|\n| DuckDB | 48 MB | 0.21 秒 |\n| SQLite | 71 MB | 1.90 秒 |\n",
)


def fill(assistant: ScriptedAssistant, language: str) -> None:
    """A world worth looking at."""
    chinese = language == "zh"
    project = assistant.add_project("growbox", "/home/ada/growbox")
    assistant.add_project("thesis" if not chinese else "毕业论文", "/home/ada/thesis")
    assistant.memories = (
        assistant.used(
            "索引用 DuckDB：一个文件，列扫描快。"
            if chinese
            else "We pick DuckDB for the index: one file, fast column scans.",
            score=0.91,
        ),
        assistant.used(
            "加载器笔记：以只读方式打开。"
            if chinese
            else "Loader notes: open the index read-only, one writer.",
            score=0.66,
        ),
        assistant.used(
            "pytest 失败：文件被锁。"
            if chinese
            else "pytest failure: the index file was locked by the rebuild.",
            way="pointer",
            score=0.58,
        ),
    )
    assistant.add_conversation(
        "修复 CI" if chinese else "Fix CI",
        [("CI 为什么失败？", "缓存键变了。")]
        if chinese
        else [("Why does CI fail?", "The cache key changed.")],
        project,
    )
    question, answer = CHINESE if chinese else ENGLISH
    assistant.add_conversation(
        "索引数据库" if chinese else "Index database",
        [
            (
                "你好" if chinese else "Hi there",
                "您好！" if chinese else "Hello! What are we looking at today?",
            ),
            (question, answer),
        ],
        project,
    )
    assistant.add_conversation(
        "周末购物" if chinese else "Weekend list",
        [("牛奶、鸡蛋", "记下了。")] if chinese else [("Milk, eggs", "Noted.")],
    )
    fill_panels(assistant, question)


def fill_panels(assistant: ScriptedAssistant, question: str) -> None:
    """Numbers for the panels."""
    assistant.mind.fatigue_snapshot = FatigueSnapshot(
        total=0.41,
        miss=0.52,
        eviction=0.30,
        debt=0.36,
        accesses=200,
        history=tuple((at, 0.1 + 0.31 * (at / 40) + 0.05 * (at % 3)) for at in range(40)),
    )
    assistant.mind.ledger_snapshot = LedgerSnapshot(
        open=tuple(
            Fragment(
                entry_seq=400 - 40 * at,
                target_seq=120 - at,
                query=question,
                created_at_ms=START_MS,
                remaining=64 - 9 * at,
            )
            for at in range(3)
        ),
        cleared=9,
        nodes=0,
    )
    assistant.mind.pending = 12


async def scenes(folder: Path, theme_name: str, language: str, size: tuple[int, int]) -> None:
    """Every scene of one look."""
    assistant = ScriptedAssistant()
    fill(assistant, language)
    await assistant.change_setting("appearance.theme", theme_name)
    await assistant.change_setting("general.language", language)
    desk = Desk(Path(tempfile.mkdtemp()), assistant)
    window = desk.window
    window.resize(*size)
    name = f"{theme_name}-{language}-{size[0]}"

    def shoot(scene: str) -> None:
        window.grab().save(str(folder / f"{name}-{scene}.png"))

    await desk.open()
    shoot("empty")
    listed = await assistant.library.conversations()
    window.open_conversation(listed[1].id)
    await desk.settle()
    block = (await assistant.mind.queue(listed[1].id)).entries[0].block_id
    await assistant.mind.pin(listed[1].id, block, pinned=True)
    assistant.gate = asyncio.Event()
    assistant.answers.append((CHINESE if language == "zh" else ENGLISH)[1])
    desk.ask("怎么备份它？" if language == "zh" else "And how do I back it up?")
    await desk.until(
        lambda: window.flow.shown.running and bool(window.flow.shown.messages[-1].text)
    )
    desk.ask("然后呢？" if language == "zh" else "And restore it on another machine?")
    await asyncio.sleep(0.1)
    await window.panels.pull()
    shoot("streaming")
    assistant.gate.set()
    assistant.notices.append(Problem(code=ProblemCode.ENGINE_DIED, detail="signal 11"))
    await desk.settle()
    shoot("answered")
    view = window.conversation_panel.view
    last = view.view_of(len(view.transcript.messages) - 1)
    assert last is not None
    last.memories_button.setChecked(True)
    await asyncio.sleep(0.05)
    view.jump_to_newest()
    window.panels.docks["fatigue"].raise_()
    window.say_problem(
        Problem(code=ProblemCode.NO_NETWORK, fields={"host": "example.org"}, detail="refused")
    )
    await asyncio.sleep(0.05)
    await desk.settle()
    shoot("trace")
    await other_pages(folder, desk, name)
    await desk.close()


async def other_pages(folder: Path, desk: Desk, name: str) -> None:
    """First run, settings, source."""
    window, assistant = desk.window, desk.assistant
    window.conversation_panel.problem_bar.say(None)
    assistant.model_states["standard"] = "missing"
    assistant.selected = "standard"
    assistant.status = EngineStatus(phase=EnginePhase.STOPPED)
    window.bridge.status_changed.emit()
    await asyncio.sleep(0.01)
    await desk.settle()
    window.grab().save(str(folder / f"{name}-first-run.png"))
    window.open_settings()
    await asyncio.sleep(0.05)
    dialog = window._settings_dialog
    assert dialog is not None
    dialog.grab().save(str(folder / f"{name}-settings.png"))
    dialog.close()
    await shoot_tasks(folder, desk, name)
    memory = assistant.memories[0]
    window.panels.open_source(memory.node_id)
    await desk.settle()
    from ui.panels.source_dialog import SourceDialog

    source = window.findChildren(SourceDialog)[0]
    source.grab().save(str(folder / f"{name}-source.png"))
    await asyncio.sleep(0.05)


async def shoot_tasks(folder: Path, desk: Desk, name: str) -> None:
    """Background tasks in every state."""
    tasks, listed = desk.assistant.background_tasks, await desk.assistant.library.conversations()
    for at, command in enumerate(("pytest -x", "tail -f a.log", "make -j2 release", "npm run dev")):
        tasks.begin(command, listed[at % 2].id, began_at_ms=START_MS, seconds=40 * (at + 1))
    tasks.end(1, 1)
    tasks.stop(2)
    tasks.end(2, -15)
    tasks.stop(3)
    tasks.listen(4, 5173)
    tasks.say(4, "> vite\n\n  ready in 312 ms", left_out=82_000, tail="hmr update /src/页面.tsx")
    desk.window.run_command("tasks")
    await desk.settle()
    from ui.panels.tasks_dialog import TasksDialog

    (dialog,) = desk.window.findChildren(TasksDialog)
    desk.window.grab().save(str(folder / f"{name}-tasks-foot.png"))
    dialog.grab().save(str(folder / f"{name}-tasks.png"))
    dialog.close()


def main() -> None:
    """All looks."""
    folder = Path(sys.argv[1])
    folder.mkdir(parents=True, exist_ok=True)
    wanted = sys.argv[2:]
    application = QApplication([])
    application.setQuitOnLastWindowClosed(False)
    application.setStyle("Fusion")
    theme.use("light")

    async def everything() -> None:
        for theme_name in ("light", "dark"):
            for language in ("en", "zh"):
                for size in SIZES:
                    name = f"{theme_name}-{language}-{size[0]}"
                    if not wanted or name in wanted:
                        await scenes(folder, theme_name, language, size)

    event_loop.run(application, everything())


if __name__ == "__main__":
    main()
