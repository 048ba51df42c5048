"""The plain Python behind stain map, pointer graph, ledger and the line of the search."""

from __future__ import annotations

import itertools
import time
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from growbox_app.api import Attachment, DeepSearchState
from growbox_app.text import tr
from memory.values import (
    Depth,
    Fragment,
    KSample,
    LedgerSnapshot,
    NodeId,
    StainSnapshot,
    StainSpan,
)
from tests.fakes.assistant import START_MS, ScriptedAssistant
from tests.gui.past import DAY_MS, FIRST, LAST, moment, neighbourhood, search, stain_map
from ui.view_models import ledger, pointers, searching, stains, wording
from ui.view_models.enclosures import Citation, attachments_of, cited_of
from ui.view_models.stains import InView, Stretch, Timeline

NOW_MS = START_MS + 3_600_000


@pytest.fixture(autouse=True)
def english() -> None:
    """English."""
    tr.use("en")


# -- stains -----------------------------------------------------------------------------------
def stretches(timeline: Timeline) -> list[Stretch]:
    """The whole timeline, walked from stretch to stretch."""
    found: list[Stretch] = []
    at = timeline.snapshot.first_seq
    while (stretch := timeline.at(at)) is not None:
        found.append(stretch)
        at = stretch.last_seq + 1
    return found


def test_stretches_fill_the_timeline_without_a_hole() -> None:
    found = stretches(Timeline(stain_map()))
    assert (found[0].first_seq, found[-1].last_seq) == (FIRST, LAST)
    assert sum(item.notes for item in found) == LAST
    depths = [item.depth for item in found]
    assert depths == [None, Depth.LIGHT, None, Depth.DEEP, None, Depth.LIGHT, None, Depth.DEEP]


def test_an_empty_timeline_has_no_stretch_and_an_unread_one_has_one() -> None:
    nothing = StainSnapshot(first_seq=0, last_seq=0, first_ms=0, last_ms=0, nodes=0)
    assert Timeline(nothing).at(0) is None
    assert Timeline(nothing).next_stretch(0, 1) == 0
    assert Timeline(nothing).runs(stains.all_of(nothing), 100) == ()
    assert stains.summary(nothing) == ""
    (unread,) = stretches(Timeline(replace(stain_map(), spans=())))
    assert (unread.first_seq, unread.last_seq, unread.depth) == (FIRST, LAST, None)
    assert stains.summary(stain_map()) == "21 % deep · 18 % light"


def timeline_of(parts: list[tuple[int, int, Depth]]) -> Timeline:
    """Spans of (notes, notes left out before it, depth), from place 5 on."""
    spans: list[StainSpan] = []
    at = 5
    for notes, gap, depth in parts:
        first, last = at + gap, at + gap + notes - 1
        times = {"first_ms": first, "last_ms": last}
        spans.append(StainSpan(first_seq=first, last_seq=last, depth=depth, clusters=1, **times))
        at = last + 1
    ends = {"first_seq": 5, "last_seq": at, "first_ms": 5, "last_ms": at}
    return Timeline(StainSnapshot(**ends, nodes=at - 4, spans=tuple(spans)))


SPANS = st.lists(
    st.tuples(st.integers(1, 60), st.integers(0, 60), st.sampled_from(Depth)), max_size=12
)


@given(SPANS)
def test_any_spans_make_stretches_that_touch(parts: list[tuple[int, int, Depth]]) -> None:
    timeline = timeline_of(parts)
    found = stretches(timeline)
    covered = [seq for item in found for seq in range(item.first_seq, item.last_seq + 1)]
    assert covered == list(range(5, timeline.snapshot.last_seq + 1))
    assert all(timeline.time_at(seq) <= timeline.time_at(seq + 1) for seq in covered)
    walked = [5]
    while (after := timeline.next_stretch(walked[-1], 1)) != walked[-1]:
        walked.append(after)
    starts = [item.first_seq for item in found]
    assert walked[: len(starts)] == starts
    for here, there in itertools.pairwise(starts):
        assert timeline.next_stretch(there, -1) == here


