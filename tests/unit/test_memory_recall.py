"""Recall through the facade, with the hash embedder and the exact scan."""

from __future__ import annotations

import pytest

from memory.requests import Yield
from memory.values import NodeKind, NodeStatus, RecallQuery, Role, Way
from tests.fakes.memory_world import MemoryWorld

TOPICS = ("weather", "football", "gardening", "cooking", "travel", "music", "films", "running")


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    yield world
    world.engine.close()


@pytest.fixture
def full(world):
    """200 memories about other things; durability is not what is tested."""
    world.engine._stores.database.execute("PRAGMA synchronous = OFF")
    conversation = world.conversation()
    for i in range(100):
        topic = TOPICS[i % len(TOPICS)]
        question = world.say(f"Today I thought about {topic}, part {i}，天气不错", conversation)
        world.answer(question, f"Sounds nice, {topic} can be fun.")
    return world


@pytest.mark.parametrize("text", ["", "   ", "\n\t", "?!", "。。。", "😀"])
def test_nothing_asked_is_nothing_found(full, text):
    result = full.recall(text)
    assert result.pages == ()
    assert not result.passed_gate


def test_an_empty_memory_answers_nothing(world):
    assert world.found("what is my name?") == []


@pytest.mark.parametrize(
    ("fact", "question"),
    [
        ("我最喜欢的数据库是 DuckDB，请记住", "我喜欢哪个数据库？"),
        ("My favourite database is DuckDB, please remember that", "What is my favourite database?"),
        ("私のサーバーの名前は heron です", "サーバーの名前は何？"),
        ("서버 이름은 헤론입니다", "서버 이름"),
        ("Мой любимый редактор — Vim", "любимый редактор"),
        ("the function parse_http_header is slow", "parseHttpHeader"),
        ("nginx listens on 8443", "8443"),
    ],
)
@pytest.mark.parametrize("embedded", [True, False])
def test_a_fact_among_200_others_is_first_and_by_rag(full, fact, question, embedded):
    full.answer(full.say(fact), "ok")
    if embedded:
        full.digest()
    asked = full.say(question)
    result = full.recall(question, exclude=frozenset({asked.id}))
    assert result.pages[0].node.content == fact
    assert result.pages[0].way is Way.RAG
    assert result.passed_gate


@pytest.mark.parametrize(
    "question", ["write quicksort", "写一个快速排序", "hello", "你好", "谢谢", "who are you?"]
)
def test_an_unrelated_question_finds_nothing(full, question):
    full.digest()
    asked = full.say(question)
    assert full.found(question, exclude=frozenset({asked.id})) == []


def test_the_same_question_gives_the_same_pages(full):
    full.digest()
    first, second = full.recall("gardening part 10"), full.recall("gardening part 10")
    assert first.pages == second.pages


def test_what_is_shown_is_not_enough_where_others_fit_as_well(full):
    """Nothing is held back for it; a page that this very question has used is enough."""
    for n in range(30):
        full.say(f"the heron log says number{n}")
    full.digest()
    question = "what does the heron log say?"
    asked = full.say(question)
    result = full.recall(question, exclude=frozenset({asked.id}))
    assert len(result.pages) == 6
    assert (result.best_score >= 0.5, result.passed_gate) == (True, False)
    assert result.certainty < 0.5
    full.engine.learn_used(query=question, question_id=asked.id, used=(result.pages[0],))
    again = full.recall(question, exclude=frozenset({asked.id}))
    assert {p.node.id for p in again.pages} == {p.node.id for p in result.pages}
    assert again.certainty < 0.5
    assert again.passed_gate


def test_echoes_of_a_question_do_not_make_the_search_unsure(full):
    fact = full.say("the heron log is kept in Oslo")
    full.digest()
    question = "where is the heron log kept?"
    before = full.recall(question)
    for _ in range(10):
        full.say(question)
    full.digest()
    after = full.recall(question)
    assert [p.node.id for p in after.pages] == [fact.id]
    assert (before.passed_gate, after.passed_gate) == (True, True)


def test_the_question_itself_is_no_evidence(world):
    asked = world.say("quokka habitat")
    assert world.found("quokka habitat", exclude=frozenset({asked.id})) == []
    assert world.found("quokka habitat") == []


def test_a_hit_on_a_question_pages_in_the_sources_of_its_answer(world):
    fact = world.say("The staging box is called heron")
    asked = world.say("How is our zebra machine named?")
    world.answer(asked, "It is called heron.", derived_from=(fact.id,))
    result = world.recall("zebra machine")
    assert [page.node.id for page in result.pages] == [fact.id]
    assert result.pages[0].reason == "source"


def test_a_hit_on_an_answer_made_of_memories_pages_in_those(world):
    fact = world.say("The staging box is called heron")
    world.answer(world.say("q"), "Your zebra is heron.", derived_from=(fact.id,))
    assert [p.node.id for p in world.recall("zebra").pages] == [fact.id]


def test_a_question_without_sources_is_nothing(world):
    world.answer(world.say("Where is the quokka?"), "I don't know where the quokka is.")
    assert world.found("tell me about the quokka") == []


@pytest.mark.parametrize(
    "text",
    [
        "I'm sorry, I don't have that quokka.",
        "抱歉，我不知道 quokka。",
        "I have no memory of a quokka.",
    ],
)
def test_refusals_are_no_evidence(world, text):
    world.answer(world.say("q"), text)
    assert world.found("quokka") == []


