"""Learning: used and not relevant, the pointer store as a fold, vetoes."""

from __future__ import annotations

import sqlite3

import msgspec
import pytest

from memory.config import LearningConfig
from memory.events import LearningRecorded
from memory.storage.learning_log import LearningEvent, LearningKind
from memory.storage.pointer_fold import apply
from memory.storage.pointer_records import Record, source_key, veto_key
from memory.values import NodeId, Way
from tests.fakes.memory_world import MemoryWorld


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    yield world
    world.engine.close()


def event(number: int, kind: LearningKind = LearningKind.USED, *, query: int = 1) -> LearningEvent:
    return LearningEvent(
        id=number,
        kind=kind,
        created_at_ms=number,
        query=query,
        sources=(NodeId("s"),),
        targets=(NodeId("t"),),
    )


def folded(*events: LearningEvent) -> dict[str, Record]:
    records: dict[str, Record] = {}
    for e in events:
        records.update(apply(e, lambda key: records.get(key, Record()), LearningConfig()))
    return records


def test_a_repeated_query_gains_weight():
    (sample,) = folded(event(1), event(2))[source_key("s")].edges["t"].positive
    assert (sample.query, sample.weight, sample.used_at_ms) == (1, 2, 2)


def test_eight_samples_a_side_lowest_weight_then_oldest_goes():
    events = [event(1, query=1), event(2, query=1)]
    events += [event(10 + q, query=q) for q in range(2, 11)]
    samples = folded(*events)[source_key("s")].edges["t"].positive
    assert [s.query for s in samples] == [1, 4, 5, 6, 7, 8, 9, 10]


def test_the_latest_judgement_of_a_query_wins():
    no = event(2, LearningKind.NOT_RELEVANT)
    records = folded(event(1), no)
    assert records[source_key("s")].edges["t"].positive == ()
    assert records[veto_key("t")].edges["t"].negative[0].query == 1
    records = folded(event(1), no, event(3))
    assert records[veto_key("t")].edges["t"].negative == ()


def test_edges_per_source_are_bounded():
    config = LearningConfig()
    records: dict[str, Record] = {}
    for i in range(config.edges_per_source + 5):
        e = LearningEvent(
            id=i,
            kind=LearningKind.USED,
            created_at_ms=i,
            query=i,
            sources=(NodeId("s"),),
            targets=(NodeId(f"t{i:03}"),),
        )
        records.update(apply(e, lambda key: records.get(key, Record()), config))
    edges = records[source_key("s")].edges
    assert len(edges) == config.edges_per_source
    assert f"t{config.edges_per_source + 4:03}" in edges


def ask_and_use(world: MemoryWorld, fact_text: str, question_text: str):
    fact = world.say(fact_text)
    world.digest()
    asked = world.say(question_text)
    result = world.recall(question_text, exclude=frozenset({asked.id}))
    world.engine.learn_used(query=question_text, question_id=asked.id, used=result.pages)
    return fact, asked, result


def test_a_learned_edge_brings_back_what_words_do_not(world):
    fact = world.say("The staging box is called heron")
    asked = world.say("zebra machine title?")
    world.digest()
    page = world.recall("staging heron").pages[0]
    world.recall("zebra machine title?", exclude=frozenset({asked.id}))
    world.engine.learn_used(query="zebra machine title?", question_id=asked.id, used=(page,))
    again = world.say("zebra machine title?")
    result = world.recall(again.content, exclude=frozenset({again.id}))
    assert [(p.node.id, p.way) for p in result.pages] == [(fact.id, Way.POINTER)]
    assert world.events.of(LearningRecorded)


def test_citation_counts_and_boosts(world):
    world.embedder.out = True  # words alone: both facts stand equal
    first, second = world.say("quokka fact alpha"), world.say("quokka fact omega")
    assert [p.node.id for p in world.recall("quokka fact").pages] == [second.id, first.id]
    page = world.recall("alpha").pages[0]
    for _ in range(3):
        world.engine.learn_used(query="alpha", question_id=world.say("a?").id, used=(page,))
    assert world.engine.node(first.id).hits == 3
    assert world.recall("quokka fact").pages[0].node.id == first.id


def test_not_relevant_keeps_a_memory_away_from_like_questions_only(world):
    fact = world.say("The quokka eats leaves")
    world.say("The quokka sleeps a lot")
    world.digest()
    world.recall("what about quokka leaves")
    world.engine.learn_not_relevant(query="what about quokka leaves", memory_id=fact.id)
    assert fact.content not in world.found("what about quokka leaves")
    assert fact.content not in world.found("What about QUOKKA leaves?")
    assert fact.content in world.found("who eats leaves in the forest of the quokka")


