"""Assembles the prompt of a turn from the context region, within the token budget.

The region decides what is resident; this module measures blocks by the real tokenizer, makes room, pages in, and turns the
resident blocks into messages. Invariant: `system + blocks + reserve <= window` before every call, by the same additive
counts the engine uses, because every block is tokenised as its own part.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial

from growbox_app.agent import prompts
from growbox_app.engine import protocol as p
from growbox_app.executors.base import ExecutorResult
from growbox_app.executors.memory_get import MemoryGet, part_at
from growbox_app.executors.registry import Registry
from growbox_app.memory_service import MemoryService
from memory.errors import BudgetExceeded, require
from memory.values import (
    Block,
    BlockKind,
    ConversationId,
    Node,
    NodeId,
    NodeStatus,
    Page,
    PointerKind,
    Role,
    Way,
)

Counter = Callable[[Sequence[str]], Awaitable[Sequence[int]]]
"""Token counts of texts, as content, by the chat model's tokenizer."""

MEMORY_SHARE = 0.25
"""Most of the region that the memories of one turn may take."""
PAGE_SHARE = 0.125
"""Most of the region that one memory or one question may take before it is shown head…tail."""
PART_SHARE = 0.5
"""Most of the region that a part of a stored text may take, which was asked for and is small as a rule."""
ATTACHED = "attached"
"""Reason of a page that is an attachment of the question."""
CITED = "cited"
"""Reason of a page that the user points at."""
POINTED_AT = frozenset({ATTACHED, CITED})
ATTACHED_SHARE = 0.25
"""Most of the region that one page which the user points at may take, beyond what memories may."""
BOUNDARY_TOKENS = 4
"""Two texts joined may take a few tokens more than apart."""
RELOADED_MESSAGES = 6
"""Newest messages brought back when a region had to be dropped (another model)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """The model's window as one conversation uses it, in tokens."""

    loaded: p.DoneLoad
    language: str
    tools: Registry
    system_text: str
    system_tokens: int
    reserve_tokens: int

    @property
    def region_tokens(self) -> int:
        """What resident blocks may take."""
        return self.loaded.context_tokens - self.system_tokens - self.reserve_tokens

    @property
    def can_read_on(self) -> bool:
        """True when the model can ask for the parts of a text that it does not see."""
        return MemoryGet.name in self.tools.names


