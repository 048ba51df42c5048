"""Plain values of rest that cross the boundary of the memory engine: dreams, sleep, the dream journal, the flywheel.

Owns no state and does no I/O, as `memory/values.py`. All times are UTC milliseconds (`*_ms`).
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from memory.values import DebtId, NodeId


class Cause(StrEnum):
    """Who wrote an entry of the journal."""

    USER = "user"
    """A citation, a "not relevant", memories used in an answer."""
    SEARCH = "search"
    """A search of the past that somebody asked for."""
    DREAM = "dream"
    REHEARSAL = "rehearsal"
    FLYWHEEL = "flywheel"


BACKGROUND: frozenset[Cause] = frozenset({Cause.DREAM, Cause.REHEARSAL, Cause.FLYWHEEL})
"""What happens without being asked for: the dream journal shows these unless its filter says otherwise."""


class RestOutcome(StrEnum):
    """How a dream, a rehearsal or a sleep ended."""

    DONE = "done"
    """Dream: the debt is paid. Rehearsal: a question was posed. Sleep: nothing is left to do."""
    PARTLY = "partly"
    """Dream: the visit's share was read; the debt went to the end of the queue with its progress."""
    EMPTY = "empty"
    """There was nothing to do."""
    UNSURE = "unsure"
    """Dream: all of it was read, and to what is left this judge has no clear answer. The debt is put aside; nothing is stained."""
    JUDGE_OUT = "judge_out"
    """The judge does not answer: nothing changed, try again after the back-off."""
    SUGGESTS = "suggests"
    """This judge is not trusted: it may not pay, stain or point. Another model is needed."""
    WOKEN = "woken"
    BUDGET = "budget"
    """Sleep: its time is used up."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DreamReport:
    """One visit to one debt. `judged` were put before the judge, `answered` of them got a yes or no; `remaining` is unread still.

    `unclear` of them were read twice without a clear answer, and put aside with the debt.
    """

    outcome: RestOutcome
    debt_id: DebtId | None = None
    judged: int = 0
    answered: int = 0
    discoveries: tuple[NodeId, ...] = ()
    remaining: int = 0
    unclear: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearsalReport:
    """One question posed ahead of time. `question` is "" where none was; `found` are the nodes it leads to from now on."""

    outcome: RestOutcome
    question: str = ""
    judged: int = 0
    found: tuple[NodeId, ...] = ()
    written: bool = False
    """True when a model worded the question."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SleepReport:
    """A whole sleep. `unclear` notes were put aside without a clear answer. `retry_after_s` is when to try again after a failure (exponential), 0 when nothing failed."""

    outcome: RestOutcome
    visits: int = 0
    rehearsals: int = 0
    judged: int = 0
    answered: int = 0
    discoveries: int = 0
    cleared: int = 0
    unclear: int = 0
    debts_open: int = 0
    elapsed_s: float = 0.0
    retry_after_s: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NapReport:
    """What a nap has cleared: resident blocks, and entries of the caches."""

    blocks: int
    cached: int


# --- the dream journal


class JournalKind(StrEnum):
    """What an entry did."""

    READ = "read"
    """Notes were judged for a question; a yes made a pointer."""
    DEBT_CLEARED = "debt_cleared"
    """As READ, and the debt is paid with it."""
    PUT_ASIDE = "put_aside"
    """A debt was read to its end, and what is left of it got no clear answer."""
    REOPENED = "reopened"
    """A debt that was put aside is owed again: another judge reads now."""
    REHEARSED = "rehearsed"
    """A question was posed ahead of time, and leads to its answer from now on."""
    POINTED = "pointed"
    """The user's doing: memories used or cited."""
    REFUSED = "refused"
    """The user's doing: not relevant."""
    KNOWLEDGE = "knowledge"
    """A conclusion was recorded."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalNode:
    """A note an entry speaks of. `node_id` is None when it is not there any more."""

    seq: int
    title: str
    node_id: NodeId | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalEntry:
    """One change: what was read, what was concluded, which pointer or record was made, when and by which judge.

    `yes` and `no` are the verdicts (of `no` at most `JournalFilter.nodes_max`; `no_count` are all), `sources` where the new
    pointers start, `debt_id` the debt it paid on. `record_id` is the node that was made. `new` means that it came after the
    mark of `mark_journal_seen`. `unclear` are notes without a clear answer (no more than of `no`; `unclear_count` are all).
    """

    id: int
    at_ms: int
    cause: Cause
    kind: JournalKind
    question: str
    judge: str = ""
    yes: tuple[JournalNode, ...] = ()
    no: tuple[JournalNode, ...] = ()
    no_count: int = 0
    sources: tuple[JournalNode, ...] = ()
    debt_id: DebtId | None = None
    record_id: NodeId | None = None
    record: str = ""
    undone: bool = False
    new: bool = False
    unclear: tuple[JournalNode, ...] = ()
    unclear_count: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalFilter:
    """Which entries to show, newest first. `before_id` pages on (the last id shown); `text` is looked for in the question."""

    causes: frozenset[Cause] = BACKGROUND
    finds_only: bool = False
    undone: bool = True
    since_ms: int | None = None
    text: str = ""
    before_id: int | None = None
    limit: int = 50
    nodes_max: int = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalPage:
    """Entries, newest first; `more` when older ones fit the filter too; `unseen` counts all new background entries."""

    entries: tuple[JournalEntry, ...]
    more: bool
    unseen: int


# --- the flywheel


class ExperienceSource(StrEnum):
    """Where an experience comes from."""

    CITED = "cited"
    NOT_RELEVANT = "not_relevant"
    FOUND = "found"
    """The exact layer found it where the search did not."""
    EXECUTOR = "executor"


@dataclass(frozen=True, slots=True, kw_only=True)
class Experience:
    """Something that was tried, in which situation, and what came of it. `node_ids` are the notes it rests on."""

    source: ExperienceSource
    operation: str
    context: str
    outcome: str
    success: bool
    node_ids: tuple[NodeId, ...] = ()
    id: int = 0
    at_ms: int = 0
    knowledge_id: NodeId | None = None
    """The conclusion it was distilled into."""


class ProposalState(StrEnum):
    """What the user said to a proposal."""

    OPEN = "open"
    ACCEPTED = "accepted"
    REJECTED = "rejected"


@dataclass(frozen=True, slots=True, kw_only=True)
class SkillProposal:
    """A way of doing something, seen to work at least three times. Nothing happens with it until the user accepts it."""

    id: int
    created_at_ms: int
    name: str
    text: str
    experiences: tuple[int, ...]
    state: ProposalState = ProposalState.OPEN


class GoalKind(StrEnum):
    """What a permanent goal does with an idle turn. Source: seed item G35."""

    IMPROVE = "improve"
    """Distil experiences into knowledge."""
    TEST = "test"
    """Put a conclusion before the judge again, with what it rests on."""
    AUTOMATE = "automate"
    """Propose a skill."""
    OWN = "own"
    """The user's: its text is posed as a question to the past."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """A permanent goal; idle turns go round. The three built-in ones have no text (the window words them)."""

    id: int
    kind: GoalKind
    text: str
    enabled: bool = True
    visited_at_ms: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class FlywheelReport:
    """One idle turn of the flywheel: which goal had it, and what came of it."""

    outcome: RestOutcome
    goal: Goal | None = None
    knowledge_id: NodeId | None = None
    proposal_id: int | None = None
    judged: int = 0
