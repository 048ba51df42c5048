"""file_read, file_list, file_write and file_edit on real folders: encodings, line ends, links, limits, and paths that lead out."""

from __future__ import annotations

import ast
import codecs
import os
import stat
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growbox_app.executors import file_list, file_read
from growbox_app.executors.file_append import FileAppend
from growbox_app.executors.file_edit import FileEdit
from growbox_app.executors.file_list import FileList
from growbox_app.executors.file_read import FileRead
from growbox_app.executors.file_write import FileWrite
from growbox_app.executors.syntax import escaped_line_ends
from growbox_app.executors.text_files import FILE_BYTES_MAX, text_file
from tests.unit.executor_world import call, called, context_of, failed, planned, wait

POSIX = pytest.mark.skipif(sys.platform == "win32", reason="modes, pipes and links as on Unix")
CHINESE = "# 配置文件\n端口 = 8080\n主机 = 本地\n"
ENCODED = [
    ("utf-8", "größe = 1\n".encode()),
    ("utf-8", codecs.BOM_UTF8 + b"size = 1\n"),
    ("gb18030", CHINESE.encode("gb18030")),
    ("cp1252", "größe = 1 – naïve\n".encode("cp1252")),
    ("utf-16-le", codecs.BOM_UTF16_LE + "size = 1\n".encode("utf-16-le")),
    ("utf-16-be", codecs.BOM_UTF16_BE + CHINESE.encode("utf-16-be")),
]


@pytest.fixture
def root(tmp_path: Path) -> Path:
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


# -- paths --------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["../secret.txt", "/etc/passwd", "a/../../secret.txt", "~/x"])
def test_nothing_outside_the_project_is_read_or_written(root: Path, name: str) -> None:
    (root.parent / "secret.txt").write_text("secret")
    if name.startswith("~"):
        assert "no file" in failed(FileRead(), root, path=name)  # a folder of that name, no home
        return
    for executor in (FileRead(), FileList()):
        assert "outside" in failed(executor, root, path=name)
    assert "outside" in failed(FileWrite(), root, path=name, content="x")
    assert "outside" in failed(FileEdit(), root, path=name, old="secret", new="x")
    assert (root.parent / "secret.txt").read_text() == "secret"


@POSIX
def test_a_link_out_of_the_project_leads_nowhere(root: Path) -> None:
    (root.parent / "secret.txt").write_text("secret")
    (root / "link").symlink_to(root.parent / "secret.txt")
    (root / "folder").symlink_to(root.parent, target_is_directory=True)
    for name in ("link", "folder/secret.txt"):
        assert "outside" in failed(FileRead(), root, path=name)
        assert "outside" in failed(FileWrite(), root, path=name, content="x")
    (root / "loop").symlink_to(root / "loop")
    failed(FileRead(), root, path="loop")
    assert (root.parent / "secret.txt").read_text() == "secret"


@POSIX
def test_a_link_inside_is_resolved_and_stays_a_link(root: Path) -> None:
    (root / "real.txt").write_text("one\n")
    (root / "link.txt").symlink_to("real.txt")
    plan = planned(FileWrite(), root, path="link.txt", content="two")
    assert plan.changes[0].path == (root / "real.txt").resolve()
    assert call(FileWrite(), root, path="link.txt", content="two").ok
    assert (root / "link.txt").is_symlink()
    assert (root / "real.txt").read_text() == "two\n"


@POSIX
def test_a_link_put_in_the_way_after_the_plan_is_not_followed(root: Path) -> None:
    outside = root.parent / "outside"
    outside.mkdir()
    (root / "sub").mkdir()
    context = context_of(root)
    plan = planned(FileWrite(), root, path="sub/new.txt", content="x")
    (root / "sub").rmdir()
    (root / "sub").symlink_to(outside, target_is_directory=True)
    result = wait(FileWrite().run(plan, context))
    assert not result.ok
    assert list(outside.iterdir()) == []


