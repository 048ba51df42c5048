"""`MemoryEngine`: the memory of one data folder, as the host sees it.

Owns nothing but its parts; each method is one step on the storage thread (asserted). `record` and the answer methods are
durable when they return. `recall`, `digest` and `rebuild` are generators of `memory.requests`. After a crash: answers that
were streaming are cancelled with their text kept, derived stores catch up in `digest`.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from memory.config import MemoryConfig
from memory.engine.digestion import Digestion
from memory.engine.documents import Documents
from memory.engine.forgetting import Forgetting
from memory.engine.journal import Journal
from memory.engine.learning import Learning
from memory.engine.regions import Regions
from memory.engine.resting import Resting, new_meter
from memory.engine.snapshots import ledger_snapshot, neighbourhood, stain_snapshot
from memory.events import EventSink
from memory.ports import Clock
from memory.recall.exact import ExactSearch
from memory.recall.recaller import Recaller
from memory.requests import Operation, Yield
from memory.rest_values import (
    DreamReport,
    Experience,
    FlywheelReport,
    Goal,
    JournalFilter,
    JournalPage,
    NapReport,
    RehearsalReport,
    RestOutcome,
    SkillProposal,
    SleepReport,
)
from memory.storage.audit import Audit, rebuild
from memory.storage.statistics import holdings, statistics
from memory.storage.stores import Stores, open_stores
from memory.values import (
    AuditReport,
    Block,
    BlockKind,
    Conversation,
    ConversationId,
    Cut,
    DebtId,
    DocumentChange,
    DocumentDraft,
    DocumentState,
    EmbedderEpoch,
    ExactQuery,
    ExactResult,
    FatigueSnapshot,
    LedgerSnapshot,
    NeighbourhoodSnapshot,
    Node,
    NodeDraft,
    NodeId,
    NodeKind,
    NodeStatus,
    Page,
    PointerKind,
    Project,
    ProjectHoldings,
    ProjectId,
    QueueSnapshot,
    RecallQuery,
    RecallResult,
    RegionSnapshot,
    RegionState,
    Role,
    StainSnapshot,
    Statistics,
)


class MemoryEngine:
    """The facade. All calls on the thread that opened it."""

    def __init__(self, stores: Stores) -> None:
        self._stores = stores
        self._journal = Journal(stores)
        self._recaller = Recaller(stores)
        self._documents = Documents(stores, self._journal)
        self._digestion = Digestion(stores, self._recaller.cache, self._documents)
        meter = new_meter(stores)
        self._regions = Regions(stores, meter)
        self._learning = Learning(stores, self._recaller.recent, self._recaller.cache)
        self._exact = ExactSearch(
            stores, self._recaller.cache, self._recaller.recent, self._learning
        )
        self._resting = Resting(
            stores,
            meter,
            recaller=self._recaller,
            exact=self._exact,
            learning=self._learning,
            regions=self._regions,
            journal=self._journal,
            documents=self._documents,
        )
        self.forgetting = Forgetting(stores, self._recaller, self._regions)

    @classmethod
    def open(
        cls,
        data_path: Path,
        *,
        config: MemoryConfig,
        clock: Clock,
        sink: EventSink,
        embedder: EmbedderEpoch,
    ) -> MemoryEngine:
        """Opens (or makes) a data folder. Never waits for the vector host.

        Raises:
            DataFolderLocked: another process owns the folder.
            DataTooNew: written by a newer program.
            CorruptStore: truth cannot be read.
            StorageError: no space, read-only, unreadable.
        """
        stores = open_stores(data_path, config=config, clock=clock, sink=sink, embedder=embedder)
        try:
            engine = cls(stores)
            stores.lexical.adopt_version()
            engine._journal.recover()
            stores.pointers.catch_up()
        except BaseException:
            stores.close()
            raise
        return engine

    def close(self) -> None:
        """Stops the vector host and releases the folder; idempotent."""
        if self._stores.database.is_open:
            self._resting.keep_meter()
        self._stores.close()

    def _guard(self) -> None:
        """Asserts the thread, and that the engine is open."""
        _ = self._stores.database.connection

    # --- journal

    def open_project(self, path: str, name: str) -> Project:
        """The project of a folder; made when new."""
        return self._stores.timeline.open_project(path, name)

    def projects(self) -> tuple[Project, ...]:
        """All projects, by name."""
        return self._stores.timeline.projects()

    def create_conversation(
        self, *, project_id: ProjectId | None = None, title: str = ""
    ) -> Conversation:
        """An empty conversation."""
        return self._stores.timeline.create_conversation(project_id, title)

    def conversation(self, conversation_id: ConversationId) -> Conversation | None:
        """One conversation."""
        found = self._stores.timeline.conversations(conversation_id)
        return found[0] if found else None

    def conversations(self) -> tuple[Conversation, ...]:
        """All, newest updated first."""
        return self._stores.timeline.conversations()

    def rename_conversation(self, conversation_id: ConversationId, title: str) -> None:
        """Changes a title."""
        self._stores.timeline.rename_conversation(conversation_id, title)

    def move_conversation(
        self, conversation_id: ConversationId, project_id: ProjectId | None
    ) -> None:
        """Gives a conversation to another project; None: to none."""
        with self._stores.database.transaction():
            self._stores.timeline.move_conversation(conversation_id, project_id)

    def holdings(self, project_id: ProjectId) -> ProjectHoldings:
        """What a project has in the memory."""
        return holdings(self._stores, project_id)

    def messages(self, conversation_id: ConversationId) -> tuple[Node, ...]:
        """The active branch, in order."""
        return self._stores.timeline.messages(conversation_id)

    def record(self, draft: NodeDraft) -> Node:
        """Appends a node; durable when it returns."""
        return self._journal.record(draft)

    def begin_turn(self, draft: NodeDraft, *, title: str) -> tuple[Conversation, Node, Node]:
        """Conversation (new where the draft names none), question and empty answer: durable together, or none of them."""
        return self._journal.begin_turn(draft, title)

    def begin_answer(self, *, question: Node) -> Node:
        """An empty partial answer to a question."""
        return self._journal.begin_answer(question)

    def checkpoint_answer(self, node_id: NodeId, content: str, *, trace: str | None = None) -> None:
        """Makes the text of a partial answer durable, and what the host notes about it, where it is given."""
        self._journal.checkpoint(node_id, content, trace)

    def finish_answer(  # noqa: PLR0913 - the facade's contract; all but the id are keywords
        self,
        node_id: NodeId,
        *,
        content: str,
        status: NodeStatus,
        token_ids: tuple[int, ...] | None = None,
        tokenizer: str | None = None,
        derived_from: tuple[NodeId, ...] = (),
        trace: str | None = None,
    ) -> Node:
        """Closes a partial answer."""
        return self._journal.finish(
            node_id,
            content=content,
            status=status,
            derived_from=derived_from,
            trace=trace,
            sampled=(token_ids, tokenizer),
        )

    def annotate_answer(self, node_id: NodeId, trace: str) -> None:
        """Replaces the host's own JSON about a finished answer; an unknown one changes nothing."""
        self._journal.annotate(node_id, trace)

    def node(self, node_id: NodeId) -> Node | None:
        """A node by id."""
        return self._stores.timeline.node(node_id)

    def node_at(self, seq: int) -> Node | None:
        """A node by its place on the timeline."""
        return self._stores.timeline.node_at(seq)

    def search_messages(self, text: str, limit: int = 50) -> tuple[Node, ...]:
        """Messages with all words, or with the text as it stands; newest first."""
        return self._journal.search_messages(text, limit)

    def attach(
        self,
        *,
        name: str,
        text: str,
        cuts: tuple[Cut, ...] = (),
        conversation_id: ConversationId | None = None,
        project_id: ProjectId | None = None,
    ) -> Node:
        """A document with its full text; a long one is chunked by `digest`, and findable by its head before.

        It has a name and no versions. Without `cuts` it is cut greedily.
        """
        draft = NodeDraft(
            kind=NodeKind.DOCUMENT,
            role=Role.NONE,
            content=text,
            conversation_id=conversation_id,
            project_id=project_id,
            source_uri=name,
            context=cuts[0].context if cuts else "",
        )
        return self._journal.attach(draft, cuts)

    # --- documents with versions

    def documents(self, uris: Sequence[str]) -> dict[str, DocumentState]:
        """What is known of these documents."""
        return self._stores.documents.states(uris)

    def documents_under(
        self, prefix: str, *, after: str = "", limit: int = 500
    ) -> tuple[DocumentState, ...]:
        """The next known documents whose uri begins with `prefix`, in order of uri."""
        return self._stores.documents.under(prefix, after, limit)

    def keep_document(self, draft: DocumentDraft) -> Operation[DocumentChange]:
        """Makes a text the newest version of its document; the passages it shares with the last keep node, vector and time.

        Durable after the first step; whatever interrupts the rest, `digest` finishes it.
        """
        self._guard()
        return (yield from self._documents.keep(draft))

    def restamp_document(self, uri: str, stamp: str) -> None:
        """The host has seen that the content is still the same under another stamp."""
        self._stores.documents.restamp(uri, stamp)

    def retire_document(self, uri: str) -> Operation[int]:
        """The document is gone: its passages leave recall, and stay on the timeline. Returns how many."""
        self._guard()
        return (yield from self._documents.retire(uri))

    # --- recall and background work

    def recall(self, query: RecallQuery) -> Operation[RecallResult]:
        """Finds pages for a question."""
        self._guard()
        yield from self._digestion.catch_up(query.exclude)
        result = yield from self._recaller.recall(query)
        self._tell_fatigue()
        return result

    def search_exactly(self, query: ExactQuery) -> Operation[ExactResult]:
        """Finds what the gate of `recall` did not let through, by pointers and by reading; learns from what is answered."""
        self._guard()
        yield from self._digestion.catch_up(query.exclude)
        result = yield from self._exact.search(query)
        self._resting.found(query, result)
        self._tell_fatigue()
        return result

    def search(self, query: RecallQuery, *, limit: int) -> Operation[tuple[Page, ...]]:
        """The best nodes for a question, ranked, whether or not they would pass the gate; teaches nothing."""
        self._guard()
        yield from self._digestion.catch_up(query.exclude)
        return (yield from self._recaller.search(query, limit))

    def digest(self) -> Operation[bool]:
        """One bounded run of background indexing; True when more is pending."""
        self._guard()
        return (yield from self._digestion.run())

    # --- paging

    def open_region(
        self,
        conversation_id: ConversationId,
        *,
        window_tokens: int,
        system_tokens: int,
        reserve_tokens: int,
        tokenizer: str,
    ) -> None:
        """Creates or restores the region of a conversation."""
        self._guard()
        self._regions.open(
            conversation_id,
            RegionState(
                window_tokens=window_tokens,
                system_tokens=system_tokens,
                reserve_tokens=reserve_tokens,
                tokenizer=tokenizer,
            ),
        )
        self._tell_fatigue()

    def blocks(self, conversation_id: ConversationId) -> tuple[Block, ...]:
        """Resident blocks as they stand in the prompt: in load order, unless the layout says otherwise."""
        self._guard()
        return self._regions.blocks(conversation_id)

    def page_in(  # noqa: PLR0913 - the facade's contract; all but the id are keywords
        self,
        conversation_id: ConversationId,
        *,
        turn: int,
        kind: BlockKind,
        node_id: NodeId,
        text: str,
        tokens: int,
        reason: str = "",
        pointer: PointerKind = PointerKind.REAL,
        token_ids: tuple[int, ...] | None = None,
    ) -> Block:
        """Appends a block to the region; `make_room` came before.

        Raises:
            InvariantError: no room, or the turn lies in the past.
        """
        self._guard()
        block = Block(
            id=0,
            turn=turn,
            kind=kind,
            node_id=node_id,
            text=text,
            tokens=tokens,
            loaded_at_ms=0,
            reason=reason,
            pointer=pointer,
            token_ids=token_ids,
        )
        return self._regions.page_in(conversation_id, block)

    def make_room(self, conversation_id: ConversationId, needed_tokens: int) -> tuple[Block, ...]:
        """Evicts in one batch when so many more tokens would not fit the budget.

        Raises:
            BudgetExceeded: not possible without protected blocks; nothing was evicted.
        """
        self._guard()
        removed = self._regions.make_room(conversation_id, needed_tokens)
        self._tell_fatigue()
        return removed

    def compact_region(self, conversation_id: ConversationId) -> tuple[Block, ...]:
        """Evicts ahead of time, in idle time, where the next turn would have to wait for it."""
        self._guard()
        removed = self._regions.compact(conversation_id)
        self._tell_fatigue()
        return removed

    def warm(
        self, conversation_id: ConversationId, node_ids: Iterable[NodeId], amount: float
    ) -> None:
        """Adds heat to the resident blocks of nodes."""
        self._guard()
        self._regions.warm(conversation_id, node_ids, amount)

    def confirm(self, conversation_id: ConversationId, node_ids: Iterable[NodeId]) -> None:
        """Makes the resident placeholders of nodes real: found again by an exact way, or cited."""
        self._guard()
        self._regions.confirm(conversation_id, node_ids)

    def retract(self, conversation_id: ConversationId, after_block_id: int) -> tuple[Block, ...]:
        """Takes back every block that entered after one (0: all): the turn they came for ended without a word.

        The nodes stay on the timeline, and what was evicted to make room for them stays evicted.
        """
        self._guard()
        return self._regions.retract(conversation_id, after_block_id)

    def pin(self, conversation_id: ConversationId, block_id: int, pinned: bool) -> None:
        """Sets or clears a pin."""
        self._guard()
        self._regions.pin(conversation_id, block_id, pinned=pinned)

    def evict(self, conversation_id: ConversationId, block_id: int) -> tuple[Block, ...]:
        """Removes a block by hand: a memory alone, anything else with its turn; pins and the newest turn stay."""
        self._guard()
        return self._regions.evict(conversation_id, block_id)

    def note_prompt(
        self, conversation_id: ConversationId, *, prompt_tokens: int, reused_tokens: int
    ) -> None:
        """Remembers what the last prompt cost."""
        self._guard()
        self._regions.note_prompt(
            conversation_id, prompt_tokens=prompt_tokens, reused_tokens=reused_tokens
        )

    def next_turn(self, conversation_id: ConversationId) -> int:
        """Opens the next turn and returns its number."""
        self._guard()
        return self._regions.next_turn(conversation_id)

    # --- learning

    def learn_used(self, *, query: str, question_id: NodeId, used: tuple[Page, ...]) -> None:
        """These pages went into the answer."""
        self._learning.used(query, question_id, (page.node.id for page in used))

    def learn_cited(self, *, query: str, question_id: NodeId, target_id: NodeId) -> None:
        """The user pinned a memory to the question: a jump leads to it from now on."""
        self._learning.cited(query, question_id, target_id)
        self._resting.cited(query, question_id, target_id)

    def learn_not_relevant(self, *, query: str, memory_id: NodeId) -> None:
        """The user says that a memory had nothing to do with the question."""
        self._learning.not_relevant(query, memory_id)
        self._resting.not_relevant(query, memory_id)

    # --- rest

    def reopen_debts(self) -> Operation[int]:
        """Debts that were put aside and whose judge has changed are owed again; how many. It costs no judgement."""
        self._guard()
        return (yield from self.forgetting.unless_forgotten(self._resting.dreamer.reopen(), 0))

    def dream(self, debt: DebtId | None = None) -> Operation[DreamReport]:
        """One bounded visit to a debt; None: to the next one of the queue."""
        self._guard()
        report = yield from self.forgetting.unless_forgotten(
            self._resting.dream(debt), DreamReport(outcome=RestOutcome.WOKEN)
        )
        self._tell_fatigue()
        return report

    def rehearse(self) -> Operation[RehearsalReport]:
        """Poses one question ahead of time, from what came new."""
        self._guard()
        ended = RehearsalReport(outcome=RestOutcome.WOKEN)
        return (yield from self.forgetting.unless_forgotten(self._resting.rehearser.once(), ended))

    def sleep(self, *, budget_s: float | None = None) -> Operation[SleepReport]:
        """Dreams and rehearses in turn until nothing is left, `wake`, or its time is used up; closing it at any request is clean."""
        self._guard()
        report = yield from self.forgetting.unless_forgotten(
            self._resting.sleeper.sleep(budget_s), SleepReport(outcome=RestOutcome.WOKEN)
        )
        self._tell_fatigue()
        return report

    def wake(self) -> None:
        """A running sleep ends before its next visit."""
        self._resting.sleeper.wake()

    def nap(self) -> NapReport:
        """Clears working set and caches; pins, the newest turns and everything learned stay."""
        self._guard()
        return self._resting.nap()

    def journal(self, wanted: JournalFilter | None = None) -> JournalPage:
        """The dream journal, newest first; what happened in the background unless the filter says otherwise."""
        self._guard()
        return self._resting.journal.page(JournalFilter() if wanted is None else wanted)

    def journal_unseen(self) -> int:
        """Background changes since `mark_journal_seen`."""
        self._guard()
        return self._resting.journal.unseen()

    def mark_journal_seen(self) -> None:
        """The journal was looked at."""
        self._resting.journal.mark_seen()

    def undo(self, entry_id: int) -> bool:
        """Takes a journal entry back: the memory is then as if it had never been. False where it is no more to undo."""
        self._guard()
        done = self._resting.journal.undo(entry_id)
        self._tell_fatigue()
        return done

    # --- flywheel

    def flywheel(self) -> Operation[FlywheelReport]:
        """One idle turn of the permanent goal that waits longest."""
        self._guard()
        ended = FlywheelReport(outcome=RestOutcome.WOKEN)
        return (yield from self.forgetting.unless_forgotten(self._resting.flywheel.turn(), ended))

    def record_experience(self, experience: Experience) -> int:
        """Keeps what came of something that was tried; `id` and `at_ms` are given here."""
        return self._resting.record_experience(experience)

    def experiences(self, limit: int = 100) -> tuple[Experience, ...]:
        """Newest first."""
        return self._stores.experiences.newest(limit)

    def proposals(self) -> tuple[SkillProposal, ...]:
        """Open ones first, newest first."""
        return self._stores.experiences.proposals()

    def decide_proposal(self, proposal_id: int, *, accepted: bool) -> NodeId | None:
        """What the user says to a proposal; an accepted skill is recorded as a node. None: rejected, or not open."""
        return self._resting.flywheel.decide(proposal_id, accepted=accepted)

    def goals(self) -> tuple[Goal, ...]:
        """Permanent goals: the three built-in ones, then the user's."""
        return self._stores.experiences.goals()

    def add_goal(self, text: str) -> Goal | None:
        """One of the user's; None for an empty text, or where there are enough."""
        return self._resting.add_goal(text)

    def reword_goal(self, goal_id: int, text: str) -> None:
        """Another text for one of the user's."""
        self._stores.experiences.reword_goal(goal_id, text)

    def remove_goal(self, goal_id: int) -> bool:
        """Only the user's own can go."""
        return self._stores.experiences.remove_goal(goal_id)

    def enable_goal(self, goal_id: int, enabled: bool) -> None:
        """Whether a goal takes its turn."""
        self._stores.experiences.enable_goal(goal_id, enabled=enabled)

    # --- snapshots and health

    def region(self, conversation_id: ConversationId | None) -> RegionSnapshot:
        """The context window to scale."""
        self._guard()
        return self._regions.region(conversation_id)

    def queue(self, conversation_id: ConversationId | None) -> QueueSnapshot:
        """The index queue, hottest first."""
        self._guard()
        return self._regions.queue(conversation_id)

    def ledger(self) -> LedgerSnapshot:
        """Open debts: what jumps skipped unread."""
        self._guard()
        return ledger_snapshot(self._stores)

    def stains(self) -> StainSnapshot:
        """What of the timeline was read, and how thoroughly."""
        self._guard()
        return stain_snapshot(self._stores)

    def neighbourhood(self, node_id: NodeId) -> NeighbourhoodSnapshot:
        """The pointer graph around a node."""
        self._guard()
        return neighbourhood(self._stores, node_id)

    def fatigue(self) -> FatigueSnapshot:
        """The pressure meter."""
        return self._resting.fatigue()

    def _tell_fatigue(self) -> None:
        self._resting.tell_fatigue()

    def statistics(self) -> Statistics:
        """Counts and the health of every store."""
        cache = self._recaller.cache
        return replace(
            statistics(self._stores),
            cache_hits=cache.hits,
            cache_misses=cache.misses,
            cache_evictions=cache.evictions,
        )

    def audit(self, *, fix: bool, full: bool) -> AuditReport:
        """Checks all stores against each other.

        Raises:
            CorruptStore: truth itself is damaged.
        """
        self._guard()
        report = Audit(self._stores).run(fix=fix, full=full)
        if fix and report.findings:
            self._recaller.cache.clear()
            self._regions.forget_loaded()
        return report

    def rebuild(self) -> Operation[AuditReport]:
        """Recreates every derived store from truth."""
        self._guard()
        for _ in rebuild(self._stores):
            yield Yield()
        return self.audit(fix=True, full=True)
