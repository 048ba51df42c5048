"""Versions of a document in the memory: what is the same keeps its node, what is gone leaves recall, nothing is lost."""

from __future__ import annotations

import dataclasses

import pytest

from memory.config import MemoryConfig, RestConfig, StorageConfig, VectorConfig
from memory.errors import InvariantError
from memory.storage.database import Database
from memory.storage.schema import MIGRATIONS, migrate
from memory.values import Cut, DocumentDraft, NodeKind
from tests.fakes.driver import drive
from tests.fakes.memory_world import MemoryWorld

CONFIG = MemoryConfig(
    vectors=VectorConfig(host=False),
    rest=RestConfig(texts_per_run=64, chunk_characters=60, chunks_per_slice=2),
)
URI = "/notes/animals.txt"
LINES = [f"Animal {n}: the quokka number {n} eats leaf {n}.\n" for n in range(9)]


@pytest.fixture
def world(tmp_path):
    world = MemoryWorld(tmp_path / "m", CONFIG)
    yield world
    world.engine.close()


def draft(lines: list[str], *, contexts: dict[int, str] | None = None) -> DocumentDraft:
    """A version whose passages are the given lines."""
    at, cuts = 0, []
    for place, line in enumerate(lines):
        at += len(line)
        cuts.append(Cut(end=at, context=(contexts or {}).get(place, "animals.txt")))
    text = "".join(lines)
    return DocumentDraft(
        uri=URI, stamp=f"s{len(text)}", content_hash=text, text=text, cuts=tuple(cuts)
    )


def keep(world: MemoryWorld, lines: list[str], **fields: object):
    return drive(world.engine.keep_document(draft(lines, **fields)), world.embedder)


def passages(world: MemoryWorld, node_id) -> list:
    return list(world.engine._stores.timeline.chunks(node_id))


def clean(world: MemoryWorld) -> None:
    assert world.engine.audit(fix=False, full=True).findings == ()


def test_a_document_is_kept_as_passages_that_join_to_it(world):
    change = keep(world, LINES)
    chunks = passages(world, change.node_id)
    assert (change.added, change.kept, change.retired) == (9, 0, 0)
    assert [chunk.content for chunk in chunks] == LINES
    data = "".join(LINES).encode()
    assert [data[slice(*chunk.byte_range)].decode() for chunk in chunks] == LINES
    assert {chunk.context for chunk in chunks} == {"animals.txt"}
    state = world.engine.documents([URI, "/none"])
    assert state[URI].node_id == change.node_id
    assert list(state) == [URI]
    world.digest()
    clean(world)


def test_only_a_changed_passage_is_embedded_again_and_the_others_keep_their_nodes(world):
    before = {c.content: c.id for c in passages(world, keep(world, LINES).node_id)}
    world.digest()
    calls = world.embedder.calls
    newer = [*LINES[:4], "Animal 4: changed entirely.\n", *LINES[5:], "Animal 9: new.\n"]
    change = keep(world, newer)
    assert (change.added, change.kept) == (2, 8)
    after = {c.content: c.id for c in passages(world, change.node_id)}
    assert "".join(after) == "".join(newer)
    assert all(after[line] == before[line] for line in newer if line in before)
    world.digest()
    assert world.embedder.calls - calls == 2
    assert world.found("quokka number 4") != [LINES[4]]
    old = world.engine.node(before[LINES[4]])
    assert old is not None
    assert (old.content, old.branch_active) == (LINES[4], False)
    clean(world)


def test_an_inserted_passage_moves_the_others_without_touching_them(world):
    first = passages(world, keep(world, LINES).node_id)
    world.digest()
    calls = world.embedder.calls
    change = keep(world, ["中文的一行。\n", *LINES])
    moved = passages(world, change.node_id)
    assert [c.id for c in moved[1:]] == [c.id for c in first]
    assert moved[1].byte_range[0] == len("中文的一行。\n".encode())
    assert [c.created_at_ms for c in moved[1:]] == [c.created_at_ms for c in first]
    world.digest()
    assert world.embedder.calls - calls == 1
    clean(world)