class ContextAssembler:
    """The prompt side of one turn."""

    def __init__(
        self, memory: MemoryService, count: Counter, conversation_id: ConversationId, window: Window
    ) -> None:
        self._memory = memory
        self._count = count
        self._conversation_id = conversation_id
        self._window = window

    @property
    def window(self) -> Window:
        """The window that the prompt is made for."""
        return self._window

    @property
    def system_text(self) -> str:
        """The system prompt that the conversation's prompt begins with."""
        return self._window.system_text

    async def open(self) -> None:
        """Opens or restores the conversation's region for this window, between two turns.

        What stands behind the last answer then is a question that a crash cut off before its first word; it goes.
        """
        window, conversation_id = self._window, self._conversation_id
        await self._memory.call(
            lambda engine: engine.open_region(
                conversation_id,
                window_tokens=window.loaded.context_tokens,
                system_tokens=window.system_tokens,
                reserve_tokens=window.reserve_tokens,
                tokenizer=window.loaded.tokenizer,
            )
        )
        blocks = await self.blocks()
        answered = max((b.id for b in blocks if b.kind is BlockKind.ASSISTANT), default=0)
        if any(block.id > answered for block in blocks):
            await self._memory.call(lambda engine: engine.retract(conversation_id, answered))

    async def resident(self) -> frozenset[NodeId]:
        """Nodes that stand in the prompt now."""
        return frozenset(block.node_id for block in await self.blocks())

    async def blocks(self) -> tuple[Block, ...]:
        """Resident blocks, as they stand in the prompt."""
        return await self._memory.call(lambda engine: engine.blocks(self._conversation_id))

    async def reload(self, history: Sequence[Node]) -> None:
        """Brings the newest messages back into an empty region."""
        if await self.blocks():
            return
        kept: list[Node] = []
        room = self._window.region_tokens // 2
        for node in reversed(history[-RELOADED_MESSAGES:]):
            room -= (await self._count([node.content]))[0] + self._overhead(node.role)
            if room < 0:
                break
            kept.insert(0, node)
        while kept and kept[0].role is not Role.USER:
            kept.pop(0)
        for node in kept:
            if node.role is Role.USER:
                await self.add_question(node, node.content, pages=())
            elif node.content:
                await self.add_answer(node, None)

    async def add_question(
        self, question: Node, text: str, *, pages: Sequence[Page]
    ) -> tuple[Page, ...]:
        """Pages a question in, with the memories that fit before it.

        Returns:
            The pages that entered.

        Raises:
            BudgetExceeded: even the shortened question does not fit beside what is protected.
        """
        limit = self._window.region_tokens // 2
        body = await self._body(
            lambda shown: prompts.question_block(question, shown), text, limit, node=question
        )
        return await self._enter(BlockKind.USER, question.id, body, pages)

    async def add_tool_result(
        self, question: Node, name: str, result: ExecutorResult
    ) -> tuple[Page, ...]:
        """Pages a tool's result in as the next user message. See `add_question`.

        A result too big for its share becomes a node of its own first, like an attachment: what is not shown can be read on.
        """
        node = result.part_of
        share = PAGE_SHARE if node is None else PART_SHARE
        limit = int(self._window.region_tokens * share)
        if node is None and (await self._count([result.text]))[0] > limit:
            text = result.text
            node = await self._memory.call(
                lambda engine: engine.attach(
                    name=name, text=text, conversation_id=self._conversation_id
                )
            )
        body = await self._body(
            lambda shown: prompts.tool_result_block(name, shown), result.text, limit, node=node
        )
        source = question if node is None or result.part_of is not None else node
        return await self._enter(BlockKind.TOOL_RESULT, source.id, body, result.pages)

    async def add_hint(self, question: Node, text: str) -> None:
        """Pages in a sentence about the next step, behind a question or a result. See `add_question`."""
        await self._enter(BlockKind.TOOL_RESULT, question.id, prompts.hint_block(text), ())

    async def add_answer(self, answer: Node, ids: tuple[int, ...] | None) -> None:
        """Pages an answer in, by its sampled ids where they are known; as head…tail where it cannot stay whole."""
        overhead = self._window.loaded.assistant_overhead
        text = answer.content
        size = len(ids) if ids is not None else (await self._count([text]))[0]
        try:
            await self._make_room(size + overhead)
        except BudgetExceeded as error:
            limit = max(error.available - overhead, 1)
            text, ids = await self._fit(text, limit=limit, node=answer), None
            size = (await self._count([text]))[0]
            await self._make_room(size + overhead)
        blocks = await self.blocks()
        turn = max(b.turn for b in blocks) if blocks else await self._next_turn()
        await self._page_in(turn, BlockKind.ASSISTANT, answer.id, text, size + overhead, ids=ids)

    async def messages(self) -> tuple[p.Message, ...]:
        """The conversation as the engine takes it: system, then the resident blocks.

        Raises:
            InvariantError: they leave no room for the answer.
        """
        window, blocks = self._window, await self.blocks()
        fits = await self.room() >= window.reserve_tokens
        require(fits, "system, blocks and reserve exceed the window")
        return render(window.system_text, blocks)

    async def room(self) -> int:
        """Tokens that the window has left for an answer: the reserve, or more."""
        window, blocks = self._window, await self.blocks()
        used = window.system_tokens + sum(block.tokens for block in blocks)
        return window.loaded.context_tokens - used

    # -- inside ---------------------------------------------------------------------------------
    async def _enter(
        self, kind: BlockKind, node_id: NodeId, body: str, pages: Sequence[Page]
    ) -> tuple[Page, ...]:
        turn = await self._next_turn()
        entered, blocks, tokens = await self._fitting(pages)
        body_tokens = (await self._count([body]))[0] + self._window.loaded.user_overhead
        try:
            await self._make_room(sum(tokens) + body_tokens)
        except BudgetExceeded:
            entered, blocks, tokens = [], [], []
            await self._make_room(body_tokens)
        for page, text, size in zip(entered, blocks, tokens, strict=True):
            await self._page_in_memory(turn, page, text, size)
        await self._page_in(turn, kind, node_id, body, body_tokens)
        return tuple(entered)

    def _overhead(self, role: Role) -> int:
        loaded = self._window.loaded
        return loaded.user_overhead if role is Role.USER else loaded.assistant_overhead

    async def _body(
        self, render: Callable[[str], str], text: str, limit: int, *, node: Node | None
    ) -> str:
        """A rendered block of at most `limit` tokens, its header and the template's pieces included."""
        around = (await self._count([render("")]))[0] + self._window.loaded.user_overhead
        room = max(limit - around - BOUNDARY_TOKENS, 1)
        return render(await self._fit(text, limit=room, node=node))

    async def _fitting(self, pages: Sequence[Page]) -> tuple[list[Page], list[str], list[int]]:
        """The pages that fit the turn's share, rendered and counted; resident ones stay where they are."""
        entered: list[Page] = []
        blocks: list[str] = []
        tokens: list[int] = []
        region = self._window.region_tokens
        pointed_at = any(page.reason in POINTED_AT for page in pages)
        room = int(region * (MEMORY_SHARE + ATTACHED_SHARE * pointed_at))
        for page in pages:
            if page.resident:
                continue
            share = ATTACHED_SHARE if page.reason in POINTED_AT else PAGE_SHARE
            content = page.node.content
            shown = await self._fit(content, limit=int(region * share), node=page.node)
            text = prompts.memory_block(page, shown)
            size = (await self._count([text]))[0]
            if size <= room:
                room -= size
                entered.append(page)
                blocks.append(text)
                tokens.append(size)
        return entered, blocks, tokens

    async def _fit(self, text: str, *, limit: int, node: Node | None) -> str:
        """The text, or its head…tail within `limit` tokens; what is left out is said, and where to read it in `node`."""
        size = (await self._count([text]))[0]
        characters = len(text)
        shown = text
        while size > limit and characters > 80:
            characters = int(characters * limit / size * 0.95)
            shown = head_tail(text, characters, partial(self._cut, node, text))
            size = (await self._count([shown]))[0]
        return shown

    def _cut(self, node: Node | None, text: str, head: int, characters: int) -> str:
        language = self._window.language
        if node is None or not self._window.can_read_on:
            return prompts.cut_line(language, characters)
        part = part_at(node.content, max(node.content.find(text), 0) + head)
        return prompts.cut_reference(language, characters, node, part)

    async def _make_room(self, tokens: int) -> None:
        await self._memory.call(lambda engine: engine.make_room(self._conversation_id, tokens))

    async def _next_turn(self) -> int:
        return await self._memory.call(lambda engine: engine.next_turn(self._conversation_id))

    async def _page_in_memory(self, turn: int, page: Page, text: str, tokens: int) -> None:
        pointer = PointerKind.PLACEHOLDER if page.way is Way.RAG else PointerKind.REAL
        await self._memory.call(
            lambda engine: engine.page_in(
                self._conversation_id,
                turn=turn,
                kind=BlockKind.MEMORY,
                node_id=page.node.id,
                text=text,
                tokens=tokens,
                reason=page.way.value,
                pointer=pointer,
            )
        )

    async def _page_in(
        self,
        turn: int,
        kind: BlockKind,
        node_id: NodeId,
        text: str,
        tokens: int,
        *,
        ids: tuple[int, ...] | None = None,
    ) -> None:
        await self._memory.call(
            lambda engine: engine.page_in(
                self._conversation_id,
                turn=turn,
                kind=kind,
                node_id=node_id,
                text=text,
                tokens=tokens,
                token_ids=ids,
            )
        )


