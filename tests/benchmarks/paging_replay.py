"""The accounting half of the paging benchmark: recorded sessions through the pager alone, no model, seconds.

What the engine's cache holds is modelled as the blocks of the last prompt, valid up to some token. A turn reuses the longest
common prefix; an idle pause lets the pager compact and the engine recompute what is stale, at `PREFILL_PER_S`, until the next
question comes. Whatever that pause was too short for is recomputed while the user waits.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace

from memory.config import PagingConfig
from memory.errors import BudgetExceeded
from memory.paging.context_region import ContextRegion
from memory.values import Block, BlockKind, Layout, NodeId, RegionState
from tests.benchmarks.paging_sessions import RecordedTurn, Session

PREFILL_PER_S = 89.0
"""The light model on two quiet cores: 2,948 tokens in 33 s. Source: design 4.3."""
QUIET_S = 5.0
"""Idle work begins this long after an answer: whoever asks again at once shall not wait for it."""
RESERVE_TOKENS = 512
MEMORY_SHARE = 0.25
PAGE_SHARE = 0.125
REHIT_HEAT = 0.5
CITED_HEAT = 1.0
"""Shares, heats and reserve as in the application, which the real half runs through."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Tokens, summed over turns; the system prompt, which is always reused, counts in `sent` only.

    `left` is what stood in the region when the turn before ended, `resident` what of it was still there after the pause.
    `entered` are all blocks that were appended, `paged_in` the memories among them. `foreground` was resident and had to be
    recomputed while the user waited, `fresh` had never been seen; `idle` was recomputed in pauses.
    """

    turns: int = 0
    sent: int = 0
    left: int = 0
    resident: int = 0
    reused: int = 0
    fresh: int = 0
    foreground: int = 0
    idle: int = 0
    entered: int = 0
    paged_in: int = 0
    evicted: int = 0

    def __add__(self, other: Costs) -> Costs:
        return Costs(
            **{f.name: getattr(self, f.name) + getattr(other, f.name) for f in fields(self)}
        )

    @property
    def reuse(self) -> float:
        """Reused ÷ resident after the turn before and its pause."""
        return self.reused / max(1, self.resident)

    @property
    def reuse_of_left(self) -> float:
        """The same against what stood there before the pause: what was evicted in it counts as lost."""
        return self.reused / max(1, self.left)

    @property
    def foreground_prefill(self) -> int:
        """Tokens that the user waited for."""
        return self.fresh + self.foreground

    @property
    def idle_per_entered(self) -> float:
        """Recomputed in pauses ÷ tokens of all blocks that entered."""
        return self.idle / max(1, self.entered)

    @property
    def idle_per_pagein(self) -> float:
        """Recomputed in pauses ÷ tokens of memories that entered."""
        return self.idle / max(1, self.paged_in)


class Cache:
    """What the engine's foreground context holds: blocks, valid up to so many tokens."""

    def __init__(self) -> None:
        self._blocks: tuple[Block, ...] = ()
        self._tokens = 0

    def common(self, prompt: Sequence[Block]) -> int:
        """Tokens of the longest common prefix."""
        same = 0
        for ours, theirs in zip(self._blocks, prompt, strict=False):
            if ours != theirs:
                break
            same += ours.tokens
        return min(same, self._tokens)

    def hold(self, prompt: Sequence[Block], tokens: int) -> None:
        """The cache now agrees with a prompt for so many tokens."""
        self._blocks, self._tokens = tuple(prompt), tokens

    def decoded(self, answer: Block) -> None:
        """The engine wrote an answer behind what it holds."""
        self._blocks += (answer,)
        self._tokens += answer.tokens