def test_equal_passages_of_one_document_are_as_many_nodes(world):
    twice = [LINES[0], LINES[1], LINES[0]]
    keep(world, twice)
    change = keep(world, [LINES[0], LINES[0], LINES[1], LINES[0]])
    assert (change.added, change.kept) == (1, 3)
    assert len({c.id for c in passages(world, change.node_id)}) == 4
    clean(world)


def test_another_heading_above_the_same_words_is_another_passage(world):
    keep(world, LINES)
    change = keep(world, LINES, contexts={3: "animals.txt › Marsupials"})
    assert (change.added, change.kept) == (1, 8)
    world.digest()
    found = world.recall("marsupials").pages
    assert [page.node.content for page in found] == [LINES[3]]
    assert any("Marsupials\n" in t for texts, _ in world.embedder.requests for t in texts)


def test_what_stands_above_a_passage_finds_it_and_is_not_in_it(world):
    keep(world, LINES, contexts={5: "animals.txt › Wombatology"})
    page = world.recall("wombatology").pages[0]
    assert page.node.content == LINES[5]
    assert page.node.context == "animals.txt › Wombatology"


def test_a_short_document_is_its_own_passage_in_every_version(world):
    first = keep(world, ["A quokka is small.\n"])
    second = keep(world, ["A wombat is large.\n"])
    assert (second.added, second.retired) == (1, 0)
    world.digest()
    assert world.found("quokka") == []
    assert world.found("wombat") == ["A wombat is large.\n"]
    assert world.engine.node(first.node_id).content == "A quokka is small.\n"
    grown = keep(world, LINES)
    assert (grown.added, grown.kept) == (9, 0)
    assert world.found("wombat") == []
    clean(world)


def test_a_retired_document_leaves_recall_and_stays_on_the_timeline(world):
    change = keep(world, LINES)
    world.digest()
    chunks = passages(world, change.node_id)
    assert drive(world.engine.retire_document(URI), world.embedder) == 10
    assert world.found("quokka number 3") == []
    assert world.engine.documents([URI]) == {}
    assert all(world.engine.node(chunk.id) is not None for chunk in chunks)
    assert world.engine.statistics().embedded == 0
    clean(world)
    again = keep(world, LINES)
    assert again.added == 9
    assert world.found("quokka number 3")[0] == LINES[3]


@pytest.mark.parametrize("steps", range(1, 8))
def test_an_abandoned_version_is_finished_in_the_background(world, steps):
    keep(world, LINES)
    newer = [LINES[0], "Animal X is new.\n", *LINES[2:]]
    operation = world.engine.keep_document(draft(newer))
    for _ in range(steps):
        next(operation, None)
    operation.close()
    world.reopen()
    world.digest()
    node_id = world.engine.documents([URI])[URI].node_id
    assert [c.content for c in passages(world, node_id)] == newer
    assert world.found("quokka number 1 eats leaf 1") != [LINES[1]]
    clean(world)


def test_a_version_that_comes_while_the_last_is_being_cut_wins(world):
    keep(world, LINES)
    middle = world.engine.keep_document(draft(["Animal M: middle.\n", *LINES[1:]]))
    next(middle)
    next(middle)
    last = keep(world, [*LINES[:8], "Animal Z: last.\n"])
    for _ in middle:
        pass
    world.digest()
    assert [c.content for c in passages(world, last.node_id)] == [*LINES[:8], "Animal Z: last.\n"]
    assert world.found("animal M middle") != ["Animal M: middle.\n"]
    clean(world)


def test_the_background_and_an_ingest_never_cut_one_document_both(world):
    world.engine.attach(name="big.txt", text="A sentence. " * 40)
    keeping = world.engine.keep_document(draft(LINES))
    next(keeping)
    next(keeping)
    world.digest()
    for _ in keeping:
        pass
    node_id = world.engine.documents([URI])[URI].node_id
    assert [c.content for c in passages(world, node_id)] == LINES
    clean(world)


