"""Made-up states of a context region and its index queue, for tests and pictures of the two panels."""

from __future__ import annotations

from memory.values import (
    Block,
    BlockKind,
    ConversationId,
    NodeId,
    PointerKind,
    QueueEntry,
    QueueSnapshot,
    RegionBlock,
    RegionSnapshot,
    Role,
)
from tests.fakes.assistant import START_MS

WINDOW, SYSTEM, RESERVE = 8_192, 412, 1_024
CONVERSATION = ConversationId("c")
_KINDS = (BlockKind.MEMORY, BlockKind.USER, BlockKind.ASSISTANT, BlockKind.TOOL_RESULT)
_WORDS = {
    "en": (
        "We pick DuckDB for the index: one file, fast column scans",
        "Which database did we pick?",
        "DuckDB, because the whole index is one file",
        "3 passages about the index",
    ),
    "zh": (
        "索引用 DuckDB：一个文件，列扫描快",
        "我们选了哪个数据库？",
        "选了 DuckDB，因为整个索引只有一个文件",
        "找到 3 段与索引有关的内容",
    ),
}


def shown_blocks(count: int, language: str = "en") -> tuple[RegionBlock, ...]:
    """Blocks of turns of four, heat going up and down, the sixth pinned, the last two turns protected."""
    room = WINDOW - SYSTEM - RESERVE
    made = []
    for at in range(count):
        kind = _KINDS[at % 4]
        turn = at // 4
        block = Block(
            id=at + 1,
            turn=turn,
            kind=kind,
            node_id=NodeId(f"n{at}"),
            text="",
            tokens=min(400, room // count * 9 // 10) + 7 * (at % 3),
            loaded_at_ms=START_MS + 60_000 * at,
            pointer=PointerKind.PLACEHOLDER if kind is BlockKind.MEMORY else PointerKind.REAL,
        )
        made.append(
            RegionBlock(
                block=block,
                heat=0.1 + (at * 37 % 23) / 6,
                pinned=at == 5,
                cached=turn != (count - 1) // 4,
                title=f"{_WORDS[language][at % 4]} {at + 1}",
                protected=turn >= (count - 1) // 4 - 1,
                role=Role.ASSISTANT if kind is BlockKind.ASSISTANT else Role.USER,
                created_at_ms=START_MS - 86_400_000 + 60_000 * at,
            )
        )
    return tuple(made)


def region_of(blocks: tuple[RegionBlock, ...], reused: int | None = None) -> RegionSnapshot:
    """The window with these blocks; what stood before the newest turn came from the cache, unless `reused` says otherwise."""
    used = SYSTEM + sum(shown.block.tokens for shown in blocks)
    return RegionSnapshot(
        conversation_id=CONVERSATION,
        window_tokens=WINDOW,
        system_tokens=SYSTEM,
        reserve_tokens=RESERVE,
        blocks=blocks,
        prompt_tokens=used if blocks else 0,
        reused_tokens=used if reused is None else reused,
        evictions=4 if len(blocks) > 20 else 0,
    )


def queue_of(blocks: tuple[RegionBlock, ...]) -> QueueSnapshot:
    """The same blocks, hottest first."""
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
        for shown in blocks
    ]
    entries.sort(key=lambda entry: (-entry.heat, -entry.block_id))
    return QueueSnapshot(conversation_id=CONVERSATION, entries=tuple(entries))