@given(SPANS, st.integers(1, 400), st.floats(1, 40), st.floats(0, 1))
def test_what_is_painted_is_what_is_there(
    parts: list[tuple[int, int, Depth]], width: int, factor: float, share: float
) -> None:
    timeline = timeline_of(parts)
    view = stains.all_of(timeline.snapshot).zoomed(factor, share)
    runs = timeline.runs(view, width)
    assert all(0 <= left < end <= width for left, end, _depth in runs)
    assert all(first[1] <= second[0] for first, second in itertools.pairwise(runs))
    painted = {pixel: depth for left, end, depth in runs for pixel in range(left, end)}
    for span in timeline.snapshot.spans:
        middle = view.place((span.first_seq + span.last_seq + 1) / 2) * width
        if 0.5 < middle < width - 1.5:
            near = {painted.get(int(middle) + step) for step in (-1, 0, 1)}
            assert span.depth in near or Depth.DEEP in near
    for pixel, depth in painted.items():
        edges = [view.start + (pixel + step) / width * view.notes for step in (-1, 2)]
        reach = range(int(edges[0]) - 1, int(edges[1]) + 2)
        assert depth in {stretch.depth for seq in reach if (stretch := timeline.at(seq))}


def test_ten_thousand_spans_are_painted_at_once() -> None:
    timeline = timeline_of([(1, 3, Depth.DEEP if at % 3 else Depth.LIGHT) for at in range(10_000)])
    started = time.perf_counter()
    runs = timeline.runs(stains.all_of(timeline.snapshot), 300)
    assert time.perf_counter() - started < 0.5
    assert runs == ((0, 300, Depth.DEEP),)


def test_zooming_keeps_the_place_under_the_mouse_and_stays_inside() -> None:
    whole = stains.all_of(stain_map())
    assert whole.whole
    near = whole.zoomed(4.0, 0.25)
    assert near.notes == LAST / 4
    assert near.start + 0.25 * near.notes == pytest.approx(whole.start + 0.25 * whole.notes)
    assert near.zoomed(0.001).whole
    nearest = whole.zoomed(1e9)
    assert nearest.notes == stains.NOTES_MIN
    assert nearest.panned(1e9).start == LAST + 1 - stains.NOTES_MIN
    assert nearest.panned(-1e9).start == FIRST


@given(st.lists(st.tuples(st.floats(0.2, 5.0), st.floats(0, 1), st.floats(-2, 2)), max_size=20))
def test_no_way_of_moving_leaves_the_timeline(moves: list[tuple[float, float, float]]) -> None:
    view = stains.all_of(stain_map())
    for factor, share, pan in moves:
        view = view.zoomed(factor, share).panned(pan)
        assert view.low <= view.start
        assert view.start + view.notes <= view.high + 1e-6
        assert FIRST <= view.seq(share) <= LAST


def test_a_view_of_all_stays_one_when_the_timeline_grows() -> None:
    grown = replace(stain_map(), last_seq=LAST + 50, nodes=LAST + 50)
    assert stains.kept(stains.all_of(stain_map()), grown).whole
    near = stains.all_of(stain_map()).zoomed(8)
    assert stains.kept(near, grown).start == near.start
    assert stains.kept(near, grown).high == LAST + 51


def test_a_view_moves_as_little_as_needed_to_hold_a_note() -> None:
    view = InView(low=1, high=1_001, start=400, notes=100)
    assert view.holding(450) == view
    assert view.holding(500).start == 401
    assert view.holding(10).start == 10


def test_ticks_are_dates_and_hours_when_near() -> None:
    found, whole = Timeline(stain_map()), stains.all_of(stain_map())
    words = [word for _share, word in stains.ticks(found, whole, 4, NOW_MS)]
    assert len(words) == 4
    assert not any(":" in word for word in words)
    near = stains.ticks(found, whole.zoomed(100, 1.0), 4, NOW_MS)
    assert all(":" in word for _share, word in near)
    one_day = stains.ticks(found, whole.zoomed(40, 0.5), 30, NOW_MS)
    assert len({word for _share, word in one_day}) == len(one_day)


@pytest.mark.parametrize(
    ("language", "wanted"),
    [
        ("en", "80 notes · skimmed: there may be gaps · for 2 kinds of question"),
        ("zh", "80 条记忆 · 略读过：可能有遗漏 · 针对 2 类问题"),
    ],
)
def test_a_stretch_says_when_how_much_and_how_well(language: str, wanted: str) -> None:
    tr.use(language)
    stretch = Timeline(stain_map()).at(555)
    assert stretch is not None
    days = stains.dates(moment(521), moment(600), NOW_MS)
    assert stains.describe(stretch, NOW_MS) == f"{days} · {wanted}"
    assert stains.dates(moment(600), moment(521), NOW_MS) == days
    assert stains.dates(START_MS, START_MS, NOW_MS) == wording.day(START_MS, NOW_MS)


