"""The journal through the facade: projects, conversations, answers, search, documents."""

from __future__ import annotations

import threading

import pytest

from memory.errors import EngineClosed, InvariantError
from memory.events import NodeRecorded
from memory.values import NodeKind, NodeStatus, Role
from tests.fakes.memory_world import MemoryWorld


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    yield world
    world.engine.close()


def test_a_project_is_opened_once_per_path(world):
    first = world.engine.open_project("/a", "A")
    assert world.engine.open_project("/a", "other name") == first
    assert world.engine.projects() == (first,)


def test_conversations_newest_updated_first(world):
    old, new = world.conversation(), world.conversation()
    assert [c.id for c in world.engine.conversations()] == [new, old]
    world.say("hello", old)
    found = world.engine.conversations()
    assert [c.id for c in found] == [old, new]
    assert found[0].message_count == 1


def test_rename(world):
    conversation = world.conversation()
    world.engine.rename_conversation(conversation, "数据库")
    found = world.engine.conversation(conversation)
    assert found is not None
    assert found.title == "数据库"
    assert world.engine.conversation("c-unknown") is None


def test_seq_is_dense_and_ids_differ(world):
    nodes = [world.say(f"m{i}") for i in range(3)]
    assert [node.seq for node in nodes] == [1, 2, 3]
    assert len({node.id for node in nodes}) == 3


def test_a_clock_that_goes_back_changes_no_order(world):
    conversation = world.conversation()
    first = world.say("first", conversation)
    world.clock.set_back(3600)
    second = world.say("second", conversation)
    assert world.engine.messages(conversation) == (first, second)
    assert second.created_at_ms < first.created_at_ms


def test_an_event_follows_the_commit(world):
    node = world.say("x")
    (event,) = world.events.of(NodeRecorded)
    assert event.node_id == node.id


def test_an_answer_grows_and_is_finished(world):
    question = world.say("q")
    partial = world.engine.begin_answer(question=question)
    assert (partial.status, partial.role, partial.reply_to) == (
        NodeStatus.PARTIAL,
        Role.ASSISTANT,
        question.id,
    )
    world.engine.checkpoint_answer(partial.id, "hal")
    assert world.engine.node(partial.id).content == "hal"
    done = world.engine.finish_answer(
        partial.id,
        content="half and half",
        status=NodeStatus.COMPLETE,
        token_ids=(1, 70_000, 3),
        tokenizer="t",
        derived_from=(question.id,),
        trace="{}",
    )
    assert done == world.engine.node(partial.id)
    assert (done.token_ids, done.tokenizer, done.trace) == ((1, 70_000, 3), "t", "{}")
    assert done.derived_from == (question.id,)


def test_a_finished_answer_is_never_edited(world):
    answer = world.answer(world.say("q"), "done")
    with pytest.raises(InvariantError):
        world.engine.checkpoint_answer(answer.id, "changed")
    with pytest.raises(InvariantError):
        world.engine.finish_answer(answer.id, content="x", status=NodeStatus.COMPLETE)
    assert world.engine.node(answer.id).content == "done"


def test_what_a_crash_left_partial_is_cancelled_with_its_text(world):
    partial = world.engine.begin_answer(question=world.say("q"))
    world.engine.checkpoint_answer(partial.id, "the quokka was")
    world.reopen()
    found = world.engine.node(partial.id)
    assert (found.status, found.content) == (NodeStatus.CANCELLED, "the quokka was")
    assert world.found("quokka") == ["the quokka was"]


def test_any_text_survives_a_restart(world):
    texts = ["", " \n", "naïve 😀 数据", "a\x00b", "x" * 100_000, "'; DROP TABLE nodes;--"]
    nodes = [world.say(text) for text in texts]
    world.reopen()
    assert [world.engine.node(node.id).content for node in nodes] == texts


def test_a_lone_surrogate_is_replaced_not_refused(world):
    assert world.say("bad \ud800 end").content == "bad \ufffd\ufffd\ufffd end"


def test_search_finds_words_and_parts_newest_first(world):
    old, new = world.say("DuckDB is small"), world.say("duckdb again")
    world.say("nothing")
    assert world.engine.search_messages("duckdb") == (new, old)
    assert world.engine.search_messages("uckD") == (new, old)
    assert world.engine.search_messages("duckdb", 1) == (new,)
    assert world.engine.search_messages("is  small") == (old,)
    assert world.engine.search_messages(" ") == ()
    assert world.engine.search_messages('"') == ()


def test_search_is_over_messages_only(world):
    world.engine.attach(name="notes.txt", text="kangaroo")
    assert world.engine.search_messages("kangaroo") == ()


def test_a_long_document_is_found_by_its_head_before_it_is_chunked(world):
    document = world.engine.attach(name="big.txt", text="quokka facts. " + "filler. " * 9000)
    assert document.kind is NodeKind.DOCUMENT
    assert [p.node.id for p in world.recall("quokka facts").pages] == [document.id]


def test_after_chunking_its_chunks_answer_and_join_to_the_original(world):
    text = "".join(f"## Part {i}\nThe marsupial number {i} — 有袋类 {i}。\n\n" for i in range(200))
    document = world.engine.attach(name="big.md", text=text)
    world.digest()
    chunks = world.engine._stores.timeline.chunks(document.id)
    assert "".join(chunk.content for chunk in chunks) == text
    data = text.encode()
    for chunk in chunks:
        start, end = chunk.byte_range
        assert data[start:end].decode() == chunk.content
        assert len(chunk.content) <= 1500
        assert (chunk.created_at_ms, chunk.parent_id) == (document.created_at_ms, document.id)
    found = [page.node for page in world.recall("marsupial number 137").pages]
    assert found[0].kind is NodeKind.CHUNK
    assert "number 137 " in found[0].content
    assert document.id not in {node.id for node in found}
    assert world.engine.audit(fix=False, full=True).findings == ()


def test_chunking_resumes_where_it_stopped(world):
    text = "一句话。" * 5000
    document = world.engine.attach(name="zh.txt", text=text)
    operation = world.engine.digest()
    next(operation)  # one slice
    operation.close()
    world.reopen()
    world.digest()
    chunks = world.engine._stores.timeline.chunks(document.id)
    assert "".join(chunk.content for chunk in chunks) == text


def test_a_short_document_stays_whole(world):
    document = world.engine.attach(name="s.txt", text="short quokka")
    world.digest()
    assert world.engine._stores.timeline.chunks(document.id) == ()
    assert [p.node.id for p in world.recall("quokka").pages] == [document.id]


def test_after_close_nothing_works_and_close_does(world):
    world.engine.close()
    world.engine.close()
    with pytest.raises(EngineClosed):
        world.say("x")
    with pytest.raises(EngineClosed):
        world.engine.region(None)


def test_a_foreign_thread_is_our_bug(world):
    seen = []

    def call():
        try:
            world.engine.conversations()
        except InvariantError as error:
            seen.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join()
    assert seen