def render(system_text: str, blocks: Sequence[Block]) -> tuple[p.Message, ...]:
    """Messages of a region: what stands between two answers is one user message, part by part."""
    messages = [p.Message(role="system", parts=(system_text,))]
    parts: list[str] = []
    for block in blocks:
        if block.kind is not BlockKind.ASSISTANT:
            parts.append(block.text)
            continue
        if not parts:
            continue  # its question is gone, and templates refuse an answer without one
        messages.append(p.Message(role="user", parts=tuple(parts)))
        parts = []
        if block.token_ids is not None:
            messages.append(p.Message(role="assistant", ids=block.token_ids))
        else:
            messages.append(p.Message(role="assistant", parts=(block.text,)))
    if parts:
        messages.append(p.Message(role="user", parts=tuple(parts)))
    return tuple(messages)


def head_tail(text: str, characters: int, cut: Callable[[int, int], str]) -> str:
    """The first two thirds and the last third of `characters`; between them `cut(shown before it, left out)`."""
    head = max(characters * 2 // 3, 1)
    tail = max(characters - head, 1)
    left_out = len(text) - head - tail
    return f"{text[:head]}\n{cut(head, left_out)}\n{text[-tail:]}"


def resumable(history: Sequence[Node], before: NodeId) -> list[Node]:
    """Messages of a conversation that may be brought back: finished ones before a question."""
    return [
        node
        for node in history
        if node.id != before and node.status in {NodeStatus.COMPLETE, NodeStatus.CANCELLED}
    ]