def test_a_readable_folder_is_read_and_never_written(root: Path, tmp_path: Path) -> None:
    shelf = tmp_path / "shelf"
    shelf.mkdir()
    (shelf / "a.txt").write_text("words\n")
    context = context_of(root, shelf)
    read = wait(called(FileRead(), context, path=str(shelf / "a.txt")))
    assert "words" in read.text
    written = wait(called(FileWrite(), context, path=str(shelf / "a.txt"), content="x"))
    assert not written.ok


def test_without_a_project_folder_nothing_is_touched(tmp_path: Path) -> None:
    for executor in (FileRead(), FileList(), FileWrite(), FileEdit()):
        text = failed(executor, None, path="a.txt", content="x", old="a", new="b")
        assert "no project folder" in text
    assert "not there any more" in failed(FileRead(), tmp_path / "gone", path="a")


@pytest.mark.parametrize(
    "name",
    [
        "a\0b",
        pytest.param("x" * 300, id="long"),
        pytest.param("文" * 86, id="long in bytes"),
        "",
        ".",
        ".git/config",
        "sub/.GIT/hooks/x",
    ],
)
def test_names_that_cannot_be_files_are_refused(root: Path, name: str) -> None:
    failed(FileWrite(), root, path=name, content="x")
    assert list(root.iterdir()) == []


# -- reading ------------------------------------------------------------------------------------


def test_lines_are_numbered_and_a_part_says_how_to_read_on(root: Path) -> None:
    (root / "a.txt").write_bytes(b"".join(b"line %d\r\n" % n for n in range(1, 1_001)))
    result = call(FileRead(), root, path="a.txt")
    lines = result.text.split("\n")
    assert lines[0] == f"a.txt: lines 1-{file_read.LINES_MAX} of 1000"
    assert lines[1] == "1| line 1"
    assert lines[-1] == f"[read on with first={file_read.LINES_MAX + 1}]"
    part = call(FileRead(), root, path="a.txt", first="999", last="2000").text
    assert part == "a.txt: lines 999-1000 of 1000\n999| line 999\n1000| line 1000"
    assert "only 1000 lines" in failed(FileRead(), root, path="a.txt", first="1001")
    assert "whole number" in failed(FileRead(), root, path="a.txt", first="ten")


def test_every_line_is_reached_by_reading_on(root: Path) -> None:
    (root / "a.txt").write_text("".join(f"{n} {'x' * (n % 700)}\n" for n in range(1, 400)))
    first, seen = 1, 0
    while True:
        text = call(FileRead(), root, path="a.txt", first=str(first)).text
        assert len(text) < file_read.CHARACTERS_MAX + 700
        seen += sum("| " in line for line in text.split("\n"))
        if "read on with" not in text:
            break
        first = int(text.rsplit("first=", 1)[1].rstrip("]"))
    assert seen == 399


def test_a_long_line_is_cut_and_says_so(root: Path) -> None:
    (root / "a.json").write_text("y" * 100_000)
    text = call(FileRead(), root, path="a.json").text
    assert len(text) < 1_000
    assert "99500 more characters" in text


@pytest.mark.parametrize(("encoding", "data"), ENCODED)
def test_encodings_are_found(root: Path, encoding: str, data: bytes) -> None:
    (root / "a.txt").write_bytes(data)
    found = text_file(data)
    assert found.encoding == encoding
    assert found.encode(found.text) == data
    text = call(FileRead(), root, path="a.txt").text
    assert text.split("\n")[1].startswith("1| ")
    assert "\ufeff" not in text
    assert (encoding in text.split("\n")[0]) is (encoding != "utf-8")


