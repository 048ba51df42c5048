"""The plain Python behind the widgets: Markdown, wording, grouping, the strip."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growbox_app.api import (
    Attachment,
    EnginePhase,
    Phase,
    PhaseChanged,
    Problem,
    ProblemCode,
    ToolCalled,
    TurnStats,
)
from growbox_app.text import tr
from memory.values import (
    Block,
    BlockKind,
    Conversation,
    ConversationId,
    Node,
    NodeId,
    NodeKind,
    Project,
    ProjectId,
    RegionBlock,
    RegionSnapshot,
    Role,
    Statistics,
    StoreHealth,
)
from ui.view_models import region, wording
from ui.view_models.block_words import name_of
from ui.view_models.conversations import groups
from ui.view_models.display import broken_lines, one_line, title_line
from ui.view_models.highlight import pieces
from ui.view_models.markdown import (
    Code,
    Heading,
    Paragraph,
    Rule,
    Span,
    StreamingMarkdown,
    Table,
    parse,
)
from ui.view_models.transcript import message_of, split_attachments

SAMPLE = (
    "# Title\n\nText with `code`, **bold**, *it*, ~~no~~ and a [link](https://e.org).\nSecond line.\n\n"
    "- one\n  - inner\n\n  ```py\n  x = 1\n  ```\n- two\n\n3. three\n4. four\n\n> quoted\n\n"
    "| a | b |\n|---|--:|\n| 1 | 2 |\n\n---\n\n```python\nprint('hi')\n\nprint('there')\n```\nafter\n"
)


@pytest.fixture(autouse=True)
def _english() -> None:
    tr.use("en")


def text_of(paragraph: Paragraph) -> str:
    return "".join(span.text for span in paragraph.spans)


def test_markdown_becomes_blocks_of_every_kind() -> None:
    blocks = parse(SAMPLE)
    assert isinstance(blocks[0], Heading)
    assert Rule() in blocks
    table = next(block for block in blocks if isinstance(block, Table))
    assert table.aligned == ("left", "right")
    assert table.rows[0][1][0].text == "2"
    code = [block for block in blocks if isinstance(block, Code)]
    assert [block.language for block in code] == ["py", "python"]
    assert code[1].text == "print('hi')\n\nprint('there')"
    markers = [block.marker for block in blocks if isinstance(block, Paragraph) and block.marker]
    assert markers == ["•", "•", "•", "3.", "4."]
    assert any(isinstance(block, Paragraph) and block.quote for block in blocks)


def test_raw_html_and_images_stay_text() -> None:
    blocks = parse(
        '<img src="http://evil/x.png">\n\nbefore <script>x</script> ![pic](http://evil/y.png)\n'
    )
    first, second = blocks
    assert isinstance(first, Paragraph)
    assert isinstance(second, Paragraph)
    assert text_of(first) == '<img src="http://evil/x.png">'
    assert text_of(second) == "before <script>x</script> pic"
    assert second.spans[-1] == Span(
        text="pic", link="http://evil/y.png"
    ) or "http://evil/y.png" in {span.link for span in second.spans}


@given(st.lists(st.integers(0, len(SAMPLE)), max_size=12))
def test_streaming_does_not_depend_on_where_the_pieces_are_cut(cuts: list[int]) -> None:
    edges = [0, *sorted(cuts), len(SAMPLE)]
    streamed, whole = StreamingMarkdown(), StreamingMarkdown()
    for start, end in itertools.pairwise(edges):
        streamed.feed(SAMPLE[start:end])
    whole.feed(SAMPLE)
    assert streamed.finished == whole.finished
    assert streamed.tail == whole.tail


def test_streaming_finishes_a_block_at_a_blank_line_and_a_fence_at_its_end() -> None:
    stream = StreamingMarkdown()
    stream.feed("First para")
    assert stream.finished == []
    assert stream.tail == Paragraph(spans=(Span(text="First para"),))
    stream.feed("graph.\n\n")
    assert stream.finished == []
    stream.feed("N")
    assert [text_of(block) for block in stream.finished if isinstance(block, Paragraph)] == [
        "First paragraph."
    ]
    stream.feed("ext\n```rust\nfn main() {\n\n")
    assert stream.tail == Code(language="rust", text="fn main() {\n\n", closed=False)
    stream.feed("}\n```\n")
    assert stream.finished[-1] == Code(language="rust", text="fn main() {\n\n}")
    assert stream.tail is None


def test_streamed_blocks_are_those_of_the_whole_text() -> None:
    stream = StreamingMarkdown()
    stream.feed(SAMPLE + "\nend")
    assert tuple(stream.finished) == parse(SAMPLE)


def test_a_stored_question_shows_its_attachments_apart() -> None:
    content = "[笔记 · 1.txt · 10 B · n1]\n[fake · 1 B · n9]\nhello"
    node = Node(
        id=NodeId("q"),
        seq=1,
        kind=NodeKind.MESSAGE,
        role=Role.USER,
        content=content,
        created_at_ms=0,
        derived_from=(NodeId("n1"),),
    )
    text, attachments = split_attachments(node)
    assert text == "[fake · 1 B · n9]\nhello"
    assert attachments == (Attachment(node_id=NodeId("n1"), name="笔记 · 1.txt", size_bytes=10),)
    assert message_of(node).attachments == attachments


def test_a_problem_without_its_fields_still_reads() -> None:
    sentence = wording.problem(Problem(code=ProblemCode.MODEL_BROKEN, fields={"model": "Qwen"}))
    assert "Qwen" in sentence
    assert "{" not in sentence


def test_the_phase_line_says_what_how_much_and_how_long() -> None:
    reading = PhaseChanged(phase=Phase.READING, done=310, total=1_240, left_s=14.0)
    assert wording.phase(reading) == "reading 1,240 tokens · 25 % · 14 s left"
    fast = replace(reading, rate=94.4, left_s=8.4)
    assert wording.phase(fast) == "reading 1,240 tokens · 25 % · 94 tok/s · 8 s left"
    tr.use("zh")
    assert wording.phase(fast) == "正在阅读 1,240 个词元 · 25 % · 94 词元/秒 · 还需 8 秒"
    tr.use("en")
    assert wording.phase(PhaseChanged(phase=Phase.WRITING, rate=11.84)) == "writing 11.8 tok/s"
    assert wording.phase(PhaseChanged(phase=Phase.THINKING)) == "thinking"
    loading = PhaseChanged(phase=Phase.RECALLING, detail=EnginePhase.LOADING.value)
    assert wording.phase(loading) == "waiting for the model to load"


def test_the_figures_line_matches_the_design() -> None:
    stats = TurnStats(prompt_tokens=3_412, reused_tokens=3_310, answer_tokens=142, decode_s=12.03)
    line = "142 tok · 11.8 tok/s · 3,310 reused (97 %) · 102 new"
    assert wording.stats_line(stats) == line
    timed = replace(stats, prefill_s=0.43, first_token_s=0.6, recall_ms=18.0)
    assert wording.stats_line(timed) == f"{line} in 0.4 s"
    assert wording.stats_line(TurnStats()) == ""
    assert wording.stats_figures(timed).splitlines() == [
        "Prompt: 3,412 tokens, 3,310 of them from the KV cache (97 %).",
        "Read: 102 tokens in 0.4 s, 237 tok/s.",
        "Written: 142 tokens in 12.0 s, 11.8 tok/s.",
        "First word after 0.6 s; memory searched in 18 ms.",
    ]
    assert len(wording.stats_figures(stats).splitlines()) == 2
    tr.use("zh")
    assert wording.stats_line(timed) == (
        "142 词元 · 11.8 词元/秒 · 复用 3,310（97 %） · 新读 102，用时 0.4 秒"
    )
    tr.use("en")


def test_times_are_short_today_and_dated_before() -> None:
    now = 1_762_180_920_000
    assert len(wording.clock_time(now - 60_000, now)) == 5
    assert "Oct" in wording.clock_time(now - 20 * wording.DAY_MS, now)
    assert "2024" in wording.clock_time(now - 400 * wording.DAY_MS, now)


def test_sentences_of_either_language_stand_one_behind_the_other() -> None:
    assert wording.sentences("One.", "", "Two.") == "One. Two."
    assert (
        wording.sentences("风险：可以撤销。", "它会改动 a.txt。")
        == "风险：可以撤销。它会改动 a.txt。"
    )


@pytest.mark.parametrize(
    ("header", "words"),
    [
        ("@@ -48,7 +50,9 @@", "lines 48–54"),
        ("@@ -3 +3 @@", "line 3"),
        ("@@ -0,0 +1,2000 @@", "lines 1–2,000"),
        ("", ""),
    ],
)
def test_the_place_of_a_change_is_said_in_lines_of_the_file_as_it_is(
    header: str, words: str
) -> None:
    assert wording.place(header) == words


def test_a_block_without_words_is_named_by_who_speaks() -> None:
    assert name_of("**Bold**", BlockKind.ASSISTANT) == "Bold"
    assert name_of("", BlockKind.ASSISTANT) == "GrowBox"


def test_long_lines_are_broken_for_display_only_where_needed() -> None:
    text = "a" * 5_000 + "\nshort"
    broken = broken_lines(text, 2_000)
    assert max(len(line) for line in broken.split("\n")) == 2_000
    assert broken.replace("\n", "") == text.replace("\n", "")
    assert broken_lines("short\n" * 3) == "short\n" * 3
    assert one_line("  a \n b  ") == "a b"
    assert title_line("**Bold** `x`") == "Bold x"


def test_highlighted_code_is_the_code() -> None:
    source = "def f(x):\n    return 'é' # 1\n"
    assert "".join(piece.text for piece in pieces(source, "py")) == source
    assert {piece.token for piece in pieces(source, "py")} >= {
        "code_keyword",
        "code_string",
        "code_comment",
    }
    assert "".join(piece.text for piece in pieces(source, "no-such-language")) == source


def test_conversations_stand_under_their_projects() -> None:
    project = Project(id=ProjectId("p"), name="p", path="/p", created_at_ms=0)

    def conversation(name: str, project_id: str | None) -> Conversation:
        owner = ProjectId(project_id) if project_id else None
        return Conversation(
            id=ConversationId(name), title=name, project_id=owner, created_at_ms=0, updated_at_ms=0
        )

    made = groups(
        (project,), (conversation("a", "p"), conversation("b", None), conversation("c", "gone"))
    )
    assert [[item.id for item in group.conversations] for group in made] == [["a"], ["b", "c"]]


def snapshot(*tokens: int) -> RegionSnapshot:
    blocks = tuple(
        RegionBlock(
            block=Block(
                id=at,
                turn=0,
                kind=BlockKind.USER,
                node_id=NodeId(str(at)),
                text="",
                tokens=count,
                loaded_at_ms=0,
            ),
            heat=1.0,
            pinned=False,
            cached=True,
            title=str(at),
        )
        for at, count in enumerate(tokens)
    )
    return RegionSnapshot(
        conversation_id=None,
        window_tokens=1_000,
        system_tokens=100,
        reserve_tokens=200,
        blocks=blocks,
    )


def test_the_strip_fills_the_window_exactly() -> None:
    made = region.parts(snapshot(50, 150))
    assert [part.kind for part in made] == ["system", "user", "user", "free", "reserve"]
    assert sum(part.tokens for part in made) == 1_000
    assert all(
        before.start + before.tokens == after.start for before, after in itertools.pairwise(made)
    )
    under = region.part_at(snapshot(50, 150), 160)
    assert under is not None
    assert under.block is not None
    assert under.block.title == "1"


def test_counts_of_one_are_singular() -> None:
    assert wording.counted("queue.count", 1) == "1 block"
    assert wording.counted("queue.count", 1_200) == "1,200 blocks, hottest first"
    assert wording.counted("status.indexing", 1) == "Indexing 1 memory"
    assert wording.counted("fatigue.accesses", 1) == "Over the last access."


@pytest.mark.parametrize("language", ["en", "zh"])
def test_machine_names_are_words(language: str) -> None:
    tr.use(language)
    call = ToolCalled(name="memory_search", arguments="{}", result="3", ok=True)
    store = StoreHealth(name="vectors", ok=False, items=0, lag=0, bytes=0)
    said = (
        wording.tool_line(call),
        wording.tool_line(replace(call, ok=False)),
        wording.phase(PhaseChanged(phase=Phase.TOOL, detail="memory_search")),
        wording.health(statistics_of(store))[0],
    )
    assert not any("_" in words or "vectors" in words for words in said), said
    assert wording.tool_line(replace(call, name="unknown")) == "unknown · 3"


def statistics_of(store: StoreHealth) -> Statistics:
    return Statistics(
        nodes=0,
        conversations=0,
        embedded=0,
        pending_embeddings=0,
        edges=0,
        learning_events=0,
        stores=(store,),
    )


def test_a_full_disk_without_a_figure_names_only_the_place() -> None:
    full = Problem(code=ProblemCode.DISK_FULL, fields={"path": "/d", "need": ""})
    assert wording.problem(full) == tr("problem.disk_full_plain", path="/d")
    some = Problem(code=ProblemCode.DISK_FULL, fields={"path": "/d", "need": "2 GB"})
    assert "2 GB more" in wording.problem(some)