# -- pointers ---------------------------------------------------------------------------------
MIDDLE = NodeId("m")
OTHERS = tuple(NodeId(f"o{at}") for at in range(5))


def test_neighbours_arrive_first_and_the_hottest_of_each_side_leads() -> None:
    found = pointers.neighbours(neighbourhood(MIDDLE, OTHERS))
    assert [item.node_id for item in found] == list(OTHERS)
    assert [item.leaving for item in found] == [False, False, True, True, True]
    assert found[0].title.startswith("We pick DuckDB")


def test_width_grows_with_heat() -> None:
    found = pointers.neighbours(neighbourhood(MIDDLE, OTHERS))
    widths = [pointers.line_width(item.edge, 7) for item in found]
    assert widths == sorted(widths, reverse=True)
    assert widths[0] == pointers.WIDTH_MAX
    assert pointers.line_width(replace(found[0].edge, heat=0), 0) == pointers.WIDTH_MIN


@given(st.integers(0, 12), st.integers(0, 12), st.floats(60, 1_600), st.floats(30, 900))
def test_boxes_never_overlap_and_lie_inside(
    arriving: int, leaving: int, width: float, height: float
) -> None:
    edge = neighbourhood(MIDDLE, OTHERS).leaving[0]
    found = tuple(
        pointers.Neighbour(edge=edge, leaving=at >= arriving) for at in range(arriving + leaving)
    )
    drawn = pointers.drawing(found, width, height)
    boxes = [drawn.centre, *(box for _item, box in drawn.boxes)]
    for at, box in enumerate(boxes):
        assert box.left >= -1e-6
        assert box.right <= width + 1e-6
        assert box.top >= -1e-6
        assert box.bottom <= max(height, pointers.ROW_PIXELS) + 1e-6
        for other in boxes[at + 1 :]:
            apart = box.bottom <= other.top + 1e-6 or other.bottom <= box.top + 1e-6
            aside = box.right <= other.left + 1e-6 or other.right <= box.left + 1e-6
            assert apart or aside
    assert drawn.columns is (width >= pointers.WIDE_PIXELS)


def test_each_side_gets_the_rows_that_the_other_does_not_need() -> None:
    edge = neighbourhood(MIDDLE, OTHERS).leaving[0]
    many = tuple(pointers.Neighbour(edge=edge, leaving=True) for _ in range(9))
    row = pointers.ROW_PIXELS + pointers.GAP_PIXELS
    assert len(pointers.drawing(many, 300, 6 * row).boxes) == 5
    mixed = tuple(replace(item, leaving=at > 3) for at, item in enumerate(many))
    sides = [item.leaving for item, _box in pointers.drawing(mixed, 300, 5 * row).boxes]
    assert sides == [False, False, True, True]


@pytest.mark.parametrize(
    ("language", "edge", "sample"),
    [
        (
            "en",
            " · heat 5 · followed for 1 question · refused for 1 question",
            "Refused for: What is for lunch? · weight 1 · ",
        ),
        (
            "zh",
            " · 热度 5 · 曾为 1 个问题走过 · 曾为 1 个问题放弃",
            "放弃: 午饭吃什么？ · 权重 1 · ",
        ),
    ],
)
def test_an_edge_and_its_questions_are_said_in_words(language: str, edge: str, sample: str) -> None:
    tr.use(language)
    third = pointers.neighbours(neighbourhood(MIDDLE, OTHERS, language))[2]
    assert pointers.describe(third).endswith(edge)
    against = third.edge.negative[0]
    assert pointers.describe_sample(against, NOW_MS, positive=False).startswith(sample)
    followed = KSample(text="q", weight=3, used_at_ms=START_MS - DAY_MS)
    words = pointers.describe_sample(followed, NOW_MS, positive=True)
    assert words.endswith(wording.age(followed.used_at_ms, NOW_MS))
    forced = pointers.neighbours(neighbourhood(MIDDLE, OTHERS, language))[1]
    assert pointers.describe(forced).endswith(tr("pointers.forced"))


