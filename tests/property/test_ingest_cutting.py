"""The chunk laws of design 4.5, for any text: passages join to the original, byte for byte, and a change moves few of them."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given, settings

from growbox_app.ingest.cutting import cuts_of
from growbox_app.ingest.sections import headings
from memory.rest.chunking import check_cuts, chunk_end

SUFFIXES = (
    ".txt", ".md", ".docx", ".pdf", ".json", "", ".py", ".js", ".ts", ".tsx", ".c", ".h", ".cpp", ".java", ".go", ".rs", ".sh",
)  # fmt: skip
PIECES = st.sampled_from(
    [
        "# 标题\n",
        "## Part one ##\r\n",
        "Title\n=====\n",
        "```\n# no heading\n```\n",
        "~~~\n",
        "这是一句话。那是另一句！",
        "A sentence. Another one? ",
        "\r\n\r\n",
        "\n\n",
        "\n",
        "\r",
        "\t",
        "class A:\n    def f(self):\n        return 1\n\n",
        "@decorated\ndef g(x):\n    '''文档'''\n    return x\n",
        "// note\nexport const h = async (a) => { return a; }\n",
        "namespace n { template<class T> struct S { void m() {} }; }\n",
        "impl Foo for Bar { fn go(&self) {} }\n",
        "func (p *Pool) Get() int { return 1 }\n",
        "class B { int k() { return 2; } }\n",
        "foo() {\n  echo hi\n}\n",
        "{[(\"'`",
        "😀é\u2028\u00a0\x0b\x0c",
        "word" * 30,
    ]
)
TEXTS = st.one_of(
    st.text(st.characters(codec="utf-8"), max_size=400),
    st.lists(PIECES, max_size=60).map("".join),
)


@settings(max_examples=400, deadline=None)
@given(text=TEXTS, suffix=st.sampled_from(SUFFIXES), limit=st.integers(2, 300))
def test_passages_join_to_the_text_and_none_is_too_long(text, suffix, limit):
    cuts = cuts_of(text, f"folder/name{suffix}", limit)
    check_cuts(text, cuts, limit)
    assert bool(cuts) == bool(text)
    starts = [0, *(cut.end for cut in cuts)]
    data = b"".join(
        text[start : cut.end].encode() for start, cut in zip(starts, cuts, strict=False)
    )
    assert data == text.encode()
    assert all(cut.context.startswith("folder/name") for cut in cuts)


@settings(max_examples=200, deadline=None)
@given(text=st.lists(PIECES, max_size=40).map("".join))
def test_sections_of_markdown_begin_at_headings_in_order(text):
    sections = headings(text)
    assert sections[0].start == 0
    starts = [section.start for section in sections]
    assert starts == sorted(set(starts))
    for section in sections[1:]:
        line = text[section.start :].splitlines()[0]
        assert line.lstrip().startswith("#") or section.path[-1] == line.strip()[:80]


@pytest.mark.parametrize("lines", [True, False])
@given(before=st.integers(1, 99), limit=st.integers(2, 100))
def test_carriage_return_and_line_feed_stay_together(lines, before, limit):
    text = ("x" * before + "\r\n") * 9
    at = 0
    while at < len(text):
        at = chunk_end(text, at, limit, lines=lines)
        assert not (text[:at].endswith("\r") and text[at:].startswith("\n"))


NUMBERED = [
    f"Paragraph {n} tells of topic {n * 31 % 977}. It has {n % 7} parts. 第{n}段有中文。\n\n"
    for n in range(1200)
]
FUNCTIONS = [
    f"def function_{n}(x):\n    '''Function {n}.'''\n"
    + "".join(f"    x += {n * k % 89}  # step {k}\n" for k in range(25))
    + "    return x\n\n\n"
    for n in range(120)
]
CHAPTERS = [f"## Chapter {n}\n\n" + f"Words of chapter {n}. " * 30 + "\n\n" for n in range(120)]


@pytest.mark.parametrize(
    ("parts", "name"),
    [(NUMBERED, "a.txt"), (NUMBERED, "a.json"), (FUNCTIONS, "a.py"), (CHAPTERS, "a.md")],
)
@pytest.mark.parametrize("at", [0, 57, 100])
def test_a_change_changes_few_passages(parts, name, at):
    def passages(texts: list[str]) -> list[tuple[str, str]]:
        text = "".join(texts)
        cuts = cuts_of(text, name, 1500)
        starts = [0, *(cut.end for cut in cuts)]
        return [(text[s : c.end], c.context) for s, c in zip(starts, cuts, strict=False)]

    mark = "# " if name == "a.py" else ""
    before = set(passages(parts))
    changed = [*parts[:at], f"{mark}New words here, quite a few of them.\n" * 3, *parts[at:]]
    after = passages(changed)
    assert len([passage for passage in after if passage not in before]) <= 6
    assert len(after) > 30
