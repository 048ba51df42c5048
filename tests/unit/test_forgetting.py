"""Forgetting a conversation: out of sight at once, out of every byte afterwards, whatever happens in between."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from memory.config import MemoryConfig, RestConfig, VectorConfig
from memory.requests import Yield
from memory.storage.vector_index import HostState
from memory.storage.vectors import pack
from memory.values import BlockKind, ConversationId, ForgetReport, Node, NodeKind, NodeStatus
from tests.fakes.driver import drive
from tests.fakes.embedder import vector_of
from tests.fakes.memory_world import MemoryWorld

SECRET = "The vault under Aldermoor opens with the phrase zwölf blaue Elstern"
ANSWER = "I will keep in mind that twelve jays open the vault of Aldermoor."
QUESTION = "Which phrase opens the vault of Aldermoor?"
ATTACHED = "Vault inventory of Aldermoor: seven crates of Zinnober pigments. " * 60
WORDS = ("Aldermoor", "aldermoor", "Elstern", "elstern", "Zinnober", "zinnober", "twelve jays")


def silent(_step: str, _done: int, _total: int) -> None:
    """Progress that nobody looks at."""


def bytes_with(folder: Path, *needles: bytes) -> list[str]:
    """Names of files in which one of the needles stands."""
    return sorted(
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if path.is_file() and any(needle in path.read_bytes() for needle in needles)
    )


def text_left(world: MemoryWorld) -> list[str]:
    return bytes_with(world.path, *(word.encode() for word in WORDS))


def page_in(world: MemoryWorld, conversation: ConversationId, node: Node, kind: BlockKind) -> None:
    world.engine.open_region(
        conversation, window_tokens=4000, system_tokens=10, reserve_tokens=10, tokenizer="t"
    )
    world.engine.page_in(
        conversation,
        turn=world.engine.next_turn(conversation),
        kind=kind,
        node_id=node.id,
        text=node.content,
        tokens=20,
    )


class Story:
    """A conversation with everything that can hang on one, and others that leant on it."""

    def __init__(self, world: MemoryWorld) -> None:
        self.world = world
        engine = world.engine
        self.secret = world.conversation()
        engine.rename_conversation(self.secret, "Aldermoor")
        attached = engine.attach(name="inventory.txt", text=ATTACHED)
        told = world.say(SECRET, self.secret, derived_from=(attached.id,))
        world.answer(told, ANSWER)
        world.say("note: Elstern", self.secret, kind=NodeKind.NOTE)
        page_in(world, self.secret, told, BlockKind.USER)
        world.digest()
        asked = world.say(QUESTION, self.secret)
        pages = world.recall(QUESTION, exclude=frozenset({asked.id})).pages
        engine.learn_used(query=QUESTION, question_id=asked.id, used=pages)
        world.answer(asked, ANSWER, derived_from=tuple(page.node.id for page in pages))
        self.other = world.conversation()
        later = world.say("What did I tell you about secrets?", self.other)
        partial = engine.begin_answer(question=later)
        memory = {"node_id": told.id, "excerpt": SECRET}
        trace = json.dumps({"memories": [memory], "notices": ["kept"]})
        self.elsewhere = engine.finish_answer(
            partial.id,
            content="You told me a phrase.",
            status=NodeStatus.COMPLETE,
            derived_from=(told.id,),
            trace=trace,
        )
        engine.learn_used(query="What did I tell you?", question_id=later.id, used=pages)
        page_in(world, self.other, told, BlockKind.MEMORY)
        self.kept = world.say("The garden shed needs new paint before winter.", self.other)
        world.digest()

    def forget(self) -> ForgetReport:
        self.world.engine.forgetting.ask(self.secret)
        return drive(self.world.engine.forgetting.run(self.secret, silent), self.world.embedder)


def test_nothing_of_it_is_in_any_byte_of_the_data_folder(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    story = Story(world)
    assert text_left(world)
    vector = pack(vector_of(SECRET))
    assert bytes_with(world.path, vector[:24])
    report = story.forget()
    assert report.searched
    assert report.left == ()
    assert report.files > 0
    assert report.nodes >= 6
    world.engine.close()
    assert text_left(world) == []
    assert bytes_with(world.path, vector[:24]) == []


def test_what_stays_is_sound_and_still_found(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    story = Story(world)
    story.forget()
    world.digest()
    assert world.engine.audit(fix=False, full=True).findings == ()
    assert world.found("paint for the garden shed") == [story.kept.content]
    assert world.engine.conversation(story.secret) is None
    assert [c.id for c in world.engine.conversations()] == [story.other]
    answer = world.engine.node(story.elsewhere.id)
    assert answer is not None
    assert answer.content == story.elsewhere.content
    assert answer.derived_from == ()
    assert answer.trace == '{"memories": [], "notices": ["kept"]}'
    assert world.engine.region(story.other).blocks == ()
    assert world.engine.statistics().learning_events == 0
    assert world.recall(QUESTION).pages == ()


def test_asked_for_it_is_out_of_sight_and_can_come_back(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    story = Story(world)
    before = world.found("vault phrase Aldermoor")
    assert SECRET in before
    world.engine.forgetting.ask(story.secret)
    assert world.engine.forgetting.pending() == (story.secret,)
    assert world.found("vault phrase Aldermoor") == []
    assert world.engine.search_messages("Aldermoor") == ()
    assert world.engine.messages(story.secret) == ()
    assert story.secret not in [c.id for c in world.engine.conversations()]
    world.engine.audit(fix=True, full=True)
    world.engine.forgetting.undo(story.secret)
    world.digest()
    assert world.engine.forgetting.pending() == ()
    assert world.found("vault phrase Aldermoor") == before
    assert len(world.engine.messages(story.secret)) == 4
    assert world.engine.audit(fix=False, full=True).findings == ()


def test_the_preview_says_what_goes(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    story = Story(world)
    preview = drive(world.engine.forgetting.preview(story.secret), world.embedder)
    assert (preview.messages, preview.notes, preview.documents) == (4, 1, 1)
    assert preview.elsewhere == 1
    touched = drive(world.engine.forgetting.touched(story.secret), world.embedder)
    assert touched == (story.other,)


def test_an_attachment_of_two_conversations_stays(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    shared = world.engine.attach(name="both.txt", text="A timetable of both talks.")
    first, second = world.conversation(), world.conversation()
    world.say("look at this", first, derived_from=(shared.id,))
    world.say("and here", second, derived_from=(shared.id,))
    world.engine.forgetting.ask(first)
    drive(world.engine.forgetting.run(first, silent), world.embedder)
    assert world.engine.node(shared.id) is not None


def test_a_phrase_that_another_conversation_says_too_is_no_remainder(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    first, second = world.conversation(), world.conversation()
    world.say("The kettle is on the stove.", first)
    world.say("The kettle is on the stove.", second)
    world.engine.forgetting.ask(first)
    report = drive(world.engine.forgetting.run(first, silent), world.embedder)
    assert report.shared >= 1
    assert report.left == ()


def test_a_question_asked_elsewhere_goes_on_under_its_own_wording(tmp_path):
    """K samples of another conversation that were merged with a forgotten one keep teaching."""
    world = MemoryWorld(tmp_path / "m")
    world.say("Aldermoor lies north of the river.")
    world.digest()
    first, second = world.conversation(), world.conversation()
    pages = world.recall("where does Aldermoor lie").pages
    assert pages
    asked = world.say("where does Aldermoor lie", first)
    world.engine.learn_used(query=asked.content, question_id=asked.id, used=pages)
    again = world.say("where does Aldermoor lie now", second)
    world.recall(again.content)
    world.engine.learn_used(query=again.content, question_id=again.id, used=pages)
    world.engine.forgetting.ask(first)
    drive(world.engine.forgetting.run(first, silent), world.embedder)
    assert world.engine.statistics().edges > 0
    assert world.engine._stores.log.texts(range(10)).values()
    assert world.engine.audit(fix=False, full=True).findings == ()


@pytest.mark.parametrize("step", range(0, 60, 6))
def test_a_run_that_was_cut_off_goes_on_at_the_next_start(tmp_path, step):
    world = MemoryWorld(tmp_path / "m")
    story = Story(world)
    world.engine.forgetting.ask(story.secret)
    operation = world.engine.forgetting.run(story.secret, silent)
    for _ in range(step):
        if not isinstance(next(operation, None), Yield):
            break
    operation.close()
    world.reopen()
    for conversation in world.engine.forgetting.pending():
        report = drive(world.engine.forgetting.run(conversation, silent), world.embedder)
        assert report.left == ()
    assert world.engine.forgetting.pending() == ()
    world.digest()
    assert world.engine.audit(fix=False, full=True).findings == ()
    world.engine.close()
    assert text_left(world) == []


def test_a_text_that_is_being_embedded_meanwhile_gets_no_vector(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    conversation = world.conversation()
    world.say(SECRET, conversation)
    run = world.engine.digest()
    request = run.send(None)
    while "Aldermoor" not in str(request):
        reply = world.embedder.embed(request.texts, request.kind) if request != Yield() else None
        request = run.send(reply)
    world.engine.forgetting.ask(conversation)
    drive(world.engine.forgetting.run(conversation, silent), world.embedder)
    with pytest.raises(StopIteration):
        run.send(world.embedder.embed(request.texts, request.kind))
    assert world.engine.audit(fix=False, full=True).findings == ()


def test_an_old_copy_from_before_a_migration_goes_too(tmp_path):
    world = MemoryWorld(tmp_path / "m")
    story = Story(world)
    copy = world.path / "timeline.db.before-v1"
    copy.write_bytes(SECRET.encode())
    assert story.forget().left == ()
    assert not copy.exists()


@pytest.mark.slow
def test_the_vector_index_holds_none_of_its_vectors(tmp_path):
    config = MemoryConfig(
        vectors=VectorConfig(start_lag_min=1, sync_threshold=4, hnsw_batch=3),
        rest=RestConfig(texts_per_run=64),
    )
    world = MemoryWorld(tmp_path / "m", config)
    try:
        story = Story(world)
        for number in range(12):
            world.say(f"filler number {number} about gardens", story.other)
        index = world.engine._stores.index
        pause = threading.Event()
        for _ in range(3000):
            world.digest()
            if index.state is HostState.READY and not world.engine._stores.vectors.lag():
                break
            pause.wait(0.01)
        assert index.state is HostState.READY
        vector = vector_of(SECRET).astype("<f2").astype("<f4").tobytes()[:16]
        assert bytes_with(index.folder, vector)
        assert story.forget().left == ()
        assert bytes_with(world.path, vector) == []
        world.digest()
        assert world.found("paint for the garden shed")[0] == story.kept.content
    finally:
        world.engine.close()