def test_what_is_no_text_is_said(root: Path) -> None:
    (root / "a.png").write_bytes(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR")
    assert "binary" in failed(FileRead(), root, path="a.png")
    assert "binary" in failed(FileEdit(), root, path="a.png", old="PNG", new="GIF")
    assert "binary" in failed(FileWrite(), root, path="a.png", content="text")
    (root / "empty").write_bytes(b"")
    assert call(FileRead(), root, path="empty").text == "empty is empty"
    (root / "folder").mkdir()
    assert "file_list" in failed(FileRead(), root, path="folder")


def test_a_huge_file_is_refused_with_a_way_on(root: Path) -> None:
    with (root / "big.log").open("wb") as stream:
        stream.truncate(FILE_BYTES_MAX + 1)
    assert "code_search" in failed(FileRead(), root, path="big.log")


def test_a_missing_file_is_answered_with_the_nearest_names(root: Path) -> None:
    (root / "server.py").write_text("")
    assert "server.py" in failed(FileRead(), root, path="servers.py")
    assert "file_list" in failed(FileRead(), root, path="other.txt")


@POSIX
def test_a_pipe_is_not_waited_for(root: Path) -> None:
    os.mkfifo(root / "pipe")
    assert "no regular file" in failed(FileRead(), root, path="pipe")


@POSIX
@pytest.mark.skipif(getattr(os, "geteuid", lambda: 1)() == 0, reason="root reads everything")
def test_a_forbidden_file_is_a_failed_result(root: Path) -> None:
    (root / "a.txt").write_text("x")
    (root / "a.txt").chmod(0)
    assert "cannot be read" in failed(FileRead(), root, path="a.txt")


# -- listing ------------------------------------------------------------------------------------


def test_a_folder_is_shown_as_a_tree_without_what_git_ignores(root: Path) -> None:
    for name in ("src/app/main.py", "build/x.o", "node_modules/m/index.js", ".git/config", "b.log"):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("12345")
    (root / ".gitignore").write_text("build/\n*.log\n")
    (root / "src" / ".gitignore").write_text("!b.log\n")
    (root / "src" / "b.log").write_text("")
    assert call(FileList(), root).text == (
        ".gitignore (13 bytes)\n"
        "src/\n"
        "  .gitignore (7 bytes)\n"
        "  b.log (0 bytes)\n"
        "  app/\n"
        "    main.py (5 bytes)"
    )
    assert call(FileList(), root, path="src", depth="1").text.endswith("app/…")


def test_a_deep_folder_does_not_hide_its_neighbours(root: Path) -> None:
    for number in range(file_list.ENTRIES_MAX):
        (root / "a" / f"{number:04}").mkdir(parents=True)
    (root / "z").mkdir()
    (root / "z" / "seen.txt").write_text("")
    text = call(FileList(), root).text
    assert "z/" in text
    assert "more]" in text
    assert len(text.split("\n")) <= file_list.ENTRIES_MAX + 4


@POSIX
def test_links_are_shown_and_not_followed(root: Path) -> None:
    (root / "loop").symlink_to(root, target_is_directory=True)
    (root / "two\nlines").write_text("")
    assert call(FileList(), root).text == "loop (link)\ntwo\\nlines (0 bytes)"


def test_listing_what_is_no_folder(root: Path) -> None:
    (root / "a.txt").write_text("")
    assert "file_read" in failed(FileList(), root, path="a.txt")
    assert "no folder" in failed(FileList(), root, path="b")
    (root / "empty").mkdir()
    assert "(empty folder)" in call(FileList(), root, path="empty").text


# -- writing ------------------------------------------------------------------------------------


def test_a_new_file_gets_its_folders_and_a_last_line_end(root: Path) -> None:
    plan = planned(FileWrite(), root, path="a/b/c.txt", content="größe")
    assert plan.changes[0].before is None
    assert plan.changes[0].after == "größe\n".encode()
    assert not (root / "a").exists()
    result = call(FileWrite(), root, path="a/b/c.txt", content="größe")
    assert result.text == "a/b/c.txt created, 1 line"
    assert (root / "a" / "b" / "c.txt").read_bytes() == "größe\n".encode()
    assert [path.name for path in (root / "a" / "b").iterdir()] == ["c.txt"]


@pytest.mark.parametrize(("encoding", "data"), ENCODED)
@pytest.mark.parametrize("line_end", ["\n", "\r\n"])
def test_an_old_file_keeps_encoding_mark_and_line_ends(
    root: Path, encoding: str, data: bytes, line_end: str
) -> None:
    old = text_file(data)
    before = old.mark + (old.text.replace("\n", line_end)).encode(encoding)
    (root / "a.txt").write_bytes(before)
    assert call(FileWrite(), root, path="a.txt", content=old.text + "more\nand more\n").ok
    after = old.mark + (old.text + "more\nand more\n").replace("\n", line_end).encode(encoding)
    assert (root / "a.txt").read_bytes() == after
    assert call(FileEdit(), root, path="a.txt", old="and more", new="done").ok
    assert (root / "a.txt").read_bytes() == after.replace(
        "and more".encode(encoding), "done".encode(encoding)
    )


def test_a_character_the_encoding_lacks_is_refused(root: Path) -> None:
    data = "größe – naïve\n".encode("cp1252")
    (root / "a.txt").write_bytes(data)
    assert "'中'" in failed(FileWrite(), root, path="a.txt", content="ab中")
    assert "cp1252" in failed(FileEdit(), root, path="a.txt", old="naïve", new="中文")
    assert (root / "a.txt").read_bytes() == data


def test_nothing_is_written_when_the_file_changed_since_the_plan(root: Path) -> None:
    target = root / "a.txt"
    context = context_of(root)
    target.write_text("one\n")
    plan = planned(FileWrite(), root, path="a.txt", content="two")
    target.write_text("other\n")
    assert "changed in the meantime" in wait(FileWrite().run(plan, context)).text
    assert target.read_text() == "other\n"
    target.unlink()
    assert not wait(FileWrite().run(plan, context)).ok
    assert not target.exists()
    plan = planned(FileWrite(), root, path="new.txt", content="two")
    (root / "new.txt").write_text("mine\n")
    assert not wait(FileWrite().run(plan, context)).ok
    assert (root / "new.txt").read_text() == "mine\n"


def test_the_same_text_again_needs_no_plan(root: Path) -> None:
    (root / "a.txt").write_bytes(b"one\r\n")
    assert "already" in call(FileWrite(), root, path="a.txt", content="one").text


@POSIX
def test_the_mode_of_a_file_stays_and_a_new_one_obeys_the_mask(root: Path) -> None:
    (root / "run.sh").write_text("echo 1\n")
    (root / "run.sh").chmod(0o751)
    assert call(FileEdit(), root, path="run.sh", old="echo 1", new="echo 2").ok
    assert stat.S_IMODE((root / "run.sh").stat().st_mode) == 0o751
    (root / "beside").touch()
    assert call(FileWrite(), root, path="new", content="x").ok
    assert (root / "new").stat().st_mode == (root / "beside").stat().st_mode


def test_what_a_crash_left_is_removed_with_the_next_change(root: Path) -> None:
    (root / ".growbox-999999999-ab12.tmp").write_text("half")
    mine = root / f".growbox-{os.getpid()}-ab12.tmp"
    mine.write_text("half")
    assert ".growbox" not in call(FileList(), root).text
    assert call(FileWrite(), root, path="a.txt", content="x").ok
    assert sorted(path.name for path in root.iterdir()) == [mine.name, "a.txt"]


def test_a_file_in_the_way_of_a_folder(root: Path) -> None:
    (root / "a").write_text("x")
    failed(FileWrite(), root, path="a/b.txt", content="x")
    assert (root / "a").read_text() == "x"


# -- editing ------------------------------------------------------------------------------------

SOURCE = """\
class Shop:
    def price(self, item):
        if item.sale:
            return item.price * 0.9
        return item.price

    def total(self, items):
        return sum(self.price(item) for item in items)
"""


def edited(root: Path, old: str, new: str, source: str = SOURCE, **more: str) -> str:
    (root / "shop.py").write_text(source)
    result = call(FileEdit(), root, path="shop.py", old=old, new=new, **more)
    assert result.ok, result.text
    return (root / "shop.py").read_text()


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("            return item.price * 0.9\n", "            return item.price * 0.8\n"),
        ("            return item.price * 0.9\n", "            return item.price * 0.8"),
        ("            return item.price * 0.9", "            return item.price * 0.8\n"),
        ("item.price * 0.9", "item.price * 0.8"),
        ("item.price  *  0.9", "item.price * 0.8"),
        ("return item.price * 0.9   ", "return item.price * 0.8"),
        ("4|             return item.price * 0.9", "4|             return item.price * 0.8"),
        ("4| return item.price * 0.9", "return item.price * 0.8"),
        (
            "if item.sale:\n    return item.price * 0.9\n",
            "if item.sale:\n    return item.price * 0.8\n",
        ),
        (
            "if item.sale:\n\treturn item.price*0.9".replace("*", " * "),
            "if item.sale:\n\treturn item.price * 0.8",
        ),
        (
            "\n  if item.sale:\r\n    return item.price * 0.9\n\n",
            "\n  if item.sale:\r\n    return item.price * 0.8\n\n",
        ),
    ],
)
def test_a_passage_quoted_exactly_or_nearly_is_replaced(root: Path, old: str, new: str) -> None:
    assert edited(root, old, new) == SOURCE.replace("0.9", "0.8")


