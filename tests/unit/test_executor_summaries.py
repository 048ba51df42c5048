"""The line of a tool card is the user's: in his language, whatever came of the call. The text that the model gets never changes."""

from __future__ import annotations

import ast
import asyncio
import re
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest

from growbox_app.executors.base import CallContext, Executor, ExecutorResult
from growbox_app.executors.confinement import Sandbox
from growbox_app.executors.git_status import GitStatus
from growbox_app.executors.memory_get import MemoryGet, handle
from growbox_app.executors.memory_search import MemorySearch
from growbox_app.executors.project_tools import project_tools
from growbox_app.executors.registry import Registry
from growbox_app.executors.shell import Shell
from growbox_app.executors.task_board import TaskBoard
from growbox_app.executors.tool_search import ToolSearch, by_words
from growbox_app.executors.web_fetch import WebFetch
from growbox_app.memory_service import MemoryService
from growbox_app.text import tr
from memory.requests import NeedEmbeddings
from tests.conftest import ROOT
from tests.fakes.memory_world import NO_HOST, MemoryWorld
from tests.unit.executor_world import called, context_of

Row: TypeAlias = tuple[str, dict[str, str], str]

FILES = {
    "a.txt": "x\ny\nx\n",
    "b.py": "def f():\n    return 1\n\n\ndef g():\n    return 2\n",
    "empty.txt": "",
    "sub/c.txt": "c\n",
}
TOOLS_FOUND = ("code_outline",)
WRONG = "参数缺失或有误"
ROWS: Sequence[Row] = (
    ("file_read", {"path": "b.py"}, "b.py · 共 6 行"),
    ("file_read", {"path": "b.py", "first": "2", "last": "3"}, "b.py · 第 2–3 行，共 6 行"),
    ("file_read", {"path": "b.py", "first": "2", "last": "2"}, "b.py · 第 2 行，共 6 行"),
    ("file_read", {"path": "empty.txt"}, "empty.txt · 共 0 行"),
    ("file_read", {"path": "b.py", "first": "9"}, "文件没有这么多行"),
    ("file_read", {"path": "b.py", "first": "two"}, WRONG),
    ("file_read", {"path": "c.py"}, "没有这个文件或文件夹"),
    ("file_read", {"path": "../c.py"}, "在项目文件夹之外"),
    ("file_read", {"path": "sub"}, "不是文件"),
    ("file_read", {"path": "x" * 300}, "路径无法使用"),
    ("file_list", {"path": "sub"}, "1 项"),
    ("file_list", {"path": "a.txt"}, "不是文件夹"),
    ("code_search", {"pattern": "return"}, "return · 1 个文件中有 2 处匹配"),
    ("code_search", {"pattern": "天气", "path": "sub"}, "1 个文件中没有匹配"),
    ("code_search", {"pattern": "(", "regex": "true"}, "不是有效的正则表达式"),
    ("code_search", {"pattern": "x" * 500}, "内容太长"),
    ("code_outline", {"path": "b.py"}, "b.py · 2 个定义"),
    ("code_outline", {"path": "a.txt"}, "无法列出此文件的大纲"),
    ("file_append", {"path": "a.txt", "text": "z"}, "a.txt · 末尾追加了 1 行"),
    ("file_append", {"path": "a.txt", "text": ""}, WRONG),
    ("file_edit", {"path": "b.py", "old": "return 1", "new": "return 3"}, "b.py · 改动了 1 处"),
    ("file_edit", {"path": "a.txt", "old": "x", "new": "w"}, "有 2 处相符"),
    ("file_edit", {"path": "a.txt", "old": "missing words", "new": "w"}, "文件中没有这段文字"),
    ("file_edit", {"path": "a.txt", "old": "y", "new": "y"}, "没有需要改动的地方"),
    ("file_write", {"path": "d.txt", "content": "1\n2"}, "d.txt · 已新建，共 2 行"),
    ("file_write", {"path": "d.txt", "content": "1\n2"}, "d.txt · 内容本来就是这样"),
    ("file_write", {"path": "d.txt", "content": "1"}, "d.txt · 已替换，共 1 行"),
    ("file_write", {"path": ".git/config", "content": "1"}, "不改动 git 自己的文件"),
    ("git_status", {}, "3 个文件有改动"),
    ("git_diff", {}, "2 个文件有改动"),
    ("git_diff", {"path": ".."}, "在项目文件夹之外"),
    ("git_commit", {"message": "改名"}, "# 改名"),
    ("git_commit", {"message": "改名"}, "没有可提交的改动"),
    ("git_commit", {"message": ""}, WRONG),
    ("shell", {"command": "exit 3"}, "退出码 3，用时 # 秒"),
    ("shell", {"command": " "}, WRONG),
    ("task_start", {"command": "exit 4"}, "任务 1 已启动"),
    ("task_start", {"command": "sleep 60"}, "任务 2 已启动"),
    ("task_start", {"command": "exit 4", "done_when": "tea"}, WRONG),
    ("task_list", {}, "2 个后台任务"),
    ("task_wait", {"id": "1"}, "任务 1 已结束，退出码 4，用时 # 秒"),
    ("task_wait", {"id": "2", "seconds": "0"}, "任务 2 正在运行，已用 # 秒"),
    ("task_wait", {"id": "2", "stop": "true"}, "任务 2 已停止"),
    ("task_wait", {"id": "9"}, "没有这个任务"),
    ("memory_note", {"text": "服务器叫月亮。\n在三楼。"}, "服务器叫月亮。"),
    ("memory_note", {"text": ""}, WRONG),
    ("memory_note", {"text": "长" * 20_000}, "内容太长"),
    ("memory_search", {"query": "服务器"}, "找到 1 条记忆"),
    ("memory_search", {"query": "服务器", "since": "whenever"}, WRONG),
    ("memory_search", {"query": "服务器", "kind": "document"}, "没有找到更多"),
    ("memory_get", {"id": "{id}", "part": "1"}, "第 1 部分，共 1 部分"),
    ("memory_get", {"id": "{id}", "part": "2"}, WRONG),
    ("memory_get", {"id": "none", "part": "1"}, "没有这条记忆"),
    ("tool_search", {"query": "outline"}, "code_outline"),
    ("tool_search", {"query": "天气"}, "没有这样的工具"),
    ("web_fetch", {"url": "http://example.com:22/"}, "无法获取这个地址"),
    ("web_fetch", {"url": ""}, "无法获取这个地址"),
    ("ask_user", {"question": "为什么？\n请说明。"}, "为什么？"),
    ("ask_user", {"question": ""}, WRONG),
    ("finish", {"summary": "完成。\n一切正常。"}, "完成。"),
    ("finish", {"summary": ""}, WRONG),
)  # fmt: skip


