"""The whole memory engine as a state machine: what no sequence of calls, closings and crashes may break.

After each step: every text ever recorded is found by its own word; every pointer leads to a node that exists and every block
keeps its bytes; nothing claims to have been read by a sweep, for none ran; the region is the fold of its events; queue and
region hold the same; the audit is clean. A crash is a copy of the folder as it lies, opened elsewhere. Machines with a
planted bug prove that these checks can fail. Source: style anchors, "Stateful tests of paging", 5 and 7 to 10.
"""

from __future__ import annotations

import shutil
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    invariant,
    precondition,
    rule,
    run_state_machine_as_test,
)

from memory.engine.regions import Regions
from memory.errors import BudgetExceeded
from memory.events import RegionChanged
from memory.paging.context_region import ContextRegion
from memory.storage.regions import RegionStore
from memory.values import BlockKind, PointerKind
from tests.fakes.memory_world import MemoryWorld

SETTINGS = settings(
    max_examples=12,
    stateful_step_count=20,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
WINDOWS = (700, 1_000, 1_600)
SUBJECTS = ("the harbour", "数据库索引", "a red kite", "缓存策略")


class EngineMachine(RuleBasedStateMachine):
    """Calls as a host makes them, against plain dicts."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp(prefix="growbox-machine-"))
        self.lives = 0
        self.world = MemoryWorld(self.folder / "0")
        self.conversation = self.world.conversation()
        self.texts: dict[str, str] = {}
        self.rendered: dict[int, str] = {}
        self.open_region(WINDOWS[1])

    def teardown(self) -> None:
        self.world.engine.close()
        shutil.rmtree(self.folder)

    def open_region(self, window: int) -> None:
        self.world.engine.open_region(
            self.conversation,
            window_tokens=window,
            system_tokens=100,
            reserve_tokens=100,
            tokenizer="t",
        )

    def blocks(self):
        return self.world.engine.blocks(self.conversation)

    def record(self, subject: str):
        word = f"word{len(self.texts)}x"
        node = self.world.say(f"{subject} {word} 。", self.conversation)
        self.texts[node.id] = word
        return node

    def enter(self, turn: int, node, kind: BlockKind, tokens: int) -> None:
        pointer = PointerKind.PLACEHOLDER if kind is BlockKind.MEMORY else PointerKind.REAL
        block = self.world.engine.page_in(
            self.conversation,
            turn=turn,
            kind=kind,
            node_id=node.id,
            text=node.content,
            tokens=tokens,
            pointer=pointer,
        )
        self.rendered[block.id] = node.content

    # -- steps

    @rule(subject=st.sampled_from(SUBJECTS))
    def remember(self, subject: str) -> None:
        self.record(subject)

    @rule(
        subject=st.sampled_from(SUBJECTS),
        tokens=st.integers(5, 150),
        answered=st.booleans(),
    )
    def take_turn(self, subject: str, tokens: int, answered: bool) -> None:
        engine, question = self.world.engine, self.record(subject)
        before = max((block.id for block in self.blocks()), default=0)
        pages = self.world.recall(subject, exclude=frozenset({question.id})).pages[:2]
        turn = engine.next_turn(self.conversation)
        try:
            engine.make_room(self.conversation, tokens * (2 + len(pages)))
        except BudgetExceeded:
            return
        kept = [(block.id, block.text) for block in self.blocks()]
        for page in pages:
            self.enter(turn, page.node, BlockKind.MEMORY, tokens)
        self.enter(turn, question, BlockKind.USER, tokens)
        if answered:
            self.enter(turn, self.record(f"{subject}!"), BlockKind.ASSISTANT, tokens)
        else:
            engine.retract(self.conversation, before)
            assert [(block.id, block.text) for block in self.blocks()] == kept

    @precondition(lambda self: self.blocks())
    @rule(data=st.data())
    def confirm(self, data) -> None:
        block = data.draw(st.sampled_from(self.blocks()))
        self.world.engine.confirm(self.conversation, [block.node_id])
        now = {b.id: b.pointer for b in self.blocks()}
        assert now[block.id] is PointerKind.REAL

    @precondition(lambda self: self.blocks())
    @rule(data=st.data(), pinned=st.booleans())
    def pin(self, data, pinned: bool) -> None:
        block = data.draw(st.sampled_from(self.blocks()))
        self.world.engine.pin(self.conversation, block.id, pinned)

    @precondition(lambda self: self.blocks())
    @rule(data=st.data())
    def evict(self, data) -> None:
        block = data.draw(st.sampled_from(self.blocks()))
        self.world.engine.evict(self.conversation, block.id)

    @rule()
    def compact(self) -> None:
        self.world.engine.compact_region(self.conversation)

    @rule(window=st.sampled_from(WINDOWS))
    def resize(self, window: int) -> None:
        self.open_region(window)

    @rule()
    def digest(self) -> None:
        self.world.digest()

    @rule()
    def reopen(self) -> None:
        self.world.reopen()

    @rule()
    def crash(self) -> None:
        self.lives += 1
        after = self.folder / str(self.lives)
        shutil.copytree(self.world.path, after)
        self.world.engine.close()
        self.world.path = after
        self.world.engine = self.world._open()

    # -- what holds

    @invariant()
    def every_text_is_found(self) -> None:
        for node_id, word in self.texts.items():
            assert [node.id for node in self.world.engine.search_messages(word)] == [node_id]

    @invariant()
    def pointers_lead_to_nodes_and_blocks_keep_their_bytes(self) -> None:
        for block in self.blocks():
            assert self.world.engine.node(block.node_id) is not None
            assert block.text == self.rendered[block.id]

    @invariant()
    def nothing_claims_to_be_swept(self) -> None:
        ledger = self.world.engine.ledger()
        assert (ledger.open, ledger.cleared) == ((), 0)
        assert ledger.nodes == len(self.texts)

    @invariant()
    def the_region_is_the_fold_of_its_events(self) -> None:
        changes = self.world.events.of(RegionChanged)
        assert sum(c.paged_in - c.evicted for c in changes) == len(self.blocks())

    @invariant()
    def queue_and_region_hold_the_same(self) -> None:
        engine = self.world.engine
        region, queue = engine.region(self.conversation), engine.queue(self.conversation)
        assert {e.block_id for e in queue.entries} == {b.block.id for b in region.blocks}
        assert region.used_tokens + region.reserve_tokens <= region.window_tokens

    @invariant()
    def the_audit_is_clean(self) -> None:
        assert self.world.engine.audit(fix=False, full=True).findings == ()


TestEngine = EngineMachine.TestCase
TestEngine.settings = SETTINGS


def _nothing(*_arguments, **_options) -> None:
    """A step that is left out."""


def _silent_retract(self, conversation_id, after_block_id):
    region = self._need(conversation_id)
    removed = region.retract(after_block_id)
    self._store(conversation_id, region, removed=removed)
    return removed


def _retracts_too_much(self, after_block_id):
    return self._remove([i for i in self._blocks if i >= after_block_id])


def _confirms_nothing(_self, _node_ids):
    return ()


BUGS = {
    "blocks are not written": (RegionStore, "save_blocks", _nothing),
    "evicted blocks come back": (RegionStore, "drop_blocks", _nothing),
    "an eviction is not told": (Regions, "retract", _silent_retract),
    "a turn takes its predecessor with it": (ContextRegion, "retract", _retracts_too_much),
    "placeholders stay": (ContextRegion, "confirm", _confirms_nothing),
}


@contextmanager
def planted(bug: str):
    owner, name, wrong = BUGS[bug]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(owner, name, wrong)
        yield


@pytest.mark.parametrize("bug", BUGS)
def test_the_machine_catches_a_planted_bug(bug: str) -> None:
    quiet = settings(
        SETTINGS,
        print_blob=False,
        database=None,
        derandomize=True,
        max_examples=100,
        phases=[Phase.generate],
        report_multiple_bugs=False,
    )
    with planted(bug), pytest.raises(BaseException) as caught:  # noqa: PT011 - any failure will do
        run_state_machine_as_test(EngineMachine, settings=quiet)
    assert not isinstance(caught.value, KeyboardInterrupt | SystemExit)
