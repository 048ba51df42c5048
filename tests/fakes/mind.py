"""A scripted `MindFace`: the window of each conversation as its messages filled it, and snapshots that the test sets."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from growbox_app.api import AppEvent, MemoryChanged
from growbox_app.mind_face import JudgeSkill
from memory.events import RegionChanged
from memory.values import (
    AuditReport,
    Block,
    BlockKind,
    Conversation,
    ConversationId,
    FatigueSnapshot,
    LedgerSnapshot,
    NeighbourhoodSnapshot,
    Node,
    NodeId,
    PointerKind,
    QueueEntry,
    QueueSnapshot,
    RegionBlock,
    RegionSnapshot,
    StainSnapshot,
    Statistics,
    StoreHealth,
)

WINDOW_TOKENS = 8_192
SYSTEM_TOKENS = 412
RESERVE_TOKENS = 1_024


class ScriptedMind:
    """Looks at the dictionaries of a scripted assistant. `tell` is called with what the user changes."""

    def __init__(
        self,
        nodes: dict[NodeId, Node],
        conversations: dict[ConversationId, Conversation],
        tell: Callable[[AppEvent], None],
    ) -> None:
        self._nodes, self._conversations, self._tell = nodes, conversations, tell
        self.fatigue_snapshot = FatigueSnapshot(
            total=0.0, miss=0.0, eviction=0.0, debt=0.0, accesses=0
        )
        self.ledger_snapshot = LedgerSnapshot(open=(), cleared=0, nodes=0)
        self.stain_snapshot = StainSnapshot(first_seq=0, last_seq=0, first_ms=0, last_ms=0, nodes=0)
        self.neighbourhoods: dict[NodeId, NeighbourhoodSnapshot] = {}
        self.skills: tuple[JudgeSkill, ...] = ()
        self.health: tuple[StoreHealth, ...] = ()
        self.pending = 0
        self.rejected: list[tuple[NodeId, NodeId]] = []
        self._blocks: dict[ConversationId, list[RegionBlock]] = {}

    def page_in(self, conversation_id: ConversationId, node: Node, kind: BlockKind) -> None:
        """A message or a memory is in the window of a conversation."""
        blocks = self._blocks.setdefault(conversation_id, [])
        if any(block.block.node_id == node.id for block in blocks):
            return
        block = Block(
            id=len(blocks) + 1,
            turn=len(blocks) // 2,
            kind=kind,
            node_id=node.id,
            text=node.content,
            tokens=max(6, len(node.content) // 3),
            loaded_at_ms=node.created_at_ms,
            pointer=PointerKind.PLACEHOLDER if kind is BlockKind.MEMORY else PointerKind.REAL,
        )
        heat = 1.0 + (len(node.content) % 7)
        blocks.append(
            RegionBlock(block=block, heat=heat, pinned=False, cached=True, title=node.content[:60])
        )

    async def node(self, node_id: NodeId) -> Node | None:
        """One node."""
        return self._nodes.get(node_id)

    async def node_at(self, seq: int) -> Node | None:
        """One node."""
        return next((node for node in self._nodes.values() if node.seq == seq), None)

    def judge_skills(self) -> tuple[JudgeSkill, ...]:
        """The scripted measurement."""
        return self.skills

    async def region(self, conversation_id: ConversationId | None) -> RegionSnapshot:
        """The scripted window."""
        blocks = tuple(self._blocks.get(conversation_id, ())) if conversation_id else ()
        used = SYSTEM_TOKENS + sum(block.block.tokens for block in blocks)
        return RegionSnapshot(
            conversation_id=conversation_id,
            window_tokens=WINDOW_TOKENS,
            system_tokens=SYSTEM_TOKENS,
            reserve_tokens=RESERVE_TOKENS,
            blocks=blocks,
            reused_tokens=round(used * 0.97) if blocks else 0,
            prompt_tokens=used if blocks else 0,
        )

    async def queue(self, conversation_id: ConversationId | None) -> QueueSnapshot:
        """Hottest first."""
        blocks = self._blocks.get(conversation_id, []) if conversation_id else []
        entries = [
            QueueEntry(
                block_id=shown.block.id,
                node_id=shown.block.node_id,
                title=shown.title,
                kind=shown.block.kind,
                pointer=shown.block.pointer,
                heat=shown.heat,
                tokens=shown.block.tokens,
                pinned=shown.pinned,
                loaded_at_ms=shown.block.loaded_at_ms,
            )
            for shown in sorted(blocks, key=lambda item: -item.heat)
        ]
        return QueueSnapshot(conversation_id=conversation_id, entries=tuple(entries))

    async def ledger(self) -> LedgerSnapshot:
        """The scripted ledger."""
        return replace(self.ledger_snapshot, nodes=len(self._nodes))

    async def stains(self) -> StainSnapshot:
        """The scripted map."""
        return self.stain_snapshot

    async def neighbourhood(self, node_id: NodeId) -> NeighbourhoodSnapshot:
        """The scripted graph; a node that none was given for stands alone."""
        node = self._nodes.get(node_id)
        alone = NeighbourhoodSnapshot(node_id=node_id, title=node.content[:60] if node else "")
        return self.neighbourhoods.get(node_id, alone)

    async def fatigue(self) -> FatigueSnapshot:
        """The scripted meter."""
        return self.fatigue_snapshot

    async def statistics(self) -> Statistics:
        """Counts."""
        return Statistics(
            nodes=len(self._nodes),
            conversations=len(self._conversations),
            embedded=len(self._nodes) - self.pending,
            pending_embeddings=self.pending,
            edges=0,
            learning_events=0,
            stores=self.health,
        )

    async def pin(self, conversation_id: ConversationId, block_id: int, *, pinned: bool) -> None:
        """Pins."""
        blocks = self._blocks[conversation_id]
        blocks[:] = [
            replace(item, pinned=pinned) if item.block.id == block_id else item for item in blocks
        ]
        self._tell(MemoryChanged(events=(RegionChanged(conversation_id=conversation_id),)))

    async def evict(self, conversation_id: ConversationId, block_id: int) -> None:
        """Evicts."""
        blocks = self._blocks[conversation_id]
        blocks[:] = [item for item in blocks if item.block.id != block_id]
        self._tell(
            MemoryChanged(events=(RegionChanged(conversation_id=conversation_id, evicted=1),))
        )

    async def not_relevant(self, answer_id: NodeId, memory_id: NodeId) -> None:
        """Notes the judgement."""
        self.rejected.append((answer_id, memory_id))

    async def audit(self, *, fix: bool) -> AuditReport:
        """Always clean."""
        return AuditReport(nodes=len(self._nodes))

    async def rebuild(self) -> AuditReport:
        """Always clean."""
        return AuditReport(nodes=len(self._nodes))
