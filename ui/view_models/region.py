"""The context window as parts of a strip, to scale: where they lie, how bright they are, where reading began."""

from __future__ import annotations

from dataclasses import dataclass

from memory.values import BlockKind, RegionBlock, RegionSnapshot

SYSTEM, FREE, RESERVE = "system", "free", "reserve"
# The coldest block still shows its hue.
BRIGHTNESS_MIN = 0.35


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One part of the strip. `kind` is `system`, `free`, `reserve` or a block kind; `start` and `tokens` are in tokens."""

    kind: str
    start: int
    tokens: int
    block: RegionBlock | None = None

    @property
    def end(self) -> int:
        """Where the next part starts."""
        return self.start + self.tokens


def parts(snapshot: RegionSnapshot) -> tuple[Part, ...]:
    """System, blocks in the prompt's order, what is free, and the reserve for the answer; together they are the window."""
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
    return next((part for part in parts(snapshot) if part.start <= token < part.end), None)


def protected_spans(snapshot: RegionSnapshot) -> tuple[tuple[int, int], ...]:
    """Where the turns lie that do not leave: (start, end) in tokens, neighbours joined."""
    spans: list[tuple[int, int]] = []
    for part in parts(snapshot):
        if part.block is None or not part.block.protected:
            continue
        if spans and spans[-1][1] == part.start:
            spans[-1] = (spans[-1][0], part.end)
        else:
            spans.append((part.start, part.end))
    return tuple(spans)


def boundary(snapshot: RegionSnapshot, unread: int | None = None) -> int | None:
    """Where "KV-cached" ends and "new this turn" begins, in tokens; None before the first prompt.

    `unread` is what the running turn has to read: then it is this turn's boundary, else the last turn's.
    """
    if unread is not None:
        return min(max(0, snapshot.used_tokens - unread), snapshot.newest_turn_start)
    return snapshot.cached_tokens if snapshot.prompt_tokens else None


def heat_share(heat: float, hottest: float) -> float:
    """Heat as 0..1 of the hottest; one fresh page-in is the least that counts as hot."""
    return min(1.0, max(0.0, heat) / max(1.0, hottest))


def brightness(heat: float, hottest: float) -> float:
    """How much of its hue a block shows, `BRIGHTNESS_MIN`..1."""
    return BRIGHTNESS_MIN + (1.0 - BRIGHTNESS_MIN) * heat_share(heat, hottest)


def reused_share(snapshot: RegionSnapshot) -> float:
    """Share of the last prompt that came from the KV cache."""
    return snapshot.reused_tokens / snapshot.prompt_tokens if snapshot.prompt_tokens else 0.0


def used_share(snapshot: RegionSnapshot) -> float:
    """Share of the window that system prompt and blocks take."""
    return snapshot.used_tokens / snapshot.window_tokens if snapshot.window_tokens else 0.0


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


def icon_name(kind: str) -> str:
    """The icon of a kind of block."""
    return {
        str(BlockKind.MEMORY): "leaf",
        str(BlockKind.TOOL_RESULT): "search",
        str(BlockKind.USER): "message-square",
    }.get(kind, "cpu")
