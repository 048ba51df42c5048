"""The executor `file_append`: lines at the end of a file, in the file's own encoding and line ends."""

from __future__ import annotations

from pathlib import Path

import pytest

from growbox_app.executors.file_append import FileAppend
from tests.unit.executor_world import call, failed, planned


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"one\n", b"one\ntwo\n"),
        (b"one", b"one\ntwo\n"),
        (b"", b"two\n"),
        (b"one\r\n", b"one\r\ntwo\r\n"),
        (b"\xef\xbb\xbfone\n", b"\xef\xbb\xbfone\ntwo\n"),
    ],
)
def test_lines_come_to_the_end_as_the_file_is_written(
    tmp_path: Path, before: bytes, after: bytes
) -> None:
    (tmp_path / "a.txt").write_bytes(before)
    assert call(FileAppend(), tmp_path, path="a.txt", text="two").ok
    assert (tmp_path / "a.txt").read_bytes() == after


def test_a_new_file_can_be_begun(tmp_path: Path) -> None:
    assert "1 line added" in call(FileAppend(), tmp_path, path="b.txt", text="x\n").text
    assert (tmp_path / "b.txt").read_text(encoding="utf-8") == "x\n"


def test_the_plan_changes_nothing_and_shows_the_whole_file(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\n")
    (change,) = planned(FileAppend(), tmp_path, path="a.txt", text="two").changes
    assert (change.before, change.after) == (b"one\n", b"one\ntwo\n")
    assert (tmp_path / "a.txt").read_bytes() == b"one\n"


def test_what_breaks_the_file_is_said(tmp_path: Path) -> None:
    (tmp_path / "a.py").write_bytes(b"x = 1\n")
    result = call(FileAppend(), tmp_path, path="a.py", text="def f(:\n")
    assert "broken" in result.text


@pytest.mark.parametrize(
    ("path", "text", "word"),
    [
        ("a.txt", " \n", "empty"),
        ("../a.txt", "x", "outside"),
        ("none/a.txt", "x", "folder"),
        (".git/config", "x", "git"),
    ],
)
def test_what_cannot_be_done_is_said(tmp_path: Path, path: str, text: str, word: str) -> None:
    assert word in failed(FileAppend(), tmp_path, path=path, text=text)
