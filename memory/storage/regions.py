"""Persisted context regions: plain values in, the same values out.

A region is written in the transaction of the change that made it, so after a crash it is the one before or after, and its
text is byte-identical. Derived from use, not rebuilt: losing it costs a cold prefill.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from memory.storage.database import Database, Row
from memory.storage.timeline import pack_ids, unpack_ids
from memory.values import (
    Block,
    BlockKind,
    ConversationId,
    NodeId,
    PointerKind,
    RegionState,
    ResidentBlock,
)


class RegionStore:
    """Reads and writes regions. Writers hold the transaction."""

    def __init__(self, database: Database) -> None:
        self._db = database

    def load(
        self, conversation_id: ConversationId
    ) -> tuple[RegionState, tuple[ResidentBlock, ...]] | None:
        """The state and the blocks in load order; None for a conversation without a region."""
        row = self._db.row(
            "SELECT state FROM regions WHERE conversation_id = ?", (conversation_id,)
        )
        if row is None:
            return None
        rows = self._db.rows(
            "SELECT * FROM blocks WHERE conversation_id = ? ORDER BY id", (conversation_id,)
        )
        state = msgspec.json.decode(row["state"], type=RegionState)
        return state, tuple(_resident_of(r) for r in rows)

    def save_state(self, conversation_id: ConversationId, state: RegionState) -> None:
        """Writes the counters and budget."""
        self._db.execute(
            "INSERT INTO regions(conversation_id, state) VALUES(?, ?)"
            " ON CONFLICT(conversation_id) DO UPDATE SET state = excluded.state",
            (conversation_id, msgspec.json.encode(state).decode()),
        )

    def save_blocks(
        self, conversation_id: ConversationId, residents: Sequence[ResidentBlock]
    ) -> None:
        """Writes blocks that are new or whose heat, pin or pointer has changed."""
        self._db.execute_many(
            "INSERT INTO blocks(conversation_id, id, turn, kind, node_id, text, tokens, loaded_at_ms, reason, pointer,"
            " token_ids, heat, heat_turn, pinned) VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
            " ON CONFLICT(conversation_id, id) DO UPDATE SET heat = excluded.heat,"
            " heat_turn = excluded.heat_turn, pinned = excluded.pinned, pointer = excluded.pointer",
            [
                (
                    conversation_id,
                    r.block.id,
                    r.block.turn,
                    r.block.kind,
                    r.block.node_id,
                    r.block.text,
                    r.block.tokens,
                    r.block.loaded_at_ms,
                    r.block.reason,
                    r.block.pointer,
                    pack_ids(r.block.token_ids),
                    r.heat,
                    r.heat_turn,
                    int(r.pinned),
                )
                for r in residents
            ],
        )

    def drop_blocks(self, conversation_id: ConversationId, block_ids: Sequence[int]) -> None:
        """Removes blocks."""
        self._db.execute_many(
            "DELETE FROM blocks WHERE conversation_id = ? AND id = ?",
            [(conversation_id, i) for i in block_ids],
        )

    def orphans(self) -> list[tuple[ConversationId, int]]:
        """Blocks whose node is gone, or that have no region (audit)."""
        rows = self._db.rows(
            "SELECT b.conversation_id, b.id FROM blocks b WHERE NOT EXISTS"
            " (SELECT 1 FROM nodes n WHERE n.id = b.node_id AND n.deleted_at_ms IS NULL)"
            " OR NOT EXISTS (SELECT 1 FROM regions r WHERE r.conversation_id = b.conversation_id)"
        )
        return [(ConversationId(r[0]), int(r[1])) for r in rows]

    def occupied(self) -> list[ConversationId]:
        """Conversations with resident blocks."""
        rows = self._db.rows("SELECT DISTINCT conversation_id FROM blocks ORDER BY conversation_id")
        return [ConversationId(r[0]) for r in rows]

    def count(self) -> int:
        """Resident blocks of all conversations."""
        return self._db.number("SELECT count(*) FROM blocks")


def _resident_of(row: Row) -> ResidentBlock:
    block = Block(
        id=row["id"],
        turn=row["turn"],
        kind=BlockKind(row["kind"]),
        node_id=NodeId(row["node_id"]),
        text=row["text"],
        tokens=row["tokens"],
        loaded_at_ms=row["loaded_at_ms"],
        reason=row["reason"],
        pointer=PointerKind(row["pointer"]),
        token_ids=unpack_ids(row["token_ids"]),
    )
    return ResidentBlock(
        block=block, heat=row["heat"], heat_turn=row["heat_turn"], pinned=bool(row["pinned"])
    )