def test_failed_answers_are_no_evidence_and_cancelled_ones_are(world):
    world.answer(world.say("q"), "quokka failed", status=NodeStatus.FAILED)
    assert world.found("quokka") == []
    world.answer(world.say("q"), "quokka cut short", status=NodeStatus.CANCELLED)
    assert world.found("quokka") == ["quokka cut short"]


def test_an_answer_of_the_models_own_is_evidence(world):
    world.answer(world.say("q"), "The quokka lives on Rottnest Island.")
    assert world.found("quokka island") == ["The quokka lives on Rottnest Island."]


def test_the_users_words_come_before_the_models_repetition(world):
    fact = world.say("My quokka is called Tom")
    answer = world.answer(fact, "Okay, your quokka is called Tom. I will remember that.")
    pages = world.recall("quokka called").pages
    assert [page.node.id for page in pages] == [fact.id, answer.id]


def test_a_statement_that_also_asks_is_evidence(world):
    text = "My quokka is called Tom. What is yours called?"
    world.say(text)
    assert world.found("quokka") == [text]


def test_repeated_facts_give_one_page(world):
    for _ in range(10):
        world.say("The quokka eats leaves")
    assert world.found("quokka leaves") == ["The quokka eats leaves"]


def test_symbols_are_found_by_the_scan(full):
    text = "use a -> b in the lambda"
    full.say(text)
    result = full.recall("->")
    assert [(p.node.content, p.way) for p in result.pages] == [(text, Way.SCAN)]
    assert result.scanned > 0


def test_half_words_are_found_by_the_scan(full):
    full.say("the SuperQuokkaMachine hums")
    full.digest()
    result = full.recall("uokkamach")
    assert [p.way for p in result.pages] == [Way.SCAN]


def test_full_width_digits_are_the_same_digits(full):
    full.say("端口是 ８０８０")
    assert full.found("8080") == ["端口是 ８０８０"]


def test_an_embedder_outage_leaves_the_words(full):
    full.say("The quokka eats leaves")
    full.digest()
    full.embedder.out = True
    result = full.recall("quokka leaves")
    assert result.degraded == ("embedder",)
    assert result.pages[0].node.content == "The quokka eats leaves"


def test_a_question_is_embedded_once(full):
    full.digest()
    full.recall("gardening 10")
    calls = full.embedder.calls
    full.recall("gardening 10")
    assert full.embedder.calls == calls


def test_resident_pages_are_marked_and_pages_max_holds(world):
    nodes = [world.say(f"quokka fact {word}") for word in ("one", "two", "three")]
    result = world.recall("quokka", resident=frozenset({nodes[0].id}), pages_max=2)
    assert len(result.pages) == 2
    assert {p.node.id: p.resident for p in world.recall("quokka").pages}[nodes[0].id] is False
    marked = world.recall("quokka", resident=frozenset({nodes[0].id})).pages
    assert {p.node.id for p in marked if p.resident} == {nodes[0].id}
    assert world.recall("quokka", pages_max=0).pages == ()


def test_the_asking_project_comes_first_but_nothing_else_is_hidden(world):
    mine, other = world.engine.open_project("/a", "A"), world.engine.open_project("/b", "B")
    here = world.say("quokka rule of mine", project_id=mine.id)
    there = world.say("quokka rule of others", project_id=other.id)
    assert {p.node.id for p in world.recall("quokka rule").pages} == {there.id, here.id}
    pages = world.recall("quokka rule", project_id=mine.id).pages
    assert [p.node.id for p in pages] == [here.id, there.id]
    pages = world.recall("quokka rule", project_id=other.id).pages
    assert [p.node.id for p in pages] == [there.id, here.id]


def test_a_neighbouring_message_lends_its_words(world):
    conversation = world.conversation()
    world.say("Let us talk about the quokka enclosure", conversation)
    world.say("It is 12 metres wide", conversation)
    key = world.engine._stores.lexical.keys([1, 2])
    assert key[2].is_near("quokka")
    assert key[1].is_near("metr")


def test_tool_results_and_notes_are_found(world):
    world.say("quokka log line", kind=NodeKind.TOOL_RESULT, role=Role.TOOL)
    assert world.found("quokka log") == ["quokka log line"]


def test_what_was_just_said_is_embedded_before_the_next_recall(full):
    full.digest()
    full.say("My favourite database is DuckDB, please remember that.")
    full.reopen()  # nothing has indexed it yet
    waiting = full.engine.statistics().pending_embeddings
    assert waiting == 1
    full.recall("Which database do I like?")
    assert full.engine.statistics().pending_embeddings == 0


def test_a_scan_yields_between_slices(full):
    full.digest()
    operation = full.engine.recall(RecallQuery(text="->"))
    assert isinstance(next(operation), Yield)
    operation.close()


def test_a_new_embedder_epoch_embeds_everything_again(full):
    full.digest()
    full.use_epoch("another")
    full.reopen()
    statistics = full.engine.statistics()
    assert (statistics.embedded, statistics.pending_embeddings) == (0, statistics.nodes)
    full.digest()
    assert full.engine.statistics().pending_embeddings == 0
