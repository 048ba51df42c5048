"""Rest, wired: dreams, rehearsals, sleep, nap, the meter, the flywheel and the journal of one engine.

Owns the meter and what survives of it: the window and one point of its curve per `fatigue_every_s` are kept in `timeline.db`, so a
kill loses at most that much. Everything else here is durable before it is told.
"""

from __future__ import annotations

from contextlib import suppress

import msgspec

from memory.engine.documents import Documents
from memory.engine.dream_journal import DreamJournal
from memory.engine.journal import Journal
from memory.engine.learning import Learning
from memory.engine.regions import Regions
from memory.errors import StorageError
from memory.events import FatigueChanged
from memory.recall.exact import ExactSearch
from memory.recall.recaller import Recaller
from memory.requests import Operation
from memory.rest.dream import Dreamer
from memory.rest.experience import Cluster
from memory.rest.fatigue import FatigueMeter
from memory.rest.flywheel import Flywheel
from memory.rest.rehearse import Rehearser
from memory.rest.sleep import Sleeper
from memory.rest_values import (
    Cause,
    DreamReport,
    Experience,
    ExperienceSource,
    Goal,
    NapReport,
    ProposalState,
)
from memory.storage.learning_log import LearningKind
from memory.storage.stores import Stores
from memory.text import normalise
from memory.values import (
    DebtId,
    ExactQuery,
    ExactResult,
    FatigueSnapshot,
    NodeDraft,
    NodeId,
    Way,
)

_METER = "fatigue_window"
_RECALL = "recall"  # the operation of an experience with the memory itself


def new_meter(stores: Stores) -> FatigueMeter:
    """The meter as the last run of the program has left it."""
    rest = stores.config.rest
    meter = FatigueMeter(
        window=rest.fatigue_window,
        every_ms=int(rest.fatigue_every_s * 1000),
        span_ms=int(rest.fatigue_history_s * 1000),
    )
    rows = stores.database.rows("SELECT at_ms, total FROM fatigue_history ORDER BY at_ms")
    traffic, _ = _window(stores)
    meter.restore(traffic, [(int(r[0]), float(r[1])) for r in rows])
    return meter


def _window(stores: Stores) -> tuple[str, str]:
    kept = stores.database.meta(_METER)
    return ("", "") if kept is None else msgspec.json.decode(kept, type=tuple[str, str])


