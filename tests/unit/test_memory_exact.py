"""The exact layer: stages in turn, stop at the first yes, what is learned and what never is, the resumable scan."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest

from memory.config import ExactConfig, FollowMode, LearningConfig
from memory.events import LearningRecorded
from memory.values import Depth, NodeId, Way
from tests.fakes.memory_world import NO_HOST, MemoryWorld

FILLER = 40


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    yield world
    world.engine.close()


def fill(world: MemoryWorld, count: int = FILLER, start: int = 0) -> list[NodeId]:
    """Statements that share no word with any question."""
    conversation = world.conversation()
    nodes = [world.say(f"filler{n}x lorem{n}y", conversation) for n in range(start, start + count)]
    return [node.id for node in nodes]


def stored(world: MemoryWorld) -> tuple:
    """All that learning has written, byte for byte."""
    pointers = world.engine._stores.pointers
    return dict(pointers.records()), pointers.counts(), world.engine._stores.log.last_id()


def ids(result) -> list[NodeId]:
    return [page.node.id for page in result.pages]


# --- the stages


def test_the_entries_themselves_are_judged(world):
    fact = world.say("The staging box is called heron")
    fill(world)
    world.judge.yes = {"heron"}
    result = world.search("which staging machine")
    assert ids(result) == [fact.id]
    assert result.pages[0].way is Way.ENTRY
    assert result.judged <= 8
    assert result.back_to_seq is None


def test_the_scan_finds_what_no_word_and_no_vector_leads_to(world):
    fact = world.say("heron heron heron")
    fill(world)
    world.embedder.out = True
    world.judge.yes = {"heron"}
    result = world.search("zebra machine title", judgements_max=100)
    assert ids(result) == [fact.id]
    assert result.pages[0].way is Way.SCAN
    assert result.notes_read == FILLER + 1
    assert result.back_to_seq == fact.seq


def test_a_repeated_question_is_answered_by_the_remembered_verdict(world):
    fact = world.say("heron heron heron")
    fill(world)
    world.judge.yes = {"heron"}
    first = world.search("zebra machine title", judgements_max=100)
    again = world.search("Zebra MACHINE title")
    assert first.judged > 0
    assert (again.judged, again.cached) == (0, 1)
    assert [(p.node.id, p.way) for p in again.pages] == [(fact.id, Way.VERDICT)]


def test_a_jump_needs_no_judge_and_outlives_a_restart(world):
    fact = world.say("heron heron heron")
    asked = world.say("what is the zebra machine title?")
    fill(world)
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    world.reopen()
    result = world.search("the title of the zebra machine", judgements_max=100)
    assert [(p.node.id, p.way) for p in result.pages] == [(fact.id, Way.JUMP)]
    assert result.judged == 0
    assert world.engine.statistics().jumps == 1
    assert world.engine.neighbourhood(asked.id).leaving[0].forced


def test_a_jump_is_no_answer_to_another_question(world):
    """Its door is not near: a pinned memory must not stop every search (seed defect 1.12-2)."""
    fact = world.say("heron heron heron")
    asked = world.say("what is the zebra machine title?")
    fill(world)
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    assert world.search("filler3x lorem3y unrelated").pages == ()


def test_an_edge_is_followed_by_cosine_or_read_first(tmp_path):
    for mode, judged in ((FollowMode.COSINE, 0), (FollowMode.JUDGE, 1)):
        config = replace(NO_HOST, exact=ExactConfig(follow=mode))
        world = MemoryWorld(tmp_path / mode, config)
        fact = world.say("heron heron heron")
        asked = world.say("what is the zebra machine title?")
        fill(world)
        world.digest()
        page = world.recall("heron").pages[0]
        world.recall(asked.content)
        world.engine.learn_used(query=asked.content, question_id=asked.id, used=(page,))
        world.judge.yes = {"heron"}
        result = world.search("what is the zebra machine title??")
        assert [(p.node.id, p.way) for p in result.pages] == [(fact.id, Way.POINTER)]
        assert result.judged == judged
        world.engine.close()


def test_a_refused_edge_in_judge_mode_gets_a_negative(tmp_path):
    world = MemoryWorld(
        tmp_path / "m", replace(NO_HOST, exact=ExactConfig(follow=FollowMode.JUDGE))
    )
    fact = world.say("heron heron heron")
    asked = world.say("what is the zebra machine title?")
    page = world.recall("heron").pages[0]
    world.recall(asked.content)
    world.engine.learn_used(query=asked.content, question_id=asked.id, used=(page,))
    assert world.search("what is the zebra machine title??").pages == ()
    (edge,) = world.engine.neighbourhood(asked.id).leaving
    assert edge.target_id == fact.id
    assert [sample.text for sample in edge.negative] == [asked.content]
    world.engine.close()


def test_the_hottest_anchors_are_judged_before_the_scan(world):
    fact = world.say("heron heron heron")
    fill(world, 60)
    world.embedder.out = True
    world.judge.yes = {"heron"}
    world.search("zebra machine title", judgements_max=100)
    assert world.engine.statistics().anchors == 1
    world.judge.read.clear()
    result = world.search("quagga appliance label", judgements_max=100)
    assert [(p.node.id, p.way) for p in result.pages] == [(fact.id, Way.ANCHOR)]
    assert world.judge.read == [fact.content]


def test_hits_on_questions_lead_to_evidence_and_questions_are_never_judged(world):
    fact = world.say("The heron is grey")
    asked = world.say("what is the zebra machine title?")
    world.answer(asked, "It is grey", derived_from=(fact.id,))
    world.judge.yes = {"heron"}
    result = world.search("say the zebra machine title")
    assert ids(result) == [fact.id]
    assert world.judge.read == [fact.content]


# --- what is never returned


def test_excluded_rejected_and_inactive_nodes_are_neither_judged_nor_returned(world):
    shown = world.say("heron one zebra")
    rejected = world.say("heron two zebra")
    hidden = world.say("heron three zebra")
    database = world.engine._stores.database
    database.execute("UPDATE nodes SET branch_active = 0 WHERE id = ?", (hidden.id,))
    world.judge.yes = {"heron"}
    result = world.search(
        "zebra title", exclude=frozenset({shown.id}), rejected=frozenset({rejected.id})
    )
    assert result.pages == ()
    assert world.judge.read == []
    assert result.complete
    database.execute("UPDATE nodes SET branch_active = 1 WHERE id = ?", (hidden.id,))
    found = world.search("zebra title", rejected=frozenset({rejected.id}))
    assert set(ids(found)) == {hidden.id, shown.id}


def test_what_the_user_called_not_relevant_stays_away_even_when_forced(world):
    fact = world.say("heron one zebra")
    world.judge.yes = {"heron"}
    assert ids(world.search("zebra title")) == [fact.id]
    world.engine.learn_not_relevant(query="zebra title", memory_id=fact.id)
    assert world.search("zebra title").pages == ()
    assert world.search("zebra title", forced=True).pages == ()


# --- three-valued verdicts


def test_a_dead_judge_changes_no_byte(world):
    fact = world.say("heron one zebra")
    fill(world)
    world.judge.yes = {"heron"}
    world.search("zebra title")
    asked = world.say("quagga label?")
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    before = stored(world)
    world.judge.out = True
    assert world.search("another thing altogether", judgements_max=100).degraded == ("judge",)
    assert ids(world.search("quagga label")) == [fact.id]  # a jump needs no judge
    assert stored(world) == before
    assert world.engine.ledger().open == ()


def test_unknown_stains_nothing_and_is_read_again(world):
    fact = world.say("heron one zebra")
    world.judge.unknown = {"heron"}
    before = stored(world)
    assert world.search("zebra title").pages == ()
    assert stored(world) == before
    world.judge.unknown, world.judge.yes = set(), {"heron"}
    assert ids(world.search("zebra title")) == [fact.id]


def test_an_unknown_in_the_middle_leaves_a_gap_in_the_stain(world):
    fill(world, 5)
    fact = world.say("heron")
    fill(world, 5, start=5)
    world.judge.unknown = {"heron"}
    assert world.search("zebra title").complete
    spans = world.engine.stains().spans
    assert [(s.first_seq, s.last_seq, s.depth) for s in spans] == [
        (1, fact.seq - 1, Depth.DEEP),
        (fact.seq + 1, fact.seq + 5, Depth.DEEP),
    ]
    world.judge.unknown, world.judge.yes, world.judge.read = set(), {"heron"}, []
    assert ids(world.search("zebra title")) == [fact.id]
    assert world.judge.read == ["heron"]


def test_an_untrusted_judge_only_suggests(world):
    fact = world.say("heron one zebra")
    fill(world)
    world.judge.yes, world.judge.trusted = {"heron"}, False
    before = stored(world)
    result = world.search("zebra title")
    assert (ids(result), result.trusted) == ([fact.id], False)
    world.search("nothing of this is there", judgements_max=100)
    assert stored(world) == before
    assert world.engine.stains().spans == ()


def test_a_verdict_stands_for_the_same_question_in_other_words(world):
    heron, crane = world.say("heron title zebra"), world.say("crane title zebra")
    fill(world, 20)
    world.digest()
    world.judge.yes = {"heron"}
    assert ids(world.search("zebra title")) == [heron.id]
    world.judge.yes, world.judge.read = {"crane"}, []
    found = world.search("Title: zebra!")
    assert [(p.node.id, p.way) for p in found.pages] == [(heron.id, Way.VERDICT)]
    assert world.judge.read == []
    other = world.search("Title: zebra!", rejected=frozenset({heron.id}), forced=True)
    assert ids(other) == [crane.id]
    assert ids(world.search("zebra title")) == [heron.id], "each wording's own answer comes first"
    assert ids(world.search("Title: zebra!")) == [crane.id]


LARGE, SMALL = "name the title of the large zebra", "name the title of the small zebra"
"""Near, by the hash embedder, but not the same."""


def test_what_was_read_for_a_question_near_this_one_is_checked_on_a_sample(world):
    for n in range(8):
        world.say(f"the title of zebra number{n}x")
    fill(world, 20)
    world.digest()
    first = world.search(LARGE, judgements_max=8)
    near = world.search(SMALL, judgements_max=8)
    again = world.search(SMALL, judgements_max=8)
    checked = ExactConfig().entries_checked
    assert (first.judged, near.judged, again.judged) == (8, checked, 0)
    assert len(set(world.judge.read)) == 8
    forced = world.search(SMALL, judgements_max=8, forced=True)
    assert forced.judged == 8


def test_a_question_near_another_is_answered_by_what_the_other_was_refused(world):
    fact = world.say("heron title of the zebra")
    fill(world, 20)
    world.digest()
    world.search(LARGE, judgements_max=100)
    assert fact.content in world.judge.read
    world.judge.yes = {"heron"}
    assert ids(world.search(SMALL)) == [fact.id]


def test_what_answered_a_question_near_this_one_is_read_before_it_is_shown(world):
    fact = world.say("heron title of the zebra")
    fill(world, 20)
    world.digest()
    world.judge.yes = {"heron"}
    world.search(LARGE)
    world.judge.read.clear()
    found = world.search(SMALL)
    assert [(p.node.id, p.way) for p in found.pages] == [(fact.id, Way.VERDICT)]
    assert world.judge.read == [fact.content]
    assert world.search(SMALL).judged == 0


def test_the_judge_reads_when_and_by_whom_it_was_said(world):
    world.say("heron zebra title", created_at_ms=1_683_547_200_000)
    world.search("zebra title")
    world.search("zebra 的名字")
    assert world.judge.headed == [
        "[8 May, 2023] User: heron zebra title",
        "[2023年5月8日] 用户：heron zebra title",
    ]


def test_another_judge_reads_anew(world):
    fact = world.say("heron")
    fill(world, 5)
    assert world.search("zebra title").complete
    world.judge.name, world.judge.yes = "better", {"heron"}
    assert ids(world.search("zebra title")) == [fact.id]


def test_a_node_read_for_one_question_is_still_found_for_another(world):
    fact = world.say("heron")
    fill(world, 20)
    assert world.search("zebra title", judgements_max=100).complete
    world.judge.yes = {"heron"}
    assert ids(world.search("quagga label", judgements_max=100)) == [fact.id]


# --- the cursor


def test_the_scan_goes_on_where_it_stopped(world):
    fact = world.say("heron")
    fill(world)
    world.judge.yes = {"heron"}
    before, seen = None, []
    for _ in range(20):
        result = world.search("zebra title", judgements_max=8, before_seq=before)
        seen.append((result.judged, result.back_to_seq))
        if result.pages:
            break
        assert result.back_to_seq is not None
        assert result.back_to_ms is not None
        assert not result.complete
        before = result.back_to_seq
    assert ids(result) == [fact.id]
    assert len(world.judge.read) == len(set(world.judge.read)), "nothing is read twice"


def test_a_question_that_used_up_its_budget_reads_only_what_is_new(world):
    fill(world)
    first = world.search("zebra title", judgements_max=16)
    again = world.search("zebra title", judgements_max=16)
    assert (first.judged, again.judged) == (16, 0)
    assert again.back_to_seq == first.back_to_seq
    assert not again.complete
    new = world.say("heron")
    world.judge.yes = {"heron"}
    found = world.search("zebra title", judgements_max=16)
    assert (ids(found), found.judged) == ([new.id], 1)


def test_a_forced_search_reads_what_was_answered_before(world):
    fact = world.say("heron")
    fill(world, 3)
    assert world.search("zebra title").complete
    world.judge.yes = {"heron"}
    assert world.search("zebra title").pages == ()
    assert ids(world.search("zebra title", forced=True)) == [fact.id]


def test_the_time_budget_is_measured_between_batches(world):
    fill(world)
    judge = world.judge

    class Slow:
        def __call__(self, request):
            world.clock.advance(1.0 if request.candidates else 0.0)
            return judge(request)

    world.judge = Slow()
    result = world.search("zebra title", judgements_max=100, budget_s=2.5)
    assert result.judged == 24
    assert result.elapsed_ms == 3000


def test_no_node_is_put_before_the_judge_twice_in_one_search(world):
    fill(world)
    world.digest()
    world.search("filler3x filler5x", judgements_max=100, forced=True)
    assert len(world.judge.read) == len(set(world.judge.read))


# --- by-products


def test_counts_are_audited(world):
    fill(world, 10)
    world.search("zebra title")
    assert world.engine.audit(fix=False, full=True).clean
    assert world.engine.statistics().stains == 1
    cache = world.engine._stores.pointers._cache
    cache.set("m:counts", cache.get("m:counts").replace(b'"stains":1', b'"stains":7'))
    assert not world.engine.audit(fix=False, full=True).clean
    assert world.engine.audit(fix=True, full=True).clean
    assert world.engine.statistics().stains == 1


def test_one_event_per_batch(world):
    fill(world, 32)
    world.search("zebra title", judgements_max=100)
    assert world.judge.batches == len(world.events.of(LearningRecorded))
    assert world.engine.statistics().learning_events == world.judge.batches


def test_a_jump_leaves_a_debt_that_reading_pays(world):
    fact = world.say("heron")
    fill(world, 10)
    asked = world.say("what is the zebra machine title?")
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    again = world.say("what is the zebra machine title??")
    assert ids(world.search(again.content, question_id=again.id)) == [fact.id]
    (debt,) = world.engine.ledger().open
    assert (debt.entry_seq, debt.target_seq) == (asked.seq, fact.seq)
    assert (debt.size, debt.remaining, debt.progress) == (10, 10, 0.0)
    assert debt.target_title == "heron"
    assert world.engine.fatigue().debt > 0
    world.search(
        again.content, question_id=again.id, forced=True, before_seq=asked.seq, judgements_max=4
    )
    (debt,) = world.engine.ledger().open
    assert debt.remaining == 6
    world.search(again.content, question_id=again.id, forced=True, before_seq=asked.seq)
    assert (world.engine.ledger().open, world.engine.ledger().cleared) == ((), 1)


def test_light_stains_mark_where_a_jump_has_landed(world):
    fact = world.say("heron")
    asked = world.say("what is the zebra machine title?")
    world.engine.learn_cited(query=asked.content, question_id=asked.id, target_id=fact.id)
    world.search("what is the zebra machine title??")
    (span,) = world.engine.stains().spans
    assert (span.first_seq, span.last_seq, span.depth, span.clusters) == (1, 1, Depth.LIGHT, 1)
    assert span.first_ms == fact.created_at_ms


def test_clusters_are_bounded_and_dropping_one_costs_only_speed(tmp_path):
    world = MemoryWorld(tmp_path / "m", replace(NO_HOST, learning=LearningConfig(clusters_max=3)))
    fact = world.say("heron")
    fill(world, 5)
    world.judge.yes = {"heron"}
    for n in range(6):
        assert ids(world.search(f"wording{n}q of{n}z")) == [fact.id]
    pointers = world.engine._stores.pointers
    assert len(pointers.clusters()) == 3
    assert sum(key.startswith("q:") for key, _ in pointers.records()) == 3
    assert ids(world.search("wording0q of0z")) == [fact.id]
    assert dict(pointers.records()) == pointers.expected()
    world.engine.close()


def test_a_wiped_vector_folder_changes_no_result(tmp_path):
    results = []
    for wiped in (False, True):
        world = MemoryWorld(tmp_path / str(wiped))
        fact = world.say("The staging box is called heron")
        fill(world)
        world.digest()
        if wiped:
            world.engine.close()
            shutil.rmtree(world.path / "vectors", ignore_errors=True)
            world.engine = world._open()
        world.judge.yes = {"heron"}
        result = world.search("which staging machine")
        results.append(([p.node.seq for p in result.pages], result.judged, list(world.judge.read)))
        assert ids(result) == [fact.id]
        world.engine.close()
    assert results[0] == results[1]


def test_an_empty_question_finds_nothing(world):
    world.say("heron")
    assert world.search(" ").pages == ()
    assert world.judge.batches == 0


def test_the_neighbourhood_shows_both_ends(world):
    fact = world.say("The heron stands in the reeds by the long lake and does not move at all")
    asked = world.say("what is the zebra machine title?")
    world.judge.yes = {"heron"}
    world.search(asked.content, question_id=asked.id)
    (leaving,) = world.engine.neighbourhood(asked.id).leaving
    (arriving,) = world.engine.neighbourhood(fact.id).arriving
    assert leaving == arriving
    assert (leaving.source_id, leaving.target_id, leaving.heat) == (asked.id, fact.id, 1)
    assert leaving.positive[0].text == asked.content
    assert leaving.target_title.startswith("The heron")
    assert len(leaving.target_title) <= world.config.paging.title_characters_max


@pytest.mark.parametrize("forced", [False, True])
def test_a_search_in_slices_judges_what_one_in_a_piece_does(tmp_path, forced):
    """A host that wants a sign of life asks for eight judgements at a time."""
    reads = []
    for size in (8, 1000):
        world = MemoryWorld(tmp_path / f"{forced}-{size}")
        fill(world, 50)
        world.say("lorem heron")
        world.digest()
        world.judge.unknown = {"heron", "filler7x", "filler41x"}
        result, before = None, None
        for _ in range(20):
            result = world.search(
                "lorem3y filler4x filler7x", judgements_max=size, forced=forced, before_seq=before
            )
            before = result.back_to_seq
            if result.complete:
                break
        assert result is not None
        assert result.complete
        reads.append(list(world.judge.read))
        world.engine.close()
    assert sorted(reads[0]) == sorted(reads[1])
    assert len(reads[0]) == len(set(reads[0])) == 51
    assert reads[0][:16] == reads[1][:16], "the entries come first"


def test_learning_makes_the_way_back_shorter_and_others_no_longer(tmp_path):
    """The invariant behind `tests/benchmarks/recall_learning.py`: judgements of a question again, reworded, and of others."""
    world = MemoryWorld(tmp_path / "m")
    fill(world, 30)
    words = [f"thing{n}z" for n in range(8)]
    facts = {word: world.say(f"heron{n}q guards it").id for n, word in enumerate(words)}
    fill(world, 30, start=30)
    world.digest()

    def rounds(wording: str) -> tuple[int, int]:
        judged = found = 0
        for n, word in enumerate(words):
            world.judge.yes = {f"heron{n}q "}
            asked = world.say(f"{wording.format(word)}?")
            result = world.search(
                asked.content,
                question_id=asked.id,
                exclude=frozenset({asked.id}),
                judgements_max=100,
            )
            judged += result.judged
            found += facts[word] in ids(result)
        return judged, found

    first, found = rounds("where does the {} lie")
    assert found == len(words)
    assert first > 8 * len(words)
    again, found = rounds("where does the {} lie")
    assert (again, found) == (0, len(words))
    reworded, found = rounds("the {} lie, where does")
    assert found == len(words)
    assert reworded <= 0.2 * first
    others, found = rounds("which colour is painted on {}")
    assert found == len(words)
    assert others <= first
    world.engine.close()
