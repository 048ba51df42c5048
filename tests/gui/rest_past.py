"""A made-up night of the background mind – a journal, a proposal and what it rests on – for tests and pictures."""

from __future__ import annotations

from collections.abc import Sequence

from growbox_app.mind_face import JudgeSkill
from memory.rest_values import (
    Cause,
    Experience,
    ExperienceSource,
    JournalEntry,
    JournalKind,
    JournalNode,
    SkillProposal,
)
from memory.values import DebtId, NodeId
from tests.fakes.assistant import START_MS

MINUTE_MS = 60_000
DAY_MS = 86_400_000
TRUSTED = (JudgeSkill(language="en", auc=0.9, auc_low=0.85, auc_high=0.95, trusted=True),)
_WORDS = {
    "en": {
        "question": "Why was the index file locked on Monday?",
        "found": "The nightly rebuild locks the file for four minutes",
        "other": "Backups go to the second disk every Sunday",
        "source": "pytest failure: the index file was locked",
        "record": "The index is locked while the nightly rebuild runs, from 02:00 to 02:04.",
        "rehearsed": "How long does the nightly rebuild take?",
        "skill": "Wait for the rebuild",
        "text": "Before opening the index between 02:00 and 02:04, wait until the rebuild has ended.",
        "operation": "open the index",
        "outcome": "opened after the rebuild had ended",
    },
    "zh": {
        "question": "星期一索引文件为什么被锁？",
        "found": "夜间重建会锁住文件四分钟",
        "other": "每个星期日备份到第二块硬盘",
        "source": "pytest 失败：索引文件被锁",
        "record": "夜间重建（02:00 到 02:04）期间索引被锁。",
        "rehearsed": "夜间重建需要多长时间？",
        "skill": "等重建结束",
        "text": "在 02:00 到 02:04 之间打开索引之前，先等重建结束。",
        "operation": "打开索引",
        "outcome": "重建结束后打开成功",
    },
}


def entry(number: int, at_ms: int = START_MS, **fields: object) -> JournalEntry:
    """A visit that read five notes and found nothing, unless told otherwise."""
    given: dict[str, object] = {
        "cause": Cause.DREAM,
        "kind": JournalKind.READ,
        "question": f"question {number}",
        "no_count": 5,
    }
    return JournalEntry(id=number, at_ms=at_ms, **(given | fields))  # type: ignore[arg-type]


def entries(ids: Sequence[NodeId], language: str, now_ms: int) -> list[JournalEntry]:
    """Two days of the background, three of them new."""
    words = _WORDS[language]

    def note(seq: int, word: str, *, there: bool = True) -> JournalNode:
        node_id = ids[seq % len(ids)] if there else None
        return JournalNode(seq=seq, title=words[word], node_id=node_id)

    question, judge = words["question"], "qwen2.5-coder-1.5b"
    paid = entry(
        6,
        now_ms - 9 * MINUTE_MS,
        kind=JournalKind.DEBT_CLEARED,
        question=question,
        judge=judge,
        yes=(note(0, "found"), note(1, "source")),
        no=(note(2, "other"), note(3, "other", there=False)),
        no_count=10,
        sources=(note(1, "source"),),
        debt_id=DebtId("9-1"),
        new=True,
    )
    rehearsed = entry(
        5,
        now_ms - 12 * MINUTE_MS,
        cause=Cause.REHEARSAL,
        kind=JournalKind.REHEARSED,
        question=words["rehearsed"],
        yes=(note(0, "found"),),
        no_count=0,
        sources=(note(1, "source"),),
        new=True,
    )
    concluded = entry(
        4,
        now_ms - 14 * MINUTE_MS,
        cause=Cause.FLYWHEEL,
        kind=JournalKind.KNOWLEDGE,
        question="",
        record=words["record"],
        record_id=ids[0],
        yes=(note(0, "found"),),
        no_count=0,
        new=True,
    )
    own = entry(
        3,
        now_ms - DAY_MS,
        cause=Cause.USER,
        kind=JournalKind.REFUSED,
        question=question,
        no_count=1,
    )
    undone = entry(2, now_ms - DAY_MS, question=question, yes=(note(0, "found"),), undone=True)
    return [paid, rehearsed, concluded, own, undone, entry(1, now_ms - DAY_MS, question=question)]


def experiences(ids: Sequence[NodeId], language: str) -> tuple[Experience, ...]:
    """What the proposal rests on."""
    words = _WORDS[language]
    return tuple(
        Experience(
            source=ExperienceSource.EXECUTOR,
            operation=words["operation"],
            context=words["question"],
            outcome=words["outcome"],
            success=True,
            node_ids=(ids[at % len(ids)],),
            id=at,
            at_ms=START_MS,
        )
        for at in (1, 2, 3)
    )


def proposals(language: str) -> tuple[SkillProposal, ...]:
    """One proposal that waits for an answer."""
    words = _WORDS[language]
    return (
        SkillProposal(
            id=1,
            created_at_ms=START_MS,
            name=words["skill"],
            text=words["text"],
            experiences=(1, 2, 3),
        ),
    )