def test_attachments_have_names_and_no_versions(world):
    for _ in range(2):
        world.engine.attach(name="a.txt", text="Same words. " * 20)
    world.digest()
    documents = [n for n in world.engine._stores.timeline.chunked_ids() if n]
    assert len(documents) == 2
    assert all(
        "".join(c.content for c in passages(world, d)) == "Same words. " * 20 for d in documents
    )


def test_an_attachment_is_cut_where_its_host_says(world):
    text = "".join(LINES)
    node = world.engine.attach(name="a.txt", text=text, cuts=draft(LINES).cuts)
    world.digest()
    assert [c.content for c in passages(world, node.id)] == LINES
    assert {c.kind for c in passages(world, node.id)} == {NodeKind.CHUNK}


@pytest.mark.parametrize(
    "cuts",
    [
        (),
        (Cut(end=3),),
        (Cut(end=5), Cut(end=5), Cut(end=430)),
        (Cut(end=61), Cut(end=430)),
    ],
)
def test_cuts_that_would_lose_something_are_refused(world, cuts):
    wrong = dataclasses.replace(draft(LINES), cuts=cuts)
    with pytest.raises(InvariantError):
        next(world.engine.keep_document(wrong))
    assert world.engine.documents([URI]) == {}


def test_documents_of_a_folder_come_in_order_and_in_parts(world):
    for name in ("b/2", "b/1", "b%/1", "bb/1", "a/1"):
        drive(
            world.engine.keep_document(dataclasses.replace(draft(LINES[:1]), uri=f"/{name}")),
            world.embedder,
        )
    first = world.engine.documents_under("/b/", limit=1)
    assert [state.uri for state in first] == ["/b/1"]
    rest = world.engine.documents_under("/b/", after="/b/1")
    assert [state.uri for state in rest] == ["/b/2"]
    assert world.engine.documents_under("/B/") == ()


def test_a_document_that_is_shown_already_is_not_shown_in_parts(world):
    change = keep(world, LINES)
    world.digest()
    assert world.found("quokka number 3")[0] == LINES[3]
    assert world.found("quokka number 3", exclude=frozenset({change.node_id})) == []


def test_memories_from_before_documents_had_versions_are_as_they_were(tmp_path):
    folder = tmp_path / "old"
    folder.mkdir()
    database = Database(folder / "timeline.db", StorageConfig())
    migrate(database, migrations=MIGRATIONS[:1], backups_max=1)
    database.execute(
        "INSERT INTO nodes(id, kind, role, created_at_ms, status, content, source_uri, chunking)"
        " VALUES('n-1', 'document', 'none', 5, 'complete', ?, 'old.txt', 2)",
        ("A koala sleeps. A koala eats.",),
    )
    for at, text in ((0, "A koala sleeps."), (15, " A koala eats.")):
        database.execute(
            "INSERT INTO nodes(id, kind, role, created_at_ms, status, content, source_uri, parent_id, byte_start,"
            " byte_end) VALUES(?, 'chunk', 'none', 5, 'complete', ?, 'old.txt', 'n-1', ?, ?)",
            (f"n-{at}c", text, at, at + len(text)),
        )
    database.close()
    old = MemoryWorld(folder, CONFIG)
    try:
        old.digest()
        assert old.engine.audit(fix=True, full=True).clean
        assert old.found("koala sleeps")[0] == "A koala sleeps."
        assert old.engine.node("n-0c").context == ""
        assert (folder / f"timeline.db.before-v{len(MIGRATIONS)}").exists()
    finally:
        old.engine.close()


def test_a_new_stamp_changes_nothing_else(world):
    before = keep(world, LINES)
    world.engine.restamp_document(URI, "later")
    state = world.engine.documents([URI])[URI]
    assert (state.stamp, state.node_id) == ("later", before.node_id)