def test_not_relevant_holds_without_an_embedder(world):
    fact = world.say("The quokka eats leaves")
    world.embedder.out = True
    world.engine.learn_not_relevant(query="quokka leaves", memory_id=fact.id)
    assert world.found("quokka leaves") == []
    world.embedder.out = False
    world.digest()
    world.reopen()
    assert world.found("quokka leaves") == []


def test_using_it_later_lifts_the_veto(world):
    fact = world.say("The quokka eats leaves")
    page = world.recall("quokka leaves").pages[0]
    world.engine.learn_not_relevant(query="quokka leaves", memory_id=fact.id)
    world.engine.learn_used(query="quokka leaves", question_id=world.say("q?").id, used=(page,))
    assert world.found("quokka leaves") == [fact.content]


def test_an_empty_query_or_nothing_used_teaches_nothing(world):
    world.engine.learn_used(query=" ", question_id=NodeId("x"), used=())
    world.engine.learn_used(query="quokka", question_id=NodeId("x"), used=())
    assert world.engine.statistics().learning_events == 0


def test_the_store_is_the_fold_of_the_log_and_rebuild_gives_it_back(world):
    for i in range(5):
        ask_and_use(world, f"The quokka number {i} eats leaves", f"what eats quokka number {i}?")
    pointers = world.engine._stores.pointers
    before = dict(pointers.records())
    edges = sum(len(r.edges) for key, r in before.items() if key.startswith("e:"))
    assert world.engine.statistics().edges == edges > 0
    assert before == pointers.expected()
    pointers.rebuild()
    assert dict(pointers.records()) == before


def test_a_lost_pointer_folder_is_folded_again_at_open(world):
    ask_and_use(world, "The quokka eats leaves", "what eats quokka leaves?")
    before = dict(world.engine._stores.pointers.records())
    world.engine.close()
    for file in (world.path / "pointers").iterdir():
        file.unlink()
    world.reopen()
    assert dict(world.engine._stores.pointers.records()) == before


@pytest.mark.parametrize("damage", ["zero", "truncate", "garbage"])
def test_a_damaged_pointer_database_is_replaced(world, damage):
    ask_and_use(world, "The quokka eats leaves", "what eats quokka leaves?")
    before = dict(world.engine._stores.pointers.records())
    world.engine.close()
    file = world.path / "pointers" / "cache.db"
    data = file.read_bytes()
    file.write_bytes(
        {"zero": bytes(len(data)), "truncate": data[:100], "garbage": b"x" * len(data)}[damage]
    )
    world.reopen()
    assert dict(world.engine._stores.pointers.records()) == before


class _Trap:
    fired = False

    def __reduce__(self):
        return (setattr, (_Trap, "fired", True))


@pytest.mark.parametrize("where", ["value", "key"])
def test_nothing_is_ever_unpickled(world, where):
    ask_and_use(world, "The quokka eats leaves", "what eats quokka leaves?")
    before = dict(world.engine._stores.pointers.records())
    world.engine.close()
    import pickle  # noqa: TID251 - the attack

    payload = pickle.dumps(_Trap())
    database = sqlite3.connect(world.path / "pointers" / "cache.db")
    if where == "value":
        database.execute("UPDATE Cache SET mode = 4, value = ?", (payload,))
    else:
        database.execute("UPDATE Cache SET key = ?, raw = 0 WHERE rowid = 1", (payload,))
    database.commit()
    database.close()
    world.reopen()
    assert dict(world.engine._stores.pointers.expected()) == before
    world.found("what eats quokka leaves?")
    world.engine.audit(fix=True, full=True)
    assert dict(world.engine._stores.pointers.records()) == before
    assert not _Trap.fired


def test_the_pointer_folder_is_private(world):
    assert (world.path / "pointers").stat().st_mode & 0o777 == 0o700


def test_records_are_small_json(world):
    ask_and_use(world, "The quokka eats leaves", "what eats quokka leaves?")
    world.engine.close()
    database = sqlite3.connect(world.path / "pointers" / "cache.db")
    rows = database.execute("SELECT mode, filename, value FROM Cache").fetchall()
    settings = dict(database.execute("SELECT key, value FROM Settings"))
    database.close()
    assert rows
    assert all(filename is None and msgspec.json.decode(value) for _, filename, value in rows)
    assert settings["eviction_policy"] == "none"
