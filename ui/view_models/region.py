"""The context window as parts of a strip, to scale."""

from __future__ import annotations

from dataclasses import dataclass

from memory.values import BlockKind, RegionBlock, RegionSnapshot

SYSTEM, FREE, RESERVE = "system", "free", "reserve"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the strip. `kind` is `system`, `free`, `reserve` or a block kind; `start` and `tokens` are in tokens."""

    kind: str
    start: int
    tokens: int
    block: RegionBlock | None = None


def parts(snapshot: RegionSnapshot) -> tuple[Part, ...]:
    """System, blocks in load order, what is free, and the reserve for the answer; together they are the window."""
    made = [Part(kind=SYSTEM, start=0, tokens=snapshot.system_tokens)]
    start = snapshot.system_tokens
    for block in snapshot.blocks:
        made.append(
            Part(kind=block.block.kind, start=start, tokens=block.block.tokens, block=block)
        )
        start += block.block.tokens
    free = max(0, snapshot.window_tokens - snapshot.reserve_tokens - start)
    made.append(Part(kind=FREE, start=start, tokens=free))
    made.append(Part(kind=RESERVE, start=start + free, tokens=snapshot.reserve_tokens))
    return tuple(part for part in made if part.tokens > 0)


def part_at(snapshot: RegionSnapshot, token: float) -> Part | None:
    """The part that covers a token position."""
    return next(
        (part for part in parts(snapshot) if part.start <= token < part.start + part.tokens), None
    )


def reused_share(snapshot: RegionSnapshot) -> float:
    """Share of the last prompt that came from the KV cache."""
    return snapshot.reused_tokens / snapshot.prompt_tokens if snapshot.prompt_tokens else 0.0


def color_token(kind: str) -> str:
    """The theme colour of a kind of part."""
    return {
        SYSTEM: "block_system",
        BlockKind.USER: "block_user",
        BlockKind.ASSISTANT: "block_assistant",
        BlockKind.MEMORY: "block_memory",
        BlockKind.TOOL_RESULT: "block_tool",
        RESERVE: "reserve",
    }.get(kind, "surface")