def test_new_lines_take_the_indentation_of_the_place(root: Path) -> None:
    old = "if item.sale:\n    return item.price * 0.9"
    new = "if item.sale:\n    if item.old:\n        return 0\n    return item.price * 0.9"
    assert edited(root, old, new) == SOURCE.replace(
        "        if item.sale:\n",
        "        if item.sale:\n            if item.old:\n                return 0\n",
    )


def test_spaces_become_the_tabs_of_the_file(root: Path) -> None:
    source = "func main() {\n\tif x {\n\t\treturn\n\t}\n}\n"
    old = "if x {\n    return\n}"
    new = "if x {\n    if y {\n        stop()\n    }\n    return\n}"
    assert edited(root, old, new, source) == (
        "func main() {\n\tif x {\n\t\tif y {\n\t\t\tstop()\n\t\t}\n\t\treturn\n\t}\n}\n"
    )


def test_curly_quotes_are_the_plain_ones(root: Path) -> None:
    assert edited(root, "say(“a”, ‘b’)", "say('c')", "x\nsay(\"a\", 'b')\n") == "x\nsay('c')\n"


def test_lines_are_deleted_with_their_end(root: Path) -> None:
    source = "a = 1\n  b = 2 \nc = 3\n"
    assert edited(root, "b = 2\n", "", source.replace("  b", "b").replace("2 ", "2")) == (
        "a = 1\nc = 3\n"
    )
    assert edited(root, "\tb  =  2", "", source) == "a = 1\nc = 3\n"


