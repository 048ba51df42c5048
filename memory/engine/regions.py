"""The context regions of open conversations: pure paging, made durable and told about."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from memory.errors import require
from memory.events import QueueChanged, RegionChanged
from memory.paging.context_region import ContextRegion
from memory.rest.fatigue import FatigueMeter
from memory.rest.nap import clear
from memory.storage.stores import Stores
from memory.text import title
from memory.values import (
    Block,
    ConversationId,
    Node,
    NodeId,
    QueueEntry,
    QueueSnapshot,
    RegionBlock,
    RegionSnapshot,
    RegionState,
    ResidentBlock,
    Role,
)


class Regions:
    """One region per conversation, loaded on demand; memory and file change together."""

    def __init__(self, stores: Stores, meter: FatigueMeter) -> None:
        self._stores = stores
        self._config = stores.config.paging
        self._meter = meter
        self._open: dict[ConversationId, ContextRegion] = {}

    # --- opening

    def open(self, conversation_id: ConversationId, wanted: RegionState) -> None:
        """Creates or restores a region with the budget and tokenizer of `wanted`.

        Another tokenizer drops all blocks (their token counts mean nothing to it); a smaller budget evicts.
        """
        region = self._find(conversation_id)
        if region is None:
            region = ContextRegion(wanted, self._config, layout=self._config.layout)
            self._open[conversation_id] = region
            self._store(conversation_id, region)
            return
        removed: tuple[Block, ...] = ()
        if region.state.tokenizer != wanted.tokenizer:
            removed = region.drop([b.id for b in region.blocks])
            region.state = replace(region.state, tokenizer=wanted.tokenizer)
        removed += region.resize(
            window=wanted.window_tokens,
            system=wanted.system_tokens,
            reserve=wanted.reserve_tokens,
        )
        self._store(conversation_id, region, removed=removed)
        self._tell(conversation_id, evicted=len(removed))

    def _find(self, conversation_id: ConversationId) -> ContextRegion | None:
        """The region in memory or from its file; blocks whose node is gone are dropped on the way."""
        region = self._open.get(conversation_id)
        if region is None:
            stored = self._stores.regions.load(conversation_id)
            if stored is None:
                return None
            region = ContextRegion(stored[0], self._config, stored[1], layout=self._config.layout)
            self._open[conversation_id] = region
            self._drop_orphans(conversation_id, region)
        return region

    def _drop_orphans(self, conversation_id: ConversationId, region: ContextRegion) -> None:
        nodes = self._stores.timeline.nodes(sorted({b.node_id for b in region.blocks}))
        gone = [b.id for b in region.blocks if b.node_id not in nodes]
        if gone:
            self._store(conversation_id, region, removed=region.drop(gone))
            self._stores.sink.emit(
                RegionChanged(conversation_id=conversation_id, evicted=len(gone))
            )

    def _need(self, conversation_id: ConversationId) -> ContextRegion:
        region = self._find(conversation_id)
        require(region is not None, "the conversation has no region: call open_region first")
        assert region is not None
        return region

    def _store(
        self,
        conversation_id: ConversationId,
        region: ContextRegion,
        *,
        changed: Sequence[ResidentBlock] = (),
        removed: Sequence[Block] = (),
    ) -> None:
        """Writes a change in one transaction; if that fails, memory goes back to what the file says."""
        try:
            with self._stores.database.transaction():
                self._stores.regions.save_blocks(conversation_id, changed)
                self._stores.regions.drop_blocks(conversation_id, [b.id for b in removed])
                self._stores.regions.save_state(conversation_id, region.state)
        except BaseException:
            self._open.pop(conversation_id, None)
            raise

    def _tell(
        self, conversation_id: ConversationId, *, paged_in: int = 0, evicted: int = 0
    ) -> None:
        if evicted:
            self._meter.evicted(evicted)
        self._stores.sink.emit(
            RegionChanged(conversation_id=conversation_id, paged_in=paged_in, evicted=evicted)
        )

    # --- paging

    def blocks(self, conversation_id: ConversationId) -> tuple[Block, ...]:
        """Resident blocks as they stand in the prompt."""
        region = self._find(conversation_id)
        return () if region is None else region.prompt

    def page_in(self, conversation_id: ConversationId, block: Block) -> Block:
        """Appends a block; the caller has made room."""
        region = self._need(conversation_id)
        now = self._stores.clock.now_ms()
        resident = region.page_in(replace(block, loaded_at_ms=now))
        self._store(conversation_id, region, changed=[resident])
        self._meter.paged_in()
        self._tell(conversation_id, paged_in=1)
        return resident.block

    def _evicting(
        self,
        conversation_id: ConversationId,
        change: Callable[[ContextRegion], tuple[Block, ...]],
    ) -> tuple[Block, ...]:
        region = self._need(conversation_id)
        removed = change(region)
        if removed:
            self._store(conversation_id, region, removed=removed)
            self._tell(conversation_id, evicted=len(removed))
        return removed

    def make_room(self, conversation_id: ConversationId, needed: int) -> tuple[Block, ...]:
        """Evicts in one batch when `needed` more tokens would not fit."""
        return self._evicting(conversation_id, lambda region: region.make_room(needed))

    def compact(self, conversation_id: ConversationId) -> tuple[Block, ...]:
        """Evicts ahead of time, where the next turn would have to wait for it."""
        return self._evicting(conversation_id, lambda region: region.compact())

    def evict(self, conversation_id: ConversationId, block_id: int) -> tuple[Block, ...]:
        """Removes a block by hand."""
        return self._evicting(conversation_id, lambda region: region.evict(block_id))

    def warm(
        self, conversation_id: ConversationId, node_ids: Iterable[NodeId], amount: float
    ) -> None:
        """Adds heat to resident blocks."""
        region = self._need(conversation_id)
        warmed = region.warm(node_ids, amount)
        if warmed:
            self._store(conversation_id, region, changed=warmed)
            self._stores.sink.emit(QueueChanged(conversation_id=conversation_id))

    def confirm(self, conversation_id: ConversationId, node_ids: Iterable[NodeId]) -> None:
        """Makes placeholders real."""
        region = self._need(conversation_id)
        confirmed = region.confirm(node_ids)
        if confirmed:
            self._store(conversation_id, region, changed=confirmed)
            self._stores.sink.emit(QueueChanged(conversation_id=conversation_id))

    def retract(self, conversation_id: ConversationId, after_block_id: int) -> tuple[Block, ...]:
        """Takes back what entered after a block. No pressure of memory made it leave, so the meter does not count it."""
        region = self._need(conversation_id)
        removed = region.retract(after_block_id)
        if removed:
            self._store(conversation_id, region, removed=removed)
            self._stores.sink.emit(
                RegionChanged(conversation_id=conversation_id, evicted=len(removed))
            )
        return removed

    def pin(self, conversation_id: ConversationId, block_id: int, *, pinned: bool) -> None:
        """Sets or clears a pin; an unknown block changes nothing."""
        region = self._need(conversation_id)
        resident = region.pin(block_id, pinned)
        if resident is not None:
            self._store(conversation_id, region, changed=[resident])
            self._tell(conversation_id)

    def note_prompt(
        self, conversation_id: ConversationId, *, prompt_tokens: int, reused_tokens: int
    ) -> None:
        """Remembers what the last prompt cost."""
        region = self._need(conversation_id)
        region.note_prompt(prompt_tokens, reused_tokens)
        self._store(conversation_id, region)
        self._tell(conversation_id)

    def next_turn(self, conversation_id: ConversationId) -> int:
        """Opens the next turn; its number is never given twice."""
        region = self._need(conversation_id)
        turn = region.next_turn()
        self._store(conversation_id, region)
        return turn

    def clear(self) -> int:
        """A nap: everything that may leave any region leaves it. No pressure of memory made it, so the meter does not count it."""
        removed = 0
        for conversation_id in self._stores.regions.occupied():
            region = self._find(conversation_id)
            gone = () if region is None else clear(region)
            if region is not None and gone:
                self._store(conversation_id, region, removed=gone)
                removed += len(gone)
                self._stores.sink.emit(
                    RegionChanged(conversation_id=conversation_id, evicted=len(gone))
                )
        return removed

    def forget_loaded(self) -> None:
        """Drops regions from memory after a repair of their files."""
        self._open.clear()

    # --- snapshots

    def region(self, conversation_id: ConversationId | None) -> RegionSnapshot:
        """The window to scale; zeros for a conversation without a region."""
        region = None if conversation_id is None else self._find(conversation_id)
        if region is None:
            return RegionSnapshot(
                conversation_id=conversation_id,
                window_tokens=0,
                system_tokens=0,
                reserve_tokens=0,
                blocks=(),
                high_watermark=self._config.high_watermark,
                low_watermark=self._config.low_watermark,
            )
        state = region.state
        return RegionSnapshot(
            conversation_id=conversation_id,
            window_tokens=state.window_tokens,
            system_tokens=state.system_tokens,
            reserve_tokens=state.reserve_tokens,
            blocks=self._region_blocks(region),
            reused_tokens=state.reused_tokens,
            prompt_tokens=state.prompt_tokens,
            high_watermark=self._config.high_watermark,
            low_watermark=self._config.low_watermark,
            evictions=state.evictions,
            page_ins=state.page_ins,
        )

    def _region_blocks(self, region: ContextRegion) -> tuple[RegionBlock, ...]:
        nodes = self._nodes(region.blocks)
        protected = region.protected_turns()
        newest = max((block.turn for block in region.blocks), default=0)
        shown: list[RegionBlock] = []
        at = region.state.system_tokens
        for block in region.prompt:
            at += block.tokens
            node = nodes.get(block.node_id)
            shown.append(
                RegionBlock(
                    block=block,
                    heat=region.heat(block.id),
                    pinned=region.queue.pinned(block.id),
                    cached=at <= region.state.reused_tokens and block.turn != newest,
                    title="" if node is None else self._title(node),
                    protected=block.turn in protected,
                    role=Role.NONE if node is None else node.role,
                    created_at_ms=block.loaded_at_ms if node is None else node.created_at_ms,
                )
            )
        return tuple(shown)

    def _nodes(self, blocks: Sequence[Block]) -> dict[NodeId, Node]:
        return self._stores.timeline.nodes(sorted({b.node_id for b in blocks}))

    def _title(self, node: Node) -> str:
        return title(node.content, self._config.title_characters_max)

    def queue(self, conversation_id: ConversationId | None) -> QueueSnapshot:
        """The index queue, hottest first, newest first among equals."""
        region = None if conversation_id is None else self._find(conversation_id)
        if region is None:
            return QueueSnapshot(conversation_id=conversation_id, entries=())
        titles = {at: self._title(node) for at, node in self._nodes(region.blocks).items()}
        entries = [
            QueueEntry(
                block_id=block.id,
                node_id=block.node_id,
                title=titles.get(block.node_id, ""),
                kind=block.kind,
                pointer=block.pointer,
                heat=region.heat(block.id),
                tokens=block.tokens,
                pinned=region.queue.pinned(block.id),
                loaded_at_ms=block.loaded_at_ms,
            )
            for block in region.blocks
        ]
        entries.sort(key=lambda entry: (-entry.heat, -entry.block_id))
        return QueueSnapshot(conversation_id=conversation_id, entries=tuple(entries))
