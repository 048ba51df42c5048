"""Filters, dates, ranking and the ranked search, through the facade and on their own."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memory.config import RankingConfig
from memory.recall.cohort import Reading
from memory.recall.ranking import group_of, spread
from memory.text import is_code, names_code, speaker
from memory.values import NodeKind, RecallQuery, Role, Scope, Way
from tests.fakes.driver import drive
from tests.fakes.memory_world import MemoryWorld

DAY_MS = 86_400_000


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    world.engine._stores.database.execute("PRAGMA synchronous = OFF")
    yield world
    world.engine.close()


def searched(world, text, limit=10, **fields):
    query = replace(RecallQuery(text=text), **fields)
    return drive(world.engine.search(query, limit=limit), world.embedder)


def texts(pages):
    return [page.node.content for page in pages]


# --- filters


def test_kinds_filter_inside_the_search_not_on_its_best(world):
    conversation = world.conversation()
    for i in range(300):
        world.say(f"The quokka eats leaves, day {i}", conversation)
    text = "A quokka in the barn"
    note = world.say(text, kind=NodeKind.NOTE, role=Role.NONE, conversation_id=None)
    world.digest()
    kinds = frozenset({NodeKind.NOTE})
    assert [p.node.id for p in searched(world, "what does the quokka eat", kinds=kinds)] == [
        note.id
    ]
    assert texts(world.recall("barn quokka", kinds=kinds).pages) == [text]
    assert world.recall("quokka", kinds=frozenset({NodeKind.TOOL_RESULT})).pages == ()


def test_a_project_filters_and_is_widened_in_words_when_it_has_nothing(world):
    mine, other = world.engine.open_project("/a", "A"), world.engine.open_project("/b", "B")
    here = world.say("The quokka lives in the shed", project_id=mine.id)
    there = world.say("The quokka lives in the tower", project_id=other.id)
    scoped = {"project_id": mine.id, "scope": Scope.PROJECT}
    result = world.recall("where does the quokka live", **scoped)
    assert [p.node.id for p in result.pages] == [here.id]
    assert result.widened == ()
    widened = world.recall("the tower", **scoped)
    assert [p.node.id for p in widened.pages] == [there.id]
    assert widened.widened == ("project",)
    assert searched(world, "the tower", **scoped)[0].node.id == here.id


def test_a_date_in_the_question_is_a_filter(world):
    now = world.clock.now_ms()
    old = world.say("The quokka moved to the shed", created_at_ms=now - 40 * DAY_MS)
    new = world.say("The quokka moved to the tower", created_at_ms=now - DAY_MS)
    assert {p.node.id for p in world.recall("the quokka moved").pages} == {old.id, new.id}
    result = world.recall("where was the quokka moved to yesterday?")
    assert [p.node.id for p in result.pages] == [new.id]
    assert result.widened == ()


def test_a_date_that_leaves_nothing_is_widened_in_words(world):
    old = world.say("小袋鼠搬到了东边的棚子里", created_at_ms=world.clock.now_ms() - 40 * DAY_MS)
    result = world.recall("小袋鼠昨天搬到东边的棚子了吗？")
    assert [p.node.id for p in result.pages] == [old.id]
    assert result.widened == ("dates",)


def test_dates_set_by_hand_are_never_widened(world):
    world.say("The quokka moved to the shed", created_at_ms=1_000)
    assert world.recall("quokka moved yesterday", since_ms=2_000).pages == ()
    assert searched(world, "quokka", since_ms=2_000) == ()
    assert len(searched(world, "quokka", since_ms=1_000, until_ms=1_001)) == 1
    assert searched(world, "quokka", since_ms=500, until_ms=1_000) == ()


def test_the_substring_scan_is_filtered_too(world):
    world.say("a -> b", created_at_ms=1_000)
    assert texts(world.recall("->").pages) == ["a -> b"]
    assert world.recall("->", since_ms=2_000).pages == ()
    assert [p.way for p in searched(world, "->")] == [Way.SCAN]
    assert searched(world, "->", since_ms=2_000) == ()


# --- what is found


@pytest.mark.parametrize("embedded", [True, False])
def test_a_question_asked_three_times_does_not_hide_the_fact_told_after(world, embedded):
    question = "What is the name of our staging server?"
    conversation = world.conversation()
    for _ in range(3):
        world.answer(world.say(question, conversation), "I do not know its name, sorry.")
    fact = world.say("Our staging server is called heron.", conversation)
    if embedded:
        world.digest()
    asked = world.say(question, conversation)
    pages = world.recall(question, exclude=frozenset({asked.id})).pages
    assert pages[0].node.id == fact.id
    assert all(page.node.content != question for page in pages)


@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("端口是8080", "8080"),
        ("错误码 E1234-77", "E1234"),
        ("东方红一号卫星", "红一"),
        ("看 foo_bar2Baz() 的结果", "foo_bar2Baz"),
        ("温度：零下二十度", "零下"),
        ("ip 10.0.0.7 down", "0.7"),
    ],
)
def test_what_a_substring_search_finds_is_never_nothing(world, fact, question):
    for i in range(80):
        world.say(f"别的事情 number {i * 13}")
    world.say(fact)
    assert fact in texts(searched(world, question))
    assert fact in texts(world.recall(question).pages)


def test_a_search_is_ranked_deterministic_and_teaches_nothing(world):
    conversation = world.conversation()
    for i in range(60):
        world.say(f"quokka number {i} likes {'leaves' if i % 2 else 'grass'}", conversation)
    world.digest()
    before = world.engine._stores.log.last_id()
    first = searched(world, "which quokka likes leaves", limit=7)
    assert len(first) == 7
    world.reopen()
    assert searched(world, "which quokka likes leaves", limit=7) == first
    assert world.engine._stores.log.last_id() == before
    assert searched(world, "  ") == ()
    assert searched(world, "quokka", limit=0) == ()


def test_excluded_nodes_are_not_found(world):
    nodes = [world.say(f"quokka {i}") for i in range(3)]
    found = searched(world, "quokka", exclude=frozenset({nodes[1].id}))
    assert {p.node.id for p in found} == {nodes[0].id, nodes[2].id}


# --- ranking


def test_whom_the_question_names_comes_before_whoever_mentions_it(world):
    for name in ("Ann", "Ben"):
        world.say(f"{name}: I bought a red kettle and told them about it")
    for name in ("Ann", "Ben"):
        assert texts(searched(world, f"What kettle did {name} buy?"))[0].startswith(name)


def test_the_answer_beside_a_hit_is_lent_its_words(world):
    for i in range(60):
        world.say(f"Something else happened, part {i}, and it took a while")
    conversation = world.conversation()
    world.say("So where does the quokka sleep these days?", conversation)
    answer = world.say("Behind the old wooden shed", conversation)
    world.embedder.out = True
    assert texts(searched(world, "quokka sleep"))[:2].count(answer.content) == 1


def test_an_old_message_comes_after_the_same_one_said_lately_and_notes_do_not_age(world):
    now = world.clock.now_ms()
    for kind in (NodeKind.MESSAGE, NodeKind.NOTE):
        word = f"zebra{kind}"
        new = world.say(f"The {word} rests", kind=kind, created_at_ms=now)
        old = world.say(f"The {word} rests", kind=kind, created_at_ms=now - 400 * DAY_MS)
        first = searched(world, f"the {word} rests", limit=2)[0].node.id
        assert first == (new.id if kind is NodeKind.MESSAGE else old.id)


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("def total(values):\n    return sum(values)", True),
        ("@property\ndef x(self): ...", True),
        ("#include <stdio.h>", True),
        ("x = f(a); y = g(b); return (x, y);", True),
        ("We talked about the garden (again) and had tea.", False),
        ("用字典记录次数（再排序），然后输出结果。", False),
        ("", False),
    ],
)
def test_code_is_known_by_its_marks(text, code):
    assert is_code(text) is code


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("what does parse_header do", True),
        ("where is parseHeader", True),
        ("os.path join", True),
        ("main() crashes", True),
        ("how to read a file in python", False),
        ("It ended. Then we left.", False),
    ],
)
def test_identifiers_are_known_in_questions(text, named):
    assert names_code(text) is named


@pytest.mark.parametrize(
    ("text", "who"),
    [
        ("Ann: hello", "ann"),
        ("小明： 你好", "小明"),
        ("http://x", ""),
        ("12:30 lunch", ""),
        ("", ""),
    ],
)
def test_speakers_are_known_in_transcripts(text, who):
    assert speaker(text) == who


@given(
    st.dictionaries(st.integers(1, 99), st.floats(-5, 5), max_size=20),
    st.integers(0, 25),
    st.integers(1, 4),
)
def test_spreading_keeps_every_passage_and_the_best_first(ranked, limit, groups):
    group = {seq: str(seq % groups) for seq in ranked}
    order = spread(ranked, group, 0.3, limit)
    assert sorted(seq for seq, _ in order) == sorted(ranked)
    if ranked and limit:
        assert ranked[order[0][0]] == max(ranked.values())
    assert [s for s, _ in spread(ranked, group, 0.0, limit)] == sorted(
        ranked, key=lambda s: (-ranked[s], -s)
    )


def test_a_passage_near_everything_is_read_lower_than_one_near_the_question():
    rng = np.random.default_rng(0)
    question = np.zeros(8, dtype=np.float32)
    question[0] = 1.0
    common = np.zeros(8, dtype=np.float32)
    common[1] = 1.0
    rows = (common + 0.1 * rng.standard_normal((64, 8))).astype(np.float32)
    reading = Reading(question + 0.5 * common, rows, RankingConfig().hub)
    hub, special = common, (0.5 * question).astype(np.float32)
    assert reading.meaning(special, code=False) > reading.meaning(hub, code=False)
    assert reading.meaning(special, code=True) <= reading.meaning(hub, code=True)


def test_passages_belong_to_their_document_and_messages_to_their_conversation(world):
    conversation = world.conversation()
    message = world.say("a", conversation)
    chunk = world.say("b", kind=NodeKind.CHUNK, source_uri="file.md", conversation_id=None)
    note = world.say("c", conversation, kind=NodeKind.NOTE)
    assert group_of(message) == conversation
    assert group_of(chunk) == "file.md"
    assert group_of(note) == note.id