# -- the ledger -------------------------------------------------------------------------------
def test_a_debt_says_its_dates_size_and_progress() -> None:
    old = Fragment(
        entry_seq=400, target_seq=120, query="a\nb", created_at_ms=START_MS, remaining=70
    )
    new = Fragment(entry_seq=9, target_seq=7, query="c", created_at_ms=START_MS, remaining=1)
    snapshot = LedgerSnapshot(open=(old, new), cleared=0, nodes=0)
    assert ledger.ends(snapshot) == (120, 400, 7, 9)
    jumped = replace(new, entry_title="# began", target_title="landed")
    turned = replace(jumped, entry_seq=7, target_seq=9)
    assert [ledger.Debt(fragment=item).titles for item in (jumped, turned)] == [
        ("landed", "began"),
        ("began", "landed"),
    ]
    debt, newest = ledger.debts(snapshot, {120: moment(120), 400: moment(400)})
    assert (debt.question, debt.size) == ("a b", 279)
    assert debt.read_share == pytest.approx(1 - 70 / 279)
    first, last = wording.day(moment(120), NOW_MS), wording.day(moment(400), NOW_MS)
    assert ledger.facts(debt, NOW_MS).startswith(
        f"{first} – {last} · 70 of 279 notes unread · since"
    )
    assert (newest.size, newest.read_share) == (1, 0.0)
    assert ledger.facts(newest, NOW_MS).startswith("7 – 9 · 1 of 1 notes unread")


def test_only_the_debts_that_are_read_next_are_listed() -> None:
    many = tuple(
        Fragment(entry_seq=at + 9, target_seq=at, query=str(at), created_at_ms=0, remaining=8)
        for at in range(ledger.ROWS_MAX + 5)
    )
    listed = ledger.debts(LedgerSnapshot(open=many, cleared=0, nodes=0), {})
    assert [listed[0].question, listed[-1].question] == ["0", "199"]
    assert max(ledger.ends(LedgerSnapshot(open=many, cleared=0, nodes=0))) == 199 + 9


# -- the line of the search ---------------------------------------------------------------------
@pytest.mark.parametrize(
    ("language", "state", "wanted"),
    [
        ("en", "running", "Looking further back… 3 Nov, 96 notes"),
        ("en", "paused", "Searched back to 3 Nov, 96 notes. Keep going?"),
        ("en", "found", "Found something relevant:"),
        ("en", "nothing", "Searched everything, nothing more found."),
        ("en", "unavailable", "Could not look further back: no model was there to judge."),
        ("zh", "running", "正在往前查找… 已到 11月3日，96 条记忆"),
        ("zh", "paused", "已查到 11月3日，共 96 条记忆。要继续吗？"),
    ],
)
def test_each_state_of_a_search_is_one_sentence(language: str, state: str, wanted: str) -> None:
    tr.use(language)
    made = search(NodeId("a"), DeepSearchState(state))
    said = searching.notice(made, NOW_MS)
    assert said.replace(" 月 ", "月").replace(" 日", "日") == wanted
    begun = searching.notice(replace(made, back_to_ms=None), NOW_MS)
    assert "96" not in begun
    assert begun


def test_what_was_found_is_named_and_what_it_cost_is_said() -> None:
    assistant = ScriptedAssistant()
    memories = (assistant.used("**Loader** notes", way="scan"), assistant.used("other"))
    made = search(NodeId("a"), DeepSearchState.FOUND, memories)
    assert searching.found_title(made) == "Loader notes and 1 more"
    assert searching.found_title(replace(made, memories=memories[:1])) == "Loader notes"
    assert searching.found_title(replace(made, memories=())) == ""
    line = searching.trace_line(made, NOW_MS)
    assert line == "Looked further back: back to 3 Nov, 96 notes read · 14 notes judged."
    cached = replace(made, back_to_ms=None, judged=1)
    assert searching.trace_line(replace(cached, judged=0), NOW_MS) == ""
    assert searching.trace_line(cached, NOW_MS) == "Looked further back: 1 note judged."


# -- what goes out with a question ----------------------------------------------------------------
def test_enclosures_are_told_apart() -> None:
    file = Attachment(node_id=NodeId("f"), name="f.txt", size_bytes=1)
    one, two = (Citation(node_id=NodeId(name), title=name) for name in "ab")
    assert attachments_of((one, file, two)) == (file,)
    assert cited_of((one, file, two, one)) == ("a", "b")