def test_the_result_shows_the_new_lines(root: Path) -> None:
    (root / "shop.py").write_text(SOURCE)
    result = call(FileEdit(), root, path="shop.py", old="* 0.9", new="* 0.8")
    assert result.text == (
        "shop.py changed at 1 place. Now:\n"
        "2|     def price(self, item):\n"
        "3|         if item.sale:\n"
        "4|             return item.price * 0.8\n"
        "5|         return item.price\n"
        "6| "
    )


def test_several_places_are_named_and_replaced_only_on_demand(root: Path) -> None:
    (root / "shop.py").write_text(SOURCE)
    text = failed(FileEdit(), root, path="shop.py", old="item.price", new="item.cost")
    assert "2 places, lines 4, 5" in text
    assert "every" in text
    assert (root / "shop.py").read_text() == SOURCE
    changed = edited(root, "item.price", "item.cost", every="true")
    assert changed == SOURCE.replace("item.price", "item.cost")


def test_other_words_are_never_replaced_but_shown(root: Path) -> None:
    (root / "shop.py").write_text(SOURCE)
    old = "        if item.sale:\n            return item.price * 0.5\n"
    text = failed(FileEdit(), root, path="shop.py", old=old, new="x")
    assert "3|         if item.sale:\n4|             return item.price * 0.9" in text
    assert "nothing is like it" in failed(FileEdit(), root, path="shop.py", old="zebra", new="x")
    assert (root / "shop.py").read_text() == SOURCE


@pytest.mark.parametrize(
    ("old", "new"), [("", "x"), ("  \n", "x"), ("3| ", "x"), ("class Shop:", "class Shop:")]
)
def test_edits_that_say_nothing_are_refused(root: Path, old: str, new: str) -> None:
    (root / "shop.py").write_text(SOURCE)
    failed(FileEdit(), root, path="shop.py", old=old, new=new)
    (root / "empty.py").write_text("")
    assert "file_write" in failed(FileEdit(), root, path="empty.py", old="a", new="b")
    assert "shop.py" in failed(FileEdit(), root, path="shops.py", old="a", new="b")


