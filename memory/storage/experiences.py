"""What the flywheel keeps in `timeline.db`: experiences, proposals of skills, permanent goals. Truth, bounded by the caller.

An experience that was distilled keeps the conclusion's id, also when the conclusion is taken back: what the user did not want
is not drawn again. Callers that change more than one thing hold the transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import msgspec

from memory.ports import Clock
from memory.rest_values import (
    Experience,
    ExperienceSource,
    Goal,
    GoalKind,
    ProposalState,
    SkillProposal,
)
from memory.storage.database import Database, Row
from memory.storage.learning_log import query_key
from memory.text import storable
from memory.values import NodeId

_ALL = 1 << 30


class ExperienceStore:
    """Reads and writes the three."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._db = database
        self._clock = clock

    # --- experiences

    def add(self, experience: Experience, limit: int) -> int:
        """Keeps one; the oldest beyond `limit` go."""
        with self._db.transaction():
            cursor = self._db.execute(
                "INSERT INTO experiences(at_ms, source, operation, context, outcome, success, node_ids)"
                " VALUES(?, ?, ?, ?, ?, ?, ?)",
                (
                    self._clock.now_ms(),
                    experience.source,
                    storable(experience.operation),
                    storable(experience.context),
                    storable(experience.outcome),
                    int(experience.success),
                    msgspec.json.encode(experience.node_ids).decode(),
                ),
            )
            kept = int(cursor.lastrowid or 0)
            self._db.execute("DELETE FROM experiences WHERE id <= ?", (kept - limit,))
        return kept

    def newest(self, limit: int, *, undistilled: bool = False) -> tuple[Experience, ...]:
        """Newest first; `undistilled` are those that no conclusion holds."""
        where = "WHERE knowledge_id IS NULL" if undistilled else ""
        rows = self._db.rows(
            f"SELECT * FROM experiences {where} ORDER BY id DESC LIMIT ?",  # noqa: S608 - a constant
            (limit,),
        )
        return tuple(_experience_of(row) for row in rows)

    def distilled(self, experience_ids: Sequence[int], knowledge_id: str) -> None:
        """These are held by a conclusion; "" where they have none in common, and are not compared again."""
        self._db.execute_many(
            "UPDATE experiences SET knowledge_id = ? WHERE id = ?",
            [(knowledge_id, i) for i in experience_ids],
        )

    def drawn(
        self, node_ids: Collection[NodeId], wordings: Collection[str]
    ) -> tuple[set[NodeId], tuple[SkillProposal, ...]]:
        """What was drawn from nodes and questions (`query_key`): conclusions and proposals, which may quote them."""
        gone = self._resting_on(node_ids, wordings)
        conclusions = {e.knowledge_id for e in gone.values() if e.knowledge_id is not None}
        return conclusions, self._proposed_from(gone)

    def forget(self, node_ids: Collection[NodeId], wordings: Collection[str]) -> set[NodeId]:
        """Deletes experiences that rest on forgotten nodes, or that speak of forgotten questions (`query_key`), and proposals.

        Returns the conclusions that were drawn from them: they may quote what is forgotten, and are to go with it. What
        else such a conclusion held is free for another one.
        """
        gone = self._resting_on(node_ids, wordings)
        conclusions, proposals = self.drawn(node_ids, wordings)
        with self._db.transaction():
            self._db.execute_many("DELETE FROM experiences WHERE id = ?", [(i,) for i in gone])
            self._db.execute_many(
                "DELETE FROM proposals WHERE id = ?", [(p.id,) for p in proposals]
            )
            self._db.execute_many(
                "UPDATE experiences SET knowledge_id = NULL WHERE knowledge_id = ?",
                [(i,) for i in sorted(conclusions | set(node_ids))],
            )
        return conclusions

    def _resting_on(
        self, node_ids: Collection[NodeId], wordings: Collection[str]
    ) -> dict[int, Experience]:
        ids = frozenset(node_ids)
        return {
            e.id: e
            for e in self.newest(_ALL)
            if not ids.isdisjoint(e.node_ids) or query_key(e.context) in wordings
        }

    def _proposed_from(self, gone: Collection[int]) -> tuple[SkillProposal, ...]:
        """Also those of which an experience is kept no longer: nobody can say any more what they quote."""
        rows = self._db.rows("SELECT id FROM experiences")
        kept = {int(row[0]) for row in rows} - set(gone)
        return tuple(p for p in self.proposals() if not kept.issuperset(p.experiences))

    # --- proposals

    def propose(self, name: str, text: str, experience_ids: Sequence[int]) -> int:
        """Keeps a proposal."""
        cursor = self._db.execute(
            "INSERT INTO proposals(created_at_ms, name, text, experiences, state) VALUES(?, ?, ?, ?, ?)",
            (
                self._clock.now_ms(),
                storable(name),
                storable(text),
                msgspec.json.encode(list(experience_ids)).decode(),
                ProposalState.OPEN,
            ),
        )
        return int(cursor.lastrowid or 0)

    def proposals(self) -> tuple[SkillProposal, ...]:
        """Open ones first, newest first."""
        rows = self._db.rows("SELECT * FROM proposals ORDER BY state <> 'open', id DESC")
        return tuple(
            SkillProposal(
                id=row["id"],
                created_at_ms=row["created_at_ms"],
                name=row["name"],
                text=row["text"],
                experiences=tuple(msgspec.json.decode(row["experiences"], type=list[int])),
                state=ProposalState(row["state"]),
            )
            for row in rows
        )

    def decide(self, proposal_id: int, state: ProposalState) -> bool:
        """False where it is not open."""
        cursor = self._db.execute(
            "UPDATE proposals SET state = ? WHERE id = ? AND state = 'open'", (state, proposal_id)
        )
        return cursor.rowcount == 1

    # --- goals

    def goals(self) -> tuple[Goal, ...]:
        """In the order in which they were made: the built-in ones first."""
        rows = self._db.rows("SELECT * FROM goals ORDER BY id")
        return tuple(
            Goal(
                id=row["id"],
                kind=GoalKind(row["kind"]),
                text=row["text"],
                enabled=bool(row["enabled"]),
                visited_at_ms=row["visited_at_ms"],
            )
            for row in rows
        )

    def add_goal(self, text: str) -> int:
        """One of the user's."""
        cursor = self._db.execute(
            "INSERT INTO goals(kind, text) VALUES(?, ?)", (GoalKind.OWN, storable(text))
        )
        return int(cursor.lastrowid or 0)

    def remove_goal(self, goal_id: int) -> bool:
        """Only the user's own can go."""
        cursor = self._db.execute(
            "DELETE FROM goals WHERE id = ? AND kind = ?", (goal_id, GoalKind.OWN)
        )
        return cursor.rowcount == 1

    def enable_goal(self, goal_id: int, *, enabled: bool) -> None:
        """Whether it takes its turn."""
        self._db.execute("UPDATE goals SET enabled = ? WHERE id = ?", (int(enabled), goal_id))

    def reword_goal(self, goal_id: int, text: str) -> None:
        """Another text for one of the user's."""
        self._db.execute(
            "UPDATE goals SET text = ? WHERE id = ? AND kind = ?",
            (storable(text), goal_id, GoalKind.OWN),
        )

    def next_goal(self) -> Goal | None:
        """The enabled one that waits longest."""
        waiting = [goal for goal in self.goals() if goal.enabled]
        return min(waiting, key=lambda goal: (goal.visited_at_ms, goal.id), default=None)

    def visit_goal(self, goal_id: int) -> None:
        """It has had its turn; also where the clock was set back, the others come first now."""
        latest = self._db.number("SELECT max(visited_at_ms) FROM goals")
        self._db.execute(
            "UPDATE goals SET visited_at_ms = ? WHERE id = ?",
            (max(latest + 1, self._clock.now_ms()), goal_id),
        )


def skill_text(name: str, text: str) -> str:
    """The content of the node that an accepted proposal becomes."""
    return storable(f"{name}\n\n{text}")


def _experience_of(row: Row) -> Experience:
    return Experience(
        id=row["id"],
        at_ms=row["at_ms"],
        source=ExperienceSource(row["source"]),
        operation=row["operation"],
        context=row["context"],
        outcome=row["outcome"],
        success=bool(row["success"]),
        node_ids=tuple(NodeId(i) for i in msgspec.json.decode(row["node_ids"], type=list[str])),
        knowledge_id=NodeId(row["knowledge_id"]) if row["knowledge_id"] else None,
    )
