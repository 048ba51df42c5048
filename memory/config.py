"""Every limit of the memory engine in one place, with unit and reason.

A frozen value: the host builds one `MemoryConfig` and hands it to `MemoryEngine.open`. Nothing in `memory` reads settings,
environment variables or a clock of its own, but for `memory/storage/vector_folder.py`.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from memory.values import Layout


class RagMode(StrEnum):
    """How nearest vectors are found. Source: design 4.4 "Linear and non-linear RAG"."""

    AUTO = "auto"
    ANN = "ann"
    LINEAR = "linear"


@dataclass(frozen=True, slots=True, kw_only=True)
class StorageConfig:
    """Limits of the stores.

    Attributes:
        busy_ms: how long SQLite waits for a lock that only a virus scanner can hold (we are alone by the process lock).
        cache_kib: SQLite page cache; 16 MiB keeps the hot b-tree levels of 100k nodes.
        index_characters_max: more of one node is not indexed lexically (tokenising costs 0.5 µs a character); the
            substring scan still sees all of it.
        neighbour_terms_max: words taken from each neighbouring message into a message's lexical key.
        document_head_characters: so much of a document is searchable before it is chunked.
        backups_max: copies kept from before schema migrations; older ones go.
    """

    busy_ms: int = 2_000
    cache_kib: int = 16_384
    index_characters_max: int = 20_000
    neighbour_terms_max: int = 200
    document_head_characters: int = 4_000
    backups_max: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorConfig:
    """Limits of the vector host and of the linear scan.

    Attributes:
        host: whether the vector host is ever started; without it every search is the exact scan.
        rag_mode: see `RagMode`.
        ann_rows_min: from so many vectors on `auto` asks Chroma; below, the exact scan costs about a millisecond.
        resident_rows_max: vectors held in memory as float32 (1.5 KB each at 384 dimensions: 180 MB), once an exact scan
            needs them; later ones are read from the file at each scan.
        slice_rows: rows read between two `Yield`s (about 10 ms); a selection of no more nodes is read from the file.
        batch_rows: vectors per upsert; 43 ms for a single one in a 60k collection, hardly more for 32.
        batches_in_flight_max: unacknowledged batches. Two of 25 KB fit the pipe's buffer, so sending never blocks.
        start_lag_min: unsent vectors from which the host is worth starting (200 MB and a second of one core).
        acknowledgement_wait_s: the one wait of `digest`, while batches are in flight: filling must not spin.
        query_timeout_s: how long a recall waits for the host before it scans.
        audit_timeout_s: how long an audit waits for counts and ids.
        silence_timeout_s: a host that acknowledges nothing for so long is wedged, and is replaced.
        open_timeout_s: an open that takes longer hangs; the host is killed and its folder set aside.
        restart_backoff_s: wait before restart 1, 2, 3…; after the last one the host stays down until the next start.
        sync_threshold: HNSW is written after so many changes; Chroma's 1,000 would replay up to 1,000 at each start.
        hnsw_batch: changes held brute-force before they enter the graph.
        ef_construction, neighbours, ef_search: HNSW quality; Chroma's own defaults, stated.
        sample_rows: stored vectors compared with truth after each open.
        broken_folders_max: folders set aside that are kept for inspection.
    """

    host: bool = True
    rag_mode: RagMode = RagMode.AUTO
    ann_rows_min: int = 20_000
    resident_rows_max: int = 120_000
    slice_rows: int = 4_000
    batch_rows: int = 32
    batches_in_flight_max: int = 2
    start_lag_min: int = 32
    acknowledgement_wait_s: float = 0.01
    query_timeout_s: float = 0.25
    audit_timeout_s: float = 10.0
    silence_timeout_s: float = 60.0
    open_timeout_s: float = 60.0
    restart_backoff_s: tuple[float, ...] = (0.0, 2.0, 10.0, 60.0)
    sync_threshold: int = 200
    hnsw_batch: int = 100
    ef_construction: int = 100
    neighbours: int = 16
    ef_search: int = 100
    sample_rows: int = 8
    broken_folders_max: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class RecallConfig:
    """Limits and thresholds of recall; similarities are calibrated, 0..1.

    Attributes:
        standing_min, standing_margin: see `memory.recall.standing`: a passage must stand out by at least the first, and
            by the second more than the best of as many unrelated ones would, in standard deviations.
        gate: a page may be shown when its fused score reaches this. Source: design 4.4 "Gate".
        sure: the search stops at what it shows when the chance that the evidence is among it reaches this (`memory.recall.gate`);
            else the exact layer may look further. One half: rather here than elsewhere.
        certainty_scale: what of a rank's difference counts once in that chance. At 0.85 its mean is the share of questions whose
            evidence is shown: 0.74 and 0.73 on LoCoMo, 0.48 and 0.48 on CoSQA.
        keep_ratio: … and this share of the best page's score, so that one clear hit does not drag in its neighbours.
        agreement: weight of the sum of both signals, so that two halves can pass together.
        informative_share: the words found must carry this share of ln(nodes) in idf to count in full.
        candidates_per_page: the candidate factor of seed item K8.
        near_weight: bm25 weight and coverage credit of words that stand in a neighbouring message only.
        query_terms_max: rarest terms of a long question that are looked up.
        common_share: a term in more than this share of the nodes is not looked up when a rarer one is there.
        postings_max: entries of the index that one search reads: rarest terms first, as many as fit. The common ones still
            count in the ranking of what the rare ones, and the vectors, have found.
        duplicate_overlap: Jaccard of two pages' terms from which only the better is kept.
        access_boost: weight of ln(1 + cited). Source: seed item K10.
        assistant_weight: factor for the model's own messages after the gate: the user's words come before the model's
            repetition of them ("Okay, I will remember that …").
        asking_weight: factor for a message that also asks ("Which database is it? Write the line"): it comes after plain
            statements, and does not raise the bar for them.
        project_boost: factor for pages of the asking project, applied after the gate.
        boost_scale: what a factor's logarithm counts in the ranking: a page that just passes the gate (0.5) stands about four
            deviations out.
        entries: best raw hits whose learned edges are walked.
        entries_learned: best raw hits that learning starts edges from, beside the question itself.
        edge_follow, edge_veto: K similarity that follows an edge, and that blocks one. Source: seed item 1.2-6.
        unseen_pair_weight: what a bigram that no node has counts: half of all bigrams cross a word's border and are no word.
        scan_rows_max: nodes read by the substring scan of one recall.
        scan_slice_rows: nodes read between two `Yield`s.
        scan_needle_min: a shorter substring would match nearly everything.
        search_rows_max: nodes read by the substring part of a search over messages, which is one step (20 ms).
        query_characters_max: longer questions are cut for recall.
        query_cache: remembered query vectors (a repeated question embeds once; learning needs the vector).
    """

    standing_min: float = 3.5
    standing_margin: float = 0.4
    gate: float = 0.5
    sure: float = 0.5
    certainty_scale: float = 0.85
    keep_ratio: float = 0.7
    agreement: float = 0.6
    informative_share: float = 0.5
    candidates_per_page: int = 3
    near_weight: float = 0.35
    query_terms_max: int = 32
    common_share: float = 0.2
    postings_max: int = 20_000
    duplicate_overlap: float = 0.9
    access_boost: float = 0.05
    assistant_weight: float = 0.9
    asking_weight: float = 0.6
    project_boost: float = 1.1
    boost_scale: float = 8.0
    entries: int = 8
    entries_learned: int = 3
    edge_follow: float = 0.80
    edge_veto: float = 0.90
    unseen_pair_weight: float = 0.5
    scan_rows_max: int = 20_000
    scan_slice_rows: int = 1_000
    search_rows_max: int = 4_000
    scan_needle_min: int = 2
    query_characters_max: int = 4_000
    query_cache: int = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RankingConfig:
    """The one fusion: a sum of log-odds, so that evidence adds up and a strong signal outweighs a weak one.

    Meaning is the cosine in standard deviations of the store's own cosines to the question; words are BM25. What a passage
    is decides what they count. Measured by `tests/benchmarks/recall.py`, with an ablation of each.

    Attributes:
        pool: best hits of words, and of vectors, that are ranked.
        neighbours_of: best of them whose neighbours on the timeline are ranked as well.
        words: weight of BM25 for prose; conversation leans on words.
        code_words: the same for code, which is asked for in other words than it is written in; a question that names an
            identifier counts its words in full.
        saturation, length_share: BM25's k1 and b.
        length: terms of an average passage, until enough are stored to measure it.
        hub: share of a passage's nearness to *everything* that is taken off its cosine. Short small talk is near every
            question ("hubs"); code is not, and is not corrected. Source: Mu and Viswanath, "All-but-the-top" (2018).
        near, next_near: what the neighbours, and theirs, lend to a passage of the same conversation or document.
        around: what the best passage of the same conversation or document lends, at most `around_reach` places away: first the
            session, then the turn.
        speaker: for a passage that begins with the name of someone whom the question names ("Ann: …").
        asking: taken from a message that asks: a question is no answer.
        substance: weight of ln(1 + terms) of a message: "sounds great!" is near much and answers nothing.
        spread: taken from a message for each better one of the same conversation: answers that need several memories find them
            in several conversations.
        half_life_days, decay: messages lose `decay` in all, half of it in so many days. Documents and notes do not age.
        cohort_rows: stored vectors by which cosines are read, spread over the store.
    """

    pool: int = 200
    neighbours_of: int = 48
    words: float = 0.43
    code_words: float = 0.06
    saturation: float = 0.9
    length_share: float = 0.4
    length: float = 40.0
    hub: float = 0.7
    near: float = 0.26
    next_near: float = 0.1
    around: float = 0.5
    around_reach: int = 64
    speaker: float = 0.85
    asking: float = 0.65
    substance: float = 0.5
    spread: float = 0.33
    half_life_days: float = 30.0
    decay: float = 0.5
    cohort_rows: int = 512


@dataclass(frozen=True, slots=True, kw_only=True)
class LearningConfig:
    """Limits of the pointer graph. Source: seed item G13.

    Attributes:
        merge: queries this similar are one K sample.
        samples_per_side: positive and negative K samples kept per edge.
        edges_per_source: targets kept per source, so that one record stays far below diskcache's 32 KB file limit.
        sources_per_event: nodes that one act of learning starts edges from.
        cache_entries: neighbour cache (LFU).
        clusters_compared: most recent distinct queries that a new one is compared with.
        sources_per_target: ways back remembered per target, for showing the graph.
        same_question: likeness from which two wordings that ask for the same (`memory.recall.wording`) share verdicts and stains; 1
            is the mean of related probe pairs.
        near_question: likeness from which they share what a sample of it confirms.
        clusters_max: clusters of questions for which verdicts and stains are kept. Source: design 4.4 "Exact".
        judges_per_cluster: judge epochs kept per cluster: this one, and the one before it.
        intervals_max: intervals of a stain.
        yes_max: nodes answered yes, and wordings, that a cluster remembers.
        fragments_max: open fragments. Source: seed item G15.
        debt_intervals_max: intervals of what was read of one debt.
        unclear_judges: judges remembered that had no clear answer to what is left of a debt; an older one is asked once more.
        anchors_max, anchor_window, anchor_windows: cap, nodes per window, and windows from which a node is far. Source: G14.
    """

    merge: float = 0.93
    samples_per_side: int = 8
    edges_per_source: int = 32
    sources_per_event: int = 4
    cache_entries: int = 256
    clusters_compared: int = 2_000
    sources_per_target: int = 32
    same_question: float = 1.0
    near_question: float = 0.8
    clusters_max: int = 256
    judges_per_cluster: int = 2
    intervals_max: int = 128
    yes_max: int = 32
    fragments_max: int = 512
    debt_intervals_max: int = 256
    unclear_judges: int = 4
    anchors_max: int = 128
    anchor_window: int = 8
    anchor_windows: int = 2


class FollowMode(StrEnum):
    """When an edge is followed. Source: seed item 1.2-6."""

    COSINE = "cosine"
    JUDGE = "judge"


@dataclass(frozen=True, slots=True, kw_only=True)
class ExactConfig:
    """Limits of the exact layer. Source: design 4.4 step 4; similarities are calibrated.

    Attributes:
        follow: `cosine`: an edge whose K is near enough (`RecallConfig.edge_follow`) is followed as it is; `judge`: the judge
            reads the target first. Half of LoCoMo's questions have another one within that distance ("Jon's favourite …",
            "Gina's favourite …"), so the judge reads it: one forward pass.
        edge_consider: an edge this near is not followed unread, but its target is judged before anything else. While a search
            waits to be continued only those are that recall would follow: that any two questions are a little alike is no news.
        doors, door_min: best entries whose jumps are taken, and the score that makes one: a jump needs no judge, so the door
            must be near the question. Source: seed item 1.2-4.
        edges_judged: targets of edges that are judged before the entries, one by one: the first is most often right, and
            more would take the entries' budget.
        entries_judged: best candidates of the search that are judged.
        entries_checked: those of them that are read again for a wording that is only near one asked before.
        anchors_judged: hottest anchors that are judged. Source: seed item 1.2-7.
        batch: nodes per request to the judge. Source: seed item 1.2-10.
        scan_rows: nodes looked at between two `Yield`s, where few of them can be judged.
        finds_max: pages of one search.
    """

    follow: FollowMode = FollowMode.JUDGE
    edge_consider: float = 0.5
    doors: int = 3
    door_min: float = 0.3
    edges_judged: int = 3
    entries_judged: int = 16
    entries_checked: int = 2
    anchors_judged: int = 4
    batch: int = 8
    scan_rows: int = 64
    finds_max: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class PagingConfig:
    """Watermarks and protections of a context region. Source: design 4.3.

    Attributes:
        high_watermark, low_watermark: shares of the region budget.
        recent_turns: turns that are protected …
        recent_share: … as far as they fit this share of the budget.
        half_life_turns: a block's heat halves in so many turns.
        page_in_heat: heat of a block that enters.
        title_characters_max: of a block in the panels.
        layout: where blocks stand in the prompt (`memory/paging/layout.py`).
    """

    high_watermark: float = 0.9
    low_watermark: float = 0.5
    recent_turns: int = 6
    recent_share: float = 0.5
    half_life_turns: float = 8.0
    page_in_heat: float = 1.0
    title_characters_max: int = 60
    layout: Layout = Layout.APPEND_LOG


@dataclass(frozen=True, slots=True, kw_only=True)
class RestConfig:
    """Background work and the pressure meter. Source: design 4.5 and 4.6.

    Attributes:
        chunk_characters: longer documents are split; also the size of a chunk.
        chunks_per_slice: chunks written in one transaction (about 15 ms).
        chunks_per_run: chunks written by one `digest()`.
        texts_per_run: texts embedded by one `digest()`.
        lexical_rows_per_slice: nodes re-indexed between two `Yield`s.
        fatigue_window: accesses that the meter looks back on.
        fatigue_every_s: a point of the curve, and the window itself, are kept so often …
        fatigue_history_s: … and for so long.
        dream_nodes: nodes judged per visit to a debt. Source: design 4.6.
        dream_batch: of them per request to the judge; also the size of the spans that are ordered by score.
        dream_spans: spans of a debt that one visit looks at; a larger gap is seen from its newest end.
        sleep_s: time budget of a sleep. Source: design 4.6.
        failures_max: visits in a row without the judge from which a sleep gives up.
        retry_first_s, retry_max_s: when to try again after one, doubled each time.
        rehearsals_per_sleep: questions posed ahead of time in one sleep. Source: seed item G31 has 4; most are decided unread.
        rehearsal_reach: newest nodes that rehearsal looks at; what came before them is not new any more.
        rehearsal_looks: nodes looked at by one rehearsal until one needs a question.
        rehearsal_judged: judgements of one rehearsed search.
        rehearsal_near: likeness from which a new note may answer an old question, calibrated as for passages.
        question_characters_max: of a written question.
        experiences_max: kept; the oldest go.
        experiences_clustered: newest of them that are compared.
        cluster_overlap: Jaccard from which two are alike. Source: seed item G33.
        knowledge_min, skill_min: experiences from which a conclusion is drawn, and a skill proposed. Source: design 5.5.
        knowledge_max: conclusions in recall.
        knowledge_characters_max, skill_characters_max: their size.
        proposals_max: open proposals. Source: seed item G34.
        goals_max: permanent goals.
    """

    chunk_characters: int = 1_500
    chunks_per_slice: int = 5
    chunks_per_run: int = 256
    texts_per_run: int = 16
    lexical_rows_per_slice: int = 25
    fatigue_window: int = 200
    fatigue_every_s: float = 300.0
    fatigue_history_s: float = 86_400.0
    dream_nodes: int = 64
    dream_batch: int = 8
    dream_spans: int = 256
    sleep_s: float = 1_800.0
    failures_max: int = 3
    retry_first_s: float = 60.0
    retry_max_s: float = 21_600.0
    rehearsals_per_sleep: int = 8
    rehearsal_reach: int = 256
    rehearsal_looks: int = 16
    rehearsal_judged: int = 16
    rehearsal_near: float = 0.5
    question_characters_max: int = 200
    experiences_max: int = 2_000
    experiences_clustered: int = 400
    cluster_overlap: float = 0.3
    knowledge_min: int = 2
    skill_min: int = 3
    knowledge_max: int = 200
    knowledge_characters_max: int = 600
    skill_characters_max: int = 1_500
    proposals_max: int = 12
    goals_max: int = 24


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryConfig:
    """All of the above."""

    storage: StorageConfig = field(default_factory=StorageConfig)
    vectors: VectorConfig = field(default_factory=VectorConfig)
    recall: RecallConfig = field(default_factory=RecallConfig)
    ranking: RankingConfig = field(default_factory=RankingConfig)
    learning: LearningConfig = field(default_factory=LearningConfig)
    exact: ExactConfig = field(default_factory=ExactConfig)
    paging: PagingConfig = field(default_factory=PagingConfig)
    rest: RestConfig = field(default_factory=RestConfig)