class NoModel:
    """An oracle that is not there: recall goes by words alone."""

    async def embed(self, request: NeedEmbeddings) -> None:
        return None


@pytest.fixture
def root(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with one commit."""
    home, folder = tmp_path / "home", (tmp_path / "项目").resolve()
    home.mkdir()
    (home / ".gitconfig").write_text("[user]\n\tname = Tester\n\temail = t@example.org\n")
    for name in ("HOME", "USERPROFILE", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home))
    for name, text in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text, newline="\n")
    for words in ("init --quiet", "add .", "commit --quiet -m first"):
        subprocess.run(["git", *words.split()], cwd=folder, check=True)
    return folder


def executors(memory: MemoryService, board: TaskBoard) -> dict[str, Executor]:
    tools = project_tools(memory, board, Sandbox(), paused=lambda: False)
    found: list[Executor] = [
        *tools,
        MemoryGet(memory, paused=lambda: False),
        MemorySearch(memory, paused=lambda: False, now_ms=lambda: 1_762_180_920_000),
        ToolSearch(
            lambda wish: by_words(wish, tools),
            describe=lambda tool: tool.name,
            load=lambda _names: None,
        ),
        WebFetch(allowed=lambda: True),
    ]
    return {executor.name: executor for executor in found}


async def played(folder: Path, data: Path) -> list[ExecutorResult]:
    """What comes of the rows, one after another."""
    memory, board = MemoryService(NoModel()), TaskBoard()  # type: ignore[arg-type]
    world: list[MemoryWorld] = []
    try:
        await memory.open(lambda: world.append(MemoryWorld(data, NO_HOST)) or world[0].engine)
        conversation = await memory.call(lambda engine: engine.create_conversation(title="c"))
        scene = context_of(folder, conversation=conversation.id)
        tools = executors(memory, board)
        assert {name for name, _, _ in ROWS} == set(tools), "an executor has no row here"
        results = []
        for name, arguments, _ in ROWS:
            node = await memory.call(lambda engine: engine.node_at(1))
            given = {k: handle(node) if v == "{id}" and node else v for k, v in arguments.items()}
            results.append(await called(tools[name], scene, **given))
        return results
    finally:
        board.close()
        await memory.close()


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_a_card_says_in_chinese_what_came_of_every_tool(root: Path, tmp_path: Path) -> None:
    tr.use("zh")
    results = asyncio.run(played(root, tmp_path / "m"))
    said = [
        re.sub(r"\b\d+(\.\d)?(?= 秒)|^[0-9a-f]{7,}(?= )", "#", result.summary) for result in results
    ]
    assert said == [expected for _, _, expected in ROWS]
    for (name, arguments, _), line in zip(ROWS, said, strict=True):
        left = line.replace("git", "")
        for own in (*TOOLS_FOUND, *arguments.values()):
            left = left.replace(own, "") if own else left
        assert not re.search(r"[A-Za-z]", left), f"{name}: {line}"


@pytest.mark.skipif(shutil.which("git") is None, reason="no git")
def test_the_model_reads_the_same_whatever_the_user_reads(root: Path, tmp_path: Path) -> None:
    """Texts of failures and of what only looks; and the line by which calls are remembered."""
    scene = context_of(root)

    async def texts() -> list[tuple[str, str]]:
        memory = MemoryService(NoModel())  # type: ignore[arg-type]
        try:
            tools = executors(memory, TaskBoard())
            found = []
            for name, arguments, _ in ROWS:
                if not name.startswith(("memory_", "task_", "file_w", "file_e", "file_a", "git_c")):
                    result = await called(tools[name], scene, **arguments)
                    found.append((result.text, re.sub(r"\d+\.\d s", "# s", result.remembered())))
            return found
        finally:
            await memory.close()

    english = asyncio.run(texts())
    tr.use("zh")
    assert asyncio.run(texts()) == english
    assert ("exit code 3\n(no output)", "exit code 3, # s") in english


def test_a_stopped_command_and_a_missing_folder(tmp_path: Path) -> None:
    tr.use("zh")

    async def stopped() -> ExecutorResult:
        scene = context_of(tmp_path)
        scene.cancelled.set()
        return await called(Shell(), scene, command="sleep 60")

    result = asyncio.run(stopped())
    assert (result.text, result.summary) == ("stopped by the user\n(no output)", "已被您停止")
    bare = asyncio.run(called(GitStatus(), context_of(None)))
    assert bare.summary == "没有项目文件夹"


class Broken(GitStatus):
    """Has a bug."""

    name = "broken"

    async def plan(self, arguments: object, context: CallContext) -> ExecutorResult:
        raise RuntimeError(str((arguments, context)))


def test_what_the_registry_says_itself(tmp_path: Path) -> None:
    tr.use("zh")
    view = Registry([Shell(), Broken()])
    view._defer([GitStatus()])

    async def planned(name: str) -> str:
        result = await view.plan(name, {}, context_of(tmp_path))
        assert isinstance(result, ExecutorResult)
        assert not result.ok
        return result.summary

    assert asyncio.run(planned("shell")) == WRONG
    assert asyncio.run(planned("broken")) == "工具本身出错"
    assert asyncio.run(planned("nonsense")) == "没有这样的工具"
    assert asyncio.run(planned("git_status")) == "需要先查找这个工具"


# -- nobody forgets it --------------------------------------------------------------------------

TRANSLATED = re.compile(r"(?:tr|summary|_told|.*\.line)")
Values: TypeAlias = Callable[[str], Sequence[ast.expr]]


def parts(value: ast.AST) -> Iterator[ast.AST]:
    """What the text of an expression consists of: not what its functions are asked, nor the keys of its data."""
    match value:
        case ast.Call(func=func) if TRANSLATED.fullmatch(ast.unparse(func)):
            return
        case ast.Call(func=func, args=arguments):
            yield func
            yield from arguments if ast.unparse(func).endswith(".join") else ()
        case ast.Subscript(value=inner):
            yield inner
        case _:
            yield from ast.iter_child_nodes(value)


def english(value: ast.AST, assigned: Values) -> Iterator[str]:
    """Words of ours in what a summary is made of, outside of translated sentences."""
    if isinstance(value, ast.Constant) and re.search(r"[A-Za-z]", str(value.value)):
        yield str(value.value)
    if isinstance(value, ast.Name):
        yield from ("counted",) if value.id == "counted" else ()  # it counts for the model
        for one in assigned(value.id):
            yield from english(one, lambda _name: ())
    for part in parts(value):
        yield from english(part, assigned)


def untranslated(source: str) -> list[str]:
    """The summaries of a module that are words in its code."""
    found: list[str] = []
    for function in ast.walk(ast.parse(source)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Module):
            continue
        nodes = list(ast.walk(function))

        def assigned(name: str, nodes: list[ast.AST] = nodes) -> Sequence[ast.expr]:
            return [
                node.value
                for node in nodes
                if isinstance(node, ast.Assign)
                and any(isinstance(t, ast.Name) and t.id == name for t in node.targets)
            ]

        for node in nodes:
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "ExecutorResult":
                for keyword in node.keywords:
                    if keyword.arg == "summary":
                        found += english(keyword.value, assigned)
    return found


def test_no_summary_is_a_word_in_the_code() -> None:
    modules = sorted((ROOT / "growbox_app").rglob("*.py"))
    wrong = {
        path.name: words for path in modules if (words := untranslated(path.read_text("utf-8")))
    }
    assert wrong == {}


@pytest.mark.parametrize(
    "made",
    [
        '"done"',
        'f"{name}: {lines} lines"',
        'f"{x}" if x else "empty"',
        "words",
        'counted(x, "line")',
    ],
)
def test_words_in_the_code_are_found(made: str) -> None:
    body = f"def f(x, name, lines):\n    words = name + ' created'\n    return ExecutorResult(ok=True, text=x, summary={made})\n"
    assert untranslated(body)


@pytest.mark.parametrize(
    "made", ['summary("tasks", count=3)', 'detail["text"].split("\\n", 1)[0]', '", ".join(x)', '""']
)
def test_data_and_translated_sentences_are_none(made: str) -> None:
    assert untranslated(f"def f(x, detail):\n    return ExecutorResult(summary={made})\n") == []