class Replay:
    """One session through one layout."""

    def __init__(
        self, session: Session, *, layout: Layout, config: PagingConfig, window: int, idle: bool
    ) -> None:
        state = RegionState(
            window_tokens=window,
            system_tokens=session.system_tokens,
            reserve_tokens=min(RESERVE_TOKENS, window // 4),
            tokenizer="recorded",
        )
        self._session = session
        self._idle = idle
        self._cache = Cache()
        self.region = ContextRegion(state, config, layout=layout)
        self.costs = Costs()

    def run(self) -> Costs:
        """All turns."""
        for number, turn in enumerate(self._session.turns):
            self.costs += Costs(left=self.region.used)
            if number and self._idle:
                self._pause(turn.pause_s - QUIET_S)
            self._ask(number, turn)
            self._answer(number, turn)
        return self.costs

    # --- a turn

    def _ask(self, number: int, turn: RecordedTurn) -> None:
        region = self.region
        resident = region.used
        region.next_turn()
        known = {block.node_id for block in region.blocks}
        fresh = self._enter(number, turn, known)
        region.warm([n for n in map(_node, turn.pages) if n in known], REHIT_HEAT)
        prompt = region.prompt
        reused = self._cache.common(prompt)
        self._cache.hold(prompt, region.used)
        self.costs += Costs(
            turns=1,
            sent=region.state.system_tokens + region.used,
            resident=resident,
            reused=reused,
            fresh=fresh,
            foreground=region.used - fresh - reused,
        )

    def _enter(self, number: int, turn: RecordedTurn, known: Iterable[NodeId]) -> int:
        """Makes room for a question and its memories, and appends them. Returns their tokens."""
        memories = self._fitting(turn.pages, frozenset(known))
        needed = sum(tokens for _, tokens in memories) + turn.question_tokens
        try:
            self._make_room(needed)
        except BudgetExceeded:
            memories, needed = [], turn.question_tokens
            self._make_room(needed)
        for node_id, tokens in memories:
            self._append(BlockKind.MEMORY, node_id, tokens)
        self._append(BlockKind.USER, NodeId(f"q{number}"), turn.question_tokens)
        return needed

    def _fitting(self, pages: Sequence[int], known: frozenset[NodeId]) -> list[tuple[NodeId, int]]:
        room = int(self.region.budget * MEMORY_SHARE)
        entered = []
        for page in pages:
            largest = int(self.region.budget * PAGE_SHARE)
            tokens = min(self._session.memory_tokens(page), largest)
            if _node(page) not in known and tokens <= room:
                room -= tokens
                entered.append((_node(page), tokens))
        return entered

    def _answer(self, number: int, turn: RecordedTurn) -> None:
        tokens = turn.answer_tokens
        try:
            self._make_room(tokens)
        except BudgetExceeded as error:
            tokens = error.available
            self._make_room(tokens)
        self._cache.decoded(self._append(BlockKind.ASSISTANT, _node(number), tokens))
        self.region.warm([_node(page) for page in turn.pages[: turn.cited]], CITED_HEAT)

    def _append(self, kind: BlockKind, node_id: NodeId, tokens: int) -> Block:
        block = Block(
            id=0,
            turn=self.region.state.turn,
            kind=kind,
            node_id=node_id,
            text=node_id,
            tokens=tokens,
            loaded_at_ms=0,
        )
        memory = tokens if kind is BlockKind.MEMORY else 0
        self.costs += Costs(entered=tokens, paged_in=memory)
        return self.region.page_in(block).block

    def _make_room(self, tokens: int) -> None:
        self.costs += Costs(evicted=sum(b.tokens for b in self.region.make_room(tokens)))

    # --- between turns

    def _pause(self, seconds: float) -> None:
        if seconds <= 0:
            return
        self.costs += Costs(evicted=sum(b.tokens for b in self.region.compact()))
        prompt = self.region.prompt
        valid = self._cache.common(prompt)
        done = min(self.region.used - valid, int(seconds * PREFILL_PER_S))
        self._cache.hold(prompt, valid + done)
        self.costs += Costs(idle=done)


def _node(page: int) -> NodeId:
    return NodeId(f"a{page}")


def replay(
    sessions: Iterable[Session],
    *,
    layout: Layout,
    window: int = 4096,
    low: float | None = None,
    idle: bool = True,
) -> Costs:
    """The costs of all sessions together. `low` is the low watermark, `idle` whether pauses are used."""
    config = PagingConfig()
    if low is not None:
        config = replace(config, low_watermark=low)
    total = Costs()
    for session in sessions:
        total += Replay(session, layout=layout, config=config, window=window, idle=idle).run()
    return total
