"""Blocks of the region and entries of the queue in words: for hovering and for screen readers."""

from __future__ import annotations

from growbox_app.text import tr
from memory.values import BlockKind, QueueEntry, Role
from ui.view_models import wording
from ui.view_models.display import title_line
from ui.view_models.region import Part

FIRST_WORDS = 60


def name_of(title: str, kind: str, limit: int = 120) -> str:
    """The first words of a block; who speaks while there are none yet, as in an answer that is being written."""
    return title_line(title, limit) or tr(f"region.kind_{kind}")


def share_of(tokens: int, window: int) -> str:
    """`3.8 % of the window`: small blocks need the decimal."""
    share = 100 * tokens / window if window else 0.0
    return tr("region.share", share=f"{share:.1f} %")


def describe_part(
    part: Part, *, window: int, now_ms: int, cached_to: int | None = None
) -> tuple[str, ...]:
    """A part of the strip in lines: what it is and when, its size and heat, its marks, its first words."""
    name = tr(f"region.kind_{part.kind}")
    tokens = tr("region.tokens", count=wording.number(part.tokens))
    size = [tokens, share_of(part.tokens, window)]
    shown = part.block
    if shown is None:
        return (name, " · ".join(size))
    who = [name]
    if shown.block.kind is BlockKind.MEMORY and shown.role is not Role.NONE:
        who.append(wording.speaker(shown.role))
    if shown.created_at_ms:
        who.append(wording.clock_time(shown.created_at_ms, now_ms))
    size.append(tr("queue.heat", value=f"{shown.heat:.1f}"))
    marks = [tr("region.pinned")] if shown.pinned else []
    if shown.protected:
        marks.append(tr("region.recent"))
    if cached_to is not None:
        marks.append(tr("region.cached" if part.end <= cached_to else "region.new"))
    lines = (who, size, marks, [title_line(shown.title, FIRST_WORDS)])
    return tuple(" · ".join(line) for line in lines if any(line))


def describe_entry(entry: QueueEntry, now_ms: int) -> str:
    """Kind, pointer, heat, size and age of an entry of the queue, in one line."""
    parts = [
        tr(f"region.kind_{entry.kind}"),
        tr(f"queue.{entry.pointer}"),
        tr("queue.heat", value=f"{entry.heat:.1f}"),
        tr("region.tokens", count=wording.number(entry.tokens)),
        tr("queue.loaded", when=wording.age(entry.loaded_at_ms, now_ms)),
    ]
    return " · ".join([*parts, tr("region.pinned")] if entry.pinned else parts)
