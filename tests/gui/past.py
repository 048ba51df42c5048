"""Made-up states of the past – stains, pointers, a search – for tests and pictures."""

from __future__ import annotations

from dataclasses import replace

from growbox_app.api import DeepSearch, DeepSearchState, UsedMemory
from memory.values import (
    Depth,
    KSample,
    NeighbourhoodSnapshot,
    NodeId,
    PointerEdge,
    StainSnapshot,
    StainSpan,
)
from tests.fakes.assistant import START_MS

DAY_MS = 86_400_000
FIRST, LAST = 1, 1_000
_WORDS = {
    "en": (
        "Loader notes: open the index read-only, one writer",
        "We pick DuckDB for the index: one file, fast column scans",
        "The nightly rebuild locks the file for four minutes",
        "pytest failure: the index file was locked by the rebuild",
        "Backups go to the second disk every Sunday",
    ),
    "zh": (
        "加载器笔记：以只读方式打开，只有一个写入者",
        "索引用 DuckDB：一个文件，列扫描快",
        "夜间重建会锁住文件四分钟",
        "pytest 失败：索引文件被重建锁住",
        "每个星期日备份到第二块硬盘",
    ),
}
_QUESTIONS = {
    "en": ("How do I open the index?", "Why is the file locked?", "What is for lunch?"),
    "zh": ("怎么打开索引？", "文件为什么被锁？", "午饭吃什么？"),
}


def stain_map() -> StainSnapshot:
    """A thousand notes of a hundred days, 210 read deep and 180 lightly."""

    def span(first: int, last: int, depth: Depth, clusters: int) -> StainSpan:
        return StainSpan(
            first_seq=first,
            last_seq=last,
            depth=depth,
            clusters=clusters,
            first_ms=moment(first),
            last_ms=moment(last),
        )

    return StainSnapshot(
        first_seq=FIRST,
        last_seq=LAST,
        first_ms=moment(FIRST),
        last_ms=moment(LAST),
        nodes=LAST,
        spans=(
            span(101, 200, Depth.LIGHT, 1),
            span(401, 410, Depth.DEEP, 1),
            span(521, 600, Depth.LIGHT, 2),
            span(801, 1_000, Depth.DEEP, 3),
        ),
    )


def moment(seq: int) -> int:
    """When the note at a place was written: ten notes a day."""
    return START_MS - (LAST - seq) * DAY_MS // 10


def neighbourhood(
    node_id: NodeId, others: tuple[NodeId, ...], language: str = "en"
) -> NeighbourhoodSnapshot:
    """A memory with two edges that arrive and the rest leaving; the second is a pinned jump."""
    words, questions = _WORDS[language], _QUESTIONS[language]

    def title(at: int) -> str:
        return words[at % len(words)]

    def samples(at: int, count: int) -> tuple[KSample, ...]:
        return tuple(
            KSample(
                text=questions[(at + step) % 2],
                weight=count - step,
                used_at_ms=START_MS - (at + step) * DAY_MS,
            )
            for step in range(count)
        )

    edges = []
    for at, other in enumerate(others):
        arriving = at < 2
        edges.append(
            PointerEdge(
                source_id=other if arriving else node_id,
                target_id=node_id if arriving else other,
                source_title=title(at + 1) if arriving else title(0),
                target_title=title(0) if arriving else title(at + 1),
                heat=7 - at,
                positive=samples(at, 1 + at % 2),
                negative=(KSample(text=questions[2], weight=1, used_at_ms=START_MS),)
                if at == 2
                else (),
                forced=at == 1,
            )
        )
    return NeighbourhoodSnapshot(
        node_id=node_id, title=title(0), arriving=tuple(edges[:2]), leaving=tuple(edges[2:])
    )


def search(
    answer_id: NodeId, state: DeepSearchState, memories: tuple[UsedMemory, ...] = ()
) -> DeepSearch:
    """A search of the past that came to 12 March."""
    made = DeepSearch(
        answer_id=answer_id, state=state, back_to_ms=START_MS, notes_read=96, judged=14
    )
    return replace(made, memories=memories)
