"""Edits: whatever a small model does to the passage it quotes, nothing but that passage changes; bytes come back as they were."""

from __future__ import annotations

import contextlib

from hypothesis import given
from hypothesis import strategies as st

from growbox_app.executors.answers import CallFailed
from growbox_app.executors.passages import applied, replacements
from growbox_app.executors.text_files import text_file

WORDS = st.text(alphabet="abcxyz()=中文", min_size=1, max_size=8)
LINES = st.lists(
    st.tuples(st.integers(0, 3), st.lists(WORDS, min_size=1, max_size=4)), min_size=1, max_size=12
)


@given(lines=LINES, data=st.data())
def test_a_passage_is_found_however_it_is_quoted(
    lines: list[tuple[int, list[str]]], data: st.DataObject
) -> None:
    # A number makes each line the only one of its kind.
    real = [
        f"{'    ' * depth}{at:02}Q {' '.join(words)}" for at, (depth, words) in enumerate(lines)
    ]
    first = data.draw(st.integers(0, len(real) - 1))
    last = data.draw(st.integers(first, len(real) - 1))
    passage = real[first : last + 1]
    least = min(len(line) - len(line.lstrip()) for line in passage)
    way = data.draw(st.sampled_from(["exact", "numbers", "no indentation", "spaces behind", "end"]))
    quoted = {
        "exact": passage,
        "numbers": [f"{first + at + 1}| {line}" for at, line in enumerate(passage)],
        "no indentation": [line[least:] for line in passage],
        "spaces behind": [line + "  " for line in passage],
        "end": [*passage, ""],
    }[way]
    changed = [line.replace("Q ", "Q changed ") for line in quoted]
    old, new = "\n".join(quoted), "\n".join(changed)
    text = "\n".join(real) + "\n"
    expected = [
        line.replace("Q ", "Q changed ") if first <= at <= last else line
        for at, line in enumerate(real)
    ]
    result = applied(text, replacements(text, old, new, every=False))
    assert [line.rstrip() for line in result.split("\n")] == [*expected, ""]
    outside = result.split("\n")
    assert outside[:first] == real[:first]
    assert outside[last + 1 :] == [*real[last + 1 :], ""]


@given(
    text=st.text(alphabet="ab \n\t12|", max_size=60),
    old=st.text(alphabet="ab \n\t12|", max_size=12),
)
def test_what_is_replaced_holds_the_words_that_were_asked_for(text: str, old: str) -> None:
    with contextlib.suppress(CallFailed):
        (place,) = replacements(text, old, "new", every=False)
        found = text[place.start : place.end]
        bare = [line.split("| ", 1)[-1] if "|" in line else line for line in old.split("\n")]
        letters = {"".join(old.split()), "".join("".join(bare).split())}
        letters.add("".join(line.split("|", 1)[-1] for line in old.split("\n")).replace(" ", "").replace("\t", ""))  # fmt: skip
        assert "".join(found.split()) in letters


@given(data=st.binary(max_size=200))
def test_bytes_come_back_as_they_were(data: bytes) -> None:
    with contextlib.suppress(CallFailed):
        found = text_file(data)
        assert found.encode(found.text) == data


@given(
    lines=st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(["\n", "\r\n", "\r"]))),
    at=st.integers(0, 30),
)
def test_a_new_line_leaves_all_other_line_ends_alone(lines: list[tuple[str, str]], at: int) -> None:
    raw = "".join(word + end for word, end in lines)
    found = text_file(raw.encode())
    now = found.text.split("\n")
    at = min(at, len(now) - 1)
    after = found.encode("\n".join([*now[:at], "new", *now[at:]])).decode()
    for end in ("\r\n", "\n", "\r"):
        after = after.replace(f"new{end}", "", 1) if f"new{end}" in after else after
    assert after in (raw, raw + "\n") or after.replace("new", "") == raw
