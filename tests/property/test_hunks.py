"""Properties of hunks: all accepted is the change, none is the file, and any subset is made of the two files' own lines."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import hypothesis.strategies as st
import pytest
from hypothesis import given

from growbox_app.executors.base import FileChange
from growbox_app.hunks import NO_LINE_END, TEXT_BYTES_MAX, apply, hunks_of, unified

PATH = Path("/p/a.txt")
ENDS = st.sampled_from([b"\n", b"\r\n", b"\r", b""])
LINE = st.tuples(
    st.sampled_from([b"a", b"b", b"\xef\xbb\xbfc", "数据".encode(), b"\xff\xfe x", b""]), ENDS
).map(b"".join)
CONTENT = st.lists(LINE, max_size=40).map(b"".join)
MAYBE = st.one_of(st.none(), CONTENT)
CHANGES = st.builds(FileChange, path=st.just(PATH), before=MAYBE, after=MAYBE)


def change(before: bytes | None, after: bytes | None) -> FileChange:
    return FileChange(path=PATH, before=before, after=after)


@given(CHANGES)
def test_all_is_after_and_none_is_before(edit):
    everything = frozenset(range(len(hunks_of(edit))))
    assert apply(edit, everything) == edit
    assert apply(edit, frozenset()).after == edit.before or edit.before == edit.after


@given(CONTENT, CONTENT, st.data())
def test_a_subset_leaves_exactly_the_other_hunks(before, after, data):
    edit = change(before, after)
    count = len(hunks_of(edit))
    chosen = (
        data.draw(st.frozensets(st.integers(0, max(count - 1, 0)), max_size=count))
        if count
        else frozenset()
    )
    part = apply(edit, chosen)
    assert part.after is not None
    own = set(before.splitlines(True)) | set(after.splitlines(True))
    assert set(part.after.splitlines(True)) <= own | {b"\r\n"}  # a lone CR may meet a lone LF
    rest = [line[1:] for line in _changed(change(part.after, after))]
    wanted = [
        line[1:]
        for i, hunk in enumerate(hunks_of(edit))
        if i not in chosen
        for line in _signed(hunk.lines)
    ]
    assert (not rest) == (not wanted)


@given(st.lists(st.sampled_from([b"\n", b"\r\n"]), min_size=60, max_size=60), st.data())
def test_accepting_one_by_one_reaches_the_whole(ends, data):
    lines = [b"line %d" % number + end for number, end in enumerate(ends)]
    edited = list(lines)
    for position in (3, 20, 40, 59):
        edited[position] = data.draw(st.sampled_from([b"", b"new\r\n", b"new", b"x\ny\n"]))
    edit = change(b"".join(lines), b"".join(edited))
    hunks = hunks_of(edit)
    assert len(hunks) >= 3
    for hunk in hunks:
        alone = apply(edit, frozenset({hunk.index}))
        others = apply(edit, frozenset(range(len(hunks))) - {hunk.index})
        assert _changed(alone) == list(_signed(hunk.lines))
        assert _changed(change(others.after, edit.after)) == list(_signed(hunk.lines))


def _changed(edit: FileChange) -> list[str]:
    return [line for hunk in hunks_of(edit) for line in _signed(hunk.lines)]


def _signed(lines: tuple[str, ...]) -> list[str]:
    return [line for line in lines if line[0] in "+-"]


def test_a_byte_order_mark_crlf_and_a_missing_end_survive():
    lines = [b"\xef\xbb\xbffirst\r\n", *(b"line %d\r\n" % n for n in range(30)), b"last"]
    edited = [
        *lines[:5],
        b"changed\r\n",
        *lines[6:20],
        *lines[21:],
    ]
    edit = change(b"".join(lines), b"".join(edited))
    assert len(hunks_of(edit)) == 2
    part = apply(edit, frozenset({0})).after
    assert part == b"".join([*lines[:5], b"changed\r\n", *lines[6:]])


def test_headers_and_lines_are_those_of_a_unified_diff():
    (hunk,) = hunks_of(change(b"a\nb\nc", b"a\nB\nc"))
    assert hunk.header == "@@ -1,3 +1,3 @@"
    assert hunk.lines == (" a", "-b", "+B", " c", NO_LINE_END)
    (made,) = hunks_of(change(None, b"x\n"))
    assert (made.header, made.lines) == ("@@ -0,0 +1,1 @@", ("+x",))
    (empty,) = hunks_of(change(None, b""))
    assert empty.lines == ()
    assert apply(change(None, b""), frozenset()).after is None
    (removed,) = hunks_of(change(b"x\n", None))
    assert apply(change(b"x\n", None), frozenset({removed.index})).after is None


@pytest.mark.parametrize("content", [b"a\0b", b"x" * (TEXT_BYTES_MAX + 1), b"\n" * 30_000])
def test_what_is_no_text_is_one_hunk_without_lines(content):
    edit = change(b"text\n", content)
    (hunk,) = hunks_of(edit)
    assert not hunk.is_text
    assert hunk.lines == ()
    assert apply(edit, frozenset({0})) == edit
    assert apply(edit, frozenset()).after == b"text\n"
    assert unified(edit, "a").startswith("Binary files")


def test_a_hunk_that_is_not_there_is_refused():
    with pytest.raises(ValueError, match="hunks"):
        apply(change(b"a", b"b"), frozenset({1}))


@pytest.mark.skipif(shutil.which("git") is None, reason="git")
@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"a\nb\nc\n", b"a\nc\nd"),
        (b"a", b"b\n"),
        (b"", b"x\r\ny\r\n"),
        (b"1\n" * 9, b"1\n" * 4 + b"2\n" * 9),
    ],
)
def test_git_can_apply_the_diff(tmp_path, before, after):
    (tmp_path / "a.txt").write_bytes(before)
    text = unified(change(before, after), "a.txt").encode()
    subprocess.run(
        ["git", "apply", "-p0", "--whitespace=nowarn", "-"], cwd=tmp_path, input=text, check=True
    )
    assert (tmp_path / "a.txt").read_bytes() == after