def test_each_line_of_a_mixed_file_keeps_its_own_end(root: Path) -> None:
    (root / "a.txt").write_bytes(b"one\r\ntwo\nthree\r\nfour\nfive")
    assert call(FileEdit(), root, path="a.txt", old="three", new="3\nand a half").ok
    assert (root / "a.txt").read_bytes() == b"one\r\ntwo\n3\nand a half\r\nfour\nfive"


def test_a_large_file_is_edited_and_searched_for_candidates_quickly(root: Path) -> None:
    lines = [f"def function_{n}(value): return value + {n}" for n in range(60_000)]
    (root / "big.py").write_text("\n".join(lines) + "\n")
    result = call(FileEdit(), root, path="big.py", old="value + 31415", new="value - 1")
    assert "31416|" in result.text
    text = failed(FileEdit(), root, path="big.py", old="def functoin_31(value): retrun", new="x")
    assert "function_31(" in text


# -- what a change broke ------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "good", "bad", "says"),
    [
        ("a.py", "def f():\n    return 1\n", "def f(:\n    return 1\n", "line 1: "),
        ("a.json", '{"a": 1}\n', '{"a": 1,}\n', "line 1 column"),
        ("a.toml", "a = 1\n", "a = \n", "line 1"),
    ],
)
def test_a_file_that_a_change_broke_is_called_broken(
    root: Path, name: str, good: str, bad: str, says: str
) -> None:
    written = call(FileWrite(), root, path=name, content=good)
    assert "broken" not in written.text
    edited = call(FileEdit(), root, path=name, old=good.split("\n")[0], new=bad.split("\n")[0])
    assert edited.ok
    assert "But the file is broken now: " in edited.text
    assert says in edited.text
    again = call(FileWrite(), root, path=name, content=bad + "\n")
    assert "broken" not in again.text  # it was before
    assert "broken" in call(FileWrite(), root, path=f"new-{name}", content=bad).text


def test_other_files_are_never_called_broken(root: Path) -> None:
    assert "broken" not in call(FileWrite(), root, path="a.txt", content="def (").text
    assert "broken" not in call(FileWrite(), root, path="empty.py", content="").text


@pytest.mark.parametrize(
    ("meant", "written"),
    [
        ("f'a\\n'", "f'a\n'"),
        ("print(\"一\\n二\\n\", '\\'')", "print(\"一\n二\n\", '\\'')"),
        ('x = """a\nb"""\ny = "\\n"', 'x = """a\nb"""\ny = "\n"'),
        ("# it's\nx = '#\\n'", "# it's\nx = '#\n'"),
    ],
)
def test_a_line_end_inside_a_string_was_meant_escaped(root: Path, meant: str, written: str) -> None:
    """Models that write code inside JSON forget one of the two backslashes."""
    said = call(FileWrite(), root, path="a.py", content=written)
    assert "broken" not in said.text
    assert (root / "a.py").read_text("utf-8") == meant + "\n"
    (root / "a.py").write_text("x = 1\n", encoding="utf-8")
    call(FileAppend(), root, path="a.py", text=written)
    assert (root / "a.py").read_text("utf-8") == f"x = 1\n{meant}\n"
    (root / "a.py").write_text("x = 1\n", encoding="utf-8")
    call(FileEdit(), root, path="a.py", old="x = 1", new=written)
    assert (root / "a.py").read_text("utf-8") == meant + "\n"


@pytest.mark.parametrize(
    "text", ["x = 'a\n", "x = 'a\ny = 1\n", 'f("a\n', "x = '\\\n'\n", "x = '''\n'''\n", "it's\n"]
)
def test_what_would_not_be_right_either_stays_as_it_was_written(root: Path, text: str) -> None:
    call(FileWrite(), root, path="a.py", content=text)
    assert (root / "a.py").read_text("utf-8") == text


@given(st.text(alphabet="ab '\"#\n\\{", max_size=40))
def test_a_right_program_is_never_touched(text: str) -> None:
    try:
        ast.parse(text)
    except (SyntaxError, ValueError):
        return
    assert escaped_line_ends(text) == text
