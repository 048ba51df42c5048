"""The exact layer: finds what the search's gate did not let through, by following pointers and by reading.

Stages open in turn and stop at the first yes: remembered verdicts → forced jumps → edges → the entries themselves → the hottest
anchors → the linear scan, newest to oldest. A search whose budget was used up is not begun anew by the same question: only what
was added since is read, and the scan goes on where it stopped when it is asked to (`before_seq`), or forced. Nothing is out of
reach: forced, all of the timeline is read. The vectors are read from truth, never from Chroma, so that a lost index changes no
result. Source: design 4.4 steps 4 and 5.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from memory.config import FollowMode, RagMode
from memory.recall.evidence import Evidence
from memory.recall.exact_run import Court, Lead, Run, Teacher, page_of, result_of
from memory.recall.hybrid import Candidate, HybridSearch
from memory.recall.neighbour_cache import NeighbourCache
from memory.recall.past_scan import Batch, PastScan
from memory.recall.pointer_walk import Path, PointerWalk, Question
from memory.recall.recent_queries import RecentQueries, RecentQuery, Slice, embedded
from memory.recall.wording import matched
from memory.requests import Operation, Yield
from memory.rest_values import Cause
from memory.storage import intervals
from memory.storage.pointer_records import Book
from memory.storage.stores import Stores
from memory.text import any_terms, normalise
from memory.values import ExactQuery, ExactResult, Node, NodeId, Way


class ExactSearch:
    """Searches the past over open stores."""

    def __init__(
        self, stores: Stores, cache: NeighbourCache, recent: RecentQueries, teacher: Teacher
    ) -> None:
        config = stores.config
        self._stores = stores
        self._config = config.exact
        self._recent = recent
        self._walk = PointerWalk(stores, cache)
        self._court = Court(stores, teacher)
        linear = replace(config, vectors=replace(config.vectors, rag_mode=RagMode.LINEAR))
        self._search = HybridSearch(replace(stores, config=linear))

    def search(self, query: ExactQuery, cause: Cause = Cause.SEARCH) -> Operation[ExactResult]:
        """Finds what a judge says answers the question; nothing for an empty one."""
        started_s = self._stores.clock.monotonic_s()
        text = normalise(query.text)[: self._stores.config.recall.query_characters_max].strip()
        if not text:
            return ExactResult(pages=())
        run = Run(
            query=query,
            question=Question(text=text, vector=None),
            evidence=Evidence(self._stores.timeline, text, query.exclude),
            started_s=started_s,
            newest=self._stores.timeline.last_seq(),
            cause=cause,
        )
        yield from self._enter(run)
        yield from self._court.convene(run)
        self._go_on(run)
        run.book = self._book(run)
        if not run.scan_begun:
            yield from self._open_stages(run)
        if not run.pages and run.judge:
            run.book = self._book(run)
            yield from self._scan(run)
        self._court.note_pause(run)
        self._remember(run)
        return self._result(run)

    def _open_stages(self, run: Run) -> Operation[None]:
        for stage in (self._remembered, self._jumps, self._edges, self._entries, self._anchors):
            yield from stage(run)
            if run.pages:
                return

    # --- doors

    def _enter(self, run: Run) -> Operation[None]:
        """The question's vector, and the candidates that the search would have shown, had they passed its gate."""
        text = run.question.text
        if any_terms(text):
            vector = yield from embedded(text, self._recent, self._stores.epoch.dimension)
            if vector is None:
                run.degraded.append("embedder")
            run.question = Question(text=text, vector=vector)
        asked = {*run.query.exclude, *((run.query.question_id,) if run.query.question_id else ())}
        excluded = [n.seq for n in self._stores.timeline.nodes(sorted(asked)).values()]
        terms = self._search.terms(text, excluded)
        found: list[Candidate] = []
        limit = 4 * self._config.entries_judged + len(excluded)
        for _ in self._search.search(terms, run.question.vector, limit, found):
            yield Yield()
        run.entries = [c for c in found if c.node.id not in asked]

    def _go_on(self, run: Run) -> None:
        """The next slice of a search has seen what the last one has, those nodes too that the judge is unsure of."""
        known = self._recent.find(run.question.text)
        last = None if known is None else known.searched
        at = (run.judge, run.query.before_seq, run.query.forced)
        if last is not None and (last.judge, last.cursor, last.forced) == at:
            run.seen.update(last.tried)

    def _remember(self, run: Run) -> None:
        """For what is learned of this question later, and for the next slice of this search."""
        entries = run.entries[: self._stores.config.recall.entries_learned]
        self._recent.remember(
            run.question.text,
            RecentQuery(
                vector=run.question.vector,
                entries=tuple(c.node.id for c in entries),
                searched=Slice(
                    judge=run.judge,
                    cursor=run.cursor,
                    forced=run.query.forced,
                    tried=frozenset(run.seen),
                ),
            ),
        )

    def _book(self, run: Run) -> Book:
        """What this judge has said so far for questions like this one."""
        if run.cluster is None:
            self._find_cluster(run)
        if run.cluster is None or not run.judge:
            return Book()
        return self._stores.pointers.cluster(run.cluster).books.get(run.judge, Book())

    def _find_cluster(self, run: Run) -> None:
        """The wordings that this one is counted with: those of the nearest that was judged before; None where it is the first."""
        log, homes = self._stores.log, self._homes()
        run.wording = log.known(run.question.text)
        if run.wording in homes:
            run.cluster = homes[run.wording]
            return
        vector, learning = run.question.vector, self._stores.config.learning
        if vector is None:
            return
        recent = list(homes)[-learning.clusters_compared :]
        texts, likeness = log.texts(recent), log.likeness(recent, vector)
        found = matched(run.question.text, texts, likeness, learning)
        if found is not None:
            run.cluster, run.same = homes[found.query], found.same
            run.wording = found.query if found.same else run.wording

    def _homes(self) -> dict[int, int]:
        """The cluster of each wording that was judged, those of the cluster used last at the end."""
        pointers = self._stores.pointers
        homes: dict[int, int] = {}
        for cluster in pointers.clusters():
            books = pointers.cluster(cluster).books.values()
            homes.update((asked, cluster) for book in books for asked in book.asked)
            homes[cluster] = cluster
        return homes

    # --- stages

    def _remembered(self, run: Run) -> Operation[None]:
        """Verdicts of this judge: those on this very wording, else those on others of its cluster.

        What answered a question that is only near this one is read for this one first.
        """
        yes = () if run.query.forced else run.book.yes[::-1]
        nodes = self._stores.timeline.recallable([seq for seq, _ in yes])
        own = [seq for seq, asked in yes if asked == run.wording]
        for seqs in (own, [seq for seq, _ in yes]):
            leads = self._admitted(run, [Lead(node=nodes[seq]) for seq in seqs if seq in nodes])
            if leads and run.same:
                run.cached += len(leads)
                run.pages.extend(page_of(lead, Way.VERDICT, "verdict") for lead in leads)
                return
        leads = leads[: self._config.edges_judged]
        yield from self._court.try_leads(run, leads, Way.VERDICT, "verdict", size=1)

    def _jumps(self, run: Run) -> Operation[None]:
        """Pinned by the user: a jump needs no judge, but its door must be near the question."""
        doors = [
            c.node.id for c in run.entries[: self._config.doors] if c.score >= self._config.door_min
        ]
        paths = [p for p in self._paths(run, doors) if p.forced]
        leads = self._leads(run, paths)
        run.pages.extend(page_of(lead, Way.JUMP, "jump") for lead in leads)
        self._court.jumped(run, leads)
        yield from ()

    def _edges(self, run: Run) -> Operation[None]:
        """Edges that a question like this one has used; what is less alike is read before it is followed.

        Where the search waits to be continued, only those that recall would follow.
        """
        recall = self._stores.config.recall
        least = recall.edge_follow if run.waits else self._config.edge_consider
        entries = [c.node.id for c in run.entries[: recall.entries]]
        paths = [p for p in self._paths(run, entries) if not p.forced and p.similarity >= least]
        paths.sort(key=lambda p: (-p.similarity, p.target, p.source))
        if self._config.follow is FollowMode.COSINE:
            sure = [p for p in paths if p.similarity >= recall.edge_follow]
            leads = self._leads(run, sure)
            run.pages.extend(page_of(lead, Way.POINTER, "edge") for lead in leads)
            self._court.jumped(run, leads)
            if leads:
                return
        leads = self._unread(run, self._leads(run, paths))[: self._config.edges_judged]
        yield from self._court.try_leads(run, leads, Way.POINTER, "edge", size=1)

    def _entries(self, run: Run) -> Operation[None]:
        """The candidates themselves: near misses of the gate. Without this one that is never scanned would be out of reach."""
        resolved = run.evidence.resolve(run.entries)
        leads = [Lead(node=c.node, similarity=c.similarity, lexical=c.lexical) for c in resolved]
        leads = self._admitted(run, leads)[: self._config.entries_judged]
        checked = 0 if run.same else self._config.entries_checked
        sample = [lead for lead in leads[:checked] if lead.node.seq not in run.seen]
        rest = self._unread(run, leads[checked:])
        if run.waits:
            rest = [lead for lead in rest if lead.node.seq > run.book.newest]
        for part in (sample, rest):
            size = self._config.batch
            yield from self._court.try_leads(run, part, Way.ENTRY, "entry", size=size)

    def _anchors(self, run: Run) -> Operation[None]:
        """What was found far away before, whatever was asked."""
        if run.waits:
            return
        anchors = self._stores.pointers.anchors()[: self._config.anchors_judged]
        found = self._stores.timeline.nodes([NodeId(a.target) for a in anchors])
        door = tuple(c.node.id for c in run.entries[:1])
        nodes = self._recallable(found.values())
        leads = [
            Lead(node=nodes[NodeId(a.target)], sources=door)
            for a in anchors
            if NodeId(a.target) in nodes
        ]
        leads = self._unread(run, self._admitted(run, leads))
        yield from self._court.try_leads(run, leads, Way.ANCHOR, "anchor", size=self._config.batch)

    def _scan(self, run: Run) -> Operation[None]:
        """Newest to oldest. What an earlier run has left unread below its cursor waits until it is asked for."""
        query, book = run.query, run.book
        waits = run.waits
        scan = PastScan(self._stores, self._walk, run, book.newest if waits else 0)
        run.cursor = query.before_seq if query.before_seq is not None else run.newest + 1
        size = self._config.batch
        while not run.pages and run.judge and not self._court.exhausted(run):
            batch = Batch(cursor=run.cursor)
            for _ in scan.fill(batch, min(size, query.judgements_max - run.judged)):
                yield Yield()
            run.cursor = batch.cursor
            if batch.leads:
                before = run.judged
                yield from self._court.judge(
                    run, batch.leads, way=Way.SCAN, reason="scan", dead=batch.dead
                )
                run.notes_read += run.judged - before
                if not run.judge:
                    run.cursor = batch.leads[0].node.seq + 1  # unanswered, so unread
            if batch.ended:
                run.cursor = book.cursor if waits else 1
                break
        run.complete = run.cursor <= 1

    # --- what may be shown

    def _paths(self, run: Run, entries: Sequence[NodeId]) -> list[Path]:
        own = () if run.query.question_id is None else (run.query.question_id,)
        return self._walk.paths(dict.fromkeys((*own, *entries)), run.question)

    def _leads(self, run: Run, paths: Iterable[Path]) -> list[Lead]:
        """Targets of paths, each once, turned into evidence; the sources of all paths to it come along."""
        sources: dict[NodeId, list[NodeId]] = {}
        for path in paths:
            sources.setdefault(path.target, []).append(path.source)
        nodes = self._recallable(self._stores.timeline.nodes(sorted(sources)).values())
        leads: list[Lead] = []
        for target, ways_in in sources.items():
            if target in nodes:
                found = self._evidence(run, nodes[target])
                leads.extend(Lead(node=node, sources=tuple(ways_in)) for node in found)
        return self._admitted(run, leads)

    def _evidence(self, run: Run, node: Node) -> list[Node]:
        candidate = Candidate(node=node, score=1.0, similarity=None, lexical=None, own=frozenset())
        return [c.node for c in run.evidence.resolve([candidate])]

    def _recallable(self, nodes: Iterable[Node]) -> dict[NodeId, Node]:
        found = self._stores.timeline.recallable([n.seq for n in nodes])
        return {node.id: node for node in found.values()}

    def _admitted(self, run: Run, leads: Sequence[Lead]) -> list[Lead]:
        """Neither excluded, nor rejected now, nor called not relevant for a question like this one before."""
        allowed = [
            lead
            for lead in leads
            if lead.node.id not in run.query.rejected and run.evidence.admits(lead.node)
        ]
        vetoed = self._walk.vetoed([lead.node.id for lead in allowed], run.question)
        unique = {lead.node.id: lead for lead in reversed(allowed) if lead.node.id not in vetoed}
        return list(reversed(unique.values()))

    def _unread(self, run: Run, leads: Sequence[Lead]) -> list[Lead]:
        """What this judge has not answered yet, now or – unless forced – before."""
        known = () if run.query.forced else run.book.answered
        unread = []
        for lead in leads:
            if lead.node.seq in run.seen:
                continue
            if intervals.holding(known, lead.node.seq) is None:
                unread.append(lead)
            else:
                run.cached += 1
        return unread

    def _result(self, run: Run) -> ExactResult:
        times = self._stores.timeline.times([min(run.cursor, run.newest)] if run.cursor else [])
        return result_of(
            run,
            finds_max=self._config.finds_max,
            elapsed_s=self._court.elapsed_s(run),
            back_to_ms=next(iter(times.values()), None),
        )
