"""code_search and code_outline on real folders: what is found, what is left out, and that neither can be made to hang."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

import pytest

from growbox_app.executors import code_outline, code_search
from growbox_app.executors.code_outline import CodeOutline
from growbox_app.executors.code_search import CodeSearch
from tests.unit.executor_world import call, called, context_of, failed


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


def written(root: Path, **files: bytes | str) -> None:
    for name, content in files.items():
        path = root / name.replace("__", "/").replace("_dot_", ".")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)


# -- searching ----------------------------------------------------------------------------------


def test_matches_come_with_file_and_line(root: Path) -> None:
    written(root, a_dot_py="x = 1\ndef foo(a):\n    pass\n", src__b_dot_py="foo(1)\r\nbar\r\n")
    result = call(CodeSearch(), root, pattern="foo(")
    assert result.text == "2 matches in 2 files\na.py\n2: def foo(a):\nsrc/b.py\n1: foo(1)"
    assert result.summary == "foo( · 2 matches in 2 files"
    assert call(CodeSearch(), root, pattern="bar", context="1").text == (
        "1 match in 1 file\nsrc/b.py\n1- foo(1)\n2: bar\n3- "
    )
    assert "src/b.py" not in call(CodeSearch(), root, pattern="foo(", path="a.py").text


def test_case_counts_only_when_the_text_has_capitals(root: Path) -> None:
    written(root, a_dot_txt="Error\nerror\n")
    assert "2 matches" in call(CodeSearch(), root, pattern="error").text
    assert "1 match " in call(CodeSearch(), root, pattern="Error").text
    assert "2 matches" in call(CodeSearch(), root, pattern=r"\Serror|error", regex="true").text
    assert "1 match " in call(CodeSearch(), root, pattern="^E", regex="true").text


def test_files_are_chosen_by_patterns(root: Path) -> None:
    written(root, a_dot_py="word", b_dot_md="word", src__c_dot_py="word", test__d_dot_py="word")
    assert "3 files" in call(CodeSearch(), root, pattern="word", files="*.py").text
    assert "2 files" in call(CodeSearch(), root, pattern="word", files="*.md, src/").text
    assert "no match in 0 files" in call(CodeSearch(), root, pattern="word", files="*.rs").text


def test_what_nobody_wants_is_left_out(root: Path) -> None:
    written(
        root,
        _dot_gitignore="build/\n",
        build__x_dot_py="needle",
        node_modules__x_dot_js="needle",
        _dot_env="needle",
        credentials_dot_json="needle",
        x_dot_bin=b"\0\0needle",
        old_dot_txt="naïve café needle".encode("cp1252"),
        中文_dot_txt="数据 needle".encode("gb18030"),
    )
    if sys.platform != "win32":
        (root / "link.txt").symlink_to("old.txt")
    text = call(CodeSearch(), root, pattern="needle").text
    assert text == "2 matches in 2 files\nold.txt\n1: naïve café needle\n中文.txt\n1: 数据 needle"


def test_many_matches_are_bounded_and_say_so(root: Path) -> None:
    for number in range(40):
        written(root, **{f"f{number:02}_dot_txt": "word\n" * 1_000})
    result = call(CodeSearch(), root, pattern="word")
    assert "980 more in this file" in result.text
    assert "there may be more" in result.text
    assert len(result.text) < code_search.CHARACTERS_MAX + 1_000


def test_a_long_line_is_shown_around_the_match(root: Path) -> None:
    written(root, a_dot_js="x" * 50_000 + "needle" + "y" * 50_000)
    text = call(CodeSearch(), root, pattern="needle").text
    assert "needle" in text
    assert len(text) < 400


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ({"pattern": " "}, "empty"),
        ({"pattern": "a\nb"}, "one line"),
        ({"pattern": "x" * 1_000}, "too long"),
        ({"pattern": "foo(", "regex": "true"}, "leave regex out"),
        ({"pattern": "x", "path": "gone"}, "no file or folder"),
        ({"pattern": "x", "path": ".."}, "outside"),
        ({"pattern": "x", "context": "many"}, "whole number"),
    ],
)
def test_searches_that_make_no_sense(root: Path, arguments: dict[str, str], says: str) -> None:
    assert says in failed(CodeSearch(), root, **arguments)


def test_nothing_found_is_an_answer(root: Path) -> None:
    written(root, a_dot_txt="x")
    result = call(CodeSearch(), root, pattern="needle")
    assert result.ok
    assert result.text == "no match in 1 file; try a shorter word"


def test_a_regular_expression_that_never_ends_is_ended(root: Path) -> None:
    written(root, a_dot_txt="needle\n", b_dot_txt="a" * 60 + "\n")
    executor = CodeSearch(seconds_max=3.0)
    before = time.monotonic()
    text = call(executor, root, pattern="needle|(a+)+b", regex="true").text
    assert time.monotonic() - before < 8
    assert "a.txt\n1: needle" in text
    assert "not all was searched" in text


def test_a_search_stops_with_the_user(root: Path) -> None:
    written(root, b_dot_txt="a" * 60 + "\n")

    async def run() -> tuple[str, float]:
        context = context_of(root)
        loop = asyncio.get_running_loop()
        loop.call_later(1.0, context.cancelled.set)
        before = loop.time()
        result = await called(CodeSearch(), context, pattern="(a+)+b", regex="true")
        return result.text, loop.time() - before

    text, seconds = asyncio.run(run())
    assert "stopped" in text
    assert seconds < 3


# -- outlines -----------------------------------------------------------------------------------

PYTHON = '''\
"""Doc."""
import os

# A shop.
@final
class Shop:
    size = 1

    def price(self):
        return 1

    def total(self):
        def inner():
            return 2
        return inner()


def main() -> None:
    Shop()
'''


def test_python_definitions_have_their_lines(root: Path) -> None:
    written(root, a_dot_py=PYTHON)
    assert call(CodeOutline(), root, path="a.py").text == (
        "a.py\n6-15| class Shop:\n".replace(":", "") + "9-10|   def price(self)\n"
        "12-15|   def total(self)\n"
        "13-14|     def inner()\n"
        "18-19| def main() -> None"
    )


@pytest.mark.parametrize(
    ("name", "source", "lines"),
    [
        (
            "a.ts",
            "export class A {\r\n  go() {}\r\n}\r\nconst f = () => 1;\r\n",
            ["1-3| export class A", "2-2|   go() {}", "4-4| const f = () => 1;"],
        ),
        (
            "a.go",
            "package a\n\ntype T struct{}\n\nfunc (t T) Go() int {\n\treturn 1\n}\n",
            ["3-3| type T struct{}", "5-7| func (t T) Go() int"],
        ),
        (
            "a.rs",
            "struct A;\n\nimpl A {\n    fn go() {}\n}\n",
            ["1-1| struct A;", "3-5| impl A", "4-4|   fn go() {}"],
        ),
        ("a.md", "# One\ntext\n## Two\n# Three\n", ["1-3| # One", "3-3|   ## Two", "4-4| # Three"]),
        ("broken.py", "def b():\n    pass\n\ndef a(:\n    x = (\n", ["1-2| def b()"]),
    ],
)
def test_other_languages(root: Path, name: str, source: str, lines: list[str]) -> None:
    (root / name).write_bytes(source.encode())
    found = call(CodeOutline(), root, path=name).text.split("\n")[1:]
    assert set(lines) <= set(found), found


def test_too_many_definitions_lose_the_inner_ones(root: Path) -> None:
    source = "".join(
        f"class C{n}:\n    def a(self): pass\n    def b(self): pass\n" for n in range(80)
    )
    written(root, a_dot_py=source)
    text = call(CodeOutline(), root, path="a.py").text
    assert "class C79" in text
    assert text.endswith("[160 inner ones not shown]")
    written(root, b_dot_py="def f(): pass\n" * 1_000)
    assert (
        len(call(CodeOutline(), root, path="b.py").text.split("\n")) <= code_outline.ENTRIES_MAX + 2
    )


def test_files_without_an_outline(root: Path) -> None:
    written(root, a_dot_txt="x", b_dot_py=b"\0\0", c_dot_py="x = 1\n", d__e_dot_py="")
    assert "file_read" in failed(CodeOutline(), root, path="a.txt")
    assert "binary" in failed(CodeOutline(), root, path="b.py")
    assert "defines nothing" in call(CodeOutline(), root, path="c.py").text
    assert "folder" in failed(CodeOutline(), root, path="d")
    assert "outside" in failed(CodeOutline(), root, path="../x.py")