class Resting:
    """What an engine does while nobody asks."""

    def __init__(  # noqa: PLR0913 - wires the parts of the engine
        self,
        stores: Stores,
        meter: FatigueMeter,
        *,
        recaller: Recaller,
        exact: ExactSearch,
        learning: Learning,
        regions: Regions,
        journal: Journal,
        documents: Documents,
    ) -> None:
        self._stores = stores
        self._meter = meter
        self._recaller = recaller
        self._learning = learning
        self._regions = regions
        self._records = _Records(stores, journal, learning, documents)
        self.journal = self._records.dreams
        self.dreamer = Dreamer(stores, recaller.cache, recaller.recent, learning)
        self.rehearser = Rehearser(stores, recaller, exact, learning)
        self.sleeper = Sleeper(stores, self.dreamer, self.rehearser)
        self.flywheel = Flywheel(stores, self.rehearser, self._records, learning)
        self._told = 0.0
        self._kept_at_ms = 0
        recaller.cache.accesses.extend(mark == "+" for mark in _window(stores)[1])

    def dream(self, debt: DebtId | None) -> Operation[DreamReport]:
        """One visit by hand; where none is open, those that another judge has put aside are."""
        if debt is None and self.dreamer.next() is None:
            self.dreamer.new_round()
            yield from self.dreamer.reopen()
        return (yield from self.dreamer.visit(debt))

    def nap(self) -> NapReport:
        """Clears the working set, the caches and the meter's window; nothing else."""
        blocks = self._regions.clear()
        cached = len(self._recaller.cache) + len(self._recaller.recent)
        self._recaller.cache.clear()
        self._recaller.cache.accesses.clear()
        self._recaller.recent.clear()
        self._meter.rest()
        self.keep_meter()
        self.tell_fatigue()
        return NapReport(blocks=blocks, cached=cached)

    # --- the meter

    def fatigue(self) -> FatigueSnapshot:
        """Reads the meter; keeps it from time to time."""
        now = self._stores.clock.now_ms()
        every_ms = int(self._stores.config.rest.fatigue_every_s * 1000)
        snapshot = self._meter.snapshot(
            now,
            accesses=self._recaller.cache.accesses,
            fragments=self._stores.pointers.counts().fragments,
            nodes=self._stores.timeline.count(),
        )
        if abs(now - self._kept_at_ms) >= every_ms:
            self._kept_at_ms = now
            with suppress(
                StorageError
            ):  # a full disk is told by what matters; the meter only loses some minutes
                self._keep(snapshot)
        return snapshot

    def keep_meter(self) -> None:
        """Makes window and curve durable."""
        self._kept_at_ms = 0
        self.fatigue()

    def _keep(self, snapshot: FatigueSnapshot) -> None:
        """The points of the curve are those of the snapshot: no more are ever kept."""
        accesses = "".join("+" if hit else "-" for hit in self._recaller.cache.accesses)
        window = msgspec.json.encode((self._meter.state, accesses)).decode()
        with self._stores.database.transaction():
            self._stores.database.set_meta(_METER, window)
            self._stores.database.execute("DELETE FROM fatigue_history")
            self._stores.database.execute_many(
                "INSERT INTO fatigue_history(at_ms, total) VALUES(?, ?)", snapshot.history
            )

    def tell_fatigue(self) -> None:
        """An event, when the total has moved."""
        total = self.fatigue().total
        if total != self._told:
            self._told = total
            self._stores.sink.emit(FatigueChanged(total=total))

    # --- experiences with the memory itself

    def found(self, query: ExactQuery, result: ExactResult) -> None:
        """The exact layer found what the search did not; a remembered verdict is no new experience."""
        pages = [p for p in result.pages if p.way is not Way.VERDICT] if result.trusted else []
        if pages:
            found = tuple(page.node.id for page in pages)
            self._experience(ExperienceSource.FOUND, query.text, found, query.question_id)

    def cited(self, query: str, question_id: NodeId, target_id: NodeId) -> None:
        """The user pinned a memory to a question."""
        self._experience(ExperienceSource.CITED, query, (target_id,), question_id)

    def not_relevant(self, query: str, memory_id: NodeId) -> None:
        """The user called a memory wrong for a question."""
        self._experience(ExperienceSource.NOT_RELEVANT, query, (memory_id,), None)

    def _experience(
        self,
        source: ExperienceSource,
        query: str,
        found: tuple[NodeId, ...],
        question_id: NodeId | None,
    ) -> None:
        """It rests on what was found and on the question: it quotes both."""
        text = normalise(query)
        nodes = self._stores.timeline.nodes(sorted(found))
        if not text or not nodes:
            return
        best = nodes[next(i for i in found if i in nodes)]
        limit = self._stores.config.rest.knowledge_characters_max
        self.record_experience(
            Experience(
                source=source,
                operation=_RECALL,
                context=text[:limit],
                outcome=best.content[:limit],
                success=source is not ExperienceSource.NOT_RELEVANT,
                node_ids=found if question_id is None else (*found, question_id),
            )
        )

    def record_experience(self, experience: Experience) -> int:
        """Keeps one; the oldest of too many go."""
        return self._stores.experiences.add(experience, self._stores.config.rest.experiences_max)

    def add_goal(self, text: str) -> Goal | None:
        """A goal of the user's."""
        store, wanted = self._stores.experiences, normalise(text)
        if not wanted or len(store.goals()) >= self._stores.config.rest.goals_max:
            return None
        made = store.add_goal(wanted[: self._stores.config.rest.question_characters_max])
        return next(goal for goal in store.goals() if goal.id == made)


class _Records:
    """Makes and takes back the flywheel's nodes."""

    def __init__(
        self, stores: Stores, journal: Journal, learning: Learning, documents: Documents
    ) -> None:
        self._stores = stores
        self._journal = journal
        self._learning = learning
        self.dreams = DreamJournal(stores, learning, documents)

    def conclude(self, draft: NodeDraft, cluster: Cluster, writer: str) -> NodeId:
        """A conclusion with its event and the mark on its experiences: all of it or nothing."""
        with self._stores.database.transaction():
            node = self._journal.add(draft, chunking=0)
            self._learning.concluded(cluster[0].context, node.id, writer)
            self._stores.experiences.distilled([e.id for e in cluster], node.id)
        self._journal.tell(node)
        self._learning.tell(LearningKind.KNOWLEDGE, Cause.FLYWHEEL)
        self._learning.fold()
        return node.id

    def record_skill(self, draft: NodeDraft, proposal_id: int) -> NodeId | None:
        """The user accepted it."""
        with self._stores.database.transaction():
            if not self._stores.experiences.decide(proposal_id, ProposalState.ACCEPTED):
                return None
            node = self._journal.add(draft, chunking=0)
        self._journal.tell(node)
        return node.id

    def retract(self, node_id: NodeId) -> None:
        """Undoes the entry that made a conclusion."""
        entry = self._stores.log.made(node_id)
        if entry is not None:
            self.dreams.undo(entry.id)

    def writer(self, node_id: NodeId) -> str:
        """By the entry that made it."""
        entry = self._stores.log.made(node_id)
        return "" if entry is None or entry.reading is None else entry.reading.judge
